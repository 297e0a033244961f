#include <fmt/format.h>

#include <cmath>
#include <complex>
#include <limits>

#include "xylem/core/control_flow.h"
#include "xylem/core/lax.h"
#include "xylem/core/lax_linalg.h"
#include "xylem/core/linalg/internal/util.h"
#include "xylem/core/special.h"
#include "xylem/core/transforms.h"
#include "xylem/core/vectorize.h"

namespace xylem::linalg {

using detail::adjoint;
using detail::column;
using detail::factorable;
using detail::row;
using detail::wrong;
using internal::CallSite;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// The Padé approximant of degree b.size() - 1 of exp: odd part u, even part v, so that
// exp(a) = (v - u)⁻¹ (v + u). N. J. Higham, The Scaling and Squaring Method for the Matrix
// Exponential Revisited, SIAM Journal on Matrix Analysis 26 (2005).
std::vector<Array> pade(const Array& a, std::span<const double> b) {
  Array one = eye(a.dim(-1), -1, 0, a.dtype()), a2 = matmul(a, a);
  if (b.size() == 14) {
    Array a4 = matmul(a2, a2), a6 = matmul(a4, a2);
    Array u = matmul(a, matmul(a6, b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 +
                            b[3] * a2 + b[1] * one);
    Array v = matmul(a6, b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 +
              b[0] * one;
    return {u, v};
  }
  Array odd = b[1] * one + b[3] * a2, even = b[0] * one + b[2] * a2, power = a2;
  for (std::size_t i = 4; i + 1 < b.size(); i += 2) {
    power = matmul(power, a2);
    odd = odd + b[i + 1] * power;
    even = even + b[i] * power;
  }
  return {matmul(a, odd), even};
}

constexpr double kPade3[] = {120, 60, 12, 1};
constexpr double kPade5[] = {30240, 15120, 3360, 420, 30, 1};
constexpr double kPade7[] = {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1};
constexpr double kPade9[] = {17643225600, 8821612800, 2075673600, 302702400, 30270240,
                             2162160,     110880,     3960,       90,        1};
constexpr double kPade13[] = {64764752532480000.,
                              32382376266240000.,
                              7771770303897600.,
                              1187353796428800.,
                              129060195264000.,
                              10559470521600.,
                              670442572800.,
                              33522128640.,
                              1323241920.,
                              40840800.,
                              960960.,
                              16380.,
                              182.,
                              1.};

// Of one matrix.
Array expm_one(const Array& x, const ExpmOptions& o) {
  const bool wide = real_dtype(x.dtype()) == DType::kF64;
  const double most = wide ? 5.371920351148152 : 3.925724783138660;
  Array size = matrix_norm(x, 1);
  Array squarings = maximum(0.0, floor(log2(size / most)));
  Array a = x / power(2.0, squarings).astype(x.dtype());
  const std::vector<std::span<const double>> degrees =
      wide ? std::vector<std::span<const double>>{kPade3, kPade5, kPade7, kPade9, kPade13}
           : std::vector<std::span<const double>>{kPade3, kPade5, kPade7};
  const std::vector<double> bounds =
      wide ? std::vector<double>{1.495585217958292e-2, 2.539398330063230e-1, 9.504178996162932e-1,
                                 2.097847961257068}
           : std::vector<double>{4.258730016922831e-1, 1.880152677804762};
  // How many bounds the norm reaches; NaN takes the last degree.
  Array index = zeros({}, DType::kI32);
  for (double bound : bounds) index = index + logical_not(size < bound).astype(DType::kI32);
  struct Branch {
    std::span<const double> b;
    std::vector<Array> operator()(const Array& m) const { return pade(m, b); }
  };
  std::vector<Branch> branches;
  for (std::span<const double> b : degrees) branches.push_back({b});
  std::vector<Array> uv = switch_(index, branches, a);
  Array p = uv[1] + uv[0], q = uv[1] - uv[0];
  Array r = o.upper_triangular ? solve_triangular(q, p) : solve(q, p);
  r = scan(
          [&](const Array& c, const Array& i) {
            Array next = xylem::cond(
                i < squarings, [](const Array& m) { return matmul(m, m); },
                [](const Array& m) { return m; }, c);
            return std::pair{next, zeros({0})};
          },
          r, arange(o.max_squarings).astype(squarings.dtype()))
          .first;
  return where(squarings > static_cast<double>(o.max_squarings), full_like(r, kNaN), r);
}

// The root of an upper triangular matrix, column by column: (T - Σ U U) / (u_ii + u_jj).
Array sqrtm_upper(const Array& t) {
  const std::int64_t n = t.dim(-1);
  Array roots = sqrt(linalg::diagonal(t));
  Array places = arange(n);
  // Element (i, j) from those below it in column j and to its left in row i.
  return fori_loop(
      0, n,
      [&](const Array& j, const Array& done) {
        return fori_loop(
            0, n,
            [&](const Array& k, const Array& u) {
              Array i = j - 1 - k;
              Array line = lax::dynamic_index_in_dim(u, maximum(i, 0), 0, false);
              Array above = lax::dynamic_index_in_dim(u, j, 1, false);
              Array inner = logical_and(places > i, places < j);
              Array s = sum(where(inner, line * above, 0.0));
              Array target = lax::dynamic_index_in_dim(
                  lax::dynamic_index_in_dim(t, maximum(i, 0), 0, false), j, 0, false);
              Array ri = lax::dynamic_index_in_dim(roots, maximum(i, 0), 0, false);
              Array rj = lax::dynamic_index_in_dim(roots, j, 0, false);
              Array value = where(target == s, zeros_like(s), (target - s) / (ri + rj));
              Array here = logical_and(column(places) == i, row(places) == j);
              return where(here, value, u);
            },
            done);
      },
      diag(roots));
}

}  // namespace

Array expm(const ArrayArg& x, const ExpmOptions& o) {
  CallSite site(x.where);
  Array a = factorable("expm", x, true);
  if (a.dim(-1) == 0) return a;
  if (a.ndim() == 2) return expm_one(a, o);
  return vectorize([o](const Array& m) { return expm_one(m, o); }, "(n,n)->(n,n)")(a);
}

std::pair<Array, Array> expm_frechet(const ArrayArg& x, const ArrayArg& e) {
  CallSite site(x.where);
  auto [a, d] = detail::inexact(x, e);
  factorable("expm_frechet", ArrayArg(a, x.where), true);
  if (a.shape() != d.shape())
    wrong("expm_frechet", "x and e of one shape",
          fmt::format("{} and {}", a.type_string(), d.type_string()), "Broadcast e", x.where);
  return jvp([](const Array& m) { return expm(m); }, std::tuple{a}, std::tuple{d});
}

Array sqrtm(const ArrayArg& x) {
  CallSite site(x.where);
  SchurResult s = schur(x, "complex");
  auto root = [](const Array& t, const Array& z) {
    return matmul(matmul(z, sqrtm_upper(t)), adjoint(z));
  };
  if (s.t.dim(-1) == 0) return s.t;
  if (s.t.ndim() == 2) return root(s.t, s.z);
  return vectorize(root, "(n,n),(n,n)->(n,n)")(s.t, s.z);
}

// Special matrices -------------------------------------------------------------------------------

Array block_diag(std::span<const Array> xs, SourceLoc where) {
  CallSite site(where);
  if (xs.empty()) return zeros({1, 0});
  WeakDType t = internal::weak_dtype(xs[0]);
  std::int64_t columns = 0, at = 0;
  for (const Array& x : xs) {
    if (x.ndim() > 2)
      wrong("block_diag", "matrices, vectors and numbers", x.type_string(), "Map it with vmap",
            where);
    t = promote_types(t, internal::weak_dtype(x), where);
    columns += x.ndim() == 0 ? 1 : x.dim(-1);
  }
  std::vector<Array> rows;
  for (const Array& x : xs) {
    Array m = internal::with_dtype(x, {t.dtype, false}, where);
    while (m.ndim() < 2) m = expand_dims(m, 0);
    const std::int64_t n = m.dim(0), w = m.dim(1);
    rows.push_back(
        concatenate({zeros({n, at}, t.dtype), m, zeros({n, columns - at - w}, t.dtype)}, 1));
    at += w;
  }
  return concatenate(rows, 0);
}
Array block_diag(std::initializer_list<Array> xs, SourceLoc where) {
  return block_diag(std::span<const Array>(xs.begin(), xs.size()), where);
}

namespace {

Array at_least_vector(const char* what, const ArrayArg& x) {
  if (x.array.ndim() == 0) return reshape(x.array, {1});
  if (x.array.ndim() > 1)
    wrong(what, "a vector", x.array.type_string(), "Map it over further axes with vmap", x.where);
  return x.array;
}

// values[index(i, j)] for i < m, j < n.
Array by_index(const Array& values, const Array& index) {
  if (index.size() == 0) return zeros(index.shape(), values.dtype());
  return take(values, index, 0);
}

}  // namespace

Array toeplitz(const ArrayArg& c_arg, std::optional<Array> r_arg) {
  CallSite site(c_arg.where);
  Array c = at_least_vector("toeplitz", c_arg);
  Array r = r_arg ? at_least_vector("toeplitz", ArrayArg(*r_arg, c_arg.where)) : conj(c);
  const std::int64_t m = c.size(), n = r.size();
  Array values = m == 0 || n == 0 ? c : concatenate({flip(c), r(idx::slice(1, n))});
  return by_index(values, m - 1 - column(arange(m)) + row(arange(n)));
}

Array hankel(const ArrayArg& c_arg, std::optional<Array> r_arg) {
  CallSite site(c_arg.where);
  Array c = at_least_vector("hankel", c_arg);
  Array r = r_arg ? at_least_vector("hankel", ArrayArg(*r_arg, c_arg.where)) : zeros_like(c);
  const std::int64_t m = c.size(), n = r.size();
  Array values = m == 0 || n == 0 ? c : concatenate({c, r(idx::slice(1, n))});
  return by_index(values, column(arange(m)) + row(arange(n)));
}

Array circulant(const ArrayArg& c_arg) {
  CallSite site(c_arg.where);
  Array c = at_least_vector("circulant", c_arg);
  const std::int64_t n = c.size();
  if (n == 0) return zeros({0, 0}, c.dtype());
  return by_index(c, mod(column(arange(n)) - row(arange(n)), n));
}

Array companion(const ArrayArg& a_arg) {
  CallSite site(a_arg.where);
  Array a = at_least_vector("companion", ArrayArg(detail::inexact(a_arg), a_arg.where));
  const std::int64_t n = a.size() - 1;
  if (n < 1)
    wrong("companion", "at least two coefficients", a.type_string(),
          "Pass the coefficients of a polynomial of degree 1 or more", a_arg.where);
  Array first = -a(idx::slice(1, n + 1)) / a(0);
  return concatenate({row(first), eye(n - 1, n, 0, first.dtype())}, 0);
}

Array hilbert(std::int64_t n) {
  Array a = arange(n).astype(DType::kF32);
  return 1.0 / (column(a) + row(a) + 1.0);
}

Array pascal(std::int64_t n, std::string_view kind) {
  Array a = arange(n).astype(DType::kF32);
  Array i = column(a), j = row(a);
  Array lower =
      exp(special::gammaln(i + 1.0) - special::gammaln(i - j + 1.0) - special::gammaln(j + 1.0));
  if (kind == "lower") return lower;
  if (kind == "upper") return transpose(lower);
  if (kind != "symmetric")
    wrong("pascal: kind", "\"symmetric\", \"lower\" or \"upper\"", std::string(kind),
          "Leave it out", {});
  return matmul(lower, transpose(lower));
}

Array hadamard(std::int64_t n, DType dtype) {
  if (n < 1 || (n & (n - 1)) != 0)
    wrong("hadamard", "a power of 2", fmt::format("{}", n), "Round up and cut", {});
  Array h = ones({1, 1}, dtype);
  for (std::int64_t k = 1; k < n; k *= 2) h = block({{h, h}, {h, -h}});
  return h;
}

Array dft(std::int64_t n, std::string_view scale) {
  if (!scale.empty() && scale != "sqrtn" && scale != "n")
    wrong("dft: scale", "\"\", \"sqrtn\" or \"n\"", std::string(scale), "Leave it out", {});
  Array a = arange(n).astype(DType::kC64);
  Array m = exp(std::complex<double>(0, -2 * std::acos(-1.0)) * column(a) * row(a) /
                static_cast<double>(n));
  if (scale == "sqrtn") return m / std::sqrt(static_cast<double>(n));
  return scale == "n" ? m / static_cast<double>(n) : m;
}

}  // namespace xylem::linalg
