#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// Characters as Rust's standard library and the crates of `tokenizers` see them. Texts are valid
// UTF-8 unless said otherwise.

namespace xylem::models::internal {

// The character that begins at text[at]; `at` moves behind it.
char32_t next_char(std::string_view text, std::size_t& at);
void append_char(std::string& text, char32_t c);
std::size_t char_bytes(char lead);
std::size_t count_chars(std::string_view text);

bool is_utf8(std::string_view text);
// Any bytes, with U+FFFD for each maximal broken part (Unicode 15, section 3.9, table 3-8).
std::string to_utf8(std::string_view bytes);

bool is_white_space(char32_t c);  // property White_Space
// What the parts of `tokenizers` take for numbers (Digits), punctuation (Punctuation), marks
// (StripAccents), accents and control characters (BertNormalizer), and word characters
// (Whitespace).
bool is_numeric(char32_t c);
bool is_punctuation(char32_t c);
bool is_mark(char32_t c);
bool is_nonspacing_mark(char32_t c);
bool is_control(char32_t c);
bool is_word(char32_t c);
bool is_chinese(char32_t c);  // CJK ideographs, BERT's list

enum class NormalForm : unsigned char { kNfc, kNfd, kNfkc, kNfkd };
std::string normalize(std::string_view text, NormalForm form);
// Character by character, without regard to neighbours.
std::string lowercase(std::string_view text);

// Whether the text has characters that are younger than the packaged Oniguruma, and the text with
// older ones of equal category and length in their place.
bool needs_stand_ins(std::string_view text);
std::string with_stand_ins(std::string_view text);

}  // namespace xylem::models::internal
