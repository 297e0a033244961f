#include "xylem/ir/ops/families.h"

namespace xylem::ir::ops {

std::vector<const OpDef*> all_ops() {
  std::vector<const OpDef*> ops;
  for (Family family : {elementwise_unary_family(),
                        elementary_family(),
                        elementwise_binary_family(),
                        convert_family(),
                        movement_family(),
                        gather_scatter_family(),
                        contraction_family(),
                        reduction_family(),
                        control_family(),
                        sort_family(),
                        random_family(),
                        transform_family(),
                        cumulative_family(),
                        custom_linear_family(),
                        convolution_family(),
                        linalg_family(),
                        batch_norm_family(),
                        custom_family(),
                        check_family(),
                        chlo_family(),
                        dynamic_family(),
                        collective_family(),
                        quantise_family(),
                        sdy_family(),
                        foreign_family(),
                        kernel_family()})
    ops.insert(ops.end(), family.begin(), family.end());
  return ops;
}

}  // namespace xylem::ir::ops
