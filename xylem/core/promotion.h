#pragma once

#include <span>

#include "xylem/base/dtype.h"
#include "xylem/base/location.h"

namespace xylem {

// A dtype as promotion sees it.
struct WeakDType {
  DType dtype = DType::kF32;
  bool weak = false;
  friend bool operator==(const WeakDType&, const WeakDType&) = default;
};

// Least upper bound in JAX's type lattice (64-bit types present). Throws UserError if the types do
// not promote implicitly (two small floats, f8 with f32, i4 with i8).
WeakDType promote_types(WeakDType a, WeakDType b, SourceLoc where = {});
WeakDType promote_types(std::span<const WeakDType> types, SourceLoc where = {});

// The dtype in which functions of real numbers (exp, division, mean) compute: inexact types stay,
// integers and bool become f32 (64-bit integers too, as JAX without x64).
WeakDType to_inexact(WeakDType t);

}  // namespace xylem
