#include "xylem/ir/ops/internal/custom_targets.h"
#include "xylem/ir/lapack/call.h"
#include "xylem/ir/ops/custom.h"
#include "xylem/ir/ops/dynamic_calls.h"
#include "xylem/ir/ops/lapack.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "xylem/base/error.h"
#include "xylem/ir/ops/internal/compare_arrays.h"
#include "xylem/ir/ops/internal/eval_util.h"

namespace xylem::ir::ops {
namespace {

using Values = std::vector<HostArray>;

[[noreturn]] void bad(const EvalCall& call, std::string_view expected, std::string_view given,
                      std::string_view advice) {
  throw UserError(ErrorParts{fmt::format("custom_call @{}", call.op.attrs.str("call_target_name")),
                             expected, given, advice},
                  call.op.loc.source);
}

// A check of (actual, expected); its result, if it has one, is true.
Values checked(const EvalCall& call, std::string_view name, const std::string& fault) {
  require_check(name, fault);
  Values out;
  for (const Type& t : call.result_types) {
    HostArray yes(t.dtype(), t.dims());
    for (std::int64_t i = 0; i < yes.size(); ++i) yes.as<bool>()[i] = true;
    out.push_back(std::move(yes));
  }
  return out;
}

void need_two(const EvalCall& call) {
  if (call.operands.size() != 2)
    bad(call, "the operands are (actual, expected)",
        fmt::format("there are {}", call.operands.size()), "Pass two values");
  for (const Type& t : call.result_types)
    if (t.dtype() != DType::kBool)
      bad(call, "the result, if any, is tensor<i1>", t.to_mlir(), "Leave it out");
}

Values expect_eq(const EvalCall& call) {
  need_two(call);
  return checked(call, "check.expect_eq", check_equal(call.operands[0], call.operands[1]));
}

Values expect_close(const EvalCall& call) {
  need_two(call);
  return checked(call, "check.expect_close", check_close(call.operands[0], call.operands[1], 0, 3));
}

Values expect_almost_eq(const EvalCall& call) {
  need_two(call);
  return checked(call, "check.expect_almost_eq",
                 check_almost_equal(call.operands[0], call.operands[1], 0.001));
}

// Integers and bools exactly, all other types almost.
Values eq(const EvalCall& call) {
  need_two(call);
  const HostArray &a = call.operands[0], &b = call.operands[1];
  return checked(call, "check.eq",
                 is_inexact(a.dtype()) ? check_almost_equal(a, b, 0.0001) : check_equal(a, b));
}

// Markers for the partitioner: on one device the identity.
Values identity(const EvalCall& call) {
  if (call.operands.size() != call.result_types.size())
    bad(call, "there is a result for every operand",
        fmt::format("{} operands, {} results", call.operands.size(), call.result_types.size()),
        "Make them agree");
  return {call.operands.begin(), call.operands.end()};
}

Values nothing(const EvalCall& call) {
  if (!call.result_types.empty())
    bad(call, "it has no results", fmt::format("{}", call.result_types.size()), "Leave them out");
  return {};
}

Values allocate(const EvalCall& call) {
  Values out;
  for (const Type& t : call.result_types) out.push_back(HostArray::zeros(t.dtype(), t.dims()));
  return out;
}

// shape_assertion(ok, sizes…) {error_message}: "{0}" stands for the first size.
Values shape_assertion(const EvalCall& call) {
  if (call.operands.empty() || call.operands[0].dtype() != DType::kBool ||
      call.operands[0].size() != 1)
    bad(call, "the first operand is tensor<i1>", types_text(call.operand_types),
        "Pass a condition");
  if (*call.operands[0].as<bool>()) return nothing(call);
  std::string message = call.op.attrs.str_or("error_message", "a shape assertion failed");
  for (std::size_t i = 1; i < call.operands.size(); ++i) {
    std::string hole = fmt::format("{{{}}}", i - 1);
    for (std::size_t at = message.find(hole); at != std::string::npos; at = message.find(hole))
      message.replace(at, hole.size(), fmt::format("{}", integer_scalar(call.operands[i])));
  }
  bad(call, "the sizes satisfy the assertion", message, "Call it with fitting sizes");
}

// ApproxTopK(values…, inits…) without an approximation: sorts by the comparator and keeps the
// first k.
Values approx_top_k(const EvalCall& call) {
  const Attr* attr = call.op.attrs.find("mhlo.backend_config");
  if (!attr || !attr->dict()) attr = call.op.attrs.find("backend_config");
  const Attrs* config = attr ? attr->dict() : nullptr;
  std::size_t n = call.operands.size() / 2;
  if (!config || call.op.regions.empty() || !call.op.regions[0] || n == 0 ||
      call.operands.size() != 2 * n || call.result_types.size() != n)
    bad(call, "it has values and as many inits, a comparator and mhlo.backend_config",
        types_text(call.operand_types), "Write it as JAX does");
  std::int64_t k = config->i64_or("top_k", 1), axis = config->i64_or("reduction_dim", -1);
  if (const Attr* a = config->find("reduction_dim"))
    if (const ScalarAttr* s = a->get<ScalarAttr>()) axis = s->integer;
  const Dims& dims = call.operands[0].dims();
  if (axis < 0) axis += dims.ssize();
  if (axis < 0 || axis >= dims.ssize() || k < 0 || k > dims[axis])
    bad(call, "reduction_dim is a dimension and top_k at most its size", attr->to_string(),
        "Correct them");
  bool aggregate = config->flag("aggregate_to_topk");
  std::int64_t keep = aggregate ? k : call.result_types[0].dims()[axis];
  Values out;
  for (const Type& t : call.result_types) out.emplace_back(t.dtype(), t.dims());
  std::int64_t stride = row_major_strides(dims)[axis];
  Dims result_dims = call.result_types[0].dims();
  std::int64_t result_stride = row_major_strides(result_dims)[axis];
  for_each_line(dims, axis, [&](std::int64_t start) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(dims[axis]));
    std::iota(order.begin(), order.end(), 0);
    Values args(2 * n);
    // Insertion by the comparator: stays inside whatever the region answers.
    for (std::size_t i = 1; i < order.size(); ++i)
      for (std::size_t j = i; j > 0; --j) {
        for (std::size_t v = 0; v < n; ++v) {
          args[2 * v] = element(call.operands[v], start + order[j] * stride);
          args[2 * v + 1] = element(call.operands[v], start + order[j - 1] * stride);
        }
        if (!*call.regions.run(*call.op.regions[0], args)[0].as<bool>()) break;
        std::swap(order[j], order[j - 1]);
      }
    std::int64_t outer = start / (stride * dims[axis]), inner = start % stride;
    std::int64_t to = outer * result_stride * result_dims[axis] + inner;
    for (std::int64_t i = 0; i < std::min(keep, dims[axis]); ++i)
      for (std::size_t v = 0; v < n; ++v)
        set_element(out[v], to + i * result_stride,
                    element(call.operands[v], start + order[static_cast<std::size_t>(i)] * stride));
  });
  return out;
}

Values lapack_call(const EvalCall& call) {
  Values out;
  std::vector<Type> types;
  std::vector<void*> buffers;
  for (const HostArray& a : call.operands) {
    types.push_back(Type::tensor(a.dtype(), a.dims()));
    buffers.push_back(const_cast<std::byte*>(a.data()));  // read only
  }
  for (const Type& t : call.result_types)
    if (!t.is_tensor() || !t.is_static())
      bad(call, "the results are tensors of static shape", t.to_mlir(), "Refine the program");
  auto routine = lapack::make_call(call.op, types, call.result_types);
  for (const Type& t : call.result_types) {
    out.push_back(HostArray::zeros(t.dtype(), t.dims()));
    buffers.push_back(out.back().data());
  }
  routine->run(buffers.data());
  return out;
}

using Target = Values (*)(const EvalCall&);
constexpr std::pair<std::string_view, Target> kTargets[] = {
    {"check.expect_eq", expect_eq},
    {"check.expect_close", expect_close},
    {"check.expect_almost_eq", expect_almost_eq},
    {"check.eq", eq},
    {"Sharding", identity},
    {"SPMDFullToShardShape", identity},
    {"SPMDShardToFullShape", identity},
    {"annotate_device_placement", identity},
    {"xla.sdy.FuncResultSharding", identity},
    {"xla.sdy.GlobalToLocalShape", identity},
    {"xla.sdy.LocalToGlobalShape", identity},
    {"xla.sdy.ShardingGroup", nothing},
    {"dce_sink", nothing},
    {"AllocateBuffer", allocate},
    {"CreateBuffer", allocate},
    {"Pin", identity},
    {"Unpin", identity},
    {"shape_assertion", shape_assertion},
    {"ApproxTopK", approx_top_k},
};

}  // namespace

bool is_known_target(std::string_view target) {
  return is_lapack_target(target) || lapack::is_target(target) ||
         target == "stablehlo.dynamic_reduce_window" ||
         std::any_of(std::begin(kTargets), std::end(kTargets),
                     [&](const auto& t) { return t.first == target; });
}

bool is_identity_call(const Op& op) {
  if (op.def != &kCustomCall || op.operands.size() != op.results.size()) return false;
  std::string target = op.attrs.str_or("call_target_name", "");
  return std::any_of(std::begin(kTargets), std::end(kTargets),
                     [&](const auto& t) { return t.first == target && t.second == identity; });
}

namespace {

// The call with the shapes that its operands hold.
std::vector<HostArray> evaluate_with_shapes(const EvalCall& call, const Dims& holders) {
  std::vector<Dims> shapes;
  std::vector<Type> results, operand_types;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    const HostArray& a = call.operands[static_cast<std::size_t>(holders[i])];
    const Type& t = call.result_types[i];
    if (!is_integer(a.dtype()) || a.rank() != 1 || !t.is_tensor() || a.size() != t.rank())
      bad(call, "a shape operand holds one size for each dimension of its result",
          fmt::format("{} for {}", a.type_string(), t.to_mlir()), "Write the call as JAX does");
    shapes.push_back(as_dims(a));
    const Type exact = Type::tensor(t.dtype(), shapes.back());
    if (!types_compatible(t, exact))
      bad(call, fmt::format("a shape operand agrees with the type of result {}", i),
          fmt::format("{} and {}", exact.to_mlir(), t.to_mlir()), "Correct the shape");
    results.push_back(exact);
  }
  std::vector<std::size_t> kept;
  const Op op = with_result_shapes(call.op, holders, shapes, kept);
  Values operands;
  for (std::size_t i : kept) {
    operands.push_back(call.operands[i]);
    operand_types.push_back(Type::tensor(operands.back().dtype(), operands.back().dims()));
  }
  return evaluate_custom_call({op, operands, results, call.regions, operand_types});
}

}  // namespace

std::vector<HostArray> evaluate_custom_call(const EvalCall& call) {
  if (const std::optional<Dims> holders = shape_operands(call.op))
    return evaluate_with_shapes(call, *holders);
  std::string target = call.op.attrs.str_or("call_target_name", "");
  for (auto [name, eval] : kTargets)
    if (name == target) return eval(call);
  if (is_dynamic_reduce_window(call.op)) return evaluate_dynamic_reduce_window(call);
  if (lapack::is_call(call.op)) return lapack_call(call);
  if (is_lapack_call(call.op)) return evaluate_lapack_call(call);
  bad(call, "unsupported custom call: the target is one that the interpreter knows",
      "it has no meaning here", "Lower it to StableHLO, or run it where it is registered");
}

}  // namespace xylem::ir::ops
