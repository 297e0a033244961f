#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "xylem/ir/builder.h"
#include "xylem/ir/op_def.h"

namespace xylem::ir::ops {

// Whether an op is a custom_call of linear algebra, as JAX writes them, that has a meaning in other
// ops: lapack_{s,d,c,z}{trsm,potrf}_ffi of its programs for CPUs, and LuDecomposition, Qr,
// ProductOfElementaryHouseholderReflectors and Eigh of those for TPUs.
bool is_lapack_call(const Op& op);

// The call as triangular_solve, as cholesky with a status of 0, or 1 for a matrix that is not
// positive definite, or as a factorisation (decompositions.h). UserError if its attributes or types
// are not those that JAX writes.
std::vector<ValueId> expand_lapack_call(Builder& b, const Op& op,
                                        std::span<const ValueId> operands);

// The value of such a call: that of its expansion.
std::vector<HostArray> evaluate_lapack_call(const EvalCall& call);

// Whether a target is one of those routines.
bool is_lapack_target(std::string_view target);

}  // namespace xylem::ir::ops
