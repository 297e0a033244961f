#include "xylem/checkpoint/struct_tree.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "xylem/base/error.h"

namespace xylem::checkpoint::internal {

void LeafTreeBuilder::enter() {
  if (levels_.empty()) {
    pushed_.push_back(false);
    return;
  }
  Level& l = levels_.back();
  const std::size_t i = l.next++;
  switch (l.kind) {
    case NodeKind::kAggregate: path_.push_back({std::string(l.type->field_names[i]), false}); break;
    case NodeKind::kList:
    case NodeKind::kTuple: path_.push_back({fmt::format("{}", i), true}); break;
    case NodeKind::kMap: path_.push_back({l.key, false}); break;
    default: pushed_.push_back(false); return;
  }
  pushed_.push_back(true);
}

void LeafTreeBuilder::leave() {
  if (pushed_.back()) path_.pop_back();
  pushed_.pop_back();
}

void LeafTreeBuilder::leaf(void* leaf, bool empty) {
  enter();
  paths_.push_back(path_);
  if (values_ && !empty)
    tree_.push_back(
        array_leaf(path_, static_cast<const Array*>(leaf)->to_host(), LeafKind::kNumpy));
  leave();
}

void LeafTreeBuilder::static_value(const TypeInfo&, const void* bytes, std::size_t size) {
  enter();
  // A struct without fields, such as the state of a transformation that has none.
  if (values_ && bytes == nullptr && size == 0)
    tree_.push_back(empty_leaf(path_, LeafKind::kEmptyStruct));
  leave();
}

void LeafTreeBuilder::begin(NodeKind kind, const TypeInfo& type, std::size_t children,
                            std::size_t) {
  enter();
  if (values_ && children == 0) {
    const LeafKind empty = kind == NodeKind::kList    ? LeafKind::kEmptyList
                           : kind == NodeKind::kTuple ? LeafKind::kEmptyTuple
                           : kind == NodeKind::kMap   ? LeafKind::kEmptyDict
                                                      : LeafKind::kNone;
    if (kind != NodeKind::kAggregate) tree_.push_back(empty_leaf(path_, empty));
  }
  levels_.push_back({kind, &type, 0, {}, false, true});
}

void LeafTreeBuilder::key(std::string_view k) { levels_.back().key = k; }
void LeafTreeBuilder::key(std::int64_t k) { levels_.back().key = fmt::format("{}", k); }

void LeafTreeBuilder::end() {
  levels_.pop_back();
  leave();
}

std::vector<Array> restore_leaves(const std::vector<KeyPath>& paths, std::span<const Array> like,
                                  const Item& saved, const RestoreOptions& options,
                                  RestoreReport* report, std::string_view what) {
  RestoreReport scratch;
  RestoreReport& r = report != nullptr ? *report : scratch;
  std::map<std::string, std::size_t> by_name;
  const std::vector<LeafInfo>& infos = saved.leaves();
  for (std::size_t i = 0; i < infos.size(); ++i)
    if (has_array(infos[i].kind)) by_name[param_name(infos[i].path)] = i;
  // Differences are collected first, so that nothing is read in vain.
  struct Problem {
    std::string expected, given;
  };
  std::vector<Problem> problems;
  constexpr std::size_t kMaxProblems = 5;
  std::size_t count = 0;
  const auto problem = [&](std::string expected, std::string given) {
    if (++count <= kMaxProblems) problems.push_back({std::move(expected), std::move(given)});
  };
  std::vector<std::optional<std::size_t>> source(like.size());
  std::set<std::string> used;
  for (std::size_t i = 0; i < like.size(); ++i) {
    if (!like[i].defined()) continue;
    const std::string name = param_name(paths[i]), text = path_text(paths[i]);
    const std::string expected = fmt::format("the leaf {} must be {}", text, like[i].type_string());
    const auto it = by_name.find(name);
    if (it == by_name.end()) {
      r.missing.push_back(text);
      if (!options.allow_missing) problem(expected, "the checkpoint has no such leaf");
      continue;
    }
    used.insert(name);
    const LeafInfo& l = infos[it->second];
    const std::string type =
        l.dtype ? shape_string(*l.dtype, l.shape) : fmt::format("{}", l.dtype_name);
    if (l.shape != like[i].shape() || !l.dtype) {
      problem(expected, fmt::format("the checkpoint's is {}", type));
      continue;
    }
    if (*l.dtype != like[i].dtype()) {
      if (!options.cast) {
        problem(expected, fmt::format("the checkpoint's is {}", type));
        continue;
      }
      r.cast.push_back(text);
    }
    source[i] = it->second;
  }
  for (const auto& [name, i] : by_name) {
    if (used.contains(name)) continue;
    r.unexpected.push_back(path_text(infos[i].path));
    if (!options.allow_unexpected)
      problem("only leaves of the tree",
              fmt::format("the checkpoint also has {}", path_text(infos[i].path)));
  }
  if (count > 0) {
    std::string given = problems[0].given;
    for (std::size_t i = 1; i < problems.size(); ++i)
      given += fmt::format("; {}: {}", problems[i].expected, problems[i].given);
    if (count > kMaxProblems) given += fmt::format("; and {} more", count - kMaxProblems);
    throw_user_error({what, problems[0].expected, given,
                      "Use the model configuration that the checkpoint was made with, or begin a "
                      "new run under another run_name"});
  }
  std::vector<Array> out(like.begin(), like.end());
  for (std::size_t i = 0; i < like.size(); ++i) {
    if (!source[i]) continue;
    HostArray a = saved.read(*source[i]);
    if (a.dtype() != like[i].dtype()) a = a.astype(like[i].dtype());
    out[i] = Array(a);
  }
  return out;
}

}  // namespace xylem::checkpoint::internal
