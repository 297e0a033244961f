#include "xylem/base/tokenizer.h"

#include <fmt/format.h>

#include "xylem/base/error.h"

namespace xylem {

std::vector<std::int32_t> ByteTokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> ids;
  ids.reserve(text.size());
  for (char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

std::string ByteTokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string s;
  s.reserve(ids.size());
  for (std::int32_t id : ids) {
    if (id < 0 || id > 255)
      throw_user_error({"ByteTokenizer::decode", "ids must lie in [0, 256)",
                        fmt::format("an id is {}", id), "Decode with the tokenizer that encoded"});
    s += static_cast<char>(id);
  }
  return s;
}

}  // namespace xylem
