#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <random>
#include <vector>

#include "xylem/compiler/native/fft.h"
#include "xylem/compiler/native/linalg.h"
#include "xylem/compiler/native/random.h"

namespace xylem::compiler {
namespace {

using C = std::complex<double>;

template <class T>
std::vector<T> random_values(std::size_t n, unsigned seed) {
  std::mt19937 g(seed);
  std::normal_distribution<double> d;
  std::vector<T> v(n);
  for (T& x : v) {
    if constexpr (std::is_floating_point_v<T>)
      x = static_cast<T>(d(g));
    else
      x = T(static_cast<typename T::value_type>(d(g)), static_cast<typename T::value_type>(d(g)));
  }
  return v;
}

// The definition, in long double.
std::vector<C> dft(const std::vector<C>& x, int sign) {
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<C> y(x.size());
  for (std::int64_t k = 0; k < n; ++k) {
    std::complex<long double> sum;
    for (std::int64_t j = 0; j < n; ++j) {
      const long double angle = sign * 2 * std::numbers::pi_v<long double> *
                                static_cast<long double>(j * k % n) / static_cast<long double>(n);
      sum += std::complex<long double>(x[static_cast<std::size_t>(j)]) *
             std::complex<long double>(std::cos(angle), std::sin(angle));
    }
    y[static_cast<std::size_t>(k)] = C(sum);
  }
  return y;
}

template <class A, class B>
double relative_error(const std::vector<A>& a, const std::vector<B>& b) {
  double error = 0, size = 1e-300;
  for (std::size_t i = 0; i < a.size(); ++i) {
    error += std::norm(C(a[i]) - C(b[i]));
    size += std::norm(C(b[i]));
  }
  return std::sqrt(error / size);
}

TEST(Fft, EveryLengthIsTheTransformOfTheDefinition) {
  for (std::int64_t n = 1; n <= 130; ++n) {
    const auto x = random_values<C>(static_cast<std::size_t>(n), static_cast<unsigned>(n));
    std::vector<C> y(x.size());
    fft<double>(FftKind::kFft, x.data(), y.data(), 1, {n});
    EXPECT_LT(relative_error(y, dft(x, -1)), 1e-15 * (4 + std::log2(n) * 4)) << n;
    std::vector<C> back(x.size());
    fft<double>(FftKind::kIfft, y.data(), back.data(), 1, {n});
    EXPECT_LT(relative_error(back, x), 1e-15 * (4 + std::log2(n) * 4)) << n;
  }
}

TEST(Fft, LongLengthsKeepTheirPrecision) {
  for (std::int64_t n : {4096, 3 * 5 * 7 * 11 * 13, 7919, 65536}) {
    const auto x = random_values<std::complex<float>>(static_cast<std::size_t>(n), 7);
    std::vector<std::complex<float>> y(x.size()), back(x.size());
    fft<float>(FftKind::kFft, x.data(), y.data(), 1, {n});
    fft<float>(FftKind::kIfft, y.data(), back.data(), 1, {n});
    EXPECT_LT(relative_error(back, x), 1e-6) << n;
    double time = 0, frequency = 0;  // Parseval
    for (std::size_t i = 0; i < x.size(); ++i) {
      time += std::norm(C(x[i]));
      frequency += std::norm(C(y[i]));
    }
    EXPECT_NEAR(frequency / static_cast<double>(n) / time, 1, 1e-5) << n;
  }
}

TEST(Fft, RealTransformsAreHalfOfTheComplexOne) {
  for (std::int64_t n : {1, 2, 5, 8, 34, 45}) {
    const std::int64_t half = n / 2 + 1;
    const auto x = random_values<double>(static_cast<std::size_t>(3 * n), 5);
    std::vector<C> y(static_cast<std::size_t>(3 * half));
    fft<double>(FftKind::kRfft, x.data(), y.data(), 3, {n});
    for (std::int64_t b = 0; b < 3; ++b) {
      const std::vector<C> whole =
          dft(std::vector<C>(x.begin() + b * n, x.begin() + (b + 1) * n), -1);
      for (std::int64_t k = 0; k < half; ++k)
        EXPECT_LT(std::abs(y[static_cast<std::size_t>(b * half + k)] -
                           whole[static_cast<std::size_t>(k)]),
                  1e-12);
    }
    std::vector<double> back(x.size());
    fft<double>(FftKind::kIrfft, y.data(), back.data(), 3, {n});
    EXPECT_LT(relative_error(back, x), 1e-14) << n;
  }
}

TEST(Fft, SeveralDimensionsAreTransformedOneAfterTheOther) {
  const std::int64_t a = 4, b = 3, c = 5;
  const auto x = random_values<C>(static_cast<std::size_t>(2 * a * b * c), 3);
  std::vector<C> y(x.size()), back(x.size()), expected = x;
  fft<double>(FftKind::kFft, x.data(), y.data(), 2, {a, b, c});
  const std::int64_t sizes[] = {a, b, c}, strides[] = {b * c, c, 1};
  for (int d = 0; d < 3; ++d)
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(x.size()); ++i) {
      if (i / strides[d] % sizes[d] != 0) continue;
      std::vector<C> line;
      for (std::int64_t k = 0; k < sizes[d]; ++k)
        line.push_back(expected[static_cast<std::size_t>(i + k * strides[d])]);
      line = dft(line, -1);
      for (std::int64_t k = 0; k < sizes[d]; ++k)
        expected[static_cast<std::size_t>(i + k * strides[d])] = line[static_cast<std::size_t>(k)];
    }
  EXPECT_LT(relative_error(y, expected), 1e-14);
  fft<double>(FftKind::kIfft, y.data(), back.data(), 2, {a, b, c});
  EXPECT_LT(relative_error(back, x), 1e-14);
}

template <class T>
class Linalg : public testing::Test {};
using Types = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(Linalg, Types);

template <class T>
T conjugate(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return x;
  else
    return std::conj(x);
}

template <class T>
double tolerance() {
  return sizeof(T) == sizeof(float) || std::is_same_v<T, std::complex<float>> ? 2e-5 : 1e-13;
}

TYPED_TEST(Linalg, TheCholeskyFactorTimesItsAdjointIsTheMatrix) {
  using T = TypeParam;
  for (std::int64_t n : {1, 2, 5, 33, 97})
    for (bool lower : {true, false}) {
      const auto r = random_values<T>(static_cast<std::size_t>(2 * n * n), 11);
      std::vector<T> a(r.size()), f(r.size()), product(r.size());
      const auto at = [n](std::int64_t b, std::int64_t i, std::int64_t j) {
        return static_cast<std::size_t>((b * n + i) * n + j);
      };
      for (std::int64_t b = 0; b < 2; ++b)
        for (std::int64_t i = 0; i < n; ++i)
          for (std::int64_t j = 0; j < n; ++j) {
            T sum = i == j ? T(1) : T(0);
            for (std::int64_t k = 0; k < n; ++k) sum += r[at(b, i, k)] * conjugate(r[at(b, j, k)]);
            a[at(b, i, j)] = sum;
          }
      // The other triangle is not read.
      std::vector<T> half = a;
      for (std::int64_t b = 0; b < 2; ++b)
        for (std::int64_t i = 0; i < n; ++i)
          for (std::int64_t j = 0; j < n; ++j)
            if (lower ? j > i : j < i) half[at(b, i, j)] = T(1e9);
      cholesky(half.data(), f.data(), 2, n, lower);
      for (std::int64_t b = 0; b < 2; ++b)
        for (std::int64_t i = 0; i < n; ++i)
          for (std::int64_t j = 0; j < n; ++j) {
            T sum(0);
            for (std::int64_t k = 0; k < n; ++k)
              sum += lower ? f[at(b, i, k)] * conjugate(f[at(b, j, k)])
                           : conjugate(f[at(b, k, i)]) * f[at(b, k, j)];
            product[at(b, i, j)] = sum;
            if (lower ? j > i : j < i) {
              EXPECT_EQ(f[at(b, i, j)], T(0));
            }
          }
      EXPECT_LT(relative_error(product, a), tolerance<T>()) << n << lower;
    }
}

TYPED_TEST(Linalg, WhatIsNotPositiveDefiniteGivesNaN) {
  using T = TypeParam;
  for (std::int64_t n : {2, 40})
    for (bool lower : {true, false}) {
      std::vector<T> a(static_cast<std::size_t>(n * n)), f(a.size());
      for (std::int64_t i = 0; i < n; ++i) a[static_cast<std::size_t>(i * n + i)] = T(1);
      a[a.size() - 2] = a[a.size() - 1 - static_cast<std::size_t>(n)] = T(2);
      cholesky(a.data(), f.data(), 1, n, lower);
      for (const T& x : f) EXPECT_TRUE(std::isnan(std::real(x)));
    }
}

TYPED_TEST(Linalg, TriangularSystemsAreSolvedFromEverySide) {
  using T = TypeParam;
  using Real = decltype(std::real(T()));
  // Small ones, one large enough for blocks, and one with few columns.
  const std::pair<std::int64_t, std::int64_t> shapes[] = {{6, 4}, {50, 37}, {40, 3}};
  for (const auto& [rows, columns] : shapes)
    for (int bits = 0; bits < 8; ++bits)
      for (Transpose transpose : {Transpose::kNone, Transpose::kTranspose, Transpose::kAdjoint}) {
        const bool left = bits & 1, lower = bits & 2, unit = bits & 4;
        const std::int64_t n = left ? rows : columns;
        std::vector<T> a = random_values<T>(static_cast<std::size_t>(n * n), 4);
        const auto b = random_values<T>(static_cast<std::size_t>(rows * columns), 5);
        for (T& v : a) v *= T(Real(2) / static_cast<Real>(n));
        for (std::int64_t i = 0; i < n; ++i) a[static_cast<std::size_t>(i * n + i)] += T(4);
        std::vector<T> x(b.size()), product(b.size());
        triangular_solve(a.data(), b.data(), x.data(), 1, rows, columns, left, lower, unit,
                         transpose);
        const auto op = [&](std::int64_t i, std::int64_t j) {
          if (transpose != Transpose::kNone) std::swap(i, j);
          if (i == j && unit) return T(1);
          if (lower ? j > i : j < i) return T(0);
          const T v = a[static_cast<std::size_t>(i * n + j)];
          return transpose == Transpose::kAdjoint ? conjugate(v) : v;
        };
        for (std::int64_t i = 0; i < rows; ++i)
          for (std::int64_t j = 0; j < columns; ++j) {
            T sum(0);
            for (std::int64_t k = 0; k < n; ++k)
              sum += left ? op(i, k) * x[static_cast<std::size_t>(k * columns + j)]
                          : x[static_cast<std::size_t>(i * columns + k)] * op(k, j);
            product[static_cast<std::size_t>(i * columns + j)] = sum;
          }
        EXPECT_LT(relative_error(product, b), tolerance<T>()) << bits << " " << rows;
      }
}

TEST(Random, UniformNumbersLieInTheirIntervalAndStreamsDiffer) {
  const float a = 2, b = 3;
  std::vector<float> x(1000), y(1000);
  random_numbers(false, DType::kF32, &a, &b, x.data(), 1000);
  random_numbers(false, DType::kF32, &a, &b, y.data(), 1000);
  EXPECT_NE(x, y);
  double mean = 0;
  for (float v : x) {
    EXPECT_GE(v, a);
    EXPECT_LT(v, b);
    mean += static_cast<double>(v) / 1000;
  }
  EXPECT_NEAR(mean, 2.5, 0.05);
  const std::int32_t low = -3, high = 4;
  std::vector<std::int32_t> n(1000);
  random_numbers(false, DType::kI32, &low, &high, n.data(), 1000);
  EXPECT_EQ(*std::min_element(n.begin(), n.end()), -3);
  EXPECT_EQ(*std::max_element(n.begin(), n.end()), 3);
}

}  // namespace
}  // namespace xylem::compiler
