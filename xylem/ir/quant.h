#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "xylem/base/host_array.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/type.h"

// Quantised tensors (StableHLO specification, "Quantized types"): real = (stored - zero) * scale.
// In evaluations such a tensor is an array of its storage type.

namespace xylem::ir {

// The type with its expressed elements, tuples' elements included.
Type without_quant(const Type& t);
// The type with its storage elements; others as they are.
Type storage_type(const Type& t);
bool has_quant(const Type& t);
bool has_quant(std::span<const Type> types);
// Least and greatest stored value: the given ones, else those of the storage type.
std::pair<std::int64_t, std::int64_t> storage_range(const QuantParams& q);
// What is wrong with a quantised type as "(expected, given)", or nothing: C1 to C13 of the
// specification's quantised types.
struct QuantFault {
  std::string expected, given;
};
bool check_quant(const Type& t, QuantFault& fault);

// Ops that are about stored values: their rules see quantised tensors by their storage types.
bool is_by_storage(const OpDef& def);

// The result types of a call of an op that takes quantised tensors, or that has the attribute
// `result_types` beyond what its rule infers (`written`, may be null).
std::vector<Type> infer_refined(const OpCall& call, const AttrList* written);

// Stored to expressed values: (stored - zero) * scale in f32.
HostArray dequantise(const HostArray& stored, const Type& type);
// Expressed to stored: clamp(x / scale + zero), then to the nearest even integer, in f32.
HostArray quantise(const HostArray& real, const Type& type);

// Evaluates an op that has quantised operands or results: movements keep the stored values,
// add, dot_general and convolution work on integers, all others dequantise, compute in the
// expressed type and quantise.
std::vector<HostArray> evaluate_quantised(const EvalCall& call);

}  // namespace xylem::ir
