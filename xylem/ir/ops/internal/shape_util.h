#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/ir/op_def.h"

// What shape rules share. Every `check_…` throws ConstraintError with the label "<op>_<what>".

namespace xylem::ir::ops {

// Sets of element kinds.
enum Elements : unsigned {
  kElBool = 1,
  kElSigned = 2,
  kElUnsigned = 4,
  kElFloat = 8,
  kElComplex = 16,
  kElInt = kElSigned | kElUnsigned,
  kElReal = kElInt | kElFloat,
  kElInexact = kElFloat | kElComplex,
  kElNumber = kElReal | kElComplex,
  kElAny = kElNumber | kElBool,
};

bool in_elements(DType dtype, unsigned set);
// "add" for "stablehlo.add".
std::string_view short_name(const OpDef& def);

// Throws with label "<op>_<what>", for example what = "c2".
[[noreturn]] void fail(const OpCall& call, std::string_view what, const std::string& expected,
                       const std::string& given, const std::string& advice);

// Operand i, which must be an unquantised tensor with elements of the set. The label is
// "<op>_i<i + 1>", or `what` for ops with a varying number of operands.
const Type& tensor_operand(const OpCall& call, int i, unsigned set = kElAny,
                           std::string_view what = {});

// Sizes agree when equal or when one is dynamic.
inline bool size_fits(std::int64_t a, std::int64_t b) {
  return a == b || a == kDynamic || b == kDynamic;
}
bool dims_fit(const Dims& a, const Dims& b);
// The more static of two sizes / shapes that fit.
inline std::int64_t refine(std::int64_t a, std::int64_t b) { return a == kDynamic ? b : a; }
Dims refine(const Dims& a, const Dims& b);

// "operand 0 is f32[2], operand 1 is f32[3], which differ at axis 0".
std::string differ(std::string_view name_a, const Type& a, std::string_view name_b, const Type& b);
// "[0,1] (operand rank 2)"-like lists in messages.
std::string list(const Dims& d);

// All tensor operands from `first` on have the dtype and fitting dims of operand `first`; gives the
// refined type.
Type check_same_types(const OpCall& call, std::string_view what, int first = 0, int last = -1);

// 0 <= v < limit for all entries / pairwise different / increasing.
void check_in_range(const OpCall& call, std::string_view what, std::string_view name,
                    const Dims& values, std::int64_t limit);
void check_unique(const OpCall& call, std::string_view what, std::string_view name,
                  const Dims& values);
void check_sorted(const OpCall& call, std::string_view what, std::string_view name,
                  const Dims& values);
void check_size(const OpCall& call, std::string_view what, std::string_view name,
                const Dims& values, std::int64_t size, std::string_view size_of);

// Region i must take the `params` and give the `results` (an empty pointer: any results).
void check_region(const OpCall& call, std::string_view what, int region,
                  std::span<const Type> params, const std::vector<Type>* results);
std::string types_text(std::span<const Type> types);

// The attribute `num_captures`, checked against the operand count ("<op>_captures").
int num_captures(const OpCall& call);

// The inherent attribute `shape`: sizes are not negative or dynamic ("<op>_shape").
const Dims& shape_attr(const OpCall& call);
// A result size, which must lie in [0, 2^62] ("<op>_<what>").
std::int64_t result_size(const OpCall& call, std::string_view what, __int128 size);

bool contains(const Dims& d, std::int64_t v);
// What is left of 0 … rank - 1 without `dims`.
Dims other_dims(int rank, const Dims& dims);

// One factor per dimension of `shape`, all of this kind, appended to the map; gives their numbers.
Dims add_factors(DimMap& map, const Dims& shape, DimMap::FactorKind kind);

}  // namespace xylem::ir::ops
