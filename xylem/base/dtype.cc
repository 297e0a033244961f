#include "xylem/base/dtype.h"

#include <array>

namespace xylem {
namespace {

using K = DTypeKind;

// One row per type, in the order of the enum.
constexpr std::array<DTypeInfo, kNumDTypes> kInfo = {{
    {DType::kBool, K::kBool, 1, 1, 0, 0, 0, "i1", "bool"},
    {DType::kI2, K::kSigned, 2, 1, 0, 0, 0, "i2", "int2"},
    {DType::kI4, K::kSigned, 4, 1, 0, 0, 0, "i4", "int4"},
    {DType::kI8, K::kSigned, 8, 1, 0, 0, 0, "i8", "int8"},
    {DType::kI16, K::kSigned, 16, 2, 0, 0, 0, "i16", "int16"},
    {DType::kI32, K::kSigned, 32, 4, 0, 0, 0, "i32", "int32"},
    {DType::kI64, K::kSigned, 64, 8, 0, 0, 0, "i64", "int64"},
    {DType::kU2, K::kUnsigned, 2, 1, 0, 0, 0, "ui2", "uint2"},
    {DType::kU4, K::kUnsigned, 4, 1, 0, 0, 0, "ui4", "uint4"},
    {DType::kU8, K::kUnsigned, 8, 1, 0, 0, 0, "ui8", "uint8"},
    {DType::kU16, K::kUnsigned, 16, 2, 0, 0, 0, "ui16", "uint16"},
    {DType::kU32, K::kUnsigned, 32, 4, 0, 0, 0, "ui32", "uint32"},
    {DType::kU64, K::kUnsigned, 64, 8, 0, 0, 0, "ui64", "uint64"},
    {DType::kF4E2M1FN, K::kFloat, 4, 1, 2, 1, 1, "f4E2M1FN", "float4_e2m1fn"},
    {DType::kF6E2M3FN, K::kFloat, 6, 1, 2, 3, 1, "f6E2M3FN", "float6_e2m3fn"},
    {DType::kF6E3M2FN, K::kFloat, 6, 1, 3, 2, 3, "f6E3M2FN", "float6_e3m2fn"},
    {DType::kF8E3M4, K::kFloat, 8, 1, 3, 4, 3, "f8E3M4", "float8_e3m4"},
    {DType::kF8E4M3, K::kFloat, 8, 1, 4, 3, 7, "f8E4M3", "float8_e4m3"},
    {DType::kF8E4M3FN, K::kFloat, 8, 1, 4, 3, 7, "f8E4M3FN", "float8_e4m3fn"},
    {DType::kF8E4M3FNUZ, K::kFloat, 8, 1, 4, 3, 8, "f8E4M3FNUZ", "float8_e4m3fnuz"},
    {DType::kF8E4M3B11FNUZ, K::kFloat, 8, 1, 4, 3, 11, "f8E4M3B11FNUZ", "float8_e4m3b11fnuz"},
    {DType::kF8E5M2, K::kFloat, 8, 1, 5, 2, 15, "f8E5M2", "float8_e5m2"},
    {DType::kF8E5M2FNUZ, K::kFloat, 8, 1, 5, 2, 16, "f8E5M2FNUZ", "float8_e5m2fnuz"},
    {DType::kF8E8M0FNU, K::kFloat, 8, 1, 8, 0, 127, "f8E8M0FNU", "float8_e8m0fnu"},
    {DType::kBF16, K::kFloat, 16, 2, 8, 7, 127, "bf16", "bfloat16"},
    {DType::kF16, K::kFloat, 16, 2, 5, 10, 15, "f16", "float16"},
    {DType::kF32, K::kFloat, 32, 4, 8, 23, 127, "f32", "float32"},
    {DType::kF64, K::kFloat, 64, 8, 11, 52, 1023, "f64", "float64"},
    {DType::kC64, K::kComplex, 64, 8, 8, 23, 127, "c64", "complex64"},
    {DType::kC128, K::kComplex, 128, 16, 11, 52, 1023, "c128", "complex128"},
    {DType::kFloat0, K::kFloat0, 0, 0, 0, 0, 0, "float0", "float0"},
}};

constexpr bool in_enum_order() {
  for (int i = 0; i < kNumDTypes; ++i)
    if (static_cast<int>(kInfo[static_cast<std::size_t>(i)].dtype) != i) return false;
  return true;
}
static_assert(in_enum_order());

struct Alias {
  std::string_view name;
  DType dtype;
};

// Other spellings in use: StableHLO's complex types, and the short unsigned names of JAX.
constexpr Alias kAliases[] = {
    {"complex<f32>", DType::kC64},
    {"complex<f64>", DType::kC128},
    {"bool_", DType::kBool},
    {"u2", DType::kU2},
    {"u4", DType::kU4},
    {"u8", DType::kU8},
    {"u16", DType::kU16},
    {"u32", DType::kU32},
    {"u64", DType::kU64},
};

}  // namespace

const DTypeInfo& dtype_info(DType t) { return kInfo[static_cast<std::size_t>(t)]; }

DType real_dtype(DType t) {
  if (t == DType::kC64) return DType::kF32;
  if (t == DType::kC128) return DType::kF64;
  return t;
}

DType complex_dtype(DType t) {
  if (t == DType::kF32) return DType::kC64;
  if (t == DType::kF64) return DType::kC128;
  return t;
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (const DTypeInfo& i : kInfo)
    if (name == i.name || name == i.numpy_name) return i.dtype;
  for (const Alias& a : kAliases)
    if (name == a.name) return a.dtype;
  return std::nullopt;
}

}  // namespace xylem
