#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "xylem/base/dtype.h"
#include "xylem/ir/op_def.h"

// Elementary functions to any precision by GNU MPFR: what the accuracy of compiled code is measured
// against. For tests only.

namespace xylem::compiler::testing {

// Not thread safe.
class MpfrReference {
 public:
  // Throws UserError if there is no reference for the op.
  explicit MpfrReference(const ir::OpDef& def);
  ~MpfrReference();
  MpfrReference(const MpfrReference&) = delete;
  MpfrReference& operator=(const MpfrReference&) = delete;

  int operands() const;
  // |got - f(x[, y])| in units in the last place of `dtype` at f(x[, y]): the distance of the
  // neighbouring values there, that of subnormals below, and the largest exponent above. Infinity
  // where a NaN, an infinity or the sign of a zero is wrong.
  double ulp_error(DType dtype, double got, double x, double y = 0);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Every op with a reference.
std::vector<const ir::OpDef*> ops_with_reference();

}  // namespace xylem::compiler::testing
