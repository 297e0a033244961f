#pragma once

#include <string_view>

#include "xylem/core/transform/rules.h"
#include "xylem/ir/expr.h"

// Matrices in the last two dimensions, behind any number of batch dimensions: what the rules of
// linear algebra are written in.
namespace xylem::lax {

Dims range(int n);
// Of equal batch dimensions.
ir::Expr matmul(ir::Expr a, ir::Expr b);
ir::Expr conj(ir::Expr x);
ir::Expr swapped(ir::Expr x);  // transpose
ir::Expr adjoint(ir::Expr x);
// yes where row `direction` column + offset, else no.
ir::Expr where_triangle(ir::Expr x, const char* direction, ir::Expr yes, ir::Expr no);
// The lower or upper triangle, without its diagonal if strict; zero elsewhere.
ir::Expr triangle(ir::Expr x, bool lower, bool strict);
// stablehlo.triangular_solve.
ir::Expr triangular_solve(ir::Expr a, ir::Expr b, bool left, bool lower, bool unit,
                          std::string_view transpose);

// Identity matrices of a's type (square or not).
ir::Expr identity_like(ir::Expr a);
// [..., n, n] -> [..., n]
ir::Expr diagonal_of(ir::Expr a);
// [..., n] -> [..., rows, n] and [..., n, columns].
ir::Expr as_rows(ir::Expr x, std::int64_t rows);
ir::Expr as_columns(ir::Expr x, std::int64_t columns);
// Rows [r0, r1) and columns [c0, c1).
ir::Expr block(ir::Expr a, std::int64_t r0, std::int64_t r1, std::int64_t c0, std::int64_t c1);
// a[permutation, :] for every matrix of the batch; permutation [..., m].
ir::Expr take_rows(ir::Expr a, ir::Expr permutation);
ir::Expr take_columns(ir::Expr a, ir::Expr permutation);

// x with a x = b, or a^H x = b, by LU with pivots; b has columns.
ir::Expr lu_solve(ir::Expr a, ir::Expr b, bool adjoint = false);
// The same from lu and permutation of a. mode: "NO_TRANSPOSE", "TRANSPOSE" or "ADJOINT".
ir::Expr lu_solve_factored(ir::Expr lu, ir::Expr permutation, ir::Expr b, std::string_view mode);

// The batching rule of ops that take any number of leading dimensions: everything in front,
// whatever is not mapped broadcast.
void leading_batch(transform::BatchCall& c);

// Rules of xylem/ir/ops/decompositions.h.
void register_decomposition_rules(transform::RuleTable& t);

}  // namespace xylem::lax
