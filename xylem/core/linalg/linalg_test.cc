#include "xylem/core/linalg.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "xylem/base/error.h"
#include "xylem/core/core.h"

namespace xylem {
namespace {

namespace ll = lax::linalg;

Array M(const Dims& shape, int k = 0, DType t = DType::kF64) {
  std::vector<double> v(static_cast<std::size_t>(num_elements(shape)));
  for (std::size_t i = 0; i < v.size(); ++i) {
    const auto n = static_cast<int>(i);
    v[i] = static_cast<double>((n * n * 5 + n * 7 + k) % 31 - 15) / 8;
  }
  return Array(std::span<const double>(v), shape).astype(t);
}
Array S(std::int64_t n, DType t = DType::kF64) { return M({n, n}, 0, t) + 3.0 * eye(n, -1, 0, t); }

double distance(const Array& a, const Array& b) {
  EXPECT_EQ(a.shape(), b.shape());
  if (a.size() == 0) return 0;
  return max(abs(a - b)).item<double>();
}

// Everything that has one array in and a number out.
struct Function {
  const char* name;
  std::function<Array(const Array&)> f;
};
std::vector<Function> functions() {
  auto weigh = [](const Array& x) { return sum(sin(x) * M(x.shape(), 7, x.dtype())); };
  return {
      {"qr",
       [=](const Array& x) {
         auto [q, r] = linalg::qr(x);
         return weigh(q) + weigh(r);
       }},
      {"lu", [=](const Array& x) { return weigh(ll::lu(x).lu); }},
      {"eigh",
       [=](const Array& x) {
         auto [w, v] = linalg::eigh(x);
         return weigh(w) + weigh(square(v));
       }},
      {"svd",
       [=](const Array& x) {
         auto [u, s, vh] = linalg::svd(x);
         return weigh(s) + weigh(square(u)) + weigh(square(vh));
       }},
      {"eig",
       [=](const Array& x) {
         Array w = linalg::eigvals(x);
         return real(sum(w * w * w));
       }},
      {"cholesky",
       [=](const Array& x) { return weigh(linalg::cholesky(x + 9.0 * eye(3, -1, 0, x.dtype()))); }},
      {"inv", [=](const Array& x) { return weigh(linalg::inv(x)); }},
      {"det", [=](const Array& x) { return linalg::det(x); }},
      {"slogdet", [=](const Array& x) { return linalg::slogdet(x).logabsdet; }},
      {"slogdet qr", [=](const Array& x) { return linalg::slogdet(x, "qr").logabsdet; }},
      {"pinv", [=](const Array& x) { return weigh(linalg::pinv(x)); }},
      {"expm", [=](const Array& x) { return weigh(linalg::expm(x / 4.0)); }},
      {"nuclear norm", [=](const Array& x) { return linalg::norm(x, "nuc"); }},
      {"cond", [=](const Array& x) { return linalg::cond(x); }},
      {"lstsq", [=](const Array& x) { return weigh(linalg::lstsq(x, M({3}, 1, x.dtype())).x); }},
      {"solve",
       [=](const Array& x) {
         return weigh(linalg::solve(x, M({3, 2}, 1, x.dtype())));
       }},
  };
}

TEST(Linalg, GradientsAreThoseOfFiniteDifferences) {
  const Array x = S(3), direction = M({3, 3}, 5);
  for (const Function& f : functions()) {
    auto run = [&](const Array& a) { return f.f(a); };
    const double h = 1e-6;
    const double slope =
        ((run(x + h * direction) - run(x - h * direction)) / (2 * h)).item<double>();
    const double reverse = sum(grad(run)(x) * direction).item<double>();
    const double forward = jvp(run, std::tuple{x}, std::tuple{direction}).second.item<double>();
    EXPECT_NEAR(reverse, slope, 1e-6 * std::max(1.0, std::abs(slope))) << f.name;
    EXPECT_NEAR(forward, reverse, 1e-10 * std::max(1.0, std::abs(slope))) << f.name;
  }
}

TEST(Linalg, SecondDerivativesAreThoseOfFiniteDifferences) {
  const Array x = S(3), direction = M({3, 3}, 5);
  for (const Function& f : functions()) {
    auto slope = [&](const Array& a) { return grad([&](const Array& b) { return f.f(b); })(a); };
    const double h = 1e-5;
    const Array want = (slope(x + h * direction) - slope(x - h * direction)) / (2 * h);
    const Array got = jvp(slope, std::tuple{x}, std::tuple{direction}).second;
    const double size = std::max(1.0, max(abs(want)).item<double>());
    EXPECT_LT(distance(got, want), 1e-5 * size) << f.name;
  }
}

TEST(Linalg, CompiledMappedAndNarrowCallsAgreeWithPlainOnes) {
  for (DType t : {DType::kF32, DType::kF64}) {
    const double bound = t == DType::kF32 ? 2e-3 : 1e-9;
    const Array x = S(3, t), y = S(3, t) * 1.5;
    for (const Function& f : functions()) {
      auto run = [&](const Array& a) { return f.f(a); };
      const double want = run(x).item<double>(), size = std::max(1.0, std::abs(want));
      EXPECT_NEAR(jit(run)(x).item<double>(), want, bound * size) << f.name;
      const Array mapped = vmap(run)(stack({x, y}));
      EXPECT_NEAR(mapped(0).item<double>(), want, bound * size) << f.name;
      EXPECT_NEAR(mapped(1).item<double>(), run(y).item<double>(), bound * size * 10) << f.name;
      const Array slope = jit(grad(run))(x);
      EXPECT_LT(distance(slope, grad(run)(x)),
                bound * std::max(1.0, max(abs(slope)).item<double>()))
          << f.name;
    }
  }
}

TEST(Linalg, IntegersAreComputedInFloat) {
  Array x = array({2, 1, 1, 3}, DType::kI32).reshape({2, 2});
  EXPECT_EQ(linalg::inv(x).dtype(), DType::kF32);
  EXPECT_EQ(linalg::eigh(x).eigenvalues.dtype(), DType::kF32);
  EXPECT_EQ(linalg::eigvals(x).dtype(), DType::kC64);
  EXPECT_EQ(linalg::matrix_power(x, 3).dtype(), DType::kI32);
  EXPECT_EQ(linalg::matrix_rank(x).dtype(), DType::kI32);
  EXPECT_NEAR(linalg::det(x).item<double>(), 5, 1e-5);
  EXPECT_EQ(linalg::solve(x, array({1, 2}, DType::kI32)).dtype(), DType::kF32);
}

TEST(Linalg, EmptyMatricesHaveResults) {
  const Array none = zeros({2, 0, 0}, DType::kF64), flat = zeros({0, 3}, DType::kF64);
  EXPECT_EQ(linalg::eigh(none).eigenvectors.shape(), (Dims{2, 0, 0}));
  EXPECT_EQ(linalg::svd(flat).vh.shape(), (Dims{3, 3}));
  EXPECT_EQ(linalg::svd(flat, {.full_matrices = false}).u.shape(), (Dims{0, 0}));
  EXPECT_EQ(linalg::qr(matrix_transpose(flat), "complete").q.shape(), (Dims{3, 3}));
  EXPECT_EQ(linalg::solve(none, zeros({2, 0, 4}, DType::kF64)).shape(), (Dims{2, 0, 4}));
  EXPECT_EQ(linalg::pinv(flat).shape(), (Dims{3, 0}));
  EXPECT_EQ(linalg::lstsq(zeros({0, 3}), zeros({0})).x.shape(), (Dims{3}));
  EXPECT_EQ(linalg::expm(none).shape(), (Dims{2, 0, 0}));
  EXPECT_EQ(linalg::lu(flat).u.shape(), (Dims{0, 3}));
  EXPECT_EQ(linalg::slogdet(none).logabsdet.to_vector<double>(), (std::vector<double>{0, 0}));
  EXPECT_EQ(linalg::det(none).to_vector<double>(), (std::vector<double>{1, 1}));
  EXPECT_EQ(linalg::norm(flat, "nuc").item<double>(), 0);
}

TEST(Linalg, WhatHasNoAnswerIsNaNOrInfinite) {
  const Array flat = ones({2, 2}, DType::kF64);
  EXPECT_FALSE(static_cast<bool>(any(isfinite(linalg::inv(flat)))));
  EXPECT_EQ(linalg::slogdet(flat).logabsdet.item<double>(),
            -std::numeric_limits<double>::infinity());
  EXPECT_EQ(linalg::cond(zeros({2, 2}), 1).item<double>(), std::numeric_limits<double>::infinity());
  const Array bad = flat * std::numeric_limits<double>::quiet_NaN();
  for (const Function& f : functions())
    EXPECT_TRUE(std::isnan(f.f(S(3) + bad(0, 0)).item<double>())) << f.name;
}

TEST(Linalg, EqualEigenvaluesHaveTheDerivativesOfWhatDoesNotDependOnTheirVectors) {
  // tr x² through the factors.
  auto by_eigh = [](const Array& x) { return sum(square(linalg::eigh(x).eigenvalues)); };
  auto by_svd = [](const Array& x) { return sum(square(linalg::svd(x).s)); };
  const Array x = 2.0 * eye(3, -1, 0, DType::kF64);
  EXPECT_LT(distance(grad(by_eigh)(x), 2.0 * x), 1e-12);
  EXPECT_LT(distance(grad(by_svd)(x), 2.0 * x), 1e-12);
  // So have second derivatives.
  const Array d = M({3, 3}) + matrix_transpose(M({3, 3}));
  auto slope = [&](const Array& a) { return grad(by_eigh)(a); };
  Array second = jvp(slope, std::tuple{x}, std::tuple{d}).second;
  EXPECT_TRUE(static_cast<bool>(all(isfinite(second))));
  // Vectors of a general matrix.
  auto by_eig = [](const Array& a) {
    return sum(real(linalg::eig(a, {.enable_eigvec_derivs = true}).eigenvectors));
  };
  EXPECT_TRUE(static_cast<bool>(all(isfinite(grad(by_eig)(x)))));
  NumericsScope scope(Numerics::jax);
  EXPECT_FALSE(static_cast<bool>(all(isfinite(grad(by_eig)(x)))));
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Linalg, MistakesAreNamedInFourParts) {
  const Array wide = zeros({2, 3}), v = zeros({3}), half = zeros({2, 2}, DType::kBF16);
  const std::vector<std::pair<std::string, std::function<void()>>> cases = {
      {"inv: square matrices are needed; f32[2,3]. Cut or pad", [&] { linalg::inv(wide); }},
      {"det: square matrices", [&] { linalg::det(wide); }},
      {"slogdet: square matrices", [&] { linalg::slogdet(wide); }},
      {"eigh: square matrices", [&] { linalg::eigh(wide); }},
      {"eig: square matrices", [&] { linalg::eigvals(wide); }},
      {"expm: square matrices", [&] { linalg::expm(wide); }},
      {"schur: square matrices", [&] { linalg::sqrtm(wide); }},
      {"qr: an array of two or more axes", [&] { linalg::qr(v); }},
      {"svd: an array of two or more axes", [&] { linalg::svd(v); }},
      {"lu: an array of two or more axes", [&] { linalg::lu(v); }},
      {"f32, f64, c64 or c128; bf16[2,2]. Convert", [&] { linalg::qr(half); }},
      {"qr: mode: \"reduced\"", [&] { linalg::qr(wide, "thin"); }},
      {"eigh: uplo: 'L' or 'U'; X",
       [&] {
         linalg::eigh(zeros({2, 2}), {.uplo = 'X'});
       }},
      {"solve: as many rows of b as a has columns; f32[2,2] and f32[3]",
       [&] {
         linalg::solve(zeros({2, 2}), v);
       }},
      {"solve: assume_a",
       [&] {
         linalg::solve(zeros({2, 2}), zeros({2}), {.assume_a = "spd"});
       }},
      {"lu_solve: trans: 0, 1 or 2; 3",
       [&] { linalg::lu_solve(linalg::lu_factor(eye(2)), zeros({2}), 3); }},
      {"lstsq: a matrix a", [&] { linalg::lstsq(wide, v); }},
      {"matrix_norm: order", [&] { linalg::norm(wide, 3); }},
      {"norm: axes: two axes of f32[2,3]",
       [&] {
         linalg::norm(wide, "fro", std::pair{0, 5});
       }},
      {"cond: a matrix that is not empty",
       [&] {
         linalg::cond(zeros({0, 0}));
       }},
      {"tensorinv: ind >= 1", [&] { linalg::tensorinv(wide, 1); }},
      {"tensorsolve", [&] { linalg::tensorsolve(wide, v); }},
      {"slogdet: method \"qr\": real matrices",
       [&] {
         linalg::slogdet(zeros({3, 3}, DType::kC64), "qr");
       }},
      {"polar: side", [&] { linalg::polar(wide, "up"); }},
      {"hadamard: a power of 2; 3", [&] { linalg::hadamard(3); }},
      {"householder_product", [&] { ll::householder_product(wide, v); }},
      {"tridiagonal_solve",
       [&] {
         ll::tridiagonal_solve(v, v, v, zeros({2, 1}));
       }},
      {"hessenberg: matrices that are not empty",
       [&] {
         ll::hessenberg(zeros({0, 0}));
       }},
      {"differentiate svd: thin factors",
       [&] {
         grad([](const Array& x) { return sum(linalg::svd(x).u); })(ones({3, 2}));
       }},
      {"differentiate eig: eigenvalues alone",
       [&] {
         grad([](const Array& x) { return sum(real(linalg::eig(x).eigenvectors)); })(ones({2, 2}));
       }},
      {"differentiate xylem.schur",
       [&] {
         grad([](const Array& x) { return sum(linalg::schur(x).t); })(ones({2, 2}));
       }},
      {"vectorize: signature: a list",
       [&] { vectorize([](const Array& x) { return x; }, "(n")(v); }},
      {"vectorize: 2 arguments",
       [&] { vectorize([](const Array& x) { return x; }, "(n),(n)->()")(v); }},
      {"vectorize: argument 0: at least 2 axes",
       [&] { vectorize([](const Array& x) { return x; }, "(n,m)->(n)")(v); }},
      {"vectorize: argument 0, axis n: size 2",
       [&] { vectorize([](const Array& x) { return x; }, "(n,n)->(n)")(wide); }},
      {"vectorize: result 0 of the function: 0 axes",
       [&] { vectorize([](const Array& x) { return x; }, "(n)->()")(v); }},
  };
  for (const auto& [piece, f] : cases) {
    const std::string message = message_of(f);
    EXPECT_NE(message.find(piece), std::string::npos) << piece << "\n  got: " << message;
  }
}

}  // namespace
}  // namespace xylem
