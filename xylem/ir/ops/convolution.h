#pragma once

#include "xylem/ir/op_def.h"

namespace xylem::ir::ops {

// convolution(lhs, rhs) {window_strides, padding [n, 2], lhs_dilation, rhs_dilation,
// window_reversal, all optional; input_batch_dimension, input_feature_dimension,
// input_spatial_dimensions, kernel_input_feature_dimension, kernel_output_feature_dimension,
// kernel_spatial_dimensions, output_batch_dimension, output_feature_dimension,
// output_spatial_dimensions; feature_group_count, batch_group_count; precision_config,
// result_dtype}. Any number of spatial dimensions. Padding may be negative: it cuts. A dilated side
// has holes that contribute nothing. Operands of two dtypes are let through when result_dtype is
// given.
extern const OpDef kConvolution;
// dynamic_conv(lhs, rhs, padding i[n, 2]) with the other attributes of convolution and
// result_types. The operand is added to a padding that is also given as an attribute.
extern const OpDef kDynamicConv;

}  // namespace xylem::ir::ops
