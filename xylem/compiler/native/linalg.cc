#include "xylem/compiler/native/linalg.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "xylem/base/thread_pool.h"

namespace xylem::compiler {
namespace {

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};

inline float conj_of(float x) { return x; }
inline double conj_of(double x) { return x; }
template <class T>
std::complex<T> conj_of(std::complex<T> x) {
  return std::conj(x);
}

inline float mul(float a, float b) { return a * b; }
inline double mul(double a, double b) { return a * b; }
// Without the recovery of infinities that operator* makes.
template <class T>
std::complex<T> mul(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// y -= f x
template <class T>
void subtract_scaled(T* y, const T* x, T f, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] -= mul(f, x[i]);
}

// Row by row; the trailing rows are updated with whole rows of what is done, so that the innermost
// loop is contiguous: works on U = L^H in the upper triangle of `u`.
template <class T>
bool factor_upper(T* u, std::int64_t n) {
  using Real = typename RealOf<T>::type;
  for (std::int64_t k = 0; k < n; ++k) {
    T* row = u + k * n;
    const Real pivot = std::real(row[k]);
    if (!(pivot > 0) || std::isinf(pivot)) return false;
    const Real d = std::sqrt(pivot);
    row[k] = d;
    for (std::int64_t j = k + 1; j < n; ++j) row[j] /= d;
    for (std::int64_t i = k + 1; i < n; ++i)
      subtract_scaled(u + i * n + i, row + i, conj_of(row[i]), n - i);
  }
  return true;
}

std::int64_t grain_of(std::int64_t n) {
  const std::int64_t work = std::max<std::int64_t>(1, n * n * n);
  return std::max<std::int64_t>(1, 100000 / work);
}

// One system op(A) x = b for all columns of b at once (rows of X are contiguous).
template <class T, class At>
void solve_left(const At& at, bool lower, bool unit, T* x, std::int64_t n, std::int64_t columns) {
  for (std::int64_t step = 0; step < n; ++step) {
    const std::int64_t i = lower ? step : n - 1 - step;
    T* row = x + i * columns;
    const std::int64_t begin = lower ? 0 : i + 1, end = lower ? i : n;
    for (std::int64_t k = begin; k < end; ++k)
      subtract_scaled(row, x + k * columns, at(i, k), columns);
    if (!unit) {
      const T d = at(i, i);
      for (std::int64_t j = 0; j < columns; ++j) row[j] /= d;
    }
  }
}

// x op(A) = b for one row b.
template <class T, class At>
void solve_right(const At& at, bool lower, bool unit, T* x, std::int64_t n) {
  for (std::int64_t step = 0; step < n; ++step) {
    const std::int64_t j = lower ? n - 1 - step : step;
    if (!unit) x[j] /= at(j, j);
    const std::int64_t begin = lower ? 0 : j + 1, end = lower ? j : n;
    for (std::int64_t k = begin; k < end; ++k) x[k] -= mul(x[j], at(j, k));
  }
}

}  // namespace

template <class T>
void cholesky(const T* a, T* out, std::int64_t batch, std::int64_t n, bool lower) {
  using Real = typename RealOf<T>::type;
  ThreadPool::global().parallel_for(batch, grain_of(n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      const T* in = a + b * n * n;
      T* u = out + b * n * n;
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < n; ++j)
          u[i * n + j] = j < i ? T() : lower ? conj_of(in[j * n + i]) : in[i * n + j];
      if (!factor_upper(u, n)) {
        std::fill(u, u + n * n, T(std::numeric_limits<Real>::quiet_NaN()));
        continue;
      }
      if (!lower) continue;
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = i + 1; j < n; ++j) {
          u[j * n + i] = conj_of(u[i * n + j]);
          u[i * n + j] = T();
        }
    }
  });
}

template <class T>
void triangular_solve(const T* a, const T* b, T* out, std::int64_t batch, std::int64_t rows,
                      std::int64_t columns, bool left_side, bool lower, bool unit_diagonal,
                      Transpose transpose) {
  const std::int64_t n = left_side ? rows : columns;
  // op(A) of a lower matrix is upper if it is transposed.
  const bool op_lower = (transpose == Transpose::kNone) == lower;
  ThreadPool::global().parallel_for(
      batch, grain_of(std::max(rows, columns)), [&](std::int64_t begin, std::int64_t end) {
        std::vector<T> op(static_cast<std::size_t>(n * n));
        for (std::int64_t m = begin; m < end; ++m) {
          const T* matrix = a + m * n * n;
          for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t j = 0; j < n; ++j)
              op[static_cast<std::size_t>(i * n + j)] =
                  transpose == Transpose::kNone        ? matrix[i * n + j]
                  : transpose == Transpose::kTranspose ? matrix[j * n + i]
                                                       : conj_of(matrix[j * n + i]);
          const auto at = [&](std::int64_t i, std::int64_t j) {
            return op[static_cast<std::size_t>(i * n + j)];
          };
          T* x = out + m * rows * columns;
          std::copy(b + m * rows * columns, b + (m + 1) * rows * columns, x);
          if (left_side)
            solve_left(at, op_lower, unit_diagonal, x, n, columns);
          else
            for (std::int64_t r = 0; r < rows; ++r)
              solve_right(at, op_lower, unit_diagonal, x + r * columns, n);
        }
      });
}

#define XYLEM_LINALG(T)                                                                            \
  template void cholesky(const T*, T*, std::int64_t, std::int64_t, bool);                          \
  template void triangular_solve(const T*, const T*, T*, std::int64_t, std::int64_t, std::int64_t, \
                                 bool, bool, bool, Transpose);
XYLEM_LINALG(float)
XYLEM_LINALG(double)
XYLEM_LINALG(std::complex<float>)
XYLEM_LINALG(std::complex<double>)
#undef XYLEM_LINALG

}  // namespace xylem::compiler
