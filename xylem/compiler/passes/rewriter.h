#pragma once

#include <span>
#include <vector>

#include "xylem/ir/builder.h"

namespace xylem::compiler {

// Builds the new graph of a pass beside the old one: parameters are made at once, ops are copied
// or replaced one by one in order.
class Rewriter {
 public:
  explicit Rewriter(const ir::Graph& old);

  ir::Builder& builder() { return builder_; }
  const ir::Graph& old() const { return old_; }

  // The new value that stands for an old one.
  ir::ValueId operator[](ir::ValueId v) const { return map_[static_cast<std::size_t>(v)]; }
  void set(ir::ValueId v, ir::ValueId now) { map_[static_cast<std::size_t>(v)] = now; }
  ir::ValueIds operands(const ir::Op& op) const;
  // Copies an op of the old graph onto the new operands.
  void copy(const ir::Op& op);
  void replace(const ir::Op& op, std::span<const ir::ValueId> results);

  ir::GraphPtr finish();

 private:
  const ir::Graph& old_;
  ir::Builder builder_;
  std::vector<ir::ValueId> map_;
};

}  // namespace xylem::compiler
