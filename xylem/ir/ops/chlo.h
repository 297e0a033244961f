#pragma once

#include <span>

#include "xylem/ir/op_def.h"

// CHLO's ops beyond those of the elementwise families, and old StableHLO ops. All have a
// decomposition.

namespace xylem::ir::ops {

// log |Γ(x)|; the derivative of log Γ; floats.
extern const OpDef kLgamma;
extern const OpDef kDigamma;
// polygamma(n, x): the n-th derivative of digamma. zeta(x, q): the sum over i >= 0 of (q + i)^-x.
extern const OpDef kPolygamma;
extern const OpDef kZeta;
// e^-|x| I1(x), the scaled modified Bessel function of order 1.
extern const OpDef kBesselI1e;
extern const OpDef kIsInf;
extern const OpDef kIsPosInf;
extern const OpDef kIsNegInf;
extern const OpDef kConj;
// The high half of the product of integers, of twice their width.
extern const OpDef kMulhi;
// constant_like(x) {value}: x's type filled with a value. chlo.constant {value}.
extern const OpDef kConstantLike;
extern const OpDef kChloConstant;
// ragged_dot(lhs, rhs, group_sizes) with dot_general's dimension lists, lhs_ragged_dimensions
// (one), rhs_group_dimensions (at most one), precision_config, result_dtype. By where the ragged
// dimension lies: an lhs free one ([m,k], [g,k,n] -> [m,n]), a contracted one ([m,k], [k,n] ->
// [g,m,n]), a batch one (dot_general).
extern const OpDef kRaggedDot;
// chlo.scan(inputs, inits) {operandSegmentSizes, dimension, scan_dim_size, is_reverse,
// is_associative}: region (slices without the dimension, carries) -> (outputs, carries).
extern const OpDef kChloScan;
// broadcast_add and so on {broadcast_dimensions}: the op after NumPy's broadcasting, or of the
// smaller operand into the named dimensions.
std::span<const OpDef* const> broadcast_ops();

// einsum(a, b) {einsum_config = "ij,jk->ik", result_types}, unary_einsum(a).
extern const OpDef kEinsum;
extern const OpDef kUnaryEinsum;
// torch_index_select(x, indices) {dim, batch_dims}.
extern const OpDef kTorchIndexSelect;

}  // namespace xylem::ir::ops
