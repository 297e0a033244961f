// Random convolutions against the interpreter.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>

#include "xylem/base/error.h"
#include "xylem/compiler/testing/compare.h"
#include "xylem/ir/builder.h"
#include "xylem/ir/ops/convolution.h"
#include "xylem/ir/ops/movement.h"

namespace xylem::compiler {
namespace {

using ir::Attr;
using ir::Attrs;
using ir::Type;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most - least + 1));
  }
  bool often(int percent) { return between(1, 100) <= percent; }
  Dims list(std::size_t n, std::int64_t least, std::int64_t most) {
    Dims d;
    for (std::size_t i = 0; i < n; ++i) d.push_back(between(least, most));
    return d;
  }
  // Places of (first, second, spatial…) in an array.
  Dims order(std::size_t n) {
    Dims d(n + 2, 0);
    std::iota(d.begin(), d.end(), 0);
    for (std::size_t i = d.size(); i > 1; --i)
      std::swap(d[i - 1],
                d[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(i) - 1))]);
    return d;
  }

 private:
  std::mt19937_64 random_;
};

Dims from(const Dims& d, std::size_t first) {
  Dims out;
  for (std::size_t i = first; i < d.size(); ++i) out.push_back(d[i]);
  return out;
}

// (first, second, spatial…) at their places.
Dims placed(const Dims& order, std::int64_t first, std::int64_t second, const Dims& spatial) {
  Dims out(order.size(), 0);
  out[order[0]] = first;
  out[order[1]] = second;
  for (std::size_t i = 0; i < spatial.size(); ++i) out[order[i + 2]] = spatial[i];
  return out;
}

ir::GraphPtr random_convolution(std::uint64_t seed, DType* dtype) {
  Draw draw(seed);
  const DType dtypes[] = {DType::kF32, DType::kF32, DType::kF64, DType::kBF16,
                          DType::kI32, DType::kC64, DType::kI8,  DType::kF16};
  *dtype = dtypes[draw.between(0, 7)];
  const auto n = static_cast<std::size_t>(draw.between(0, 3));
  const std::int64_t groups = draw.often(20) ? draw.between(2, 3) : 1;
  const std::int64_t batch_groups = groups == 1 && draw.often(15) ? 2 : 1;
  const std::int64_t g = groups * batch_groups;
  const std::int64_t batch = draw.between(1, 4) * batch_groups;
  const std::int64_t inputs = draw.between(1, 6);
  const std::int64_t outputs = g * draw.between(1, draw.often(30) ? 40 : 9);
  const Dims window = draw.list(n, 1, draw.often(10) ? 30 : 4);
  const Dims stride = draw.list(n, 1, 3), lhs_dilation = draw.list(n, 1, draw.often(30) ? 3 : 1),
             rhs_dilation = draw.list(n, 1, draw.often(30) ? 3 : 1);
  Dims spatial, padding;
  for (std::size_t d = 0; d < n; ++d) {
    const std::int64_t low = draw.between(-1, 3), high = draw.between(-1, 3);
    padding.push_back(low);
    padding.push_back(high);
    const std::int64_t need = (window[d] - 1) * rhs_dilation[d] + 1 - low - high;
    std::int64_t size = std::max<std::int64_t>(3, (need - 1) / lhs_dilation[d] + 2);
    spatial.push_back(size + draw.between(0, n == 3 ? 3 : 9));
  }
  const Dims in = draw.order(n), kernel = draw.order(n), out = draw.order(n);
  Attrs attrs{
      {"input_batch_dimension", Attr(in[0])},
      {"input_feature_dimension", Attr(in[1])},
      {"input_spatial_dimensions", Attr(from(in, 2))},
      {"kernel_input_feature_dimension", Attr(kernel[0])},
      {"kernel_output_feature_dimension", Attr(kernel[1])},
      {"kernel_spatial_dimensions", Attr(from(kernel, 2))},
      {"output_batch_dimension", Attr(out[0])},
      {"output_feature_dimension", Attr(out[1])},
      {"output_spatial_dimensions", Attr(from(out, 2))},
      {"feature_group_count", Attr(groups)},
      {"batch_group_count", Attr(batch_groups)},
      {"window_strides", Attr(stride)},
      {"lhs_dilation", Attr(lhs_dilation)},
      {"rhs_dilation", Attr(rhs_dilation)},
      {"window_reversal", Attr(draw.list(n, 0, draw.often(30) ? 1 : 0))},
      {"padding", Attr(HostArray::from(std::vector<std::int64_t>(padding.begin(), padding.end()),
                                       {static_cast<std::int64_t>(n), 2}))}};
  if (is_integer(*dtype)) attrs.set("result_dtype", Attr(DType::kI32));
  ir::Builder b("convolution");
  ir::ValueId x = b.param(Type::tensor(*dtype, placed(in, batch, inputs * groups, spatial)));
  ir::ValueId w = b.param(Type::tensor(*dtype, placed(kernel, inputs, outputs, window)));
  // An operand that is seen through a transpose.
  if (draw.often(30)) {
    Dims reversed(n + 2, 0);
    std::iota(reversed.begin(), reversed.end(), 0);
    std::reverse(reversed.begin(), reversed.end());
    for (ir::ValueId* v : {&x, &w})
      for (int twice = 0; twice < 2; ++twice)
        *v = b.one(ir::ops::kTranspose, {*v}, Attrs{{"permutation", Attr(reversed)}});
  }
  return b.finish({b.one(ir::ops::kConvolution, {x, w}, std::move(attrs))});
}

// XYLEM_RANDOM_CONVOLUTIONS sets how many.
TEST(Convolution, RandomOnesGiveWhatTheInterpreterGives) {
  const char* count = std::getenv("XYLEM_RANDOM_CONVOLUTIONS");
  const int n = count ? std::atoi(count) : 60;
  for (int seed = 0; seed < n; ++seed) {
    DType dtype;
    const ir::GraphPtr graph = random_convolution(static_cast<std::uint64_t>(seed), &dtype);
    testing::Tolerance tolerance;
    if (!is_integer(dtype)) {
      tolerance.relative = dtype == DType::kF64 ? 1e-12 : dtype_bits(dtype) < 32 ? 0.02 : 2e-4;
      tolerance.absolute = 10 * tolerance.relative;  // sums of numbers up to 100 may cancel
    }
    const std::string difference = testing::compare(
        graph, testing::make_args(*graph, static_cast<std::uint64_t>(seed)), tolerance);
    ASSERT_EQ(difference, "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace xylem::compiler
