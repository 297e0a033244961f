#pragma once

#include <complex>
#include <cstddef>
#include <string>
#include <type_traits>

#include "xylem/ir/lapack/library.h"

// LAPACK's routines as function types, by element type.

namespace xylem::ir::lapack {

using Int = int;             // LAPACK's INTEGER
using Length = std::size_t;  // of a CHARACTER argument

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <class T>
using Real = typename RealOf<T>::type;
template <class T>
inline constexpr bool kComplex = !std::is_same_v<T, Real<T>>;

template <class T>
constexpr char prefix() {
  constexpr bool wide = sizeof(Real<T>) == 8;
  return kComplex<T> ? (wide ? 'z' : 'c') : (wide ? 'd' : 's');
}

// The routine for T, by its names for real and complex types without the type's letter.
template <class T>
void* find_routine(const char* real, const char* complex) {
  std::string name(1, prefix<T>());
  return routine((name + (kComplex<T> ? complex : real) + "_").c_str());
}

template <class T, class F>
F* find_as(const char* real, const char* complex) {
  return reinterpret_cast<F*>(find_routine<T>(real, complex));
}

// Each `name<T>()` gives the routine; the address is looked up once.
#define XYLEM_LAPACK_ROUTINE(name, real, complex, ...)                   \
  template <class T>                                                     \
  auto* name() {                                                         \
    static auto* const f = find_as<T, void(__VA_ARGS__)>(real, complex); \
    return f;                                                            \
  }

using In = const Int*;
using Char = const char*;

XYLEM_LAPACK_ROUTINE(getrf, "getrf", "getrf", In m, In n, T* a, In lda, Int* ipiv, Int* info)
XYLEM_LAPACK_ROUTINE(geqrf, "geqrf", "geqrf", In m, In n, T* a, In lda, T* tau, T* work, In lwork,
                     Int* info)
XYLEM_LAPACK_ROUTINE(geqp3_real, "geqp3", "geqp3", In m, In n, T* a, In lda, Int* jpvt, T* tau,
                     T* work, In lwork, Int* info)
XYLEM_LAPACK_ROUTINE(geqp3_complex, "geqp3", "geqp3", In m, In n, T* a, In lda, Int* jpvt, T* tau,
                     T* work, In lwork, Real<T>* rwork, Int* info)
XYLEM_LAPACK_ROUTINE(orgqr, "orgqr", "ungqr", In m, In n, In k, T* a, In lda, const T* tau, T* work,
                     In lwork, Int* info)
XYLEM_LAPACK_ROUTINE(ormqr, "ormqr", "unmqr", Char side, Char trans, In m, In n, In k, const T* a,
                     In lda, const T* tau, T* c, In ldc, T* work, In lwork, Int* info, Length,
                     Length)
XYLEM_LAPACK_ROUTINE(gesdd_real, "gesdd", "gesdd", Char jobz, In m, In n, T* a, In lda, T* s, T* u,
                     In ldu, T* vt, In ldvt, T* work, In lwork, Int* iwork, Int* info, Length)
XYLEM_LAPACK_ROUTINE(gesdd_complex, "gesdd", "gesdd", Char jobz, In m, In n, T* a, In lda,
                     Real<T>* s, T* u, In ldu, T* vt, In ldvt, T* work, In lwork, Real<T>* rwork,
                     Int* iwork, Int* info, Length)
XYLEM_LAPACK_ROUTINE(gesvd_real, "gesvd", "gesvd", Char jobu, Char jobvt, In m, In n, T* a, In lda,
                     T* s, T* u, In ldu, T* vt, In ldvt, T* work, In lwork, Int* info, Length,
                     Length)
XYLEM_LAPACK_ROUTINE(gesvd_complex, "gesvd", "gesvd", Char jobu, Char jobvt, In m, In n, T* a,
                     In lda, Real<T>* s, T* u, In ldu, T* vt, In ldvt, T* work, In lwork,
                     Real<T>* rwork, Int* info, Length, Length)
XYLEM_LAPACK_ROUTINE(syevd_real, "syevd", "heevd", Char jobz, Char uplo, In n, T* a, In lda, T* w,
                     T* work, In lwork, Int* iwork, In liwork, Int* info, Length, Length)
XYLEM_LAPACK_ROUTINE(syevd_complex, "syevd", "heevd", Char jobz, Char uplo, In n, T* a, In lda,
                     Real<T>* w, T* work, In lwork, Real<T>* rwork, In lrwork, Int* iwork,
                     In liwork, Int* info, Length, Length)
XYLEM_LAPACK_ROUTINE(geev_real, "geev", "geev", Char jobvl, Char jobvr, In n, T* a, In lda, T* wr,
                     T* wi, T* vl, In ldvl, T* vr, In ldvr, T* work, In lwork, Int* info, Length,
                     Length)
XYLEM_LAPACK_ROUTINE(geev_complex, "geev", "geev", Char jobvl, Char jobvr, In n, T* a, In lda, T* w,
                     T* vl, In ldvl, T* vr, In ldvr, T* work, In lwork, Real<T>* rwork, Int* info,
                     Length, Length)
XYLEM_LAPACK_ROUTINE(gees_real, "gees", "gees", Char jobvs, Char sort, void* select, In n, T* a,
                     In lda, Int* sdim, T* wr, T* wi, T* vs, In ldvs, T* work, In lwork, Int* bwork,
                     Int* info, Length, Length)
XYLEM_LAPACK_ROUTINE(gees_complex, "gees", "gees", Char jobvs, Char sort, void* select, In n, T* a,
                     In lda, Int* sdim, T* w, T* vs, In ldvs, T* work, In lwork, Real<T>* rwork,
                     Int* bwork, Int* info, Length, Length)
XYLEM_LAPACK_ROUTINE(gehrd, "gehrd", "gehrd", In n, In ilo, In ihi, T* a, In lda, T* tau, T* work,
                     In lwork, Int* info)
XYLEM_LAPACK_ROUTINE(sytrd, "sytrd", "hetrd", Char uplo, In n, T* a, In lda, Real<T>* d, Real<T>* e,
                     T* tau, T* work, In lwork, Int* info, Length)
XYLEM_LAPACK_ROUTINE(gtsv, "gtsv", "gtsv", In n, In nrhs, T* dl, T* d, T* du, T* b, In ldb,
                     Int* info)

#undef XYLEM_LAPACK_ROUTINE

}  // namespace xylem::ir::lapack
