#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "xylem/ir/graph.h"

namespace xylem::ir::lapack {

// A custom call of a LAPACK routine as JAX writes them for CPUs,
//
//   custom_call @lapack_<s|d|c|z><routine>_ffi(operands) {mhlo.backend_config = {options}}
//
// for getrf, geqrf, geqp3, orgqr (ungqr), ormqr (unmqr), gesdd, gesvd, syevd (heevd), geev, gees,
// gehrd, sytrd (hetrd) and gtsv. Operands and results have leading batch dimensions in common;
// info is 0, or what the routine reports; a matrix that is not finite gives NaN and info -4 in the
// routines that iterate (singular values, eigenvalues, Schur forms). Immutable.
class Call {
 public:
  virtual ~Call() = default;
  // On row-major, contiguous memory: operands first, results behind them; they do not overlap. The
  // matrices of a batch are spread over the process's pool. Thread safe. UserError if there is no
  // LAPACK.
  virtual void run(void* const* buffers) const = 0;
  // Estimated duration in ns.
  virtual double work() const = 0;
};

// Whether a custom call's target is one of these routines.
bool is_target(std::string_view target);
bool is_call(const Op& op);

// UserError naming what does not fit: options, dtypes or shapes that are not JAX's.
std::shared_ptr<const Call> make_call(const Op& op, std::span<const Type> operands,
                                      std::span<const Type> results);

}  // namespace xylem::ir::lapack
