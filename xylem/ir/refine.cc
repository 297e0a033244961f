#include "xylem/ir/refine.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/ir/builder.h"
#include "xylem/ir/interpreter.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/ops/all.h"
#include "xylem/ir/ops/dynamic.h"
#include "xylem/ir/ops/dynamic_calls.h"

namespace xylem::ir {
namespace {

// Elements of values that are followed at compile time: sizes, paddings, slice bounds.
constexpr std::int64_t kMaxFolded = 4096;

bool is_dynamic(const Type& t) {
  if (t.is_tuple()) return std::any_of(t.elements().begin(), t.elements().end(), is_dynamic);
  return t.is_tensor() && !t.is_static();
}

bool takes_sizes(const OpDef& def) {
  return &def == &ops::kDynamicReshape || &def == &ops::kDynamicBroadcastInDim ||
         &def == &ops::kDynamicIota || &def == &ops::kDynamicPad || &def == &ops::kDynamicGather ||
         &def == &ops::kRealDynamicSlice || &def == &ops::kGetDimensionSize ||
         &def == &ops::kSetDimensionSize || &def == &ops::kDynamicConv;
}

bool is_assertion(const Op& op) {
  return op.def == &ops::kCustomCall &&
         op.attrs.str_or("call_target_name", "") == "shape_assertion";
}

class Refiner {
 public:
  explicit Refiner(std::string name) : b_(std::move(name)) {}

  // `known`: the values of parameters that have one at compile time, null for the others.
  GraphPtr run(const Graph& g, std::span<const Type> params,
               std::span<const HostArray* const> known = {}) {
    map_.assign(g.values.size(), kNoValue);
    for (std::size_t i = 0; i < g.params.size(); ++i)
      at(g.params[i]) = b_.param(params[i], i < g.param_attrs.size() ? g.param_attrs[i] : Attrs());
    for (std::size_t i = 0; i < known.size(); ++i)
      if (known[i]) at(g.params[i]) = b_.constant(*known[i]);
    for (const Op& op : g.ops) {
      b_.set_location(op.loc);
      visit(g, op);
    }
    std::vector<ValueId> results;
    for (ValueId v : g.results) results.push_back(at(v));
    return b_.finish(std::move(results));
  }

 private:
  ValueId& at(ValueId v) { return map_[static_cast<std::size_t>(v)]; }

  const HostArray* constant(ValueId v) const {
    const Op* def = b_.graph().def(v);
    return def && def->def->is(kConstant) ? &def->attrs.array("value") : nullptr;
  }

  std::optional<Dims> sizes(ValueId v) const {
    const HostArray* a = constant(v);
    if (!a) return std::nullopt;
    const HostArray wide = a->astype(DType::kI64).to_contiguous();
    const auto s = wide.span<std::int64_t>();
    Dims out;
    for (std::int64_t n : s) out.push_back(n);
    return out;
  }

  void visit(const Graph& g, const Op& op) {
    std::vector<ValueId> in;
    for (ValueId v : op.operands) in.push_back(at(v));
    if (op.def == &ops::kGetDimensionSize) {
      const std::int64_t n = b_.type(in[0]).dim(static_cast<int>(op.attrs.i64("dimension")));
      if (n != kDynamic) {
        at(op.results[0]) = b_.constant(HostArray::scalar(static_cast<std::int32_t>(n)));
        return;
      }
    }
    if ((op.def == &ops::kComposite || op.def == &ops::kCall) && has_dynamic_shapes(*op.regions[0]))
      return visit_body(op, in);
    if (fold(g, op, in)) return;
    if (ops::is_dynamic_reduce_window(op) && expand_window(op, in)) return;
    if (op.def == &ops::kDynamicConv && expand_conv(op, in)) return;
    if (static_call(op, in)) return;

    Op copy = op;
    for (GraphPtr& region : copy.regions) region = refined_region(op, *region, in);
    if (takes_sizes(*op.def) && op.attrs.has("result_types"))
      if (std::optional<Type> t = result_of(op, in)) {
        if (op.def == &ops::kSetDimensionSize) {
          at(op.results[0]) = in[0];
          return;
        }
        copy.attrs.set("result_types", Attr(AttrList{Attr(*t)}));
      }
    const ValueIds results = b_.clone(copy, in);
    for (std::size_t i = 0; i < results.size(); ++i) at(op.results[i]) = results[i];
  }

  // Ops that mean their first region: its ops take their place.
  void visit_body(const Op& op, const std::vector<ValueId>& in) {
    const Graph& body = *op.regions[0];
    std::vector<ValueId> outer =
        std::exchange(map_, std::vector<ValueId>(body.values.size(), kNoValue));
    for (std::size_t i = 0; i < body.params.size(); ++i) at(body.params[i]) = in[i];
    for (const Op& inner : body.ops) {
      b_.set_location(inner.loc);
      visit(body, inner);
    }
    std::vector<ValueId> results;
    for (ValueId v : body.results) results.push_back(at(v));
    map_ = std::move(outer);
    for (std::size_t i = 0; i < results.size(); ++i) at(op.results[i]) = results[i];
  }

  // A custom call whose operands hold the shapes of its results, where these are known.
  bool static_call(const Op& op, const std::vector<ValueId>& in) {
    const std::optional<Dims> holders = ops::shape_operands(op);
    if (!holders) return false;
    std::vector<Dims> shapes;
    for (std::int64_t i : *holders) {
      std::optional<Dims> d = sizes(in[static_cast<std::size_t>(i)]);
      if (!d) return false;
      shapes.push_back(*d);
    }
    std::vector<std::size_t> kept;
    const Op copy = ops::with_result_shapes(op, *holders, shapes, kept);
    std::vector<ValueId> operands;
    for (std::size_t i : kept) operands.push_back(in[i]);
    const ValueIds results = b_.clone(copy, operands);
    for (std::size_t i = 0; i < results.size(); ++i) at(op.results[i]) = results[i];
    return true;
  }

  // Ops on known integers become constants; assertions on them are made now.
  bool fold(const Graph& g, const Op& op, const std::vector<ValueId>& in) {
    if (in.empty() || !op.regions.empty() || !op.def->eval) return false;
    if (op.def->is(kEffect) && !is_assertion(op)) return false;
    std::vector<HostArray> values;
    std::vector<Type> operand_types, result_types;
    for (ValueId v : in) {
      const HostArray* a = constant(v);
      if (!a || a->size() > kMaxFolded) return false;
      values.push_back(a->to_contiguous());
      operand_types.push_back(b_.type(v));
    }
    for (ValueId r : op.results) {
      const Type& t = g.type(r);
      if (!t.is_tensor() || is_float(t.dtype()) || is_complex(t.dtype())) return false;
    }
    if (takes_sizes(*op.def)) {
      std::optional<Type> t = result_of(op, in);
      if (!t) return false;
      result_types = {*t};
    } else if (!op.results.empty()) {
      const OpCall call{*op.def, operand_types, op.attrs, op.regions, op.loc};
      result_types = infer_types(call);
    }
    for (const Type& t : result_types)
      if (!t.is_static() || t.size() > kMaxFolded) return false;
    Evaluation regions;
    const std::vector<HostArray> results =
        op.def->eval({op, values, result_types, regions, operand_types});
    for (std::size_t i = 0; i < op.results.size(); ++i)
      at(op.results[i]) = b_.constant(results[i].to_contiguous());
    return true;
  }

  bool expand_window(const Op& op, const std::vector<ValueId>& in) {
    const std::size_t n = ops::num_window_operands(op);
    std::vector<HostArray> sizes;
    for (std::size_t i = n; i < in.size(); ++i) {
      const HostArray* a = constant(in[i]);
      if (!a) return false;
      sizes.push_back(*a);
    }
    const std::vector<ValueId> results =
        ops::expand_dynamic_reduce_window(b_, op, std::span(in).first(n), sizes);
    for (std::size_t i = 0; i < results.size(); ++i) at(op.results[i]) = results[i];
    return true;
  }

  // The padding of the operand is added to that of the attribute.
  bool expand_conv(const Op& op, const std::vector<ValueId>& in) {
    const HostArray* padding = constant(in[2]);
    if (!padding) return false;
    HostArray sum = padding->astype(DType::kI64).clone();
    if (const Attr* fixed = op.attrs.find("padding")) {
      const HostArray other = fixed->get<HostArray>()->astype(DType::kI64).to_contiguous();
      for (std::int64_t i = 0; i < sum.size(); ++i)
        sum.as<std::int64_t>()[i] += other.as<std::int64_t>()[i];
    }
    Attrs attrs = op.attrs;
    const AttrList* types = attrs.at("result_types").list();
    attrs.set("result_dtype", (*types)[0].get<Type>()->dtype());
    attrs.erase("result_types");
    attrs.set("padding", std::move(sum));
    at(op.results[0]) = b_.one(ops::kConvolution, {in[0], in[1]}, std::move(attrs));
    return true;
  }

  // Ops without regions may be evaluated by their expansion.
  class Evaluation : public RegionRunner {
   public:
    std::vector<HostArray> run(const Graph& g, std::span<const HostArray> args) override {
      return evaluate(g, args);
    }
  };

  // Control flow passes its operands on; other regions see single elements.
  GraphPtr refined_region(const Op& op, const Graph& region, const std::vector<ValueId>& in) {
    if (!op.def->is(kControlFlow) || !has_dynamic_shapes(region))
      return std::make_shared<Graph>(region);
    std::vector<Type> types;
    std::vector<const HostArray*> known;
    const std::size_t n = region.params.size();
    // The first operand of if and case is the choice.
    const std::size_t skip = in.size() > n ? in.size() - n : 0;
    const auto captures = static_cast<std::size_t>(op.attrs.i64_or("num_captures", 0));
    // What a loop carries changes; what it captures does not.
    const std::size_t first = op.def == &ops::kWhile ? n - std::min(captures, n) : 0;
    for (std::size_t i = 0; i < n; ++i) {
      types.push_back(b_.type(in[i + skip]));
      const HostArray* value = i >= first ? constant(in[i + skip]) : nullptr;
      known.push_back(value && value->size() <= kMaxFolded ? value : nullptr);
    }
    return Refiner(region.name).run(region, types, known);
  }

  // The static result type of an op that takes sizes, if they are known.
  std::optional<Type> result_of(const Op& op, const std::vector<ValueId>& in) {
    const AttrList* types = op.attrs.at("result_types").list();
    const Type written = *(*types)[0].get<Type>();
    const auto with = [&](const Dims& dims) { return Type::tensor(written.dtype(), dims); };
    const Type& x = b_.type(in[0]);
    if (op.def == &ops::kDynamicReshape || op.def == &ops::kDynamicBroadcastInDim) {
      const auto shape = sizes(in[1]);
      return shape ? std::optional(with(*shape)) : std::nullopt;
    }
    if (op.def == &ops::kDynamicIota) {
      const auto shape = sizes(in[0]);
      return shape ? std::optional(with(*shape)) : std::nullopt;
    }
    if (!x.is_static()) return std::nullopt;
    Dims out = x.dims();
    if (op.def == &ops::kDynamicPad) {
      const auto low = sizes(in[2]), high = sizes(in[3]), interior = sizes(in[4]);
      if (!low || !high || !interior) return std::nullopt;
      for (std::size_t d = 0; d < out.size(); ++d)
        out[d] += (*low)[d] + (*high)[d] + std::max<std::int64_t>(out[d] - 1, 0) * (*interior)[d];
      return with(out);
    }
    if (op.def == &ops::kRealDynamicSlice) {
      const auto start = sizes(in[1]), limit = sizes(in[2]), strides = sizes(in[3]);
      if (!start || !limit || !strides) return std::nullopt;
      for (std::size_t d = 0; d < out.size(); ++d) {
        if ((*strides)[d] < 1) return std::nullopt;
        const std::int64_t span = (*limit)[d] - (*start)[d];
        out[d] = span <= 0 ? 0 : (span - 1) / (*strides)[d] + 1;
      }
      return with(out);
    }
    if (op.def == &ops::kDynamicGather) {
      const auto slice = sizes(in[2]);
      if (!slice) return std::nullopt;
      Attrs attrs = op.attrs;
      attrs.erase("result_types");
      attrs.set("slice_sizes", *slice);
      const Type operands[] = {x, b_.type(in[1])};
      const OpCall call{ops::kGather, operands, attrs, {}, op.loc};
      return with(infer_types(call)[0].dims());
    }
    if (op.def == &ops::kSetDimensionSize) {
      const auto size = sizes(in[1]);
      const auto d = static_cast<int>(op.attrs.i64("dimension"));
      return size && size->size() == 1 && (*size)[0] == x.dim(d) ? std::optional(with(out))
                                                                 : std::nullopt;
    }
    return std::nullopt;
  }

  Builder b_;
  std::vector<ValueId> map_;
};

}  // namespace

bool has_dynamic_shapes(const Graph& graph) {
  for (const Value& v : graph.values)
    if (is_dynamic(v.type)) return true;
  for (const Op& op : graph.ops) {
    if (takes_sizes(*op.def) || is_assertion(op) || ops::is_dynamic_reduce_window(op)) return true;
    for (const GraphPtr& r : op.regions)
      if (has_dynamic_shapes(*r)) return true;
  }
  return false;
}

GraphPtr refine(const GraphPtr& graph, std::span<const Type> params) {
  if (params.size() != graph->params.size())
    throw_user_error({fmt::format("refine {}", graph->name),
                      fmt::format("one type for each of the {} parameters", graph->params.size()),
                      fmt::format("{} were given", params.size()), "Pass the arguments' types"});
  return Refiner(graph->name).run(*graph, params);
}

}  // namespace xylem::ir
