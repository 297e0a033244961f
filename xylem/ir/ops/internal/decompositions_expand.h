#pragma once

#include <span>
#include <vector>

#include "xylem/ir/builder.h"

// Decompositions of the ops of decompositions.h.

namespace xylem::ir::ops {

std::vector<ValueId> expand_lu(Builder& b, const Op& op, std::span<const ValueId> in);
std::vector<ValueId> expand_lu_pivots(Builder& b, const Op& op, std::span<const ValueId> in);
std::vector<ValueId> expand_geqrf(Builder& b, const Op& op, std::span<const ValueId> in);
std::vector<ValueId> expand_geqp3(Builder& b, const Op& op, std::span<const ValueId> in);
std::vector<ValueId> expand_householder_product(Builder& b, const Op& op,
                                                std::span<const ValueId> in);
std::vector<ValueId> expand_ormqr(Builder& b, const Op& op, std::span<const ValueId> in);
std::vector<ValueId> expand_qr(Builder& b, const Op& op, std::span<const ValueId> in);
std::vector<ValueId> expand_eigh(Builder& b, const Op& op, std::span<const ValueId> in);
std::vector<ValueId> expand_svd(Builder& b, const Op& op, std::span<const ValueId> in);
std::vector<ValueId> expand_eig(Builder& b, const Op& op, std::span<const ValueId> in);
std::vector<ValueId> expand_schur(Builder& b, const Op& op, std::span<const ValueId> in);
std::vector<ValueId> expand_hessenberg(Builder& b, const Op& op, std::span<const ValueId> in);
std::vector<ValueId> expand_tridiagonal(Builder& b, const Op& op, std::span<const ValueId> in);
std::vector<ValueId> expand_tridiagonal_solve(Builder& b, const Op& op,
                                              std::span<const ValueId> in);

}  // namespace xylem::ir::ops
