#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "xylem/core/array.h"
#include "xylem/core/lax.h"

// Convolutions of jax.lax. None of them turns the kernel round: they correlate, as JAX's do.
namespace xylem::lax {

using Pads = std::vector<std::pair<std::int64_t, std::int64_t>>;

// What stands around the operand of a window: "VALID" (nothing), "SAME" (as many windows as
// ceil(size / stride); an odd element goes behind), "SAME_LOWER" (in front), in upper or lower
// case, or what to add before and behind each dimension; negative numbers cut.
class Padding {
 public:
  Padding(const char* name) : name_(name) {}
  Padding(std::string_view name) : name_(name) {}
  Padding(Pads pads) : pads_(std::move(pads)) {}
  Padding(std::initializer_list<std::pair<std::int64_t, std::int64_t>> pads) : pads_(pads) {}

  // For windows of a size and stride over dimensions of a size. UserError naming `what` if the name
  // is unknown or the number of dimensions is another.
  Pads resolve(const Dims& sizes, const Dims& window, const Dims& strides, const char* what,
               SourceLoc where) const;
  // Empty where pads are given.
  std::string_view name() const { return name_; }
  const Pads& pads() const { return pads_; }

 private:
  std::string_view name_;
  Pads pads_;
};

// "SAME" and its kin in numbers (jax.lax.padtype_to_pads).
Pads padtype_to_pads(const Dims& in_shape, const Dims& window_shape, const Dims& window_strides,
                     std::string_view padding);

// Where the dimensions lie: batch, feature and space of lhs and result; output feature, input
// feature and space of the kernel. Empty: in this order.
struct ConvDimensionNumbers {
  Dims lhs_spec, rhs_spec, out_spec;
};
// From letters: N, C and others of lhs and result, O, I and the same others of the kernel, such as
// "NHWC", "HWIO", "NHWC".
ConvDimensionNumbers conv_dimension_numbers(std::string_view lhs, std::string_view rhs,
                                            std::string_view out,
                                            SourceLoc where = SourceLoc::current());

struct ConvOptions {
  Dims lhs_dilation = {}, rhs_dilation = {};  // 1 if empty
  ConvDimensionNumbers dimension_numbers = {};
  std::int64_t feature_group_count = 1, batch_group_count = 1;
  Precision precision = Precision::kDefault;
  std::optional<DType> preferred_element_type = std::nullopt;
};
// The general convolution: for every window p, feature o and batch n the sum over input features
// and window positions k of lhs[n, i, stride p + dilation k - low] rhs[o, i, k]. Operands have one
// dtype and rank.
Array conv_general_dilated(const ArrayArg& lhs, const ArrayArg& rhs, const Dims& window_strides,
                           const Padding& padding, const ConvOptions& options = {});
// [N, C, …] with [O, I, …].
Array conv(const ArrayArg& lhs, const ArrayArg& rhs, const Dims& window_strides,
           std::string_view padding);
Array conv_with_general_padding(const ArrayArg& lhs, const ArrayArg& rhs,
                                const Dims& window_strides, const Padding& padding,
                                const Dims& lhs_dilation = {}, const Dims& rhs_dilation = {});

struct ConvTransposeOptions {
  Dims rhs_dilation = {};
  // Channels last if empty: NHWC, HWIO, NHWC.
  ConvDimensionNumbers dimension_numbers = {};
  bool transpose_kernel = false;        // turns the kernel and swaps its features, as Keras does
  bool use_consistent_padding = false;  // pads are those of the forward convolution, as in PyTorch
  Precision precision = Precision::kDefault;
  std::optional<DType> preferred_element_type = std::nullopt;
};
// A convolution with holes between the elements of lhs: the gradient of one with these strides.
Array conv_transpose(const ArrayArg& lhs, const ArrayArg& rhs, const Dims& strides,
                     const Padding& padding, const ConvTransposeOptions& options = {});

struct ConvPatchesOptions {
  Dims lhs_dilation = {}, rhs_dilation = {};
  ConvDimensionNumbers dimension_numbers = {};
};
// The windows themselves: features of the result are (input feature, window position).
Array conv_general_dilated_patches(const ArrayArg& lhs, const Dims& filter_shape,
                                   const Dims& window_strides, const Padding& padding,
                                   const ConvPatchesOptions& options = {});
// A convolution with a kernel of its own for every window: rhs is [O, C · window, output space…] in
// the order of dimension_numbers.
Array conv_general_dilated_local(const ArrayArg& lhs, const ArrayArg& rhs,
                                 const Dims& window_strides, const Padding& padding,
                                 const Dims& filter_shape, const ConvPatchesOptions& options = {});

}  // namespace xylem::lax
