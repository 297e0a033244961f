#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace xylem::ir::bytecode {

// The file that is read: for messages and for what may be allocated on its behalf.
struct Source {
  std::string_view bytes;
  std::string_view name;
  std::int64_t charged = 0;  // memory that the file's length does not bound

  // Throws UserError "NAME:1:COL: error: …" in four parts.
  [[noreturn]] void fail(std::size_t at, std::string_view operation, std::string_view expected,
                         std::string_view given, std::string_view advice) const;
  // "NAME:1:COL".
  std::string place(std::size_t at) const;
  // Accounts for repeated values; throws when too much memory is asked for.
  void charge(std::int64_t bytes, std::size_t at);
};

// Reads MLIR's basic codings from a part of the file. Every read is checked.
class ByteCursor {
 public:
  ByteCursor(const Source& source, std::size_t begin, std::size_t end)
      : source_(&source), at_(begin), end_(end) {}

  std::size_t pos() const { return at_; }
  std::size_t end() const { return end_; }
  std::size_t remaining() const { return end_ - at_; }
  bool done() const { return at_ == end_; }
  const Source& source() const { return *source_; }

  std::uint8_t byte(const char* what) {
    if (at_ == end_) fail_short(what, 1);
    return static_cast<std::uint8_t>(source_->bytes[at_++]);
  }
  // The number of trailing zero bits of the first byte says how many bytes follow.
  std::uint64_t varint(const char* what) {
    if (at_ != end_) {
      auto first = static_cast<std::uint8_t>(source_->bytes[at_]);
      if (first & 1) {
        ++at_;
        return first >> 1;
      }
    }
    return long_varint(what);
  }
  // Zigzag.
  std::int64_t signed_varint(const char* what) {
    std::uint64_t v = varint(what);
    return static_cast<std::int64_t>(v >> 1) ^ -static_cast<std::int64_t>(v & 1);
  }
  // A count of things that take at least `each` bytes of what remains.
  std::size_t count(const char* what, std::size_t each = 1);
  // A varint below `limit`.
  std::size_t index(const char* what, std::size_t limit);
  std::string_view bytes(const char* what, std::uint64_t n) {
    if (n > remaining()) fail_short(what, n);
    at_ += static_cast<std::size_t>(n);
    return source_->bytes.substr(at_ - static_cast<std::size_t>(n), static_cast<std::size_t>(n));
  }
  // Up to a zero byte, which is read too.
  std::string_view c_string(const char* what);
  void seek(std::size_t at) { at_ = at; }

  [[noreturn]] void fail(std::string_view operation, std::string_view expected,
                         std::string_view given, std::string_view advice) const {
    source_->fail(at_, operation, expected, given, advice);
  }

 private:
  std::uint64_t long_varint(const char* what);
  [[noreturn]] void fail_short(const char* what, std::uint64_t n) const;

  const Source* source_;
  std::size_t at_;
  std::size_t end_;
};

// Appends MLIR's basic codings.
void append_varint(std::string& out, std::uint64_t v);
void append_signed_varint(std::string& out, std::int64_t v);

}  // namespace xylem::ir::bytecode
