#include "xylem/ir/ops/window_selection.h"

#include <vector>

#include "xylem/ir/expr.h"
#include "xylem/ir/ops/all.h"

namespace xylem::ir::ops {
namespace {

constexpr DType kPlace = DType::kI64;

// The pair reduction: of (value, place) the one that `select` keeps; place -1 is padding.
GraphPtr keep_selected(const Type& element, const Graph& select, std::span<const Type> captures) {
  Builder b("keep_selected");
  const Type place = Type::tensor(kPlace);
  Expr left{&b, b.param(element)}, left_at{&b, b.param(place)};
  Expr right{&b, b.param(element)}, right_at{&b, b.param(place)};
  std::vector<ValueId> args = {left.v, right.v};
  for (const Type& t : captures) args.push_back(b.param(t));
  Expr selected{&b, b.inline_graph(select, args)[0]};
  Expr keep =
      binary(kOr, compare(right_at, -1, "EQ"), binary(kAnd, compare(left_at, -1, "NE"), selected));
  return b.finish({ir::select(keep, left, right).v, ir::select(keep, left_at, right_at).v});
}

}  // namespace

ValueId selected_places(Builder& b, const Attrs& attrs, const Graph& select, ValueId x,
                        std::span<const ValueId> captures) {
  const Type t = b.type(x);
  std::vector<Type> capture_types;
  for (ValueId v : captures) capture_types.push_back(b.type(v));
  Attrs window;
  for (const char* name :
       {"window_dimensions", "window_strides", "base_dilations", "window_dilations", "padding"})
    if (const Attr* a = attrs.find(name)) window.set(name, *a);
  if (!window.has("window_dimensions"))
    window.set("window_dimensions", Attr(Dims(t.dims().size(), 1)));
  window.set("num_captures", Attr(static_cast<std::int64_t>(captures.size())));
  Expr place = reshape(iota(b, kPlace, {t.size()}, 0), t.dims());
  std::vector<ValueId> in = {x, place.v, b.splat(t.dtype(), {}, 0), b.splat(kPlace, {}, -1)};
  in.insert(in.end(), captures.begin(), captures.end());
  return b.op(kReduceWindow, std::span<const ValueId>(in), std::move(window),
              {keep_selected(Type::tensor(t.dtype()), select, capture_types)})[1];
}

ValueId expand_select_and_scatter(Builder& b, const Op& op, std::span<const ValueId> operands) {
  const Type x = b.type(operands[0]), source = b.type(operands[1]);
  Expr init{&b, operands[2]};
  auto captures = operands.subspan(3);
  if (x.size() == 0) return zeros(b, x).v;
  Expr selected{&b, selected_places(b, op.attrs, *op.regions[0], operands[0], captures)};
  std::vector<ValueId> scatter = {broadcast_in_dim(init, {x.size()}, {}).v,
                                  reshape(selected, {source.size()}).v,
                                  reshape({&b, operands[1]}, {source.size()}).v};
  scatter.insert(scatter.end(), captures.begin(), captures.end());
  Expr flat{&b, b.one(kScatter, std::span<const ValueId>(scatter),
                      Attrs{{"inserted_window_dims", Attr(Dims{0})},
                            {"scatter_dims_to_operand_dims", Attr(Dims{0})},
                            {"index_vector_dim", Attr(1)},
                            {"num_captures", Attr(static_cast<std::int64_t>(captures.size()))}},
                      {op.regions[1]})};
  return reshape(flat, x.dims()).v;
}

}  // namespace xylem::ir::ops
