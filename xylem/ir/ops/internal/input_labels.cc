#include "xylem/ir/ops/internal/input_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace xylem::ir::ops {
namespace {

// The inputs of each op, operands and attributes, in the order in which StableHLO's specification
// numbers them: input k has the label "<op>_i<k>".
constexpr std::pair<std::string_view, std::string_view> kInputs[] = {
    {"stablehlo.abs", "operand"},
    {"stablehlo.add", "lhs rhs"},
    {"stablehlo.after_all", "inputs"},
    {"stablehlo.all_gather",
     "operands all_gather_dim replica_groups channel_handle use_global_device_ids"},
    {"stablehlo.all_reduce",
     "operands replica_groups channel_handle use_global_device_ids computation"},
    {"stablehlo.all_to_all",
     "operands split_dimension concat_dimension split_count replica_groups channel_handle"},
    {"stablehlo.and", "lhs rhs"},
    {"stablehlo.async_done", "operand"},
    {"stablehlo.async_start", "operands body"},
    {"stablehlo.atan2", "lhs rhs"},
    {"stablehlo.batch_norm_grad", "operand scale mean variance grad_output epsilon feature_index"},
    {"stablehlo.batch_norm_inference", "operand scale offset mean variance epsilon feature_index"},
    {"stablehlo.batch_norm_training", "operand scale offset epsilon feature_index"},
    {"stablehlo.bitcast_convert", "operand"},
    {"stablehlo.broadcast_in_dim", "operand broadcast_dimensions"},
    {"stablehlo.case", "index branches"},
    {"stablehlo.cbrt", "operand"},
    {"stablehlo.ceil", "operand"},
    {"stablehlo.cholesky", "a lower"},
    {"stablehlo.clamp", "min operand max"},
    {"stablehlo.collective_broadcast", "operands replica_groups channel_handle has_dynamic_root"},
    {"stablehlo.collective_permute", "operand source_target_pairs channel_handle"},
    {"stablehlo.collective_reduce",
     "operands replica_groups channel_handle has_dynamic_root computation"},
    {"stablehlo.compare", "lhs rhs comparison_direction compare_type"},
    {"stablehlo.complex", "lhs rhs"},
    {"stablehlo.composite", "inputs name composite_attributes decomposition version regions"},
    {"stablehlo.concatenate", "inputs dimension"},
    {"stablehlo.constant", "value"},
    {"stablehlo.convert", "operand"},
    {"stablehlo.convolution",
     "lhs rhs window_strides padding lhs_dilation rhs_dilation window_reversal "
     "input_batch_dimension input_feature_dimension input_spatial_dimensions "
     "kernel_input_feature_dimension kernel_output_feature_dimension kernel_spatial_dimensions "
     "output_batch_dimension output_feature_dimension output_spatial_dimensions "
     "feature_group_count batch_group_count precision_config"},
    {"stablehlo.cosine", "operand"},
    {"stablehlo.count_leading_zeros", "operand"},
    {"stablehlo.custom_call",
     "inputs call_target_name has_side_effect backend_config api_version called_computations "
     "output_operand_aliases"},
    {"stablehlo.divide", "lhs rhs"},
    {"stablehlo.dot_general",
     "lhs rhs lhs_batching_dimensions rhs_batching_dimensions lhs_contracting_dimensions "
     "rhs_contracting_dimensions precision_config lhs_precision_type rhs_precision_type "
     "accumulation_type lhs_component_count rhs_component_count num_primitive_operations "
     "allow_imprecise_accumulation"},
    {"stablehlo.dynamic_broadcast_in_dim",
     "operand output_dimensions broadcast_dimensions known_expanding_dimensions "
     "known_nonexpanding_dimensions"},
    {"stablehlo.dynamic_conv",
     "lhs rhs padding window_strides lhs_dilation rhs_dilation window_reversal "
     "input_batch_dimension input_feature_dimension input_spatial_dimensions "
     "kernel_input_feature_dimension kernel_output_feature_dimension kernel_spatial_dimensions "
     "output_batch_dimension output_feature_dimension output_spatial_dimensions "
     "feature_group_count batch_group_count precision_config"},
    {"stablehlo.dynamic_gather",
     "operand start_indices slice_sizes offset_dims collapsed_slice_dims start_index_map "
     "index_vector_dim indices_are_sorted"},
    {"stablehlo.dynamic_iota", "output_shape iota_dimension"},
    {"stablehlo.dynamic_pad",
     "operand padding_value edge_padding_low edge_padding_high interior_padding"},
    {"stablehlo.dynamic_reshape", "operand output_shape"},
    {"stablehlo.dynamic_slice", "operand start_indices slice_sizes"},
    {"stablehlo.dynamic_update_slice", "operand update start_indices"},
    {"stablehlo.exponential", "operand"},
    {"stablehlo.exponential_minus_one", "operand"},
    {"stablehlo.fft", "operand fft_type fft_length"},
    {"stablehlo.floor", "operand"},
    {"stablehlo.gather",
     "operand start_indices offset_dims collapsed_slice_dims operand_batching_dims "
     "start_indices_batching_dims start_index_map index_vector_dim slice_sizes indices_are_sorted"},
    {"stablehlo.get_dimension_size", "operand dimension"},
    {"stablehlo.get_tuple_element", "operand index"},
    {"stablehlo.if", "pred true_branch false_branch"},
    {"stablehlo.imag", "operand"},
    {"stablehlo.infeed", "token infeed_config"},
    {"stablehlo.iota", "iota_dimension"},
    {"stablehlo.is_finite", "x"},
    {"stablehlo.log", "operand"},
    {"stablehlo.log_plus_one", "operand"},
    {"stablehlo.logistic", "operand"},
    {"stablehlo.map", "inputs dimensions computation"},
    {"stablehlo.maximum", "lhs rhs"},
    {"stablehlo.minimum", "lhs rhs"},
    {"stablehlo.multiply", "lhs rhs"},
    {"stablehlo.negate", "operand"},
    {"stablehlo.or", "lhs rhs"},
    {"stablehlo.outfeed", "inputs token outfeed_config"},
    {"stablehlo.pad", "operand padding_value edge_padding_low edge_padding_high interior_padding"},
    {"stablehlo.popcnt", "operand"},
    {"stablehlo.power", "lhs rhs"},
    {"stablehlo.real", "operand"},
    {"stablehlo.recv", "token channel_handle channel_type is_host_transfer source_target_pairs"},
    {"stablehlo.reduce", "inputs init_values dimensions body"},
    {"stablehlo.reduce_precision", "operand exponent_bits mantissa_bits"},
    {"stablehlo.reduce_scatter",
     "operand scatter_dimension replica_groups channel_handle use_global_device_ids computation"},
    {"stablehlo.reduce_window",
     "inputs init_values window_dimensions window_strides base_dilations window_dilations padding "
     "body"},
    {"stablehlo.remainder", "lhs rhs"},
    {"stablehlo.reshape", "operand"},
    {"stablehlo.reverse", "operand dimensions"},
    {"stablehlo.rng", "a b shape rng_distribution"},
    {"stablehlo.rng_bit_generator", "rng_algorithm initial_state"},
    {"stablehlo.round_nearest_afz", "operand"},
    {"stablehlo.round_nearest_even", "operand"},
    {"stablehlo.rsqrt", "operand"},
    {"stablehlo.scatter",
     "inputs scatter_indices updates update_window_dims inserted_window_dims input_batching_dims "
     "scatter_indices_batching_dims scatter_dims_to_operand_dims index_vector_dim "
     "indices_are_sorted unique_indices update_computation"},
    {"stablehlo.select", "pred on_true on_false"},
    {"stablehlo.select_and_scatter",
     "operand source init_value window_dimensions window_strides padding select scatter"},
    {"stablehlo.send",
     "inputs token channel_handle channel_type is_host_transfer source_target_pairs"},
    {"stablehlo.shift_left", "lhs rhs"},
    {"stablehlo.shift_right_arithmetic", "lhs rhs"},
    {"stablehlo.shift_right_logical", "lhs rhs"},
    {"stablehlo.sign", "operand"},
    {"stablehlo.sine", "operand"},
    {"stablehlo.slice", "operand start_indices limit_indices strides"},
    {"stablehlo.sort", "inputs dimension is_stable comparator"},
    {"stablehlo.sqrt", "operand"},
    {"stablehlo.subtract", "lhs rhs"},
    {"stablehlo.tan", "operand"},
    {"stablehlo.tanh", "operand"},
    {"stablehlo.transpose", "operand permutation"},
    {"stablehlo.triangular_solve", "a b left_side lower unit_diagonal transpose_a"},
    {"stablehlo.tuple", "val"},
    {"stablehlo.uniform_dequantize", "operand"},
    {"stablehlo.uniform_quantize", "operand"},
    {"stablehlo.while", "operand cond body"},
    {"stablehlo.xor", "lhs rhs"},
};

std::vector<std::string_view> inputs_of(const OpDef& def) {
  static const auto* kByOp = new std::unordered_map<std::string_view, std::string_view>(
      std::begin(kInputs), std::end(kInputs));
  std::vector<std::string_view> names;
  auto it = kByOp->find(def.name);
  if (it == kByOp->end()) return names;
  std::string_view rest = it->second;
  while (!rest.empty()) {
    std::size_t blank = std::min(rest.find(' '), rest.size());
    names.push_back(rest.substr(0, blank));
    rest.remove_prefix(std::min(blank + 1, rest.size()));
  }
  return names;
}

std::string label_of(const OpDef& def, std::size_t input) {
  return fmt::format("{}_i{}", def.name.substr(def.name.find('.') + 1), input + 1);
}

}  // namespace

std::string input_label(const OpDef& def, std::string_view attr) {
  std::vector<std::string_view> names = inputs_of(def);
  for (std::size_t k = 0; k < names.size(); ++k)
    if (names[k] == attr) return label_of(def, k);
  return {};
}

std::string missing_operand_label(const OpDef& def, int given) {
  std::vector<std::string_view> names = inputs_of(def);
  int operand = 0;
  for (std::size_t k = 0; k < names.size(); ++k) {
    if (def.find_attr(names[k])) continue;
    if (operand++ == given) return label_of(def, k);
  }
  return {};
}

std::string missing_region_label(const OpDef& def, int given) {
  std::vector<std::string_view> names = inputs_of(def);
  if (given < 0 || given >= def.num_regions) return {};
  auto first = static_cast<int>(names.size()) - def.num_regions;
  return first < 0 ? std::string() : label_of(def, static_cast<std::size_t>(first + given));
}

}  // namespace xylem::ir::ops
