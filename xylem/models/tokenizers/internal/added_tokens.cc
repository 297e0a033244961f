#include "xylem/models/tokenizers/internal/added_tokens.h"

#include <algorithm>

#include "xylem/base/error.h"
#include "xylem/models/tokenizers/internal/unicode.h"

namespace xylem::models::internal {

std::vector<AddedToken> read_added_tokens(
    const JsonPlace& json, const std::function<std::int32_t(const std::string&)>& id_of,
    std::size_t model_size) {
  std::vector<AddedToken> out;
  if (json.value.is_null()) return out;
  if (!json.value.is_array()) json.refuse("a list of tokens", "Save the tokenizer again");
  std::map<std::string, std::size_t> seen;
  std::int64_t last = -1;
  for (std::size_t i = 0; i < json.value.size(); ++i) {
    const JsonPlace t = json.at(i);
    AddedToken token{.content = t.text("content"),
                     .text = {},
                     .single_word = t.boolean("single_word", false),
                     .lstrip = t.boolean("lstrip", false),
                     .rstrip = t.boolean("rstrip", false),
                     .normalized = t.boolean("normalized", false),
                     .special = t.boolean("special", false)};
    t.number("id");
    if (token.content.empty()) continue;
    const auto [place, fresh] = seen.emplace(token.content, out.size());
    if (!fresh) {
      token.id = out[place->second].id;
      out[place->second] = token;
      continue;
    }
    token.id = id_of(token.content);
    if (token.id < 0) {
      const auto size = static_cast<std::int64_t>(model_size);
      token.id = static_cast<std::int32_t>(last >= size || size == 0 ? last + 1 : size);
    }
    last = std::max<std::int64_t>(last, token.id);
    out.push_back(std::move(token));
  }
  return out;
}

void TokenFinder::add(const AddedToken& token) {
  const std::string& text = token.text;
  if (text.empty()) return;
  std::size_t node = 0;
  for (char c : text) {
    const auto [next, fresh] = nodes_[node].next.emplace(c, nodes_.size());
    node = next->second;
    if (fresh) nodes_.emplace_back();
  }
  first_[static_cast<unsigned char>(text[0])] = true;
  if (nodes_[node].token < 0) nodes_[node].token = static_cast<int>(tokens_.size());
  tokens_.push_back(token);
}

void TokenFinder::split(std::string_view text, const std::function<void(std::int32_t)>& token,
                        const std::function<void(std::size_t, std::size_t)>& between) const {
  std::size_t done = 0;  // what was handed on
  const auto last_char = [](std::string_view s) {
    std::size_t at = s.size() - 1;
    while (at > 0 && (static_cast<unsigned char>(s[at]) & 0xC0) == 0x80) --at;
    return at;
  };
  for (std::size_t at = 0; at < text.size();) {
    if (!first_[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    int found = -1;
    std::size_t end = at;
    std::size_t node = 0;
    for (std::size_t i = at; i < text.size(); ++i) {
      const auto next = nodes_[node].next.find(text[i]);
      if (next == nodes_[node].next.end()) break;
      node = next->second;
      if (nodes_[node].token >= 0) found = nodes_[node].token, end = i + 1;
    }
    if (found < 0) {
      ++at;
      continue;
    }
    const AddedToken& t = tokens_[static_cast<std::size_t>(found)];
    std::size_t begin = at;
    at = end;
    if (t.single_word) {
      std::size_t before = begin > 0 ? last_char(text.substr(0, begin)) : 0, after = end;
      if ((begin > 0 && is_word(next_char(text, before))) ||
          (end < text.size() && is_word(next_char(text, after))))
        continue;
    }
    if (t.lstrip)
      while (begin > done) {
        const std::size_t c = last_char(text.substr(0, begin));
        std::size_t next = c;
        if (c < done || !is_white_space(next_char(text, next))) break;
        begin = c;
      }
    if (t.rstrip)
      while (end < text.size()) {
        std::size_t next = end;
        if (!is_white_space(next_char(text, next))) break;
        end = next;
      }
    if (done < begin) between(done, begin);
    token(t.id);
    done = end;
  }
  if (done < text.size()) between(done, text.size());
}

}  // namespace xylem::models::internal
