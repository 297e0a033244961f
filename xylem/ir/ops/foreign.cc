#include "xylem/ir/ops/foreign.h"

#include "xylem/ir/ops/callback.h"
#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/internal/shape_util.h"

namespace xylem::ir::ops {
namespace {

std::vector<Type> foreign_shape_rule(const OpCall& call) {
  std::vector<Type> types;
  for (const Attr& a : *call.attrs.at("result_types").list()) {
    const Type* t = a.get<Type>();
    if (!t)
      fail(call, "c1", "result_types is a list of types", "it holds " + a.to_string(),
           "Write types only");
    types.push_back(*t);
  }
  return types;
}

std::vector<HostArray> foreign_eval(const EvalCall& call) {
  throw_user_error(
      {call.op.attrs.str("op"), "an op that Xylem knows",
       "an op of another dialect, which has no meaning here", "Lower the program to StableHLO"},
      call.op.loc.source);
}

}  // namespace

const OpDef kForeign = {.name = "xylem.foreign",
                        .traits = kXylem | kEffect,
                        .max_operands = -1,
                        .num_regions = -1,
                        .attrs = {{"op", AttrKind::kString},
                                  {"result_types", AttrKind::kList},
                                  {"properties", AttrKind::kDict, false},
                                  {"attributes", AttrKind::kDict, false},
                                  {"num_captures", AttrKind::kInt, false}},
                        .shape = foreign_shape_rule,
                        .eval = foreign_eval,
                        .labels = "foreign_c1"};

// What has no meaning outside of the process, or none at all.
Family foreign_family() {
  static const OpDef* const kOps[] = {&kForeign, &kPureCallback, &kIoCallback, &kCheck};
  return kOps;
}

}  // namespace xylem::ir::ops
