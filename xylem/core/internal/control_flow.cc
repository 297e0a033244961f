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

// Captures that hold the first contents of the refs that a trace writes.
std::vector<int> written_captures(const FlatTrace& t) {
  std::vector<int> r;
  for (const RefTouch& ref : t.refs) {
    if (!ref.written) continue;
    for (std::size_t i = 0; i < t.captures.size(); ++i)
      if (t.captures[i].node() == ref.init.node()) r.push_back(static_cast<int>(i));
  }
  return r;
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
    t = trace_flat(TraceKind::kBody, "scan", args, types, body, RefWrites::kAllow);
    carry = match_carry("scan", carry, t, carry.size(), changed, where);
  }
  // Operand order: captures (constants of the loop), carry, xs.
  std::size_t num_carry = 0, num_args = 0;
  for (const Array& a : carry) num_carry += a.defined();
  num_args = num_carry;
  for (const Array& a : xs) num_args += a.defined();
  // Refs that the body writes are carried, in front.
  ir::Builder b("scan");
  std::vector<ir::ValueId> outer(t.graph->params.size());
  std::vector<Array> operands, written;
  const std::vector<int> carried = written_captures(t);
  for (std::size_t i = num_args; i < outer.size(); ++i) {
    if (std::count(carried.begin(), carried.end(), static_cast<int>(i - num_args))) continue;
    outer[i] = b.param(t.graph->type(t.graph->params[i]));
    operands.push_back(t.captures[i - num_args]);
  }
  const std::size_t num_consts = operands.size();
  for (int c : carried) {
    const std::size_t i = num_args + static_cast<std::size_t>(c);
    outer[i] = b.param(t.graph->type(t.graph->params[i]));
    operands.push_back(t.captures[static_cast<std::size_t>(c)]);
  }
  for (std::size_t i = 0; i < num_args; ++i) outer[i] = b.param(t.graph->type(t.graph->params[i]));
  std::vector<ir::ValueId> results = b.inline_graph(*t.graph, outer);
  std::rotate(results.begin(), results.end() - static_cast<std::ptrdiff_t>(carried.size()),
              results.end());
  num_carry += carried.size();
  for (const Array& a : carry)
    if (a.defined()) operands.push_back(a);
  for (const Array& a : xs)
    if (a.defined()) operands.push_back(a);
  Attrs attrs{{"length", Attr(length)},
              {"reverse", Attr(reverse)},
              {"num_consts", Attr(static_cast<std::int64_t>(num_consts))},
              {"num_carry", Attr(static_cast<std::int64_t>(num_carry))}};
  if (unroll > 1) attrs.set("unroll", Attr(unroll));
  std::vector<Array> r =
      apply(ir::ops::kScan, operands, std::move(attrs), {b.finish(std::move(results))}, where);
  std::rotate(r.begin(), r.begin() + static_cast<std::ptrdiff_t>(carried.size()), r.end());
  write_back(t.refs, t.outputs.size(), r, where);
  r = t.expand(std::move(r));
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
    b = trace_flat(TraceKind::kBody, "while_loop body", carry, body, RefWrites::kAllow);
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
  // Refs that the body writes are carried behind the rest; the condition reads them there.
  const std::vector<int> carried = written_captures(b);
  std::vector<Array> operands;
  for (const Array& a : carry)
    if (a.defined()) operands.push_back(a);
  const std::size_t plain = operands.size();
  for (int i : carried) operands.push_back(b.captures[static_cast<std::size_t>(i)]);
  const std::size_t own = operands.size();
  auto carried_place = [&](const FlatTrace& t, std::size_t capture) -> std::size_t {
    for (const RefTouch& mine : t.refs) {
      if (mine.init.node() != t.captures[capture].node()) continue;
      std::size_t k = plain;
      for (const RefTouch& r : b.refs) {
        if (!r.written) continue;
        if (r.cell == mine.cell) return k;
        ++k;
      }
    }
    return own;
  };
  std::vector<ir::Type> types;
  for (const FlatTrace* t : {&c, &b})
    for (std::size_t i = 0; i < t->captures.size(); ++i) {
      if (carried_place(*t, i) < own) continue;
      operands.push_back(t->captures[i]);
      types.push_back(t->captures[i].node()->type);
    }
  std::size_t first = 0;
  auto region = [&](const FlatTrace& t) {
    ir::Builder rb(t.graph->name);
    std::vector<ir::ValueId> own_ids, capture_ids, args;
    for (std::size_t i = 0; i < own; ++i) own_ids.push_back(rb.param(operands[i].node()->type));
    for (const ir::Type& type : types) capture_ids.push_back(rb.param(type));
    args.assign(own_ids.begin(), own_ids.begin() + static_cast<std::ptrdiff_t>(plain));
    for (std::size_t i = 0; i < t.captures.size(); ++i) {
      std::size_t place = carried_place(t, i);
      args.push_back(place < own ? own_ids[place] : capture_ids[first++]);
    }
    return rb.finish(rb.inline_graph(*t.graph, args));
  };
  ir::GraphPtr cond_region = region(c), body_region = region(b);
  Attrs attrs{{"num_captures", Attr(static_cast<std::int64_t>(types.size()))}};
  std::vector<Array> r =
      apply(ir::ops::kWhile, operands, std::move(attrs), {cond_region, body_region}, where);
  write_back(b.refs, plain, r, where);
  std::vector<Array> out;
  std::size_t next = 0;
  for (const Array& a : carry)
    out.push_back(a.defined() ? with_weak(r[next++], a.weak_type()) : Array());
  return out;
}

namespace {

// The graph with the last contents of these refs, in this order, behind its outputs: what it wrote,
// or what was there.
void return_refs(FlatTrace& t, std::span<const RefTouch> written) {
  ir::Graph g = *t.graph;
  const std::size_t n = t.outputs.size();
  std::vector<ir::ValueId> last;
  for (const RefTouch& w : written) {
    ir::ValueId v = ir::kNoValue;
    std::size_t at = n;
    for (const RefTouch& r : t.refs) {
      if (r.cell == w.cell && r.written) v = g.results[at];
      if (r.written) ++at;
    }
    if (v == ir::kNoValue) {
      v = static_cast<ir::ValueId>(g.values.size());
      ir::Value value;
      value.type = w.init.node()->type;
      value.index = static_cast<std::int32_t>(g.params.size());
      g.values.push_back(std::move(value));
      g.params.push_back(v);
      if (!g.param_attrs.empty()) g.param_attrs.emplace_back();
      t.captures.push_back(w.init);
    }
    last.push_back(v);
  }
  g.results.resize(n);
  g.results.insert(g.results.end(), last.begin(), last.end());
  t.graph = std::make_shared<const ir::Graph>(std::move(g));
}

}  // namespace

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
    traces.push_back(trace_flat(TraceKind::kBody, "branch", operands, f, RefWrites::kAllow));
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
  // Every branch returns every ref that one of them writes.
  std::vector<RefTouch> written;
  for (const FlatTrace& t : traces)
    for (const RefTouch& r : t.refs) {
      bool known = !r.written;
      for (const RefTouch& w : written) known = known || w.cell == r.cell;
      if (!known) written.push_back(r);
    }
  if (!written.empty())
    for (FlatTrace& t : traces) return_refs(t, written);
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
  write_back(written, merged.outputs.size(), r, where);
  for (std::size_t i = 0; i < merged.outputs.size(); ++i)
    for (const FlatTrace& t : traces) merged.outputs[i].weak &= t.outputs[i].weak;
  return merged.expand(std::move(r));
}

}  // namespace xylem::internal
