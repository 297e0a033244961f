#pragma once

namespace xylem::ir::lapack {

// The address of a Fortran routine of LAPACK ("dgetrf_"), with 32-bit integers and hidden string
// lengths behind the arguments, as gfortran passes them. The library is loaded at the first call:
// the file that XYLEM_LAPACK names, else liblapack.so.3, which on Debian is the installed LAPACK of
// highest priority (OpenBLAS', the reference's, …). Thread safe. UserError if there is none.
void* routine(const char* name);

}  // namespace xylem::ir::lapack
