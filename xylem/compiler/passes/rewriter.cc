#include "xylem/compiler/passes/rewriter.h"

#include "xylem/base/error.h"

namespace xylem::compiler {

using ir::ValueId;

Rewriter::Rewriter(const ir::Graph& old)
    : old_(old), builder_(old.name), map_(old.values.size(), ir::kNoValue) {
  for (std::size_t i = 0; i < old.params.size(); ++i)
    set(old.params[i],
        builder_.param(old.type(old.params[i]),
                       i < old.param_attrs.size() ? old.param_attrs[i] : ir::Attrs()));
}

ir::ValueIds Rewriter::operands(const ir::Op& op) const {
  ir::ValueIds now;
  for (ValueId v : op.operands) now.push_back((*this)[v]);
  return now;
}

void Rewriter::copy(const ir::Op& op) {
  const ir::ValueIds now = operands(op);
  replace(op, builder_.clone(op, now));
}

void Rewriter::replace(const ir::Op& op, std::span<const ValueId> results) {
  XYLEM_CHECK(results.size() == op.results.size(), op.def->name);
  for (std::size_t i = 0; i < results.size(); ++i) set(op.results[i], results[i]);
}

ir::GraphPtr Rewriter::finish() {
  std::vector<ValueId> results;
  results.reserve(old_.results.size());
  for (ValueId v : old_.results) results.push_back((*this)[v]);
  return builder_.finish(std::move(results));
}

}  // namespace xylem::compiler
