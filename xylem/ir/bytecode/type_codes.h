#pragma once

#include <cstdint>
#include <span>

#include "xylem/base/dtype.h"
#include "xylem/ir/bytecode.h"

namespace xylem::ir::bytecode {

// VHLO's numbers of types.
enum VhloType : std::uint64_t {
  kVhloComplex = 1,
  kVhloFunction = 8,
  kVhloIndex = 9,
  kVhloTensor = 20,
  kVhloEncodedTensor = 21,
  kVhloToken = 22,
  kVhloTuple = 23,
  kVhloQuantized = 24,
  kVhloUnrankedTensor = 25,
  kVhloQuantizedPerAxis = 30,
  kVhloNone = 33,
  kVhloTf32 = 34,
  kVhloBuffer = 41,
  kVhloFuture = 42,
};

struct ElementCode {
  DType dtype;
  std::uint64_t code;
  Version since;  // first version that has the type
};

// Every element type but complex.
std::span<const ElementCode> element_codes();
const ElementCode* element_of_code(std::uint64_t code);  // null if unknown
const ElementCode* element_of_dtype(DType dtype);        // null if VHLO has none

}  // namespace xylem::ir::bytecode
