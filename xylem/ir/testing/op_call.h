#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "xylem/base/host_array.h"
#include "xylem/ir/builder.h"
#include "xylem/ir/op_def.h"

// One op at a time, for tests.

namespace xylem::ir::testing {

// Builds a graph of this one op, verifies it and evaluates it.
std::vector<HostArray> eval_op(const OpDef& def, const std::vector<HostArray>& operands,
                               Attrs attrs = {}, std::vector<GraphPtr> regions = {});
// The first result.
HostArray eval_one(const OpDef& def, const std::vector<HostArray>& operands, Attrs attrs = {},
                   std::vector<GraphPtr> regions = {});

// The ConstraintError that the op's rule throws for these types; fails the test and is empty if
// there is none.
struct Violation {
  std::string label;
  std::string message;
};
Violation violation_of(const OpDef& def, std::vector<Type> operands, Attrs attrs = {},
                       std::vector<GraphPtr> regions = {});

// Region (a, b) -> def(a, b) on scalars.
GraphPtr binary_body(const OpDef& def, DType dtype, Attrs attrs = {});
// Region with these parameters that returns those with the given numbers.
GraphPtr passing_body(std::initializer_list<Type> params, std::initializer_list<int> results);

template <class T>
HostArray array(std::initializer_list<T> values, Dims dims) {
  return HostArray::from(std::span<const T>(values.begin(), values.size()), std::move(dims));
}
template <class T>
HostArray vec(std::initializer_list<T> values) {
  return array(values, {static_cast<std::int64_t>(values.size())});
}
HostArray bools(std::initializer_list<int> values);
// All elements as doubles.
std::vector<double> numbers(const HostArray& a);

inline Type tensor(DType dtype, Dims dims = {}) { return Type::tensor(dtype, std::move(dims)); }

}  // namespace xylem::ir::testing
