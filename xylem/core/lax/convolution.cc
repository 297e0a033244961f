#include "xylem/core/convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "xylem/base/error.h"
#include "xylem/core/internal/trace.h"
#include "xylem/core/lax.h"
#include "xylem/core/lax/precision.h"
#include "xylem/core/numpy.h"
#include "xylem/core/numpy/ops.h"
#include "xylem/ir/ops/all.h"
#include "xylem/ir/ops/convolution.h"

namespace xylem::lax {

using ir::Attr;
using ir::Attrs;
namespace ops = ir::ops;

namespace {

[[noreturn]] void fail(const char* what, std::string expected, std::string given,
                       const char* advice, SourceLoc where) {
  throw UserError(ErrorParts{what, expected, given, advice}, internal::CallSite::outermost(where));
}

std::string upper(std::string_view s) {
  std::string r(s);
  for (char& c : r) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  return r;
}

std::int64_t dilated(std::int64_t n, std::int64_t dilation) {
  return n == 0 ? 0 : (n - 1) * dilation + 1;
}

Dims iota_dims(int n) {
  Dims r;
  for (int d = 0; d < n; ++d) r.push_back(d);
  return r;
}

Dims tail(const Dims& d) {
  Dims r;
  for (std::size_t i = 2; i < d.size(); ++i) r.push_back(d[i]);
  return r;
}

Dims sizes_at(const Array& x, const Dims& dims) {
  Dims r;
  for (std::int64_t d : dims) r.push_back(x.shape()[d]);
  return r;
}

Dims or_ones(const Dims& d, std::size_t n) { return d.empty() ? Dims(n, 1) : d; }

// The numbers with defaults for empty ones; each must name all dimensions once.
ConvDimensionNumbers complete(ConvDimensionNumbers n, int rank, const char* what, SourceLoc where) {
  for (Dims* d : {&n.lhs_spec, &n.rhs_spec, &n.out_spec}) {
    if (d->empty()) *d = iota_dims(rank);
    Dims sorted = *d;
    std::sort(sorted.begin(), sorted.end());
    if (sorted != iota_dims(rank))
      fail(what, fmt::format("dimension numbers must name each of {} dimensions once", rank),
           to_string(*d), "Make them with conv_dimension_numbers(\"NHWC\", \"HWIO\", \"NHWC\")",
           where);
  }
  return n;
}

void check_operands(const char* what, const Array& lhs, const Array& rhs, std::size_t strides,
                    SourceLoc where) {
  if (lhs.ndim() < 2 || lhs.ndim() != rhs.ndim() ||
      strides + 2 != static_cast<std::size_t>(lhs.ndim()))
    fail(what, "operands of one rank of at least 2, and a stride for each dimension of space",
         fmt::format("{}, {} and {} strides", lhs.type_string(), rhs.type_string(), strides),
         "Add dimensions of size 1 for batch and features", where);
  if (lhs.dtype() != rhs.dtype())
    fail(what, "operands of one dtype",
         fmt::format("{} and {}", lhs.type_string(), rhs.type_string()),
         "Convert one of them with astype", where);
}

void check_positive(const char* what, const char* name, const Dims& d, std::size_t n,
                    SourceLoc where) {
  bool fine = d.size() == n;
  for (std::int64_t v : d) fine = fine && v > 0;
  if (!fine)
    fail(what, fmt::format("{} must be {} positive numbers", name, n), to_string(d),
         "Use 1 where nothing changes", where);
}

Attr pads_attr(const Pads& pads) {
  std::vector<std::int64_t> v;
  for (auto [low, high] : pads) {
    v.push_back(low);
    v.push_back(high);
  }
  return Attr(HostArray::from(v, {static_cast<std::int64_t>(pads.size()), 2}));
}

}  // namespace

Pads Padding::resolve(const Dims& sizes, const Dims& window, const Dims& strides, const char* what,
                      SourceLoc where) const {
  if (name_.empty()) {
    if (pads_.size() != sizes.size())
      fail(what, fmt::format("a pair of pads for each of {} dimensions", sizes.size()),
           fmt::format("{} pairs", pads_.size()), "Give (before, behind) for each", where);
    return pads_;
  }
  std::string name = upper(name_);
  if (name != "VALID" && name != "SAME" && name != "SAME_LOWER")
    fail(what, "padding is \"VALID\", \"SAME\" or \"SAME_LOWER\", or pairs of numbers",
         fmt::format("\"{}\"", name_), "Use one of these", where);
  Pads r;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    std::int64_t total = 0;
    if (name != "VALID") {
      std::int64_t windows = (sizes[d] + strides[d] - 1) / strides[d];
      total = std::max<std::int64_t>(0, (windows - 1) * strides[d] + window[d] - sizes[d]);
    }
    std::int64_t less = total / 2, more = total - less;
    r.push_back(name == "SAME_LOWER" ? std::pair{more, less} : std::pair{less, more});
  }
  return r;
}

Pads padtype_to_pads(const Dims& in_shape, const Dims& window_shape, const Dims& window_strides,
                     std::string_view padding) {
  if (window_shape.size() != in_shape.size() || window_strides.size() != in_shape.size())
    fail("padtype_to_pads", "a window size and a stride for each dimension",
         fmt::format("{}, {} and {}", in_shape.size(), window_shape.size(), window_strides.size()),
         "Give lists of one length", SourceLoc{});
  check_positive("padtype_to_pads", "strides", window_strides, in_shape.size(), {});
  return Padding(padding).resolve(in_shape, window_shape, window_strides, "padtype_to_pads", {});
}

ConvDimensionNumbers conv_dimension_numbers(std::string_view lhs, std::string_view rhs,
                                            std::string_view out, SourceLoc where) {
  auto positions = [&](std::string_view s, char first, char second, std::string_view space) {
    Dims r;
    auto add = [&](char c) {
      if (std::count(s.begin(), s.end(), c) != 1 || s.size() != lhs.size())
        fail("conv_dimension_numbers",
             fmt::format("'{}' once, and as many letters as the first layout has", c),
             fmt::format("\"{}\" beside \"{}\"", s, lhs),
             "Write N and C, or O and I, and the same letters for space in each", where);
      r.push_back(static_cast<std::int64_t>(s.find(c)));
    };
    add(first);
    add(second);
    for (char c : space) add(c);
    return r;
  };
  // The kernel's order of letters is that of space.
  std::string space;
  for (char c : rhs)
    if (c != 'O' && c != 'I') space += c;
  return {positions(lhs, 'N', 'C', space), positions(rhs, 'O', 'I', space),
          positions(out, 'N', 'C', space)};
}

Array conv_general_dilated(const ArrayArg& lhs, const ArrayArg& rhs, const Dims& window_strides,
                           const Padding& padding, const ConvOptions& o) {
  constexpr const char* kWhat = "conv_general_dilated";
  const Array &x = lhs.array, &k = rhs.array;
  check_operands(kWhat, x, k, window_strides.size(), lhs.where);
  std::size_t n = window_strides.size();
  Dims lhs_dilation = or_ones(o.lhs_dilation, n), rhs_dilation = or_ones(o.rhs_dilation, n);
  check_positive(kWhat, "window_strides", window_strides, n, lhs.where);
  check_positive(kWhat, "lhs_dilation", lhs_dilation, n, lhs.where);
  check_positive(kWhat, "rhs_dilation", rhs_dilation, n, lhs.where);
  ConvDimensionNumbers dn = complete(o.dimension_numbers, x.ndim(), kWhat, lhs.where);
  Dims window = sizes_at(k, tail(dn.rhs_spec)), sizes = sizes_at(x, tail(dn.lhs_spec));
  for (std::size_t d = 0; d < n; ++d) {
    window[d] = dilated(window[d], rhs_dilation[d]);
    if (!padding.name().empty() && lhs_dilation[d] != 1 && upper(padding.name()) != "VALID")
      fail(kWhat, "pads in numbers where lhs is dilated", fmt::format("\"{}\"", padding.name()),
           "Give pairs, or use conv_transpose", lhs.where);
  }
  Attrs a{{"input_batch_dimension", Attr(dn.lhs_spec[0])},
          {"input_feature_dimension", Attr(dn.lhs_spec[1])},
          {"input_spatial_dimensions", Attr(tail(dn.lhs_spec))},
          {"kernel_output_feature_dimension", Attr(dn.rhs_spec[0])},
          {"kernel_input_feature_dimension", Attr(dn.rhs_spec[1])},
          {"kernel_spatial_dimensions", Attr(tail(dn.rhs_spec))},
          {"output_batch_dimension", Attr(dn.out_spec[0])},
          {"output_feature_dimension", Attr(dn.out_spec[1])},
          {"output_spatial_dimensions", Attr(tail(dn.out_spec))},
          {"window_strides", Attr(window_strides)},
          {"padding", pads_attr(padding.resolve(sizes, window, window_strides, kWhat, lhs.where))},
          {"lhs_dilation", Attr(lhs_dilation)},
          {"rhs_dilation", Attr(rhs_dilation)},
          {"feature_group_count", Attr(o.feature_group_count)},
          {"batch_group_count", Attr(o.batch_group_count)}};
  internal::set_precision(a, o.precision);
  if (o.preferred_element_type) a.set("result_dtype", Attr(*o.preferred_element_type));
  Array operands[2] = {x, k};
  return internal::apply_one(ops::kConvolution, operands, std::move(a), lhs.where);
}

Array conv(const ArrayArg& lhs, const ArrayArg& rhs, const Dims& window_strides,
           std::string_view padding) {
  return conv_general_dilated(lhs, rhs, window_strides, padding);
}

Array conv_with_general_padding(const ArrayArg& lhs, const ArrayArg& rhs,
                                const Dims& window_strides, const Padding& padding,
                                const Dims& lhs_dilation, const Dims& rhs_dilation) {
  return conv_general_dilated(lhs, rhs, window_strides, padding,
                              {.lhs_dilation = lhs_dilation, .rhs_dilation = rhs_dilation});
}

namespace {

// Pads of the transposed convolution for those of the forward one, by Keras' conventions for names.
std::pair<std::int64_t, std::int64_t> transposed_pads(std::int64_t k, std::int64_t s,
                                                      std::string_view name) {
  std::int64_t before = k - 1, total = 0;
  if (name == "SAME") {
    total = k + s - 2;
    if (s <= k - 1) before = (total + 1) / 2;
  } else {
    total = k + s - 2 + std::max<std::int64_t>(k - s, 0);
  }
  return {before, total - before};
}

}  // namespace

Array conv_transpose(const ArrayArg& lhs, const ArrayArg& rhs, const Dims& strides,
                     const Padding& padding, const ConvTransposeOptions& o) {
  constexpr const char* kWhat = "conv_transpose";
  internal::CallSite site(lhs.where);
  check_operands(kWhat, lhs.array, rhs.array, strides.size(), lhs.where);
  std::size_t n = strides.size();
  check_positive(kWhat, "strides", strides, n, lhs.where);
  ConvDimensionNumbers dn = o.dimension_numbers;
  if (dn.lhs_spec.empty() && dn.rhs_spec.empty() && dn.out_spec.empty()) {
    int r = lhs.array.ndim();
    dn.lhs_spec = {0, r - 1};
    dn.rhs_spec = {r - 1, r - 2};
    for (int d = 0; d < r - 2; ++d) {
      dn.lhs_spec.push_back(d + 1);
      dn.rhs_spec.push_back(d);
    }
    dn.out_spec = dn.lhs_spec;
  }
  dn = complete(dn, lhs.array.ndim(), kWhat, lhs.where);
  Dims dilation = or_ones(o.rhs_dilation, n);
  check_positive(kWhat, "rhs_dilation", dilation, n, lhs.where);
  Dims window = sizes_at(rhs.array, tail(dn.rhs_spec));
  std::string name = upper(padding.name());
  Pads pads = padding.pads();
  if (name == "SAME" || name == "VALID") {
    pads.clear();
    for (std::size_t d = 0; d < n; ++d)
      pads.push_back(transposed_pads(dilated(window[d], dilation[d]), strides[d], name));
  } else if (!name.empty()) {
    fail(kWhat, "padding is \"SAME\" or \"VALID\", or pairs of numbers",
         fmt::format("\"{}\"", padding.name()), "Use one of these", lhs.where);
  } else if (o.use_consistent_padding) {
    if (pads.size() != n)
      fail(kWhat, fmt::format("a pair of pads for each of {} dimensions", n),
           fmt::format("{} pairs", pads.size()), "Give (before, behind) for each", lhs.where);
    for (std::size_t d = 0; d < n; ++d) {
      std::int64_t k = dilated(window[d], dilation[d]);
      pads[d] = {k - pads[d].first - 1, k - pads[d].second - 1};
    }
  }
  Array kernel = rhs.array;
  if (o.transpose_kernel) {
    std::vector<int> turned;
    for (std::int64_t d : tail(dn.rhs_spec)) turned.push_back(static_cast<int>(d));
    if (!turned.empty()) kernel = flip(kernel, turned);
    kernel = swapaxes(kernel, static_cast<int>(dn.rhs_spec[0]), static_cast<int>(dn.rhs_spec[1]));
  }
  return conv_general_dilated(lhs, kernel, Dims(n, 1), pads,
                              {.lhs_dilation = strides,
                               .rhs_dilation = dilation,
                               .dimension_numbers = dn,
                               .precision = o.precision,
                               .preferred_element_type = o.preferred_element_type});
}

Array conv_general_dilated_patches(const ArrayArg& lhs, const Dims& filter_shape,
                                   const Dims& window_strides, const Padding& padding,
                                   const ConvPatchesOptions& o) {
  constexpr const char* kWhat = "conv_general_dilated_patches";
  internal::CallSite site(lhs.where);
  const Array& x = lhs.array;
  if (filter_shape.size() + 2 != static_cast<std::size_t>(x.ndim()))
    fail(kWhat, fmt::format("a window of {} dimensions", x.ndim() - 2), to_string(filter_shape),
         "Give a size for each dimension of space", lhs.where);
  ConvDimensionNumbers dn = complete(o.dimension_numbers, x.ndim(), kWhat, lhs.where);
  // A kernel that picks each position: [C · window, 1, window].
  std::int64_t channels = x.shape()[dn.lhs_spec[1]], size = num_elements(filter_shape);
  Dims shape{size, 1};
  for (std::int64_t d : filter_shape) shape.push_back(d);
  Dims repeats(shape.size(), 1);
  repeats[0] = channels;
  Array picks = tile(eye(size, -1, 0, x.dtype()).reshape(shape), repeats);
  Dims perm(shape.size(), 0);
  for (std::size_t d = 0; d < shape.size(); ++d)
    perm[dn.rhs_spec[d]] = static_cast<std::int64_t>(d);
  return conv_general_dilated(lhs, transpose(picks, perm), window_strides, padding,
                              {.lhs_dilation = o.lhs_dilation,
                               .rhs_dilation = o.rhs_dilation,
                               .dimension_numbers = dn,
                               .feature_group_count = channels});
}

Array conv_general_dilated_local(const ArrayArg& lhs, const ArrayArg& rhs,
                                 const Dims& window_strides, const Padding& padding,
                                 const Dims& filter_shape, const ConvPatchesOptions& o) {
  constexpr const char* kWhat = "conv_general_dilated_local";
  internal::CallSite site(lhs.where);
  ConvDimensionNumbers dn = complete(o.dimension_numbers, lhs.array.ndim(), kWhat, lhs.where);
  Array patches = conv_general_dilated_patches(lhs, filter_shape, window_strides, padding, o);
  if (rhs.array.ndim() != lhs.array.ndim())
    fail(kWhat, "a kernel of the operand's rank", rhs.array.type_string(),
         "Its dimensions are output features, C · window and the output's space", lhs.where);
  Dims space_out = tail(dn.out_spec), space_rhs = tail(dn.rhs_spec);
  // Batch over space; contract features. The result is [space…, N, O].
  Dims lhs_batch = space_out, rhs_batch = space_rhs;
  Array y = dot_general(patches, rhs, {dn.out_spec[1]}, {dn.rhs_spec[1]}, lhs_batch, rhs_batch);
  Dims perm(static_cast<std::size_t>(y.ndim()), 0);
  auto n = static_cast<std::int64_t>(space_out.size());
  perm[dn.out_spec[0]] = n;
  perm[dn.out_spec[1]] = n + 1;
  for (std::int64_t d = 0; d < n; ++d) perm[space_out[d]] = d;
  return transpose(y, perm);
}

}  // namespace xylem::lax
