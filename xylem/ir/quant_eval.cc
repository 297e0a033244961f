#include <algorithm>
#include <cmath>

#include "xylem/base/dtype_cast.h"
#include "xylem/base/error.h"
#include "xylem/base/fp_environment.h"
#include "xylem/ir/ops/internal/eval_util.h"
#include "xylem/ir/quant.h"

// Evaluation on quantised tensors. All float work is in f32, scales are rounded to f32, and a
// stored value is clamped before it is rounded: in this order results agree to the last unit with
// StableHLO's reference.

namespace xylem::ir {
namespace {

using ops::load_all;
using ops::store;

// Which slice an element belongs to.
class Slices {
 public:
  explicit Slices(const Type& t, const Dims& dims) : q_(*t.quant()) {
    if (q_.axis < 0) return;
    inner_ = row_major_strides(dims)[q_.axis];
    size_ = dims[q_.axis];
  }
  std::size_t of(std::int64_t flat) const {
    return q_.axis < 0 ? 0 : static_cast<std::size_t>(flat / inner_ % size_);
  }
  float scale(std::int64_t flat) const { return static_cast<float>(q_.scales[of(flat)]); }
  std::int64_t zero(std::int64_t flat) const { return q_.zero_points[of(flat)]; }

 private:
  const QuantParams& q_;
  std::int64_t inner_ = 1, size_ = 1;
};

std::int64_t clamp_round(float v, const QuantParams& q, bool clamp) {
  if (clamp) {
    auto [low, high] = storage_range(q);
    v = std::min(std::max(v, static_cast<float>(low)), static_cast<float>(high));
  }
  v = std::nearbyint(v);
  // f32 has no 2^31 - 1: the conversion saturates.
  if (std::isnan(v)) return 0;
  auto [low, high] = storage_range(q);
  if (!clamp) {
    low = INT32_MIN;
    high = INT32_MAX;
  }
  return std::clamp(static_cast<std::int64_t>(std::clamp(v, -4e9f, 4e9f)), low, high);
}

// Stored values of one quantised type in another.
std::vector<std::int64_t> requantise(const std::vector<std::int64_t>& in, const Type& from,
                                     const Type& to, const Dims& dims) {
  if (*from.quant() == *to.quant()) return in;
  Slices a(from, dims), b(to, dims);
  bool clamp = dtype_bits(to.quant()->storage) != 32;
  std::vector<std::int64_t> out(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    auto at = static_cast<std::int64_t>(i);
    auto m = static_cast<float>(from.quant()->scales[a.of(at)] / to.quant()->scales[b.of(at)]);
    float z = static_cast<float>(b.zero(at)) - static_cast<float>(a.zero(at)) * m;
    out[i] = clamp_round(static_cast<float>(in[i]) * m + z, *to.quant(), clamp);
  }
  return out;
}

HostArray stored(const std::vector<std::int64_t>& values, const Type& t, const Dims& dims) {
  HostArray out(t.quant()->storage, dims);
  store(out, 0, out.size(), values.data());
  return out;
}

HostArray add(const EvalCall& call) {
  const Type& r = call.result_types[0];
  const Dims& dims = call.operands[0].dims();
  auto part = [&](std::size_t i) {
    return requantise(load_all<std::int64_t>(call.operands[i]), call.operand_types[i], r, dims);
  };
  std::vector<std::int64_t> a = part(0), b = part(1);
  Slices slices(r, dims);
  auto [low, high] = storage_range(*r.quant());
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::int64_t sum = a[i] + b[i] - slices.zero(static_cast<std::int64_t>(i));
    a[i] = dtype_bits(r.quant()->storage) == 32
               ? static_cast<std::int32_t>(static_cast<std::uint32_t>(sum))
               : std::clamp(sum, low, high);
  }
  return stored(a, r, dims);
}

// Products and sums of stored values less their zero points, in 32 bits, requantised at the end.
HostArray contract(const EvalCall& call) {
  const Type &lhs = call.operand_types[0], &rhs = call.operand_types[1];
  const Type& result = call.result_types[0];
  auto centred = [&](std::size_t i) {
    std::vector<std::int64_t> v = load_all<std::int64_t>(call.operands[i]);
    Slices slices(call.operand_types[i], call.operands[i].dims());
    for (std::size_t k = 0; k < v.size(); ++k) v[k] -= slices.zero(static_cast<std::int64_t>(k));
    HostArray a(DType::kI32, call.operands[i].dims());
    store(a, 0, a.size(), v.data());
    return a;
  };
  std::vector<HostArray> args{centred(0), centred(1)};
  args.insert(args.end(), call.operands.begin() + 2, call.operands.end());
  Type sum_type = without_quant(result).with_dtype(DType::kI32);
  HostArray sums =
      call.op.def->eval({call.op, args, std::span<const Type>(&sum_type, 1), call.regions, {}})[0];
  std::vector<std::int64_t> acc = load_all<std::int64_t>(sums.to_contiguous());
  Slices out(result, sums.dims());
  const QuantParams& w = *rhs.quant();
  // Along the result, slices of rhs follow the axis that its own axis became.
  std::int64_t inner = 1, count = 1;
  if (w.axis >= 0) {
    int axis = result.quant()->axis;
    if (axis < 0) {
      std::int64_t feature = call.op.attrs.i64_or("output_feature_dimension", -1);
      axis = feature >= 0 ? static_cast<int>(feature) : sums.rank() - 1;
    }
    inner = row_major_strides(sums.dims())[axis];
    count = sums.dims()[axis];
  }
  bool clamp = dtype_bits(result.quant()->storage) != 32;
  for (std::size_t i = 0; i < acc.size(); ++i) {
    auto at = static_cast<std::int64_t>(i);
    std::size_t slice = w.axis < 0 ? 0 : static_cast<std::size_t>(at / inner % count);
    auto m = static_cast<float>(lhs.quant()->scales[0] * w.scales[slice] /
                                result.quant()->scales[out.of(at)]);
    float v = static_cast<float>(acc[i]) * m + static_cast<float>(out.zero(at));
    acc[i] = clamp_round(v, *result.quant(), clamp);
  }
  return stored(acc, result, sums.dims());
}

// Ops beyond movements that pass stored values through.
bool keeps_storage(const EvalCall& call) {
  static constexpr std::string_view kNames[] = {"stablehlo.constant",
                                                "stablehlo.optimization_barrier",
                                                "stablehlo.tuple",
                                                "stablehlo.get_tuple_element",
                                                "stablehlo.custom_call",
                                                "stablehlo.all_gather",
                                                "stablehlo.all_to_all",
                                                "stablehlo.collective_permute",
                                                "stablehlo.collective_broadcast",
                                                "stablehlo.get_dimension_size",
                                                "stablehlo.set_dimension_size",
                                                "stablehlo.bitcast_convert",
                                                "stablehlo.outfeed",
                                                "stablehlo.infeed",
                                                "stablehlo.send",
                                                "stablehlo.recv"};
  const OpDef& def = *call.op.def;
  return def.is(kStructural) || def.is(kControlFlow) || !call.op.regions.empty() ||
         !(def.name.starts_with("stablehlo.") || def.name.starts_with("chlo.")) ||
         std::find(std::begin(kNames), std::end(kNames), def.name) != std::end(kNames);
}

}  // namespace

HostArray dequantise(const HostArray& a, const Type& type) {
  DefaultFpEnvironment fp;
  std::vector<std::int64_t> in = load_all<std::int64_t>(a);
  std::vector<double> out(in.size());
  Slices slices(type, a.dims());
  for (std::size_t i = 0; i < in.size(); ++i) {
    auto at = static_cast<std::int64_t>(i);
    out[i] = static_cast<float>(in[i] - slices.zero(at)) * slices.scale(at);
  }
  HostArray result(type.dtype(), a.dims());
  store(result, 0, result.size(), out.data());
  return result;
}

HostArray quantise(const HostArray& real, const Type& type) {
  DefaultFpEnvironment fp;
  std::vector<double> in = load_all<double>(real);
  std::vector<std::int64_t> out(in.size());
  Slices slices(type, real.dims());
  for (std::size_t i = 0; i < in.size(); ++i) {
    auto at = static_cast<std::int64_t>(i);
    float v = static_cast<float>(in[i]) / slices.scale(at) + static_cast<float>(slices.zero(at));
    out[i] = clamp_round(v, *type.quant(), true);
  }
  return stored(out, type, real.dims());
}

std::vector<HostArray> evaluate_quantised(const EvalCall& call) {
  DefaultFpEnvironment fp;
  const OpDef& def = *call.op.def;
  std::vector<Type> storage;
  if (keeps_storage(call)) {
    for (const Type& t : call.result_types) storage.push_back(storage_type(t));
    return def.eval({call.op, call.operands, storage, call.regions, call.operand_types});
  }
  const Type& x = call.operand_types[0];
  if (def.name == "stablehlo.uniform_quantize") {
    if (!x.quant()) return {quantise(call.operands[0], call.result_types[0])};
    std::vector<std::int64_t> v = load_all<std::int64_t>(call.operands[0]);
    return {stored(requantise(v, x, call.result_types[0], call.operands[0].dims()),
                   call.result_types[0], call.operands[0].dims())};
  }
  if (def.name == "stablehlo.add") return {add(call)};
  bool contraction = def.name == "stablehlo.dot_general" || def.name == "stablehlo.dot" ||
                     def.name == "stablehlo.convolution" || def.name == "stablehlo.dynamic_conv";
  if (contraction && x.quant() && call.result_types[0].quant()) return {contract(call)};
  std::vector<HostArray> args;
  for (std::size_t i = 0; i < call.operands.size(); ++i)
    args.push_back(i < call.operand_types.size() && call.operand_types[i].quant()
                       ? dequantise(call.operands[i], call.operand_types[i])
                       : call.operands[i]);
  // The rule of uniform_dequantize takes no more than the dequantised values.
  for (const Type& t : call.result_types) storage.push_back(without_quant(t));
  std::vector<HostArray> results = def.eval({call.op, args, storage, call.regions, {}});
  for (std::size_t i = 0; i < results.size(); ++i)
    if (call.result_types[i].quant())
      results[i] = quantise(results[i].to_contiguous(), call.result_types[i]);
  return results;
}

}  // namespace xylem::ir
