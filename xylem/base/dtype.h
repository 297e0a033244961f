#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace xylem {

// Element types: all of StableHLO's. The order is fixed: it is part of encoded programs.
enum class DType : std::uint8_t {
  kBool,  // i1, one byte in memory, 0 or 1
  kI2,
  kI4,
  kI8,
  kI16,
  kI32,
  kI64,
  kU2,
  kU4,
  kU8,
  kU16,
  kU32,
  kU64,
  kF4E2M1FN,
  kF6E2M3FN,
  kF6E3M2FN,
  kF8E3M4,
  kF8E4M3,
  kF8E4M3FN,
  kF8E4M3FNUZ,
  kF8E4M3B11FNUZ,
  kF8E5M2,
  kF8E5M2FNUZ,
  kF8E8M0FNU,
  kBF16,
  kF16,
  kF32,
  kF64,
  kC64,
  kC128,
  kFloat0,  // tangent type of integers; no bytes
};
inline constexpr int kNumDTypes = static_cast<int>(DType::kFloat0) + 1;

enum class DTypeKind : std::uint8_t { kBool, kSigned, kUnsigned, kFloat, kComplex, kFloat0 };

// What a dtype is. `bits` is the width of the value, `bytes` what one element takes in host and
// device memory: types under 8 bits take one byte an element, low bits.
struct DTypeInfo {
  DType dtype;
  DTypeKind kind;
  std::uint8_t bits;
  std::uint8_t bytes;
  std::uint8_t exponent_bits;  // floats only
  std::uint8_t mantissa_bits;  // floats only, without the hidden bit
  std::int16_t bias;           // floats only
  const char* name;            // short: "f32", "bf16", "i1", "f8E4M3FN" as in StableHLO text
  const char* numpy_name;      // NumPy's and ml_dtypes' name: "float32", "bfloat16", "bool"
};

const DTypeInfo& dtype_info(DType t);

inline const char* dtype_name(DType t) { return dtype_info(t).name; }
inline int dtype_bytes(DType t) { return dtype_info(t).bytes; }
inline int dtype_bits(DType t) { return dtype_info(t).bits; }
inline bool is_bool(DType t) { return t == DType::kBool; }
inline bool is_signed_int(DType t) { return dtype_info(t).kind == DTypeKind::kSigned; }
inline bool is_unsigned_int(DType t) { return dtype_info(t).kind == DTypeKind::kUnsigned; }
// Integers without bool.
inline bool is_integer(DType t) { return is_signed_int(t) || is_unsigned_int(t); }
inline bool is_float(DType t) { return dtype_info(t).kind == DTypeKind::kFloat; }
inline bool is_complex(DType t) { return dtype_info(t).kind == DTypeKind::kComplex; }
// Floats and complex: the types that can be differentiated.
inline bool is_inexact(DType t) { return is_float(t) || is_complex(t); }
// f32 for c64, f64 for c128, the type itself otherwise.
DType real_dtype(DType t);
// c64 for f32, c128 for f64.
DType complex_dtype(DType t);

// Accepts both the StableHLO and the NumPy name; nothing if the name is unknown.
std::optional<DType> parse_dtype(std::string_view name);

}  // namespace xylem
