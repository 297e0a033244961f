#pragma once

namespace xylem::ir::lapack {

// The address of a Fortran routine of LAPACK ("dgetrf_"), with 32-bit integers and hidden string
// lengths behind the arguments, as gfortran passes them. The library is loaded at the first call:
// the file that XYLEM_LAPACK names, else liblapack.so.3, which on Debian is the installed LAPACK of
// highest priority (OpenBLAS', the reference's, …). OpenBLAS is kept to one thread, so that results
// do not depend on the number of threads, unless the process uses it otherwise too or
// OPENBLAS_NUM_THREADS says how many. Thread safe. UserError if there is none.
void* routine(const char* name);

// The same, but null where there is no library or no such routine.
void* find_routine(const char* name) noexcept;

}  // namespace xylem::ir::lapack
