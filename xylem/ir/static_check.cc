#include "xylem/ir/static_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "xylem/ir/ops/internal/constant_rules.h"
#include "xylem/ir/ops/internal/shape_util.h"
#include "xylem/ir/ops/movement.h"

namespace xylem::ir {
namespace {

using ops::fail;

bool bounded(const Type& t) { return t.is_tensor() && t.extra() && !t.extra()->bounds.empty(); }

// The largest size that dimension d can have: its size, or its bound; kDynamic if there is none.
std::int64_t limit_of(const Type& t, int d) {
  if (t.dim(d) != kDynamic) return t.dim(d);
  return bounded(t) ? t.extra()->bounds[d] : kDynamic;
}

std::string shape_label(const OpDef& def) {
  std::size_t blank = def.result_labels.find(' ');
  if (def.result_labels.empty()) return "c1";
  return std::string(blank == std::string_view::npos ? def.result_labels
                                                     : def.result_labels.substr(blank + 1));
}

void check_slice_bounds(const OpCall& call) {
  const Type& x = call.operands[0];
  const Dims& limits = call.attrs.dims("limit_indices");
  for (int d = 0; d < x.rank(); ++d)
    if (std::int64_t limit = limit_of(x, d); limit != kDynamic && limits[d] > limit)
      fail(call, "c3", "limit_indices must not pass the bound of a dimension",
           fmt::format("{} in dimension {} of {}", limits[d], d, x.to_string()),
           "Slice less, or raise the bound");
}

void check_pad_bounds(const OpCall& call, const Type& result) {
  const Type& x = call.operands[0];
  const Dims &low = call.attrs.dims("edge_padding_low"),
             &high = call.attrs.dims("edge_padding_high"),
             &interior = call.attrs.dims("interior_padding");
  for (int d = 0; d < x.rank(); ++d) {
    std::int64_t limit = limit_of(x, d);
    if (limit == kDynamic) continue;
    __int128 padded = static_cast<__int128>(limit) + low[d] + high[d] +
                      static_cast<__int128>(std::max<std::int64_t>(limit - 1, 0)) * interior[d];
    if (padded < 0 || (result.dim(d) != kDynamic && result.dim(d) > padded))
      fail(call, "c4", "the padded dimension must have a size that its bound allows",
           fmt::format("dimension {} of {} gives at most {}", d, x.to_string(),
                       static_cast<std::int64_t>(padded)),
           "Cut less, or correct the result's type");
  }
}

void check_concatenate_bounds(const OpCall& call, const Type& result) {
  auto d = static_cast<int>(call.attrs.i64("dimension"));
  __int128 sum = 0;
  for (const Type& t : call.operands) {
    std::int64_t limit = limit_of(t, d);
    if (limit == kDynamic) return;
    sum += limit;
  }
  if (result.dim(d) != kDynamic && result.dim(d) > sum)
    fail(call, shape_label(call.def), "the result must not be larger than its parts",
         fmt::format("it is {}, the parts have at most {}", result.to_string(),
                     static_cast<std::int64_t>(sum)),
         "Correct the result's type");
}

// Dimensions that the op iterates over together have one size: a known size must not pass the bound
// of another one.
void check_shared_bounds(const OpCall& call, std::span<const Type> results) {
  DimMap map = dimension_map(call, results);
  struct Limits {
    std::int64_t size = kDynamic, bound = kDynamic;
    std::string sized, bounding;
  };
  std::vector<Limits> limits(map.factors.size());
  auto visit = [&](const Type& t, const Dims& factors) {
    if (!t.is_tensor() || factors.ssize() != t.rank()) return;
    for (int d = 0; d < t.rank(); ++d) {
      if (factors[d] < 0) continue;
      Limits& l = limits[static_cast<std::size_t>(factors[d])];
      if (map.factors[static_cast<std::size_t>(factors[d])].kind == DimMap::FactorKind::kOpaque)
        continue;
      if (t.dim(d) != kDynamic) {
        l.size = t.dim(d);
        l.sized = t.to_string();
      } else if (std::int64_t b = limit_of(t, d);
                 b != kDynamic && (l.bound == kDynamic || b < l.bound)) {
        l.bound = b;
        l.bounding = t.to_string();
      }
    }
  };
  for (std::size_t i = 0; i < call.operands.size() && i < map.operands.size(); ++i)
    visit(call.operands[i], map.operands[i]);
  for (std::size_t i = 0; i < results.size() && i < map.results.size(); ++i)
    visit(results[i], map.results[i]);
  for (const Limits& l : limits)
    if (l.size != kDynamic && l.bound != kDynamic && l.size > l.bound)
      fail(call, shape_label(call.def), "a size must not pass the bound that goes with it",
           fmt::format("{} in {} against {} in {}", l.size, l.sized, l.bound, l.bounding),
           "Correct the types");
}

void check_bounds(const OpCall& call, std::span<const Type> results) {
  auto any = [](std::span<const Type> types) {
    return std::any_of(types.begin(), types.end(), bounded);
  };
  if (call.def.is(kControlFlow) || (!any(call.operands) && !any(results))) return;
  if (&call.def == &ops::kSlice) check_slice_bounds(call);
  if (&call.def == &ops::kPad) check_pad_bounds(call, results[0]);
  if (&call.def == &ops::kConcatenate) check_concatenate_bounds(call, results[0]);
  check_shared_bounds(call, results);
}

// Results whose sizes stand in the type alone: they must be known, or be one bounded size.
void check_known_sizes(const OpCall& call, std::span<const Type> results) {
  bool one_bound = &call.def == &ops::kBroadcastInDim || &call.def == &ops::kReshape;
  if (!one_bound && &call.def != &ops::kIota && &call.def != &ops::kConstant) return;
  const Type& t = results[0];
  if (!t.is_tensor() || t.is_static()) return;
  int open = 0, bounds = 0;
  for (int d = 0; d < t.rank(); ++d) {
    if (t.dim(d) != kDynamic) continue;
    ++open;
    bounds += limit_of(t, d) != kDynamic;
  }
  if (!one_bound || open != 1 || bounds != 1)
    fail(call, "o1",
         one_bound ? "the result must have known sizes, or one bounded dimension"
                   : "the result must have known sizes",
         "it is " + t.to_string(), fmt::format("Use dynamic_{}", ops::short_name(call.def)));
}

}  // namespace

void check_static(const OpCall& call, std::span<const Type> results, const Graph& graph,
                  std::span<const ValueId> operands) {
  if (!results.empty()) check_known_sizes(call, results);
  check_bounds(call, results);
  ops::ConstantRule rule = ops::find_constant_rule(call.def);
  if (!rule) return;
  std::vector<std::optional<HostArray>> constants;
  bool any = false;
  for (ValueId v : operands) {
    const Op* def = graph.def(v);
    constants.emplace_back();
    if (!def || !def->def || !def->def->is(kConstant)) continue;
    const Attr* value = def->attrs.find("value");
    const HostArray* a = value ? value->get<HostArray>() : nullptr;
    if (!a || a->size() > 1024) continue;  // sizes are few
    constants.back() = a->to_contiguous();
    any = true;
  }
  if (any) rule(call, results, constants);
}

std::string result_label_at(const OpDef& def, std::size_t index, const Type& written,
                            const Type& inferred) {
  bool shape = written.is_tensor() && inferred.is_tensor() && written.dtype() == inferred.dtype();
  if (shape && def.name == "stablehlo.batch_norm_training" && index > 0)
    return fmt::format("batch_norm_training_c{}", 4 + index);
  if (shape && def.name == "stablehlo.reduce_window" && index > 0) return "reduce_window_c14";
  if (shape && def.name == "stablehlo.convolution" && written.rank() != inferred.rank())
    return "convolution_c26";
  return result_label(def, written, inferred);
}

}  // namespace xylem::ir
