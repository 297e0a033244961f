#include "xylem/core/special.h"

#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "xylem/base/error.h"
#include "xylem/core/internal/trace.h"
#include "xylem/core/numpy.h"
#include "xylem/core/numpy/ops.h"
#include "xylem/core/transforms.h"
#include "xylem/ir/ops/all.h"

namespace xylem::special {

using internal::unary;
using ir::Attr;
using ir::Attrs;
namespace ops = ir::ops;

Array erf(const ArrayArg& x) { return unary(ops::kErf, x, true); }
Array erfc(const ArrayArg& x) { return unary(ops::kErfc, x, true); }
Array erfinv(const ArrayArg& x) { return unary(ops::kErfInv, x, true); }
Array expit(const ArrayArg& x) { return unary(ops::kLogistic, x, true); }
Array logit(const ArrayArg& x) {
  Array a = internal::with_dtype(x.array, to_inexact(internal::weak_dtype(x.array)), x.where);
  return log(divide(a, subtract(1.0, a)));
}

namespace {

Array xlogy_value(const Array& x, const Array& y) {
  Array zero = logical_and(equal(x, 0.0), logical_not(isnan(y)));
  return where(zero, 0.0, multiply(x, log(where(zero, 1.0, y))));
}

}  // namespace

Array xlogy(const ArrayArg& x, const ArrayArg& y) {
  internal::CallSite site(x.where);
  Array like = add(zeros_like(x), zeros_like(y));
  WeakDType t = to_inexact(internal::weak_dtype(like));
  auto operand = [&](const ArrayArg& a) {
    return internal::broadcast(internal::with_dtype(a.array, t, x.where), like.shape(), x.where);
  };
  using Pair = std::tuple<Array, Array>;
  auto rule = [](const Pair& primals, const Pair& tangents) {
    const auto& [a, b] = primals;
    return std::pair{xlogy_value(a, b), add(multiply(std::get<0>(tangents), log(b)),
                                            multiply(std::get<1>(tangents), divide(a, b)))};
  };
  return custom_jvp(xlogy_value, rule)(operand(x), operand(y));
}

namespace {

std::pair<Array, Array> in_common(const char* what, const ArrayArg& x, const ArrayArg& y) {
  WeakDType t = to_inexact(
      promote_types(internal::weak_dtype(x.array), internal::weak_dtype(y.array), x.where));
  Dims shapes[2] = {x.array.shape(), y.array.shape()};
  Dims shape = internal::broadcast_shapes(shapes, what, x.where);
  auto one = [&](const Array& a) {
    return internal::broadcast(internal::with_dtype(a, t, x.where), shape, x.where);
  };
  return {one(x.array), one(y.array)};
}

constexpr double kInf = std::numeric_limits<double>::infinity();

}  // namespace

Array xlog1py(const ArrayArg& x, const ArrayArg& y) {
  internal::CallSite site(x.where);
  auto [a, b] = in_common("xlog1py", x, y);
  Array zero = logical_and(a == 0.0, logical_not(isnan(b)));
  return where(zero, zeros_like(a), a * log1p(where(zero, zeros_like(b), b)));
}

Array entr(const ArrayArg& x) {
  internal::CallSite site(x.where);
  Array a = internal::with_dtype(x.array, to_inexact(internal::weak_dtype(x.array)), x.where);
  return where(a < 0.0, full_like(a, -kInf), negative(xlogy(a, a)));
}

Array rel_entr(const ArrayArg& x, const ArrayArg& y) {
  internal::CallSite site(x.where);
  auto [p, q] = in_common("rel_entr", x, y);
  Array zero = p == 0.0, fine = (p > 0.0) & (q > 0.0);
  Array sp = where(fine, p, ones_like(p)), sq = where(fine, q, ones_like(q));
  Array value = sp * log(sp / sq);
  value = where(zero & (q >= 0.0), zeros_like(p), where(fine, value, full_like(p, kInf)));
  return where(isnan(p) | isnan(q), p + q, value);
}

Array kl_div(const ArrayArg& x, const ArrayArg& y) {
  internal::CallSite site(x.where);
  auto [p, q] = in_common("kl_div", x, y);
  return rel_entr(p, q) - p + q;
}

Array gammaln(const ArrayArg& x) { return unary(ops::kLgamma, x, true); }
Array digamma(const ArrayArg& x) { return unary(ops::kDigamma, x, true); }
Array i1e(const ArrayArg& x) { return unary(ops::kBesselI1e, x, true); }
Array polygamma(const ArrayArg& n, const ArrayArg& x) {
  if (!is_integer(n.array.dtype()))
    throw UserError(ErrorParts{"polygamma: order", "an integer", n.array.type_string(),
                               "Convert it with astype"},
                    internal::CallSite::outermost(n.where));
  return internal::binary(ops::kPolygamma, "polygamma", n, x, true);
}
Array zeta(const ArrayArg& x, const ArrayArg& q) {
  return internal::binary(ops::kZeta, "zeta", x, q, true);
}
Array betaln(const ArrayArg& a, const ArrayArg& b) {
  internal::CallSite site(a.where);
  auto [x, y] = in_common("betaln", a, b);
  return gammaln(x) + gammaln(y) - gammaln(x + y);
}

Array ndtr(const ArrayArg& x) {
  Array a = internal::with_dtype(x.array, to_inexact(internal::weak_dtype(x.array)), x.where);
  Array w = multiply(a, std::sqrt(0.5));
  Array z = abs(w);
  Array tail = where(greater(w, 0.0), subtract(2.0, erfc(z)), erfc(z));
  return multiply(0.5, where(less(z, std::sqrt(0.5)), add(1.0, erf(w)), tail));
}

Array nextafter(const ArrayArg& x, const ArrayArg& y) {
  SourceLoc w = x.where;
  WeakDType t = promote_types(internal::weak_dtype(x.array), internal::weak_dtype(y.array), w);
  t = to_inexact(t);
  int bits = dtype_bits(t.dtype);
  if (!is_float(t.dtype) || bits < 16)
    throw_user_error({"nextafter", "float operands are needed", dtype_name(t.dtype),
                      "Convert to f32, f64, bf16 or f16"},
                     w);
  DType u = bits == 16 ? DType::kU16 : bits == 32 ? DType::kU32 : DType::kU64;
  Dims shapes[2] = {x.array.shape(), y.array.shape()};
  Dims shape = internal::broadcast_shapes(shapes, "nextafter", w);
  Array a = internal::broadcast(internal::with_dtype(x.array, {t.dtype, false}, w), shape, w);
  Array b = internal::broadcast(internal::with_dtype(y.array, {t.dtype, false}, w), shape, w);
  auto cast = [&](const Array& v, DType to) {
    return internal::apply_one(ops::kBitcastConvert, std::span<const Array>(&v, 1),
                               Attrs{{"result_dtype", Attr(to)}}, w);
  };
  Array one = internal::constant(u, {}, 1), zero = zeros_like(a);
  Array code = cast(a, u);
  // Away from zero the code grows; towards it, it shrinks.
  Array grows = equal(less(a, b), greater(a, zero));
  Array next = cast(where(grows, add(code, one), subtract(code, one)), t.dtype);
  Array tiny = cast(internal::broadcast(one, shape, w), t.dtype);
  next = where(equal(a, zero), where(less(b, zero), negative(tiny), tiny), next);
  next = where(equal(a, b), b, next);
  return where(logical_or(isnan(a), isnan(b)), add(a, b), next);
}

}  // namespace xylem::special
