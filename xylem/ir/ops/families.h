#pragma once

#include <span>
#include <vector>

#include "xylem/ir/op_def.h"

namespace xylem::ir::ops {

using Family = std::span<const OpDef* const>;

// The ops of each family's source file, in table order.
Family elementwise_unary_family();
Family elementary_family();
Family elementwise_binary_family();
Family convert_family();
Family movement_family();
Family gather_scatter_family();
Family contraction_family();
Family reduction_family();
Family control_family();
Family sort_family();
Family random_family();
Family transform_family();
Family cumulative_family();
Family custom_linear_family();
Family foreign_family();
Family convolution_family();
Family linalg_family();
Family batch_norm_family();
Family custom_family();
Family check_family();
Family chlo_family();
Family dynamic_family();
Family collective_family();
Family quantise_family();
Family sdy_family();
Family kernel_family();  // xylem/ir/kernel/kernel_ops.cc

// All families one after the other: the op table.
std::vector<const OpDef*> all_ops();

}  // namespace xylem::ir::ops
