#include "xylem/core/lax/through.h"

#include <string>

#include "xylem/core/transform/passes.h"

namespace xylem::transform {

void jvp_through(JvpCall& c, Body body) {
  ir::Builder inner{std::string(c.op.def->name)};
  std::vector<ir::ValueId> params;
  for (ir::ValueId v : c.primals) params.push_back(inner.param(c.b.type(v)));
  ir::GraphPtr g = inner.finish(body(inner, params));
  jvp_into(c.b, *g, c.primals, c.tangents, c.primal_out, c.tangent_out);
}

void batch_through(BatchCall& c, Body body) {
  ir::Builder inner{std::string(c.op.def->name)};
  std::vector<ir::ValueId> params;
  for (const ir::Type& t : unbatched_types(c)) params.push_back(inner.param(t));
  ir::GraphPtr g = inner.finish(body(inner, params));
  batch_into(c.b, *g, c.operands, c.dims, c.size, c.axis_name, c.results, c.result_dims);
}

std::vector<ir::Type> unbatched_types(const BatchCall& c) {
  std::vector<ir::Type> types;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    ir::Type t = c.b.type(c.operands[i]);
    if (c.dims[i] != kNotMapped) {
      Dims d = t.dims();
      d.erase(static_cast<std::size_t>(c.dims[i]));
      t = t.with_dims(d);
    }
    types.push_back(t);
  }
  return types;
}

std::vector<ir::Type> unbatched_results(const BatchCall& c) {
  std::vector<ir::Type> types = unbatched_types(c);
  return ir::infer_types({*c.op.def, types, c.op.attrs, c.op.regions, c.op.loc});
}

}  // namespace xylem::transform
