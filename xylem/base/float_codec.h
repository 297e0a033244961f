#pragma once

#include <bit>
#include <cstdint>

#include "xylem/base/dtype.h"

// Bit-level encoding and decoding of the narrow floats, generic over the format and in integer
// arithmetic only: for conversions (dtype_cast.h has them for arrays) and for code generators.

namespace xylem {

enum class Specials : std::uint8_t {
  kIeee,    // top exponent: infinities and NaNs
  kFn,      // no infinity; all ones is NaN
  kFnuz,    // no infinity, no negative zero; its code is NaN
  kFinite,  // neither infinity nor NaN: saturates
  kE8M0,    // a power of two, unsigned; all ones is NaN
};

struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Specials specials;

  constexpr int width() const {
    return exponent_bits + mantissa_bits + (specials == Specials::kE8M0 ? 0 : 1);
  }
};

constexpr FloatFormat float_format(DType t) {
  switch (t) {
    case DType::kF4E2M1FN: return {2, 1, 1, Specials::kFinite};
    case DType::kF6E2M3FN: return {2, 3, 1, Specials::kFinite};
    case DType::kF6E3M2FN: return {3, 2, 3, Specials::kFinite};
    case DType::kF8E3M4: return {3, 4, 3, Specials::kIeee};
    case DType::kF8E4M3: return {4, 3, 7, Specials::kIeee};
    case DType::kF8E4M3FN: return {4, 3, 7, Specials::kFn};
    case DType::kF8E4M3FNUZ: return {4, 3, 8, Specials::kFnuz};
    case DType::kF8E4M3B11FNUZ: return {4, 3, 11, Specials::kFnuz};
    case DType::kF8E5M2: return {5, 2, 15, Specials::kIeee};
    case DType::kF8E5M2FNUZ: return {5, 2, 16, Specials::kFnuz};
    case DType::kF8E8M0FNU: return {8, 0, 127, Specials::kE8M0};
    case DType::kBF16: return {8, 7, 127, Specials::kIeee};
    case DType::kF16: return {5, 10, 15, Specials::kIeee};
    case DType::kF32: return {8, 23, 127, Specials::kIeee};
    default: return {11, 52, 1023, Specials::kIeee};
  }
}

// Largest finite code without its sign.
constexpr std::uint32_t max_finite_code(FloatFormat f) {
  const std::uint32_t all = (1u << (f.exponent_bits + f.mantissa_bits)) - 1;
  switch (f.specials) {
    case Specials::kIeee: return all - (1u << f.mantissa_bits);
    case Specials::kFn:
    case Specials::kE8M0: return all - 1;
    case Specials::kFnuz:
    case Specials::kFinite: return all;
  }
  return all;
}

constexpr std::uint32_t sign_code(FloatFormat f, bool negative) {
  return f.specials == Specials::kE8M0
             ? 0
             : std::uint32_t{negative} << (f.exponent_bits + f.mantissa_bits);
}

constexpr std::uint32_t nan_code(FloatFormat f, bool negative) {
  const std::uint32_t top = 1u << (f.exponent_bits + f.mantissa_bits);
  switch (f.specials) {
    case Specials::kIeee:  // quiet, payload zero
      return sign_code(f, negative) | ((1u << f.exponent_bits) - 1) << f.mantissa_bits |
             1u << (f.mantissa_bits - 1);
    case Specials::kFn: return sign_code(f, negative) | (top - 1);
    case Specials::kFnuz:
    case Specials::kFinite: return top;  // NaN; for the finite types -0, as XLA has it
    case Specials::kE8M0: return top - 1;
  }
  return 0;
}

constexpr std::uint32_t overflow_code(FloatFormat f, bool negative) {
  switch (f.specials) {
    case Specials::kIeee:
      return sign_code(f, negative) | ((1u << f.exponent_bits) - 1) << f.mantissa_bits;
    case Specials::kFinite: return sign_code(f, negative) | max_finite_code(f);
    default: return nan_code(f, negative);
  }
}

// Rounds (-1)^negative * significand * 2^exponent, significand != 0, to the nearest code, ties to
// even. One rounding from the exact value. For formats of at most 32 bits.
constexpr std::uint32_t encode_exact(FloatFormat f, bool negative, std::uint64_t significand,
                                     int exponent) {
  const int m = f.mantissa_bits;
  if (f.specials == Specials::kE8M0 && negative) return nan_code(f, negative);
  // Normalise so that the leading bit is bit 63.
  const int shift = std::countl_zero(significand);
  significand <<= shift;
  const int e = exponent - shift + 63;  // value = 1.xxx * 2^e
  // Least exponent of a normal number; below it numbers have fewer bits.
  const bool e8m0 = f.specials == Specials::kE8M0;
  const int min_e = e8m0 ? -f.bias : 1 - f.bias;
  if (e8m0 && e < min_e) return 0;
  // Above the least value XLA and ml_dtypes round up, not to nearest.
  if (e8m0 && e == min_e) return significand << 1 != 0 ? 1 : 0;
  const int drop = 63 - m + (e < min_e ? min_e - e : 0);  // bits under the last place
  std::uint64_t kept = 0;
  if (drop < 64) {
    kept = significand >> drop;
    const std::uint64_t rest = significand << (64 - drop);
    const std::uint64_t half = std::uint64_t{1} << 63;
    kept += (rest > half || (rest == half && (kept & 1))) ? 1 : 0;
  } else if (drop == 64) {
    kept = significand > std::uint64_t{1} << 63 ? 1 : 0;  // above half the least number
  }
  // A carry out of the mantissa runs into the exponent field, which is what is wanted.
  const int biased = e < min_e ? 1 : e + f.bias;
  const std::uint64_t code = (static_cast<std::uint64_t>(biased - 1) << m) + kept;
  if (code > max_finite_code(f)) return overflow_code(f, negative);
  if (f.specials == Specials::kFnuz && code == 0) return 0;
  return sign_code(f, negative) | static_cast<std::uint32_t>(code);
}

constexpr std::uint32_t encode_double(FloatFormat f, double v) {
  const auto u = std::bit_cast<std::uint64_t>(v);
  const bool negative = u >> 63;
  const int e = static_cast<int>(u >> 52 & 0x7ff);
  std::uint64_t s = u & ((std::uint64_t{1} << 52) - 1);
  if (e == 0x7ff) return s != 0 ? nan_code(f, negative) : overflow_code(f, negative);
  if (e != 0) s |= std::uint64_t{1} << 52;
  if (s == 0) {
    if (f.specials == Specials::kE8M0) return nan_code(f, negative);
    return f.specials == Specials::kFnuz ? 0 : sign_code(f, negative);
  }
  return encode_exact(f, negative, s, (e == 0 ? 1 : e) - 1075);
}

constexpr std::uint32_t encode_integer(FloatFormat f, bool negative, std::uint64_t magnitude) {
  if (magnitude == 0) return encode_double(f, 0.0);
  return encode_exact(f, negative, magnitude, 0);
}

// Exact value as f32 bits; for formats of at most 16 bits, bits above the width are ignored.
constexpr std::uint32_t decode_to_f32_bits(FloatFormat f, std::uint32_t code) {
  const int m = f.mantissa_bits;
  code &= (1u << f.width()) - 1;
  if (f.specials == Specials::kE8M0) {
    if (code == 255) return 0x7fc00000u;
    return code == 0 ? 1u << 22 : code << 23;
  }
  const std::uint32_t magnitude = code & ((1u << (f.exponent_bits + m)) - 1);
  const std::uint32_t sign = (code ^ magnitude) != 0 ? 0x80000000u : 0;
  const std::uint32_t field = magnitude >> m;
  const std::uint32_t mantissa = magnitude & ((1u << m) - 1);
  if (magnitude > max_finite_code(f)) {
    if (f.specials == Specials::kIeee)
      return sign | 0x7f800000u | (mantissa << (23 - m)) | (mantissa != 0 ? 1u << 22 : 0);
    return sign | 0x7fc00000u;
  }
  if (f.specials == Specials::kFnuz && sign != 0 && magnitude == 0) return 0xffc00000u;
  if (magnitude == 0) return sign;
  int e = static_cast<int>(field) - f.bias;
  std::uint32_t fraction = mantissa << (23 - m);
  if (field == 0) {
    const int up = std::countl_zero(mantissa) - (31 - m);  // shift that makes the hidden bit
    fraction = (mantissa << (up + 23 - m)) & 0x7fffffu;
    e = 1 - f.bias - up;
  }
  if (e < -126)  // only bf16 has f32's range: its subnormals are f32's
    return sign | (field == 0 ? mantissa << (23 - m) : 0);
  return sign | static_cast<std::uint32_t>(e + 127) << 23 | fraction;
}

}  // namespace xylem
