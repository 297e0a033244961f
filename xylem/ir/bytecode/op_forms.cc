#include "xylem/ir/bytecode/op_forms.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "xylem/ir/op_def.h"

namespace xylem::ir::bytecode {
namespace {

using C = Coding;
using A = Absent;
using Limit = OpForm::Limit;

constexpr Version k0_16{0, 16, 0}, k0_19{0, 19, 0}, k0_20{0, 20, 0}, k1_1{1, 1, 0}, k1_4{1, 4, 0},
    k1_5{1, 5, 0}, k1_6{1, 6, 0}, k1_9{1, 9, 0}, k1_10{1, 10, 0}, k1_12{1, 12, 0}, k1_14{1, 14, 0},
    k1_15{1, 15, 0}, k1_18{1, 18, 0}, k1_19{1, 19, 0}, k1_20{1, 20, 0};

AttrForm dims(std::string_view name) { return {name, C::kDims}; }
AttrForm number(std::string_view name) { return {name, C::kInt}; }
AttrForm field(std::string_view name, std::string_view structure) {
  return {name, C::kDims, A::kRequired, structure};
}
AttrForm int_field(std::string_view name, std::string_view structure) {
  return {name, C::kInt, A::kRequired, structure};
}
AttrForm since(AttrForm a, Version v) {
  a.since = v;
  return a;
}
AttrForm enumeration(std::string_view name, std::string_view mnemonic) {
  return {name, C::kEnum, A::kRequired, {}, mnemonic};
}

const AttrForm kChannel = {"channel_id", C::kChannelId, A::kZero, "channel_handle"};
const AttrForm kGlobalIds = {"use_global_device_ids", C::kFlag, A::kZero};
const AttrForm kGroups = {"replica_groups", C::kReplicaGroups};
const AttrForm kPairs = {"source_target_pairs", C::kElements};
const AttrForm kPrecision = {"precision_config", C::kEnums, A::kTwoDefaults, {}, "precision"};
const AttrForm kSorted = {"indices_are_sorted", C::kBool, A::kZero};
const AttrForm kAccuracy = {"result_accuracy", C::kAccuracy, A::kZero};

std::vector<AttrForm> gather_numbers() {
  constexpr std::string_view s = "dimension_numbers";
  return {field("offset_dims", s),
          field("collapsed_slice_dims", s),
          since(field("operand_batching_dims", s), k1_1),
          since(field("start_indices_batching_dims", s), k1_1),
          field("start_index_map", s),
          int_field("index_vector_dim", s),
          kSorted};
}

std::vector<AttrForm> convolution() {
  constexpr std::string_view s = "dimension_numbers";
  return {number("batch_group_count"),
          number("feature_group_count"),
          int_field("input_batch_dimension", s),
          int_field("input_feature_dimension", s),
          field("input_spatial_dimensions", s),
          int_field("kernel_input_feature_dimension", s),
          int_field("kernel_output_feature_dimension", s),
          field("kernel_spatial_dimensions", s),
          int_field("output_batch_dimension", s),
          int_field("output_feature_dimension", s),
          field("output_spatial_dimensions", s),
          {"lhs_dilation", C::kDims, A::kOnes},
          {"rhs_dilation", C::kDims, A::kOnes},
          {"window_reversal", C::kBools, A::kZeros},
          {"window_strides", C::kDims, A::kOnes},
          kPrecision};
}

std::vector<AttrForm> plus(std::vector<AttrForm> attrs, std::initializer_list<AttrForm> more) {
  attrs.insert(attrs.end(), more);
  return attrs;
}

std::vector<AttrForm> dot_general() {
  constexpr std::string_view s = "dot_dimension_numbers";
  std::vector<AttrForm> attrs = {
      field("lhs_batching_dimensions", s), field("lhs_contracting_dimensions", s),
      field("rhs_batching_dimensions", s), field("rhs_contracting_dimensions", s), kPrecision};
  auto algorithm = [&](std::string_view name, C coding) {
    attrs.push_back({name, coding, A::kZero, "algorithm", {}, k1_6});
  };
  algorithm("lhs_precision_type", C::kAlgorithmType);
  algorithm("rhs_precision_type", C::kAlgorithmType);
  algorithm("accumulation_type", C::kAlgorithmType);
  algorithm("lhs_component_count", C::kAlgorithmInt);
  algorithm("rhs_component_count", C::kAlgorithmInt);
  algorithm("num_primitive_operations", C::kAlgorithmInt);
  algorithm("allow_imprecise_accumulation", C::kAlgorithmBool);
  return attrs;
}

std::vector<OpForm> make_forms() {
  std::vector<OpForm> forms;
  for (std::string_view name : {"abs",
                                "add",
                                "after_all",
                                "and",
                                "atan2",
                                "bitcast_convert",
                                "case",
                                "ceil",
                                "clamp",
                                "complex",
                                "convert",
                                "count_leading_zeros",
                                "create_token",
                                "divide",
                                "dynamic_pad",
                                "dynamic_reshape",
                                "dynamic_update_slice",
                                "floor",
                                "if",
                                "imag",
                                "is_finite",
                                "maximum",
                                "minimum",
                                "multiply",
                                "negate",
                                "not",
                                "optimization_barrier",
                                "or",
                                "partition_id",
                                "popcnt",
                                "power",
                                "real",
                                "real_dynamic_slice",
                                "remainder",
                                "replica_id",
                                "reshape",
                                "round_nearest_afz",
                                "round_nearest_even",
                                "select",
                                "shift_left",
                                "shift_right_arithmetic",
                                "shift_right_logical",
                                "sign",
                                "subtract",
                                "tuple",
                                "uniform_dequantize",
                                "uniform_quantize",
                                "while",
                                "xor"}) {
    forms.push_back({intern("stablehlo." + std::string(name)), {}});
  }
  auto add = [&](OpForm f) { forms.push_back(std::move(f)); };

  // Transcendental ops have an accuracy from 1.10 on, exponential one version earlier.
  add({"stablehlo.exponential", {since(kAccuracy, k1_9)}, kMinimumVersion, {k1_9}});
  for (std::string_view op :
       {"stablehlo.cbrt", "stablehlo.cosine", "stablehlo.exponential_minus_one", "stablehlo.log",
        "stablehlo.log_plus_one", "stablehlo.logistic", "stablehlo.rsqrt", "stablehlo.sine",
        "stablehlo.sqrt", "stablehlo.tanh"})
    add({op, {since(kAccuracy, k1_10)}, kMinimumVersion, {k1_10}});
  add({"stablehlo.tan", {since(kAccuracy, k1_10)}, k1_4, {k1_10}});

  add({"stablehlo.async_start", {}, k1_15});
  add({"stablehlo.async_done", {}, k1_15});
  add({"stablehlo.all_gather",
       {number("all_gather_dim"), kChannel, kGroups, kGlobalIds},
       kMinimumVersion,
       {k1_5},
       Limit::kOneOperand});
  add({"stablehlo.all_reduce",
       {kChannel, kGroups, kGlobalIds},
       kMinimumVersion,
       {k1_5},
       Limit::kOneOperand,
       true});
  add({"stablehlo.all_to_all",
       {kChannel, number("concat_dimension"), kGroups, number("split_count"),
        number("split_dimension")},
       kMinimumVersion,
       {k1_5},
       Limit::kOneOperand});
  add({"stablehlo.collective_broadcast",
       {kChannel, kGroups, {"has_dynamic_root", C::kFlag, A::kZero, {}, {}, k1_20}},
       k0_16,
       {k1_20},
       Limit::kOneOperand});
  add({"stablehlo.collective_permute", {kChannel, kPairs}});
  add({"stablehlo.collective_reduce",
       {kChannel, {"has_dynamic_root", C::kFlag, A::kZero}, kGroups, kGlobalIds},
       k1_19});
  add({"stablehlo.reduce_scatter",
       {kChannel, kGroups, number("scatter_dimension"), kGlobalIds},
       kMinimumVersion,
       {},
       Limit::kNone,
       true});
  add({"stablehlo.cross-replica-sum", {kGroups}});

  for (std::string_view op : {"stablehlo.batch_norm_grad", "stablehlo.batch_norm_inference",
                              "stablehlo.batch_norm_training"})
    add({op, {{"epsilon", C::kFloat32}, number("feature_index")}});
  add({"stablehlo.broadcast", {dims("broadcast_sizes")}});
  add({"stablehlo.broadcast_in_dim", {dims("broadcast_dimensions")}});
  add({"stablehlo.dynamic_broadcast_in_dim",
       {dims("broadcast_dimensions"),
        {"known_expanding_dimensions", C::kDims, A::kZero},
        {"known_nonexpanding_dimensions", C::kDims, A::kZero}}});
  add({"stablehlo.cholesky", {{"lower", C::kBool, A::kZero}}});
  add({"stablehlo.compare",
       {{"compare_type", C::kEnum, A::kZero, {}, "comparison_type"},
        enumeration("comparison_direction", "comparison_direction")}});
  add({"stablehlo.composite",
       {{"composite_attributes", C::kDict, A::kZero},
        {"decomposition", C::kSymbol},
        {"name", C::kString},
        {"version", C::kInt32, A::kZero}},
       k0_19,
       {k1_14},
       Limit::kNoRegions});
  add({"stablehlo.concatenate", {number("dimension")}});
  add({"stablehlo.constant", {{"value", C::kElements}}});
  add({"stablehlo.convolution", plus(convolution(), {{"padding", C::kElements, A::kZeros}})});
  // Before 0.20 the op had a padding that meant nothing.
  add({"stablehlo.dynamic_conv",
       plus(convolution(),
            {{"padding", C::kDummyPadding, A::kZeros, "-", {}, kMinimumVersion, k0_19}}),
       kMinimumVersion,
       {k0_20}});
  add({"stablehlo.custom_call",
       {{"api_version", C::kEnum, A::kOriginal, {}, "custom_call_api_version"},
        {"backend_config", C::kConfig, A::kZero},
        {"call_target_name", C::kString},
        {"called_computations", C::kSymbols, A::kZero},
        {"has_side_effect", C::kBool, A::kZero},
        {"operand_layouts", C::kIndexTensors, A::kZero},
        {"output_operand_aliases", C::kAliases, A::kZero},
        {"result_layouts", C::kIndexTensors, A::kZero},
        {"result_tilings", C::kList, A::kZero, {}, {}, k1_18}},
       kMinimumVersion,
       {k1_18}});
  add({"stablehlo.dot", {kPrecision}});
  add({"stablehlo.dot_general", dot_general(), kMinimumVersion, {k1_6}});
  add({"stablehlo.gather", plus(gather_numbers(), {dims("slice_sizes")}), kMinimumVersion, {k1_1}});
  add({"stablehlo.dynamic_gather", gather_numbers(), kMinimumVersion, {k1_1}});
  constexpr std::string_view s = "scatter_dimension_numbers";
  add({"stablehlo.scatter",
       {field("update_window_dims", s),
        field("inserted_window_dims", s),
        since(field("input_batching_dims", s), k1_1),
        since(field("scatter_indices_batching_dims", s), k1_1),
        field("scatter_dims_to_operand_dims", s),
        int_field("index_vector_dim", s),
        kSorted,
        {"unique_indices", C::kBool, A::kZero}},
       kMinimumVersion,
       {k1_1},
       Limit::kNone,
       true});
  add({"stablehlo.dynamic_iota", {number("iota_dimension")}});
  add({"stablehlo.iota", {number("iota_dimension")}});
  add({"stablehlo.dynamic_slice", {dims("slice_sizes")}});
  add({"stablehlo.einsum", {{"einsum_config", C::kString}}});
  add({"stablehlo.unary_einsum", {{"einsum_config", C::kString}}});
  add({"stablehlo.fft", {dims("fft_length"), enumeration("fft_type", "fft_type")}});
  add({"stablehlo.get_dimension_size", {number("dimension")}});
  add({"stablehlo.set_dimension_size", {number("dimension")}});
  add({"stablehlo.get_tuple_element", {{"index", C::kInt32}}});
  add({"stablehlo.infeed",
       {{"infeed_config", C::kString, A::kZero}, {"layout", C::kList, A::kZero}}});
  add({"stablehlo.outfeed", {{"outfeed_config", C::kString, A::kZero}}});
  for (std::string_view op : {"stablehlo.send", "stablehlo.recv"})
    add({op,
         {{"channel_id", C::kChannelId, A::kRequired, "channel_handle"},
          {"channel_type", C::kChannelType, A::kRequired, "channel_handle"},
          {"is_host_transfer", C::kBool, A::kZero},
          {"source_target_pairs", C::kElements, A::kZero, {}, {}, k1_12}},
         kMinimumVersion,
         {k1_12}});
  add({"stablehlo.map", {dims("dimensions")}});
  add({"stablehlo.pad",
       {dims("edge_padding_high"), dims("edge_padding_low"), dims("interior_padding")}});
  add({"stablehlo.reduce", {dims("dimensions")}, kMinimumVersion, {}, Limit::kNone, true});
  add({"stablehlo.reduce_precision", {{"exponent_bits", C::kInt32}, {"mantissa_bits", C::kInt32}}});
  add({"stablehlo.reduce_window",
       {{"base_dilations", C::kDims, A::kOnes},
        {"padding", C::kElements, A::kZeros},
        {"window_dilations", C::kDims, A::kOnes},
        dims("window_dimensions"),
        {"window_strides", C::kDims, A::kOnes}},
       kMinimumVersion,
       {},
       Limit::kNone,
       true});
  add({"stablehlo.reverse", {dims("dimensions")}});
  add({"stablehlo.rng", {enumeration("rng_distribution", "rng_distribution")}});
  add({"stablehlo.rng_bit_generator", {enumeration("rng_algorithm", "rng_algorithm")}});
  add({"stablehlo.select_and_scatter",
       {{"padding", C::kElements, A::kZeros},
        {"window_dimensions", C::kDims, A::kKeptOnes},
        {"window_strides", C::kDims, A::kOnes}},
       kMinimumVersion,
       {},
       Limit::kNone,
       true});
  add({"stablehlo.slice", {dims("limit_indices"), dims("start_indices"), dims("strides")}});
  add({"stablehlo.sort",
       {{"dimension", C::kInt, A::kMinusOne}, {"is_stable", C::kBool, A::kZero}}});
  add({"stablehlo.torch_index_select", {number("batch_dims"), number("dim")}});
  add({"stablehlo.transpose", {dims("permutation")}});
  add({"stablehlo.triangular_solve",
       {{"left_side", C::kBool},
        {"lower", C::kBool},
        enumeration("transpose_a", "transpose"),
        {"unit_diagonal", C::kBool}}});

  for (OpForm& f : forms)
    std::sort(f.attrs.begin(), f.attrs.end(),
              [](const AttrForm& a, const AttrForm& b) { return a.name < b.name; });
  return forms;
}

struct Forms {
  std::vector<OpForm> all = make_forms();
  std::unordered_map<std::string_view, const OpForm*> by_op, by_vhlo;
  std::unordered_map<std::string_view, std::vector<PlainAttr>> plain;

  Forms() {
    for (const OpForm& f : all) {
      by_op.emplace(f.name, &f);
      by_vhlo.emplace(f.vhlo_name(), &f);
      std::vector<PlainAttr>& attrs = plain[f.name];
      for (const AttrForm& a : f.attrs) {
        std::string_view name = a.structure.empty() ? a.name : a.structure;
        bool known = a.coding == Coding::kDummyPadding;
        for (const PlainAttr& p : attrs) known = known || p.name == name;
        if (!known)
          attrs.push_back({name, a.absent != Absent::kRequired,
                           a.since > kMinimumVersion && a.absent != Absent::kRequired});
      }
      sort(attrs);
    }
    plain["func.func"] = {{"arg_attrs", true}, {"function_type"}, {"no_inline", true, true},
                          {"res_attrs", true}, {"sym_name"},      {"sym_visibility", true}};
    plain["func.call"] = {{"arg_attrs", true, true},
                          {"callee"},
                          {"no_inline", true, true},
                          {"res_attrs", true, true}};
    plain["func.return"] = {};
    plain["stablehlo.return"] = {};
    plain["builtin.module"] = {{"sym_name", true}, {"sym_visibility", true}};
    plain["builtin.unrealized_conversion_cast"] = {};
    plain["chlo.top_k"] = {{"k"}};
    plain["chlo.ragged_dot"] = {{"precision_config", true}, {"ragged_dot_dimension_numbers"}};
    plain["chlo.scan"] = {
        {"dimension"}, {"is_associative", true}, {"is_reverse", true}, {"scan_dim_size", true}};
    plain["chlo.constant"] = {{"value"}};
    plain["chlo.constant_like"] = {{"value"}};
    plain["chlo.broadcast_compare"] = {
        {"broadcast_dimensions", true}, {"compare_type", true}, {"comparison_direction"}};
    for (const OpDef* def : op_table())
      if (def->name.starts_with("chlo.")) {
        std::vector<PlainAttr> none;
        if (def->name.starts_with("chlo.broadcast_") && def->name != "chlo.broadcast_select")
          none = {{"broadcast_dimensions", true}};
        plain.try_emplace(def->name, std::move(none));
      }
    plain["sdy.mesh"] = {{"mesh"}, {"sym_name"}};
    plain["sdy.return"] = {};
    plain["sdy.sharding_constraint"] = {{"sharding"}};
    plain["sdy.reshard"] = {{"sharding"}};
    plain["sdy.data_flow_edge"] = {{"sharding", true}};
    plain["sdy.func_data_flow_edge"] = {};
    plain["sdy.all_gather"] = {{"gathering_axes"}, {"out_sharding"}};
    plain["sdy.all_slice"] = {{"out_sharding"}, {"slicing_axes"}};
    plain["sdy.all_to_all"] = {{"out_sharding"}, {"params"}};
    plain["sdy.collective_permute"] = {{"out_sharding"}};
    plain["sdy.all_reduce"] = {{"out_sharding"}, {"reduction_axes"}};
    plain["sdy.reduce_scatter"] = {{"out_sharding"}, {"reduce_scatter_axes"}};
    plain["sdy.replicated_to_unreduced"] = {{"axes"}, {"out_sharding"}};
    plain["sdy.sharded_to_unreduced"] = {{"axes"}, {"out_sharding"}};
    plain["sdy.sharding_group"] = {{"group_id"}};
    plain["sdy.propagation_barrier"] = {{"allowed_direction"}};
    plain["sdy.constant"] = {{"value"}};
    plain["sdy.manual_computation"] = {{"in_shardings"}, {"manual_axes"}, {"out_shardings"}};
    plain["sdy.named_computation"] = {{"in_shardings", true}, {"name"}, {"out_shardings", true}};
  }

  static void sort(std::vector<PlainAttr>& attrs) {
    std::sort(attrs.begin(), attrs.end(),
              [](const PlainAttr& a, const PlainAttr& b) { return a.name < b.name; });
  }
};

const Forms& forms() {
  static const Forms* kForms = new Forms;
  return *kForms;
}

template <class Map>
auto look_up(const Map& map, std::string_view name) {
  auto it = map.find(name);
  return it == map.end() ? nullptr : it->second;
}

}  // namespace

int OpForm::revision(Version v) const {
  int n = 1;
  for (Version r : revisions) n += r <= v;
  return n;
}

std::span<const OpForm> op_forms() { return forms().all; }
const OpForm* find_form(std::string_view op) { return look_up(forms().by_op, op); }
const OpForm* find_vhlo_form(std::string_view name) { return look_up(forms().by_vhlo, name); }

const std::vector<PlainAttr>* plain_attrs(std::string_view op) {
  auto it = forms().plain.find(op);
  return it == forms().plain.end() ? nullptr : &it->second;
}

bool is_composite_chlo(std::string_view op) {
  static constexpr std::string_view kKept[] = {
      "chlo.acos", "chlo.acosh", "chlo.asin", "chlo.asinh",      "chlo.atanh", "chlo.cosh",
      "chlo.erf",  "chlo.mulhi", "chlo.sinh", "chlo.ragged_dot", "chlo.scan",  "chlo.top_k"};
  return std::find(std::begin(kKept), std::end(kKept), op) != std::end(kKept);
}

}  // namespace xylem::ir::bytecode
