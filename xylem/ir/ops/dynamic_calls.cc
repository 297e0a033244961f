#include "xylem/ir/ops/dynamic_calls.h"

#include "xylem/ir/ops/custom.h"
#include "xylem/ir/ops/reduction.h"

namespace xylem::ir::ops {
namespace {

constexpr std::size_t kSizes = 5;

Dims as_dims(const HostArray& a) {
  const HostArray wide = a.astype(DType::kI64).to_contiguous();
  Dims out;
  for (std::int64_t n : wide.span<std::int64_t>()) out.push_back(n);
  return out;
}

}  // namespace

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

}  // namespace xylem::ir::ops
