#include "xylem/compiler/passes/passes.h"

namespace xylem::compiler {

ir::GraphPtr optimize(const ir::GraphPtr& graph, bool quick) {
  ir::GraphPtr g = straighten_regions(expand_ops(eliminate_dead(inline_calls(graph))));
  g = expand_convolutions(expand_windows(g));
  g = merge_common(simplify(canonicalize_dots(simplify(g))));
  // Merging shows new equal operands to the rules; a second round catches nearly all of them.
  if (!quick) g = merge_common(simplify(g));
  g = split_reductions(eliminate_dead(g));
  return g;
}

}  // namespace xylem::compiler
