#pragma once

#include "xylem/compiler/gemm/gemm.h"
#include "xylem/compiler/lowering/lowering.h"

namespace xylem::compiler {

// An operand of a product: where its elements lie in a buffer.
struct Operand {
  BufferId buffer = 0;
  MatrixLayout layout;
};

// The element number in a buffer of v's element at `index`, a form per dimension over `axes`, if v
// is a buffer seen through transposes, reshapes and slices; false if it is not, or if its place is
// no form with steps >= 0 from the start of the buffer.
bool find_place(Lowering& l, ir::ValueId v, const Forms& index, const Dims& axes, BufferId* buffer,
                Form* place);

// A temporary with the elements of v, its dimensions in `order` (outermost first).
BufferId make_dense(Lowering& l, ir::ValueId v, const Dims& order);

// Adds the steps of out[batch…, m, n] (dense) = a · b.
void emit_product(Lowering& l, const GemmShape& shape, const Operand& a, const Operand& b,
                  BufferId out);

}  // namespace xylem::compiler
