#include "xylem/checkpoint/named_arrays.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "xylem/base/error.h"

namespace xylem::checkpoint::internal {
namespace {

std::string name_of(const std::string& path) { return path.empty() ? "value" : path; }

[[noreturn]] void refuse(std::string_view what, std::string_view expected, std::string_view given) {
  throw_user_error({what, expected, given,
                    "Use the model configuration that the checkpoint was made with, or begin a new "
                    "run under another run_name"});
}

}  // namespace

NamedArrays name_leaves(std::span<const std::string> paths, std::span<const Array> leaves) {
  NamedArrays out;
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (leaves[i].defined()) out.push_back({name_of(paths[i]), leaves[i].to_host()});
  return out;
}

std::vector<Array> match_leaves(std::span<const std::string> paths, std::span<const Array> like,
                                const NamedArrays& saved, std::string_view what) {
  std::map<std::string_view, const HostArray*> by_name;
  for (const NamedArray& a : saved) by_name[a.name] = &a.value;
  std::vector<Array> out(like.size());
  std::set<std::string> used;
  for (std::size_t i = 0; i < like.size(); ++i) {
    if (!like[i].defined()) continue;
    const std::string name = name_of(paths[i]);
    const std::string expected = fmt::format("the leaf {} must be {}", name, like[i].type_string());
    const auto it = by_name.find(name);
    if (it == by_name.end()) refuse(what, expected, "the checkpoint has no such leaf");
    if (it->second->dtype() != like[i].dtype() || it->second->dims() != like[i].shape())
      refuse(what, expected, fmt::format("the checkpoint's is {}", it->second->type_string()));
    out[i] = Array(*it->second);
    used.insert(name);
  }
  for (const NamedArray& a : saved)
    if (!used.contains(a.name))
      refuse(what, "only leaves that the model or optimizer has",
             fmt::format("the checkpoint also has {} {}", a.name, a.value.type_string()));
  return out;
}

}  // namespace xylem::checkpoint::internal
