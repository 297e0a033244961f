#include "xylem/ir/lapack/routines.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/ir/lapack/fortran.h"

namespace xylem::ir::lapack {
namespace {

// What LAPACK answers for a matrix with a NaN or an infinity: the fourth argument is invalid.
constexpr Int kNotFinite = -4;

Int to_int(std::int64_t n) {
  if (n <= std::numeric_limits<Int>::max()) return static_cast<Int>(n);
  throw UserError(ErrorParts{"linear algebra: a matrix's size", "at most 2^31 - 1",
                             std::to_string(n), "Split the matrix"});
}

// Elements behind every array that BLAS may touch: vector kernels of OpenBLAS (cgemv_n of its
// generic x86-64 code) read past the end of what they are given.
constexpr std::size_t kSlack = 64;

// A matrix in LAPACK's order: columns one after the other.
template <class T>
struct Columns {
  std::int64_t rows, columns;
  std::vector<T> data;

  Columns(std::int64_t r, std::int64_t c)
      : rows(r), columns(c), data(static_cast<std::size_t>(r * c) + kSlack) {}
  // Of a row-major matrix.
  Columns(const T* in, std::int64_t r, std::int64_t c) : Columns(r, c) {
    for_blocks([&](std::int64_t i, std::int64_t j) { at(i, j) = in[i * columns + j]; });
  }
  void store(T* out) const {
    for_blocks([&](std::int64_t i, std::int64_t j) {
      out[i * columns + j] = data[static_cast<std::size_t>(i + j * rows)];
    });
  }
  T& at(std::int64_t i, std::int64_t j) { return data[static_cast<std::size_t>(i + j * rows)]; }
  T* get() { return data.data(); }
  Int ld() const { return to_int(std::max<std::int64_t>(1, rows)); }

 private:
  // In squares, so that both orders stay in cache.
  template <class F>
  void for_blocks(const F& f) const {
    constexpr std::int64_t kBlock = 16;
    for (std::int64_t i0 = 0; i0 < rows; i0 += kBlock)
      for (std::int64_t j0 = 0; j0 < columns; j0 += kBlock)
        for (std::int64_t i = i0; i < std::min(rows, i0 + kBlock); ++i)
          for (std::int64_t j = j0; j < std::min(columns, j0 + kBlock); ++j) f(i, j);
  }
};

template <class T>
bool is_finite(T x) {
  return std::isfinite(x);
}
template <class T>
bool is_finite(std::complex<T> x) {
  return std::isfinite(x.real()) && std::isfinite(x.imag());
}
template <class T>
bool all_finite(const Columns<T>& a) {
  return std::all_of(a.data.begin(), a.data.end(), [](T x) { return is_finite(x); });
}

template <class T>
T nan_of() {
  const Real<T> nan = std::numeric_limits<Real<T>>::quiet_NaN();
  if constexpr (kComplex<T>)
    return {nan, nan};
  else
    return nan;
}

// The length of work space that a query wrote. An f32 may have rounded it down.
template <class T>
Int work_size(T answer) {
  const double n = static_cast<double>(std::real(answer));
  return to_int(std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(n * (1 + 0x1p-22)))));
}

// Calls f(work, lwork) twice: for the size of the work space, and with it.
template <class T, class F>
void with_work(const F& f) {
  T answer{};
  Int query = -1;
  f(&answer, &query);
  Int lwork = work_size(answer);
  std::vector<T> work(static_cast<std::size_t>(lwork) + kSlack);
  f(work.data(), &lwork);
}

template <class T>
class Solver {
 public:
  using R = Real<T>;
  using C = std::complex<R>;

  Solver(const Problem& problem, void* const* buffers, std::int64_t i)
      : p_(problem), buffers_(buffers), i_(i), m_(to_int(p_.m)), n_(to_int(p_.n)) {}

  void getrf() {
    const std::int64_t k = std::min(p_.m, p_.n);
    Columns<T> a = matrix(0, p_.m, p_.n);
    Int* ipiv = at<Int>(2, k);
    Int ld = a.ld(), info = 0;
    if (k > 0) lapack::getrf<T>()(&m_, &n_, a.get(), &ld, ipiv, &info);
    a.store(at<T>(1, p_.m * p_.n));
    *at<Int>(3, 1) = info;
  }

  void geqrf() {
    const std::int64_t k = std::min(p_.m, p_.n);
    Columns<T> a = matrix(0, p_.m, p_.n);
    Int ld = a.ld(), info = 0;
    T* tau = at<T>(2, k);
    if (k > 0)
      with_work<T>([&](T* work, const Int* lwork) {
        lapack::geqrf<T>()(&m_, &n_, a.get(), &ld, tau, work, lwork, &info);
      });
    a.store(at<T>(1, p_.m * p_.n));
  }

  void geqp3() {
    const std::int64_t k = std::min(p_.m, p_.n);
    Columns<T> a = matrix(0, p_.m, p_.n);
    const Int* fixed = at<Int>(1, p_.n);
    Int* jpvt = at<Int>(3, p_.n);
    std::copy(fixed, fixed + p_.n, jpvt);
    Int ld = a.ld(), info = 0;
    T* tau = at<T>(4, k);
    if (k > 0) {
      std::vector<R> rwork(kComplex<T> ? static_cast<std::size_t>(2 * p_.n) : 0);
      with_work<T>([&](T* work, const Int* lwork) {
        if constexpr (kComplex<T>)
          lapack::geqp3_complex<T>()(&m_, &n_, a.get(), &ld, jpvt, tau, work, lwork, rwork.data(),
                                     &info);
        else
          lapack::geqp3_real<T>()(&m_, &n_, a.get(), &ld, jpvt, tau, work, lwork, &info);
      });
    } else {
      for (std::int64_t j = 0; j < p_.n; ++j) jpvt[j] = static_cast<Int>(j + 1);
    }
    a.store(at<T>(2, p_.m * p_.n));
  }

  void orgqr() {
    Columns<T> a = matrix(0, p_.m, p_.n);
    const T* tau = at<T>(1, p_.k);
    Int k = to_int(p_.k), ld = a.ld(), info = 0;
    if (p_.m > 0 && p_.n > 0)
      with_work<T>([&](T* work, const Int* lwork) {
        lapack::orgqr<T>()(&m_, &n_, &k, a.get(), &ld, tau, work, lwork, &info);
      });
    a.store(at<T>(2, p_.m * p_.n));
  }

  void ormqr() {
    Columns<T> a = matrix(0, p_.m, p_.n), c = matrix(2, p_.p, p_.q);
    const T* tau = at<T>(1, p_.k);
    Int k = to_int(p_.k), ld = a.ld(), ldc = c.ld(), info = 0;
    Int rows = to_int(p_.p), columns = to_int(p_.q);
    const char side = p_.side_left ? 'L' : 'R';
    const char trans = !p_.transpose ? 'N' : kComplex<T> ? 'C' : 'T';
    if (p_.p > 0 && p_.q > 0 && p_.k > 0)
      with_work<T>([&](T* work, const Int* lwork) {
        lapack::ormqr<T>()(&side, &trans, &rows, &columns, &k, a.get(), &ld, tau, c.get(), &ldc,
                           work, lwork, &info, 1, 1);
      });
    c.store(at<T>(3, p_.p * p_.q));
  }

  void svd(bool divide) {
    const std::int64_t k = std::min(p_.m, p_.n);
    Columns<T> a = matrix(0, p_.m, p_.n), u(p_.m, p_.u), vt(p_.vt, p_.n);
    R* s = at<R>(2, k);
    Int ld = a.ld(), ldu = u.ld(), ldvt = vt.ld(), info = 0;
    if (!all_finite(a)) {
      info = kNotFinite;
    } else if (k > 0) {
      divide ? gesdd(a.get(), ld, s, u.get(), ldu, vt.get(), ldvt, info)
             : gesvd(a.get(), ld, s, u.get(), ldu, vt.get(), ldvt, info);
    } else if (p_.mode == 'A') {
      for (std::int64_t i = 0; i < p_.m; ++i) u.at(i, i) = T(1);
      for (std::int64_t i = 0; i < p_.n; ++i) vt.at(i, i) = T(1);
    }
    if (info == kNotFinite) {
      std::fill_n(s, k, nan_of<R>());
      std::fill(u.data.begin(), u.data.end(), nan_of<T>());
      std::fill(vt.data.begin(), vt.data.end(), nan_of<T>());
    }
    a.store(at<T>(1, p_.m * p_.n));
    // Without vectors the results for them are there and hold zeros.
    const std::int64_t columns = p_.mode == 'N' ? p_.q : p_.u;
    const std::int64_t rows = p_.mode == 'N' ? p_.p : p_.vt;
    T* u_out = at<T>(3, p_.m * columns);
    T* vt_out = at<T>(4, rows * p_.n);
    if (p_.mode == 'N') {
      std::fill_n(u_out, p_.m * columns, T());
      std::fill_n(vt_out, rows * p_.n, T());
    } else {
      u.store(u_out);
      vt.store(vt_out);
    }
    *at<Int>(5, 1) = info;
  }

  void syevd() {
    Columns<T> a = matrix(0, p_.n, p_.n);
    R* w = at<R>(2, p_.n);
    Int ld = a.ld(), info = 0;
    if (!all_finite(a))
      info = kNotFinite;
    else if (p_.n > 0)
      syevd(a.get(), ld, w, info);
    if (info == kNotFinite) {
      std::fill_n(w, p_.n, nan_of<R>());
      std::fill(a.data.begin(), a.data.end(), nan_of<T>());
    }
    a.store(at<T>(1, p_.n * p_.n));
    *at<Int>(3, 1) = info;
  }

  void geev() {
    const std::int64_t n = p_.n;
    const bool left = p_.left == 'V', right = p_.right == 'V';
    Columns<T> a = matrix(0, n, n), vl(n, left ? n : 0), vr(n, right ? n : 0);
    constexpr int kVectors = kComplex<T> ? 2 : 3;
    T* w = at<T>(1, n);
    T* wi = kComplex<T> ? nullptr : at<T>(2, n);
    Int ld = a.ld(), info = 0;
    if (!all_finite(a)) {
      info = kNotFinite;
      std::fill_n(w, n, nan_of<T>());
      if (wi) std::fill_n(wi, n, nan_of<T>());
    } else if (n > 0) {
      std::vector<R> rwork(kComplex<T> ? static_cast<std::size_t>(2 * n) : 0);
      with_work<T>([&](T* work, const Int* lwork) {
        if constexpr (kComplex<T>)
          geev_complex<T>()(&p_.left, &p_.right, &n_, a.get(), &ld, w, vl.get(), &ld, vr.get(), &ld,
                            work, lwork, rwork.data(), &info, 1, 1);
        else
          geev_real<T>()(&p_.left, &p_.right, &n_, a.get(), &ld, w, wi, vl.get(), &ld, vr.get(),
                         &ld, work, lwork, &info, 1, 1);
      });
    }
    store_vectors(vl, left, wi, info, at<C>(kVectors, n * n));
    store_vectors(vr, right, wi, info, at<C>(kVectors + 1, n * n));
    *at<Int>(kVectors + 2, 1) = info;
  }

  void gees() {
    const std::int64_t n = p_.n;
    const bool vectors = p_.mode == 'V';
    Columns<T> a = matrix(0, n, n), vs(n, n);
    T* w = at<T>(3, n);
    T* wi = kComplex<T> ? nullptr : at<T>(4, n);
    constexpr int kSdim = kComplex<T> ? 4 : 5;
    Int ld = a.ld(), info = 0, sdim = 0;
    const char sort = 'N';
    if (!all_finite(a)) {
      info = kNotFinite;
      std::fill_n(w, n, nan_of<T>());
      if (wi) std::fill_n(wi, n, nan_of<T>());
      std::fill(a.data.begin(), a.data.end(), nan_of<T>());
      std::fill(vs.data.begin(), vs.data.end(), nan_of<T>());
    } else if (n > 0) {
      std::vector<R> rwork(kComplex<T> ? static_cast<std::size_t>(n) : 0);
      with_work<T>([&](T* work, const Int* lwork) {
        if constexpr (kComplex<T>)
          gees_complex<T>()(&p_.mode, &sort, nullptr, &n_, a.get(), &ld, &sdim, w, vs.get(), &ld,
                            work, lwork, rwork.data(), nullptr, &info, 1, 1);
        else
          gees_real<T>()(&p_.mode, &sort, nullptr, &n_, a.get(), &ld, &sdim, w, wi, vs.get(), &ld,
                         work, lwork, nullptr, &info, 1, 1);
      });
    }
    a.store(at<T>(1, n * n));
    T* out = at<T>(2, n * n);
    if (vectors)
      vs.store(out);
    else
      std::fill_n(out, n * n, T());
    *at<Int>(kSdim, 1) = sdim;
    *at<Int>(kSdim + 1, 1) = info;
  }

  void gehrd() {
    const std::int64_t n = p_.n;
    Columns<T> a = matrix(0, n, n);
    T* tau = at<T>(2, std::max<std::int64_t>(0, n - 1));
    Int ld = a.ld(), info = 0, low = to_int(p_.low), high = to_int(p_.high);
    if (n > 0)
      with_work<T>([&](T* work, const Int* lwork) {
        lapack::gehrd<T>()(&n_, &low, &high, a.get(), &ld, tau, work, lwork, &info);
      });
    a.store(at<T>(1, n * n));
    *at<Int>(3, 1) = info;
  }

  void sytrd() {
    const std::int64_t n = p_.n, below = std::max<std::int64_t>(0, n - 1);
    Columns<T> a = matrix(0, n, n);
    R *d = at<R>(2, n), *e = at<R>(3, below);
    T* tau = at<T>(4, below);
    Int ld = a.ld(), info = 0;
    if (n > 0)
      with_work<T>([&](T* work, const Int* lwork) {
        lapack::sytrd<T>()(&p_.uplo, &n_, a.get(), &ld, d, e, tau, work, lwork, &info, 1);
      });
    a.store(at<T>(1, n * n));
    *at<Int>(5, 1) = info;
  }

  // The first element of dl and the last of du lie outside of the matrix.
  void gtsv() {
    const std::int64_t n = p_.n;
    T* diagonals[3];
    for (int k = 0; k < 3; ++k) {
      const T* in = at<T>(k, n);
      diagonals[k] = at<T>(4 + k, n);
      std::copy(in, in + n, diagonals[k]);
    }
    Columns<T> b = matrix(3, n, p_.q);
    Int ld = b.ld(), info = 0, nrhs = to_int(p_.q);
    if (n > 0)
      lapack::gtsv<T>()(&n_, &nrhs, diagonals[0] + (n > 1 ? 1 : 0), diagonals[1], diagonals[2],
                        b.get(), &ld, &info);
    b.store(at<T>(7, n * p_.q));
    *at<Int>(8, 1) = info;
  }

 private:
  // The i-th piece of `size` elements of a buffer.
  template <class U>
  U* at(int buffer, std::int64_t size) const {
    return static_cast<U*>(buffers_[buffer]) + i_ * size;
  }
  Columns<T> matrix(int buffer, std::int64_t rows, std::int64_t columns) const {
    return Columns<T>(at<T>(buffer, rows * columns), rows, columns);
  }

  void gesdd(T* a, Int ld, R* s, T* u, Int ldu, T* vt, Int ldvt, Int& info) {
    const auto k = static_cast<std::size_t>(std::min(p_.m, p_.n));
    const auto most = static_cast<std::size_t>(std::max(p_.m, p_.n));
    std::vector<Int> iwork(8 * k);
    // The larger of what LAPACK 3.7 and its predecessors ask for.
    const std::size_t reals = !kComplex<T>     ? 0
                              : p_.mode == 'N' ? 7 * k
                                               : k * std::max(5 * k + 7, 2 * most + 2 * k + 1);
    std::vector<R> rwork(reals + kSlack);
    with_work<T>([&](T* work, const Int* lwork) {
      if constexpr (kComplex<T>)
        gesdd_complex<T>()(&p_.mode, &m_, &n_, a, &ld, s, u, &ldu, vt, &ldvt, work, lwork,
                           rwork.data(), iwork.data(), &info, 1);
      else
        gesdd_real<T>()(&p_.mode, &m_, &n_, a, &ld, s, u, &ldu, vt, &ldvt, work, lwork,
                        iwork.data(), &info, 1);
    });
  }

  void gesvd(T* a, Int ld, R* s, T* u, Int ldu, T* vt, Int ldvt, Int& info) {
    const auto k = static_cast<std::size_t>(std::min(p_.m, p_.n));
    std::vector<R> rwork(kComplex<T> ? 5 * k : 0);
    with_work<T>([&](T* work, const Int* lwork) {
      if constexpr (kComplex<T>)
        gesvd_complex<T>()(&p_.mode, &p_.mode, &m_, &n_, a, &ld, s, u, &ldu, vt, &ldvt, work, lwork,
                           rwork.data(), &info, 1, 1);
      else
        gesvd_real<T>()(&p_.mode, &p_.mode, &m_, &n_, a, &ld, s, u, &ldu, vt, &ldvt, work, lwork,
                        &info, 1, 1);
    });
  }

  void syevd(T* a, Int ld, R* w, Int& info) {
    // Sizes as the documentation gives them: a query answers in T, which may round them.
    const std::int64_t n = p_.n;
    const bool vectors = p_.mode == 'V';
    const Int liwork = to_int(vectors ? 3 + 5 * n : 1);
    std::vector<Int> iwork(static_cast<std::size_t>(liwork));
    Int lwork, lrwork = 1;
    if constexpr (kComplex<T>) {
      lwork = to_int(vectors ? 2 * n + n * n : n + 1);
      lrwork = to_int(vectors ? 1 + 5 * n + 2 * n * n : n);
    } else {
      lwork = to_int(vectors ? 1 + 6 * n + 2 * n * n : 2 * n + 1);
    }
    // More than the least lets the tridiagonal reduction work in blocks.
    lwork = to_int(std::max<std::int64_t>(lwork, n * (kBlockSize + 2)));
    std::vector<T> work(static_cast<std::size_t>(lwork) + kSlack);
    std::vector<R> rwork(kComplex<T> ? static_cast<std::size_t>(lrwork) + kSlack : 0);
    if constexpr (kComplex<T>)
      syevd_complex<T>()(&p_.mode, &p_.uplo, &n_, a, &ld, w, work.data(), &lwork, rwork.data(),
                         &lrwork, iwork.data(), &liwork, &info, 1, 1);
    else
      syevd_real<T>()(&p_.mode, &p_.uplo, &n_, a, &ld, w, work.data(), &lwork, iwork.data(),
                      &liwork, &info, 1, 1);
  }

  // Eigenvectors as complex columns. geev packs those of a conjugate pair into two real ones, the
  // real and the imaginary part of the first.
  void store_vectors(Columns<T>& v, bool wanted, const T* wi, Int info, C* out) const {
    const std::int64_t n = p_.n;
    if (!wanted || info == kNotFinite) {
      std::fill_n(out, n * n, wanted ? nan_of<C>() : C());
      return;
    }
    if constexpr (kComplex<T>) {
      v.store(out);
    } else {
      for (std::int64_t j = 0; j < n; ++j) {
        const bool pair = wi[j] != 0 && j + 1 < n;
        for (std::int64_t i = 0; i < n; ++i) {
          out[i * n + j] = C(v.at(i, j), pair ? v.at(i, j + 1) : R());
          if (pair) out[i * n + j + 1] = std::conj(out[i * n + j]);
        }
        if (pair) ++j;
      }
    }
  }

  static constexpr std::int64_t kBlockSize = 64;

  const Problem& p_;
  void* const* buffers_;
  std::int64_t i_;
  Int m_, n_;
};

template <class T>
void solve_as(const Problem& problem, void* const* buffers, std::int64_t i) {
  Solver<T> s(problem, buffers, i);
  switch (problem.routine) {
    case Routine::kGetrf: return s.getrf();
    case Routine::kGeqrf: return s.geqrf();
    case Routine::kGeqp3: return s.geqp3();
    case Routine::kOrgqr: return s.orgqr();
    case Routine::kOrmqr: return s.ormqr();
    case Routine::kGesdd: return s.svd(true);
    case Routine::kGesvd: return s.svd(false);
    case Routine::kSyevd: return s.syevd();
    case Routine::kGeev: return s.geev();
    case Routine::kGees: return s.gees();
    case Routine::kGehrd: return s.gehrd();
    case Routine::kSytrd: return s.sytrd();
    case Routine::kGtsv: return s.gtsv();
  }
}

}  // namespace

void solve(const Problem& problem, void* const* buffers, std::int64_t i) {
  switch (problem.dtype) {
    case DType::kF32: return solve_as<float>(problem, buffers, i);
    case DType::kF64: return solve_as<double>(problem, buffers, i);
    case DType::kC64: return solve_as<std::complex<float>>(problem, buffers, i);
    default: return solve_as<std::complex<double>>(problem, buffers, i);
  }
}

}  // namespace xylem::ir::lapack
