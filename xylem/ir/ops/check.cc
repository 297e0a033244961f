#include "xylem/ir/ops/check.h"

#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/internal/call_util.h"
#include "xylem/ir/ops/internal/compare_arrays.h"
#include "xylem/ir/process.h"

namespace xylem::ir::ops {
namespace {

using Types = std::vector<Type>;

// Checks -----------------------------------------------------------------------------------------

Types two_shape_rule(const OpCall& call) {
  bool inexact = call.def.name != "check.expect_eq";
  for (int i = 0; i < 2; ++i) {
    const Type& t = call.operands[static_cast<std::size_t>(i)];
    unsigned set = call.def.name == "check.expect_eq" ? kElAny : kElInexact;
    if (inexact || !t.quant()) tensor_operand(call, i, set);
  }
  check_same_types(call, "c1");
  return {};
}

Types const_shape_rule(const OpCall& call) {
  const Type& t =
      tensor_operand(call, 0, call.def.name == "check.expect_eq_const" ? kElAny : kElInexact);
  const HostArray& value = call.attrs.array("value");
  if (value.dtype() != t.dtype() || !dims_fit(value.dims(), t.dims()))
    fail(call, "c1", "the constant must have the operand's type",
         fmt::format("operand {}, constant {}", t.to_string(), value.type_string()),
         "Write it with that type");
  return {};
}

Types one_shape_rule(const OpCall& call) {
  tensor_operand(call, 0);
  return {};
}

double tolerance(const EvalCall& call) {
  const Attr* a = call.op.attrs.find("tolerance");
  if (!a) return 1e-4;
  if (const ScalarAttr* s = a->get<ScalarAttr>()) return s->real;
  return *a->get<double>();
}

// Bounds are u64: the greatest one has the bits of -1.
std::uint64_t bound(const EvalCall& call, std::string_view name, std::uint64_t otherwise) {
  const Attr* a = call.op.attrs.find(name);
  if (!a) return otherwise;
  if (const ScalarAttr* s = a->get<ScalarAttr>()) return static_cast<std::uint64_t>(s->integer);
  return static_cast<std::uint64_t>(*a->get<std::int64_t>());
}

std::vector<HostArray> expect_eq_eval(const EvalCall& call) {
  require_check(call.op.def->name, check_equal(call.operands[0], call.operands[1]));
  return {};
}

std::vector<HostArray> expect_eq_const_eval(const EvalCall& call) {
  require_check(call.op.def->name, check_equal(call.operands[0], call.op.attrs.array("value")));
  return {};
}

std::vector<HostArray> expect_almost_eq_eval(const EvalCall& call) {
  require_check(call.op.def->name,
                check_almost_equal(call.operands[0], call.operands[1], tolerance(call)));
  return {};
}

std::vector<HostArray> expect_almost_eq_const_eval(const EvalCall& call) {
  require_check(
      call.op.def->name,
      check_almost_equal(call.operands[0], call.op.attrs.array("value"), tolerance(call)));
  return {};
}

std::vector<HostArray> expect_close_eval(const EvalCall& call) {
  require_check(call.op.def->name, check_close(call.operands[0], call.operands[1],
                                               bound(call, "min_ulp_difference", 0),
                                               bound(call, "max_ulp_difference", 1)));
  return {};
}

Process& process_of(const EvalCall& call) {
  Process* p = call.regions.process();
  if (!p)
    throw UserError(ErrorParts{call.op.def->name, "it runs in the interpreter",
                               "the program is folded or compiled", "Use the interpreter"},
                    call.op.loc.source);
  return *p;
}

std::vector<HostArray> expect_serialized_eq_eval(const EvalCall& call) {
  const Type& t = call.operand_types[0];
  HostArray probed = process_of(call).session().probed(call.op.attrs.str("probe_id"),
                                                       call.op.attrs.i64_or("iter", 0), t);
  require_check(call.op.def->name, check_equal(call.operands[0], probed));
  return {};
}

// The interpreter dialect ------------------------------------------------------------------------

// Rows of `programs`; fails unless they are lists of symbols.
std::vector<std::size_t> rows_of(const OpCall& call) {
  const AttrList* rows = call.attrs.at("programs").list();
  std::vector<std::size_t> sizes;
  for (const Attr& row : rows ? *rows : AttrList{}) {
    const AttrList* symbols = row.list();
    for (const Attr& s : symbols ? *symbols : AttrList{})
      if (!s.get<SymbolAttr>()) symbols = nullptr;
    if (!symbols)
      fail(call, "programs", "programs must be rows of functions", row.to_string(),
           "Write it like [[@f], [@g]]");
    sizes.push_back(symbols->size());
  }
  return sizes;
}

Types run_parallel_shape_rule(const OpCall& call) {
  std::vector<std::size_t> rows = rows_of(call);
  if (rows.empty() || rows[0] == 0)
    fail(call, "programs", "programs must name a function for every process", "it is empty",
         "Name functions");
  for (std::size_t n : rows)
    if (n != rows[0])
      fail(call, "programs", fmt::format("rows of programs must have one length ({})", rows[0]),
           fmt::format("one has {}", n), "Name as many functions in every row");
  std::size_t programs = rows.size() * rows[0];
  const Attr* infeed = call.attrs.find("infeed");
  std::size_t feeds = 0;
  if (infeed) {
    feeds = infeed->list() ? infeed->list()->size() : 0;
    if (feeds == 0)
      fail(call, "infeed", "infeed must name functions or be left out", infeed->to_string(),
           "Leave it out");
  }
  if (call.regions.size() != programs + feeds)
    fail(call, "programs", fmt::format("there must be {} functions", programs + feeds),
         fmt::format("there are {}", call.regions.size()), "Name functions of the module");
  Types params, results;
  for (std::size_t i = 0; i < call.regions.size(); ++i) {
    const GraphPtr& g = call.regions[i];
    if (!g)
      fail(call, "functions", "programs and infeed must name functions of the module",
           fmt::format("function {} is not defined", i), "Define it");
    if (i < programs) {
      for (const Type& t : g->param_types()) params.push_back(t);
      for (const Type& t : g->result_types()) results.push_back(t);
    } else if (g->params.size() != 0 || g->results.size() != 1 ||
               !g->type(g->results[0]).is_tensor()) {
      fail(call, "infeed", "an infeed function must take nothing and give one tensor",
           fmt::format("@{} takes {} and gives {}", g->name, types_text(g->param_types()),
                       types_text(g->result_types())),
           "Give it one tensor result");
    }
  }
  Types given(call.operands.begin(), call.operands.end());
  if (given != params)
    fail(call, "operands",
         fmt::format("the operands must be those of all programs, {}", types_text(params)),
         fmt::format("they are {}", types_text(given)), "Pass the arguments of every process");
  Types written = written_results(call);
  if (written != results)
    fail(call, "results",
         fmt::format("the results must be those of all programs, {}", types_text(results)),
         fmt::format("they are {}", types_text(written)), "Take the results of every process");
  return results;
}

std::vector<HostArray> run_parallel_eval(const EvalCall& call) {
  Process& process = process_of(call);
  const AttrList& rows = *call.op.attrs.at("programs").list();
  std::vector<std::vector<GraphPtr>> programs;
  std::vector<std::vector<HostArray>> args;
  std::size_t region = 0, operand = 0;
  for (const Attr& row : rows) {
    programs.emplace_back();
    for (std::size_t p = 0; p < row.list()->size(); ++p) {
      const GraphPtr& g = call.op.regions[region++];
      programs.back().push_back(g);
      std::size_t n = 0;
      for (ValueId v : g->params) n += num_leaves(g->type(v));
      auto own = call.operands.subspan(operand, n);
      args.emplace_back(own.begin(), own.end());
      operand += n;
    }
  }
  Grid grid(static_cast<int>(programs.size()), static_cast<int>(programs[0].size()));
  for (; region < call.op.regions.size(); ++region)
    grid.feed(call.regions.run(*call.op.regions[region], {}));
  std::vector<HostArray> out;
  for (Values& values : run_grid(programs, args, process.session(), grid))
    for (HostArray& v : values) out.push_back(std::move(v));
  return out;
}

Types probe_shape_rule(const OpCall& call) { return {tensor_operand(call, 0)}; }

std::vector<HostArray> probe_eval(const EvalCall& call) {
  process_of(call).session().probe(call.op.attrs.str("probe_id"), call.operand_types[0],
                                   call.operands[0]);
  return {call.operands[0]};
}

std::vector<HostArray> print_eval(const EvalCall& call) {
  std::string name = call.op.attrs.str_or("name", "");
  std::string text = name.empty() ? "" : fmt::format("%{} = ", name);
  text += value_text(call.operands[0], call.operand_types[0]) + "\n";
  process_of(call).session().print(text);
  return {};
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

OpDef effect(std::string_view name, int operands, std::vector<AttrDef> attrs, ShapeRule shape,
             EvalRule eval, std::string_view labels) {
  return {.name = name,
          .traits = kEffect,
          .min_operands = operands,
          .max_operands = operands,
          .attrs = std::move(attrs),
          .shape = shape,
          .eval = eval,
          .dims = opaque_dims,
          .labels = labels};
}

constexpr AttrDef kValue = {"value", AttrKind::kArray};
constexpr AttrDef kTolerance = {"tolerance", AttrKind::kFloat, false};
constexpr AttrDef kProbeId = {"probe_id", AttrKind::kString};

}  // namespace

const OpDef kExpectEq = effect("check.expect_eq", 2, {}, two_shape_rule, expect_eq_eval,
                               "expect_eq_i1 expect_eq_i2 expect_eq_c1");
const OpDef kExpectEqConst = effect("check.expect_eq_const", 1, {kValue}, const_shape_rule,
                                    expect_eq_const_eval, "expect_eq_const_i1 expect_eq_const_c1");
const OpDef kExpectAlmostEq =
    effect("check.expect_almost_eq", 2, {kTolerance}, two_shape_rule, expect_almost_eq_eval,
           "expect_almost_eq_i1 expect_almost_eq_i2 expect_almost_eq_c1");
const OpDef kExpectAlmostEqConst =
    effect("check.expect_almost_eq_const", 1, {kValue, kTolerance}, const_shape_rule,
           expect_almost_eq_const_eval, "expect_almost_eq_const_i1 expect_almost_eq_const_c1");
const OpDef kExpectClose = effect(
    "check.expect_close", 2,
    {{"max_ulp_difference", AttrKind::kInt, false}, {"min_ulp_difference", AttrKind::kInt, false}},
    two_shape_rule, expect_close_eval, "expect_close_i1 expect_close_i2 expect_close_c1");
const OpDef kExpectSerializedEq =
    effect("check.expect_serialized_eq", 1, {kProbeId, {"iter", AttrKind::kInt, false}},
           one_shape_rule, expect_serialized_eq_eval, "expect_serialized_eq_i1");

const OpDef kRunParallel = [] {
  OpDef d = effect("interpreter.run_parallel", 0,
                   {{"programs", AttrKind::kList},
                    {"infeed", AttrKind::kList, false},
                    {"result_types", AttrKind::kList}},
                   run_parallel_shape_rule, run_parallel_eval,
                   "run_parallel_programs run_parallel_infeed run_parallel_functions "
                   "run_parallel_operands run_parallel_results");
  d.max_operands = -1;
  d.num_regions = -1;
  return d;
}();
const OpDef kProbe =
    effect("interpreter.probe", 1, {kProbeId}, probe_shape_rule, probe_eval, "probe_i1");
const OpDef kPrint = effect("interpreter.print", 1, {{"name", AttrKind::kString, false}},
                            one_shape_rule, print_eval, "print_i1");

Family check_family() {
  static const OpDef* const kOps[] = {
      &kExpectEq,    &kExpectEqConst,      &kExpectAlmostEq, &kExpectAlmostEqConst,
      &kExpectClose, &kExpectSerializedEq, &kRunParallel,    &kProbe,
      &kPrint};
  return kOps;
}

}  // namespace xylem::ir::ops
