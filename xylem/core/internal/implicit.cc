#include "xylem/core/implicit.h"

#include <fmt/format.h>

#include <deque>
#include <mutex>

#include "xylem/base/error.h"
#include "xylem/core/internal/flat.h"
#include "xylem/core/internal/vmap_rules.h"
#include "xylem/core/numpy.h"
#include "xylem/core/transform/transform.h"
#include "xylem/ir/ops/custom_linear.h"

namespace xylem::internal {

using ir::Attr;
using ir::Attrs;

namespace {

std::vector<Array> concat(std::span<const Array> a, std::span<const Array> b) {
  std::vector<Array> r(a.begin(), a.end());
  r.insert(r.end(), b.begin(), b.end());
  return r;
}

void check_same(const char* what, const FlatTrace& t, std::span<const Array> like,
                SourceLoc where) {
  bool same = t.num_results() == like.size();
  std::size_t next = 0;
  for (std::size_t i = 0; same && i < like.size(); ++i) {
    same = t.result_defined[i] == like[i].defined();
    if (same && like[i].defined()) same = t.outputs[next++].type == like[i].node()->type;
  }
  if (!same)
    throw UserError(ErrorParts{what, "the function must return the types that it takes",
                               "it returns others", "Return a value of the argument's structure"},
                    where);
}

// A graph of a trace on (captures of several traces, parameters of the trace): those of this one
// start at `first`. The captures come first.
ir::GraphPtr arranged(const FlatTrace& t, std::size_t own, std::span<const Array> all_captures,
                      std::size_t first) {
  ir::Builder b(t.graph->name);
  std::vector<ir::ValueId> captures, args;
  for (const Array& a : all_captures) captures.push_back(b.param(a.node()->type));
  for (std::size_t i = 0; i < own; ++i) args.push_back(b.param(t.graph->type(t.graph->params[i])));
  for (std::size_t i = 0; i < t.captures.size(); ++i) args.push_back(captures[first + i]);
  return b.finish(b.inline_graph(*t.graph, args));
}

// Derivatives of a root, `levels` times: the rule of the outermost calls a root of its own.
std::vector<Array> root(const FlatTrace& s, const FlatTrace& f, std::span<const Array> guess,
                        std::span<const Array> solve_captures, std::span<const Array> f_captures,
                        const FlatSolve& tangent_solve, int levels, SourceLoc where) {
  std::vector<Array> args = concat(guess, concat(solve_captures, f_captures));
  std::size_t n = guess.size(), m = solve_captures.size();
  auto primal = [&](std::span<const Array> in) {
    std::vector<Array> call = concat(in.first(n), in.subspan(n, m));
    return s.expand(apply_graph(*s.graph, call));
  };
  if (levels == 0) return primal(args);
  std::size_t all = args.size();
  auto rule = [&](std::span<const Array> in) {
    std::span<const Array> p = in.first(all), t = in.subspan(all);
    std::vector<Array> x =
        root(s, f, p.first(n), p.subspan(n, m), p.subspan(n + m), tangent_solve, levels - 1, where);
    // f.graph takes x and then its captures.
    auto of_all = [&](std::span<const Array> q) { return apply_graph(*f.graph, q); };
    std::vector<Array> at = concat(x, p.subspan(n + m)), moves(at.size());
    for (std::size_t i = n; i < at.size(); ++i) moves[i] = t[m + i];
    std::vector<Array> f_dot = internal::jvp(at, moves, of_all, where).tangents;
    FlatMap by_x = [&](std::span<const Array> v) {
      std::vector<Array> tangents(at.size());
      for (std::size_t i = 0; i < n; ++i) tangents[i] = v[i];
      return internal::jvp(at, tangents, of_all, where).tangents;
    };
    std::vector<Array> x_dot = tangent_solve(by_x, f_dot);
    for (Array& a : x_dot) x.push_back(negative(a));
    return x;
  };
  return custom_jvp(args, primal, rule, where);
}

}  // namespace

std::vector<Array> custom_root(std::span<const Array> guess, const FlatMap& f,
                               const FlatSolve& solve, const FlatSolve& tangent_solve,
                               SourceLoc where) {
  CallSite site(where);
  for (const Array& a : guess)
    if (!a.defined() || !is_inexact(a.dtype()))
      throw UserError(ErrorParts{"custom_root", "the unknowns must be float arrays",
                                 a.defined() ? a.type_string() : std::string("an undefined leaf"),
                                 "Convert the initial guess"},
                      where);
  std::vector<Array> start;
  for (const Array& a : guess) start.push_back(stop_gradient(a));
  FlatTrace s = trace_flat(TraceKind::kBody, "custom_root solve", start,
                           [&](std::span<const Array> in) { return solve(f, in); });
  check_same("custom_root: solve", s, start, where);
  FlatTrace e = trace_flat(TraceKind::kBody, "custom_root", start,
                           [&](std::span<const Array> in) { return f(in); });
  check_same("custom_root: f", e, start, where);
  return root(s, e, start, s.captures, e.captures, tangent_solve, 2, where);
}

std::vector<Array> custom_linear_solve(std::span<const Array> b, const FlatMap& matvec,
                                       const FlatSolve& solve, const FlatSolve& transpose_solve,
                                       SourceLoc where) {
  CallSite site(where);
  FlatTrace m = trace_flat(TraceKind::kBody, "matvec", b,
                           [&](std::span<const Array> in) { return matvec(in); });
  check_same("custom_linear_solve: matvec", m, b, where);
  std::vector<FlatTrace> traces;
  traces.push_back(trace_flat(TraceKind::kBody, "solve", b,
                              [&](std::span<const Array> in) { return solve(matvec, in); }));
  traces.push_back(m);
  if (transpose_solve) {
    std::size_t own = b.size();
    ir::GraphPtr transposed =
        transform::transpose(*arranged(m, own, m.captures, 0), static_cast<int>(m.captures.size()));
    FlatMap vecmat = [&m, transposed](std::span<const Array> ct) {
      return apply_graph(*transposed, concat(m.captures, ct));
    };
    traces.push_back(
        trace_flat(TraceKind::kBody, "transpose_solve", b,
                   [&](std::span<const Array> in) { return transpose_solve(vecmat, in); }));
  }
  std::vector<Array> call;
  for (const FlatTrace& t : traces) {
    check_same("custom_linear_solve: solve", t, b, where);
    call.insert(call.end(), t.captures.begin(), t.captures.end());
  }
  std::vector<ir::GraphPtr> regions;
  std::vector<Array> captures = call;
  std::size_t first = 0;
  for (const FlatTrace& t : traces) {
    regions.push_back(arranged(t, b.size(), captures, first));
    first += t.captures.size();
  }
  call.insert(call.end(), b.begin(), b.end());
  return traces[0].expand(
      apply(ir::ops::kLinearSolve, call,
            Attrs{{"num_consts", Attr(static_cast<std::int64_t>(captures.size()))}},
            std::move(regions), where));
}

std::vector<Array> linear_transpose(std::span<const Array> args, std::span<const Array> cotangents,
                                    FlatFunction f, SourceLoc where) {
  CallSite site(where);
  FlatTrace t = trace_flat(TraceKind::kBody, "linear_transpose", args, f);
  std::size_t own = t.graph->params.size() - t.captures.size();
  std::vector<Array> call = t.captures;
  std::size_t next = 0;
  if (cotangents.size() != t.num_results())
    throw UserError(ErrorParts{"linear_transpose", "one cotangent for each result",
                               fmt::format("{} for {}", cotangents.size(), t.num_results()),
                               "Give the structure of the function's result"},
                    where);
  for (std::size_t i = 0; i < cotangents.size(); ++i) {
    if (!t.result_defined[i]) continue;
    const ir::Type& want = t.outputs[next++].type;
    if (!cotangents[i].defined() || !(cotangents[i].node()->type == want))
      throw UserError(
          ErrorParts{fmt::format("linear_transpose: cotangent {}", i),
                     fmt::format("expected {}", want.to_string()),
                     cotangents[i].defined() ? fmt::format("given {}", cotangents[i].type_string())
                                             : std::string("it is undefined"),
                     "Give it the shape and dtype of the result"},
          where);
    call.push_back(cotangents[i]);
  }
  ir::GraphPtr g =
      transform::transpose(*arranged(t, own, t.captures, 0), static_cast<int>(t.captures.size()));
  std::vector<Array> r = apply_graph(*g, call), out;
  next = 0;
  for (bool d : t.arg_defined) out.push_back(d ? r[next++] : Array());
  return out;
}

namespace {

// Rules of custom_vmap by number. They live as long as the program: graphs name them.
std::mutex rules_mutex;
std::deque<VmapRule>& vmap_rules() {
  static auto* rules = new std::deque<VmapRule>;
  return *rules;
}

}  // namespace

MappedGraph apply_vmap_rule(std::int64_t number, std::int64_t size, const std::vector<bool>& mapped,
                            std::span<const ir::Type> types) {
  const VmapRule* rule;
  {
    std::lock_guard lock(rules_mutex);
    rule = &vmap_rules().at(static_cast<std::size_t>(number));
  }
  SourceLoc where = CallSite::outermost({});
  std::vector<Array> args;
  for (const ir::Type& t : types) args.push_back(make_abstract({t.dims(), t.dtype(), false}));
  std::vector<bool> out;
  FlatTrace t =
      trace_flat(TraceKind::kBody, "custom_vmap rule", args,
                 [&](std::span<const Array> in) { return (*rule)(size, mapped, in, out); });
  if (out.size() != t.graph->results.size())
    throw UserError(
        ErrorParts{"custom_vmap: rule", "it must say of each result leaf whether it is mapped",
                   fmt::format("{} results, {} flags", t.graph->results.size(), out.size()),
                   "Return std::pair{result, std::vector<bool>{…}}"},
        where);
  // What the rule closes over becomes constants.
  ir::Builder b(t.graph->name);
  std::vector<ir::ValueId> in;
  for (std::size_t i = 0; i < args.size(); ++i) in.push_back(b.param(types[i]));
  for (const Array& a : t.captures) {
    if (a.is_traced())
      throw UserError(ErrorParts{"custom_vmap: rule", "it may close over concrete arrays only",
                                 fmt::format("it uses a traced {}", a.type_string()),
                                 "Pass the value as an argument"},
                      where);
    in.push_back(b.constant(a.to_host().to_contiguous()));
  }
  return {b.finish(b.inline_graph(*t.graph, in)), out};
}

std::vector<Array> custom_vmap(std::span<const Array> args, FlatFunction f, VmapRule rule,
                               SourceLoc where) {
  CallSite site(where);
  if (!current_trace()) return f(args);
  FlatTrace t = trace_flat(TraceKind::kBody, "custom_vmap", args, f);
  for (const Array& a : t.captures)
    if (a.is_traced())
      throw UserError(ErrorParts{"custom_vmap", "the function may close over concrete arrays only",
                                 fmt::format("it uses a traced {}", a.type_string()),
                                 "Pass the value as an argument"},
                      where);
  std::size_t own = t.graph->params.size() - t.captures.size();
  std::int64_t number;
  {
    std::lock_guard lock(rules_mutex);
    number = static_cast<std::int64_t>(vmap_rules().size());
    vmap_rules().push_back(std::move(rule));
  }
  ir::Builder b(t.graph->name);
  std::vector<ir::ValueId> in;
  for (std::size_t i = 0; i < own; ++i) in.push_back(b.param(t.graph->type(t.graph->params[i])));
  for (const Array& a : t.captures) in.push_back(b.constant(a.to_host().to_contiguous()));
  std::vector<Array> call = t.call_args(args);
  call.resize(own);
  return t.expand(apply(ir::ops::kCustomVmap, call, Attrs{{"rule", Attr(number)}},
                        {b.finish(b.inline_graph(*t.graph, in))}, where));
}

}  // namespace xylem::internal
