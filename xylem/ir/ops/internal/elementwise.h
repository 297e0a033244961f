#pragma once

#include <type_traits>

#include "xylem/ir/ops/internal/eval_util.h"
#include "xylem/ir/ops/internal/shape_util.h"

// Shape rules and functor helpers of the elementwise families.

namespace xylem::ir::ops {

// One operand of the set; the result has its type.
template <unsigned Set>
std::vector<Type> unary_shape_rule(const OpCall& call) {
  return {tensor_operand(call, 0, Set)};
}

// Two operands of the set with one type ("<op>_c1"); the result has it too.
template <unsigned Set>
std::vector<Type> binary_shape_rule(const OpCall& call) {
  tensor_operand(call, 0, Set);
  tensor_operand(call, 1, Set);
  return {check_same_types(call, "c1")};
}

// The type in which complex arithmetic of T parts is done before its one rounding.
template <class T>
using WiderComplex =
    std::complex<std::conditional_t<std::is_same_v<T, float>, double, long double>>;

}  // namespace xylem::ir::ops
