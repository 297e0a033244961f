#include "xylem/core/internal/trace.h"

#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/base/pool_allocator.h"
#include "xylem/core/debug.h"
#include "xylem/core/internal/donation.h"
#include "xylem/core/internal/eager.h"
#include "xylem/core/internal/refs.h"

namespace xylem::internal {
namespace {

thread_local std::vector<std::shared_ptr<Trace>> trace_stack;
thread_local SourceLoc call_site;
thread_local bool call_site_set = false;

[[noreturn]] void leaked(const Trace& t, SourceLoc where) {
  throw UserError(
      ErrorParts{
          "leaked tracer",
          fmt::format("a value traced inside '{}' may be used only while it is traced", t.name()),
          "the value is used after its trace ended or in another thread",
          "Return the value from the transformed function instead of storing it elsewhere"},
      where);
}

}  // namespace

Array make_concrete(runtime::BufferPtr buffer, bool weak) {
  auto n = std::allocate_shared<ArrayNode>(PoolAllocator<ArrayNode>());
  n->type = ir::Type::tensor(buffer->dtype(), buffer->dims());
  n->weak = weak;
  n->buffer = std::move(buffer);
  return Array(std::move(n));
}

Array make_literal(HostArray scalar, DType dtype, bool weak) {
  auto n = std::allocate_shared<ArrayNode>(PoolAllocator<ArrayNode>());
  n->type = ir::Type::tensor(dtype, scalar.dims());
  n->weak = weak;
  n->literal = std::move(scalar);
  return Array(std::move(n));
}

AbstractValue abstract(const Array& a) { return {a.node()->type, a.node()->weak}; }

runtime::BufferPtr buffer_of(const Array& a, SourceLoc where) {
  const ArrayNode& n = *a.node();
  if (n.trace) leaked(*n.trace, where);
  if (n.buffer) {
    if (n.buffer->released())
      throw UserError(
          ErrorParts{
              "use of a donated array", "the array's buffer must still be there",
              fmt::format("{} was donated to a jitted call{}", n.type.to_string(), last_donation()),
              "Keep a copy of the handle before moving, or use the call's result"},
          where);
    return n.buffer;
  }
  return literal_buffer(n.literal, n.type.dtype());
}

std::span<const std::shared_ptr<Trace>> live_traces() { return trace_stack; }

Trace* current_trace() { return trace_stack.empty() ? nullptr : trace_stack.back().get(); }

TraceScope::TraceScope(std::shared_ptr<Trace> trace) { trace_stack.push_back(std::move(trace)); }
TraceScope::~TraceScope() { trace_stack.pop_back(); }

NoTraceScope::NoTraceScope() : saved_(std::move(trace_stack)) { trace_stack.clear(); }
NoTraceScope::~NoTraceScope() { trace_stack = std::move(saved_); }

CallSite::CallSite(SourceLoc where) {
  // An unknown place says nothing: what is called below may know better.
  if (call_site_set || !where.known()) return;
  call_site = where;
  call_site_set = set_ = true;
}
CallSite::~CallSite() {
  if (set_) call_site_set = false;
}
SourceLoc CallSite::outermost(SourceLoc otherwise) { return call_site_set ? call_site : otherwise; }

Trace::Trace(TraceKind kind, std::string name)
    : kind_(kind), name_(std::move(name)), builder_(name_) {}

Array Trace::wrap(ir::ValueId v, bool weak) {
  auto n = std::allocate_shared<ArrayNode>(PoolAllocator<ArrayNode>());
  n->type = builder_.type(v);
  n->weak = weak;
  n->trace = shared_from_this();
  n->value = v;
  return Array(std::move(n));
}

Array Trace::add_argument(const AbstractValue& t, const Array& actual) {
  arguments_.push_back(actual);
  return wrap(builder_.param(t.type), t.weak);
}

ir::ValueId Trace::use(const Array& a, SourceLoc where) {
  if (!a.defined())
    throw UserError(ErrorParts{"array operand", "an array with contents is needed",
                               "the handle is undefined" + last_donation(),
                               "Assign the array before using it; gradients of integer leaves are "
                               "undefined"},
                    where);
  const ArrayNode& n = *a.node();
  if (n.trace.get() == this) return n.value;
  auto it = captured_.find(&n);
  if (it != captured_.end()) return it->second;
  ir::ValueId v;
  if (n.concrete() && n.literal.defined()) {
    // A literal's node dies with the expression, and another may take its address: no entry.
    return builder_.constant(n.literal.astype(n.type.dtype()));
  }
  if (n.trace) {
    bool live = false;
    for (const auto& t : trace_stack) live = live || t == n.trace;
    if (!live || n.trace->finished()) leaked(*n.trace, where);
  } else if (n.buffer->released()) {
    buffer_of(a, where);  // throws
  }
  v = builder_.param(n.type);
  captures_.push_back(a);
  captured_.emplace(&n, v);
  return v;
}

Array Trace::concretize(ir::ValueId v, SourceLoc where) {
  if (finished_ || thread_ != std::this_thread::get_id()) leaked(*this, where);
  if (kind_ != TraceKind::kDiff)
    throw ConcretizationError(
        ErrorParts{
            fmt::format("value of a traced array inside '{}'", name_),
            "code under jit, vmap and in loop bodies sees shapes, not numbers",
            fmt::format("the number of a traced {} was asked for", builder_.type(v).to_string()),
            "Use cond, where or while_loop on the array, or make the value a static number"},
        where);
  // The recorded ops run once, in order.
  const ir::Graph& g = builder_.graph();
  NoTraceScope none;
  known_.resize(g.values.size());
  std::size_t next_capture = 0;
  for (std::size_t i = 0; i < g.params.size(); ++i) {
    Array& slot = known_[static_cast<std::size_t>(g.params[i])];
    const Array& actual = i < arguments_.size() ? arguments_[i] : captures_[next_capture++];
    if (slot.defined()) continue;
    if (!actual.defined()) throw InternalError("concretize: an argument has no value");
    const ArrayNode& n = *actual.node();
    slot = n.trace ? n.trace->concretize(n.value, where) : actual;
  }
  for (; evaluated_ops_ < g.ops.size(); ++evaluated_ops_) {
    const ir::Op& op = g.ops[evaluated_ops_];
    std::vector<Array> operands;
    for (ir::ValueId x : op.operands) operands.push_back(known_[static_cast<std::size_t>(x)]);
    std::vector<Array> r = run_op(*op.def, operands, op.attrs, op.regions, op.loc.source, {});
    for (std::size_t i = 0; i < r.size(); ++i)
      known_[static_cast<std::size_t>(op.results[i])] = std::move(r[i]);
  }
  return known_[static_cast<std::size_t>(v)];
}

ir::GraphPtr Trace::finish(std::vector<ir::ValueId> results) {
  finished_ = true;
  known_.clear();
  return builder_.finish(std::move(results));
}

std::vector<Array> apply(const ir::OpDef& def, std::span<const Array> operands, ir::Attrs attrs,
                         std::vector<ir::GraphPtr> regions, SourceLoc where,
                         std::span<const bool> weak) {
  where = CallSite::outermost(where);
  Trace* t = current_trace();
  if (!t) return run_op(def, operands, attrs, regions, where, weak);
  std::vector<ir::ValueId> ids;
  for (const Array& a : operands) ids.push_back(t->use(a, where));
  t->builder().set_location(ir::Location(where, scope_path()));
  ir::ValueIds r = t->builder().op(def, ids, std::move(attrs), std::move(regions));
  std::vector<Array> results;
  for (std::size_t i = 0; i < r.size(); ++i)
    results.push_back(t->wrap(r[i], i < weak.size() && weak[i]));
  return results;
}

Array apply_one(const ir::OpDef& def, std::span<const Array> operands, ir::Attrs attrs,
                SourceLoc where, bool weak) {
  bool w[1] = {weak};
  return apply(def, operands, std::move(attrs), {}, where, w)[0];
}

std::vector<Array> apply_graph(const ir::Graph& g, std::span<const Array> args) {
  SourceLoc where = CallSite::outermost({});
  std::vector<Array> results;
  if (Trace* t = current_trace()) {
    std::vector<ir::ValueId> ids;
    for (const Array& a : args) ids.push_back(t->use(a, where));
    for (ir::ValueId v : t->builder().inline_graph(g, ids)) results.push_back(t->wrap(v, false));
    return results;
  }
  std::vector<Array> value(g.values.size());
  for (std::size_t i = 0; i < args.size(); ++i)
    value[static_cast<std::size_t>(g.params[i])] = args[i];
  std::vector<std::size_t> last_use(g.values.size(), 0);
  for (std::size_t i = 0; i < g.ops.size(); ++i)
    for (ir::ValueId v : g.ops[i].operands) last_use[static_cast<std::size_t>(v)] = i;
  for (ir::ValueId v : g.results) last_use[static_cast<std::size_t>(v)] = g.ops.size();
  for (std::size_t i = 0; i < g.ops.size(); ++i) {
    const ir::Op& op = g.ops[i];
    std::vector<Array> operands;
    for (ir::ValueId v : op.operands) operands.push_back(value[static_cast<std::size_t>(v)]);
    std::vector<Array> r = run_op(*op.def, operands, op.attrs, op.regions, op.loc.source, {});
    for (std::size_t k = 0; k < r.size(); ++k)
      value[static_cast<std::size_t>(op.results[k])] = std::move(r[k]);
    operands.clear();
    for (ir::ValueId v : op.operands)
      if (last_use[static_cast<std::size_t>(v)] == i) value[static_cast<std::size_t>(v)] = Array();
  }
  for (ir::ValueId v : g.results) results.push_back(value[static_cast<std::size_t>(v)]);
  return results;
}

Traced trace(TraceKind kind, std::string name, std::span<const AbstractValue> inputs,
             std::span<const Array> actual,
             FunctionRef<std::vector<Array>(std::span<const Array>)> body) {
  auto t = std::make_shared<Trace>(kind, std::move(name));
  Traced r;
  std::vector<ir::ValueId> results;
  {
    TraceScope scope(t);
    RefScope refs(t);
    std::vector<Array> args;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      args.push_back(t->add_argument(inputs[i], actual.empty() ? Array() : actual[i]));
    for (const Array& a : body(args)) {
      results.push_back(t->use(a, CallSite::outermost({})));
      r.outputs.push_back(abstract(a));
    }
    std::vector<Array> last;
    std::vector<RefTouch> touches = refs.leave(last);
    for (const Array& a : last) results.push_back(t->use(a, CallSite::outermost({})));
    put_ref_touches(std::move(touches));
  }
  r.captures = t->captures();
  r.graph = t->finish(std::move(results));
  return r;
}

}  // namespace xylem::internal
