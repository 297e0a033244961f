#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "xylem/ir/graph.h"
#include "xylem/ir/op_def.h"

namespace xylem::ir {

// Appends ops to a new graph; every op's result types come from its shape rule.
// Not thread safe.
class Builder {
 public:
  explicit Builder(std::string name = "");

  ValueId param(Type type, Attrs attrs = {});
  // Appends an op and returns its results. Throws ConstraintError / UserError and leaves the graph
  // as it was if the call breaks a rule.
  ValueIds op(const OpDef& def, std::span<const ValueId> operands, Attrs attrs = {},
              std::vector<GraphPtr> regions = {});
  ValueIds op(const OpDef& def, std::initializer_list<ValueId> operands, Attrs attrs = {},
              std::vector<GraphPtr> regions = {}) {
    return op(def, std::span<const ValueId>(operands.begin(), operands.size()), std::move(attrs),
              std::move(regions));
  }
  // For ops with one result.
  ValueId one(const OpDef& def, std::initializer_list<ValueId> operands, Attrs attrs = {},
              std::vector<GraphPtr> regions = {}) {
    return op(def, operands, std::move(attrs), std::move(regions))[0];
  }
  ValueId one(const OpDef& def, std::span<const ValueId> operands, Attrs attrs = {},
              std::vector<GraphPtr> regions = {}) {
    return op(def, operands, std::move(attrs), std::move(regions))[0];
  }
  // Appends a copy of `op` (attributes, regions, location) with other operands; result types are
  // inferred anew.
  ValueIds clone(const Op& op, std::span<const ValueId> operands);

  ValueId constant(HostArray value);
  // A constant of one repeated value, converted to dtype; a scalar when dims is empty.
  ValueId splat(DType dtype, const Dims& dims, double value);
  ValueId splat_like(ValueId v, double value) {
    const Type t = type(v);  // a copy: appending moves the values
    return splat(t.dtype(), t.dims(), value);
  }

  const Type& type(ValueId v) const { return graph_.type(v); }
  const Graph& graph() const { return graph_; }  // as built so far
  void set_location(Location loc) { loc_ = loc; }
  const Location& location() const { return loc_; }

  // Inlines `g` on the given arguments and returns its results.
  std::vector<ValueId> inline_graph(const Graph& g, std::span<const ValueId> args);

  // Ends the graph. The builder is empty afterwards.
  GraphPtr finish(std::vector<ValueId> results);

 private:
  Graph graph_;
  Location loc_;
};

}  // namespace xylem::ir
