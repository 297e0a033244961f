#include "xylem/core/remat.h"

#include <fmt/format.h>

#include <set>

#include "xylem/base/error.h"
#include "xylem/core/internal/flat.h"
#include "xylem/core/internal/primitive_name.h"
#include "xylem/core/transform/transform.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/ops/transform.h"

namespace xylem {
namespace checkpoint_policies {
namespace {

using Names = std::initializer_list<std::string_view>;

std::string joined(std::string_view policy, Names a, Names b = {}) {
  std::string out(policy);
  out += ':';
  bool first = true;
  for (Names names : {a, b})
    for (std::string_view n : names) {
      if (n.empty() || n.find_first_of(",;") != std::string_view::npos)
        throw_user_error({std::string(policy), "names without commas and semicolons",
                          fmt::format("\"{}\"", n), "Give checkpoint_name another name"});
      out += (first ? "" : ",") + std::string(n);
      first = false;
    }
  return out;
}

void check_memories(std::string_view what, std::string_view src, std::string_view dst) {
  for (std::string_view m : {src, dst})
    if (m != "device" && m != "pinned_host")
      throw_user_error({what, "the memories device and pinned_host", fmt::format("\"{}\"", m),
                        "Offload from \"device\" to \"pinned_host\""});
}

}  // namespace

std::string everything_saveable() { return "everything_saveable"; }
std::string nothing_saveable() { return "nothing_saveable"; }
std::string dots_saveable() { return "dots_saveable"; }
std::string checkpoint_dots() { return "dots_saveable"; }
std::string dots_with_no_batch_dims_saveable() { return "dots_with_no_batch_dims_saveable"; }
std::string checkpoint_dots_with_no_batch_dims() { return "dots_with_no_batch_dims_saveable"; }
std::string save_only_these_names(Names names) { return joined("save_only_these_names", names); }
std::string save_any_names_but_these(Names names) {
  return joined("save_any_names_but_these", names);
}
std::string save_anything_except_these_names(Names names) {
  return joined("save_anything_except_these_names", names);
}
std::string save_from_both_policies(const std::string& a, const std::string& b) {
  return a + ";" + b;
}
std::string offload_dot_with_no_batch_dims(std::string_view src, std::string_view dst) {
  check_memories("offload_dot_with_no_batch_dims", src, dst);
  return dots_with_no_batch_dims_saveable();
}
std::string save_and_offload_only_these_names(Names saved, Names offloaded, std::string_view src,
                                              std::string_view dst) {
  check_memories("save_and_offload_only_these_names", src, dst);
  return joined("save_only_these_names", saved, offloaded);
}

}  // namespace checkpoint_policies

namespace internal {

std::vector<Residual> saved_residuals(std::span<const Array> args, const Structure& structure,
                                      FlatFunction f, SourceLoc where) {
  CallSite site(where);
  FlatTrace t = trace_flat(TraceKind::kBody, "saved_residuals", args, f);
  std::vector<bool> active;
  for (const Array& a : args) active.push_back(a.defined() && is_inexact(a.dtype()));
  transform::Linearized l = transform::linearize(*t.graph, t.param_mask(active));
  const ir::Graph& g = *l.primal;
  std::vector<std::string> paths = structure.paths(), names;
  for (std::size_t i = 0; i < args.size(); ++i)
    if (args[i].defined()) names.push_back(i < paths.size() ? paths[i] : std::to_string(i));
  std::vector<Residual> out;
  std::set<ir::ValueId> seen;
  for (std::size_t i = t.graph->results.size(); i < g.results.size(); ++i) {
    ir::ValueId v = g.results[i];
    if (!seen.insert(v).second) continue;
    Residual r{jax_type_text(g.type(v)), ""};
    const ir::Op* op = g.def(v);
    auto place = [&] {
      return op->loc.source.known() ? " from " + op->loc.source.to_string() : std::string();
    };
    if (!op) {
      auto index = static_cast<std::size_t>(g.value(v).index);
      r.origin = index < names.size() ? "from the argument " + names[index] : "from a constant";
    } else if (op->def == &ir::ops::kCheckpointName) {
      r.origin = fmt::format("named '{}'{}", op->attrs.str("name"), place());
    } else if (op->def->is(ir::kConstant)) {
      r.origin = "from a constant";
    } else {
      r.origin = fmt::format("output of {}{}", primitive_name(*op), place());
    }
    out.push_back(std::move(r));
  }
  return out;
}

std::string residuals_text(const std::vector<Residual>& residuals) {
  std::string out;
  for (const Residual& r : residuals) out += fmt::format("{} {}\n", r.type, r.origin);
  return out;
}

}  // namespace internal
}  // namespace xylem
