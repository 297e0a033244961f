#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace xylem::models::internal {

// A regular expression in Oniguruma's Ruby syntax over valid UTF-8, the engine of `tokenizers`.
// Immutable; concurrent calls are safe.
class Regex {
 public:
  // UserError, with `where` as its operation, if the pattern is not one.
  Regex(std::string_view pattern, const std::string& where);
  ~Regex();
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  // All matches from left to right, empty ones but behind another match. UserError if one takes
  // more steps than the engine allows.
  void find_all(std::string_view text,
                const std::function<void(std::size_t begin, std::size_t end)>& match) const;

  const std::string& pattern() const;
  // The same by the engine alone, without what is known of common patterns; for tests.
  void find_all_slowly(std::string_view text,
                       const std::function<void(std::size_t begin, std::size_t end)>& match) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The text with a backslash before what is no letter, digit, underscore or non-ASCII character.
std::string escape_regex(std::string_view literal);

// The end of the match of a well-known pattern at text[at], where ASCII characters alone decide it;
// 0 elsewhere. A match always begins at `at`, because these patterns leave no gaps.
using AsciiScanner = std::size_t (*)(std::string_view text, std::size_t at);
// The scanner for a pattern of GPT-2, Llama 3 or Qwen 2; null for others.
AsciiScanner ascii_scanner(std::string_view pattern);

extern const char* const kGpt2Pattern;

}  // namespace xylem::models::internal
