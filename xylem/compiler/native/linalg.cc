#include "xylem/compiler/native/linalg.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>
#include <vector>

#include "xylem/base/thread_pool.h"
#include "xylem/ir/lapack/library.h"

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

// From this size on LAPACK's blocked routines are faster than the loops here.
constexpr std::int64_t kBlocked = 24;
// Vector kernels of BLAS may read behind the end of what they are given.
constexpr std::size_t kSlack = 64;

template <class T>
constexpr int kKind = (std::is_same_v<T, typename RealOf<T>::type> ? 0 : 2) +
                      (sizeof(typename RealOf<T>::type) == 8 ? 1 : 0);

// What fits LAPACK's integers and is worth its call, where LAPACK is installed.
bool worth_blocking(std::int64_t n, std::int64_t other) {
  return n >= kBlocked && other > 4 && n <= 46000 && other <= std::numeric_limits<int>::max();
}

template <class T>
auto* potrf() {
  using F = void(const char* uplo, const int* n, T* a, const int* lda, int* info, std::size_t);
  static constexpr const char* kNames[] = {"spotrf_", "dpotrf_", "cpotrf_", "zpotrf_"};
  static F* const f = reinterpret_cast<F*>(ir::lapack::find_routine(kNames[kKind<T>]));
  return f;
}

template <class T>
auto* trsm() {
  using F = void(const char* side, const char* uplo, const char* trans, const char* diag,
                 const int* m, const int* n, const T* alpha, const T* a, const int* lda, T* b,
                 const int* ldb, std::size_t, std::size_t, std::size_t, std::size_t);
  static constexpr const char* kNames[] = {"strsm_", "dtrsm_", "ctrsm_", "ztrsm_"};
  static F* const f = reinterpret_cast<F*>(ir::lapack::find_routine(kNames[kKind<T>]));
  return f;
}

// LAPACK reads columns where rows lie here: it sees A^T = conj(A), of which it factors the other
// triangle, and U^T of conj(A) = U^H U is the L of A = L L^H.
template <class T>
bool factor_blocked(const T* in, T* out, std::int64_t n, bool lower) {
  std::vector<T> work(static_cast<std::size_t>(n * n) + kSlack);
  std::copy(in, in + n * n, work.begin());
  const int size = static_cast<int>(n);
  int info = 0;
  potrf<T>()(lower ? "U" : "L", &size, work.data(), &size, &info, 1);
  for (std::int64_t i = 0; i < n; ++i) {
    const T* row = work.data() + i * n;
    const std::int64_t begin = lower ? 0 : i, end = lower ? i + 1 : n;
    std::fill(out + i * n, out + i * n + begin, T());
    std::copy(row + begin, row + end, out + i * n + begin);
    std::fill(out + i * n + end, out + (i + 1) * n, T());
  }
  return info == 0;
}

// Transposed as above: op(A) X = B is X^T op(A)^T = B^T, and op(A)^T is op of the matrix that
// LAPACK sees, whose triangle is the other one.
template <class T>
void solve_blocked(const T* a, const T* b, T* x, std::int64_t rows, std::int64_t columns,
                   bool left_side, bool lower, bool unit, Transpose transpose) {
  const std::int64_t n = left_side ? rows : columns;
  std::vector<T> matrix(static_cast<std::size_t>(n * n) + kSlack),
      work(static_cast<std::size_t>(rows * columns) + kSlack);
  std::copy(a, a + n * n, matrix.begin());
  std::copy(b, b + rows * columns, work.begin());
  const int order = static_cast<int>(n), m = static_cast<int>(columns),
            count = static_cast<int>(rows);
  const T one(1);
  const char* op = transpose == Transpose::kNone        ? "N"
                   : transpose == Transpose::kTranspose ? "T"
                                                        : "C";
  trsm<T>()(left_side ? "R" : "L", lower ? "U" : "L", op, unit ? "U" : "N", &m, &count, &one,
            matrix.data(), &order, work.data(), &m, 1, 1, 1, 1);
  std::copy(work.begin(), work.end() - static_cast<std::ptrdiff_t>(kSlack), x);
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
      if (worth_blocking(n, n) && potrf<T>()) {
        if (!factor_blocked(in, u, n, lower))
          std::fill(u, u + n * n, T(std::numeric_limits<Real>::quiet_NaN()));
        continue;
      }
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
        if (worth_blocking(n, left_side ? columns : rows) && trsm<T>()) {
          for (std::int64_t m = begin; m < end; ++m)
            solve_blocked(a + m * n * n, b + m * rows * columns, out + m * rows * columns, rows,
                          columns, left_side, lower, unit_diagonal, transpose);
          return;
        }
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
