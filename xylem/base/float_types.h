#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "xylem/base/dtype.h"

// Scalar types for the dtypes that C++ does not have: storage bits and exact conversions. They
// hold values; arithmetic is done in float. For arrays use `convert_elements` of dtype_cast.h.

namespace xylem {
namespace internal {

// Rounds to nearest even with the overflow rule of the type (see dtype_cast.h).
template <DType D>
std::uint16_t encode_narrow(double v);
// Exact: every narrow type is a subset of f32.
template <DType D>
float decode_narrow(std::uint16_t bits);

inline std::uint16_t bf16_from_float(float v) {
  auto u = std::bit_cast<std::uint32_t>(v);
  if ((u & 0x7fffffffu) > 0x7f800000u)
    return static_cast<std::uint16_t>((u >> 16 & 0x8000u) | 0x7fc0u);
  return static_cast<std::uint16_t>((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}
inline float bf16_to_float(std::uint16_t b) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(b) << 16);
}
// Exact in integer arithmetic, so that no flush-to-zero mode of the thread changes the result.
std::uint16_t f16_from_float(float v);
float f16_to_float(std::uint16_t bits);

}  // namespace internal

// A float of at most 16 bits. Narrower than 8 bits: one byte, low bits, the others zero.
template <DType D, class Bits>
struct NarrowFloat {
  static constexpr DType kDType = D;
  Bits bits = 0;

  NarrowFloat() = default;
  explicit NarrowFloat(double v) : bits(static_cast<Bits>(internal::encode_narrow<D>(v))) {}
  explicit NarrowFloat(float v) {
    if constexpr (D == DType::kBF16)
      bits = internal::bf16_from_float(v);
    else if constexpr (D == DType::kF16)
      bits = internal::f16_from_float(v);
    else
      bits = static_cast<Bits>(internal::encode_narrow<D>(static_cast<double>(v)));
  }
  static constexpr NarrowFloat from_bits(Bits b) {
    NarrowFloat f;
    f.bits = b;
    return f;
  }

  explicit operator float() const {
    if constexpr (D == DType::kBF16)
      return internal::bf16_to_float(bits);
    else if constexpr (D == DType::kF16)
      return internal::f16_to_float(bits);
    else
      return internal::decode_narrow<D>(bits);
  }
  explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }

  // As numbers: NaN differs from itself, -0 equals +0.
  friend bool operator==(NarrowFloat a, NarrowFloat b) {
    return static_cast<float>(a) == static_cast<float>(b);
  }
};

using bf16 = NarrowFloat<DType::kBF16, std::uint16_t>;
using f16 = NarrowFloat<DType::kF16, std::uint16_t>;
using f8e3m4 = NarrowFloat<DType::kF8E3M4, std::uint8_t>;
using f8e4m3 = NarrowFloat<DType::kF8E4M3, std::uint8_t>;
using f8e4m3fn = NarrowFloat<DType::kF8E4M3FN, std::uint8_t>;
using f8e4m3fnuz = NarrowFloat<DType::kF8E4M3FNUZ, std::uint8_t>;
using f8e4m3b11fnuz = NarrowFloat<DType::kF8E4M3B11FNUZ, std::uint8_t>;
using f8e5m2 = NarrowFloat<DType::kF8E5M2, std::uint8_t>;
using f8e5m2fnuz = NarrowFloat<DType::kF8E5M2FNUZ, std::uint8_t>;
using f8e8m0fnu = NarrowFloat<DType::kF8E8M0FNU, std::uint8_t>;
using f6e2m3fn = NarrowFloat<DType::kF6E2M3FN, std::uint8_t>;
using f6e3m2fn = NarrowFloat<DType::kF6E3M2FN, std::uint8_t>;
using f4e2m1fn = NarrowFloat<DType::kF4E2M1FN, std::uint8_t>;

// An integer of 2 or 4 bits in the low bits of a byte; the high bits are written as zero and
// ignored when read. Construction wraps.
template <DType D, int Width, bool Signed>
struct NarrowInt {
  static constexpr DType kDType = D;
  std::uint8_t bits = 0;

  NarrowInt() = default;
  explicit constexpr NarrowInt(int v) : bits(static_cast<std::uint8_t>(v & ((1 << Width) - 1))) {}
  static constexpr NarrowInt from_bits(std::uint8_t b) { return NarrowInt(b); }
  explicit constexpr operator int() const {
    const int low = bits & ((1 << Width) - 1);
    return Signed && (low >> (Width - 1)) ? low - (1 << Width) : low;
  }
  friend constexpr bool operator==(NarrowInt a, NarrowInt b) {
    return static_cast<int>(a) == static_cast<int>(b);
  }
};

using i2 = NarrowInt<DType::kI2, 2, true>;
using i4 = NarrowInt<DType::kI4, 4, true>;
using u2 = NarrowInt<DType::kU2, 2, false>;
using u4 = NarrowInt<DType::kU4, 4, false>;

static_assert(sizeof(bf16) == 2 && sizeof(f8e5m2) == 1 && sizeof(i4) == 1);
static_assert(std::is_trivially_copyable_v<bf16> && std::is_trivially_copyable_v<i4>);

}  // namespace xylem
