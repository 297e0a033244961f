#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace xylem::ir::text {

// Nesting of regions, attributes and types that readers accept. Far above real programs, far
// below what the stack holds.
inline constexpr int kMaxDepth = 200;
// Memory that repeated values ("dense<0> : tensor<…>") of one text may take when spelled out.
inline constexpr std::int64_t kMaxSplatBytes = std::int64_t{1} << 30;

// The same for what a constant may spell out; beyond that it is read as a broadcast.
inline constexpr std::int64_t kMaxListedSplatBytes = std::int64_t{1} << 26;

bool is_identifier_start(char c);  // letters and '_'
bool is_identifier_char(char c);   // letters, digits, '_', '$', '.'

// Line and column, both from 1; columns count bytes.
struct LineCol {
  int line = 1;
  int column = 1;
};

// A reading position in a text, with the small steps that all readers share. Blanks and "//"
// comments are skipped before each step. Errors are UserErrors "FILE:LINE:COL: error: …" in four
// parts. `text` and `file` must outlive the cursor.
class Cursor {
 public:
  // Lines are counted from `first_line`, for texts that are part of a file.
  Cursor(std::string_view text, std::string_view file, std::string_view language,
         int first_line = 1)
      : text_(text), file_(file), language_(language), first_line_(first_line) {}

  std::string_view text() const { return text_; }
  std::string_view file() const { return file_; }
  std::size_t pos() const { return pos_; }
  void seek(std::size_t pos) { pos_ = pos; }
  // Position of the next token.
  std::size_t token_pos() {
    skip();
    return pos_;
  }

  void skip();
  bool at_end() {
    skip();
    return pos_ >= text_.size();
  }
  // The next character; '\0' at the end.
  char peek() {
    skip();
    return raw();
  }
  // The character at the position, blanks included; '\0' at the end.
  char raw(std::size_t ahead = 0) const {
    return pos_ + ahead < text_.size() ? text_[pos_ + ahead] : '\0';
  }
  void step(std::size_t n = 1) { pos_ += n; }

  bool accept(char c) {
    if (peek() != c || pos_ >= text_.size()) return false;
    ++pos_;
    return true;
  }
  bool accept(std::string_view token);
  // A whole word: not followed by an identifier character.
  bool accept_word(std::string_view word);
  bool looking_at(std::string_view token);
  bool looking_at_word(std::string_view word);
  void expect(char c, std::string_view reading);
  void expect(std::string_view token, std::string_view reading);
  void expect_word(std::string_view word, std::string_view reading);

  // Letters, digits, '_', '$', '.', starting with a letter or '_'.
  std::string_view identifier(std::string_view reading);
  // The rest of a "%name", "@name", "#name" or "^name" after its mark: identifier characters and
  // '-', which may start with a digit.
  std::string_view suffix_name(std::string_view reading);
  // A quoted string with its escapes resolved (\" \\ \n \t \r and two hexadecimal digits).
  std::string string(std::string_view reading);
  // A quoted string that holds no escapes, as a view of the text. False, and nothing is read,
  // if the string holds a backslash.
  bool plain_string(std::string_view& out, std::string_view reading);
  // Decimal or hexadecimal, with sign; refuses what does not fit.
  std::int64_t integer(std::string_view reading);
  // The characters of a number (sign, digits, '.', exponent, or 0x…), checked for its form.
  std::string_view number(std::string_view reading);
  // Everything up to the bracket that closes the one just read, which is read too; nested
  // brackets and strings are balanced. The view excludes the closing bracket.
  std::string_view balanced(char open, char close, std::string_view reading);

  LineCol line_col(std::size_t pos) const;
  // "FILE:LINE:COL".
  std::string place(std::size_t pos) const;
  // What stands at a position, for error messages: "'foo'", "end of text".
  std::string found(std::size_t pos) const;
  [[noreturn]] void fail(std::size_t pos, std::string_view operation, std::string_view expected,
                         std::string_view given, std::string_view advice) const;
  // The same with a constraint's label.
  [[noreturn]] void fail_labelled(std::string_view label, std::size_t pos,
                                  std::string_view operation, std::string_view expected,
                                  std::string_view given, std::string_view advice) const;
  // The same where something is missing, which is behind the token before; the third part names
  // what was found instead.
  [[noreturn]] void fail_here(std::string_view operation, std::string_view expected,
                              std::string_view advice);

  // Counts nesting; throws at kMaxDepth.
  class Depth {
   public:
    explicit Depth(Cursor& c);
    ~Depth() { --c_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    Cursor& c_;
  };
  int depth() const { return depth_; }
  // Where the error stood that was thrown last; for readers that go on behind it.
  std::size_t failed_pos() const { return failed_pos_; }

  // Accounts for memory that the text's length does not bound; throws above kMaxSplatBytes.
  void charge(std::int64_t bytes, std::size_t pos);

 private:
  std::string_view text_;
  std::string_view file_;
  std::string_view language_;  // "native text", leads every message
  int first_line_ = 1;
  std::size_t pos_ = 0;
  int depth_ = 0;
  std::int64_t charged_ = 0;
  mutable std::size_t failed_pos_ = 0;
  // Positions are mostly asked for in increasing order: the last answer is where counting resumes.
  mutable std::size_t counted_pos_ = 0;
  mutable std::size_t line_start_ = 0;
  mutable int counted_line_ = 0;  // before first_line_ is added
};

// Appends s in quotes with the escapes that Cursor::string reads.
void append_quoted(std::string& out, std::string_view s);
// A zero-terminated copy that lives for ever, as SourceLoc wants its strings.
const char* intern_c_string(std::string s);
// True for what `identifier` reads in one piece.
bool is_identifier(std::string_view s);

}  // namespace xylem::ir::text
