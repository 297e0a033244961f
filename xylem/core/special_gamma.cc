#include "xylem/core/special_gamma.h"

#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "xylem/base/error.h"
#include "xylem/core/control_flow.h"
#include "xylem/core/internal/trace.h"
#include "xylem/core/numpy.h"
#include "xylem/core/numpy/ops.h"
#include "xylem/core/special.h"
#include "xylem/core/transforms.h"

// With e(a, x) = x^a e^-x / Γ(a): P = e S(a, x) for the series S = Σ x^n / (a (a+1) … (a+n)), best
// for x <= 1 or x <= a, and Q = e C(a, x) for Legendre's continued fraction C, best elsewhere
// (Abramowitz and Stegun 6.5.29, 6.5.31). Both are summed with their derivatives by a, term by
// term.

namespace xylem::special {
namespace {

struct Value {
  Array value, by_a;
};

// S and dS/da where `on`, until the terms of both are below one ulp.
struct SeriesState {
  Array on, n, term, term_by_a, sum, sum_by_a;
};
Value series(const Array& a, const Array& x, const Array& on, double eps) {
  Array first = reciprocal(where(on, a, 1.0));
  Array first_by_a = negative(square(first));
  SeriesState s{on, zeros_like(a), first, first_by_a, first, first_by_a};
  s = while_loop([](const SeriesState& c) { return any(c.on); },
                 [&](const SeriesState& c) {
                   Array n = c.n + 1.0, d = a + n;
                   Array term = c.term * (x / d);
                   Array by_a = c.term_by_a * (x / d) - term / d;
                   Array sum = c.sum + term, sum_by_a = c.sum_by_a + by_a;
                   Array more = logical_or(term > eps * sum, abs(by_a) > eps * abs(sum_by_a));
                   return SeriesState{
                       c.on & more & (n < 2000.0), n,
                       where(c.on, term, c.term),  where(c.on, by_a, c.term_by_a),
                       where(c.on, sum, c.sum),    where(c.on, sum_by_a, c.sum_by_a)};
                 },
                 s);
  return {s.sum, s.sum_by_a};
}

// C = p / q by the recurrence of convergents p_k = b_k p_(k-1) - k (k - a) p_(k-2), b_k = x + 2k +
// 1
// - a, q likewise, with derivatives by a.
struct FractionState {
  Array on, k, p1, p2, q1, q2, dp1, dp2, dq1, dq2, ratio, ratio_by_a;
};
Value fraction(const Array& a, const Array& x, const Array& on, double eps) {
  Array one = ones_like(x), zero = zeros_like(x);
  Array b = x + 1.0 - a;
  b = where(on, b, one);
  // Convergent 0: 1 / b_0; before it 0 / 1.
  FractionState s{on, zero, one, zero, b, one, zero, zero, -one, zero, one / b, one / square(b)};
  s = while_loop([](const FractionState& c) { return any(c.on); },
                 [&](const FractionState& c) {
                   Array k = c.k + 1.0;
                   Array bk = x + 2.0 * k + 1.0 - a, ck = k * (k - a);
                   Array p = bk * c.p1 - ck * c.p2, q = bk * c.q1 - ck * c.q2;
                   Array dp = bk * c.dp1 - c.p1 - ck * c.dp2 + k * c.p2;
                   Array dq = bk * c.dq1 - c.q1 - ck * c.dq2 + k * c.q2;
                   Array fine = q != 0.0, safe = where(fine, q, 1.0);
                   Array ratio = where(fine, p / safe, c.ratio);
                   Array by_a = where(fine, (dp - ratio * dq) / safe, c.ratio_by_a);
                   Array moved = abs(ratio - c.ratio) > eps * abs(ratio);
                   Array moved_by_a = abs(by_a - c.ratio_by_a) > eps * maximum(abs(by_a), eps);
                   Array more = logical_not(fine) | moved | moved_by_a;
                   // Both sequences grow; a common factor does not change the ratio.
                   Array scale = where(abs(p) > 1.0 / eps, full_like(p, eps), one);
                   auto keep = [&](const Array& next, const Array& last) {
                     return where(c.on, next, last);
                   };
                   return FractionState{c.on & more & (k < 2000.0), k,
                                        keep(p * scale, c.p1),      keep(c.p1 * scale, c.p2),
                                        keep(q * scale, c.q1),      keep(c.q1 * scale, c.q2),
                                        keep(dp * scale, c.dp1),    keep(c.dp1 * scale, c.dp2),
                                        keep(dq * scale, c.dq1),    keep(c.dq1 * scale, c.dq2),
                                        keep(ratio, c.ratio),       keep(by_a, c.ratio_by_a)};
                 },
                 s);
  return {s.ratio, s.ratio_by_a};
}

// Everything that the functions are made of.
struct Parts {
  Array a, x;
  Array bad;       // outside of the domain
  Array infinite;  // x = ∞
  Array by_fraction;
  Array e;           // x^a e^-x / Γ(a), 0 where it underflows
  Array log_e_by_a;  // d log e / da
  Value s, c;
};

// The quotients that only samples need exist where e underflows, too.
Parts parts(const Array& a, const Array& x, bool everywhere = false) {
  double eps = finfo(a.dtype()).eps;
  Parts p;
  p.a = a;
  p.x = x;
  p.bad = isnan(a) | isnan(x) | (x < 0.0) | (a < 0.0) | ((a == 0.0) & (x == 0.0));
  p.infinite = x == std::numeric_limits<double>::infinity();
  p.by_fraction = (x > 1.0) & (x > a);
  Array fine = logical_not(p.bad | p.infinite) & (a > 0.0) & (x > 0.0);
  Array sa = where(fine, a, ones_like(a)), sx = where(fine, x, ones_like(x));
  Array log_e = sa * log(sx) - sx - gammaln(sa);
  Array large = log_e > -std::log(finfo(a.dtype()).max);
  p.e = where(fine & large, exp(log_e), zeros_like(a));
  p.log_e_by_a = log(sx) - digamma(sa);
  Array on = everywhere ? fine : fine & large;
  p.s = series(sa, sx, on & logical_not(p.by_fraction), eps);
  p.c = fraction(sa, sx, on & p.by_fraction, eps);
  return p;
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Array lower(const Array& a, const Array& x) {
  Parts p = parts(a, x);
  Array y = where(p.by_fraction, 1.0 - p.e * p.c.value, p.e * p.s.value);
  y = where((x == 0.0), zeros_like(y), where(p.infinite | (a == 0.0), ones_like(y), y));
  return where(p.bad, full_like(y, kNan), y);
}

Array upper(const Array& a, const Array& x) {
  Parts p = parts(a, x);
  Array y = where(p.by_fraction, p.e * p.c.value, 1.0 - p.e * p.s.value);
  y = where((x == 0.0), ones_like(y), where(p.infinite | (a == 0.0), zeros_like(y), y));
  return where(p.bad, full_like(y, kNan), y);
}

Array lower_by_a(const Array& a, const Array& x) {
  Parts p = parts(a, x);
  Array s = p.e * (p.log_e_by_a * p.s.value + p.s.by_a);
  Array c = negative(p.e * (p.log_e_by_a * p.c.value + p.c.by_a));
  Array y = where(x == 0.0, zeros_like(s), where(p.by_fraction, c, s));
  return where(p.bad | p.infinite | (a <= 0.0), full_like(y, kNan), y);
}

// dx/da = -(∂P/∂a) / (∂P/∂x), and ∂P/∂x = e / x.
Array sample_by_a(const Array& a, const Array& x) {
  Parts p = parts(a, x, true);
  Array s = negative(p.log_e_by_a * p.s.value + p.s.by_a) * x;
  Array c = (p.log_e_by_a * p.c.value + p.c.by_a) * x;
  Array y = where(x == 0.0, zeros_like(s), where(p.by_fraction, c, s));
  return where(p.bad | p.infinite | (a <= 0.0), full_like(y, kNan), y);
}

std::pair<Array, Array> common(const char* what, const ArrayArg& a, const ArrayArg& x) {
  WeakDType t = to_inexact(
      promote_types(internal::weak_dtype(a.array), internal::weak_dtype(x.array), a.where));
  Dims shapes[2] = {a.array.shape(), x.array.shape()};
  Dims shape = internal::broadcast_shapes(shapes, what, a.where);
  auto one = [&](const Array& v) {
    return internal::broadcast(internal::with_dtype(v, t, a.where), shape, a.where);
  };
  return {one(a.array), one(x.array)};
}

// Half types compute in f32.
template <class F>
Array wide(F f, const Array& a, const Array& x) {
  if (dtype_bits(a.dtype()) >= 32) return f(a, x);
  return f(a.astype(DType::kF32), x.astype(DType::kF32)).astype(a.dtype());
}

Array density(const Array& a, const Array& x) {
  return exp(negative(x) + (a - 1.0) * log(x) - gammaln(a));
}

using Pair = std::tuple<Array, Array>;

Array differentiable(const char* what, const ArrayArg& a, const ArrayArg& x, double sign,
                     Array (*value)(const Array&, const Array&)) {
  internal::CallSite site(a.where);
  auto [p, q] = common(what, a, x);
  auto primal = [value](const Array& u, const Array& v) { return wide(value, u, v); };
  auto rule = [=](const Pair& at, const Pair& by) {
    const auto& [u, v] = at;
    Array da = std::get<0>(by) * wide(lower_by_a, u, v);
    Array dx = std::get<1>(by) * density(u, v);
    return std::pair{primal(u, v), sign * (da + dx)};
  };
  return custom_jvp(primal, rule)(p, q);
}

}  // namespace

Array gammainc(const ArrayArg& a, const ArrayArg& x) {
  return differentiable("gammainc", a, x, 1, lower);
}
Array gammaincc(const ArrayArg& a, const ArrayArg& x) {
  return differentiable("gammaincc", a, x, -1, upper);
}

}  // namespace xylem::special

namespace xylem::lax {

Array igamma(const ArrayArg& a, const ArrayArg& x) { return special::gammainc(a, x); }
Array igammac(const ArrayArg& a, const ArrayArg& x) { return special::gammaincc(a, x); }
Array igamma_grad_a(const ArrayArg& a, const ArrayArg& x) {
  internal::CallSite site(a.where);
  auto [p, q] = special::common("igamma_grad_a", a, x);
  return special::wide(special::lower_by_a, p, q);
}
Array random_gamma_grad(const ArrayArg& a, const ArrayArg& x) {
  internal::CallSite site(a.where);
  auto [p, q] = special::common("random_gamma_grad", a, x);
  return special::wide(special::sample_by_a, p, q);
}

}  // namespace xylem::lax
