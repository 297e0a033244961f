#include "xylem/core/lax.h"

#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/core/numpy.h"
#include "xylem/core/numpy/ops.h"
#include "xylem/ir/ops/all.h"

namespace xylem::lax {

using ir::Attr;
using ir::Attrs;
namespace ops = ir::ops;

Array rsqrt(const ArrayArg& x) { return internal::unary(ops::kRsqrt, x); }

Array clamp(const ArrayArg& min, const ArrayArg& x, const ArrayArg& max) {
  DType t = x.array.dtype();
  Array operands[3] = {min.array.astype(t, x.where), x.array, max.array.astype(t, x.where)};
  return internal::apply_one(ops::kClamp, operands, {}, x.where, x.array.weak_type());
}

Array bitcast_convert_type(const ArrayArg& x, DType dtype) {
  return internal::apply_one(ops::kBitcastConvert, std::span<const Array>(&x.array, 1),
                             Attrs{{"result_dtype", Attr(dtype)}}, x.where);
}

Array reduce_precision(const ArrayArg& x, int exponent_bits, int mantissa_bits) {
  return internal::apply_one(
      ops::kReducePrecision, std::span<const Array>(&x.array, 1),
      Attrs{{"exponent_bits", Attr(exponent_bits)}, {"mantissa_bits", Attr(mantissa_bits)}},
      x.where);
}

Array iota(DType dtype, Dims shape, int dimension) {
  return internal::iota(dtype, shape, dimension);
}

Array broadcast_in_dim(const ArrayArg& x, Dims shape, Dims broadcast_dimensions) {
  return internal::broadcast_in_dim(x.array, shape, broadcast_dimensions, x.where);
}

Array slice(const ArrayArg& x, Dims start, Dims limit, Dims strides) {
  if (strides.empty()) strides.resize(start.size(), 1);
  return internal::slice(x.array, start, limit, strides, x.where);
}

namespace {

void add_starts(const char* what, const Array& x, std::initializer_list<Array> start,
                std::vector<Array>& operands, SourceLoc where) {
  if (static_cast<int>(start.size()) != x.ndim())
    throw UserError(
        ErrorParts{what, fmt::format("one start index per axis ({})", x.ndim()),
                   fmt::format("{} were given", start.size()), "Give a scalar for each axis"},
        internal::CallSite::outermost(where));
  // The op wants one integer type for all of them. Negative ones count from the end.
  int axis = 0;
  for (const Array& s : start) {
    auto n = static_cast<std::int32_t>(x.shape()[axis++]);
    const HostArray& known = s.node()->literal;
    if (known.defined()) {
      auto v = static_cast<std::int32_t>(known.at(0));
      operands.push_back(
          internal::make_literal(HostArray::scalar(v < 0 ? v + n : v), DType::kI32, false));
      continue;
    }
    Array i = s.astype(DType::kI32, where);
    operands.push_back(is_unsigned_int(s.dtype())
                           ? i
                           : xylem::where(ArrayArg(less(ArrayArg(i, where), 0), where),
                                          add(ArrayArg(i, where), n), i));
  }
}

}  // namespace

Array dynamic_slice(const ArrayArg& x, std::initializer_list<Array> start, Dims sizes) {
  std::vector<Array> operands = {x.array};
  add_starts("dynamic_slice", x.array, start, operands, x.where);
  return internal::apply_one(ops::kDynamicSlice, operands, Attrs{{"slice_sizes", Attr(sizes)}},
                             x.where, x.array.weak_type());
}

Array dynamic_update_slice(const ArrayArg& x, const ArrayArg& update,
                           std::initializer_list<Array> start) {
  std::vector<Array> operands = {x.array, update.array};
  add_starts("dynamic_update_slice", x.array, start, operands, x.where);
  return internal::apply_one(ops::kDynamicUpdateSlice, operands, {}, x.where, x.array.weak_type());
}

TopK top_k(const ArrayArg& x, std::int64_t k) {
  std::vector<Array> r = internal::apply(ops::kTopK, std::span<const Array>(&x.array, 1),
                                         Attrs{{"k", Attr(k)}}, {}, x.where);
  return {r[0], r[1]};
}

Array optimization_barrier(const ArrayArg& x) {
  return internal::apply_one(ops::kOptimizationBarrier, std::span<const Array>(&x.array, 1), {},
                             x.where, x.array.weak_type());
}

}  // namespace xylem::lax
