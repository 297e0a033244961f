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
using ir::ValueIds;

Attrs slice_attrs(const Dims& start, const Dims& limit) {
  return Attrs{{"start_indices", Attr(start)},
               {"limit_indices", Attr(limit)},
               {"strides", Attr(Dims(start.size(), 1))}};
}

// top_k(x) -> the first k of sort(x, iota) by descending total order, stable.
std::vector<ValueId> expand_top_k(Builder& b, const Op& op, ValueId x) {
  const Type t = b.type(x);
  const std::int64_t k = op.attrs.i64("k");
  const int last = t.rank() - 1;
  Builder region("greater");
  const Type scalar = Type::tensor(t.dtype());
  const ValueId l = region.param(scalar), r = region.param(scalar);
  region.param(Type::tensor(DType::kI32));
  region.param(Type::tensor(DType::kI32));
  Attrs compare{{"comparison_direction", Attr(ir::EnumAttr("GT"))}};
  if (is_float(t.dtype())) compare.set("compare_type", Attr(ir::EnumAttr("TOTALORDER")));
  const ValueId greater = region.one(o::kCompare, {l, r}, compare);
  const ir::GraphPtr graph = region.finish({greater});
  const ValueId iota = b.one(o::kIota, {},
                             Attrs{{"iota_dimension", Attr(last)},
                                   {"shape", Attr(t.dims())},
                                   {"result_dtype", Attr(DType::kI32)}});
  const ValueIds sorted = b.op(o::kSort, {x, iota},
                               Attrs{{"dimension", Attr(last)}, {"is_stable", Attr(true)}}, {graph});
  Dims start(t.dims().size(), 0), limit = t.dims();
  limit[last] = k;
  std::vector<ValueId> out;
  for (ValueId v : sorted) out.push_back(b.one(o::kSlice, {v}, slice_attrs(start, limit)));
  return out;
}

bool nontrivial(const Attrs& attrs, std::string_view name, std::int64_t usual) {
  for (std::int64_t x : attrs.dims_or(name, {}))
    if (x != usual) return true;
  return false;
}

bool has_padding(const Op& op) {
  const Attr* p = op.attrs.find("padding");
  if (!p) return false;
  const HostArray& a = *p->get<HostArray>();
  for (std::int64_t i = 0; i < a.size(); ++i)
    if (a.at(i) != 0) return true;
  return false;
}

bool padded_window(const Op& op) {
  return op.def == &o::kReduceWindow &&
         (nontrivial(op.attrs, "base_dilations", 1) || has_padding(op));
}

// reduce_window(x) with padding and holes -> reduce_window(pad(x, init)) without.
std::vector<ValueId> expand_window(Builder& b, const Op& op, ValueIds in) {
  const std::size_t n = op.results.size();
  const std::size_t rank = b.type(in[0]).dims().size();
  const Dims holes = op.attrs.dims_or("base_dilations", Dims(rank, 1));
  Dims low(rank, 0), high(rank, 0), interior(rank, 0);
  const Attr* padding = op.attrs.find("padding");
  for (std::size_t d = 0; d < rank; ++d) {
    interior[d] = holes[d] - 1;
    if (!padding) continue;
    const HostArray& a = *padding->get<HostArray>();
    low[d] = static_cast<std::int64_t>(a.at(static_cast<std::int64_t>(2 * d)));
    high[d] = static_cast<std::int64_t>(a.at(static_cast<std::int64_t>(2 * d + 1)));
  }
  for (std::size_t i = 0; i < n; ++i) {
    ValueId fill = in[n + i];
    const DType want = b.type(in[i]).dtype();
    if (b.type(fill).dtype() != want)
      fill = b.one(o::kConvert, {fill}, Attrs{{"result_dtype", Attr(want)}});
    in[i] = b.one(o::kPad, {in[i], fill},
                  Attrs{{"edge_padding_low", Attr(low)},
                        {"edge_padding_high", Attr(high)},
                        {"interior_padding", Attr(interior)}});
  }
  Attrs attrs = op.attrs;
  attrs.erase("base_dilations");
  attrs.erase("padding");
  return b.op(o::kReduceWindow, in, attrs, op.regions).to_vector();
}

}  // namespace

ir::GraphPtr expand_ops(const ir::GraphPtr& graph) {
  bool any = false;
  for (const Op& op : graph->ops) any = any || op.def == &o::kTopK || padded_window(op);
  if (!any) return graph;
  Rewriter rewriter(*graph);
  Builder& b = rewriter.builder();
  for (const Op& op : graph->ops) {
    if (op.def == &o::kTopK) {
      b.set_location(op.loc);
      rewriter.replace(op, expand_top_k(b, op, rewriter[op.operands[0]]));
    } else if (padded_window(op)) {
      b.set_location(op.loc);
      rewriter.replace(op, expand_window(b, op, rewriter.operands(op)));
    } else {
      rewriter.copy(op);
    }
  }
  return rewriter.finish();
}

}  // namespace xylem::compiler
