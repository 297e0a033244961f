#include "xylem/ir/ops/decompositions.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/internal/decompositions_expand.h"
#include "xylem/ir/ops/internal/shape_util.h"

namespace xylem::ir::ops {
namespace {

using Kind = DimMap::FactorKind;

// Operand i: a tensor of at least `inner` dimensions, all static, of a dtype that LAPACK has.
const Type& floating(const OpCall& call, int i, int inner) {
  const Type& t = tensor_operand(call, i, kElInexact);
  if (t.dtype() != DType::kF32 && t.dtype() != DType::kF64 && t.dtype() != DType::kC64 &&
      t.dtype() != DType::kC128)
    fail(call, "c1", "the dtype must be f32, f64, c64 or c128",
         fmt::format("operand {} is {}", i, t.to_string()), "Convert it to f32");
  if (t.rank() < inner || !t.is_static())
    fail(call, "c2",
         fmt::format("operand {} must have at least {} dimension{}, of static size", i, inner,
                     inner == 1 ? "" : "s"),
         "it is " + t.to_string(), inner == 2 ? "Pass matrices" : "Pass vectors");
  return t;
}

std::int64_t size(const Type& t, int from_end) { return t.dim(t.rank() - from_end); }

// t with other sizes in place of the last `drop`.
Type resized(const Type& t, int drop, std::initializer_list<std::int64_t> sizes, DType dtype) {
  Dims d = t.dims();
  d.resize(d.size() - static_cast<std::size_t>(drop));
  for (std::int64_t s : sizes) d.push_back(s);
  return Type::tensor(dtype, d);
}
Type vector_of(const Type& a, std::int64_t n, DType t) { return resized(a, 2, {n}, t); }
Type matrix_of(const Type& a, std::int64_t m, std::int64_t n) {
  return resized(a, 2, {m, n}, a.dtype());
}

const Type& square(const OpCall& call) {
  const Type& a = floating(call, 0, 2);
  if (size(a, 1) != size(a, 2))
    fail(call, "c3", "the matrices must be square", "the operand is " + a.to_string(),
         "Cut or pad the last two dimensions to one size");
  return a;
}
const Type& square_not_empty(const OpCall& call) {
  const Type& a = square(call);
  if (size(a, 1) == 0)
    fail(call, "c4", "the matrices must not be empty", "the operand is " + a.to_string(),
         "Leave the call out");
  return a;
}

// Operand i must be exactly `expected`.
void need(const OpCall& call, int i, const Type& expected) {
  const Type& t = call.operands[static_cast<std::size_t>(i)];
  if (t == expected) return;
  fail(call, "c3", fmt::format("operand {} must be {}", i, expected.to_string()),
       "it is " + t.to_string(), "Make operands agree in batch, sizes and dtype");
}

using Types = std::vector<Type>;

Types lu_shape(const OpCall& call) {
  const Type& a = floating(call, 0, 2);
  const std::int64_t m = size(a, 2), n = size(a, 1);
  return {a, vector_of(a, std::min(m, n), DType::kI32), vector_of(a, m, DType::kI32)};
}

Types lu_pivots_shape(const OpCall& call) {
  const Type& p = tensor_operand(call, 0, kElSigned);
  if (p.dtype() != DType::kI32 || p.rank() < 1 || !p.is_static())
    fail(call, "c1", "the pivots must be i32 of at least 1 dimension, of static size",
         "they are " + p.to_string(), "Pass the second result of lu");
  const std::int64_t n = call.attrs.i64("permutation_size");
  if (n < size(p, 1))
    fail(call, "c2", fmt::format("permutation_size must be at least {}", size(p, 1)),
         fmt::format("it is {}", n), "Pass the number of rows of the factored matrix");
  return {resized(p, 1, {result_size(call, "c2", n)}, DType::kI32)};
}

Types geqrf_shape(const OpCall& call) {
  const Type& a = floating(call, 0, 2);
  return {a, vector_of(a, std::min(size(a, 1), size(a, 2)), a.dtype())};
}

Types geqp3_shape(const OpCall& call) {
  const Type& a = floating(call, 0, 2);
  const Type pivots = vector_of(a, size(a, 1), DType::kI32);
  need(call, 1, pivots);
  return {a, pivots, vector_of(a, std::min(size(a, 1), size(a, 2)), a.dtype())};
}

// The taus (operand 1) of the reflectors in the columns of operand 0.
void check_reflectors(const OpCall& call, const Type& a) {
  const Type& taus = floating(call, 1, 1);
  const std::int64_t k = size(taus, 1);
  if (k > std::min(size(a, 1), size(a, 2)))
    fail(call, "c4", "at most as many taus as the matrix has rows and columns",
         fmt::format("the matrix is {}, the taus are {}", a.to_string(), taus.to_string()),
         "Pass the taus of the same factorisation");
  need(call, 1, vector_of(a, k, a.dtype()));
}

Types householder_product_shape(const OpCall& call) {
  const Type& a = floating(call, 0, 2);
  if (size(a, 2) < size(a, 1))
    fail(call, "c5", "the matrix must have at least as many rows as columns",
         "it is " + a.to_string(), "Take its first columns");
  check_reflectors(call, a);
  return {a};
}

Types ormqr_shape(const OpCall& call) {
  const Type& a = floating(call, 0, 2);
  check_reflectors(call, a);
  const Type& c = floating(call, 2, 2);
  const bool left = call.attrs.flag("left");
  if (size(c, left ? 2 : 1) != size(a, 2))
    fail(call, "c5", fmt::format("c must have as many {} as a has rows", left ? "rows" : "columns"),
         fmt::format("a is {}, c is {}", a.to_string(), c.to_string()), "Cut or pad c");
  need(call, 2, matrix_of(a, size(c, 2), size(c, 1)));
  return {c};
}

Types qr_shape(const OpCall& call) {
  const Type& a = floating(call, 0, 2);
  const std::int64_t m = size(a, 2), n = size(a, 1);
  const std::int64_t k = call.attrs.flag("full_matrices") ? m : std::min(m, n);
  Types out{matrix_of(a, m, k), matrix_of(a, k, n)};
  if (call.attrs.flag("pivoting")) out.push_back(vector_of(a, n, DType::kI32));
  return out;
}

Types eigh_shape(const OpCall& call) {
  const Type& a = square(call);
  return {a, vector_of(a, size(a, 1), real_dtype(a.dtype()))};
}

Types svd_shape(const OpCall& call) {
  const Type& a = floating(call, 0, 2);
  const std::int64_t m = size(a, 2), n = size(a, 1), k = std::min(m, n);
  const bool full = call.attrs.flag("full_matrices");
  Types out{vector_of(a, k, real_dtype(a.dtype()))};
  if (call.attrs.flag("compute_uv")) {
    out.push_back(matrix_of(a, m, full ? m : k));
    out.push_back(matrix_of(a, full ? n : k, n));
  }
  return out;
}

Types eig_shape(const OpCall& call) {
  const Type& a = square(call);
  const DType t = complex_dtype(real_dtype(a.dtype()));
  Types out{vector_of(a, size(a, 1), t)};
  for (const char* side : {"compute_left_eigenvectors", "compute_right_eigenvectors"})
    if (call.attrs.flag(side)) out.push_back(Type::tensor(t, a.dims()));
  return out;
}

Types schur_shape(const OpCall& call) {
  const Type& a = square(call);
  return call.attrs.flag("compute_schur_vectors") ? Types{a, a} : Types{a};
}

Types hessenberg_shape(const OpCall& call) {
  const Type& a = square_not_empty(call);
  return {a, vector_of(a, size(a, 1) - 1, a.dtype())};
}

Types tridiagonal_shape(const OpCall& call) {
  const Type& a = square_not_empty(call);
  const std::int64_t n = size(a, 1);
  const DType real = real_dtype(a.dtype());
  return {a, vector_of(a, n, real), vector_of(a, n - 1, real), vector_of(a, n - 1, a.dtype())};
}

Types tridiagonal_solve_shape(const OpCall& call) {
  for (int i = 0; i < 3; ++i) floating(call, i, 1);
  const Type& b = floating(call, 3, 2);
  for (int i = 0; i < 3; ++i) need(call, i, vector_of(b, size(b, 2), b.dtype()));
  return {b};
}

std::vector<HostArray> eval(const EvalCall& call) {
  Builder b(std::string(call.op.def->name));
  std::vector<ValueId> params;
  for (const HostArray& a : call.operands)
    params.push_back(b.param(Type::tensor(a.dtype(), a.dims())));
  const GraphPtr graph = b.finish(call.op.def->expand(b, call.op, params));
  return call.regions.run(*graph, call.operands);
}

std::vector<HostArray> eval_lu_pivots(const EvalCall& call) {
  const HostArray& pivots = call.operands[0];
  HostArray out(DType::kI32, call.result_types[0].dims());
  const std::int64_t k = pivots.dims().back(), n = out.dims().back();
  std::int32_t* p = out.as<std::int32_t>();
  const std::int32_t* swaps = pivots.as<std::int32_t>();
  for (std::int64_t row = 0; n > 0 && row < out.size() / n; ++row, p += n, swaps += k) {
    for (std::int64_t i = 0; i < n; ++i) p[i] = static_cast<std::int32_t>(i);
    for (std::int64_t i = 0; i < k; ++i) {
      // Outside of the permutation nothing is found to exchange: what stood at i is lost.
      const std::int64_t j = swaps[i];
      if (j >= 0 && j < n)
        std::swap(p[i], p[j]);
      else
        p[i] = 0;
    }
  }
  return {std::move(out)};
}

// Batch dimensions are parallel, those of matrices and vectors whole. `inner`: how many the first
// operand has of these.
DimMap batched(const OpCall& call, std::span<const Type> results, int inner) {
  DimMap m;
  const Dims& dims = call.operands[0].dims();
  Dims batch;
  for (int d = 0; d + inner < dims.ssize(); ++d) batch.push_back(dims[d]);
  const Dims shared = add_factors(m, batch, Kind::kParallel);
  auto add = [&](const Type& t) {
    Dims d = shared;
    for (int i = shared.ssize(); i < t.rank(); ++i)
      d.push_back(add_factors(m, {t.dim(i)}, Kind::kOpaque)[0]);
    return d;
  };
  for (const Type& t : call.operands) m.operands.push_back(add(t));
  for (const Type& t : results) m.results.push_back(add(t));
  return m;
}
DimMap matrix_dims(const OpCall& call, std::span<const Type> r) { return batched(call, r, 2); }
DimMap vector_dims(const OpCall& call, std::span<const Type> r) { return batched(call, r, 1); }

OpDef factorisation(std::string_view name, int operands, std::vector<AttrDef> attrs,
                    ShapeRule shape, ExpandRule expand, std::string_view labels,
                    DimRule dims = matrix_dims, EvalRule evaluate = eval) {
  return {.name = name,
          .traits = kXylem,
          .min_operands = operands,
          .max_operands = operands,
          .attrs = std::move(attrs),
          .shape = shape,
          .eval = evaluate,
          .dims = dims,
          .labels = labels,
          .expand = expand};
}

AttrDef flag(std::string_view name) { return {name, AttrKind::kBool, false}; }

}  // namespace

const OpDef kLu = factorisation("xylem.lu", 1, {}, lu_shape, expand_lu, "lu_i1 lu_c1 lu_c2");
const OpDef kLuPivotsToPermutation = factorisation(
    "xylem.lu_pivots_to_permutation", 1, {{"permutation_size", AttrKind::kInt}}, lu_pivots_shape,
    expand_lu_pivots,
    "lu_pivots_to_permutation_i1 lu_pivots_to_permutation_c1 lu_pivots_to_permutation_c2",
    vector_dims, eval_lu_pivots);
const OpDef kGeqrf =
    factorisation("xylem.geqrf", 1, {}, geqrf_shape, expand_geqrf, "geqrf_i1 geqrf_c1 geqrf_c2");
const OpDef kGeqp3 = factorisation("xylem.geqp3", 2, {}, geqp3_shape, expand_geqp3,
                                   "geqp3_i1 geqp3_c1 geqp3_c2 geqp3_c3");
const OpDef kHouseholderProduct = factorisation(
    "xylem.householder_product", 2, {}, householder_product_shape, expand_householder_product,
    "householder_product_i1 householder_product_i2 householder_product_c1 householder_product_c2 "
    "householder_product_c3 householder_product_c4 householder_product_c5");
const OpDef kOrmqr =
    factorisation("xylem.ormqr", 3, {flag("left"), flag("transpose")}, ormqr_shape, expand_ormqr,
                  "ormqr_i1 ormqr_i2 ormqr_i3 ormqr_c1 ormqr_c2 ormqr_c3 ormqr_c4 ormqr_c5");
const OpDef kQr = factorisation("xylem.qr", 1, {flag("full_matrices"), flag("pivoting")}, qr_shape,
                                expand_qr, "qr_i1 qr_c1 qr_c2");
const OpDef kEigh = factorisation("xylem.eigh", 1, {flag("lower")}, eigh_shape, expand_eigh,
                                  "eigh_i1 eigh_c1 eigh_c2 eigh_c3");
const OpDef kSvd = factorisation("xylem.svd", 1,
                                 {flag("full_matrices"),
                                  flag("compute_uv"),
                                  {"algorithm", AttrKind::kEnum, false, "DEFAULT QR"}},
                                 svd_shape, expand_svd, "svd_i1 svd_c1 svd_c2");
const OpDef kEig = factorisation("xylem.eig", 1,
                                 {flag("compute_left_eigenvectors"),
                                  flag("compute_right_eigenvectors"), flag("enable_eigvec_derivs")},
                                 eig_shape, expand_eig, "eig_i1 eig_c1 eig_c2 eig_c3");
const OpDef kSchur = factorisation("xylem.schur", 1, {flag("compute_schur_vectors")}, schur_shape,
                                   expand_schur, "schur_i1 schur_c1 schur_c2 schur_c3");
const OpDef kHessenberg =
    factorisation("xylem.hessenberg", 1, {}, hessenberg_shape, expand_hessenberg,
                  "hessenberg_i1 hessenberg_c1 hessenberg_c2 hessenberg_c3 hessenberg_c4");
const OpDef kTridiagonal =
    factorisation("xylem.tridiagonal", 1, {flag("lower")}, tridiagonal_shape, expand_tridiagonal,
                  "tridiagonal_i1 tridiagonal_c1 tridiagonal_c2 tridiagonal_c3 tridiagonal_c4");
const OpDef kTridiagonalSolve = factorisation(
    "xylem.tridiagonal_solve", 4, {}, tridiagonal_solve_shape, expand_tridiagonal_solve,
    "tridiagonal_solve_i1 tridiagonal_solve_i2 tridiagonal_solve_i3 tridiagonal_solve_i4 "
    "tridiagonal_solve_c1 tridiagonal_solve_c2 tridiagonal_solve_c3",
    vector_dims);

}  // namespace xylem::ir::ops
