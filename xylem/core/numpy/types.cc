#include <cmath>
#include <limits>

#include "xylem/base/error.h"
#include "xylem/core/numpy.h"
#include "xylem/core/numpy/ops.h"

namespace xylem {

FloatInfo finfo(DType dtype) {
  DType t = dtype == DType::kC64 ? DType::kF32 : dtype == DType::kC128 ? DType::kF64 : dtype;
  if (!is_float(t) || dtype_bits(t) < 16)
    throw_user_error({"finfo", "f16, bf16, f32, f64 or a complex dtype", dtype_name(dtype),
                      "Use iinfo for integers"});
  const DTypeInfo& d = dtype_info(t);
  FloatInfo r;
  int top = (1 << (d.bits - 1 - d.mantissa_bits)) - 2 - d.bias;
  r.max = std::ldexp(2.0 - std::ldexp(1.0, -d.mantissa_bits), top);
  r.min = -r.max;
  r.eps = std::ldexp(1.0, -d.mantissa_bits);
  r.epsneg = r.eps / 2;
  r.tiny = std::ldexp(1.0, 1 - d.bias);
  r.smallest_subnormal = std::ldexp(r.tiny, -d.mantissa_bits);
  r.bits = d.bits;
  r.nmant = d.mantissa_bits;
  r.nexp = d.bits - 1 - d.mantissa_bits;
  return r;
}

IntInfo iinfo(DType dtype) {
  if (!is_integer(dtype))
    throw_user_error({"iinfo", "an integer dtype", dtype_name(dtype), "Use finfo for floats"});
  int n = dtype_bits(dtype);
  std::uint64_t ones = n == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1;
  if (is_unsigned_int(dtype)) return {0, ones, n};
  return {-static_cast<std::int64_t>(ones >> 1) - 1, ones >> 1, n};
}

bool issubdtype(DType t, DTypeGroup group) {
  switch (group) {
    case DTypeGroup::kBool: return is_bool(t);
    case DTypeGroup::kInteger: return is_integer(t);
    case DTypeGroup::kSignedInteger: return is_signed_int(t);
    case DTypeGroup::kUnsignedInteger: return is_unsigned_int(t);
    case DTypeGroup::kFloating: return is_float(t);
    case DTypeGroup::kComplexFloating: return is_complex(t);
    case DTypeGroup::kInexact: return is_inexact(t);
    case DTypeGroup::kNumber: return !is_bool(t);
  }
  return false;
}

DType result_type(std::initializer_list<ArrayArg> xs) {
  std::vector<WeakDType> types;
  for (const ArrayArg& x : xs) types.push_back(internal::weak_dtype(x.array));
  return promote_types(types, xs.size() ? xs.begin()->where : SourceLoc()).dtype;
}

}  // namespace xylem
