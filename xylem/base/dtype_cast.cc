#include "xylem/base/dtype_cast.h"

#include <array>
#include <bit>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>

#include "xylem/base/error.h"
#include "xylem/base/float_codec.h"
#include "xylem/base/float_types.h"
#include "xylem/base/fp_environment.h"

namespace xylem {
namespace internal {

template <DType D>
std::uint16_t encode_narrow(double v) {
  return static_cast<std::uint16_t>(encode_double(float_format(D), v));
}

template <DType D>
float decode_narrow(std::uint16_t bits) {
  return std::bit_cast<float>(decode_to_f32_bits(float_format(D), bits));
}

#define XYLEM_NARROW(D)                                   \
  template std::uint16_t encode_narrow<DType::D>(double); \
  template float decode_narrow<DType::D>(std::uint16_t);
XYLEM_NARROW(kF4E2M1FN)
XYLEM_NARROW(kF6E2M3FN)
XYLEM_NARROW(kF6E3M2FN)
XYLEM_NARROW(kF8E3M4)
XYLEM_NARROW(kF8E4M3)
XYLEM_NARROW(kF8E4M3FN)
XYLEM_NARROW(kF8E4M3FNUZ)
XYLEM_NARROW(kF8E4M3B11FNUZ)
XYLEM_NARROW(kF8E5M2)
XYLEM_NARROW(kF8E5M2FNUZ)
XYLEM_NARROW(kF8E8M0FNU)
XYLEM_NARROW(kBF16)
XYLEM_NARROW(kF16)
#undef XYLEM_NARROW

std::uint16_t f16_from_float(float v) {
  const auto u = std::bit_cast<std::uint32_t>(v);
  const auto sign = static_cast<std::uint16_t>(u >> 16 & 0x8000u);
  const std::uint32_t a = u & 0x7fffffffu;
  if (a >= 0x38800000u && a < 0x47800000u) {
    // Normal in both: drop 13 bits; adding the odd bit makes ties go to even, and a carry out of
    // the largest value becomes infinity by itself.
    const std::uint32_t r = a - (112u << 23) + 0xfffu + (a >> 13 & 1u);
    return static_cast<std::uint16_t>(sign | r >> 13);
  }
  if (a >= 0x47800000u)
    return static_cast<std::uint16_t>(sign | (a > 0x7f800000u ? 0x7e00u : 0x7c00u));
  if (a <= 0x33000000u) return sign;  // at most half the least number
  const std::uint32_t shift = 126u - (a >> 23);
  const std::uint32_t s = (a & 0x7fffffu) | 0x800000u;
  const std::uint32_t half = 1u << (shift - 1);
  const std::uint32_t kept = s >> shift;
  const std::uint32_t rest = s & ((1u << shift) - 1);
  return static_cast<std::uint16_t>(sign | (kept + (rest > half || (rest == half && (kept & 1)))));
}

float f16_to_float(std::uint16_t bits) { return decode_narrow<DType::kF16>(bits); }

}  // namespace internal

namespace {

// Conversion goes through a carrier that holds every value of the source exactly: i64 for bool and
// signed, u64 for unsigned, f64 for floats; so 31 x 31 pairs need 31 loads and 3 x 31 stores.
// Common pairs have loops of their own below.

template <class T>
T load_as(const void* p, std::int64_t i) {
  T v;
  std::memcpy(&v, static_cast<const std::byte*>(p) + i * static_cast<std::int64_t>(sizeof(T)),
              sizeof(T));
  return v;
}

template <class T>
void store_as(void* p, std::int64_t i, T v) {
  std::memcpy(static_cast<std::byte*>(p) + i * static_cast<std::int64_t>(sizeof(T)), &v, sizeof(T));
}

// The C++ type for a dtype's value in memory.
template <DType D>
struct Storage;
// clang-format off
template <> struct Storage<DType::kBool> { using type = std::uint8_t; };
template <> struct Storage<DType::kI2> { using type = i2; };
template <> struct Storage<DType::kI4> { using type = i4; };
template <> struct Storage<DType::kI8> { using type = std::int8_t; };
template <> struct Storage<DType::kI16> { using type = std::int16_t; };
template <> struct Storage<DType::kI32> { using type = std::int32_t; };
template <> struct Storage<DType::kI64> { using type = std::int64_t; };
template <> struct Storage<DType::kU2> { using type = u2; };
template <> struct Storage<DType::kU4> { using type = u4; };
template <> struct Storage<DType::kU8> { using type = std::uint8_t; };
template <> struct Storage<DType::kU16> { using type = std::uint16_t; };
template <> struct Storage<DType::kU32> { using type = std::uint32_t; };
template <> struct Storage<DType::kU64> { using type = std::uint64_t; };
template <> struct Storage<DType::kF4E2M1FN> { using type = f4e2m1fn; };
template <> struct Storage<DType::kF6E2M3FN> { using type = f6e2m3fn; };
template <> struct Storage<DType::kF6E3M2FN> { using type = f6e3m2fn; };
template <> struct Storage<DType::kF8E3M4> { using type = f8e3m4; };
template <> struct Storage<DType::kF8E4M3> { using type = f8e4m3; };
template <> struct Storage<DType::kF8E4M3FN> { using type = f8e4m3fn; };
template <> struct Storage<DType::kF8E4M3FNUZ> { using type = f8e4m3fnuz; };
template <> struct Storage<DType::kF8E4M3B11FNUZ> { using type = f8e4m3b11fnuz; };
template <> struct Storage<DType::kF8E5M2> { using type = f8e5m2; };
template <> struct Storage<DType::kF8E5M2FNUZ> { using type = f8e5m2fnuz; };
template <> struct Storage<DType::kF8E8M0FNU> { using type = f8e8m0fnu; };
template <> struct Storage<DType::kBF16> { using type = bf16; };
template <> struct Storage<DType::kF16> { using type = f16; };
template <> struct Storage<DType::kF32> { using type = float; };
template <> struct Storage<DType::kF64> { using type = double; };
// clang-format on

// Calls f with std::integral_constant<DType, t> for every type but complex and float0.
template <class F>
void dispatch_real(DType t, F&& f) {
  switch (t) {
#define XYLEM_CASE(D) \
  case DType::D: return f(std::integral_constant<DType, DType::D>{});
    XYLEM_CASE(kBool)
    XYLEM_CASE(kI2)
    XYLEM_CASE(kI4)
    XYLEM_CASE(kI8)
    XYLEM_CASE(kI16)
    XYLEM_CASE(kI32)
    XYLEM_CASE(kI64)
    XYLEM_CASE(kU2)
    XYLEM_CASE(kU4)
    XYLEM_CASE(kU8)
    XYLEM_CASE(kU16)
    XYLEM_CASE(kU32)
    XYLEM_CASE(kU64)
    XYLEM_CASE(kF4E2M1FN)
    XYLEM_CASE(kF6E2M3FN)
    XYLEM_CASE(kF6E3M2FN)
    XYLEM_CASE(kF8E3M4)
    XYLEM_CASE(kF8E4M3)
    XYLEM_CASE(kF8E4M3FN)
    XYLEM_CASE(kF8E4M3FNUZ)
    XYLEM_CASE(kF8E4M3B11FNUZ)
    XYLEM_CASE(kF8E5M2)
    XYLEM_CASE(kF8E5M2FNUZ)
    XYLEM_CASE(kF8E8M0FNU)
    XYLEM_CASE(kBF16)
    XYLEM_CASE(kF16)
    XYLEM_CASE(kF32)
    XYLEM_CASE(kF64)
#undef XYLEM_CASE
    case DType::kC64:
    case DType::kC128:
    case DType::kFloat0: break;
  }
  throw_internal_error("a real dtype", dtype_name(t), SourceLoc::current());
}

enum class Carrier { kI64, kU64, kF64 };

constexpr Carrier carrier_of(DType t) {
  if (t <= DType::kI64) return Carrier::kI64;
  if (t <= DType::kU64) return Carrier::kU64;
  return Carrier::kF64;
}

template <class C, DType D>
C load_element(const void* p, std::int64_t i) {
  using T = typename Storage<D>::type;
  const T v = load_as<T>(p, i);
  if constexpr (D == DType::kBool)
    return static_cast<C>(v != 0);
  else if constexpr (std::is_arithmetic_v<T>)
    return static_cast<C>(v);
  else if constexpr (carrier_of(D) == Carrier::kF64)
    return static_cast<C>(static_cast<float>(v));
  else
    return static_cast<C>(static_cast<int>(v));
}

// Truncates and saturates to [lo, hi]; NaN gives 0. hi_plus_1 is exact in f64.
template <class I>
I saturate(double v, I lo, I hi, double hi_plus_1) {
  if (v != v) return 0;
  if (v >= hi_plus_1) return hi;
  if (v <= static_cast<double>(lo)) return lo;
  return static_cast<I>(v);
}

template <class C, DType D>
void store_element(void* p, std::int64_t i, C v) {
  using T = typename Storage<D>::type;
  if constexpr (D == DType::kBool) {
    store_as<std::uint8_t>(p, i, v != 0);
  } else if constexpr (carrier_of(D) == Carrier::kF64) {
    if constexpr (std::is_arithmetic_v<T>) {
      store_as<T>(p, i, static_cast<T>(v));
    } else {
      using Bits = decltype(T{}.bits);
      constexpr auto fmt = float_format(D);
      std::uint32_t code;
      if constexpr (std::is_same_v<C, double>)
        code = encode_double(fmt, v);
      else if constexpr (std::is_same_v<C, std::int64_t>)
        code = encode_integer(
            fmt, v < 0, v < 0 ? 0 - static_cast<std::uint64_t>(v) : static_cast<std::uint64_t>(v));
      else
        code = encode_integer(fmt, false, v);
      store_as<Bits>(p, i, static_cast<Bits>(code));
    }
  } else if constexpr (std::is_same_v<C, double>) {
    if constexpr (std::is_arithmetic_v<T>) {
      using L = std::numeric_limits<T>;
      // 2^digits, exact also for 64 bits.
      constexpr double top = static_cast<double>(std::uint64_t{1} << (L::digits - 1)) * 2.0;
      store_as<T>(p, i, saturate<T>(v, L::min(), L::max(), top));
    } else {
      constexpr bool is_signed = carrier_of(D) == Carrier::kI64;
      constexpr int width = D == DType::kI2 || D == DType::kU2 ? 2 : 4;
      constexpr int lo = is_signed ? -(1 << (width - 1)) : 0;
      constexpr int hi = is_signed ? (1 << (width - 1)) - 1 : (1 << width) - 1;
      store_as<T>(p, i, T(saturate<int>(v, lo, hi, hi + 1)));
    }
  } else if constexpr (std::is_arithmetic_v<T>) {
    store_as<T>(p, i, static_cast<T>(v));
  } else {
    store_as<T>(p, i, T(static_cast<int>(v & 0xf)));
  }
}

constexpr std::int64_t kBlock = 512;

template <class C>
void convert_through(DType from, const void* src, DType to, void* dst, std::int64_t n) {
  std::array<C, kBlock> block;
  const std::int64_t src_bytes = dtype_bytes(from);
  const std::int64_t dst_bytes = dtype_bytes(to);
  for (std::int64_t at = 0; at < n; at += kBlock) {
    const std::int64_t m = std::min(kBlock, n - at);
    const void* s = static_cast<const std::byte*>(src) + at * src_bytes;
    void* d = static_cast<std::byte*>(dst) + at * dst_bytes;
    dispatch_real(from, [&](auto t) {
      for (std::int64_t i = 0; i < m; ++i)
        block[static_cast<std::size_t>(i)] = load_element<C, t()>(s, i);
    });
    dispatch_real(to, [&](auto t) {
      for (std::int64_t i = 0; i < m; ++i)
        store_element<C, t()>(d, i, block[static_cast<std::size_t>(i)]);
    });
  }
}

template <DType From, DType To>
void convert_loop(const void* src, void* dst, std::int64_t n) {
  using S = typename Storage<From>::type;
  using D = typename Storage<To>::type;
  const S* __restrict s = static_cast<const S*>(src);
  D* __restrict d = static_cast<D*>(dst);
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_arithmetic_v<D> && !std::is_arithmetic_v<S>)
      d[i] = static_cast<D>(static_cast<float>(s[i]));
    else
      d[i] = static_cast<D>(s[i]);
  }
}

constexpr int pair_key(DType a, DType b) { return static_cast<int>(a) * 64 + static_cast<int>(b); }

// The pairs that matter for speed and whose plain C++ conversion is already the right one.
bool convert_fast(DType from, const void* src, DType to, void* dst, std::int64_t n) {
  switch (pair_key(from, to)) {
#define XYLEM_PAIR(A, B) \
  case pair_key(DType::A, DType::B): convert_loop<DType::A, DType::B>(src, dst, n); return true;
    XYLEM_PAIR(kF32, kF64)
    XYLEM_PAIR(kF64, kF32)
    XYLEM_PAIR(kF32, kBF16)
    XYLEM_PAIR(kBF16, kF32)
    XYLEM_PAIR(kF32, kF16)
    XYLEM_PAIR(kF16, kF32)
    XYLEM_PAIR(kI32, kF32)
    XYLEM_PAIR(kI32, kF64)
    XYLEM_PAIR(kI64, kF32)
    XYLEM_PAIR(kI64, kF64)
    XYLEM_PAIR(kU8, kF32)
    XYLEM_PAIR(kI8, kF32)
    XYLEM_PAIR(kI32, kI64)
    XYLEM_PAIR(kI64, kI32)
    XYLEM_PAIR(kU8, kI32)
    XYLEM_PAIR(kU32, kF32)
#undef XYLEM_PAIR
    default: return false;
  }
}

// Real parts of complex numbers into a contiguous run, or the reverse with zero imaginary parts.
template <class R, class F>
void in_blocks(std::int64_t n, F&& f) {
  std::array<R, kBlock> block;
  for (std::int64_t at = 0; at < n; at += kBlock) f(block, at, std::min(kBlock, n - at));
}

template <class R>
void real_parts(const void* src, DType to, void* dst, std::int64_t n) {
  constexpr DType real = std::is_same_v<R, float> ? DType::kF32 : DType::kF64;
  in_blocks<R>(n, [&](auto& block, std::int64_t at, std::int64_t m) {
    for (std::int64_t i = 0; i < m; ++i)
      block[static_cast<std::size_t>(i)] = load_as<R>(src, 2 * (at + i));
    convert_elements(real, block.data(), to, static_cast<std::byte*>(dst) + at * dtype_bytes(to),
                     m);
  });
}

template <class R>
void to_complex(DType from, const void* src, void* dst, std::int64_t n) {
  constexpr DType real = std::is_same_v<R, float> ? DType::kF32 : DType::kF64;
  in_blocks<R>(n, [&](auto& block, std::int64_t at, std::int64_t m) {
    convert_elements(from, static_cast<const std::byte*>(src) + at * dtype_bytes(from), real,
                     block.data(), m);
    for (std::int64_t i = 0; i < m; ++i) {
      store_as<R>(dst, 2 * (at + i), block[static_cast<std::size_t>(i)]);
      store_as<R>(dst, 2 * (at + i) + 1, R{0});
    }
  });
}

}  // namespace

void convert_elements(DType from, const void* src, DType to, void* dst, std::int64_t n) {
  if (n <= 0 || to == DType::kFloat0) return;
  if (from == DType::kFloat0) {
    // Zero of every type but f8E8M0FNU, which has none, is all bits clear.
    std::memset(dst, to == DType::kF8E8M0FNU ? 0xff : 0,
                static_cast<std::size_t>(n) * static_cast<std::size_t>(dtype_bytes(to)));
    return;
  }
  if (from == to) {
    std::memmove(dst, src, static_cast<std::size_t>(n) * static_cast<std::size_t>(dtype_bytes(to)));
    return;
  }
  const DefaultFpEnvironment env;
  if (is_complex(from)) {
    if (is_complex(to)) return convert_elements(real_dtype(from), src, real_dtype(to), dst, 2 * n);
    return from == DType::kC64 ? real_parts<float>(src, to, dst, n)
                               : real_parts<double>(src, to, dst, n);
  }
  if (is_complex(to))
    return to == DType::kC64 ? to_complex<float>(from, src, dst, n)
                             : to_complex<double>(from, src, dst, n);
  if (convert_fast(from, src, to, dst, n)) return;
  switch (carrier_of(from)) {
    case Carrier::kI64: return convert_through<std::int64_t>(from, src, to, dst, n);
    case Carrier::kU64: return convert_through<std::uint64_t>(from, src, to, dst, n);
    case Carrier::kF64: return convert_through<double>(from, src, to, dst, n);
  }
}

double element_to_double(DType from, const void* src) {
  double v = 0;
  convert_elements(from, src, DType::kF64, &v, 1);
  return v;
}

void double_to_element(double v, DType to, void* dst) {
  convert_elements(DType::kF64, &v, to, dst, 1);
}

}  // namespace xylem
