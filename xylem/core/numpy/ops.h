#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "xylem/core/array.h"
#include "xylem/core/internal/trace.h"
#include "xylem/core/promotion.h"
#include "xylem/ir/attr.h"
#include "xylem/ir/op_def.h"

// What the functions of numpy.h are made of. Array parameters are taken as they come.
namespace xylem::internal {

inline WeakDType weak_dtype(const Array& a) { return {a.dtype(), a.weak_type()}; }
Array with_dtype(const Array& a, WeakDType t, SourceLoc where);
// Shape to which both broadcast. UserError naming `what` if they do not.
Dims broadcast_shapes(std::span<const Dims> shapes, const char* what, SourceLoc where);
Array broadcast(const Array& a, const Dims& shape, SourceLoc where);

// Promotes, broadcasts, applies. `inexact`: integers compute in float.
Array binary(const ir::OpDef& def, const char* what, const ArrayArg& x, const ArrayArg& y,
             bool inexact = false);
Array unary(const ir::OpDef& def, const ArrayArg& x, bool inexact = false);
Array compare(const char* what, const ArrayArg& x, const ArrayArg& y, const char* direction);
Array select(const Array& p, const Array& x, const Array& y, SourceLoc where);

Array broadcast_in_dim(const Array& x, const Dims& shape, const Dims& dims, SourceLoc where);
Array iota(DType dtype, const Dims& shape, int dimension, SourceLoc where = {});
Array slice(const Array& x, const Dims& start, const Dims& limit, const Dims& strides,
            SourceLoc where);
// A constant array of one value.
Array constant(DType dtype, const Dims& shape, double value);

// Reduction by a binary op from its identity, over resolved axes.
Array reduce(const ir::OpDef& def, const Array& x, const Dims& axes, SourceLoc where);
Array keep(const Array& reduced, const Dims& original, const Dims& axes, bool keepdims,
           SourceLoc where);

}  // namespace xylem::internal
