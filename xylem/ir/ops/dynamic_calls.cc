#include "xylem/ir/ops/dynamic_calls.h"

#include <algorithm>

#include "xylem/ir/ops/custom.h"
#include "xylem/ir/ops/reduction.h"

namespace xylem::ir::ops {
namespace {

constexpr std::size_t kSizes = 5;

}  // namespace

Dims as_dims(const HostArray& a) {
  const HostArray wide = a.astype(DType::kI64).to_contiguous();
  Dims out;
  for (std::int64_t n : wide.span<std::int64_t>()) out.push_back(n);
  return out;
}

bool is_dynamic_reduce_window(const Op& op) {
  return op.def == &kCustomCall &&
         op.attrs.str_or("call_target_name", "") == "stablehlo.dynamic_reduce_window" &&
         op.regions.size() == 1 && op.regions[0] && op.operands.size() > kSizes &&
         op.operands.size() - kSizes == 2 * op.results.size();
}

std::size_t num_window_operands(const Op& op) { return op.operands.size() - kSizes; }

std::vector<ValueId> expand_dynamic_reduce_window(Builder& b, const Op& op,
                                                  std::span<const ValueId> operands,
                                                  std::span<const HostArray> sizes) {
  static constexpr std::string_view kNames[] = {"window_dimensions", "window_strides",
                                                "base_dilations", "window_dilations"};
  Attrs attrs;
  for (std::size_t i = 0; i < std::size(kNames); ++i) attrs.set(kNames[i], as_dims(sizes[i]));
  attrs.set("padding", sizes[4].astype(DType::kI64).to_contiguous());
  const ValueIds results = b.op(kReduceWindow, operands, std::move(attrs), {op.regions[0]});
  return {results.begin(), results.end()};
}

std::vector<HostArray> evaluate_dynamic_reduce_window(const EvalCall& call) {
  Builder b("window");
  const std::size_t n = num_window_operands(call.op);
  std::vector<ValueId> params;
  for (const HostArray& a : call.operands.first(n))
    params.push_back(b.param(Type::tensor(a.dtype(), a.dims())));
  const GraphPtr graph =
      b.finish(expand_dynamic_reduce_window(b, call.op, params, call.operands.subspan(n)));
  return call.regions.run(*graph, call.operands.first(n));
}

std::optional<Dims> shape_operands(const Op& op) {
  if (op.def != &kCustomCall) return std::nullopt;
  const Attr* attr = op.attrs.find("indices_of_shape_operands");
  if (!attr) return std::nullopt;
  Dims indices;
  if (const HostArray* a = attr->get<HostArray>(); a && is_integer(a->dtype()) && a->rank() <= 1) {
    indices = as_dims(*a);
  } else if (const Dims* d = attr->get<Dims>()) {
    indices = *d;
  }
  if (indices.size() != op.results.size()) return std::nullopt;
  for (std::int64_t i : indices)
    if (i < 0 || i >= static_cast<std::int64_t>(op.operands.size())) return std::nullopt;
  return indices;
}

Op with_result_shapes(const Op& op, const Dims& shape_operands, std::span<const Dims> shapes,
                      std::vector<std::size_t>& kept) {
  Op out = op;
  std::vector<ValueId> operands;
  AttrList layouts, types;
  const Attr* layout_attr = op.attrs.find("operand_layouts");
  const AttrList* all_layouts = layout_attr ? layout_attr->list() : nullptr;
  std::vector<std::int64_t> place(op.operands.size(), -1);  // of a kept operand
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    if (std::find(shape_operands.begin(), shape_operands.end(), static_cast<std::int64_t>(i)) !=
        shape_operands.end())
      continue;
    place[i] = static_cast<std::int64_t>(kept.size());
    kept.push_back(i);
    operands.push_back(op.operands[i]);
    if (all_layouts && i < all_layouts->size()) layouts.push_back((*all_layouts)[i]);
  }
  out.operands = ValueIds(operands);
  if (all_layouts) out.attrs.set("operand_layouts", Attr(layouts));
  if (const AttrList* written = op.attrs.at("result_types").list())
    for (std::size_t i = 0; i < written->size(); ++i) {
      const Type* t = (*written)[i].get<Type>();
      types.push_back(t && t->is_tensor() && i < shapes.size()
                          ? Attr(Type::tensor(t->dtype(), shapes[i]))
                          : (*written)[i]);
    }
  out.attrs.set("result_types", Attr(types));
  const Attr* alias_attr = op.attrs.find("output_operand_aliases");
  if (const AttrList* aliases = alias_attr ? alias_attr->list() : nullptr) {
    AttrList moved;
    for (const Attr& a : *aliases) {
      const std::int64_t from = a.dict() ? a.dict()->i64_or("operand_index", 0) : -1;
      if (from < 0 || from >= static_cast<std::int64_t>(place.size()) ||
          place[static_cast<std::size_t>(from)] < 0)
        continue;
      Attrs alias = *a.dict();
      alias.set("operand_index", Attr(place[static_cast<std::size_t>(from)]));
      moved.push_back(Attr(alias));
    }
    out.attrs.set("output_operand_aliases", Attr(moved));
  }
  out.attrs.erase("indices_of_shape_operands");
  return out;
}

}  // namespace xylem::ir::ops
