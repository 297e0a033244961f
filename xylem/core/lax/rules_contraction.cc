// Derivatives, transposes and batching of dot_general.

#include "xylem/core/transform/passes.h"
#include "xylem/core/transform/rules.h"
#include "xylem/ir/expr.h"
#include "xylem/ir/ops/all.h"

namespace xylem::transform {
namespace {

using ir::Attr;
using ir::Attrs;
using ir::Expr;
using ir::kNoValue;
using ir::ValueId;
namespace ops = ir::ops;

struct DotDims {
  Dims lhs_batch, rhs_batch, lhs_contract, rhs_contract;

  explicit DotDims(const Attrs& a)
      : lhs_batch(a.dims_or("lhs_batching_dimensions", {})),
        rhs_batch(a.dims_or("rhs_batching_dimensions", {})),
        lhs_contract(a.dims_or("lhs_contracting_dimensions", {})),
        rhs_contract(a.dims_or("rhs_contracting_dimensions", {})) {}

  void write(Attrs& a) const {
    a.set("lhs_batching_dimensions", Attr(lhs_batch));
    a.set("rhs_batching_dimensions", Attr(rhs_batch));
    a.set("lhs_contracting_dimensions", Attr(lhs_contract));
    a.set("rhs_contracting_dimensions", Attr(rhs_contract));
  }
};

Dims free_dims(int rank, const Dims& batch, const Dims& contract) {
  Dims r;
  for (int d = 0; d < rank; ++d)
    if (!batch.contains(d) && !contract.contains(d)) r.push_back(d);
  return r;
}

void dot_jvp(JvpCall& c) {
  c.primal_out = {c.b.clone(c.op, c.primals)[0]};
  Expr t{&c.b, kNoValue};
  for (std::size_t i = 0; i < 2; ++i) {
    if (c.tangents[i] == kNoValue) continue;
    ValueId operands[2] = {c.primals[0], c.primals[1]};
    operands[i] = c.tangents[i];
    Expr part{&c.b, c.b.clone(c.op, operands)[0]};
    t = t.defined() ? t + part : part;
  }
  c.tangent_out = {t.v};
}

// For z[b, m, n] = sum_k x[b, m, k] y[b, k, n]: x' = sum_n z'[b, m, n] y[b, k, n].
void dot_transpose(TransposeCall& c) {
  DotDims d(c.op.attrs);
  std::size_t lin = c.linear[0] ? 0 : 1;
  XYLEM_CHECK(!c.linear[1 - lin], "a product of two linear values is not linear");
  const ir::Type &mine = c.types[lin], &other = c.types[1 - lin];
  const Dims& my_batch = lin == 0 ? d.lhs_batch : d.rhs_batch;
  const Dims& my_contract = lin == 0 ? d.lhs_contract : d.rhs_contract;
  const Dims& other_batch = lin == 0 ? d.rhs_batch : d.lhs_batch;
  const Dims& other_contract = lin == 0 ? d.rhs_contract : d.lhs_contract;
  Dims my_free = free_dims(mine.rank(), my_batch, my_contract);
  Dims other_free = free_dims(other.rank(), other_batch, other_contract);
  // The cotangent's dimensions: batch, lhs free, rhs free.
  auto nb = static_cast<std::int64_t>(my_batch.size());
  auto lhs_free = static_cast<std::int64_t>(lin == 0 ? my_free.size() : other_free.size());
  Dims ct_batch, ct_contract;
  for (std::int64_t i = 0; i < nb; ++i) ct_batch.push_back(i);
  std::int64_t first = lin == 0 ? nb + lhs_free : nb;
  for (std::size_t i = 0; i < other_free.size(); ++i)
    ct_contract.push_back(first + static_cast<std::int64_t>(i));
  Expr ct{&c.b, c.cotangents[0]}, y{&c.b, c.operands[1 - lin]};
  ct = ir::convert(ct, y.dtype());
  Attrs attrs = c.op.attrs;
  attrs.set("result_dtype", Attr(mine.dtype()));
  DotDims n(attrs);
  n.lhs_batch = ct_batch;
  n.rhs_batch = other_batch;
  n.lhs_contract = ct_contract;
  n.rhs_contract = other_free;
  n.write(attrs);
  Expr r{&c.b, c.b.one(ops::kDotGeneral, {ct.v, y.v}, attrs)};
  // Result dimensions: batch, my free, then the other's contracted dimensions in ascending order.
  Dims out;  // my dimension of each result dimension
  for (std::int64_t x : my_batch) out.push_back(x);
  for (std::int64_t x : my_free) out.push_back(x);
  Dims ascending = other_contract;
  std::sort(ascending.begin(), ascending.end());
  for (std::int64_t x : ascending)
    out.push_back(my_contract[std::find(other_contract.begin(), other_contract.end(), x) -
                              other_contract.begin()]);
  Dims perm(out.size(), 0);
  for (std::size_t i = 0; i < out.size(); ++i) perm[out[i]] = static_cast<std::int64_t>(i);
  c.operand_ct[lin] = ir::transpose(r, perm).v;
}

Dims shift_from(const Dims& d, int at) {
  Dims r;
  for (std::int64_t x : d) r.push_back(x >= at ? x + 1 : x);
  return r;
}

// Both mapped: one more batch dimension. One mapped: the dimension becomes a free one of that side.
void dot_batch(BatchCall& c) {
  DotDims d(c.op.attrs);
  int lhs_rank = c.b.type(c.operands[0]).rank(), rhs_rank = c.b.type(c.operands[1]).rank();
  Attrs attrs = c.op.attrs;
  auto nb = static_cast<int>(d.lhs_batch.size());
  int result_dim = 0;
  if (c.dims[0] != kNotMapped) {
    d.lhs_batch = shift_from(d.lhs_batch, c.dims[0]);
    d.lhs_contract = shift_from(d.lhs_contract, c.dims[0]);
  }
  if (c.dims[1] != kNotMapped) {
    d.rhs_batch = shift_from(d.rhs_batch, c.dims[1]);
    d.rhs_contract = shift_from(d.rhs_contract, c.dims[1]);
  }
  if (c.dims[0] != kNotMapped && c.dims[1] != kNotMapped) {
    d.lhs_batch.insert(0, c.dims[0]);
    d.rhs_batch.insert(0, c.dims[1]);
  } else if (c.dims[0] != kNotMapped) {
    Dims free = free_dims(lhs_rank, d.lhs_batch, d.lhs_contract);
    result_dim =
        nb + static_cast<int>(std::find(free.begin(), free.end(), c.dims[0]) - free.begin());
  } else {
    Dims lhs_free = free_dims(lhs_rank, d.lhs_batch, d.lhs_contract);
    Dims free = free_dims(rhs_rank, d.rhs_batch, d.rhs_contract);
    result_dim = nb + lhs_free.ssize() +
                 static_cast<int>(std::find(free.begin(), free.end(), c.dims[1]) - free.begin());
  }
  d.write(attrs);
  c.results = {c.b.one(ops::kDotGeneral, c.operands, attrs)};
  c.result_dims = {result_dim};
}

}  // namespace

void register_contraction_rules(RuleTable& t) {
  t[ops::kDotGeneral].jvp = dot_jvp;
  t[ops::kDotGeneral].transpose = dot_transpose;
  t[ops::kDotGeneral].batch = dot_batch;
}

}  // namespace xylem::transform
