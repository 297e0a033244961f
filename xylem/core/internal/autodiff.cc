#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/core/internal/flat.h"
#include "xylem/core/transform/transform.h"
#include "xylem/ir/expr.h"

namespace xylem::internal {
namespace {

void check_inexact(const char* what, std::span<const Array> args, const std::vector<bool>& active,
                   SourceLoc where) {
  for (std::size_t i = 0; i < args.size(); ++i)
    if (active[i] && args[i].defined() && !is_inexact(args[i].dtype()))
      throw UserError(
          ErrorParts{fmt::format("{}: leaf {} of the differentiated arguments", what, i),
                     "a float or complex dtype is needed",
                     fmt::format("it is {}", args[i].type_string()),
                     "Convert it with astype, or do not differentiate by it (argnums)"},
          where);
}

// Tangents and cotangents are converted to nothing: they must fit.
void check_like(const char* what, std::size_t i, const Array& given, const ir::Type& want,
                SourceLoc where) {
  if (given.node()->type == want) return;
  throw UserError(
      ErrorParts{fmt::format("{}: value {}", what, i), fmt::format("expected {}", want.to_string()),
                 fmt::format("given {}", given.type_string()),
                 "Give it the shape and dtype of the value that it belongs to"},
      where);
}

}  // namespace

void throw_nothing_to_differentiate(const Array& one) {
  throw_user_error({"grad", "an argument with arrays of a float or complex dtype",
                    fmt::format("the differentiated arguments hold {} only", one.type_string()),
                    "Convert them with astype, or differentiate by others (argnums)"},
                   CallSite::outermost({}));
}

std::vector<Array> value_and_grad(std::span<const Array> args, const std::vector<bool>& active,
                                  FlatFunction f, std::size_t& num_outputs, SourceLoc where) {
  CallSite site(where);
  check_inexact("grad", args, active, where);
  FlatTrace t = trace_flat(TraceKind::kDiff, "grad", args, f, RefWrites::kAllow);
  num_outputs = t.num_results();
  if (t.result_defined.empty() || !t.result_defined[0] || t.outputs[0].type.rank() != 0 ||
      !is_float(t.outputs[0].type.dtype()))
    throw UserError(
        ErrorParts{"grad", "the function must return a real scalar (first, if it has aux)",
                   t.outputs.empty() ? std::string("it returns no array")
                                     : fmt::format("it returns {}", t.outputs[0].type.to_string()),
                   "Reduce the result with sum or mean, or use jacrev or vjp"},
        where);
  transform::Mask outputs(t.graph->results.size(), false);
  outputs[0] = true;
  ir::GraphPtr g = transform::vjp(*t.graph, t.param_mask(active), outputs);
  std::vector<Array> call = t.call_args(args);
  call.push_back(make_literal(HostArray::scalar(1.0), t.outputs[0].type.dtype(), false));
  std::vector<Array> r = apply_graph(*g, call);
  std::size_t n = t.graph->results.size();
  std::vector<Array> grads(r.begin() + static_cast<std::ptrdiff_t>(n), r.end());
  r.resize(n);
  write_back(t.refs, t.outputs.size(), r, where);
  r = t.expand(std::move(r));
  std::size_t next = 0;
  for (std::size_t i = 0; i < args.size(); ++i)
    r.push_back(active[i] && args[i].defined() ? with_weak(grads[next++], args[i].weak_type())
                                               : Array());
  return r;
}

Jvp jvp(std::span<const Array> primals, std::span<const Array> tangents, FlatFunction f,
        SourceLoc where) {
  CallSite site(where);
  std::vector<bool> active;
  for (std::size_t i = 0; i < primals.size(); ++i) {
    active.push_back(primals[i].defined() && tangents[i].defined());
    if (active[i]) check_like("jvp: tangent", i, tangents[i], primals[i].node()->type, where);
  }
  check_inexact("jvp", primals, active, where);
  FlatTrace t = trace_flat(TraceKind::kDiff, "jvp", primals, f);
  ir::GraphPtr g = transform::jvp(*t.graph, t.param_mask(active));
  std::vector<Array> call = t.call_args(primals);
  for (std::size_t i = 0; i < tangents.size(); ++i)
    if (active[i]) call.push_back(tangents[i]);
  std::vector<Array> r = apply_graph(*g, call);
  std::size_t n = t.graph->results.size(), next = n;
  Jvp out;
  std::vector<Array> dense;
  for (std::size_t i = 0; i < n; ++i)
    dense.push_back(is_inexact(t.outputs[i].type.dtype()) ? r[next++] : Array());
  r.resize(n);
  out.primals = t.expand(std::move(r));
  next = 0;
  for (bool d : t.result_defined) out.tangents.push_back(d ? dense[next++] : Array());
  return out;
}

// The linear part with the residuals of one evaluation.
class LinearMap {
 public:
  FlatTrace traced;
  transform::Linearized parts;
  std::vector<Array> residuals;
  std::vector<bool> active;              // per argument
  std::vector<AbstractValue> arg_types;  // per argument
};

VjpResult vjp(std::span<const Array> args, const std::vector<bool>& active, FlatFunction f,
              SourceLoc where) {
  CallSite site(where);
  check_inexact("vjp", args, active, where);
  auto map = std::make_shared<LinearMap>();
  map->traced = trace_flat(TraceKind::kDiff, "vjp", args, f);
  const FlatTrace& t = map->traced;
  map->active = active;
  for (std::size_t i = 0; i < args.size(); ++i) {
    map->arg_types.push_back(args[i].defined() ? abstract(args[i]) : AbstractValue{});
    map->active[i] = active[i] && args[i].defined();
  }
  map->parts = transform::linearize(*t.graph, t.param_mask(active));
  std::vector<Array> r = apply_graph(*map->parts.primal, t.call_args(args));
  std::size_t n = t.graph->results.size();
  map->residuals.assign(r.begin() + static_cast<std::ptrdiff_t>(n), r.end());
  r.resize(n);
  return {t.expand(std::move(r)), map};
}

std::vector<Array> apply_transpose(const LinearMap& map, std::span<const Array> cotangents,
                                   SourceLoc where) {
  CallSite site(where);
  const FlatTrace& t = map.traced;
  if (cotangents.size() != t.num_results())
    throw UserError(ErrorParts{"vjp function", fmt::format("takes {} cotangents", t.num_results()),
                               fmt::format("{} were given", cotangents.size()),
                               "Give the structure of the function's result"},
                    where);
  std::vector<Array> call = map.residuals;
  std::size_t next = 0;
  for (std::size_t i = 0; i < cotangents.size(); ++i) {
    if (!t.result_defined[i]) continue;
    const ir::Type& type = t.outputs[next++].type;
    if (!is_inexact(type.dtype())) continue;
    if (!cotangents[i].defined())
      throw UserError(ErrorParts{fmt::format("vjp function: cotangent {}", i),
                                 fmt::format("expected {}", type.to_string()), "it is undefined",
                                 "Pass zeros for results without influence"},
                      where);
    check_like("vjp function: cotangent", i, cotangents[i], type, where);
    call.push_back(cotangents[i]);
  }
  ir::GraphPtr g = transform::transpose(*map.parts.linear, map.parts.num_residuals);
  std::vector<Array> r = apply_graph(*g, call);
  std::vector<Array> out;
  next = 0;
  for (std::size_t i = 0; i < map.active.size(); ++i)
    out.push_back(map.active[i] ? with_weak(r[next++], map.arg_types[i].weak) : Array());
  return out;
}

std::vector<Array> apply_linear(const LinearMap& map, std::span<const Array> tangents,
                                SourceLoc where) {
  CallSite site(where);
  const FlatTrace& t = map.traced;
  std::vector<Array> call = map.residuals;
  for (std::size_t i = 0; i < tangents.size(); ++i) {
    if (!map.active[i]) continue;
    if (!tangents[i].defined())
      throw UserError(ErrorParts{fmt::format("linear function: tangent {}", i),
                                 fmt::format("expected {}", map.arg_types[i].type.to_string()),
                                 "it is undefined", "Pass zeros for arguments that do not move"},
                      where);
    check_like("linear function: tangent", i, tangents[i], map.arg_types[i].type, where);
    call.push_back(tangents[i]);
  }
  std::vector<Array> r = apply_graph(*map.parts.linear, call);
  std::vector<Array> out;
  std::size_t dense = 0, next = 0;
  for (bool d : t.result_defined) {
    bool has = d && is_inexact(t.outputs[dense].type.dtype());
    if (d) ++dense;
    out.push_back(has ? r[next++] : Array());
  }
  return out;
}

}  // namespace xylem::internal
