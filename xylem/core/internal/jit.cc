#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <shared_mutex>

#include "xylem/base/env.h"
#include "xylem/base/error.h"
#include "xylem/core/internal/axis_env.h"
#include "xylem/core/internal/flat.h"
#include "xylem/core/numerics.h"
#include "xylem/ir/text.h"

namespace xylem::internal {

struct JitEntry {
  Structure structure;
  std::vector<AbstractValue> types;  // of defined arguments
  std::vector<bool> donated;         // per argument
  Numerics numerics = Numerics::safe;
  FlatTrace traced;
  std::once_flag compiled;
  runtime::ExecutablePtr executable;  // set once; not needed where the entry is only inlined
  std::shared_ptr<void> skeleton;
  std::atomic<std::uint64_t> used{0};  // the cache's clock when it was last called
};

// Entries of one jit object. Looked up by many threads, filled under the lock: a key is traced
// once.
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

void explain_miss(JitCache& cache, const Structure& s, std::span<const Array> args) {
  if (!log_enabled("compile")) return;
  std::shared_lock lock(cache.mutex);
  if (!cache.last) {
    log_line("compile", fmt::format("{}: first call, tracing and compiling", cache.name));
    return;
  }
  const JitEntry& e = *cache.last;
  std::string why;
  if (!(e.structure == s)) {
    why = fmt::format("structure: {}", e.structure.describe_difference(s));
  } else {
    std::vector<std::string> paths = s.paths();
    std::size_t next = 0;
    for (std::size_t i = 0; i < args.size() && why.empty(); ++i) {
      if (!args[i].defined()) continue;
      const AbstractValue& t = e.types[next++];
      AbstractValue now = abstract(args[i]);
      if (t == now) continue;
      why = fmt::format("argument leaf '{}' was {}{}, is {}{}", paths[i], t.type.to_string(),
                        t.weak ? " (weak)" : "", now.type.to_string(), now.weak ? " (weak)" : "");
    }
  }
  log_line("compile", fmt::format("{}: tracing again; {}", cache.name,
                                  why.empty() ? e.numerics != numerics() ? "numerics differ"
                                                                         : "donation differs"
                                              : why));
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
  e->traced = trace_flat(TraceKind::kJit, cache.name, args, types, traced);
  e->skeleton = made;
  return e;
}

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

void compile(JitCache& cache, JitEntry& e) {
  std::call_once(e.compiled, [&] {
    e.executable = runtime::default_client().compile(
        e.traced.graph, {.quick = false, .name = cache.name, .donated = donated_params(e)});
  });
}

}  // namespace

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
  std::vector<bool> donated;
  for (Array* d : donors) donated.push_back(d != nullptr);
  std::uint64_t hash = key_hash(structure, args);
  bool nested = current_trace() != nullptr;
  if (nested) donated.assign(donated.size(), false);
  // Inside another trace nothing runs: the program is inlined, and captures of outer values make
  // the graph specific to that trace.
  std::shared_ptr<JitEntry> e = find(cache, hash, structure, args, donated);
  if (!e) {
    std::unique_lock lock(cache.tracing);
    e = find(cache, hash, structure, args, donated);
    if (!e) {
      explain_miss(cache, structure, args);
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
  if (nested) return {e, e->traced.expand(apply_graph(*e->traced.graph, call))};
  compile(cache, *e);
  std::vector<runtime::BufferPtr> buffers;
  for (const Array& a : call) buffers.push_back(buffer_of(a, where));
  // From here on the buffers of donated leaves are held by `buffers` alone, unless the caller kept
  // another handle.
  std::vector<std::pair<Array*, bool>> given;  // handle, weakness
  for (Array* d : donors) {
    if (!d || !d->defined()) continue;
    given.emplace_back(d, d->weak_type());
  }
  std::vector<std::size_t> index_of_donor;
  {
    std::size_t next = 0;
    for (std::size_t i = 0; i < donors.size(); ++i) {
      if (!args[i].defined()) continue;
      if (donors[i]) index_of_donor.push_back(next);
      ++next;
    }
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
  std::vector<Array> results;
  for (runtime::BufferPtr& b : out) results.push_back(make_concrete(std::move(b)));
  return {e, e->traced.expand(std::move(results))};
}

std::string lowered_text(std::span<const Array> args, FlatFunction traced) {
  FlatTrace t = trace_flat(TraceKind::kJit, "main", args, traced);
  return ir::print(*t.graph);
}

}  // namespace xylem::internal
