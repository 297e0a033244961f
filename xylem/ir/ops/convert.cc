#include "xylem/ir/ops/convert.h"

#include <fmt/format.h>

#include <cstring>

#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/internal/eval_util.h"
#include "xylem/ir/ops/internal/shape_util.h"

namespace xylem::ir::ops {
namespace {

DType result_dtype(const Attrs& attrs) { return *attrs.at("result_dtype").get<DType>(); }

std::vector<Type> convert_shape_rule(const OpCall& call) {
  const Type& x = tensor_operand(call, 0);
  DType to = result_dtype(call.attrs);
  if (!in_elements(to, kElAny))
    fail(call, "o1", "result_dtype must be a type with values",
         fmt::format("it is {}", dtype_name(to)), "Convert to a bool, number or complex type");
  return {x.with_dtype(to)};
}

std::vector<HostArray> convert_eval(const EvalCall& call) {
  DefaultFpEnvironment fp;
  return {call.operands[0].astype(call.result_types[0].dtype())};
}

std::vector<Type> bitcast_shape_rule(const OpCall& call) {
  const Type& x = tensor_operand(call, 0);
  DType to = result_dtype(call.attrs);
  if (x.dtype() == to) return {x};
  if (!in_elements(to, kElAny))
    fail(call, "i1", "the result must have bits",
         fmt::format("{} to {}", x.to_string(), dtype_name(to)),
         "Cast to a bool, number or complex type");
  if (is_complex(x.dtype()) != is_complex(to))
    fail(call, "c2", "complex types cast to complex types only",
         fmt::format("{} to {}", x.to_string(), dtype_name(to)), "Take real and imag apart first");
  int from_bits = dtype_bits(x.dtype()), to_bits = dtype_bits(to);
  int wide = std::max(from_bits, to_bits), narrow = std::min(from_bits, to_bits);
  Dims shape = x.dims();
  bool fits = wide % narrow == 0;
  if (to_bits < from_bits) {
    shape.push_back(wide / narrow);
  } else if (to_bits > from_bits) {
    fits = fits && !shape.empty() && size_fits(shape.back(), wide / narrow);
    if (fits) shape.pop_back();
  }
  if (!fits)
    fail(call, "c1",
         "the wider type must consist of a whole number of the narrower, which is the size of the "
         "last dimension of that side",
         fmt::format("{} to {} ({} to {} bits)", x.to_string(), dtype_name(to), from_bits, to_bits),
         "Reshape the operand so that its last dimension is the ratio of the widths");
  return {x.with_dims(shape).with_dtype(to)};
}

std::uint64_t low_mask(int bits) { return bits == 64 ? ~0ull : (1ull << bits) - 1; }

std::vector<HostArray> bitcast_eval(const EvalCall& call) {
  const HostArray& x = call.operands[0];
  const Type& t = call.result_types[0];
  HostArray out(t.dtype(), t.dims());
  int from = dtype_bits(x.dtype()), to = dtype_bits(t.dtype());
  if (from == to || (from >= 8 && to >= 8)) {
    std::memcpy(out.data(), x.data(), out.nbytes());
    return {std::move(out)};
  }
  // Types under 8 bits take a byte each in memory: pass through their dense bits. The other side
  // has at most 128 bits, of which only the low 64 are touched at a time.
  int unit = std::min(from, to);
  auto in_bytes = static_cast<std::size_t>(dtype_bytes(x.dtype()));
  auto out_bytes = static_cast<std::size_t>(dtype_bytes(t.dtype()));
  std::memset(out.data(), 0, out.nbytes());
  std::int64_t pieces = x.size() * (from / unit);
  for (std::int64_t k = 0; k < pieces; ++k) {
    std::int64_t src_bit = k % (from / unit) * unit, dst_bit = k % (to / unit) * unit;
    const std::byte* src = x.data() + static_cast<std::size_t>(k / (from / unit)) * in_bytes;
    std::byte* dst = out.data() + static_cast<std::size_t>(k / (to / unit)) * out_bytes;
    auto bits = std::to_integer<std::uint64_t>(src[src_bit / 8]) >> (src_bit % 8);
    if (src_bit % 8 + unit > 8)  // only units of 3 or 6 bits straddle bytes
      bits |= std::to_integer<std::uint64_t>(src[src_bit / 8 + 1]) << (8 - src_bit % 8);
    bits &= low_mask(unit);
    dst[dst_bit / 8] |= static_cast<std::byte>(bits << (dst_bit % 8));
    if (dst_bit % 8 + unit > 8)
      dst[dst_bit / 8 + 1] |= static_cast<std::byte>(bits >> (8 - dst_bit % 8));
  }
  return {std::move(out)};
}

DimMap bitcast_dims(const OpCall& call, std::span<const Type> results) {
  DimMap m;
  const Dims& a = call.operands[0].dims();
  const Dims& b = results[0].dims();
  Dims common = add_factors(m, a.size() < b.size() ? a : b, DimMap::FactorKind::kParallel);
  Dims longer = common;
  if (a.size() != b.size()) {
    longer.push_back(static_cast<std::int64_t>(m.factors.size()));
    m.factors.push_back({DimMap::FactorKind::kOpaque, std::max(a, b, [](auto& p, auto& q) {
                                                        return p.size() < q.size();
                                                      }).back()});
  }
  m.operands.push_back(a.size() > b.size() ? longer : common);
  m.results.push_back(b.size() > a.size() ? longer : common);
  return m;
}

std::vector<Type> reduce_precision_shape_rule(const OpCall& call) {
  const Type& x = tensor_operand(call, 0, kElFloat);
  std::int64_t exponent = call.attrs.i64("exponent_bits");
  std::int64_t mantissa = call.attrs.i64("mantissa_bits");
  if (exponent < 1)
    fail(call, "c2", "exponent_bits must be at least 1", fmt::format("it is {}", exponent),
         "Keep at least one bit");
  if (mantissa < 0)
    fail(call, "c3", "mantissa_bits must not be negative", fmt::format("it is {}", mantissa),
         "Give 0 or more");
  return {x};
}

// An IEEE format of e exponent and m mantissa bits, as bits in the low end of a word.
std::uint64_t reduce_precision_bits(std::uint64_t x, int e, int m, std::int64_t to_e,
                                    std::int64_t to_m) {
  std::uint64_t sign = 1ull << (e + m);
  std::uint64_t exponent_mask = ((1ull << e) - 1) << m;
  std::uint64_t original = x;
  if ((x & ~sign) > exponent_mask)  // NaN: infinite if there is no bit to say so
    return to_m > 0 ? x : (x & sign) | exponent_mask;
  if (to_m < m) {
    int drop = m - static_cast<int>(to_m);
    std::uint64_t last = x >> drop & 1;
    x += (1ull << (drop - 1)) - 1 + last;  // half to even; may carry into the exponent
    x &= ~((1ull << drop) - 1);
  }
  if (to_e < e) {
    std::uint64_t bias = (1ull << (e - 1)) - 1;
    std::uint64_t to_bias = (1ull << (to_e - 1)) - 1;
    std::uint64_t exponent = x & exponent_mask;
    if (exponent > (bias + to_bias) << m) return (original & sign) | exponent_mask;
    if (exponent <= (bias - to_bias) << m) return original & sign;
  }
  return x;
}

bool is_ieee(DType t) {
  switch (t) {
    case DType::kF8E3M4:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
    case DType::kBF16:
    case DType::kF16:
    case DType::kF32:
    case DType::kF64: return true;
    default: return false;
  }
}

std::vector<HostArray> reduce_precision_eval(const EvalCall& call) {
  DefaultFpEnvironment fp;
  DType own = call.operands[0].dtype();
  // Formats without infinities go through f32.
  HostArray x = is_ieee(own) ? call.operands[0].clone() : call.operands[0].astype(DType::kF32);
  const DTypeInfo& info = dtype_info(x.dtype());
  for (std::int64_t i = 0; i < x.size(); ++i) {
    std::uint64_t bits = 0;
    std::byte* at = x.data() + i * info.bytes;
    std::memcpy(&bits, at, info.bytes);
    bits = reduce_precision_bits(bits, info.exponent_bits, info.mantissa_bits,
                                 call.op.attrs.i64("exponent_bits"),
                                 call.op.attrs.i64("mantissa_bits"));
    std::memcpy(at, &bits, info.bytes);
  }
  return {x.astype(own)};
}

}  // namespace

const OpDef kConvert = {.name = "stablehlo.convert",
                        .traits = kPointwise | kExact,
                        .min_operands = 1,
                        .max_operands = 1,
                        .attrs = {{"result_dtype", AttrKind::kDType}},
                        .shape = convert_shape_rule,
                        .eval = convert_eval,
                        .labels = "convert_i1 convert_o1",
                        .result_labels = "o1 c1"};
const OpDef kBitcastConvert = {.name = "stablehlo.bitcast_convert",
                               .traits = kExact,
                               .min_operands = 1,
                               .max_operands = 1,
                               .attrs = {{"result_dtype", AttrKind::kDType}},
                               .shape = bitcast_shape_rule,
                               .eval = bitcast_eval,
                               .dims = bitcast_dims,
                               .labels = "bitcast_convert_i1 bitcast_convert_c1 bitcast_convert_c2",
                               .quant = QuantSupport::kPerAxis,
                               .result_labels = "c1"};
const OpDef kReducePrecision = {
    .name = "stablehlo.reduce_precision",
    .traits = kPointwise | kExact | kIdempotent,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {{"exponent_bits", AttrKind::kInt}, {"mantissa_bits", AttrKind::kInt}},
    .shape = reduce_precision_shape_rule,
    .eval = reduce_precision_eval,
    .labels = "reduce_precision_i1 reduce_precision_c2 reduce_precision_c3",
    .quant = QuantSupport::kPerTensor,
    .result_labels = "c1"};

Family convert_family() {
  static const OpDef* const kOps[] = {&kConvert, &kBitcastConvert, &kReducePrecision};
  return kOps;
}

}  // namespace xylem::ir::ops
