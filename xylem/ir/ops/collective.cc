#include "xylem/ir/ops/collective.h"

#include <fmt/format.h>

#include <algorithm>

#include "xylem/base/error.h"
#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/internal/call_util.h"
#include "xylem/ir/ops/internal/constant_rules.h"
#include "xylem/ir/ops/internal/eval_util.h"
#include "xylem/ir/ops/internal/groups.h"
#include "xylem/ir/ops/internal/reduction_util.h"
#include "xylem/ir/ops/movement.h"
#include "xylem/ir/quant.h"

namespace xylem::ir::ops {
namespace {

using Types = std::vector<Type>;

// Constraints ------------------------------------------------------------------------------------

struct GroupLabels {
  std::string_view unique, count, range;
};

Groups check_groups(const OpCall& call, const GroupLabels& labels) {
  Groups g(call.attrs);
  if (!g.well_formed)
    fail(call, "groups", "replica_groups must be i64[groups, members] or axes of a mesh",
         call.attrs.at("replica_groups").to_string().substr(0, 80), "Write a list for each group");
  Dims all;
  for (const auto& group : g.ids)
    for (std::int64_t id : group) {
      if (id < 0)
        fail(call, labels.range, "ids must not be negative", fmt::format("{} is", id),
             "Fill short groups with -1");
      all.push_back(id);
    }
  Dims sorted = all;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i] == sorted[i - 1])
      fail(call, labels.unique, "replica_groups must be different from each other",
           fmt::format("{} stands twice", sorted[i]), "Name every process once");
  // Where all processes take part their ids are 0 … n - 1.
  for (std::size_t i = 0; i < sorted.size() && !labels.count.empty(); ++i)
    if (sorted[i] != static_cast<std::int64_t>(i))
      fail(call,
           sorted[i] >= static_cast<std::int64_t>(sorted.size()) ? labels.range : labels.count,
           fmt::format("the {} ids must be 0 … {}", sorted.size(), sorted.size() - 1),
           fmt::format("{} is missing", i), "Name every process once");
  return g;
}

// Where all groups have one size there is nothing to fill with -1.
void check_equal_groups(const OpCall& call, const Groups& g, std::string_view label) {
  for (const auto& group : g.ids)
    if (group.size() != g.ids[0].size())
      fail(call, label, "all groups must have one size and no -1",
           fmt::format("they have {} and {} members", g.ids[0].size(), group.size()),
           "Fill every group");
}

void check_global_ids(const OpCall& call, std::string_view label) {
  if (call.attrs.flag("use_global_device_ids") && channel_of(call.attrs) <= 0)
    fail(call, label, "use_global_device_ids needs a channel",
         fmt::format("the channel is {}", channel_of(call.attrs)), "Give a channel_handle over 0");
}

// 0 if the group's size is not known before run time.
std::int64_t group_size(const OpCall& call, const Groups& g) {
  return g.known && reduction_strategy(call.attrs) != GroupStrategy::kCrossReplicaAndPartition
             ? g.first_size()
             : 0;
}

void check_divisible_result(const OpCall& call, std::string_view label, const Type& t,
                            const Type& inferred) {
  if (!types_compatible(without_quant(t), inferred))
    fail(call, label, "the result must be " + inferred.to_string(), "it is " + t.to_string(),
         "Correct the result's type");
}

Types all_gather_shape_rule(const OpCall& call) {
  std::int64_t d = call.attrs.i64("all_gather_dim");
  for (int i = 0; i < static_cast<int>(call.operands.size()); ++i) {
    const Type& t = tensor_operand(call, i, kElAny, "i1");
    if (d < 0 || d >= t.rank())
      fail(call, "c1", fmt::format("all_gather_dim must lie in [0, {})", t.rank()),
           fmt::format("it is {}", d), "Name a dimension of the operands");
  }
  Groups g = check_groups(call, {"c2", "c4", "c4"});
  check_equal_groups(call, g, "c4");
  check_global_ids(call, "c5");
  Types results = written_results(call);
  if (results.size() != call.operands.size())
    fail(call, "c6", "there must be a result for every operand",
         fmt::format("{} operands, {} results", call.operands.size(), results.size()),
         "Name a result for each");
  for (std::size_t i = 0; i < results.size(); ++i) {
    Type want = without_quant(call.operands[i]);
    Dims dims = want.dims();
    std::int64_t n = group_size(call, g), own = dims[d];
    dims[d] = own == kDynamic || n == 0 ? kDynamic : own * n;
    check_divisible_result(call, "c6", results[i], want.with_dims(dims));
    std::int64_t whole = results[i].dims()[d];
    if (own != kDynamic && whole != kDynamic && (own == 0 ? whole != 0 : whole % own != 0))
      fail(call, "c6", "the result's size must be a multiple of the operand's",
           fmt::format("{} and {}", whole, own), "Correct the result's type");
  }
  return results;
}

// The reducer of one region on scalars: gives the result element type of each operand.
std::vector<DType> check_computation(const OpCall& call, std::string_view label, std::size_t n) {
  Types results = call.regions[0] ? call.regions[0]->result_types() : Types{};
  std::vector<DType> dtypes;
  bool good = results.size() == 1 && results[0].is_scalar();
  if (good) {
    Types params{results[0], results[0]};
    std::size_t own = call.operands.size() - static_cast<std::size_t>(num_captures(call));
    params.insert(params.end(), call.operands.begin() + static_cast<std::ptrdiff_t>(own),
                  call.operands.end());
    check_region(call, label, 0, params, nullptr);
  }
  for (std::size_t i = 0; good && i < n; ++i) {
    good = is_promotable(call.operands[i].dtype(), results[0].dtype());
    dtypes.push_back(results[0].dtype());
  }
  if (!good)
    fail(call, label,
         "the computation must take two scalars of the operands' dtype, or a wider one, and give "
         "one",
         fmt::format("it gives {} for {}", types_text(results), types_text(call.operands)),
         "Convert its result");
  return dtypes;
}

Types all_reduce_shape_rule(const OpCall& call) {
  std::size_t n = call.operands.size() - static_cast<std::size_t>(num_captures(call));
  for (std::size_t i = 0; i < n; ++i) tensor_operand(call, static_cast<int>(i), kElAny, "i1");
  check_groups(call, {"c1", "c3", "c3"});
  check_global_ids(call, "c4");
  std::vector<DType> dtypes = check_computation(call, "c5", n);
  Types results;
  for (std::size_t i = 0; i < n; ++i) results.push_back(call.operands[i].with_dtype(dtypes[i]));
  return results;
}

Types reduce_scatter_shape_rule(const OpCall& call) {
  if (call.operands.size() != 1 + static_cast<std::size_t>(num_captures(call)))
    fail(call, "captures", "there is one operand besides captures",
         fmt::format("there are {}", call.operands.size()), "Set num_captures");
  const Type& x = tensor_operand(call, 0);
  std::int64_t d = call.attrs.i64("scatter_dimension");
  if (d < 0 || d >= x.rank())
    fail(call, "c2", fmt::format("scatter_dimension must lie in [0, {})", x.rank()),
         fmt::format("it is {}", d), "Name a dimension of the operand");
  Groups g = check_groups(call, {"c3", "c5", "c5"});
  check_equal_groups(call, g, "c5");
  check_global_ids(call, "c6");
  std::int64_t n = group_size(call, g), own = x.dims()[d];
  if (n > 0 && own != kDynamic && own % n != 0)
    fail(call, "c1",
         fmt::format("scatter_dimension must be a multiple of the group's size ({})", n),
         "the operand is " + x.to_string(), "Pad it");
  DType dtype = check_computation(call, "c7", 1)[0];
  Types results = written_results(call);
  if (results.size() != 1 || !results[0].is_tensor())
    fail(call, "c8", "there must be one tensor result", types_text(results), "Give one");
  Dims dims = x.dims();
  dims[d] = own == kDynamic || n == 0 ? kDynamic : own / n;
  check_divisible_result(call, results[0].dtype() == dtype ? "c8" : "c9", results[0],
                         Type::tensor(dtype, dims));
  std::int64_t part = results[0].dims()[d];
  if (own != kDynamic && part != kDynamic && (part == 0 ? own != 0 : own % part != 0))
    fail(call, "c8", "the operand's size must be a multiple of the result's",
         fmt::format("{} and {}", own, part), "Correct the result's type");
  return results;
}

Types all_to_all_shape_rule(const OpCall& call) {
  std::int64_t split = call.attrs.i64("split_dimension");
  std::int64_t concat = call.attrs.i64("concat_dimension");
  std::int64_t count = call.attrs.i64("split_count");
  if (count <= 0)
    fail(call, "c4", "split_count must be positive", fmt::format("it is {}", count),
         "Split into at least one part");
  Groups g = check_groups(call, {"c5", "c7", "c7"});
  check_equal_groups(call, g, "c7");
  if (g.known && g.first_size() != count)
    fail(call, "c8", "groups must have split_count members",
         fmt::format("{} members, split_count {}", g.first_size(), count), "Make them agree");
  Types results;
  for (int i = 0; i < static_cast<int>(call.operands.size()); ++i) {
    const Type& t = tensor_operand(call, i, kElAny, "i1");
    if (split < 0 || split >= t.rank())
      fail(call, "c1", fmt::format("split_dimension must lie in [0, {})", t.rank()),
           fmt::format("it is {}", split), "Name a dimension of the operands");
    if (concat < 0 || concat >= t.rank())
      fail(call, "c3", fmt::format("concat_dimension must lie in [0, {})", t.rank()),
           fmt::format("it is {}", concat), "Name a dimension of the operands");
    Dims dims = t.dims();
    if (dims[split] != kDynamic && dims[split] % count != 0)
      fail(call, "c2", fmt::format("split_dimension must be a multiple of split_count ({})", count),
           "an operand is " + t.to_string(), "Pad it");
    if (split != concat) {
      if (dims[split] != kDynamic) dims[split] /= count;
      if (dims[concat] != kDynamic)
        dims[concat] = result_size(call, "c9", static_cast<__int128>(dims[concat]) * count);
    }
    results.push_back(t.with_dims(dims));
  }
  return results;
}

struct PairLabels {
  std::string_view shape, sources, targets, range;
};

void check_pairs(const OpCall& call, const PairLabels& l) {
  const Attr* a = call.attrs.find("source_target_pairs");
  if (!a) return;
  const HostArray* h = a->get<HostArray>();
  if (!h || h->rank() != 2 || !is_integer(h->dtype()) || (h->dims()[1] != 2 && h->size() != 0))
    fail(call, l.shape, "source_target_pairs must be i64[n, 2]",
         h ? h->type_string() : a->to_string(), "Give (source, target) pairs");
  HostArray wide = h->astype(DType::kI64).to_contiguous();
  Dims ends[2];
  for (std::int64_t i = 0; i < wide.size(); ++i) {
    std::int64_t id = wide.as<std::int64_t>()[i];
    if (id < 0)
      fail(call, l.range, "ids must not be negative", fmt::format("{} is", id), "Name processes");
    ends[i % 2].push_back(id);
  }
  check_unique(call, l.sources, "sources", ends[0]);
  check_unique(call, l.targets, "targets", ends[1]);
}

Types collective_permute_shape_rule(const OpCall& call) {
  const Type& x = tensor_operand(call, 0);
  check_pairs(call, {"c1", "c2", "c3", "c4"});
  return {x};
}

// Operands that are data: all but captures and, with dynamic roots, the last.
std::size_t num_data(const OpCall& call, std::string_view plain, std::string_view dynamic) {
  std::size_t n = call.operands.size() - static_cast<std::size_t>(num_captures(call));
  bool roots = call.attrs.flag("has_dynamic_root");
  std::size_t least = roots ? 2 : 1;
  if (n < least)
    fail(call, roots ? dynamic : plain, fmt::format("at least {} operands are needed", least),
         fmt::format("there are {}", n), "Pass data, and roots if they are dynamic");
  if (!roots) return n;
  const Type& t = call.operands[n - 1];
  if (!(t.is_tensor() && t.dtype() == DType::kI32 && t.rank() == 1 &&
        size_fits(t.dim(0), static_cast<std::int64_t>(n - 1))))
    fail(call, dynamic, fmt::format("the last operand must hold the roots, i32[{}]", n - 1),
         "it is " + t.to_string(), "Pass one root for each operand");
  return n - 1;
}

Types collective_broadcast_shape_rule(const OpCall& call) {
  std::size_t n = num_data(call, "c3", "c4");
  check_groups(call, {"c1", "", "c2"});
  Types results;
  for (std::size_t i = 0; i < n; ++i)
    results.push_back(tensor_operand(call, static_cast<int>(i), kElAny, "i1"));
  return results;
}

Types collective_reduce_shape_rule(const OpCall& call) {
  std::size_t n = num_data(call, "c3", "c3");
  for (std::size_t i = 0; i < n; ++i) tensor_operand(call, static_cast<int>(i), kElAny, "i1");
  check_groups(call, {"c1", "", "c2"});
  check_global_ids(call, "global_ids");
  std::vector<DType> dtypes = check_computation(call, "c4", n);
  Types results;
  for (std::size_t i = 0; i < n; ++i) results.push_back(call.operands[i].with_dtype(dtypes[i]));
  return results;
}

Types id_shape_rule(const OpCall&) { return {Type::tensor(DType::kU32)}; }

// Evaluation -------------------------------------------------------------------------------------

struct Site {
  Process* process;
  Grid* grid;
  Member self;

  explicit Site(const EvalCall& call) : process(call.regions.process()) {
    grid = process ? process->grid() : nullptr;
    if (!grid)
      throw UserError(
          ErrorParts{call.op.def->name, "it runs as a process of a grid", "the program runs alone",
                     "Run it in a process grid (interpreter.run_parallel)"},
          call.op.loc.source);
    self = {process->replica(), process->partition()};
  }
};

std::string member_text(const Member& m) { return fmt::format("({}, {})", m.replica, m.partition); }

// Everyone's operands in group order; empty for a process in no group.
std::vector<Values> exchange(const EvalCall& call, const Site& site,
                             const std::vector<Member>& group, std::size_t operands) {
  if (group.empty()) return {};
  std::string key =
      fmt::format("{} on channel {} of", call.op.def->name, channel_of(call.op.attrs));
  for (const Member& m : group) key += " " + member_text(m);
  auto place = std::find(group.begin(), group.end(), site.self) - group.begin();
  auto own = call.operands.first(operands);
  return site.grid->meet(key, static_cast<int>(group.size()), static_cast<int>(place),
                         Values(own.begin(), own.end()));
}

HostArray concatenate_arrays(const std::vector<HostArray>& parts, std::int64_t axis) {
  Dims dims = parts[0].dims();
  dims[axis] = 0;
  for (const HostArray& p : parts) dims[axis] += p.dims()[axis];
  HostArray out(parts[0].dtype(), dims);
  Dims to = row_major_strides(dims);
  std::int64_t at = 0;
  for (const HostArray& p : parts) {
    std::vector<std::int64_t> index(dims.size(), 0);
    for (std::int64_t i = 0; i < p.size(); ++i, next_index(index, p.dims()))
      set_element(out, flat_index(index, to) + at * to[axis], element(p, i));
    at += p.dims()[axis];
  }
  return out;
}

HostArray part_of(const HostArray& x, std::int64_t axis, std::int64_t parts, std::int64_t i) {
  Dims dims = x.dims();
  dims[axis] /= parts;
  HostArray out(x.dtype(), dims);
  Dims from = row_major_strides(x.dims());
  std::vector<std::int64_t> index(dims.size(), 0);
  for (std::int64_t k = 0; k < out.size(); ++k, next_index(index, dims))
    set_element(out, k, element(x, flat_index(index, from) + i * dims[axis] * from[axis]));
  return out;
}

// Operand `i` of all members combined by the region, in group order.
HostArray reduced(const EvalCall& call, const std::vector<Values>& all, std::size_t i,
                  std::size_t first_capture) {
  // The region's own element type, stored if it is quantised.
  const Graph& region = *call.op.regions[0];
  DType dtype = storage_type(region.type(region.params[0])).dtype();
  HostArray out = all[0][i].astype(dtype).clone();
  std::vector<HostArray> args(2);
  args.insert(args.end(), call.operands.begin() + static_cast<std::ptrdiff_t>(first_capture),
              call.operands.end());
  for (std::size_t m = 1; m < all.size(); ++m) {
    HostArray next = all[m][i].astype(dtype).to_contiguous();
    for (std::int64_t k = 0; k < out.size(); ++k) {
      args[0] = element(out, k);
      args[1] = element(next, k);
      set_element(out, k, call.regions.run(region, args)[0]);
    }
  }
  return out;
}

HostArray zeros_like(const Type& t, const Dims& dims) {
  if (!t.quant()) return HostArray::zeros(t.dtype(), dims);
  return quantise(HostArray::zeros(DType::kF32, dims), t);
}

std::size_t data_operands(const EvalCall& call) { return call.result_types.size(); }

Values all_gather_eval(const EvalCall& call) {
  Site site(call);
  auto group =
      group_of(Groups(call.op.attrs), reduction_strategy(call.op.attrs), *site.grid, site.self);
  std::vector<Values> all = exchange(call, site, group, call.operands.size());
  Values out;
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    std::vector<HostArray> parts;
    for (const Values& v : all) parts.push_back(v[i]);
    if (parts.empty()) parts.push_back(call.operands[i]);
    out.push_back(concatenate_arrays(parts, call.op.attrs.i64("all_gather_dim")));
  }
  return out;
}

Values all_reduce_eval(const EvalCall& call) {
  Site site(call);
  auto group =
      group_of(Groups(call.op.attrs), reduction_strategy(call.op.attrs), *site.grid, site.self);
  std::size_t n = data_operands(call);
  std::vector<Values> all = exchange(call, site, group, n);
  if (all.empty())
    all.push_back(
        Values(call.operands.begin(), call.operands.begin() + static_cast<std::ptrdiff_t>(n)));
  Values out;
  for (std::size_t i = 0; i < n; ++i) out.push_back(reduced(call, all, i, n));
  return out;
}

Values reduce_scatter_eval(const EvalCall& call) {
  Site site(call);
  auto group =
      group_of(Groups(call.op.attrs), reduction_strategy(call.op.attrs), *site.grid, site.self);
  std::vector<Values> all = exchange(call, site, group, 1);
  if (all.empty())
    throw UserError(ErrorParts{"reduce_scatter", "every process is in a group",
                               member_text(site.self) + " is in none", "Name it"},
                    call.op.loc.source);
  std::int64_t d = call.op.attrs.i64("scatter_dimension");
  auto members = static_cast<std::int64_t>(group.size());
  if (call.operands[0].dims()[d] % members != 0)
    throw UserError(
        ErrorParts{"reduce_scatter", fmt::format("scatter_dimension is a multiple of {}", members),
                   call.operands[0].type_string(), "Pad the operand"},
        call.op.loc.source);
  auto place = std::find(group.begin(), group.end(), site.self) - group.begin();
  return {part_of(reduced(call, all, 0, 1), d, members, place)};
}

Values all_to_all_eval(const EvalCall& call) {
  Site site(call);
  const Attrs& a = call.op.attrs;
  auto group = group_of(Groups(a), permutation_strategy(a), *site.grid, site.self);
  std::vector<Values> all = exchange(call, site, group, call.operands.size());
  std::int64_t count = a.i64("split_count");
  if (static_cast<std::int64_t>(all.size()) != count)
    throw UserError(
        ErrorParts{"all_to_all", fmt::format("groups have split_count ({}) members", count),
                   fmt::format("this one has {}", all.size()), "Make them agree"},
        call.op.loc.source);
  auto place = std::find(group.begin(), group.end(), site.self) - group.begin();
  Values out;
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    std::vector<HostArray> parts;
    for (const Values& v : all)
      parts.push_back(part_of(v[i], a.i64("split_dimension"), count, place));
    out.push_back(concatenate_arrays(parts, a.i64("concat_dimension")));
  }
  return out;
}

// A number of the process in the space that pairs are written in.
std::int64_t own_id(const Attrs& a, const Site& site) {
  return permutation_strategy(a) == GroupStrategy::kCrossPartition ? site.self.partition
                                                                   : site.self.replica;
}

Values collective_permute_eval(const EvalCall& call) {
  Site site(call);
  const Attrs& a = call.op.attrs;
  HostArray pairs = a.array("source_target_pairs").astype(DType::kI64).to_contiguous();
  bool partitions = permutation_strategy(a) == GroupStrategy::kCrossPartition;
  std::int64_t self = own_id(a, site);
  auto channel = [&](std::int64_t from, std::int64_t to) {
    return fmt::format("collective_permute on channel {} in {} {}, {} to {}", channel_of(a),
                       partitions ? "replica" : "partition",
                       partitions ? site.self.replica : site.self.partition, from, to);
  };
  const auto* p = pairs.as<std::int64_t>();
  std::int64_t source = -1;
  for (std::int64_t i = 0; i < pairs.size(); i += 2) {
    if (p[i] == self) site.grid->send(channel(p[i], p[i + 1]), {call.operands[0]});
    if (p[i + 1] == self) source = p[i];
  }
  if (source < 0) return {zeros_like(call.result_types[0], call.operands[0].dims())};
  return site.grid->receive(channel(source, self));
}

Values collective_broadcast_eval(const EvalCall& call) {
  Site site(call);
  const Attrs& a = call.op.attrs;
  auto group = group_of(Groups(a), permutation_strategy(a), *site.grid, site.self);
  std::size_t n = data_operands(call);
  bool roots = a.flag("has_dynamic_root");
  std::vector<Values> all = exchange(call, site, group, n + roots);
  Values out;
  for (std::size_t i = 0; i < n; ++i) {
    if (all.empty()) {
      out.push_back(zeros_like(call.result_types[i], call.operands[i].dims()));
      continue;
    }
    std::int64_t root = roots ? integer_scalar(call.operands[n], static_cast<std::int64_t>(i)) : 0;
    if (root < 0 || root >= static_cast<std::int64_t>(all.size()))
      throw UserError(
          ErrorParts{"collective_broadcast", fmt::format("roots lie in [0, {})", all.size()),
                     fmt::format("one is {}", root), "Name a member of the group"},
          call.op.loc.source);
    out.push_back(all[static_cast<std::size_t>(root)][i]);
  }
  return out;
}

Values collective_reduce_eval(const EvalCall& call) {
  Site site(call);
  const Attrs& a = call.op.attrs;
  auto group = group_of(
      Groups(a), a.flag("use_global_device_ids") ? reduction_strategy(a) : permutation_strategy(a),
      *site.grid, site.self);
  std::size_t n = data_operands(call);
  bool roots = a.flag("has_dynamic_root");
  std::vector<Values> all = exchange(call, site, group, n + roots);
  auto place = std::find(group.begin(), group.end(), site.self) - group.begin();
  Values out;
  for (std::size_t i = 0; i < n; ++i) {
    std::int64_t root = roots ? integer_scalar(call.operands[n], static_cast<std::int64_t>(i)) : 0;
    if (all.empty() || root != place)
      out.push_back(zeros_like(call.result_types[i], call.operands[i].dims()));
    else
      out.push_back(reduced(call, all, i, n + roots));
  }
  return out;
}

Values replica_id_eval(const EvalCall& call) {
  return {HostArray::scalar(static_cast<std::uint32_t>(Site(call).self.replica))};
}

Values partition_id_eval(const EvalCall& call) {
  return {HostArray::scalar(static_cast<std::uint32_t>(Site(call).self.partition))};
}

// async ------------------------------------------------------------------------------------------

Types async_start_shape_rule(const OpCall& call) {
  static constexpr std::string_view kAllowed[] = {"stablehlo.all_reduce",
                                                  "stablehlo.all_gather",
                                                  "stablehlo.all_to_all",
                                                  "stablehlo.reduce_scatter",
                                                  "stablehlo.collective_permute",
                                                  "stablehlo.collective_broadcast",
                                                  "stablehlo.slice",
                                                  "stablehlo.collective_reduce",
                                                  "stablehlo.dynamic_slice",
                                                  "stablehlo.dynamic_update_slice"};
  for (const Type& t : call.operands)
    if (!t.is_tensor())
      fail(call, "i1", "the operands must be tensors", types_text(call.operands), "Pass tensors");
  const GraphPtr& g = call.regions[0];
  if (!g || g->ops.size() != 1)
    fail(call, "c1", "the body must hold one operation",
         fmt::format("it holds {}", g ? g->ops.size() : 0), "Start other operations apart");
  const Op& op = g->ops[0];
  if (std::find(std::begin(kAllowed), std::end(kAllowed), op.def->name) == std::end(kAllowed))
    fail(call, "c2", "the operation must be a collective or a slice",
         fmt::format("it is {}", op.def->name), "Run it synchronously");
  Types params = g->param_types(), given(call.operands.begin(), call.operands.end());
  bool same = params == given && op.operands.size() == g->params.size() &&
              std::equal(op.operands.begin(), op.operands.end(), g->params.begin());
  if (!same)
    fail(call, "c3", "the operation must take the operands of async_start in order",
         fmt::format("the body takes {}, the operands are {}", types_text(params),
                     types_text(given)),
         "Pass the arguments through");
  if (g->results.size() != op.results.size() ||
      !std::equal(g->results.begin(), g->results.end(), op.results.begin()))
    fail(call, "c1", "the body must return the operation's results", types_text(g->result_types()),
         "Return them");
  return {Type::future(g->result_types())};
}

Values async_start_eval(const EvalCall& call) {
  return call.regions.run(*call.op.regions[0], call.operands);
}

Types async_done_shape_rule(const OpCall& call) {
  const Type& t = call.operands[0];
  if (!t.is_future())
    fail(call, "i1", "the operand must be a future", "it is " + t.to_string(),
         "Pass the result of async_start");
  return t.elements();
}

Values async_done_eval(const EvalCall& call) {
  return {call.operands.begin(), call.operands.end()};
}

// Host communication -----------------------------------------------------------------------------

HostArray token_array() { return HostArray::zeros(DType::kBool, {0}); }

void check_token(const OpCall& call, std::size_t i, std::string_view label) {
  if (call.operands.size() <= i || !call.operands[i].is_token())
    fail(call, label, "the last operand must be a token", types_text(call.operands),
         "Pass a token");
}

// Results: tensors, then a token.
Types check_received(const OpCall& call) {
  Types results = written_results(call);
  if (results.empty())
    fail(call, "c1", "there must be at least one result", "there is none", "Take the token");
  for (std::size_t i = 0; i + 1 < results.size(); ++i)
    if (!results[i].is_tensor())
      fail(call, "c2", "results but the last must be tensors",
           fmt::format("result {} is {}", i, results[i].to_string()), "Take tensors");
  if (!results.back().is_token())
    fail(call, "c3", "the last result must be a token", "it is " + results.back().to_string(),
         "Take the token last");
  return results;
}

Types infeed_shape_rule(const OpCall& call) {
  check_token(call, 0, "i1");
  Types results = check_received(call);
  const Attr* layout = call.attrs.find("layout");
  if (!layout) return results;
  const AttrList* lists = layout->list();
  if (!lists || lists->size() + 1 != results.size())
    fail(call, "layout",
         fmt::format("layout has an entry for each of {} tensors", results.size() - 1),
         lists ? fmt::format("it has {}", lists->size()) : layout->to_string(),
         "Give one for each");
  for (const Attr& l : *lists) {
    bool good = l.get<Dims>() != nullptr;
    if (const AttrList* numbers = l.list())
      good = std::all_of(numbers->begin(), numbers->end(), [](const Attr& e) {
        return e.get<std::int64_t>() || e.get<ScalarAttr>();
      });
    if (!good)
      fail(call, "layout", "an entry of layout is a list of integers", l.to_string(),
           "Write it like [1, 0]");
  }
  return results;
}

Values infeed_eval(const EvalCall& call) {
  Site site(call);
  Values values = site.grid->infeed();
  std::size_t n = call.result_types.size() - 1;
  bool fits = values.size() == n;
  for (std::size_t i = 0; fits && i < n; ++i) {
    Type t = storage_type(call.result_types[i]);
    fits = values[i].dtype() == t.dtype() && dims_fit(values[i].dims(), t.dims());
  }
  if (!fits)
    throw UserError(ErrorParts{"infeed",
                               fmt::format("the queue's next value is {}",
                                           types_text(call.result_types.first(n))),
                               fmt::format("it has {} arrays{}", values.size(),
                                           values.empty() ? "" : ", " + values[0].type_string()),
                               "Feed what the program takes"},
                    call.op.loc.source);
  values.push_back(token_array());
  return values;
}

Types outfeed_shape_rule(const OpCall& call) {
  check_token(call, call.operands.size() - 1, "i2");
  for (std::size_t i = 0; i + 1 < call.operands.size(); ++i)
    if (!call.operands[i].is_tensor())
      fail(call, "i1", "operands but the last must be tensors", types_text(call.operands),
           "Send tensors");
  return {Type::token()};
}

Values outfeed_eval(const EvalCall& call) {
  Site site(call);
  site.grid->outfeed(Values(call.operands.begin(), call.operands.end() - 1));
  return {token_array()};
}

void check_channel(const OpCall& call, std::int64_t host_type) {
  check_pairs(call, {"c1", "c2", "c3", "c4"});
  const Attr* a = call.attrs.find("channel_handle");
  std::int64_t type = a && a->dict() ? a->dict()->i64_or("type", 0) : 0;
  if (type < 0 || type > 3)
    fail(call, host_type == 2 ? "i4" : "i3", "channel types are 0 to 3",
         fmt::format("it is {}", type), "Use 1 between devices, 2 or 3 for host transfers");
  bool host = call.attrs.flag("is_host_transfer");
  if (host ? type != host_type : type != 1)
    fail(call, "c5",
         host ? fmt::format("the channel type of a host transfer must be {}", host_type)
              : "the channel type between devices must be 1",
         fmt::format("it is {}", type), "Change the type or is_host_transfer");
}

Types send_shape_rule(const OpCall& call) {
  check_token(call, call.operands.size() - 1, "i2");
  for (std::size_t i = 0; i + 1 < call.operands.size(); ++i)
    if (!call.operands[i].is_tensor())
      fail(call, "i1", "operands but the last must be tensors", types_text(call.operands),
           "Send tensors");
  check_channel(call, 2);
  return {Type::token()};
}

Types recv_shape_rule(const OpCall& call) {
  check_token(call, 0, "i1");
  check_channel(call, 3);
  Types results = written_results(call);
  bool good = !results.empty() && results.back().is_token();
  for (std::size_t i = 0; good && i + 1 < results.size(); ++i) good = results[i].is_tensor();
  if (!good)
    fail(call, "results", "the results must be tensors and then a token", types_text(results),
         "Take the token last");
  return results;
}

// The queues that a process sends to or receives from.
std::vector<std::string> channels(const EvalCall& call, const Site& site, bool sending) {
  const Attrs& a = call.op.attrs;
  std::int64_t handle = channel_of(a);
  if (a.flag("is_host_transfer") || !a.has("source_target_pairs"))
    return {fmt::format("channel {}", handle)};
  // Ids are partitions where there are several, else replicas.
  bool partitions = site.grid->num_partitions() > 1;
  std::int64_t self = partitions ? site.self.partition : site.self.replica;
  int other = partitions ? site.self.replica : site.self.partition;
  HostArray pairs = a.array("source_target_pairs").astype(DType::kI64).to_contiguous();
  const auto* p = pairs.as<std::int64_t>();
  std::vector<std::string> out;
  for (std::int64_t i = 0; i < pairs.size(); i += 2)
    if (p[i + !sending] == self)
      out.push_back(fmt::format("channel {} from {} to {} in {}", handle, p[i], p[i + 1], other));
  return out;
}

Values send_eval(const EvalCall& call) {
  Site site(call);
  Values values(call.operands.begin(), call.operands.end() - 1);
  for (const std::string& c : channels(call, site, true)) site.grid->send(c, values);
  return {token_array()};
}

Values recv_eval(const EvalCall& call) {
  Site site(call);
  std::vector<std::string> from = channels(call, site, false);
  std::size_t n = call.result_types.size() - 1;
  Values values;
  if (from.empty()) {
    for (std::size_t i = 0; i < n; ++i)
      values.push_back(zeros_like(call.result_types[i], call.result_types[i].dims()));
  } else {
    values = site.grid->receive(from[0]);
  }
  bool fits = values.size() == n;
  for (std::size_t i = 0; fits && i < n; ++i) {
    Type t = storage_type(call.result_types[i]);
    fits = values[i].dtype() == t.dtype() && dims_fit(values[i].dims(), t.dims());
  }
  if (!fits)
    throw UserError(
        ErrorParts{"recv",
                   fmt::format("the channel brings {}", types_text(call.result_types.first(n))),
                   "something else was sent", "Send what is received"},
        call.op.loc.source);
  values.push_back(token_array());
  return values;
}

DimMap opaque_dims(const OpCall& call, std::span<const Type> results) {
  DimMap m;
  auto add = [&](const Type& t) {
    return t.is_tensor() ? add_factors(m, t.dims(), DimMap::FactorKind::kOpaque) : Dims{};
  };
  for (const Type& t : call.operands) m.operands.push_back(add(t));
  for (const Type& t : results) m.results.push_back(add(t));
  return m;
}

constexpr AttrDef kReplicaGroups = {"replica_groups", AttrKind::kAny};
constexpr AttrDef kChannel = {"channel_handle", AttrKind::kDict, false};
constexpr AttrDef kGlobalIds = {"use_global_device_ids", AttrKind::kUnit, false};
constexpr AttrDef kDynamicRoot = {"has_dynamic_root", AttrKind::kBool, false};
constexpr AttrDef kCaptures = {"num_captures", AttrKind::kInt, false};
constexpr AttrDef kResultTypes = {"result_types", AttrKind::kList};
constexpr AttrDef kHost = {"is_host_transfer", AttrKind::kBool, false};
constexpr AttrDef kPairs = {"source_target_pairs", AttrKind::kArray, false};

OpDef collective(std::string_view name, int least, int most, std::vector<AttrDef> attrs,
                 ShapeRule shape, EvalRule eval, std::string_view labels,
                 std::string_view result_labels, int regions = 0) {
  return {.name = name,
          .traits = kEffect,
          .min_operands = least,
          .max_operands = most,
          .num_regions = regions,
          .attrs = std::move(attrs),
          .shape = shape,
          .eval = eval,
          .dims = opaque_dims,
          .labels = labels,
          .quant = QuantSupport::kPerTensor,
          .result_labels = result_labels};
}

OpDef per_axis(OpDef d) {
  d.quant = QuantSupport::kPerAxis;
  return d;
}

}  // namespace

const OpDef kAllGather = collective(
    "stablehlo.all_gather", 1, -1,
    {{"all_gather_dim", AttrKind::kInt}, kReplicaGroups, kChannel, kGlobalIds, kResultTypes},
    all_gather_shape_rule, all_gather_eval,
    "all_gather_i1 all_gather_groups all_gather_c1 all_gather_c2 all_gather_c4 all_gather_c5 "
    "all_gather_c6",
    "c6");
const OpDef kAllReduce = collective(
    "stablehlo.all_reduce", 1, -1, {kReplicaGroups, kChannel, kGlobalIds, kCaptures},
    all_reduce_shape_rule, all_reduce_eval,
    "all_reduce_i1 all_reduce_groups all_reduce_c1 all_reduce_c3 all_reduce_c4 all_reduce_c5 "
    "all_reduce_captures",
    "c7 c6", 1);
const OpDef kReduceScatter = collective(
    "stablehlo.reduce_scatter", 1, -1,
    {{"scatter_dimension", AttrKind::kInt},
     kReplicaGroups,
     kChannel,
     kGlobalIds,
     kCaptures,
     kResultTypes},
    reduce_scatter_shape_rule, reduce_scatter_eval,
    "reduce_scatter_i1 reduce_scatter_groups reduce_scatter_c1 reduce_scatter_c2 "
    "reduce_scatter_c3 reduce_scatter_c5 reduce_scatter_c6 reduce_scatter_c7 reduce_scatter_c8 "
    "reduce_scatter_c9 reduce_scatter_captures",
    "c9 c8", 1);
const OpDef kAllToAll = collective(
    "stablehlo.all_to_all", 1, -1,
    {{"split_dimension", AttrKind::kInt},
     {"concat_dimension", AttrKind::kInt},
     {"split_count", AttrKind::kInt},
     kReplicaGroups,
     kChannel},
    all_to_all_shape_rule, all_to_all_eval,
    "all_to_all_i1 all_to_all_groups all_to_all_c1 all_to_all_c2 all_to_all_c3 all_to_all_c4 "
    "all_to_all_c5 all_to_all_c7 all_to_all_c8 all_to_all_c9",
    "c9");
const OpDef kCollectivePermute = collective(
    "stablehlo.collective_permute", 1, 1, {{"source_target_pairs", AttrKind::kArray}, kChannel},
    collective_permute_shape_rule, collective_permute_eval,
    "collective_permute_i1 collective_permute_c1 collective_permute_c2 collective_permute_c3 "
    "collective_permute_c4",
    "c5");
const OpDef kCollectiveBroadcast =
    collective("stablehlo.collective_broadcast", 1, -1, {kReplicaGroups, kChannel, kDynamicRoot},
               collective_broadcast_shape_rule, collective_broadcast_eval,
               "collective_broadcast_i1 collective_broadcast_groups collective_broadcast_c1 "
               "collective_broadcast_c2 collective_broadcast_c3 collective_broadcast_c4 "
               "collective_broadcast_c6",
               "c3");
const OpDef kCollectiveReduce = collective(
    "stablehlo.collective_reduce", 1, -1,
    {kReplicaGroups, kChannel, kGlobalIds, kDynamicRoot, kCaptures}, collective_reduce_shape_rule,
    collective_reduce_eval,
    "collective_reduce_i1 collective_reduce_groups collective_reduce_c1 collective_reduce_c2 "
    "collective_reduce_c3 collective_reduce_c4 collective_reduce_global_ids "
    "collective_reduce_captures",
    "c3", 1);
const OpDef kReplicaId =
    collective("stablehlo.replica_id", 0, 0, {}, id_shape_rule, replica_id_eval, "", "o1");
const OpDef kPartitionId =
    collective("stablehlo.partition_id", 0, 0, {}, id_shape_rule, partition_id_eval, "", "o1");
const OpDef kAsyncStart = collective(
    "stablehlo.async_start", 0, -1, {kCaptures}, async_start_shape_rule, async_start_eval,
    "async_start_i1 async_start_c1 async_start_c2 async_start_c3", "c4", 1);
const OpDef kAsyncDone = collective("stablehlo.async_done", 1, 1, {}, async_done_shape_rule,
                                    async_done_eval, "async_done_i1", "c1");
const OpDef kInfeed = collective(
    "stablehlo.infeed", 1, 1,
    {{"infeed_config", AttrKind::kString, false}, {"layout", AttrKind::kAny, false}, kResultTypes},
    infeed_shape_rule, infeed_eval, "infeed_i1 infeed_c1 infeed_c2 infeed_c3 infeed_layout", "c2");
const OpDef kOutfeed =
    per_axis(collective("stablehlo.outfeed", 1, -1, {{"outfeed_config", AttrKind::kString, false}},
                        outfeed_shape_rule, outfeed_eval, "outfeed_i1 outfeed_i2", "o1"));
const OpDef kSend = per_axis(collective(
    "stablehlo.send", 1, -1, {{"channel_handle", AttrKind::kDict}, kHost, kPairs}, send_shape_rule,
    send_eval, "send_i1 send_i2 send_i4 send_c1 send_c2 send_c3 send_c4 send_c5", "o1"));
const OpDef kRecv = collective(
    "stablehlo.recv", 1, 1, {{"channel_handle", AttrKind::kDict}, kHost, kPairs, kResultTypes},
    recv_shape_rule, recv_eval,
    "recv_i1 recv_i3 recv_c1 recv_c2 recv_c3 recv_c4 recv_c5 recv_results", "o1");

namespace {

void collective_broadcast_constants(const OpCall& call, std::span<const Type>,
                                    Constants constants) {
  if (!call.attrs.flag("has_dynamic_root") || !constants.back()) return;
  Groups g(call.attrs);
  if (!g.known || g.ids.empty()) return;
  for (std::int64_t i = 0; i < constants.back()->size(); ++i)
    if (std::int64_t root = integer_scalar(*constants.back(), i);
        root < 0 || root >= g.first_size())
      fail(call, "c6", fmt::format("roots must lie in [0, {})", g.first_size()),
           fmt::format("one is {}", root), "Name a member of the group");
}

}  // namespace

ConstantRuleOf collective_broadcast_constant_rule() {
  return {&kCollectiveBroadcast, collective_broadcast_constants};
}

Family collective_family() {
  static const OpDef* const kOps[] = {&kAllGather,
                                      &kAllReduce,
                                      &kReduceScatter,
                                      &kAllToAll,
                                      &kCollectivePermute,
                                      &kCollectiveBroadcast,
                                      &kCollectiveReduce,
                                      &kReplicaId,
                                      &kPartitionId,
                                      &kAsyncStart,
                                      &kAsyncDone,
                                      &kInfeed,
                                      &kOutfeed,
                                      &kSend,
                                      &kRecv};
  return kOps;
}

}  // namespace xylem::ir::ops
