// Linear algebra against JAX (tests/goldens/core_matrices.json): values, derivatives of first and
// second order and maps, in f64 and c128. A and what is made of it as in make_core_matrices.py.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "xylem/base/error.h"
#include "xylem/base/testing/golden.h"
#include "xylem/core/core.h"

namespace xylem {
namespace {

using testing::Golden;
namespace ll = lax::linalg;
using std::pair;
using std::tuple;
constexpr double kInf = std::numeric_limits<double>::infinity();

Array M(const Dims& shape, int k = 0) {
  std::vector<double> v(static_cast<std::size_t>(num_elements(shape)));
  for (std::size_t i = 0; i < v.size(); ++i) {
    const auto n = static_cast<int>(i);
    v[i] = static_cast<double>((n * n * 5 + n * 7 + k) % 31 - 15) / 8;
  }
  return Array(std::span<const double>(v), shape);
}

void append(std::vector<Array>& out, const Array& x) {
  if (!x.defined()) return;
  Array flat = reshape(x, {x.size()});
  if (is_complex(x.dtype())) {
    out.push_back(real(flat).astype(DType::kF64));
    out.push_back(imag(flat).astype(DType::kF64));
  } else {
    out.push_back(flat.astype(DType::kF64));
  }
}
template <class... T>
Array flat(const T&... xs) {
  std::vector<Array> parts;
  auto one = [&](const auto& x) {
    for (const Array& a : tree::leaves<Array>(x)) append(parts, a);
  };
  (one(xs), ...);
  return concatenate(parts);
}
template <class... T>
Array loss(const T&... xs) {
  Array v = flat(xs...);
  return sum(sin(v) * M({v.size()}, 4));
}
Array squared(const Array& x) { return real(x * conj(x)); }

template <class F>
Array grad1(F f, const Array& a) {
  return flat(grad([&](const Array& x) { return loss(f(x)); })(a));
}
template <class F>
Array grad2(F f, const Array& a, const Array& b) {
  return flat(
      grad([&](const Array& x, const Array& y) { return loss(f(x, y)); }, argnums<0, 1>)(a, b));
}
template <class F>
Array twice(F f, const Array& a) {
  return flat(grad([&](const Array& b) {
    return sum(squared(grad([&](const Array& c) { return loss(f(c)); })(b)));
  })(a));
}

// The matrices of one dtype.
struct Inputs {
  bool complex = false;

  Array A(const Dims& shape, int k = 0) const {
    if (!complex) return M(shape, k);
    return M(shape, k) + std::complex<double>(0, 1) * M(shape, k + 9);
  }
  DType dtype() const { return complex ? DType::kC128 : DType::kF64; }
  static Array H(const Array& x) { return conj(matrix_transpose(x)); }
  Array one(std::int64_t n) const { return eye(n, -1, 0, dtype()); }
  Array h(std::int64_t n, int k = 0) const {
    Array a = A({n, n}, k), d = 3.0 * diag(arange(n).astype(DType::kF64));
    return (a + H(a)) / 2.0 + d;
  }
  Array s(std::int64_t n, int k = 0) const { return A({n, n}, k) + 3.0 * one(n); }
  Array tall() const { return A({5, 3}); }
  Array wide() const { return A({3, 5}, 2); }
  Array p4() const { return matmul(A({4, 4}), H(A({4, 4}))) + one(4); }
  Array low() const { return matmul(tall(), wide()); }
};

tuple<Array, Array> eigh(const Array& x) {
  auto [w, v] = linalg::eigh(x);
  return {w, squared(v)};
}
tuple<Array, Array, Array, Array> svd(const Array& x) {
  auto [u, s, vh] = linalg::svd(x, {.full_matrices = false});
  return {s, squared(u), squared(vh), matmul(u, vh)};
}
std::vector<Array> sums(const Array& w) { return {sum(w), sum(w * w), sum(w * w * w)}; }
tuple<std::vector<Array>, Array, Array> eig(const Array& x) {
  auto [w, vl, vr] = ll::eig(x, {.enable_eigvec_derivs = true});
  return {sums(w), sum(squared(vl) * squared(w), -1), sum(squared(vr) * squared(w), -1)};
}
Array eigvalsh(const Array& x) { return linalg::eigvalsh(x); }
Array svdvals(const Array& x) { return linalg::svdvals(x); }
linalg::QrResult qr(const Array& x) { return linalg::qr(x); }
Array solve(const Array& a, const Array& b) { return linalg::solve(a, b); }
Array inv(const Array& x) { return linalg::inv(x); }
Array det(const Array& x) { return linalg::det(x); }
Array lu_of(const Array& x) { return ll::lu(x).lu; }
Array expm(const Array& x) { return linalg::expm(x); }
Array lu_solve(const Array& a, const Array& b, int k) {
  return linalg::lu_solve(linalg::lu_factor(a), b, k);
}

using Program = std::function<Array(const Inputs&)>;

#define P(name, ...)                                                              \
  {                                                                               \
    name, [](const Inputs& in) {                                                  \
      auto A = [&](const Dims& d, int k = 0) { return in.A(d, k); };              \
      const Array tall = in.tall(), wide = in.wide(), s4 = in.s(4), h4 = in.h(4); \
      (void)A, (void)tall, (void)wide, (void)s4, (void)h4;                        \
      __VA_ARGS__                                                                 \
    }                                                                             \
  }

const std::map<std::string, Program>& programs() {
  static const std::map<std::string, Program> all = {
    P("qr", return flat(qr(tall), qr(wide), linalg::qr(tall, "complete"), qr(A({2, 4, 3})));),
    P("qr r raw", return flat(linalg::qr(tall, "r"), linalg::qr(wide, "raw"));),
    P("qr pivoting", return flat(linalg::qr_pivoting(tall, false), linalg::qr_pivoting(wide));),
    P("lu", return flat(ll::lu(tall), ll::lu(wide), ll::lu(A({2, 3, 3})), linalg::lu(tall),
                        linalg::lu(wide, true));),
    P("svd", auto [u, s, vh] = linalg::svd(s4);
      return flat(svd(tall), svd(wide), svd(A({2, 3, 3})), svdvals(wide), squared(u), squared(s),
                  squared(vh));),
    P("svd hermitian", auto [u, s, vh] = linalg::svd(h4, {.hermitian = true});
      return flat(s, squared(u), matmul(u * s, vh));),
    P("eigh", return flat(eigh(h4), eigh(in.h(3, 5)),
                          linalg::eigvalsh(s4, {.uplo = 'U', .symmetrize_input = false}));),
    P("eig", return flat(eig(s4), sums(linalg::eigvals(A({3, 3}, 1))));),
    P("solve", return flat(solve(s4, A({4}, 3)), solve(s4, A({4, 2}, 3)),
                           solve(A({2, 3, 3}), A({3, 2})), solve(s4, A({2, 4, 2})),
                           linalg::solve(in.p4(), A({4}, 1), {.assume_a = "pos"}));),
    P("inv", return flat(inv(s4), inv(A({2, 3, 3})), linalg::matrix_power(s4, -2),
                         linalg::matrix_power(s4, 5));),
    P("det",
      return flat(det(s4), det(A({2, 2})), det(A({2, 3, 3})), det(A({1, 1}, 3)),
                  linalg::slogdet(s4), linalg::slogdet(A({2, 2})), linalg::slogdet(A({2, 5, 5})),
                  linalg::slogdet(ones({3, 3}, DType::kF64)));),
    P("pinv",
      return flat(linalg::pinv(tall), linalg::pinv(wide), linalg::pinv(h4, {.hermitian = true}),
                  linalg::pinv(in.low(), {.rtol = 1e-3}));),
    P("lstsq", return flat(linalg::lstsq(tall, A({5}, 1)), linalg::lstsq(wide, A({3, 2})),
                           linalg::lstsq(in.low(), A({5, 2})));),
    P("norms", std::vector<Array> r{linalg::norm(tall)};
      for (linalg::Order o
           : {linalg::Order("fro"), linalg::Order("nuc"), linalg::Order(1), linalg::Order(-1),
              linalg::Order(2), linalg::Order(-2), linalg::Order(kInf), linalg::Order(-kInf)})
          r.push_back(linalg::norm(tall, o));
      for (linalg::Order o
           : {linalg::Order("nuc"), linalg::Order(1), linalg::Order(2)})
          r.push_back(linalg::norm(A({2, 3, 4}), o, pair{2, 0}, true));
      r.push_back(linalg::norm(A({7}))); for (double o
                                              : {0.0, 1.0, 2.0, 3.0, 0.5, kInf, -kInf})
                                             r.push_back(linalg::norm(A({7}), linalg::Order(o)));
      r.push_back(linalg::cond(s4));
      for (linalg::Order o
           : {linalg::Order(2), linalg::Order(-2), linalg::Order(1), linalg::Order(-1),
              linalg::Order(kInf), linalg::Order("fro"), linalg::Order("nuc")})
          r.push_back(linalg::cond(s4, o));
      r.push_back(linalg::matrix_norm(A({2, 3, 4}), 2)); return flat(r);),
    P("rank", return flat(linalg::matrix_rank(in.low()), linalg::matrix_rank(s4, {.rtol = 3.0}),
                          linalg::matrix_rank(h4, {.hermitian = true}), linalg::matrix_rank(A({4})),
                          linalg::matrix_rank(zeros({2, 3, 4})));),
    P("tensors", Array six = reshape(in.one(6), {2, 3, 6});
      Array factors[3] = {A({2, 5}), tall, A({3})}; return flat(
          linalg::tensorinv(A({4, 6, 8, 3}), 2)(idx::slice(0, 2), idx::slice(0, 1)),
          linalg::tensorsolve(A({2, 3, 6}) + six, A({2, 3})),
          linalg::tensorsolve(A({2, 6, 3}) + 1.0, A({2, 3}), {1}), linalg::multi_dot(factors));),
    P("expm", return flat(expm(A({3, 3}) / 32.0), expm(A({3, 3}) / 4.0), expm(A({2, 3, 3})),
                          linalg::expm(triu(s4), {.upper_triangular = true}),
                          linalg::expm_frechet(A({3, 3}) / 4.0, A({3, 3}, 1)));),
    P("sqrtm", return flat(linalg::sqrtm(in.p4()), linalg::sqrtm(s4));),
    P("cho", return flat(linalg::cho_solve(linalg::cho_factor(in.p4()), A({4})),
                         linalg::cho_solve(linalg::cho_factor(in.p4(), true), A({4, 2})),
                         tril(linalg::cho_factor(in.p4(), true).c));),
    P("lu_solve", return flat(lu_solve(s4, A({4, 2}), 0), lu_solve(s4, A({4, 2}), 1),
                              lu_solve(s4, A({4, 2}), 2), lu_solve(s4, A({4}), 0));),
    P("householder", auto [a, taus] = ll::geqrf(tall);
      std::vector<Array> r{ll::householder_product(a, taus)};
      for (bool left
           : {true, false}) for (bool transpose
                                 : {true, false})
          r.push_back(ll::ormqr(a, taus, left ? A({5, 2}) : A({2, 5}), left, transpose));
      return flat(r);),
    P("qr_multiply", return flat(linalg::qr_multiply(tall, A({2, 5})),
                                 linalg::qr_multiply(tall, A({3, 2}), "left"),
                                 linalg::qr_multiply(wide, A({3}), "right", true));),
    P("schur", auto [f, z] = linalg::schur(h4);
      return flat(matmul(f, f), matmul(matmul(z, f), Inputs::H(z)));),
    P("hessenberg", return flat(linalg::hessenberg(s4), linalg::hessenberg(A({1, 1})));),
    P("tridiagonal", return flat(ll::tridiagonal(h4), ll::tridiagonal(h4, false));),
    P("tridiagonal_solve", return flat(ll::tridiagonal_solve(A({2, 5}), A({2, 5}, 1) + 4.0,
                                                             A({2, 5}, 2), A({2, 5, 3})));),
    P("polar", return flat(linalg::polar(tall), linalg::polar(s4, "left"));),
    P("matrices", return flat(linalg::block_diag({tall, A({2}), A({1, 2})}),
                              linalg::toeplitz(A({3}), A({4}, 1)), linalg::toeplitz(A({3})),
                              linalg::hankel(A({3}), A({2})), linalg::hankel(A({3})),
                              linalg::circulant(A({4})), linalg::companion(A({4}) + 2.0));),
    P("sylvester", return flat(linalg::solve_sylvester(in.s(3), in.s(2, 1), A({3, 2})));),
    P("qr grad", return flat(grad1(qr, tall), grad1(qr, wide),
                             grad1([](const Array& x) { return linalg::qr(x, "complete"); }, tall),
                             grad1(qr, s4),
                             grad1(
                                 [](const Array& x) {
                                   auto [q, r, p] = linalg::qr_pivoting(x);
                                   return tuple{q, r};
                                 },
                                 s4));),
    P("lu grad", return flat(grad1(lu_of, tall), grad1(lu_of, wide), grad1(lu_of, s4));),
    P("eigh grad", return flat(grad1(eigh, h4), grad1(eigvalsh, h4), grad1(eigvalsh, in.one(3)));),
    P("svd grad", return flat(grad1(svd, tall), grad1(svd, wide), grad1(svd, s4),
                              grad1(svdvals, wide), grad1(svdvals, in.one(3)));),
    P("eig grad", return flat(grad1([](const Array& x) { return sums(linalg::eigvals(x)); }, s4),
                              grad1(eig, s4));),
    P("solve grad",
      return flat(grad2(solve, s4, A({4, 2})), grad2(solve, s4, A({4})),
                  grad2([](const Array& a,
                           const Array& b) { return linalg::solve(a, b, {.assume_a = "pos"}); },
                        in.p4(), A({4})),
                  grad1(inv, s4));),
    P(
        "det grad", auto slogdet = [](const Array& x) { return linalg::slogdet(x); }; return flat(
            grad1(det, s4), grad1(det, A({2, 2})), grad1(det, A({3, 3})), grad1(det, A({1, 1})),
            grad1(det, diag(array({0, 2, 3, 1}, DType::kF64)).astype(in.dtype())),
            grad1(slogdet, s4), grad1(slogdet, A({2, 2})), grad1(slogdet, A({1, 1}) + 1.0));),
    P(
        "pinv grad", auto pinv = [](const Array& x) { return linalg::pinv(x); };
        return flat(grad1(pinv, tall), grad1(pinv, wide),
                    grad1([](const Array& x) { return linalg::pinv(x, {.hermitian = true}); }, h4),
                    grad2([](const Array& a, const Array& b) { return linalg::lstsq(a, b).x; },
                          tall, A({5})));),
    P("norm grad", std::vector<Array> r;
      for (linalg::Order o
           : {linalg::Order("fro"), linalg::Order("nuc"), linalg::Order(2), linalg::Order(-2),
              linalg::Order(1), linalg::Order(kInf)})
          r.push_back(grad1([o](const Array& x) { return linalg::norm(x, o); }, tall));
      r.push_back(grad1([](const Array& x) { return linalg::cond(x); }, s4)); return flat(r);),
    P("expm grad", return flat(grad1(expm, A({3, 3}) / 4.0), grad1(expm, A({2, 3, 3}) / 2.0));),
    P(
        "tridiagonal_solve grad",
        auto f = [](const Array& dl, const Array& d, const Array& du,
                    const Array& b) { return loss(ll::tridiagonal_solve(dl, d, du, b)); };
        return flat(grad(f, argnums<0, 1, 2, 3>)(A({2, 5}), A({2, 5}, 1) + 4.0, A({2, 5}, 2),
                                                 A({2, 5, 3})));),
    P("lu_solve grad", std::vector<Array> r; for (int k = 0; k < 3; ++k) r.push_back(
        grad2([k](const Array& a, const Array& b) { return lu_solve(a, b, k); }, s4, A({4})));
      return flat(r);),
    P("second qr", return twice(qr, in.s(3));),
    P("second eigh", return twice(eigh, in.h(3));),
    P("second svd", return twice(svd, A({4, 3}));),
    P("second inv", return twice(inv, in.p4());),
    P(
        "second det", auto logabsdet = [](const Array& x) { return linalg::slogdet(x).logabsdet; };
        return flat(twice(det, s4), twice(logabsdet, s4));),
    P("second lu", return twice(lu_of, in.s(3));),
    P("second pinv", return twice([](const Array& x) { return linalg::pinv(x); }, tall);),
    P("mapped",
      return flat(vmap(eigh)(stack({h4, 2.0 * h4})),
                  vmap(solve, {.in_axes = {no_axis, 2}})(s4, A({4, 2, 3})),
                  vmap([](const Array& x) { return grad1(svd, x); }, {.in_axes = 1})(A({4, 2, 3})),
                  vmap(det)(A({3, 4, 4})), vmap(vmap(qr))(A({2, 2, 3, 2})));),
  };
  return all;
}
#undef P

// JAX's tolerance of linear algebra, relative to the largest entry. Second derivatives lose more.
void compare(const std::string& name, const Array& got, const HostArray& want, double tolerance) {
  SCOPED_TRACE(name);
  ASSERT_EQ(shape_string(got.dtype(), got.shape()), want.type_string());
  HostArray h = got.to_host();
  double largest = 1;
  for (std::int64_t i = 0; i < want.size(); ++i)
    if (std::isfinite(want.at(i))) largest = std::max(largest, std::abs(want.at(i)));
  int wrong = 0;
  for (std::int64_t i = 0; i < want.size() && wrong < 5; ++i) {
    const double a = h.at(i), b = want.at(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (std::abs(a - b) <= tolerance * largest) continue;
    ++wrong;
    ADD_FAILURE() << "element " << i << " of " << want.size() << ": " << a << ", JAX " << b;
  }
}

class MatricesTest : public ::testing::TestWithParam<std::string> {};

TEST_P(MatricesTest, AgreeWithJax) {
  static const Golden all = Golden::load("core_matrices.json")["results"];
  const std::string& name = GetParam();
  for (bool complex : {false, true}) {
    const std::string key = name + (complex ? " z" : " d");
    for (Numerics mode : {Numerics::jax, Numerics::safe}) {
      NumericsScope scope(mode);
      compare(key + (mode == Numerics::safe ? ", safe" : ", jax"),
              programs().at(name)(Inputs{complex}), all[key].array(),
              name.starts_with("second") ? 1e-9 : 1e-10);
    }
  }
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& [name, program] : programs()) out.push_back(name);
  return out;
}
INSTANTIATE_TEST_SUITE_P(Programs, MatricesTest, ::testing::ValuesIn(names()),
                         [](const auto& test) {
                           std::string s = test.param;
                           std::replace(s.begin(), s.end(), ' ', '_');
                           return s;
                         });

TEST(Matrices, TheirListIsJaxs) {
  const Golden all = Golden::load("core_matrices.json")["results"];
  EXPECT_EQ(all.size(), 2 * programs().size() + 5);
}

TEST(Matrices, EqualValuesGiveNaNUnderJaxAndFiniteGradientsElse) {
  const Golden recorded = Golden::load("core_matrices.json")["results"];
  auto vectors = [](const Array& x) { return linalg::eigh(x).eigenvectors; };
  auto left = [](const Array& x) { return linalg::svd(x).u; };
  auto thin = [](const Array& x) { return linalg::svd(x, {.full_matrices = false}).u; };
  Array one = eye(3, -1, 0, DType::kF64);
  Array low = zeros({3, 2}, DType::kF64).at(0, 0).set(1.0);
  {
    NumericsScope scope(Numerics::jax);
    compare("eigh", grad1(vectors, one), recorded["degenerate eigh"].array(), 0);
    compare("svd", grad1(left, one), recorded["degenerate svd"].array(), 0);
    compare("thin svd", grad1(thin, low), recorded["degenerate tall svd"].array(), 0);
  }
  for (const Array& g : {grad1(vectors, one), grad1(left, one), grad1(thin, low)})
    EXPECT_TRUE(static_cast<bool>(all(isfinite(g))));
}

TEST(Matrices, SpecialOnesAndVectorizedFunctionsAgreeWithJax) {
  const Golden all = Golden::load("core_matrices.json")["results"];
  compare("special",
          flat(linalg::hilbert(3), linalg::pascal(4), linalg::pascal(3, "lower"),
               linalg::pascal(3, "upper"), linalg::hadamard(4), linalg::dft(3), linalg::dft(4, "n"),
               linalg::dft(4, "sqrtn")),
          all["special"].array(), 3e-6);  // f32
  auto dot_of = vectorize([](const Array& a, const Array& b) { return dot(a, b); }, "(n),(n)->()");
  auto solve_of = vectorize(solve, "(n,n),(n)->(n)");
  auto both = vectorize(
      [](const Array& a) {
        return pair{sum(a), matmul(a, matrix_transpose(a))};
      },
      "(n,m)->(),(n,n)");
  auto scalars = vectorize([](const Array& a, const Array& b) { return a * b + 1.0; });
  compare("vectorize",
          flat(dot_of(M({2, 1, 3}), M({4, 3})), solve_of(M({2, 3, 3}), M({3})),
               scalars(M({2, 1}), M({3})), both(M({2, 3, 2, 2}))),
          all["vectorize"].array(), 1e-12);
}

}  // namespace
}  // namespace xylem
