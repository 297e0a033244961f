#include "xylem/compiler/fusion/plan.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

#include "xylem/base/error.h"
#include "xylem/compiler/fusion/elemental.h"
#include "xylem/ir/effects.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/ops/all.h"

namespace xylem::compiler {

namespace o = ir::ops;
using ir::Graph;
using ir::Op;
using ir::ValueId;

bool is_reduction(const Op& op) {
  return op.def == &o::kReduce || op.def == &o::kArgmax || op.def == &o::kArgmin;
}

Dims reduced_dims(const Op& op) {
  if (op.def == &o::kReduce) return op.attrs.dims("dimensions");
  return {op.attrs.i64("dimension")};
}

bool common_factors(const Dims& a, const Dims& b, Dims* factors, std::vector<int>* first,
                    std::vector<int>* second) {
  factors->clear();
  first->clear();
  second->clear();
  int i = a.ssize() - 1, j = b.ssize() - 1;
  std::int64_t x = 1, y = 1;  // what is left of a[i], b[j]
  const auto pull = [](const Dims& d, int* at, std::int64_t* left) {
    while (*left == 1 && *at >= 0) {
      *left = d[*at];
      if (*left == 1) --*at;
    }
  };
  while (true) {
    pull(a, &i, &x);
    pull(b, &j, &y);
    if (x == 1 && y == 1) break;
    const std::int64_t f = std::min(x, y);
    if (f <= 1 || x % f != 0 || y % f != 0) return false;
    factors->push_back(f);
    first->push_back(i);
    second->push_back(j);
    x /= f;
    y /= f;
    if (x == 1) --i;
    if (y == 1) --j;
  }
  std::reverse(factors->begin(), factors->end());
  std::reverse(first->begin(), first->end());
  std::reverse(second->begin(), second->end());
  return true;
}

namespace {

constexpr int kMaxCost = 500;        // ops in the body of a fused loop
constexpr int kMaxInlineCost = 250;  // of an expression that is evaluated where it is used
constexpr std::size_t kMaxInputs = 48;
constexpr std::int64_t kMaxRow = 32768;  // elements of a row that is walked more than once

std::vector<Part> reduction_space(const Dims& dims, const Dims& reduced) {
  std::vector<Part> space;
  for (int i = 0; i < dims.ssize(); ++i) {
    if (dims[i] == 1) continue;
    const bool r = reduced.contains(i);
    if (!space.empty() && space.back().reduced == r)
      space.back().size *= dims[i];
    else
      space.push_back({dims[i], r});
  }
  return space;
}

bool has_reduced(const std::vector<Part>& space) {
  return std::any_of(space.begin(), space.end(), [](const Part& p) { return p.reduced; });
}

// Walks the ops that are evaluated inside of a consumer and collects what they read.
class Walker final : public Elemental {
 public:
  struct Use {
    ValueId v;
    Form flat;
  };

  Walker(const Graph& graph, const Plan& plan, AxisTable table)
      : Elemental(graph, std::move(table), nullptr), graph_(graph), plan_(plan) {}

  bool available(ValueId v, const Forms& index, const Guard&, Value*) override {
    const std::int32_t def = graph_.value(v).def;
    if (def >= 0 && plan_.roles[static_cast<std::size_t>(def)] == Role::kInline) return false;
    uses.push_back({plan_.root(v), flatten(index, graph_.type(v).dims())});
    cost += 1;
    return true;
  }

  std::vector<Use> uses;

 private:
  const Graph& graph_;
  const Plan& plan_;
};

class Planner {
 public:
  explicit Planner(const Graph& g) : g_(g) {
    plan_.roles.assign(g.ops.size(), Role::kInline);
    plan_.group_of.assign(g.ops.size(), -1);
    plan_.row.assign(g.ops.size(), false);
    plan_.view_of.resize(g.values.size());
    for (std::size_t v = 0; v < g.values.size(); ++v) plan_.view_of[v] = static_cast<ValueId>(v);
    stage_.assign(g.ops.size(), 0);
  }

  Plan run() {
    choose_roles();
    const std::size_t most =
        static_cast<std::size_t>(std::count_if(plan_.roles.begin(), plan_.roles.end(), [](Role r) {
          return r == Role::kMember || r == Role::kSpecial;
        }));
    words_ = most / 64 + 1;
    for (std::size_t i = 0; i < g_.ops.size(); ++i) {
      const Op& op = g_.ops[i];
      switch (plan_.roles[i]) {
        case Role::kView:
          for (std::size_t r = 0; r < op.results.size(); ++r)
            plan_.view_of[static_cast<std::size_t>(op.results[r])] = plan_.root(op.operands[r]);
          break;
        case Role::kSpecial: place_special(static_cast<int>(i)); break;
        case Role::kMember: place_member(static_cast<int>(i)); break;
        case Role::kInline:
        case Role::kConstant: break;
      }
    }
    finish();
    return std::move(plan_);
  }

 private:
  static std::size_t at(ValueId v) { return static_cast<std::size_t>(v); }
  int group_of_value(ValueId v) const {
    const std::int32_t def = g_.value(v).def;
    return def < 0 ? -1 : plan_.group_of[static_cast<std::size_t>(def)];
  }

  // ---- Roles -------------------------------------------------------------------------------

  void choose_roles() {
    const std::size_t n = g_.values.size();
    std::vector<int> uses(n, 0);
    std::vector<bool> expand(n, false), buffer(n, false), access(n, false);
    for (ValueId v : g_.results) {
      buffer[at(v)] = true;
      ++uses[at(v)];
    }
    const std::vector<bool> generator = generators();
    for (std::size_t i = g_.ops.size(); i-- > 0;) {
      const Op& op = g_.ops[i];
      const auto r = op.results.empty() ? ir::kNoValue : op.results[0];
      const auto count = [&](ValueId v, int k, bool e) {
        uses[at(v)] = std::min(uses[at(v)] + k, 1 << 20);
        if (e) expand[at(v)] = true;
      };
      Role role = Role::kSpecial;
      if (op.def == &o::kOptimizationBarrier) {
        role = Role::kView;
        for (std::size_t k = 0; k < op.operands.size(); ++k) {
          count(op.operands[k], 1, false);
          if (g_.type(op.operands[k]).is_tensor()) buffer[at(op.operands[k])] = true;
        }
      } else if (op.def == &o::kConstant) {
        const bool immediate = is_immediate(op);
        role = immediate && !buffer[at(r)] ? Role::kInline : Role::kConstant;
      } else if (is_elemental(g_, op)) {
        role = elemental_role(op, i, uses, expand, buffer, access, generator, count);
      } else if (is_reduction(op)) {
        role = Role::kMember;
        const std::size_t inputs = op.results.size();
        for (std::size_t k = 0; k < op.operands.size(); ++k)
          count(op.operands[k], 1, op.def == &o::kReduce && k >= inputs);
      } else if (op.def == &o::kDotGeneral || op.def == &o::kConvolution) {
        for (ValueId v : op.operands) {
          count(v, 1, true);
          access[at(v)] = true;
        }
      } else {
        for (ValueId v : op.operands) {
          count(v, 1, true);
          if (g_.type(v).is_tensor()) buffer[at(v)] = true;
        }
      }
      plan_.roles[i] = role;
    }
    bound_expressions();
  }

  // Ends expressions that grow too long: kernels take time to compile, and depth takes stack.
  void bound_expressions() {
    std::vector<int> cost(g_.ops.size(), 0);
    for (std::size_t i = 0; i < g_.ops.size(); ++i) {
      const Op& op = g_.ops[i];
      if (plan_.roles[i] != Role::kInline || op.operands.empty()) continue;
      int c = cost_of(*op.def);
      for (ValueId v : op.operands)
        if (const std::int32_t def = g_.value(v).def; def >= 0)
          c += cost[static_cast<std::size_t>(def)];
      if (c > kMaxInlineCost)
        plan_.roles[i] = Role::kMember;
      else
        cost[i] = c;
    }
  }

  template <class Count>
  Role elemental_role(const Op& op, std::size_t i, std::vector<int>& uses,
                      std::vector<bool>& expand, std::vector<bool>& buffer,
                      std::vector<bool>& access, const std::vector<bool>& generator,
                      const Count& count) {
    const std::size_t r = at(op.results[0]);
    const bool free = is_free(g_, op);
    if (op.def == &o::kReshape && buffer[r]) {
      const Op* source = g_.def(op.operands[0]);
      const bool made = source && (is_immediate(*source) || source->def == &o::kIota ||
                                   source->def == &o::kBroadcastInDim);
      if (!made) {
        count(op.operands[0], 1, false);
        buffer[at(op.operands[0])] = true;
        return Role::kView;
      }
    }
    if (free && !buffer[r]) {
      for (ValueId v : op.operands) {
        count(v, uses[r], expand[r] || g_.type(op.results[0]).size() > g_.type(v).size());
        if (access[r]) access[at(v)] = true;
      }
      return Role::kInline;
    }
    const bool evaluated_in_place =
        !buffer[r] && !access[r] && (generator[i] || (uses[r] == 1 && !expand[r]));
    if (op.def == &o::kGather || op.def == &o::kDynamicSlice) {
      count(op.operands[0], 1, op.def == &o::kGather);
      for (std::size_t k = 1; k < op.operands.size(); ++k) count(op.operands[k], 1, true);
    } else {
      for (ValueId v : op.operands)
        count(v, generator[i] ? uses[r] : 1,
              (generator[i] && expand[r]) || g_.type(v).size() < g_.type(op.results[0]).size());
    }
    return evaluated_in_place ? Role::kInline : Role::kMember;
  }

  // Small expressions of constants and iotas, which are cheaper to write again than to load.
  std::vector<bool> generators() const {
    std::vector<bool> yes(g_.ops.size(), false);
    std::vector<int> cost(g_.ops.size(), 0);
    constexpr int kMost = 8;
    for (std::size_t i = 0; i < g_.ops.size(); ++i) {
      const Op& op = g_.ops[i];
      if (!is_elemental(g_, op) || op.def->is(ir::kTranscendental)) continue;
      if (!is_free(g_, op) && !op.def->is(ir::kPointwise)) continue;
      bool all = true;
      int c = is_free(g_, op) ? 0 : 1;
      for (ValueId v : op.operands) {
        const std::int32_t def = g_.value(v).def;
        all = all && def >= 0 && yes[static_cast<std::size_t>(def)];
        if (def >= 0) c += cost[static_cast<std::size_t>(def)];
      }
      yes[i] = all && c <= kMost;
      cost[i] = std::min(c, kMost + 1);  // sums of sums would overflow
    }
    return yes;
  }

  // ---- Dependences -------------------------------------------------------------------------

  using Bits = std::vector<std::uint64_t>;
  bool depends(int a, int b) const {
    return (deps_[static_cast<std::size_t>(a)][static_cast<std::size_t>(b) / 64] >> (b % 64)) & 1;
  }
  static void set(Bits& bits, int b) { bits[static_cast<std::size_t>(b) / 64] |= 1ull << (b % 64); }
  static void add(Bits& to, const Bits& from) {
    for (std::size_t w = 0; w < to.size(); ++w) to[w] |= from[w];
  }

  int new_group(bool special) {
    Group group;
    group.special = special;
    plan_.groups.push_back(std::move(group));
    deps_.emplace_back(words_, 0);
    return static_cast<int>(plan_.groups.size()) - 1;
  }

  void depend(int g, const std::vector<int>& on) {
    Bits added(words_, 0);
    for (int h : on) {
      if (h == g) continue;
      set(added, h);
      add(added, deps_[static_cast<std::size_t>(h)]);
    }
    spread(g, added);
  }

  void spread(int g, const Bits& added) {
    Bits& own = deps_[static_cast<std::size_t>(g)];
    bool news = false;
    for (std::size_t w = 0; w < words_; ++w) news = news || (added[w] & ~own[w]);
    if (!news) return;
    add(own, added);
    for (std::size_t k = 0; k < deps_.size(); ++k)
      if (static_cast<int>(k) != g && depends(static_cast<int>(k), g)) add(deps_[k], own);
  }

  // ---- Placing -----------------------------------------------------------------------------

  // What the inline ops behind the given values read, on the axes of `dims`.
  std::vector<ValueId> sources(const Op& op) {
    std::vector<ValueId> out;
    for (const Walker::Use& u : walk(op, g_.type(iterated(op)).dims(), nullptr, nullptr))
      if (std::find(out.begin(), out.end(), u.v) == out.end()) out.push_back(u.v);
    return out;
  }

  // The value whose shape the op's loop runs over.
  ValueId iterated(const Op& op) const { return is_reduction(op) ? op.operands[0] : op.results[0]; }

  // Evaluates the op on the axes of `factors` (row-major over the iterated shape).
  std::vector<Walker::Use> walk(const Op& op, Dims factors, Dims* used, int* cost) {
    const Dims& shape = g_.type(iterated(op)).dims();
    for (int round = 0; round < 24; ++round) {
      AxisTable table;
      Form flat;
      std::int64_t stride = 1;
      for (int i = factors.ssize() - 1; i >= 0; --i) {
        if (factors[i] != 1) flat = flat + Form::axis(i, stride);
        stride *= factors[i];
      }
      for (std::int64_t f : factors) table.axes.push_back({f, true, false});
      Walker walker(g_, plan_, std::move(table));
      const Forms index = walker.split_index(flat, shape, {});
      if (is_reduction(op)) {
        const std::size_t n = op.results.size();
        for (std::size_t k = 0; k < op.operands.size(); ++k) {
          const bool scalar = op.def == &o::kReduce && k >= n;
          walker.eval(op.operands[k], scalar ? Forms{} : index, {});
        }
        walker.cost += 2 * static_cast<int>(n);
      } else {
        walker.eval_op(op.results[0], index, {});
      }
      bool again = false;
      for (const AxisSplit& s : walker.splits) {
        if (s.axis >= factors.ssize()) continue;
        factors[s.axis] /= s.inner;
        factors.insert(static_cast<std::size_t>(s.axis) + 1, s.inner);
        again = true;
        break;
      }
      if (again && round < 23) continue;
      if (used) *used = factors;
      if (cost) *cost = walker.cost;
      return std::move(walker.uses);
    }
    return {};
  }

  struct Fit {
    bool ok = false;
    bool row = false;
    int stage = 0;
    int cost = 0;
  };

  // Whether the op can be computed in the loop of group g: everything that it reads of g's members
  // is at the very element that the loop is at.
  Fit fits(const Op& op, int gi) {
    const Group& group = plan_.groups[static_cast<std::size_t>(gi)];
    Fit fit;
    if (group.special || group.closed) return fit;
    const bool reduction = is_reduction(op);
    const Dims& shape = g_.type(iterated(op)).dims();
    const std::int64_t n = num_elements(shape);
    std::vector<Part> space = group.space;
    if (n == group.total) {
      if (reduction) {
        std::vector<Part> own = reduction_space(shape, reduced_dims(op));
        if (has_reduced(space) ? space != own : false) return fit;
        if (!has_reduced(own)) return fit;
        space = std::move(own);
      }
    } else if (!reduction && has_reduced(space) && n == group.outer) {
      fit.row = true;
    } else {
      return fit;
    }
    Dims parts;
    std::vector<int> part_of;
    for (std::size_t p = 0; p < space.size(); ++p) {
      if (fit.row && space[p].reduced) continue;
      parts.push_back(space[p].size);
      part_of.push_back(static_cast<int>(p));
    }
    Dims factors;
    std::vector<int> first, second;
    if (!common_factors(shape, parts, &factors, &first, &second)) return fit;
    Dims used;
    const std::vector<Walker::Use> uses = walk(op, factors, &used, &fit.cost);
    // The loop's own element in the whole space and in its kept part.
    std::vector<int> f1, f2;
    Dims again;
    if (!common_factors(used, parts, &again, &f1, &f2) || !(again == without_ones(used)))
      return fit;
    Form whole, outer;
    std::int64_t stride = 1, outer_stride = 1;
    std::size_t k = f2.size();
    for (int i = used.ssize() - 1; i >= 0; --i) {
      if (used[i] == 1) continue;
      const Part& part =
          space[static_cast<std::size_t>(part_of[static_cast<std::size_t>(f2[--k])])];
      whole = whole + Form::axis(i, stride);
      stride *= used[i];
      if (!part.reduced) {
        outer = outer + Form::axis(i, outer_stride);
        outer_stride *= used[i];
      }
    }
    for (const Walker::Use& u : uses) {
      if (group_of_value(u.v) != gi) continue;
      const auto def = static_cast<std::size_t>(g_.value(u.v).def);
      if (plan_.row[def]) {
        if (!(u.flat == outer)) return fit;
        fit.stage = std::max(fit.stage, stage_[def]);
      } else {
        if (fit.row || !(u.flat == whole)) return fit;
        fit.stage = std::max(fit.stage, stage_[def]);
      }
    }
    if (group.cost + fit.cost > kMaxCost) return fit;
    // A row that is walked again must stay in cache, and there must be rows enough for the pool.
    if (!fit.row && fit.stage > 0 &&
        (group.total / group.outer > kMaxRow || (group.outer < 4 && group.total > kMaxRow)))
      return fit;
    fit.ok = true;
    return fit;
  }

  static Dims without_ones(const Dims& d) {
    Dims out;
    for (std::int64_t x : d)
      if (x != 1) out.push_back(x);
    return out;
  }

  std::vector<int> groups_of(const std::vector<ValueId>& values) const {
    std::vector<int> out;
    for (ValueId v : values) {
      const int g = group_of_value(v);
      if (g >= 0 && std::find(out.begin(), out.end(), g) == out.end()) out.push_back(g);
    }
    return out;
  }

  void place_special(int i) {
    const int g = new_group(true);
    const Op& op = g_.ops[static_cast<std::size_t>(i)];
    std::vector<ValueId> reads;
    for (ValueId v : op.operands) inline_sources(v, &reads);
    plan_.groups[static_cast<std::size_t>(g)].ops.push_back(i);
    plan_.group_of[static_cast<std::size_t>(i)] = g;
    std::vector<int> on = groups_of(reads);
    if (ir::has_effect(op)) {
      // Effects keep their order.
      if (last_effect_ >= 0) {
        effect_before_[g] = last_effect_;
        if (std::find(on.begin(), on.end(), last_effect_) == on.end()) on.push_back(last_effect_);
      }
      last_effect_ = g;
    }
    depend(g, on);
  }

  // The buffers behind an operand, through inline ops.
  void inline_sources(ValueId v, std::vector<ValueId>* out) const {
    const std::int32_t def = g_.value(v).def;
    if (def >= 0 && plan_.roles[static_cast<std::size_t>(def)] == Role::kInline) {
      for (ValueId x : g_.ops[static_cast<std::size_t>(def)].operands) inline_sources(x, out);
      return;
    }
    const ValueId root = plan_.root(v);
    if (std::find(out->begin(), out->end(), root) == out->end()) out->push_back(root);
  }

  void place_member(int i) {
    const Op& op = g_.ops[static_cast<std::size_t>(i)];
    const std::vector<ValueId> reads = sources(op);
    const std::vector<int> from = groups_of(reads);
    std::vector<std::pair<int, Fit>> legal;
    for (int g : from) {
      bool cycle = false;
      for (int h : from) cycle = cycle || (h != g && depends(h, g));
      if (cycle) continue;
      const Group& group = plan_.groups[static_cast<std::size_t>(g)];
      if (group.special || group.closed || group.inputs.size() + reads.size() > kMaxInputs)
        continue;
      const Fit fit = fits(op, g);
      if (fit.ok) legal.emplace_back(g, fit);
    }
    int g = -1;
    Fit fit;
    for (auto& [h, f] : legal) {
      if (g < 0) {
        g = h;
        fit = f;
      } else if (mergeable(g, h) && f.row == fit.row) {
        fit.stage = std::max(fit.stage, f.stage);
        fit.cost = std::max(fit.cost, f.cost);
        merge(g, h);
      }
    }
    if (g < 0) {
      g = new_group(false);
      Group& group = plan_.groups[static_cast<std::size_t>(g)];
      group.total = num_elements(g_.type(iterated(op)).dims());
      group.outer = group.total;
      if (!is_reduction(op) && group.total > 1) group.space = {{group.total, false}};
      walk(op, g_.type(iterated(op)).dims(), nullptr, &fit.cost);
    }
    Group& group = plan_.groups[static_cast<std::size_t>(g)];
    if (is_reduction(op) && !has_reduced(group.space)) {
      group.space = reduction_space(g_.type(op.operands[0]).dims(), reduced_dims(op));
      group.outer = 1;
      for (const Part& p : group.space)
        if (!p.reduced) group.outer *= p.size;
      group.closed = !has_reduced(group.space);
    }
    const auto oi = static_cast<std::size_t>(i);
    group.ops.push_back(i);
    group.cost += fit.cost;
    for (ValueId v : reads)
      if (std::find(group.inputs.begin(), group.inputs.end(), v) == group.inputs.end())
        group.inputs.push_back(v);
    plan_.group_of[oi] = g;
    plan_.row[oi] = fit.row || is_reduction(op);
    stage_[oi] = fit.stage + (is_reduction(op) ? 1 : 0);
    std::vector<int> on;
    for (int h : groups_of(reads)) on.push_back(h);
    depend(g, on);
  }

  bool mergeable(int a, int b) const {
    const Group& x = plan_.groups[static_cast<std::size_t>(a)];
    const Group& y = plan_.groups[static_cast<std::size_t>(b)];
    if (depends(a, b) || depends(b, a) || x.total != y.total) return false;
    if (has_reduced(x.space) && has_reduced(y.space) && x.space != y.space) return false;
    if (x.cost + y.cost > kMaxCost || x.inputs.size() + y.inputs.size() > kMaxInputs) return false;
    return true;
  }

  // Moves b's ops to a. Both keep their dependences; whoever depended on b depends on a.
  void merge(int a, int b) {
    Group& x = plan_.groups[static_cast<std::size_t>(a)];
    Group& y = plan_.groups[static_cast<std::size_t>(b)];
    for (int i : y.ops) plan_.group_of[static_cast<std::size_t>(i)] = a;
    x.ops.insert(x.ops.end(), y.ops.begin(), y.ops.end());
    std::sort(x.ops.begin(), x.ops.end());
    if (has_reduced(y.space)) {
      x.space = y.space;
      x.outer = y.outer;
    }
    x.cost += y.cost;
    for (ValueId v : y.inputs)
      if (std::find(x.inputs.begin(), x.inputs.end(), v) == x.inputs.end()) x.inputs.push_back(v);
    y.ops.clear();
    y.inputs.clear();
    for (std::size_t k = 0; k < deps_.size(); ++k)
      if (depends(static_cast<int>(k), b)) set(deps_[k], a);
    const Bits theirs = deps_[static_cast<std::size_t>(b)];
    spread(a, theirs);
    // Those that depend on a (or did on b) now depend on all that a needs.
    for (std::size_t k = 0; k < deps_.size(); ++k)
      if (static_cast<int>(k) != a && depends(static_cast<int>(k), a))
        add(deps_[k], deps_[static_cast<std::size_t>(a)]);
  }

  // ---- Result ------------------------------------------------------------------------------

  // Settles what each group reads and writes, and orders the groups.
  void finish() {
    std::vector<bool> outside(g_.values.size(), false);
    const auto leave = [&](ValueId v) { outside[at(plan_.root(v))] = true; };
    for (ValueId v : g_.results) leave(v);
    std::vector<std::vector<ValueId>> reads(plan_.groups.size());
    for (std::size_t gi = 0; gi < plan_.groups.size(); ++gi) {
      Group& group = plan_.groups[gi];
      std::vector<ValueId> all;
      for (int i : group.ops) {
        const Op& op = g_.ops[static_cast<std::size_t>(i)];
        for (ValueId v : op.operands) inline_sources(v, &all);
      }
      group.inputs.clear();
      for (ValueId v : all) {
        if (group_of_value(v) == static_cast<int>(gi)) continue;
        leave(v);
        group.inputs.push_back(v);
      }
    }
    for (Group& group : plan_.groups)
      for (int i : group.ops)
        for (ValueId r : g_.ops[static_cast<std::size_t>(i)].results)
          if (outside[at(r)] || group.special) group.outputs.push_back(r);
    // Among the groups that are ready, the one whose last op comes first in the graph.
    const std::size_t n = plan_.groups.size();
    std::vector<std::vector<int>> users(n);
    std::vector<int> waiting(n, 0);
    for (std::size_t gi = 0; gi < n; ++gi) {
      std::vector<int> on = groups_of(plan_.groups[gi].inputs);
      if (auto it = effect_before_.find(static_cast<int>(gi)); it != effect_before_.end())
        if (std::find(on.begin(), on.end(), it->second) == on.end()) on.push_back(it->second);
      waiting[gi] = static_cast<int>(on.size());
      for (int h : on) users[static_cast<std::size_t>(h)].push_back(static_cast<int>(gi));
    }
    using Item = std::pair<int, int>;
    std::priority_queue<Item, std::vector<Item>, std::greater<>> ready;
    const auto push = [&](std::size_t gi) {
      if (!plan_.groups[gi].ops.empty())
        ready.emplace(plan_.groups[gi].ops.back(), static_cast<int>(gi));
    };
    for (std::size_t gi = 0; gi < n; ++gi)
      if (waiting[gi] == 0) push(gi);
    std::vector<Group> ordered;
    std::vector<int> now(n, -1);
    while (!ready.empty()) {
      const int gi = ready.top().second;
      ready.pop();
      now[static_cast<std::size_t>(gi)] = static_cast<int>(ordered.size());
      for (int u : users[static_cast<std::size_t>(gi)])
        if (--waiting[static_cast<std::size_t>(u)] == 0) push(static_cast<std::size_t>(u));
      ordered.push_back(std::move(plan_.groups[static_cast<std::size_t>(gi)]));
    }
    for (std::size_t i = 0; i < g_.ops.size(); ++i)
      if (plan_.group_of[i] >= 0) {
        plan_.group_of[i] = now[static_cast<std::size_t>(plan_.group_of[i])];
        XYLEM_CHECK(plan_.group_of[i] >= 0, "fused groups depend on each other in a circle");
      }
    plan_.groups = std::move(ordered);
  }

  const Graph& g_;
  Plan plan_;
  std::vector<Bits> deps_;
  std::vector<int> stage_;
  std::size_t words_ = 1;
  int last_effect_ = -1;                        // group
  std::unordered_map<int, int> effect_before_;  // group -> the effect that comes before it
};

}  // namespace

Plan make_plan(const Graph& graph) { return Planner(graph).run(); }

}  // namespace xylem::compiler
