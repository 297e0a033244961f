#include "xylem/ir/bytecode/byte_cursor.h"

#include <fmt/format.h>

#include <bit>

#include "xylem/base/error.h"
#include "xylem/ir/text/cursor.h"

namespace xylem::ir::bytecode {

std::string Source::place(std::size_t at) const { return fmt::format("{}:1:{}", name, at + 1); }

void Source::fail(std::size_t at, std::string_view operation, std::string_view expected,
                  std::string_view given, std::string_view advice) const {
  throw UserError(fmt::format("{}: error: {}", place(at),
                              UserError(ErrorParts{operation, expected, given, advice}).message()));
}

void Source::charge(std::int64_t n, std::size_t at) {
  if (n > text::kMaxSplatBytes - charged)
    fail(at, "constant",
         fmt::format("repeated values of a file take at most {} bytes", text::kMaxSplatBytes),
         fmt::format("this one needs {} more", n), "Broadcast a scalar constant instead");
  charged += n;
}

void ByteCursor::fail_short(const char* what, std::uint64_t n) const {
  source_->fail(at_, what, fmt::format("{} more bytes", n),
                fmt::format("{} are left at byte {}", remaining(), at_),
                "The file is cut off or damaged: write it again");
}

std::uint64_t ByteCursor::long_varint(const char* what) {
  if (at_ == end_) fail_short(what, 1);
  auto first = static_cast<std::uint8_t>(source_->bytes[at_]);
  std::size_t more = first == 0 ? 8 : static_cast<std::size_t>(std::countr_zero(first));
  if (remaining() < more + 1) fail_short(what, more + 1);
  std::uint64_t v = 0;
  // Eight payload bytes follow a zero byte; else the number's lowest bits are in the first.
  std::size_t begin = first == 0 ? at_ + 1 : at_;
  std::size_t size = first == 0 ? 8 : more + 1;
  for (std::size_t i = 0; i < size; ++i)
    v |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(source_->bytes[begin + i]))
         << (8 * i);
  at_ += more + 1;
  return first == 0 ? v : v >> size;
}

std::size_t ByteCursor::count(const char* what, std::size_t each) {
  std::size_t at = at_;
  std::uint64_t n = varint(what);
  if (n > remaining() / each)
    source_->fail(at, what, fmt::format("a count that the {} bytes left can hold", remaining()),
                  fmt::format("{} at byte {}", n, at),
                  "The file is cut off or damaged: write it again");
  return static_cast<std::size_t>(n);
}

std::size_t ByteCursor::index(const char* what, std::size_t limit) {
  std::size_t at = at_;
  std::uint64_t n = varint(what);
  if (n >= limit)
    source_->fail(at, what, fmt::format("a number below {}", limit),
                  fmt::format("{} at byte {}", n, at), "The file is damaged: write it again");
  return static_cast<std::size_t>(n);
}

std::string_view ByteCursor::c_string(const char* what) {
  std::string_view rest = source_->bytes.substr(at_, remaining());
  std::size_t zero = rest.find('\0');
  if (zero == std::string_view::npos)
    fail(what, "a text that ends in a zero byte", "the end of its part of the file",
         "The file is cut off or damaged: write it again");
  at_ += zero + 1;
  return rest.substr(0, zero);
}

void append_varint(std::string& out, std::uint64_t v) {
  int bits = std::bit_width(v | 1);
  int size = (bits + 6) / 7;
  if (size > 8) {
    out += '\0';
    for (int i = 0; i < 8; ++i) out += static_cast<char>(v >> (8 * i));
    return;
  }
  // 7 bits a byte; the lowest set bit stands behind size - 1 zeros.
  unsigned __int128 coded = (static_cast<unsigned __int128>(v) << 1 | 1) << (size - 1);
  for (int i = 0; i < size; ++i)
    out += static_cast<char>(static_cast<std::uint64_t>(coded >> (8 * i)));
}

void append_signed_varint(std::string& out, std::int64_t v) {
  append_varint(out, static_cast<std::uint64_t>(v) << 1 ^ static_cast<std::uint64_t>(v >> 63));
}

}  // namespace xylem::ir::bytecode
