#include "xylem/nn/functional.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "xylem/base/error.h"
#include "xylem/core/literal.h"
#include "xylem/core/special.h"
#include "xylem/core/transforms.h"

namespace xylem::nn {

Array relu(const ArrayArg& x) {
  // What is selected elsewhere has no derivative, so the derivative at 0 is 0. NaN stays.
  return where(greater(x, 0), x, stop_gradient(maximum(x, 0)));
}

Array gelu(const ArrayArg& x, bool approximate) {
  Array a = is_inexact(x.array.dtype()) ? x.array : x.array.astype(DType::kF32);
  if (!approximate) return 0.5 * a * special::erfc(-a * std::sqrt(0.5));
  Array inner = std::sqrt(2.0 / M_PI) * (a + 0.044715 * pow(a, 3));
  return a * (0.5 * (1.0 + tanh(inner)));
}

Array sigmoid(const ArrayArg& x) { return special::expit(x); }
Array silu(const ArrayArg& x) { return multiply(x, sigmoid(x)); }
Array softplus(const ArrayArg& x) { return logaddexp(x, 0.0); }
Array log_sigmoid(const ArrayArg& x) { return -softplus(-x.array); }

Array elu(const ArrayArg& x, double alpha) {
  Array positive = greater(x, 0);
  Array safe = where(positive, 0.0, x);
  return where(positive, x, alpha * expm1(safe));
}

Array leaky_relu(const ArrayArg& x, double negative_slope) {
  return where(greater_equal(x, 0), x, multiply(negative_slope, x));
}

Array softmax(const ArrayArg& x, int axis) {
  if (x.array.size() == 0) return exp(x);
  Array m = stop_gradient(max(x, axis, true));
  Array e = exp(subtract(x, m));
  return e / sum(e, axis, true);
}

Array log_softmax(const ArrayArg& x, int axis) {
  if (x.array.size() == 0) return exp(x);
  Array shifted = subtract(x, stop_gradient(max(x, axis, true)));
  return shifted - log(sum(exp(shifted), axis, true));
}

Array one_hot(const ArrayArg& x, std::int64_t num_classes, DType dtype) {
  Array classes = arange(num_classes).astype(x.array.dtype());
  return equal(expand_dims(x, -1), classes).astype(dtype);
}

Array dot_product_attention(const ArrayArg& query, const ArrayArg& key, const ArrayArg& value,
                            const AttentionOptions& options) {
  const Array &q = query.array, &k = key.array, &v = value.array;
  if (q.ndim() != 4 || k.ndim() != 4 || v.ndim() != 4 || k.dim(2) != v.dim(2) ||
      q.dim(3) != k.dim(3) || k.dim(1) != v.dim(1) || q.dim(2) % k.dim(2) != 0)
    throw UserError(
        ErrorParts{"dot_product_attention",
                   "query [B, T, H, K], key and value [B, S, G, K] with G dividing H are needed",
                   fmt::format("query {}, key {}, value {}", q.type_string(), k.type_string(),
                               v.type_string()),
                   "Reshape the heads into axis 2"},
        query.where);
  std::int64_t B = q.dim(0), T = q.dim(1), H = q.dim(2), K = q.dim(3), S = k.dim(1), G = k.dim(2);
  double scale = options.scale >= 0 ? options.scale : 1.0 / std::sqrt(static_cast<double>(K));
  Array keys = k, values = v;
  if (G != H) {
    keys = repeat(k, H / G, 2);
    values = repeat(v, H / G, 2);
  }
  DType wide = q.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  Array logits = einsum("bthk,bshk->bhts", {q, keys}).astype(wide) * scale;
  double masked =
      -0.7 * (wide == DType::kF64 ? std::numeric_limits<double>::max()
                                  : static_cast<double>(std::numeric_limits<float>::max()));
  if (options.is_causal) {
    Array may = greater_equal(expand_dims(arange(T), 1), arange(S));
    logits = where(may, logits, masked);
  }
  if (options.mask.defined()) logits = where(options.mask, logits, masked);
  Array p = softmax(logits, -1).astype(k.dtype());
  (void)B;
  return einsum("bhts,bshk->bthk", {p, values}).astype(q.dtype());
}

namespace {

// Angles grow with the position: they are formed in f64, and only their sines are rounded.
std::vector<double> rotary_rates(std::int64_t channels, double max_timescale) {
  std::vector<double> rates;
  for (std::int64_t i = 0; i < channels / 2; ++i)
    rates.push_back(
        std::pow(max_timescale, -2.0 * static_cast<double>(i) / static_cast<double>(channels)));
  return rates;
}

Array rotate(const Array& x, const Array& c, const Array& s) {
  std::vector<Array> half = split(x, 2, -1);
  return concatenate({half[0] * c - half[1] * s, half[1] * c + half[0] * s}, -1);
}

void check_even(const ArrayArg& x) {
  if (x.array.ndim() >= 3 && x.array.dim(-1) % 2 == 0) return;
  throw UserError(ErrorParts{"apply_rotary", "[..., T, H, K] with an even K is needed",
                             x.array.type_string(), "Use an even head dimension"},
                  x.where);
}

}  // namespace

Array apply_rotary(const ArrayArg& x, const ArrayArg& positions, double max_timescale) {
  check_even(x);
  std::vector<double> rates = rotary_rates(x.array.dim(-1), max_timescale);
  Array angle = expand_dims(positions.array.astype(DType::kF64), -1) *
                Array(HostArray::from(rates, {x.array.dim(-1) / 2}));
  DType t = x.array.dtype();
  return rotate(x.array, expand_dims(cos(angle).astype(t), -2),
                expand_dims(sin(angle).astype(t), -2));
}

Array apply_rotary(const ArrayArg& x, double max_timescale) {
  check_even(x);
  std::int64_t T = x.array.dim(-3), half = x.array.dim(-1) / 2;
  std::vector<double> rates = rotary_rates(x.array.dim(-1), max_timescale), c, s;
  for (std::int64_t t = 0; t < T; ++t)
    for (double rate : rates) {
      c.push_back(std::cos(static_cast<double>(t) * rate));
      s.push_back(std::sin(static_cast<double>(t) * rate));
    }
  DType dtype = x.array.dtype();
  auto table = [&](const std::vector<double>& v) {
    return literal(HostArray::from(v, {T, 1, half}).astype(dtype));
  };
  return rotate(x.array, table(c), table(s));
}

}  // namespace xylem::nn
