#include <fmt/format.h>

#include <algorithm>

#include "xylem/base/error.h"
#include "xylem/core/debug.h"
#include "xylem/core/internal/flat.h"
#include "xylem/core/numpy.h"
#include "xylem/ir/ops/all.h"

namespace xylem::internal {
namespace {

using ir::Attr;
using ir::Attrs;

// Carried values become as strongly typed as the body returns them.
std::vector<Array> match_carry(const char* what, std::span<const Array> init, const FlatTrace& body,
                               std::size_t num_carry, bool& changed, SourceLoc where) {
  std::vector<Array> next(init.begin(), init.end());
  std::size_t out = 0;
  changed = false;
  for (std::size_t i = 0; i < num_carry; ++i) {
    bool defined = i < body.result_defined.size() && body.result_defined[i];
    if (defined != init[i].defined())
      throw UserError(
          ErrorParts{fmt::format("{}: carry leaf {}", what, i),
                     "the body must return a carry of the structure that it takes",
                     init[i].defined() ? "the body returns no array there"
                                       : "the body returns an array where the carry has none",
                     "Return every leaf of the carry"},
          where);
    if (!defined) continue;
    const AbstractValue& given = body.outputs[out++];
    AbstractValue have = abstract(init[i]);
    if (have.type == given.type && have.weak == given.weak) continue;
    bool widens = have.weak && have.type.dims() == given.type.dims();
    if (have.type == given.type && !have.weak) continue;  // a weak result of a strong carry
    if (!widens)
      throw UserError(
          ErrorParts{fmt::format("{}: carry leaf {}", what, i),
                     fmt::format("the body must return {}, as it takes", have.type.to_string()),
                     fmt::format("it returns {}", given.type.to_string()),
                     "Give the initial value that shape and dtype, or convert in the body"},
          where);
    next[i] = given.type.dtype() == have.type.dtype() ? with_weak(init[i], given.weak)
                                                      : init[i].astype(given.type.dtype(), where);
    if (given.weak) next[i] = with_weak(next[i], true);
    changed = true;
  }
  return next;
}

AbstractValue row_of(const Array& xs) {
  AbstractValue v = abstract(xs);
  Dims d = v.type.dims();
  d.erase(0);
  v.type = v.type.with_dims(d);
  return v;
}

// Whether loops and branches run as they are written, on concrete values.
bool runs_plainly() { return DisableJit::active() && !current_trace(); }

ScanFlat plain_scan(std::span<const Array> init, std::span<const Array> xs, std::int64_t length,
                    bool reverse, FlatFunction body) {
  ScanFlat out;
  out.carry.assign(init.begin(), init.end());
  std::vector<std::vector<Array>> rows;  // of each ys
  for (std::int64_t n = 0; n < length; ++n) {
    std::int64_t i = reverse ? length - 1 - n : n;
    std::vector<Array> args = out.carry;
    for (const Array& x : xs) args.push_back(x.defined() ? x[i] : Array());
    std::vector<Array> r = body(args);
    std::copy(r.begin(), r.begin() + static_cast<std::ptrdiff_t>(init.size()), out.carry.begin());
    rows.resize(r.size() - init.size());
    for (std::size_t k = 0; k < rows.size(); ++k) rows[k].push_back(r[init.size() + k]);
  }
  for (std::vector<Array>& y : rows) {
    if (reverse) std::reverse(y.begin(), y.end());
    out.ys.push_back(y[0].defined() ? stack(y) : Array());
  }
  return out;
}

}  // namespace

ScanFlat scan(std::span<const Array> init, std::span<const Array> xs, std::int64_t length,
              bool reverse, std::int64_t unroll, FlatFunction body, SourceLoc where) {
  CallSite site(where);
  for (std::size_t i = 0; i < xs.size(); ++i) {
    if (!xs[i].defined()) continue;
    if (xs[i].ndim() == 0 || (length >= 0 && xs[i].dim(0) != length))
      throw UserError(
          ErrorParts{fmt::format("scan: leaf {} of xs", i),
                     length >= 0 ? fmt::format("the leading dimension must be {}", length)
                                 : std::string("a leading dimension is needed"),
                     fmt::format("it is {}", xs[i].type_string()),
                     "Make all leaves of xs equally long"},
          where);
    length = xs[i].dim(0);
  }
  if (length < 0)
    throw UserError(ErrorParts{"scan", "the number of steps must be known",
                               "xs has no leaves and no length was given", "Pass {.length = n}"},
                    where);
  if (runs_plainly() && length > 0) return plain_scan(init, xs, length, reverse, body);
  std::vector<Array> carry(init.begin(), init.end());
  FlatTrace t;
  for (bool changed = true; changed;) {
    std::vector<Array> args = carry;
    args.insert(args.end(), xs.begin(), xs.end());
    std::vector<AbstractValue> types;
    for (const Array& a : carry) types.push_back(a.defined() ? abstract(a) : AbstractValue{});
    for (const Array& a : xs) types.push_back(a.defined() ? row_of(a) : AbstractValue{});
    t = trace_flat(TraceKind::kBody, "scan", args, types, body);
    carry = match_carry("scan", carry, t, carry.size(), changed, where);
  }
  // Operand order: captures (constants of the loop), carry, xs.
  std::size_t num_carry = 0, num_args = 0;
  for (const Array& a : carry) num_carry += a.defined();
  num_args = num_carry;
  for (const Array& a : xs) num_args += a.defined();
  ir::Builder b("scan");
  std::vector<ir::ValueId> outer(t.graph->params.size());
  for (std::size_t i = num_args; i < outer.size(); ++i)
    outer[i] = b.param(t.graph->type(t.graph->params[i]));
  for (std::size_t i = 0; i < num_args; ++i) outer[i] = b.param(t.graph->type(t.graph->params[i]));
  std::vector<ir::ValueId> results = b.inline_graph(*t.graph, outer);
  std::vector<Array> operands = t.captures;
  for (const Array& a : carry)
    if (a.defined()) operands.push_back(a);
  for (const Array& a : xs)
    if (a.defined()) operands.push_back(a);
  Attrs attrs{{"length", Attr(length)},
              {"reverse", Attr(reverse)},
              {"num_consts", Attr(static_cast<std::int64_t>(t.captures.size()))},
              {"num_carry", Attr(static_cast<std::int64_t>(num_carry))}};
  if (unroll > 1) attrs.set("unroll", Attr(unroll));
  std::vector<Array> r = t.expand(
      apply(ir::ops::kScan, operands, std::move(attrs), {b.finish(std::move(results))}, where));
  ScanFlat out;
  out.carry.assign(r.begin(), r.begin() + static_cast<std::ptrdiff_t>(init.size()));
  out.ys.assign(r.begin() + static_cast<std::ptrdiff_t>(init.size()), r.end());
  return out;
}

namespace {

// The graph with `own` parameters followed by the captures of several graphs: those of graph k
// start at `first`; others are unused.
ir::GraphPtr with_captures(const FlatTrace& t, std::size_t own,
                           std::span<const ir::Type> all_captures, std::size_t first) {
  ir::Builder b(t.graph->name);
  std::vector<ir::ValueId> args;
  for (std::size_t i = 0; i < own; ++i) args.push_back(b.param(t.graph->type(t.graph->params[i])));
  for (std::size_t i = 0; i < all_captures.size(); ++i) {
    ir::ValueId v = b.param(all_captures[i]);
    if (i >= first && i < first + t.captures.size()) args.push_back(v);
  }
  return b.finish(b.inline_graph(*t.graph, args));
}

}  // namespace

std::vector<Array> while_loop(std::span<const Array> init, FlatFunction cond, FlatFunction body,
                              SourceLoc where) {
  CallSite site(where);
  std::vector<Array> carry(init.begin(), init.end());
  if (runs_plainly()) {
    while (cond(carry)[0].item<bool>(where)) carry = body(carry);
    return carry;
  }
  FlatTrace b;
  for (bool changed = true; changed;) {
    b = trace_flat(TraceKind::kBody, "while_loop body", carry, body);
    if (b.num_results() != carry.size())
      throw UserError(ErrorParts{"while_loop", "the body must return the structure that it takes",
                                 fmt::format("it takes {} leaves and returns {}", carry.size(),
                                             b.num_results()),
                                 "Return every leaf of the carry"},
                      where);
    carry = match_carry("while_loop", carry, b, carry.size(), changed, where);
  }
  FlatTrace c = trace_flat(TraceKind::kBody, "while_loop condition", carry, cond);
  if (c.outputs.size() != 1 || c.outputs[0].type.rank() != 0 || !is_bool(c.outputs[0].type.dtype()))
    throw UserError(ErrorParts{"while_loop", "the condition must return one bool scalar",
                               c.outputs.empty() ? std::string("it returns no array")
                                                 : c.outputs[0].type.to_string(),
                               "Compare, and reduce with all or any"},
                    where);
  std::vector<Array> operands;
  for (const Array& a : carry)
    if (a.defined()) operands.push_back(a);
  std::size_t own = operands.size();
  std::vector<ir::Type> types;
  for (const FlatTrace* t : {&c, &b})
    for (const Array& a : t->captures) {
      operands.push_back(a);
      types.push_back(a.node()->type);
    }
  Attrs attrs{{"num_captures", Attr(static_cast<std::int64_t>(types.size()))}};
  std::vector<Array> r = apply(
      ir::ops::kWhile, operands, std::move(attrs),
      {with_captures(c, own, types, 0), with_captures(b, own, types, c.captures.size())}, where);
  std::vector<Array> out;
  std::size_t next = 0;
  for (const Array& a : carry)
    out.push_back(a.defined() ? with_weak(r[next++], a.weak_type()) : Array());
  return out;
}

std::vector<Array> branch(const Array& index, std::span<const FlatFunction> branches,
                          std::span<const Array> operands, SourceLoc where) {
  CallSite site(where);
  bool is_if = is_bool(index.dtype());
  if (index.ndim() != 0 || (!is_if && !is_integer(index.dtype())))
    throw UserError(ErrorParts{"cond", "the predicate must be a bool or integer scalar",
                               fmt::format("given {}", index.type_string()),
                               "Compare or reduce to a scalar; use where for elementwise choice"},
                    where);
  if (runs_plainly()) {
    std::int64_t i = is_if ? static_cast<std::int64_t>(index.item<bool>(where))
                           : index.item<std::int64_t>(where);
    auto last = static_cast<std::int64_t>(branches.size()) - 1;
    return branches[static_cast<std::size_t>(i < 0 || i > last ? last : i)](operands);
  }
  std::vector<FlatTrace> traces;
  for (const FlatFunction& f : branches)
    traces.push_back(trace_flat(TraceKind::kBody, "branch", operands, f));
  for (std::size_t k = 1; k < traces.size(); ++k) {
    const FlatTrace &a = traces[0], &b = traces[k];
    bool same = a.result_defined == b.result_defined;
    std::string given;
    for (std::size_t i = 0; same && i < a.outputs.size(); ++i)
      if (!(a.outputs[i].type == b.outputs[i].type)) {
        same = false;
        given = fmt::format("leaf {} is {} in branch 0 and {} in branch {}", i,
                            a.outputs[i].type.to_string(), b.outputs[i].type.to_string(), k);
      }
    if (!same)
      throw UserError(ErrorParts{"cond", "branches must return the same structure and types",
                                 given.empty() ? fmt::format("branch {} returns another structure "
                                                             "than branch 0",
                                                             k)
                                               : given,
                                 "Convert the results so that the branches agree"},
                      where);
  }
  std::vector<Array> call = {is_if ? index : index.astype(DType::kI32, where)};
  for (const Array& a : operands)
    if (a.defined()) call.push_back(a);
  std::size_t own = call.size() - 1;
  std::vector<ir::Type> types;
  for (const FlatTrace& t : traces)
    for (const Array& a : t.captures) {
      call.push_back(a);
      types.push_back(a.node()->type);
    }
  std::vector<ir::GraphPtr> regions;
  std::size_t first = 0;
  for (const FlatTrace& t : traces) {
    regions.push_back(with_captures(t, own, types, first));
    first += t.captures.size();
  }
  // stablehlo.if takes the true branch first.
  if (is_if) std::swap(regions[0], regions[1]);
  Attrs attrs{{"num_captures", Attr(static_cast<std::int64_t>(call.size() - 1))}};
  std::vector<Array> r = apply(is_if ? ir::ops::kIf : ir::ops::kCase, call, std::move(attrs),
                               std::move(regions), where);
  FlatTrace merged = traces[0];
  for (std::size_t i = 0; i < merged.outputs.size(); ++i)
    for (const FlatTrace& t : traces) merged.outputs[i].weak &= t.outputs[i].weak;
  return merged.expand(std::move(r));
}

}  // namespace xylem::internal
