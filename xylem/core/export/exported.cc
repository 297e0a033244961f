#include "xylem/core/export/exported.h"

#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/core/export.h"
#include "xylem/core/internal/staged.h"
#include "xylem/core/transform/transform.h"
#include "xylem/ir/bytecode.h"
#include "xylem/ir/ops/custom.h"
#include "xylem/ir/ops/transform.h"
#include "xylem/ir/refine.h"
#include "xylem/ir/text.h"

namespace xylem {
namespace internal {
namespace {

using ir::Attr;
using ir::Attrs;
using ir::ValueId;

// Appends g with every xylem.call replaced by its body, and composites of open shapes, whose types
// could not follow their arguments.
std::vector<ValueId> inline_flat(ir::Builder& b, const ir::Graph& g,
                                 std::span<const ValueId> args) {
  std::vector<ValueId> map(g.values.size(), ir::kNoValue);
  for (std::size_t i = 0; i < args.size(); ++i)
    map[static_cast<std::size_t>(g.params[i])] = args[i];
  for (const ir::Op& op : g.ops) {
    std::vector<ValueId> operands;
    for (ValueId v : op.operands) operands.push_back(map[static_cast<std::size_t>(v)]);
    std::vector<ValueId> r;
    if (op.def == &ir::ops::kCall ||
        (op.def == &ir::ops::kComposite && ir::has_dynamic_shapes(*op.regions[0]))) {
      r = inline_flat(b, *op.regions[0], operands);
    } else {
      ir::ValueIds made = b.clone(op, operands);
      r.assign(made.begin(), made.end());
    }
    for (std::size_t i = 0; i < r.size(); ++i) map[static_cast<std::size_t>(op.results[i])] = r[i];
  }
  std::vector<ValueId> out;
  for (ValueId v : g.results) out.push_back(map[static_cast<std::size_t>(v)]);
  return out;
}

// How a type of an argument differs from what was exported; empty if it does not.
std::string difference(const ExportedAval& want, const ir::Type& given) {
  ir::Type t = want.type();
  bool fits = given.is_tensor() && given.dtype() == t.dtype() && given.rank() == t.rank();
  for (int i = 0; fits && i < t.rank(); ++i)
    fits = t.dim(i) == ir::kDynamic || t.dim(i) == given.dim(i);
  return fits ? "" : fmt::format("given {}", given.to_string());
}

// The program for arguments of these types, one parameter for each leaf.
ir::GraphPtr instance(const ExportedProgram& p, std::span<const ir::Type> types) {
  ir::GraphPtr g = p.graph();
  if (ir::has_dynamic_shapes(*g)) {
    std::vector<ir::Type> kept;
    for (std::uint16_t k : p.kept) kept.push_back(types[k]);
    g = ir::refine(g, kept);
  }
  ir::Builder b(p.fun_name);
  std::vector<ValueId> params, args;
  for (const ir::Type& t : types) params.push_back(b.param(t));
  for (std::uint16_t k : p.kept) args.push_back(params[k]);
  return b.finish(b.inline_graph(*g, args));
}

void check_platform(const ExportedProgram& p, SourceLoc where) {
  if (p.any_platform) return;
  for (const std::string& name : p.platforms)
    if (name == "cpu") return;
  throw UserError(
      ErrorParts{fmt::format("call of the exported '{}'", p.fun_name),
                 "a program for the platform cpu",
                 fmt::format("it was exported for {}", fmt::join(p.platforms, ", ")),
                 "Export it for cpu too, or disable the check of platforms when exporting"},
      where);
}

// How often the program can be differentiated; those that make their derivatives themselves are
// taken for as deep as anybody goes.
int order_of(const ExportedProgram& p) {
  if (p.differentiable) return 3;
  return p.has_vjp() ? 1 + order_of(*p.vjp()) : 0;
}

std::vector<Array> call_program(const std::shared_ptr<const ExportedProgram>& p, int order,
                                std::span<const Array> leaves, SourceLoc where) {
  CallSite site(where);
  check_platform(*p, where);
  if (!p->ordered_effects.empty())
    throw UserError(ErrorParts{fmt::format("call of the exported '{}'", p->fun_name),
                               "a program without ordered effects",
                               fmt::format("it has {}", p->ordered_effects[0]),
                               "Export the function without ordered callbacks"},
                    where);
  if (leaves.size() != p->in_avals.size())
    throw UserError(
        ErrorParts{fmt::format("call of the exported '{}'", p->fun_name),
                   fmt::format("{} argument leaves", p->in_avals.size()),
                   fmt::format("given {}", leaves.size()),
                   "Give the arguments that it was exported for: " + p->in_tree.to_string()},
        where);
  std::vector<ir::Type> types;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    std::string wrong = leaves[i].defined() ? difference(p->in_avals[i], leaves[i].node()->type)
                                            : std::string("it is undefined");
    if (!wrong.empty())
      throw UserError(
          ErrorParts{fmt::format("call of the exported '{}': argument leaf {}", p->fun_name, i),
                     fmt::format("expected {}", p->in_avals[i].to_string()), wrong,
                     "Give it the shape and dtype that the function was exported for"},
          where);
    types.push_back(leaves[i].node()->type);
  }
  ir::GraphPtr g = instance(*p, types);
  auto primal = [&](std::span<const Array> in) {
    return apply(ir::ops::kCall, in,
                 Attrs{{"name", Attr("call_exported_" + p->fun_name)}, {"exported", Attr(true)}},
                 {g}, where);
  };
  if (order == 0) return primal(leaves);
  std::size_t n = leaves.size(), outs = p->out_avals.size();
  auto forward = [&](std::span<const Array> in) {
    std::vector<Array> r = call_program(p, order - 1, in, where);
    r.insert(r.end(), in.begin(), in.end());
    return r;
  };
  auto backward = [&](std::span<const Array> in) {
    std::vector<Array> all(in.begin(), in.end());
    std::shared_ptr<const ExportedProgram> v = p->vjp();
    if (v->in_avals.size() != n + outs || v->out_avals.size() != n)
      throw UserError(ErrorParts{fmt::format("derivative of the exported '{}'", p->fun_name),
                                 "a derivative of arguments and cotangents of results",
                                 "one of other arguments", "Serialize the program again"},
                      where);
    // Results without derivative have float0 cotangents: anything of the type stands for them.
    for (std::size_t i = 0; i < outs; ++i) {
      if (all[n + i].defined() && !v->in_avals[n + i].is_float0()) continue;
      ir::Type t = v->in_avals[n + i].type();
      all[n + i] = make_literal(HostArray(t.dtype(), Dims{}), t.dtype(), false);
      if (t.rank() > 0) all[n + i] = Array(HostArray(t.dtype(), g->type(g->results[i]).dims()));
    }
    std::vector<Array> r = call_program(v, order - 1, all, where);
    for (std::size_t i = 0; i < n; ++i)
      if (v->out_avals[i].is_float0()) r[i] = Array();
    return r;
  };
  return custom_vjp(leaves, primal, forward, backward, where);
}

}  // namespace

std::string artifact(const std::string& name, const ir::GraphPtr& graph) {
  return ir::write_artifact(stablehlo_module(name, graph), ir::kDefaultVersion);
}

ir::GraphPtr ExportedProgram::graph() const {
  std::lock_guard lock(mutex_);
  if (graph_) return graph_;
  ir::Module m = ir::read_bytecode(module, fun_name);
  const ir::Module::Function* main = m.find("main");
  std::size_t first = platforms.size() > 1 ? 1 : 0;
  if (!main || !main->graph || main->graph->params.size() != first + kept.size() ||
      main->graph->results.size() != out_avals.size())
    throw_user_error({fmt::format("import_ '{}'", fun_name),
                      "a function main of the kept arguments and all results",
                      main && main->graph
                          ? fmt::format("one of {} arguments and {} results",
                                        main->graph->params.size(), main->graph->results.size())
                          : std::string("none"),
                      "Serialize the program again"});
  const ir::Graph& g = *main->graph;
  ir::Builder b(fun_name);
  std::vector<ValueId> args;
  if (first) {
    std::int32_t index = 0;
    for (std::size_t i = 0; i < platforms.size(); ++i)
      if (platforms[i] == "cpu") index = static_cast<std::int32_t>(i);
    args.push_back(b.constant(HostArray::scalar(index)));
  }
  for (std::size_t i = first; i < g.params.size(); ++i) {
    const ir::Type& t = g.type(g.params[i]);
    const ExportedAval& aval = in_avals[kept[i - first]];
    if (!(t.is_tensor() && t.dtype() == aval.type().dtype() && t.dims() == aval.type().dims()))
      throw_user_error({fmt::format("import_ '{}': argument leaf {}", fun_name, kept[i - first]),
                        fmt::format("a parameter of type {}", aval.to_string()),
                        fmt::format("the module has {}", t.to_string()),
                        "Serialize the program again"});
    args.push_back(b.param(t));
  }
  return graph_ = b.finish(inline_flat(b, g, args));
}

std::shared_ptr<const ExportedProgram> ExportedProgram::vjp() const {
  {
    std::lock_guard lock(mutex_);
    if (vjp_) return vjp_;
  }
  if (!differentiable)
    throw_user_error({fmt::format("derivative of the exported '{}'", fun_name),
                      "a serialization with its derivative",
                      "it was serialized without, or with too low an order",
                      "Serialize it with a higher vjp_order"},
                     CallSite::outermost({}));
  ir::GraphPtr g = graph();
  transform::Mask active;
  for (std::uint16_t k : kept) active.push_back(is_inexact(in_avals[k].type().dtype()));
  ir::GraphPtr d = transform::vjp(*g, active);
  auto v = std::make_shared<ExportedProgram>();
  v->fun_name = "fun_vjp_jax";
  v->platforms = platforms;
  v->differentiable = true;
  v->in_avals = in_avals;
  v->kept = kept;
  for (const ExportedAval& a : out_avals) {
    v->in_avals.push_back(a);
    if (is_inexact(a.type().dtype()))
      v->kept.push_back(static_cast<std::uint16_t>(v->in_avals.size() - 1));
    else
      v->in_avals.back().dtype = exported_dtype(DType::kFloat0);
  }
  // Results of the primal go; arguments without derivative have float0 cotangents, false in text.
  ir::Builder b(v->fun_name);
  std::vector<ValueId> args, results;
  for (ValueId p : d->params) args.push_back(b.param(d->type(p)));
  std::vector<ValueId> r = b.inline_graph(*d, args);
  std::size_t next = g->results.size(), at = 0;
  for (std::size_t i = 0; i < in_avals.size(); ++i) {
    v->out_avals.push_back(in_avals[i]);
    const bool is_kept = at < kept.size() && kept[at] == i;
    if (is_kept && active[at++]) {
      results.push_back(r[next++]);
      continue;
    }
    if (ir::Type t = in_avals[i].type(); is_inexact(t.dtype())) {  // not read at all
      results.push_back(b.splat(t.dtype(), t.dims(), 0));
      continue;
    }
    v->out_avals.back().dtype = exported_dtype(DType::kFloat0);
    ir::Type t = v->out_avals.back().type();
    results.push_back(b.splat(DType::kBool, t.dims(), 0));
  }
  // The graph of `v` has a parameter for every leaf that is kept.
  ir::GraphPtr graph = transform::dce(*b.finish(std::move(results)));
  PyTree row;
  row.kind = PyTree::Kind::kTuple;
  row.children.resize(v->in_avals.size());
  PyTree none;
  none.kind = PyTree::Kind::kDict;
  v->in_tree.kind = PyTree::Kind::kTuple;
  v->in_tree.children = {row, none};
  row.children.resize(in_avals.size());
  v->out_tree = row;
  v->module = artifact(v->fun_name, graph);
  v->set_graph(std::move(graph));
  std::lock_guard lock(mutex_);
  if (!vjp_) vjp_ = std::move(v);
  return vjp_;
}

Exported export_staged(const Staged& staged, const Structure& out_structure,
                       const ExportOptions& options) {
  CallSite site(current_call_site());
  if (options.platforms.empty() || options.platforms.size() > 1)
    throw_user_error({"export_: platforms", "one platform",
                      fmt::format("{} platforms", options.platforms.size()),
                      "Export once for each platform: the program is the same for all"},
                     CallSite::outermost({}));
  auto p = std::make_shared<ExportedProgram>();
  p->fun_name = staged.name;
  p->platforms = options.platforms;
  p->differentiable = true;
  PyTreeView in = to_pytree(staged.structure), out = to_pytree(out_structure);
  PyTree none;
  none.kind = PyTree::Kind::kDict;
  p->in_tree.kind = PyTree::Kind::kTuple;
  p->in_tree.children = {std::move(in.tree), none};
  p->out_tree = std::move(out.tree);
  ir::GraphPtr closed = closed_graph(staged);
  // Leaves in JAX's order; undefined ones have no parameter.
  auto dense_of = [](const std::vector<bool>& defined) {
    std::vector<std::size_t> r;
    std::size_t n = 0;
    for (bool d : defined) r.push_back(d ? n++ : n);
    return r;
  };
  std::vector<std::size_t> dense_in = dense_of(staged.traced.arg_defined),
                           dense_out = dense_of(staged.traced.result_defined);
  auto aval = [](const ir::Type& t, bool key) {
    ExportedAval a;
    for (std::int64_t d : t.dims()) a.shape.push_back(std::to_string(d));
    a.dtype = exported_dtype(t.dtype());
    if (key) {
      a.shape.pop_back();
      a.dtype = 27;
    }
    return a;
  };
  ir::Builder b(staged.name);
  std::vector<ValueId> args(closed->params.size());
  for (std::size_t i = 0; i < in.leaf.size(); ++i) {
    std::size_t at = dense_in[in.leaf[i]];
    const ir::Type& t = closed->type(closed->params[at]);
    p->in_avals.push_back(aval(t, in.is_key[i]));
    p->kept.push_back(static_cast<std::uint16_t>(i));
    args[at] = b.param(t);
  }
  std::vector<ValueId> r = b.inline_graph(*closed, args), results;
  for (std::size_t i = 0; i < out.leaf.size(); ++i) {
    std::size_t at = dense_out[out.leaf[i]];
    p->out_avals.push_back(aval(closed->type(closed->results[at]), out.is_key[i]));
    results.push_back(r[at]);
  }
  if (p->in_avals.size() > UINT16_MAX)
    throw_user_error({"export_", "at most 65535 argument leaves",
                      fmt::format("{}", p->in_avals.size()), "Stack arrays of equal shape"},
                     CallSite::outermost({}));
  ir::GraphPtr graph = b.finish(std::move(results));
  p->module = artifact(p->fun_name, graph);
  p->set_graph(std::move(graph));
  return Exported(std::move(p));
}

}  // namespace internal

namespace {

std::vector<std::string> texts(const std::vector<internal::ExportedAval>& avals) {
  std::vector<std::string> r;
  for (const internal::ExportedAval& a : avals) r.push_back(a.to_string());
  return r;
}

}  // namespace

const std::string& Exported::fun_name() const { return program_->fun_name; }
const std::vector<std::string>& Exported::platforms() const { return program_->platforms; }
int Exported::calling_convention_version() const { return program_->calling_convention_version; }
std::vector<std::string> Exported::in_avals() const { return texts(program_->in_avals); }
std::vector<std::string> Exported::out_avals() const { return texts(program_->out_avals); }
std::string Exported::in_tree() const { return program_->in_tree.to_string(); }
std::string Exported::out_tree() const { return program_->out_tree.to_string(); }
std::string Exported::module_text() const {
  return ir::print_stablehlo(ir::read_bytecode(program_->module, program_->fun_name));
}
const std::string& Exported::module_serialized() const { return program_->module; }
bool Exported::has_vjp() const { return program_->has_vjp(); }
Exported Exported::vjp() const { return Exported(program_->vjp()); }
std::string Exported::serialize(int vjp_order) const {
  return internal::encode_export(*program_, vjp_order);
}

Array Exported::placeholder() {
  static const Array one = internal::make_literal(HostArray::scalar(0.0f), DType::kF32, false);
  return one;
}

std::vector<Array> Exported::call_flat(std::span<const Array> leaves, SourceLoc where) const {
  return internal::call_program(program_, internal::order_of(*program_), leaves, where);
}

std::vector<Array> Exported::call_typed(const Structure& in, std::span<const Array> leaves,
                                        const Structure& out, SourceLoc where) const {
  internal::PyTreeView args = internal::to_pytree(in), results = internal::to_pytree(out);
  const internal::PyTree& want = program_->in_tree;
  bool positional = want.children.size() == 2 && want.children[1].num_leaves() == 0;
  if (!positional || !args.tree.fits(want.children[0]))
    throw_user_error({fmt::format("call of the exported '{}'", fun_name()),
                      fmt::format("arguments of structure {}", want.to_string()),
                      fmt::format("given {}", args.tree.to_string()),
                      positional ? "Give the structure that it was exported for"
                                 : "Use call_flat: it has keyword arguments"},
                     where);
  if (!results.tree.fits(program_->out_tree))
    throw_user_error({fmt::format("call of the exported '{}': type of the result", fun_name()),
                      fmt::format("structure {}", program_->out_tree.to_string()),
                      fmt::format("asked for {}", results.tree.to_string()),
                      "Name a type of that structure: call<std::tuple<Array, Array>>(…)"},
                     where);
  std::vector<Array> ordered;
  for (std::size_t i : args.leaf) ordered.push_back(leaves[i]);
  std::vector<Array> r = call_flat(ordered, where), out_leaves(r.size());
  for (std::size_t i = 0; i < r.size(); ++i) out_leaves[results.leaf[i]] = r[i];
  return out_leaves;
}

Exported import_(std::string_view bytes) { return Exported(internal::decode_export(bytes)); }

}  // namespace xylem
