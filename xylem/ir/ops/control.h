#pragma once

#include "xylem/ir/op_def.h"

// Control flow. Regions are closed; the trailing `num_captures` operands are passed to every
// region behind its own arguments. Operands and results may be of any type, tokens too.

namespace xylem::ir::ops {

// while(carried × N, captures) {num_captures} cond(carried, captures) -> i1[];
// body(carried, captures) -> carried. Results: carried × N.
extern const OpDef kWhile;
// if(pred i1[], captures): two regions (captures) -> results. All operands behind pred are
// captures; `num_captures` may be left out.
extern const OpDef kIf;
// case(index i32[], captures): one region per branch; an index out of range takes the last.
extern const OpDef kCase;
// map(inputs × N, captures) {dimensions, num_captures}: region(elements × N, captures) -> element.
extern const OpDef kMap;
// after_all(tokens…) -> token
extern const OpDef kAfterAll;

}  // namespace xylem::ir::ops
