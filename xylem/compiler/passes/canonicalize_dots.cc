#include <algorithm>

#include "xylem/base/error.h"
#include "xylem/compiler/passes/passes.h"
#include "xylem/compiler/passes/rewriter.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/ops/all.h"

namespace xylem::compiler {
namespace {

namespace o = ir::ops;
using ir::Attr;
using ir::Attrs;
using ir::Builder;
using ir::Op;
using ir::Type;
using ir::ValueId;

struct Roles {
  Dims batch_l, batch_r, contract_l, contract_r, free_l, free_r;
};

Roles roles_of(const Op& op, int rank_l, int rank_r) {
  Roles r;
  r.batch_l = op.attrs.dims_or("lhs_batching_dimensions", {});
  r.batch_r = op.attrs.dims_or("rhs_batching_dimensions", {});
  r.contract_l = op.attrs.dims_or("lhs_contracting_dimensions", {});
  r.contract_r = op.attrs.dims_or("rhs_contracting_dimensions", {});
  for (int d = 0; d < rank_l; ++d)
    if (!r.batch_l.contains(d) && !r.contract_l.contains(d)) r.free_l.push_back(d);
  for (int d = 0; d < rank_r; ++d)
    if (!r.batch_r.contains(d) && !r.contract_r.contains(d)) r.free_r.push_back(d);
  return r;
}

class Dots {
 public:
  explicit Dots(Builder& b) : b_(b) {}

  ValueId rewrite(const Op& op, ValueId l, ValueId r, DType result) {
    b_.set_location(op.loc);
    if (is_complex(result)) return complex(op, convert(l, result), convert(r, result), result);
    // The dtype that products and sums are taken in.
    DType acc = result;
    if (is_bool(result)) acc = DType::kI32;
    if (is_float(result) && dtype_bits(result) < 32) acc = DType::kF32;
    const ValueId out = real(op, convert(l, acc), convert(r, acc), acc);
    if (is_bool(result))
      return b_.one(o::kCompare, {out, b_.splat_like(out, 0)},
                    Attrs{{"comparison_direction", Attr(ir::EnumAttr("NE"))}});
    return convert(out, result);
  }

 private:
  ValueId convert(ValueId v, DType to) {
    if (b_.type(v).dtype() == to) return v;
    return b_.one(o::kConvert, {v}, Attrs{{"result_dtype", Attr(to)}});
  }

  // (a + bi)(c + di) = (ac - bd) + (ad + bc)i, by real products.
  ValueId complex(const Op& op, ValueId l, ValueId r, DType dtype) {
    const DType part = real_dtype(dtype);
    const ValueId a = b_.one(o::kReal, {l}), b = b_.one(o::kImag, {l});
    const ValueId c = b_.one(o::kReal, {r}), d = b_.one(o::kImag, {r});
    const ValueId re = b_.one(o::kSubtract, {real(op, a, c, part), real(op, b, d, part)});
    const ValueId im = b_.one(o::kAdd, {real(op, a, d, part), real(op, b, c, part)});
    return b_.one(o::kComplex, {re, im});
  }

  ValueId real(const Op& op, ValueId l, ValueId r, DType) {
    const Type tl = b_.type(l), tr = b_.type(r);
    const Roles roles = roles_of(op, tl.rank(), tr.rank());
    std::int64_t m = 1, n = 1, k = 1;
    for (std::int64_t d : roles.free_l) m *= tl.dims()[d];
    for (std::int64_t d : roles.free_r) n *= tr.dims()[d];
    for (std::int64_t d : roles.contract_l) k *= tl.dims()[d];
    if (m != 1 && n != 1 && k != 1) {
      Attrs attrs = op.attrs;
      attrs.erase("result_dtype");
      attrs.erase("precision_config");
      attrs.erase("algorithm");
      return b_.one(o::kDotGeneral, {l, r}, attrs);
    }
    // A vector on one side, or an outer product: multiply and sum in fused loops. The summed
    // dimensions come last if the matrix holds them last, so that lanes read neighbours.
    const bool last = m == 1 ? !tr.dims().empty() && roles.contract_r.contains(tr.rank() - 1)
                             : !tl.dims().empty() && roles.contract_l.contains(tl.rank() - 1);
    const Type result = result_type(tl, tr, roles);
    Dims shape;
    Dims map_l(tl.dims().size(), 0), map_r(tr.dims().size(), 0), reduced;
    std::int64_t next = 0;
    const auto place = [&](std::int64_t size) {
      shape.push_back(size);
      return next++;
    };
    for (std::size_t i = 0; i < roles.batch_l.size(); ++i)
      map_l[roles.batch_l[i]] = map_r[roles.batch_r[i]] = place(tl.dims()[roles.batch_l[i]]);
    const auto contract = [&] {
      for (std::size_t i = 0; i < roles.contract_l.size(); ++i) {
        reduced.push_back(next);
        map_l[roles.contract_l[i]] = map_r[roles.contract_r[i]] =
            place(tl.dims()[roles.contract_l[i]]);
      }
    };
    if (!last) contract();
    for (std::int64_t d : roles.free_l) map_l[d] = place(tl.dims()[d]);
    for (std::int64_t d : roles.free_r) map_r[d] = place(tr.dims()[d]);
    if (last) contract();
    const ValueId product =
        b_.one(o::kMultiply, {spread(l, map_l, shape), spread(r, map_r, shape)});
    if (k == 1) return b_.one(o::kReshape, {product}, Attrs{{"shape", Attr(result.dims())}});
    return b_.one(o::kReduce, {product, b_.splat(result.dtype(), {}, 0)},
                  Attrs{{"dimensions", Attr(reduced)}}, {adder(result.dtype())});
  }

  // v with its dimension i at dimension map[i] of `shape`.
  ValueId spread(ValueId v, const Dims& map, const Dims& shape) {
    Dims perm, sorted = map;
    std::sort(sorted.begin(), sorted.end());
    for (std::int64_t to : sorted)
      for (int i = 0; i < map.ssize(); ++i)
        if (map[i] == to) perm.push_back(i);
    v = b_.one(o::kTranspose, {v}, Attrs{{"permutation", Attr(perm)}});
    return b_.one(o::kBroadcastInDim, {v},
                  Attrs{{"broadcast_dimensions", Attr(sorted)}, {"shape", Attr(shape)}});
  }

  static Type result_type(const Type& l, const Type& r, const Roles& roles) {
    Dims d;
    for (std::int64_t i : roles.batch_l) d.push_back(l.dims()[i]);
    for (std::int64_t i : roles.free_l) d.push_back(l.dims()[i]);
    for (std::int64_t i : roles.free_r) d.push_back(r.dims()[i]);
    return Type::tensor(l.dtype(), d);
  }

  static ir::GraphPtr adder(DType dtype) {
    Builder b("add");
    const ValueId x = b.param(Type::tensor(dtype)), y = b.param(Type::tensor(dtype));
    const ValueId sum = b.one(o::kAdd, {x, y});
    return b.finish({sum});
  }

  Builder& b_;
};

}  // namespace

ir::GraphPtr canonicalize_dots(const ir::GraphPtr& graph) {
  bool any = false;
  for (const Op& op : graph->ops) any = any || op.def == &o::kDotGeneral;
  if (!any) return graph;
  Rewriter rewriter(*graph);
  Dots dots(rewriter.builder());
  for (const Op& op : graph->ops) {
    if (op.def != &o::kDotGeneral) {
      rewriter.copy(op);
      continue;
    }
    rewriter.set(op.results[0], dots.rewrite(op, rewriter[op.operands[0]], rewriter[op.operands[1]],
                                             graph->type(op.results[0]).dtype()));
  }
  return rewriter.finish();
}

}  // namespace xylem::compiler
