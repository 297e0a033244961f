#include <fmt/format.h>

#include <cstring>

#include "xylem/ir/bytecode/value_reader.h"

// Constants.

namespace xylem::ir::bytecode {
namespace {

// Bits above a narrow type's width carry no meaning.
void clean(HostArray& a) {
  int bits = dtype_bits(a.dtype());
  if (bits >= 8 || is_bool(a.dtype())) return;
  auto mask = static_cast<std::byte>((1 << bits) - 1);
  std::byte* p = a.data();
  for (std::int64_t i = 0; i < a.size(); ++i) p[i] &= mask;
}

HostArray splat(Source& source, DType dtype, const Dims& dims, std::string_view one,
                std::size_t at) {
  // Checked before anything is allocated: a few bytes may promise terabytes.
  std::int64_t total = num_elements(dims);
  if (__builtin_mul_overflow(total, dtype_bytes(dtype), &total)) total = INT64_MAX;
  if (total > static_cast<std::int64_t>(one.size())) source.charge(total, at);
  HostArray a(dtype, dims);
  if (one.size() == 1) {
    std::memset(a.data(), static_cast<unsigned char>(one[0]), static_cast<std::size_t>(total));
  } else {
    for (std::int64_t i = 0; i < total; i += static_cast<std::int64_t>(one.size()))
      std::memcpy(a.data() + i, one.data(), one.size());
  }
  clean(a);
  return a;
}

HostArray booleans(Source& source, const Dims& dims, std::string_view blob, std::size_t at) {
  std::int64_t n = num_elements(dims);
  auto size = static_cast<std::int64_t>(blob.size());
  auto byte = [&](std::int64_t i) {
    return static_cast<unsigned char>(blob[static_cast<std::size_t>(i)]);
  };
  if (size == 1 && byte(0) == 0xFF && n > 0)
    return splat(source, DType::kBool, dims, std::string_view("\1", 1), at);
  if (size == n / 8 + (n % 8 != 0) && size != n) {
    HostArray a(DType::kBool, dims);
    for (std::int64_t i = 0; i < n; ++i)
      a.data()[i] = static_cast<std::byte>(byte(i / 8) >> (i % 8) & 1);
    return a;
  }
  if (size == n) {
    HostArray a(DType::kBool, dims);
    for (std::int64_t i = 0; i < n; ++i) a.data()[i] = std::byte{byte(i) != 0};
    return a;
  }
  if (size == 1)
    return splat(source, DType::kBool, dims, std::string_view(byte(0) ? "\1" : "\0", 1), at);
  source.fail(at, "constant", fmt::format("the bytes of {}", shape_string(DType::kBool, dims)),
              fmt::format("{} bytes", size), "The file is damaged: write it again");
}

}  // namespace

HostArray read_elements(Source& source, DType dtype, const Dims& dims, std::string_view blob,
                        std::size_t at) {
  if (is_bool(dtype)) return booleans(source, dims, blob, at);
  std::int64_t n = num_elements(dims);
  auto each = static_cast<std::size_t>(dtype_bytes(dtype));
  std::int64_t total = 0;
  bool fits = !__builtin_mul_overflow(n, static_cast<std::int64_t>(each), &total);
  if (fits && static_cast<std::uint64_t>(total) == blob.size()) {
    HostArray a(dtype, dims);
    if (total) std::memcpy(a.data(), blob.data(), blob.size());
    clean(a);
    return a;
  }
  if (blob.size() == each && n > 0) return splat(source, dtype, dims, blob, at);
  source.fail(at, "constant",
              fmt::format("the bytes of {}, or of one element", shape_string(dtype, dims)),
              fmt::format("{} bytes", blob.size()), "The file is damaged: write it again");
}

}  // namespace xylem::ir::bytecode
