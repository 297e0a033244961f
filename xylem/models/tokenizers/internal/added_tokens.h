#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/models/tokenizers/internal/parts.h"

namespace xylem::models::internal {

// A token that is found in the text before the model sees it.
struct AddedToken {
  std::string content;
  std::string text;  // the content as it stands in the texts that are searched, and is decoded
  std::int32_t id = 0;
  bool single_word = false, lstrip = false, rstrip = false, normalized = false, special = false;
};

// The `added_tokens` of a tokenizer.json, without the empty ones. Ids are set by `tokenizers`
// rules: the vocabulary's for tokens that it has, else the next free ones in the list's order.
std::vector<AddedToken> read_added_tokens(
    const JsonPlace& json, const std::function<std::int32_t(const std::string&)>& id_of,
    std::size_t model_size);

// Finds tokens in texts: the leftmost, of those the longest. Immutable.
class TokenFinder {
 public:
  void add(const AddedToken& token);
  // Calls `token(id)` and `text(begin, end)` for the parts of the text in order.
  void split(std::string_view text, const std::function<void(std::int32_t id)>& token,
             const std::function<void(std::size_t begin, std::size_t end)>& between) const;
  bool empty() const { return tokens_.empty(); }

 private:
  struct Node {
    std::map<char, std::size_t> next;
    int token = -1;
  };
  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::array<bool, 256> first_{};
};

}  // namespace xylem::models::internal
