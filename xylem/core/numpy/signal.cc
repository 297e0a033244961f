#include "xylem/core/signal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "xylem/base/error.h"
#include "xylem/core/convolution.h"
#include "xylem/core/indexing.h"
#include "xylem/core/internal/trace.h"
#include "xylem/core/lax.h"
#include "xylem/core/linalg.h"
#include "xylem/core/numpy.h"
#include "xylem/core/numpy/ops.h"
#include "xylem/core/special.h"

namespace xylem {
namespace {

[[noreturn]] void fail(const char* what, std::string expected, std::string given,
                       const char* advice, SourceLoc where) {
  throw UserError(ErrorParts{what, expected, given, advice}, internal::CallSite::outermost(where));
}

// Both in the float or complex dtype of their join.
std::pair<Array, Array> inexact(const ArrayArg& x, const ArrayArg& y) {
  WeakDType t = to_inexact(
      promote_types(internal::weak_dtype(x.array), internal::weak_dtype(y.array), x.where));
  return {internal::with_dtype(x.array, t, x.where), internal::with_dtype(y.array, t, x.where)};
}
std::pair<Array, Array> joined(const ArrayArg& x, const ArrayArg& y) {
  WeakDType t =
      promote_types(internal::weak_dtype(x.array), internal::weak_dtype(y.array), x.where);
  return {internal::with_dtype(x.array, t, x.where), internal::with_dtype(y.array, t, x.where)};
}
Array inexact(const ArrayArg& x) {
  return internal::with_dtype(x.array, to_inexact(internal::weak_dtype(x.array)), x.where);
}

void check_vectors(const char* what, const Array& x, const Array& y, SourceLoc where) {
  if (x.ndim() != 1 || y.ndim() != 1 || x.size() == 0 || y.size() == 0)
    fail(what, "two vectors that are not empty", x.type_string() + " and " + y.type_string(),
         "Map over other axes with vmap", where);
}

// The longer one slides over the shorter one, which is not turned round.
Array slide(const char* what, const Array& x, const Array& y, std::string_view mode,
            SourceLoc where) {
  std::int64_t n = y.size();
  lax::Pads pads;
  if (mode == "valid")
    pads = {{0, 0}};
  else if (mode == "same")
    pads = {{n / 2, n - n / 2 - 1}};
  else if (mode == "full")
    pads = {{n - 1, n - 1}};
  else
    fail(what, "mode \"full\", \"same\" or \"valid\"", fmt::format("\"{}\"", mode),
         "Use one of these", where);
  Array r = lax::conv_general_dilated(x.reshape({1, 1, -1}), y.reshape({1, 1, -1}), {1}, pads);
  return r.reshape({-1});
}

}  // namespace

Array convolve(const ArrayArg& x, const ArrayArg& y, std::string_view mode) {
  internal::CallSite site(x.where);
  check_vectors("convolve", x.array, y.array, x.where);
  auto [a, b] = inexact(x, y);
  if (a.size() < b.size()) std::swap(a, b);
  return slide("convolve", a, flip(b), mode, x.where);
}

Array correlate(const ArrayArg& x, const ArrayArg& y, std::string_view mode) {
  internal::CallSite site(x.where);
  check_vectors("correlate", x.array, y.array, x.where);
  auto [a, b] = inexact(x, y);
  b = conj(b);
  if (a.size() >= b.size()) return slide("correlate", a, b, mode, x.where);
  return flip(slide("correlate", b, a, mode, x.where));
}

namespace {

Array points(std::int64_t m, const char* what) {
  if (m < 0) fail(what, "a number of points", fmt::format("{}", m), "Give m >= 0", {});
  return internal::iota(DType::kF32, {m}, 0);
}

Array cosine(const Array& n, std::int64_t m, double times) {
  return cos(times * M_PI * n / static_cast<int>(m - 1));
}

}  // namespace

Array bartlett(std::int64_t m) {
  Array n = points(m, "bartlett");
  if (m <= 1) return ones({m});
  return 1 - abs(2 * n + 1 - static_cast<int>(m)) / static_cast<int>(m - 1);
}
Array blackman(std::int64_t m) {
  Array n = points(m, "blackman");
  if (m <= 1) return ones({m});
  return 0.42 - 0.5 * cosine(n, m, 2) + 0.08 * cosine(n, m, 4);
}
Array hamming(std::int64_t m) {
  Array n = points(m, "hamming");
  return m <= 1 ? ones({m}) : 0.54 - 0.46 * cosine(n, m, 2);
}
Array hanning(std::int64_t m) {
  Array n = points(m, "hanning");
  return m <= 1 ? ones({m}) : 0.5 * (1 - cosine(n, m, 2));
}
Array kaiser(std::int64_t m, const ArrayArg& beta) {
  internal::CallSite site(beta.where);
  Array n = points(m, "kaiser");
  if (m <= 1) return ones({m});
  double half = 0.5 * static_cast<double>(m - 1);
  Array inside = maximum(1.0 - square((n - half) / half), 0.0);
  return special::i0(multiply(beta, sqrt(inside))) / special::i0(beta);
}

Array unwrap(const ArrayArg& x, std::optional<double> discont, int axis, double period) {
  internal::CallSite site(x.where);
  Array p = x.array;
  int n = p.ndim();
  auto ax = static_cast<int>(AxisArg(axis).resolve(n, "unwrap", x.where)[0]);
  bool whole = is_integer(p.dtype()) && period == std::floor(period);
  Array step = whole ? full({}, static_cast<int>(period)) : full({}, period);
  p = add(p, zeros_like(step));
  if (is_complex(p.dtype()))
    fail("unwrap", "real numbers", p.type_string(), "Take angle(x)", x.where);
  if (p.dim(ax) == 0) return p;
  Array interval = whole ? floor_divide(step, 2) : step / 2;
  Array d = diff(p, 1, ax);
  Array wrapped = mod(d + interval, step) - interval;
  wrapped = where((wrapped == -interval) & (d > 0), interval, wrapped);
  Array jumps = where(less(abs(d), discont.value_or(period / 2)), zeros_like(d), wrapped - d);
  Array rest = lax::slice_in_dim(p, 1, p.dim(ax), ax) + cumsum(jumps, ax);
  return concatenate({lax::slice_in_dim(p, 0, 1, ax), rest}, ax);
}

Array trim_zeros(const ArrayArg& x, std::string_view trim) {
  internal::CallSite site(x.where);
  if (x.array.ndim() != 1)
    fail("trim_zeros", "a vector", x.array.type_string(), "Index the array instead", x.where);
  std::vector<double> v = not_equal(x, 0).to_host(x.where).astype(DType::kF64).to_vector<double>();
  std::size_t from = 0, to = v.size();
  bool front = trim.find_first_of("fF") != std::string_view::npos;
  bool back = trim.find_first_of("bB") != std::string_view::npos;
  while (front && from < to && v[from] == 0) ++from;
  while (back && to > from && v[to - 1] == 0) --to;
  return lax::slice(x, {static_cast<std::int64_t>(from)}, {static_cast<std::int64_t>(to)});
}

// --- polynomials --------------------------------------------------------------------------------

namespace {

void check_coefficients(const char* what, const Array& p, SourceLoc where) {
  if (p.ndim() != 1)
    fail(what, "a vector of coefficients, highest power first", p.type_string(),
         "Map over other axes with vmap", where);
}

}  // namespace

Array polyadd(const ArrayArg& a, const ArrayArg& b) {
  internal::CallSite site(a.where);
  check_coefficients("polyadd", a.array, a.where);
  check_coefficients("polyadd", b.array, b.where);
  auto [x, y] = joined(a, b);
  if (x.size() < y.size()) std::swap(x, y);
  return x + pad(y, {{x.size() - y.size(), 0}});
}

Array polysub(const ArrayArg& a, const ArrayArg& b) { return polyadd(a, negative(b)); }

Array polymul(const ArrayArg& a, const ArrayArg& b) {
  internal::CallSite site(a.where);
  check_coefficients("polymul", a.array, a.where);
  check_coefficients("polymul", b.array, b.where);
  auto [x, y] = inexact(a, b);
  if (x.size() == 0) x = zeros({1}, y.dtype());
  if (y.size() == 0) y = zeros({1}, x.dtype());
  return convolve(x, y);
}

std::pair<Array, Array> polydiv(const ArrayArg& u, const ArrayArg& v) {
  internal::CallSite site(u.where);
  check_coefficients("polydiv", u.array, u.where);
  check_coefficients("polydiv", v.array, v.where);
  auto [rest, divisor] = inexact(u, v);
  if (divisor.size() == 0)
    fail("polydiv", "a divisor with coefficients", divisor.type_string(), "Give one", u.where);
  std::int64_t m = rest.size() - 1, n = divisor.size() - 1;
  Array scale = 1.0 / divisor[0];
  std::vector<Array> q;
  for (std::int64_t k = 0; k <= m - n; ++k) {
    Array d = scale * rest[k];
    q.push_back(d);
    rest = rest - pad(d * divisor, {{k, m - n - k}});
  }
  return {q.empty() ? zeros({1}, rest.dtype()) : stack(q), rest};
}

Array polyder(const ArrayArg& p, int m) {
  internal::CallSite site(p.where);
  check_coefficients("polyder", p.array, p.where);
  Array a = inexact(p);
  if (m < 0)
    fail("polyder", "an order of at least 0", fmt::format("{}", m), "Use polyint", p.where);
  if (m == 0) return a;
  std::int64_t n = a.size();
  std::vector<double> factor;
  for (std::int64_t k = n - 1; k >= m; --k) {
    double f = 1;
    for (int i = 0; i < m; ++i) f *= static_cast<double>(k - i);
    factor.push_back(f);
  }
  Array f(HostArray::from(factor, {static_cast<std::int64_t>(factor.size())}));
  return lax::slice_in_dim(a, 0, std::max<std::int64_t>(0, n - m), 0) * f.astype(a.dtype());
}

Array polyint(const ArrayArg& p, int m, const ArrayArg& k) {
  internal::CallSite site(p.where);
  check_coefficients("polyint", p.array, p.where);
  if (m < 0)
    fail("polyint", "an order of at least 0", fmt::format("{}", m), "Use polyder", p.where);
  auto [a, c] = inexact(p, k);
  if (c.ndim() == 0) c = c.reshape({1});
  if (c.size() == 1) c = broadcast_to(c.reshape({1}), {m});
  if (c.shape() != Dims{m})
    fail("polyint: k", fmt::format("one constant, or {}", m), c.type_string(),
         "Give one for each integration", p.where);
  if (m == 0) return a;
  std::vector<double> divisor;
  for (std::int64_t power = a.size() + m - 1; power >= 0; --power) {
    double f = 1;
    for (int i = 0; i < m; ++i) f *= static_cast<double>(std::max<std::int64_t>(1, power - i));
    divisor.push_back(f);
  }
  Array d(HostArray::from(divisor, {static_cast<std::int64_t>(divisor.size())}));
  return concatenate({a, c}) / d.astype(a.dtype());
}

Array poly(const ArrayArg& zeros_of) {
  internal::CallSite site(zeros_of.where);
  Array z = inexact(zeros_of);
  if (z.ndim() == 0) z = z.reshape({1});
  if (z.ndim() == 2 && z.dim(0) == z.dim(1) && z.size() > 0) z = linalg::eigvals(z);
  if (z.ndim() != 1)
    fail("poly", "a vector of zeros, or a square matrix", z.type_string(), "Reshape it",
         zeros_of.where);
  if (z.size() == 0) return ones({}, z.dtype());
  Array one = ones({}, z.dtype()), a = ones({1}, z.dtype());
  for (std::int64_t k = 0; k < z.size(); ++k) a = convolve(a, stack({one, -z[k]}));
  return a;
}

Array roots(const ArrayArg& p) {
  internal::CallSite site(p.where);
  Array a = trim_zeros(ArrayArg(inexact(p), p.where), "f");
  std::int64_t n = a.size();
  DType wide = a.dtype() == DType::kF64 || a.dtype() == DType::kC128 ? DType::kC128 : DType::kC64;
  if (n < 2) return zeros({0}, wide);
  Array top = -lax::slice_in_dim(a, 1, n, 0) / a[0];
  Array companion = concatenate({expand_dims(top, 0), eye(n - 2, n - 1, 0, a.dtype())});
  return linalg::eigvals(companion);
}

Array polyfit(const ArrayArg& x, const ArrayArg& y, int degree, const Array& w,
              std::optional<double> rcond) {
  internal::CallSite site(x.where);
  auto [at, values] = inexact(x, y);
  if (degree < 0 || at.ndim() != 1 || at.size() == 0 || values.ndim() < 1 || values.ndim() > 2 ||
      values.dim(0) != at.size() || (w.defined() && w.shape() != at.shape()))
    fail("polyfit", "a degree of at least 0, points [n], values [n] or [n, k], weights [n]",
         fmt::format("degree {}, {} and {}{}", degree, at.type_string(), values.type_string(),
                     w.defined() ? ", " + w.type_string() : std::string()),
         "Give as many values as points", x.where);
  double cut = rcond.value_or(static_cast<double>(at.size()) * finfo(at.dtype()).eps);
  Array lhs = vander(at, degree + 1), rhs = values;
  if (w.defined()) {
    Array column = expand_dims(w.astype(at.dtype()), 1);
    lhs = lhs * column;
    rhs = rhs * (rhs.ndim() == 2 ? column : squeeze(column, 1));
  }
  // Columns of one length condition the system better.
  Array scale = sqrt(sum(lhs * lhs, 0));
  Array c = linalg::lstsq(lhs / scale, rhs, {.rcond = cut}).x;
  return c.ndim() == 1 ? c / scale : c / expand_dims(scale, 1);
}

}  // namespace xylem
