#include "xylem/ir/graph.h"

#include "xylem/ir/op_def.h"

namespace xylem::ir {
namespace {

std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
  h = (h ^ v) * 0x9E3779B97F4A7C15ull;
  return h ^ (h >> 32);
}

// Numbers values in the order of their definition, so that graphs which differ only in unused or
// permuted ids compare equal.
std::vector<std::int32_t> definition_order(const Graph& g) {
  std::vector<std::int32_t> order(g.values.size(), -1);
  std::int32_t next = 0;
  for (ValueId p : g.params) order[static_cast<std::size_t>(p)] = next++;
  for (const Op& op : g.ops)
    for (ValueId r : op.results) order[static_cast<std::size_t>(r)] = next++;
  return order;
}

}  // namespace

std::vector<Type> Graph::param_types() const {
  std::vector<Type> t;
  t.reserve(params.size());
  for (ValueId v : params) t.push_back(type(v));
  return t;
}

std::vector<Type> Graph::result_types() const {
  std::vector<Type> t;
  t.reserve(results.size());
  for (ValueId v : results) t.push_back(type(v));
  return t;
}

const Module::Function* Module::find(std::string_view symbol) const {
  for (const Function& f : functions)
    if (f.name == symbol) return &f;
  return nullptr;
}

bool structurally_equal(const Graph& a, const Graph& b) {
  if (&a == &b) return true;
  if (a.params.size() != b.params.size() || a.ops.size() != b.ops.size() ||
      a.results.size() != b.results.size())
    return false;
  std::vector<std::int32_t> na = definition_order(a), nb = definition_order(b);
  auto same = [&](ValueId x, ValueId y) {
    return na[static_cast<std::size_t>(x)] == nb[static_cast<std::size_t>(y)];
  };
  for (std::size_t i = 0; i < a.params.size(); ++i)
    if (!(a.type(a.params[i]) == b.type(b.params[i]))) return false;
  for (std::size_t i = 0; i < a.ops.size(); ++i) {
    const Op &x = a.ops[i], &y = b.ops[i];
    if (x.def != y.def || x.operands.size() != y.operands.size() ||
        x.results.size() != y.results.size() || x.regions.size() != y.regions.size() ||
        !(x.attrs == y.attrs))
      return false;
    for (std::size_t k = 0; k < x.operands.size(); ++k)
      if (!same(x.operands[k], y.operands[k])) return false;
    for (std::size_t k = 0; k < x.results.size(); ++k)
      if (!(a.type(x.results[k]) == b.type(y.results[k]))) return false;
    for (std::size_t k = 0; k < x.regions.size(); ++k)
      if (!structurally_equal(*x.regions[k], *y.regions[k])) return false;
  }
  for (std::size_t i = 0; i < a.results.size(); ++i)
    if (!same(a.results[i], b.results[i])) return false;
  return true;
}

std::uint64_t structural_hash(const Graph& g) {
  std::vector<std::int32_t> n = definition_order(g);
  auto number = [&](ValueId v) {
    return static_cast<std::uint64_t>(n[static_cast<std::size_t>(v)]);
  };
  std::uint64_t h = g.params.size();
  for (ValueId v : g.params) h = mix(h, g.type(v).hash());
  for (const Op& op : g.ops) {
    h = mix(h, static_cast<std::uint64_t>(op.def->id()));
    for (ValueId v : op.operands) h = mix(h, number(v));
    for (ValueId v : op.results) h = mix(h, g.type(v).hash());
    for (const auto& [name, value] : op.attrs.entries())
      h = mix(mix(h, std::hash<std::string_view>{}(name)), value.hash());
    for (const GraphPtr& r : op.regions) h = mix(h, structural_hash(*r));
  }
  for (ValueId v : g.results) h = mix(h, number(v));
  return h;
}

}  // namespace xylem::ir
