#pragma once

#include "xylem/ir/op_def.h"

namespace xylem::ir::ops {

// convert {result_dtype}: value conversion, rules in base/dtype_cast.h.
extern const OpDef kConvert;
// bitcast_convert {result_dtype}: same bits. Equal widths keep the shape; a narrower result gets a
// new last dimension of the ratio, a wider one uses up the last dimension. Low bits come first.
extern const OpDef kBitcastConvert;
// reduce_precision {exponent_bits, mantissa_bits}: rounds to nearest even to so many mantissa
// bits; what overflows the exponent becomes infinite, what underflows it zero; NaN stays.
extern const OpDef kReducePrecision;

}  // namespace xylem::ir::ops
