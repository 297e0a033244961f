#include "xylem/core/internal/lazy_rules.h"

#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <unordered_map>

#include "xylem/base/error.h"
#include "xylem/core/internal/flat.h"
#include "xylem/core/numpy.h"

namespace xylem::internal {
namespace {

struct Registry {
  std::mutex mutex;
  std::unordered_map<std::int64_t, std::shared_ptr<const LazyJvpRule>> rules;
  std::int64_t next = 1;
};

Registry& registry() {
  static auto* r = new Registry;
  return *r;
}

// Its end is the end of the rule.
struct Handle {
  std::int64_t number;
  explicit Handle(std::int64_t n) : number(n) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    std::shared_ptr<const LazyJvpRule> last;  // ends after the lock
    Registry& r = registry();
    std::lock_guard lock(r.mutex);
    if (auto it = r.rules.find(number); it != r.rules.end()) {
      last = std::move(it->second);
      r.rules.erase(it);
    }
  }
};

}  // namespace

ir::Attr keep_lazy_rule(LazyJvpRule rule) {
  Registry& r = registry();
  std::int64_t number;
  {
    std::lock_guard lock(r.mutex);
    number = r.next++;
    r.rules.emplace(number, std::make_shared<const LazyJvpRule>(std::move(rule)));
  }
  auto handle = std::make_shared<Handle>(number);
  auto* bytes = reinterpret_cast<std::byte*>(&handle->number);
  return ir::Attr(HostArray(DType::kI64, {}, std::shared_ptr<std::byte>(std::move(handle), bytes)));
}

LazyGraph apply_lazy_rule(const HostArray& handle, std::span<const ir::Type> args,
                          const std::vector<bool>& moving, std::span<const ir::Type> results,
                          SourceLoc where) {
  std::shared_ptr<const LazyJvpRule> rule;
  {
    Registry& r = registry();
    std::lock_guard lock(r.mutex);
    auto it = r.rules.find(handle.span<std::int64_t>()[0]);
    if (it != r.rules.end()) rule = it->second;
  }
  if (!rule)
    throw UserError(ErrorParts{"custom_jvp", "a rule of this process", "it is gone",
                               "Differentiate the program in the process that traced it"},
                    where);
  std::vector<Array> in;
  for (const ir::Type& t : args) in.push_back(make_abstract({t.dims(), t.dtype(), false}));
  for (std::size_t i = 0; i < args.size(); ++i)
    in.push_back(moving[i] ? make_abstract({args[i].dims(), args[i].dtype(), false}) : Array());
  FlatTrace t = trace_flat(TraceKind::kBody, "custom_jvp rule", in,
                           [&](std::span<const Array> a) { return (*rule)(a); });
  const std::size_t n = results.size();
  bool fits = t.num_results() == 2 * n;
  LazyGraph out;
  std::size_t dense = 0;
  for (std::size_t i = 0; fits && i < 2 * n; ++i) {
    const bool defined = t.result_defined[i];
    fits = defined ? t.outputs[dense++].type == results[i % n] : i >= n;
    if (i >= n) out.out.push_back(defined);
  }
  if (!fits)
    throw UserError(
        ErrorParts{"custom_jvp", "the rule must return a pair of results and their tangents",
                   "it returns other leaves or types",
                   "Return std::pair{out, tangent_out}; a zero tangent may be undefined"},
        where);
  ir::Builder b(t.graph->name);
  std::vector<ir::ValueId> ids;
  const std::size_t own = t.graph->params.size() - t.captures.size();
  for (std::size_t i = 0; i < own; ++i) ids.push_back(b.param(t.graph->type(t.graph->params[i])));
  for (const Array& a : t.captures) {
    if (a.is_traced())
      throw UserError(ErrorParts{"custom_jvp: rule with symbolic zeros",
                                 "it may close over concrete arrays only",
                                 fmt::format("it uses a traced {}", a.type_string()),
                                 "Pass the value as an argument"},
                      where);
    ids.push_back(b.constant(a.to_host().to_contiguous()));
  }
  out.graph = b.finish(b.inline_graph(*t.graph, ids));
  return out;
}

std::vector<Array> custom_jvp_lazily(std::span<const Array> args, FlatFunction primal,
                                     LazyJvpRule rule, SourceLoc where) {
  // The dense rule: zeros for zero tangents, and zeros where it returns none.
  auto dense = [&](std::span<const Array> in) {
    std::vector<Array> r = rule(in);
    const std::size_t n = r.size() / 2;
    for (std::size_t i = 0; i < n; ++i)
      if (!r[n + i].defined() && r[i].defined() && is_inexact(r[i].dtype()))
        r[n + i] = zeros_like(r[i]);
    return r;
  };
  // Leaves that are undefined take no part in the graph.
  std::vector<bool> defined;
  for (const Array& a : args) defined.push_back(a.defined());
  LazyJvpRule full = [rule, defined](std::span<const Array> in) {
    std::vector<Array> all;
    std::size_t n = in.size() / 2, next = 0;
    for (bool d : defined) all.push_back(d ? in[next++] : Array());
    next = n;
    for (bool d : defined) all.push_back(d ? in[next++] : Array());
    return rule(all);
  };
  const ir::Attr lazy = keep_lazy_rule(std::move(full));
  return custom_jvp_with(args, primal, dense, &lazy, where);
}

}  // namespace xylem::internal
