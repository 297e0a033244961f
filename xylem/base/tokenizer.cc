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

// ---- TextStream

namespace {

// Whether the text ends within a character, or with U+FFFD, which tokenizers put where bytes of one
// are still to come.
bool is_open(std::string_view s) {
  if (s.ends_with("\xEF\xBF\xBD")) return true;
  for (std::size_t n = 1; n <= 3 && n <= s.size(); ++n) {
    const auto b = static_cast<unsigned char>(s[s.size() - n]);
    if (b >= 0xC0) return (b >= 0xF0 ? 4u : b >= 0xE0 ? 3u : 2u) > n;
    if (b < 0x80) return false;
  }
  return false;
}

constexpr std::size_t kOpenIds = 16;

}  // namespace

std::string TextStream::text_since_read(bool finish) {
  const std::span<const std::int32_t> ids(ids_);
  const std::string before = tokenizer_.decode(ids.first(read_)), all = tokenizer_.decode(ids);
  if (all.size() <= before.size()) return {};
  if (!finish && is_open(all) && ids_.size() - read_ < kOpenIds) return {};
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(read_));
  read_ = ids_.size();
  return all.substr(before.size());
}

std::string TextStream::add(std::int32_t id) {
  if (id < 0 || id >= tokenizer_.vocab_size()) return {};
  ids_.push_back(id);
  return text_since_read(false);
}

std::string TextStream::finish() {
  std::string text = text_since_read(true);
  ids_.clear();
  read_ = 0;
  return text;
}

}  // namespace xylem
