#pragma once

#include "xylem/ir/builder.h"
#include "xylem/ir/op_def.h"

namespace xylem::ir::ops {

// Evaluates an op by its decomposition, for ops that are defined by it.
inline std::vector<HostArray> eval_by_expand(const EvalCall& call) {
  Builder b(std::string(call.op.def->name));
  std::vector<ValueId> params;
  for (const HostArray& a : call.operands)
    params.push_back(b.param(Type::tensor(a.dtype(), a.dims())));
  b.set_location(call.op.loc);
  std::vector<ValueId> results = call.op.def->expand(b, call.op, params);
  return call.regions.run(*b.finish(std::move(results)), call.operands);
}

}  // namespace xylem::ir::ops
