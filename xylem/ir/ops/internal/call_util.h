#pragma once

#include <vector>

#include "xylem/ir/ops/internal/shape_util.h"

// Ops whose results stand in the attribute `result_types`.

namespace xylem::ir::ops {

// The types that the op was written with; fails with "<op>_result_types" unless all are types.
inline std::vector<Type> written_results(const OpCall& call) {
  std::vector<Type> types;
  const AttrList* list = call.attrs.at("result_types").list();
  for (const Attr& a : list ? *list : AttrList{}) {
    const Type* t = a.get<Type>();
    if (!t)
      fail(call, "result_types", "the attribute holds types", a.to_string(), "Give types only");
    types.push_back(*t);
  }
  return types;
}

}  // namespace xylem::ir::ops
