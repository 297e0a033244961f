// Derivatives, transposes and batching of linear algebra, Fourier transforms and special functions;
// and of every other op that has a decomposition, by that.

#include <cmath>
#include <string>

#include "xylem/core/lax/matrix.h"
#include "xylem/core/transform/passes.h"
#include "xylem/core/transform/rules.h"
#include "xylem/ir/expr.h"
#include "xylem/ir/ops/all.h"

namespace xylem::transform {
namespace {

using ir::Attr;
using ir::Attrs;
using ir::Builder;
using ir::compare;
using ir::EnumAttr;
using ir::Expr;
using ir::kNoValue;
using ir::like;
using ir::select;
using ir::unary;
using ir::ValueId;
namespace ops = ir::ops;

using lax::conj;
using lax::leading_batch;
using lax::matmul;
using lax::swapped;
using lax::triangle;
using lax::where_triangle;

Expr solve(Expr a, Expr b, bool left, bool lower, bool unit, const char* transpose) {
  return lax::triangular_solve(a, b, left, lower, unit, transpose);
}

// --- cholesky ---------------------------------------------------------------------------------

// dL = L Φ(L⁻¹ dA L⁻ᴴ), Φ the lower triangle with half the diagonal. The op reads one triangle.
void cholesky_jvp(JvpCall& c) {
  bool lower = c.op.attrs.flag("lower");
  Expr factor{&c.b, c.b.clone(c.op, c.primals)[0]}, da{&c.b, c.tangents[0]};
  c.primal_out = {factor.v};
  Expr half = triangle(da, lower, false);
  da = half + conj(swapped(triangle(da, lower, true)));
  Expr l = lower ? factor : conj(swapped(factor));
  Expr right = solve(l, da, false, true, false, "ADJOINT");
  Expr middle = solve(l, right, true, true, false, "NO_TRANSPOSE");
  Expr phi =
      triangle(middle, true, true) + where_triangle(middle, "EQ", middle * 0.5, like(middle, 0));
  Expr dl = matmul(l, phi);
  c.tangent_out = {(lower ? dl : conj(swapped(dl))).v};
}

// --- triangular_solve ---------------------------------------------------------------------------

std::string transpose_of(const ir::Op& op) {
  const ir::Attr* a = op.attrs.find("transpose_a");
  const EnumAttr* e = a ? a->get<EnumAttr>() : nullptr;
  return e ? std::string(e->value) : "NO_TRANSPOSE";
}

// op(a) x = b gives op(a) dx = db - op(da) x.
void triangular_solve_jvp(JvpCall& c) {
  Expr a{&c.b, c.primals[0]}, x{&c.b, c.b.clone(c.op, c.primals)[0]};
  c.primal_out = {x.v};
  Expr rhs{&c.b, c.tangents[1]};
  if (c.tangents[0] != kNoValue) {
    bool unit = c.op.attrs.flag("unit_diagonal"), left = c.op.attrs.flag("left_side");
    Expr da = triangle({&c.b, c.tangents[0]}, c.op.attrs.flag("lower"), unit);
    std::string t = transpose_of(c.op);
    if (t != "NO_TRANSPOSE") da = swapped(da);
    if (t == "ADJOINT") da = conj(da);
    Expr product = left ? matmul(da, x) : matmul(x, da);
    rhs = rhs.defined() ? rhs - product : -product;
  }
  ValueId operands[2] = {a.v, rhs.v};
  c.tangent_out = {c.b.clone(c.op, std::span<const ValueId>(operands, 2))[0]};
}

void triangular_solve_transpose(TransposeCall& c) {
  XYLEM_CHECK(!c.linear[0], "a solution is not linear in the matrix");
  Expr a{&c.b, c.operands[0]}, ct{&c.b, c.cotangents[0]};
  std::string t = transpose_of(c.op);
  bool left = c.op.attrs.flag("left_side"), lower = c.op.attrs.flag("lower");
  bool unit = c.op.attrs.flag("unit_diagonal");
  Expr r = t == "NO_TRANSPOSE" ? solve(a, ct, left, lower, unit, "TRANSPOSE")
           : t == "TRANSPOSE"  ? solve(a, ct, left, lower, unit, "NO_TRANSPOSE")
                               : conj(solve(a, conj(ct), left, lower, unit, "NO_TRANSPOSE"));
  c.operand_ct[1] = r.v;
}

// --- fft ----------------------------------------------------------------------------------------

void fft_jvp(JvpCall& c) {
  c.primal_out = {c.b.clone(c.op, c.primals)[0]};
  c.tangent_out = {c.b.clone(c.op, c.tangents)[0]};
}

Expr transform(Expr x, const char* type, const Dims& lengths) {
  return {x.b, x.b->one(ops::kFft, {x.v},
                        Attrs{{"fft_type", Attr(EnumAttr(type))}, {"fft_length", Attr(lengths)}})};
}

// The matrices of FFT and IFFT are symmetric. The real transforms are these on padded or folded
// spectra.
void fft_transpose(TransposeCall& c) {
  Expr ct{&c.b, c.cotangents[0]};
  const Dims& lengths = c.op.attrs.dims("fft_length");
  const ir::Attr& type_attr = c.op.attrs.at("fft_type");
  const EnumAttr* e = type_attr.get<EnumAttr>();
  std::string type(e ? std::string_view(e->value) : std::string_view("FFT"));
  int last = ct.rank() - 1;
  if (type == "FFT" || type == "IFFT") {
    c.operand_ct[0] = transform(ct, type.c_str(), lengths).v;
    return;
  }
  std::int64_t n = lengths[lengths.size() - 1];
  if (type == "RFFT") {
    Dims zero(static_cast<std::size_t>(ct.rank()), 0), high = zero;
    high[last] = n - ct.dims()[last];
    Expr full = ir::pad(ct, ir::scalar(c.b, ct.dtype(), 0), zero, high, zero);
    c.operand_ct[0] = unary(ops::kReal, transform(full, "FFT", lengths)).v;
    return;
  }
  Expr spectrum = transform(ct, "RFFT", lengths);
  double scale = 1;
  for (std::int64_t d : lengths) scale /= static_cast<double>(d);
  DType real = c.result_types[0].dtype();
  Expr k = ir::iota(c.b, DType::kI32, spectrum.dims(), last);
  // Interior bins stand for two of the full spectrum.
  Expr edge = compare(k, 0, "EQ");
  if (n % 2 == 0) edge = ir::binary(ops::kOr, edge, compare(k, static_cast<double>(n / 2), "EQ"));
  Expr one = ir::broadcast_to(ir::scalar(c.b, real, scale), spectrum.dims());
  Expr weight = select(edge, one, one * 2.0);
  Expr complex_weight = ir::binary(ops::kComplex, weight, like(weight, 0));
  c.operand_ct[0] = conj(spectrum * complex_weight).v;
}

// --- special functions
// ------------------------------------------------------------------------------

template <auto F>
void function_jvp(JvpCall& c) {
  Expr y{&c.b, c.b.clone(c.op, c.primals)[0]}, x{&c.b, c.primals[0]};
  c.primal_out = {y.v};
  c.tangent_out = {(Expr{&c.b, c.tangents[0]} * F(x, y)).v};
}

// d polygamma(n, x) / dx = polygamma(n + 1, x); the order does not move.
void polygamma_jvp(JvpCall& c) {
  if (c.tangents[0] != kNoValue)
    throw_user_error({"differentiate polygamma by its order", "the order must be constant",
                      "it has a tangent", "Pass it as a number or stop its gradient"},
                     c.op.loc.source);
  Expr n{&c.b, c.primals[0]}, x{&c.b, c.primals[1]};
  c.primal_out = {c.b.clone(c.op, c.primals)[0]};
  Expr next{&c.b, c.b.one(ops::kPolygamma, {(n + 1).v, x.v})};
  c.tangent_out = {(Expr{&c.b, c.tangents[1]} * next).v};
}

// --- ops with a decomposition
// ---------------------------------------------------------------------

std::vector<ValueId> expanded(Builder& b, const ir::Op& op, std::span<const ValueId> operands) {
  return op.def->expand(b, op, operands);
}

ir::GraphPtr expansion(const ir::Op& op, const Builder& b, std::span<const ValueId> operands) {
  Builder inner(std::string(op.def->name));
  std::vector<ValueId> params;
  for (ValueId v : operands) params.push_back(inner.param(b.type(v)));
  ir::Op copy = op;
  return inner.finish(expanded(inner, copy, params));
}

void expanded_jvp(JvpCall& c) {
  ir::GraphPtr g = expansion(c.op, c.b, c.primals);
  jvp_into(c.b, *g, c.primals, c.tangents, c.primal_out, c.tangent_out);
}

void expanded_batch(BatchCall& c) {
  Builder inner(std::string(c.op.def->name));
  std::vector<ValueId> params;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    ir::Type t = c.b.type(c.operands[i]);
    if (c.dims[i] != kNotMapped) {
      Dims d = t.dims();
      d.erase(static_cast<std::size_t>(c.dims[i]));
      t = t.with_dims(d);
    }
    params.push_back(inner.param(t));
  }
  ir::Op copy = c.op;
  ir::GraphPtr g = inner.finish(expanded(inner, copy, params));
  batch_into(c.b, *g, c.operands, c.dims, c.size, c.axis_name, c.results, c.result_dims);
}

}  // namespace

void register_linalg_rules(RuleTable& t) {
  lax::register_decomposition_rules(t);
  t[ops::kCholesky].jvp = cholesky_jvp;
  t[ops::kCholesky].batch = leading_batch;
  t[ops::kTriangularSolve].jvp = triangular_solve_jvp;
  t[ops::kTriangularSolve].transpose = triangular_solve_transpose;
  t[ops::kTriangularSolve].batch = leading_batch;
  t[ops::kFft].jvp = fft_jvp;
  t[ops::kFft].transpose = fft_transpose;
  t[ops::kFft].batch = leading_batch;
  t[ops::kLgamma].jvp = function_jvp<[](Expr x, Expr) { return unary(ops::kDigamma, x); }>;
  t[ops::kDigamma].jvp = function_jvp<[](Expr x, Expr) {
    return Expr{x.b, x.b->one(ops::kPolygamma, {like(x, 1).v, x.v})};
  }>;
  t[ops::kPolygamma].jvp = polygamma_jvp;
  t[ops::kZeta].refuse_jvp = "zeta has no derivative rule, as in JAX";
  for (const ir::OpDef* def : {&ops::kIsInf, &ops::kIsPosInf, &ops::kIsNegInf, &ops::kMulhi,
                               &ops::kConstantLike, &ops::kChloConstant})
    t[*def].no_derivative = true;

  // The rest: by the decomposition if there is one; otherwise they belong to imported programs.
  for (const ir::OpDef* def : ir::op_table()) {
    const ir::OpDef& d = *def;
    if (d.is(ir::kKernelOnly)) continue;
    OpRules& r = t[d];
    bool derivative = r.jvp || r.no_derivative || r.refuse_jvp;
    bool batch = r.batch || r.refuse_batch;
    if (!derivative) {
      if (d.expand)
        r.jvp = expanded_jvp;
      else
        r.refuse_jvp = "it occurs in imported programs only and has no derivative rule";
    }
    if (!batch) {
      if (d.expand)
        r.batch = expanded_batch;
      else
        r.refuse_batch = "it occurs in imported programs only and has no batching rule";
    }
    if (d.is(ir::kLinear) && !r.transpose && !r.refuse_transpose)
      r.refuse_transpose = "it occurs in imported programs only and has no transpose rule";
  }
}

}  // namespace xylem::transform
