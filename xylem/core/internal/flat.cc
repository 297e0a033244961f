#include "xylem/core/internal/flat.h"

namespace xylem::internal {

Array with_weak(const Array& a, bool weak) {
  if (!a.defined() || a.node()->weak == weak) return a;
  auto n = std::make_shared<ArrayNode>(*a.node());
  n->weak = weak;
  return Array(std::move(n));
}

std::vector<Array> FlatTrace::call_args(std::span<const Array> args) const {
  std::vector<Array> r;
  for (std::size_t i = 0; i < args.size(); ++i)
    if (arg_defined[i]) r.push_back(args[i]);
  r.insert(r.end(), captures.begin(), captures.end());
  return r;
}

std::vector<bool> FlatTrace::param_mask(const std::vector<bool>& per_arg) const {
  std::vector<bool> m;
  for (std::size_t i = 0; i < per_arg.size(); ++i)
    if (arg_defined[i]) m.push_back(per_arg[i]);
  m.resize(graph->params.size(), false);
  return m;
}

std::vector<Array> FlatTrace::expand(std::vector<Array> results) const {
  std::vector<Array> r;
  std::size_t next = 0;
  for (bool d : result_defined) {
    if (!d) {
      r.push_back(Array());
      continue;
    }
    r.push_back(with_weak(results[next], outputs[next].weak));
    ++next;
  }
  return r;
}

FlatTrace trace_flat(TraceKind kind, std::string name, std::span<const Array> args,
                     std::span<const AbstractValue> types, FlatFunction f, RefWrites writes) {
  FlatTrace r;
  std::vector<AbstractValue> inputs;
  std::vector<Array> actual;
  for (std::size_t i = 0; i < args.size(); ++i) {
    r.arg_defined.push_back(args[i].defined());
    if (!args[i].defined()) continue;
    inputs.push_back(types[i]);
    actual.push_back(args[i]);
  }
  if (kind != TraceKind::kDiff) actual.clear();
  const std::string what = name;
  Traced t = trace(kind, std::move(name), inputs, actual, [&](std::span<const Array> in) {
    std::vector<Array> full;
    std::size_t next = 0;
    for (bool d : r.arg_defined) full.push_back(d ? in[next++] : Array());
    std::vector<Array> out;
    for (Array& a : f(full)) {
      r.result_defined.push_back(a.defined());
      if (a.defined()) out.push_back(a);
    }
    return out;
  });
  r.graph = std::move(t.graph);
  r.captures = std::move(t.captures);
  r.outputs = std::move(t.outputs);
  r.refs = take_ref_touches();
  if (writes == RefWrites::kRefuse && num_writes(r.refs) > 0)
    refuse_ref_write(what, CallSite::outermost({}));
  return r;
}

FlatTrace trace_flat(TraceKind kind, std::string name, std::span<const Array> args, FlatFunction f,
                     RefWrites writes) {
  std::vector<AbstractValue> types;
  for (const Array& a : args) types.push_back(a.defined() ? abstract(a) : AbstractValue{});
  return trace_flat(kind, std::move(name), args, types, f, writes);
}

}  // namespace xylem::internal
