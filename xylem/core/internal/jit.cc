#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <shared_mutex>

#include "xylem/base/env.h"
#include "xylem/base/error.h"
#include "xylem/core/debug.h"
#include "xylem/core/internal/axis_env.h"
#include "xylem/core/internal/donation.h"
#include "xylem/core/internal/finite.h"
#include "xylem/core/internal/flat.h"
#include "xylem/core/internal/staged.h"
#include "xylem/core/numerics.h"
#include "xylem/ir/ops/callback.h"
#include "xylem/ir/ops/transform.h"
#include "xylem/ir/text.h"

namespace xylem::internal {

struct JitEntry {
  Structure structure;
  std::vector<AbstractValue> types;  // of defined arguments
  std::vector<bool> donated;         // per argument
  Numerics numerics = Numerics::safe;
  FlatTrace traced;
  bool effects = false;
  // Refs from outside: which parameter takes the contents. They are read by every call.
  std::vector<std::pair<std::size_t, RefCellPtr>> ref_args;
  std::once_flag compiled;
  runtime::ExecutablePtr executable;  // set once; not needed where the entry is only inlined
  std::shared_ptr<void> skeleton;
  std::atomic<std::uint64_t> used{0};  // the cache's clock when it was last called
};

// Entries of one jit object. Looked up by many threads, filled under the lock, so that a key is
// traced once, but for functions that call each other (see TracingLock).
class JitCache {
 public:
  JitCache(std::string n, std::size_t limit) : name(std::move(n)), max_entries(limit) {}
  std::string name;
  std::size_t max_entries;
  std::shared_mutex mutex;
  std::recursive_mutex tracing;
  std::unordered_multimap<std::uint64_t, std::shared_ptr<JitEntry>> entries;
  std::shared_ptr<JitEntry> last;  // most programs call one entry again and again
  std::atomic<std::uint64_t> clock{0};

  void touch(JitEntry& e) {
    e.used.store(clock.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};

namespace {

std::uint64_t key_hash(const Structure& s, std::span<const Array> args) {
  std::uint64_t h = s.hash();
  for (const Array& a : args) {
    if (!a.defined()) continue;
    h = (h ^ a.node()->type.hash() ^ (a.node()->weak ? 0x5bd1e995 : 0)) * 0x9E3779B97F4A7C15ull;
  }
  return h;
}

bool matches(const JitEntry& e, const Structure& s, std::span<const Array> args,
             const std::vector<bool>& donated) {
  std::size_t next = 0;
  for (const Array& a : args) {
    if (!a.defined()) continue;
    if (next >= e.types.size()) return false;
    const AbstractValue& t = e.types[next++];
    if (t.weak != a.node()->weak || !(t.type == a.node()->type)) return false;
  }
  return next == e.types.size() && e.donated == donated && e.numerics == numerics() &&
         e.structure == s;
}

std::shared_ptr<JitEntry> find(JitCache& cache, std::uint64_t hash, const Structure& s,
                               std::span<const Array> args, const std::vector<bool>& donated) {
  std::shared_lock lock(cache.mutex);
  if (cache.last && matches(*cache.last, s, args, donated)) return cache.last;  // never pushed out
  auto [from, to] = cache.entries.equal_range(hash);
  for (auto it = from; it != to; ++it) {
    if (!matches(*it->second, s, args, donated)) continue;
    cache.touch(*it->second);
    return it->second;
  }
  return nullptr;
}

std::string weak_text(const AbstractValue& t) {
  return t.type.to_string() + (t.weak ? " (weak)" : "");
}

// What of the key differs from that of `e`, old and new; `count` says how many things do.
std::string explain(const JitEntry& e, const Structure& s, std::span<const Array> args,
                    const std::vector<bool>& donated, std::size_t& count) {
  std::string why;
  count = 0;
  auto add = [&](const std::string& text) {
    ++count;
    if (count <= 4) why += (why.empty() ? "" : "; ") + text;
  };
  if (!(e.structure == s)) {
    // A leaf more or less leaves nothing to compare.
    count = 1000;
    return fmt::format("structure: {}", e.structure.describe_difference(s));
  }
  std::vector<std::string> paths = s.paths();
  auto name = [&](std::size_t i) {
    return i < paths.size() ? fmt::format("argument leaf '{}'", paths[i])
                            : fmt::format("argument leaf {}", i);
  };
  std::size_t next = 0;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!args[i].defined() || next >= e.types.size()) continue;
    const AbstractValue &t = e.types[next++], now = abstract(args[i]);
    if (!(t == now)) add(fmt::format("{} was {}, is {}", name(i), weak_text(t), weak_text(now)));
  }
  for (std::size_t i = 0; i < donated.size() && i < e.donated.size(); ++i)
    if (donated[i] != e.donated[i])
      add(fmt::format("donation: {} was {}, is {}", name(i), e.donated[i] ? "donated" : "kept",
                      donated[i] ? "donated" : "kept"));
  if (e.numerics != numerics())
    add(fmt::format("numerics were {}, are {}", e.numerics == Numerics::safe ? "safe" : "jax",
                    numerics() == Numerics::safe ? "safe" : "jax"));
  if (count > 4) why += fmt::format("; and {} more", count - 4);
  return why.empty() ? "the program was pushed out of the cache, or named another axis" : why;
}

void explain_miss(JitCache& cache, const Structure& s, std::span<const Array> args,
                  const std::vector<bool>& donated) {
  if (!log_enabled("compile")) return;
  std::shared_lock lock(cache.mutex);
  if (cache.entries.empty()) {
    log_line("compile", fmt::format("{}: first call, tracing and compiling", cache.name));
    return;
  }
  // Against the known program that is nearest.
  std::string why;
  std::size_t best = SIZE_MAX;
  for (const auto& [hash, e] : cache.entries) {
    std::size_t count = 0;
    std::string text = explain(*e, s, args, donated, count);
    if (e == cache.last && count <= best) best = SIZE_MAX;  // the last one wins ties
    if (count >= best) continue;
    best = count;
    why = std::move(text);
  }
  log_line("compile", fmt::format("{}: tracing again ({} programs so far); {}", cache.name,
                                  cache.entries.size(), why));
}

// Whether the program calls the host for effects. Other effects (custom calls) need nobody to wait.
bool calls_host(const ir::Graph& g) {
  for (const ir::Op& op : g.ops) {
    if (op.def == &ir::ops::kIoCallback) return true;
    for (const ir::GraphPtr& r : op.regions)
      if (calls_host(*r)) return true;
  }
  return false;
}

std::shared_ptr<JitEntry> make_entry(JitCache& cache, const Structure& s,
                                     std::span<const Array> args, const std::vector<bool>& donated,
                                     FlatFunction traced, const std::shared_ptr<void>& made) {
  auto e = std::make_shared<JitEntry>();
  e->structure = s;
  for (const Array& a : args)
    if (a.defined()) e->types.push_back(abstract(a));
  e->donated = donated;
  e->numerics = numerics();
  std::vector<AbstractValue> types;
  for (const Array& a : args) types.push_back(a.defined() ? abstract(a) : AbstractValue{});
  e->traced = trace_flat(TraceKind::kJit, cache.name, args, types, traced, RefWrites::kAllow);
  const FlatTrace& t = e->traced;
  const std::size_t own = t.graph->params.size() - t.captures.size();
  for (const RefTouch& r : t.refs)
    for (std::size_t i = 0; i < t.captures.size(); ++i)
      if (t.captures[i].node() == r.init.node()) e->ref_args.emplace_back(own + i, r.cell);
  e->skeleton = made;
  e->effects = calls_host(*e->traced.graph);
  return e;
}

// --- changed captures ------------------------------------------------------------------------

bool same_contents(const Array& a, const Array& b) {
  if (a.node() == b.node() || a.is_traced() || b.is_traced()) return true;
  if (a.node()->buffer && a.node()->buffer == b.node()->buffer) return true;
  return a.to_host().bit_equal(b.to_host());
}

std::string shown(const Array& a) {
  if (a.size() > 8) return a.type_string();
  return fmt::format("{} {}", a.type_string(), a.to_string());
}

// The first op that reads parameter i of the graph: where the capture was met.
SourceLoc use_of_param(const ir::Graph& g, std::size_t i) {
  for (const ir::Op& op : g.ops)
    for (ir::ValueId v : op.operands)
      if (v == g.params[i]) return op.loc.source;
  return {};
}

[[noreturn]] void capture_changed(const std::string& name, const std::string& was,
                                  const std::string& is, SourceLoc where) {
  throw UserError(
      ErrorParts{fmt::format("jit '{}': what the function closes over", name),
                 fmt::format("the value that was seen when it was traced: {}", was), is,
                 "Pass what changes as an argument (found by tracing again: CheckCaptures)"},
      where);
}

// Traces again on a hit, and compares: a changed array or number was not seen by the cached
// program.
void compare_captures(const JitCache& cache, const JitEntry& e, std::span<const Array> args,
                      FlatFunction traced) {
  FlatTrace now = trace_flat(TraceKind::kJit, cache.name, args, traced, RefWrites::kAllow);
  const FlatTrace& was = e.traced;
  const ir::Graph &a = *was.graph, &b = *now.graph;
  std::size_t own = b.params.size() - now.captures.size();
  for (std::size_t i = 0; i < now.captures.size() && i < was.captures.size(); ++i) {
    const Array &x = was.captures[i], &y = now.captures[i];
    bool ref = false;
    for (const auto& [param, cell] : e.ref_args) ref = ref || param == own + i;
    if (ref) continue;  // read by every call
    if (x.node()->type == y.node()->type && same_contents(x, y)) continue;
    capture_changed(cache.name, shown(x), fmt::format("it is now {}", shown(y)),
                    use_of_param(b, own + i));
  }
  if (ir::structurally_equal(a, b)) return;
  for (std::size_t i = 0; i < b.ops.size(); ++i) {
    const ir::Op& y = b.ops[i];
    const ir::Op* x = i < a.ops.size() ? &a.ops[i] : nullptr;
    // Callbacks are new functions each time.
    bool same = x && x->def == y.def && x->operands == y.operands &&
                (y.attrs.has("function") || x->attrs == y.attrs);
    for (std::size_t k = 0; same && k < y.regions.size(); ++k)
      same = k < x->regions.size() && ir::structurally_equal(*x->regions[k], *y.regions[k]);
    if (same) continue;
    auto text = [](const ir::Op* op) {
      if (!op) return std::string("no op");
      const ir::Attr* value = op->attrs.find("value");
      return fmt::format("{}{}", op->def->name, value ? " " + value->to_string() : "");
    };
    // The constant itself has no place: the op that reads it has.
    SourceLoc where = y.loc.source;
    for (std::size_t k = i + 1; !where.known() && k < b.ops.size(); ++k)
      where = b.ops[k].loc.source;
    capture_changed(cache.name, text(x), "now the trace gives " + text(&y), where);
  }
  if (a.ops.size() > b.ops.size())
    capture_changed(cache.name, std::string(a.ops[b.ops.size()].def->name),
                    "now the trace ends before it", a.ops[b.ops.size()].loc.source);
}

// --- tracing by several threads --------------------------------------------------------------

// Who traces a function holds its lock, so that others wait for the program instead of tracing it
// again. A thread that traces already waits for nobody: two functions that call each other would
// wait in a circle. It traces a copy of its own if the lock is taken.
class TracingLock {
 public:
  explicit TracingLock(std::recursive_mutex& m) : lock_(m, std::defer_lock) {
    if (held == 0)
      lock_.lock();
    else
      static_cast<void>(lock_.try_lock());
    ++held;
  }
  ~TracingLock() { --held; }
  TracingLock(const TracingLock&) = delete;
  TracingLock& operator=(const TracingLock&) = delete;

 private:
  static thread_local int held;
  std::unique_lock<std::recursive_mutex> lock_;
};
thread_local int TracingLock::held = 0;

void publish(JitCache& cache, std::uint64_t hash, const std::shared_ptr<JitEntry>& e) {
  std::shared_ptr<JitEntry> out, before;  // destroyed after the lock: that may unload code
  std::unique_lock lock(cache.mutex);
  if (cache.last) cache.touch(*cache.last);
  cache.touch(*e);
  cache.entries.emplace(hash, e);
  before = std::exchange(cache.last, e);
  if (cache.entries.size() <= std::max<std::size_t>(cache.max_entries, 1)) return;
  auto oldest = cache.entries.begin();
  for (auto it = oldest; it != cache.entries.end(); ++it)
    if (it->second->used < oldest->second->used) oldest = it;
  if (log_enabled("compile"))
    log_line("compile", fmt::format("{}: more than {} programs; the one called longest ago goes",
                                    cache.name, cache.max_entries));
  out = std::move(oldest->second);
  cache.entries.erase(oldest);
}

std::vector<int> donated_params(const JitEntry& e) {
  std::vector<bool> mask = e.traced.param_mask(e.donated);
  std::vector<int> r;
  for (std::size_t i = 0; i < mask.size(); ++i)
    if (mask[i]) r.push_back(static_cast<int>(i));
  return r;
}

void refuse_checks(const ir::Graph& g, const std::string& name) {
  for (const ir::Op& op : g.ops) {
    if (op.def == &ir::ops::kCheck)
      throw UserError(
          ErrorParts{fmt::format("jit '{}': check", name), "a function that went through checkify",
                     "a check that nobody turned into a value",
                     "Use jit(checkify(f)), which returns the error and the result"},
          op.loc.source);
    for (const ir::GraphPtr& r : op.regions) refuse_checks(*r, name);
  }
}

void compile(JitCache& cache, JitEntry& e) {
  std::call_once(e.compiled, [&] {
    refuse_checks(*e.traced.graph, cache.name);
    ir::GraphPtr graph = e.traced.graph;
    if (e.effects) {
      // A result that tells when the effects are over, and whether one failed.
      ir::Graph g = *graph;
      ir::Builder b(g.name);
      std::vector<ir::ValueId> params;
      for (ir::ValueId v : g.params) params.push_back(b.param(g.type(v)));
      std::vector<ir::ValueId> r = b.inline_graph(g, params);
      r.push_back(b.splat(DType::kI32, {}, 0));
      graph = b.finish(std::move(r));
    }
    e.executable = runtime::default_client().compile(
        graph, {.quick = false, .name = cache.name, .donated = donated_params(e)});
  });
}

}  // namespace

const std::string& name_of(const JitCache& cache) { return cache.name; }

std::shared_ptr<JitCache> make_jit_cache(std::string name, std::size_t max_entries) {
  return std::make_shared<JitCache>(std::move(name), max_entries);
}

const std::shared_ptr<void>& skeleton(const JitEntry& entry) { return entry.skeleton; }
std::size_t num_entries(const JitCache& cache) {
  std::shared_lock lock(const_cast<JitCache&>(cache).mutex);
  return cache.entries.size();
}
void clear(JitCache& cache) {
  std::unique_lock lock(cache.mutex);
  cache.entries.clear();
  cache.last = nullptr;
}

JitCall jit_call(JitCache& cache, const Structure& structure, std::vector<Array> args,
                 std::span<Array* const> donors, FlatFunction traced,
                 const std::shared_ptr<void>& made, SourceLoc where) {
  CallSite site(where);
  if (DisableJit::active()) {
    JitCall r;
    r.results = traced(args);
    r.entry = std::make_shared<JitEntry>();
    r.entry->skeleton = made;
    return r;
  }
  std::vector<bool> donated;
  for (Array* d : donors) donated.push_back(d != nullptr);
  std::uint64_t hash = key_hash(structure, args);
  bool nested = current_trace() != nullptr;
  if (nested || checks_values()) donated.assign(donated.size(), false);
  // Inside another trace nothing runs: the program becomes a call there, and captures of outer
  // values make the graph specific to that trace.
  std::shared_ptr<JitEntry> e = find(cache, hash, structure, args, donated);
  if (e && CheckCaptures::active()) {
    // The trace leaves a result of its own; the entry keeps the first.
    compare_captures(cache, *e, args, traced);
  } else if (!e) {
    TracingLock lock(cache.tracing);
    e = find(cache, hash, structure, args, donated);
    if (!e) {
      explain_miss(cache, structure, args, donated);
      e = make_entry(cache, structure, args, donated, traced, made);
      // A program that names an axis around it means something else elsewhere.
      bool foreign = any_axis_bound();
      for (const Array& a : e->traced.captures) foreign = foreign || a.is_traced();
      if (!foreign) {
        if (!nested) compile(cache, *e);
        publish(cache, hash, e);
      }
    }
  }
  std::vector<Array> call = e->traced.call_args(args);
  for (const auto& [param, cell] : e->ref_args) call[param] = ref_read(cell, where);
  const std::vector<RefTouch>& refs = e->traced.refs;
  const std::size_t outputs = e->traced.outputs.size();
  if (nested) {
    const ir::GraphPtr& g = e->traced.graph;
    std::vector<Array> r =
        g->ops.empty() ? apply_graph(*g, call)
                       : apply(ir::ops::kCall, call, {{"name", ir::Attr(cache.name)}}, {g}, where);
    write_back(refs, outputs, r, where);
    return {e, e->traced.expand(std::move(r))};
  }
  compile(cache, *e);
  std::vector<runtime::BufferPtr> buffers;
  for (const Array& a : call) buffers.push_back(buffer_of(a, where));
  // From here on the buffers of donated leaves are held by `buffers` alone, unless the caller kept
  // another handle.
  std::vector<std::pair<Array*, bool>> given;  // handle, weakness
  std::vector<std::size_t> index_of_donor;
  std::size_t next = 0;
  for (std::size_t i = 0; i < donors.size(); ++i) {
    if (!args[i].defined()) continue;
    if (donors[i] && donors[i]->defined()) {
      given.emplace_back(donors[i], donors[i]->weak_type());
      index_of_donor.push_back(next);
    }
    ++next;
  }
  if (!given.empty()) {
    std::size_t first = 0;
    while (!donors[first] || !donors[first]->defined()) ++first;
    note_donation(cache.name, first);
  }
  args.clear();
  call.clear();
  for (auto& [handle, weak] : given) *handle = Array();
  std::vector<runtime::BufferPtr> out;
  try {
    out = e->executable->execute(buffers, {.donated = donated_params(*e)});
  } catch (...) {
    for (std::size_t i = 0; i < given.size(); ++i)
      *given[i].first = make_concrete(buffers[index_of_donor[i]], given[i].second);
    throw;
  }
  if (e->effects) {
    // Callbacks of one call come before those of the next, and what they throw is this call's.
    const runtime::BufferPtr done = std::move(out.back());
    out.pop_back();
    done->ready().wait();
  }
  std::vector<Array> results;
  for (runtime::BufferPtr& b : out) results.push_back(make_concrete(std::move(b)));
  if (checks_values()) check_program(*e->traced.graph, buffers, results, cache.name, where);
  write_back(refs, outputs, results, where);
  return {e, e->traced.expand(std::move(results))};
}

std::string lowered_text(std::span<const Array> args, FlatFunction traced) {
  FlatTrace t = trace_flat(TraceKind::kJit, "main", args, traced);
  return ir::print(*t.graph);
}

}  // namespace xylem::internal
