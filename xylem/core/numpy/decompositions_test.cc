// Fourier transforms, triangular systems, special functions and samplers against JAX
// (tests/goldens/core_linalg.json).

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "xylem/base/error.h"
#include "xylem/base/testing/golden.h"
#include "xylem/core/core.h"

namespace xylem {
namespace {

using testing::Golden;
using Program = std::function<Array()>;

Array A(const Dims& shape, int k = 0) {
  std::vector<float> v(static_cast<std::size_t>(num_elements(shape)));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<float>((static_cast<int>(i) * 7 + k) % 11 - 5) / 4;
  return Array(std::span<const float>(v), shape);
}
Array C(const Dims& shape) { return A(shape) + std::complex<double>(0, 1) * A(shape, 3); }
Array S() {
  Array a = A({3, 3});
  return matmul(a, transpose(a)) + eye(3);
}
Array L() { return tril(A({3, 3})) + 3.0 * eye(3); }
random::Key key() { return random::key(42); }

#define P(name, ...)                 \
  {                                  \
    name, [] { return __VA_ARGS__; } \
  }
const std::map<std::string, Program>& programs() {
  using linalg::cholesky;
  using linalg::solve_triangular;
  static const std::map<std::string, Program> all = {
      P("fft", fft::fft(C({5}))),
      P("fft real", fft::fft(A({2, 4}))),
      P("fft n", fft::fft(C({2, 3}), 5)),
      P("fft cut axis 0", fft::fft(C({4, 2}), 3, 0)),
      P("ifft", fft::ifft(C({6}))),
      P("ifft ortho", fft::ifft(C({6}), std::nullopt, -1, "ortho")),
      P("fft forward", fft::fft(C({6}), std::nullopt, -1, "forward")),
      P("rfft", fft::rfft(A({7}))),
      P("rfft even", fft::rfft(A({2, 6}))),
      P("irfft", fft::irfft(C({4}))),
      P("irfft odd", fft::irfft(C({4}), 7)),
      P("fft2", fft::fft2(A({3, 4}))),
      P("ifftn", fft::ifftn(C({2, 3, 2}))),
      P("rfftn", fft::rfftn(A({2, 3, 4}))),
      P("irfft2", fft::irfft2(C({3, 3}))),
      P("fftfreq", fft::fftfreq(5, 0.5)),
      P("rfftfreq", fft::rfftfreq(6)),
      P("fftshift", fft::fftshift(A({5}))),
      P("ifftshift", fft::ifftshift(A({3, 4}), 1)),
      P("fft grad",
        grad([](const Array& x) { return sum(square(abs(fft::fft(x))) * A({5}, 2)); })(A({5}))),
      P("rfft grad",
        grad([](const Array& x) { return sum(square(abs(fft::rfft(x))) * A({4}, 2)); })(A({6}))),
      P("rfft odd grad",
        grad([](const Array& x) { return sum(real(fft::rfft(x)) * A({4}, 2)); })(A({7}))),
      P("irfft grad", grad([](const Array& x) {
          return sum(square(fft::irfft(x + std::complex<double>(0, 1) * x)) * A({6}, 2));
        })(A({4}))),
      P("cholesky", cholesky(S())),
      P("cholesky upper", cholesky(S(), true)),
      P("cholesky batch",
        vmap([](const Array& x) { return cholesky(x); })(stack({S(), S() * 2.0}))),
      P("cholesky grad", grad([](const Array& x) {
          return sum(cholesky(x) * A({3, 3}, 4));
        })(S())),
      P("cholesky hessian", grad([](const Array& x) {
          return sum(square(grad([](const Array& y) {
            return sum(cholesky(y) * A({3, 3}, 4));
          })(x)));
        })(S())),
      P("solve_triangular", solve_triangular(L(), A({3}), {.lower = true})),
      P("solve_triangular upper", solve_triangular(transpose(L()), A({3, 2}))),
      P("solve_triangular transposed",
        solve_triangular(L(), A({3, 2}), {.lower = true, .transpose = true})),
      P("solve_triangular unit",
        solve_triangular(L(), A({3, 2}), {.lower = true, .unit_diagonal = true})),
      P("solve_triangular grad a", grad([](const Array& a) {
          return sum(sin(solve_triangular(a, A({3, 2}), {.lower = true})));
        })(L())),
      P("solve_triangular grad b", grad([](const Array& b) {
          return sum(sin(solve_triangular(L(), b, {.lower = true, .transpose = true})));
        })(A({3, 2}))),
      P("cho_solve", linalg::cho_solve(cholesky(S()), true, A({3}))),
      P("gammaln", special::gammaln(A({11}) + 3.0)),
      P("gammaln grad",
        vmap(grad([](const Array& x) { return special::gammaln(x); }))(A({11}) + 3.0)),
      P("digamma", special::digamma(A({11}) + 3.0)),
      P("polygamma", special::polygamma(2, A({11}) + 3.0)),
      P("zeta", special::zeta(A({5}) + 4.0, 2.0)),
      P("i1e", special::i1e(A({11}))),
      P("betaln", special::betaln(A({5}) + 3.0, 2.0)),
      P("xlog1py", special::xlog1py(A({5}), A({5}, 2) + 2.0)),
      P("entr", special::entr(A({11}))),
      P("rel_entr", special::rel_entr(A({11}), A({11}, 4))),
      P("kl_div", special::kl_div(A({11}), A({11}, 4))),
      P("laplace", random::laplace(key(), {5})),
      P("logistic", random::logistic(key(), {5})),
      P("cauchy", random::cauchy(key(), {5})),
      P("rademacher", random::rademacher(key(), {8})),
      P("rayleigh", random::rayleigh(key(), 2.0, {5})),
      P("weibull_min", random::weibull_min(key(), 2.0, 1.5, {5})),
      P("pareto", random::pareto(key(), 3.0, {5})),
      P("lognormal", random::lognormal(key(), 0.5, {5})),
      P("multivariate_normal", random::multivariate_normal(key(), A({3}), S(), {2})),
      P("choice", random::choice(key(), 10, {5})),
      P("choice no replacement", random::choice(key(), 10, {4}, false)),
      P("choice of an array", random::choice(key(), A({6, 2}), {3}, false)),
      P("choice weights",
        random::choice(key(), 4, {6}, true, Array(std::vector<float>{.1f, .2f, .3f, .4f}))),
      P("choice weights no replacement",
        random::choice(key(), 4, {3}, false, Array(std::vector<float>{.1f, .2f, .3f, .4f}))),
  };
  return all;
}

TEST(Decompositions, EqualJax) {
  Golden all = Golden::load("core_linalg.json")["results"];
  EXPECT_EQ(all.size(), programs().size());
  for (const std::string& name : all.keys()) {
    SCOPED_TRACE(name);
    auto it = programs().find(name);
    ASSERT_NE(it, programs().end());
    Array got;
    try {
      got = it->second();
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
      continue;
    }
    HostArray want = all[name].array();
    EXPECT_EQ(shape_string(got.dtype(), got.shape()), want.type_string());
    if (got.dtype() != want.dtype() || got.shape() != want.dims()) continue;
    std::vector<Array> parts = {got};
    if (is_complex(got.dtype())) parts = {real(got), imag(got)};
    Array golden(want);
    std::vector<Array> wants = {golden};
    if (is_complex(got.dtype())) wants = {real(golden), imag(golden)};
    for (std::size_t p = 0; p < parts.size(); ++p) {
      HostArray h = parts[p].to_host(), w = wants[p].to_host();
      for (std::int64_t k = 0; k < w.size(); ++k) {
        double a = h.at(k), b = w.at(k);
        if (a == b || (std::isnan(a) && std::isnan(b))) continue;
        EXPECT_NEAR(a, b, is_inexact(want.dtype()) ? 2e-5 * std::max(1.0, std::abs(b)) : 0)
            << "element " << k;
      }
    }
  }
}

TEST(Lax, FunctionsOfOneAxisAgreeWithIndexing) {
  Array x = A({3, 4}), i(HostArray::scalar(1));
  auto same = [](const Array& a, const Array& b) {
    EXPECT_EQ(a.shape(), b.shape());
    EXPECT_EQ(a.to_vector<float>(), b.to_vector<float>());
  };
  same(lax::slice_in_dim(x, 1, 4, 1, 2), x(idx::all, idx::slice(1, 4, 2)));
  same(lax::slice_in_dim(x, -3, -1, 1), x(idx::all, idx::slice(-3, -1)));
  same(lax::index_in_dim(x, -1, 1, false), x(idx::all, -1));
  same(lax::dynamic_slice_in_dim(x, i, 2, 1), x(idx::all, idx::slice(1, 3)));
  same(lax::dynamic_slice_in_dim(x, 3, 2, 1), x(idx::all, idx::slice(2, 4)));
  same(lax::dynamic_index_in_dim(x, i, 0, false), x(1));
  same(lax::dynamic_update_slice_in_dim(x, zeros({3, 2}), i, 1),
       x.at(idx::all, idx::slice(1, 3)).set(0.0));
  same(lax::dynamic_update_index_in_dim(x, zeros({4}), -1, 0), x.at(-1).set(0.0));
  same(lax::collapse(A({2, 3, 4}), 0, 2), A({6, 4}));
  same(lax::cummax(x, 1), flip(lax::cummax(flip(x, 1), 1, true), 1));
  same(lax::dot_general(x, x, {1}, {1}), matmul(x, transpose(x)));
  EXPECT_EQ(lax::population_count(arange(4)).to_vector<int>(), (std::vector<int>{0, 1, 1, 2}));
  EXPECT_EQ(lax::clz(arange(3)).to_vector<int>(), (std::vector<int>{32, 31, 30}));
  EXPECT_THROW(lax::index_in_dim(x, 3), UserError);
  EXPECT_THROW(lax::collapse(x, 1, 1), UserError);
}

TEST(Decompositions, RefuseWhatDoesNotFit) {
  EXPECT_THROW(fft::rfft(C({4})), UserError);
  EXPECT_THROW(fft::fft(C({4}), 0), UserError);
  EXPECT_THROW(fft::fft(C({4}), std::nullopt, -1, "loud"), UserError);
  EXPECT_THROW(linalg::cholesky(A({2, 3})), UserError);
  EXPECT_THROW(linalg::solve_triangular(L(), A({2})), UserError);
  EXPECT_THROW(special::polygamma(1.5, A({2})), UserError);
  EXPECT_THROW(random::choice(key(), 3, {5}, false), UserError);
}

}  // namespace
}  // namespace xylem
