#include "xylem/nn/functional.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <tuple>

#include "xylem/base/error.h"
#include "xylem/core/lax.h"
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

Array relu6(const ArrayArg& x) {
  Array inside = logical_and(greater(x, 0), less(x, 6));
  return where(inside, x, stop_gradient(minimum(maximum(x, 0), 6.0)));
}
Array swish(const ArrayArg& x) { return silu(x); }
Array mish(const ArrayArg& x) { return multiply(x, tanh(softplus(x))); }
Array hard_sigmoid(const ArrayArg& x) { return divide(relu6(add(x, 3.0)), 6.0); }
Array hard_silu(const ArrayArg& x) { return multiply(x, hard_sigmoid(x)); }
Array hard_swish(const ArrayArg& x) { return hard_silu(x); }
Array hard_tanh(const ArrayArg& x) { return where(greater(x, 1), 1, where(less(x, -1), -1, x)); }
Array soft_sign(const ArrayArg& x) { return divide(x, add(abs(x), 1)); }
Array squareplus(const ArrayArg& x, const ArrayArg& b) {
  return divide(add(x, sqrt(add(square(x), b))), 2);
}
Array sparse_plus(const ArrayArg& x) {
  return where(less_equal(x, -1.0), 0.0,
               where(greater_equal(x, 1.0), x, divide(square(add(x, 1.0)), 4)));
}
Array sparse_sigmoid(const ArrayArg& x) { return multiply(0.5, clip(add(x, 1.0), 0.0, 2.0)); }

Array celu(const ArrayArg& x, double alpha) {
  return add(maximum(x, 0.0), multiply(alpha, expm1(divide(minimum(x, 0.0), alpha))));
}
Array selu(const ArrayArg& x) { return multiply(1.0507009873554805, elu(x, 1.6732632423543772)); }

Array glu(const ArrayArg& x, int axis) {
  auto ax = static_cast<int>(AxisArg(axis).resolve(x.array.ndim(), "glu", x.where)[0]);
  if (x.array.dim(ax) % 2 != 0)
    throw UserError(ErrorParts{"glu", "an even number of elements along the axis",
                               x.array.type_string(), "Split another axis, or pad it"},
                    x.where);
  std::vector<Array> half = split(x, 2, ax);
  return half[0] * sigmoid(half[1]);
}

namespace {

// Each form is exact on its side of log 2.
Array log1mexp_value(const Array& x) {
  return where(less(x, std::log(2.0)), log(negative(expm1(negative(x)))),
               log1p(negative(exp(negative(x)))));
}

Array floats(const ArrayArg& x) {
  return is_inexact(x.array.dtype()) ? x.array : x.array.astype(DType::kF32, x.where);
}

}  // namespace

Array log1mexp(const ArrayArg& x) {
  using One = std::tuple<Array>;
  auto rule = [](const One& at, const One& by) {
    const Array& v = std::get<0>(at);
    return std::pair{log1mexp_value(v), std::get<0>(by) / expm1(v)};
  };
  return custom_jvp(log1mexp_value, rule)(floats(x));
}

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Of the elements that take part: their maximum, or -∞.
Array masked_max(const Array& x, const AxisArg& axis, const Array& mask) {
  return stop_gradient(max(mask.defined() ? where(mask, x, -kInf) : x, axis, true));
}

}  // namespace

Array softmax(const ArrayArg& x, const AxisArg& axis, const Array& mask) {
  Array a = floats(x);
  if (a.size() == 0) return a;
  Array m = masked_max(a, axis, mask);
  if (!mask.defined()) {
    Array e = exp(subtract(a, m));
    return e / sum(e, axis, true);
  }
  Array e = exp(subtract(where(mask, a, -kInf), m));
  return where(mask, e / sum(where(mask, e, 0.0), axis, true), 0.0);
}

Array log_softmax(const ArrayArg& x, const AxisArg& axis, const Array& mask) {
  Array a = floats(x);
  if (a.size() == 0) return a;
  Array m = masked_max(a, axis, mask);
  if (!mask.defined()) {
    Array shifted = subtract(a, m);
    return shifted - log(sum(exp(shifted), axis, true));
  }
  Array shifted = subtract(where(mask, a, -kInf), m);
  Array r = shifted - log(sum(where(mask, exp(shifted), 0.0), axis, true));
  return where(mask, r, -kInf);
}

std::pair<Array, Array> logsumexp_with_sign(const ArrayArg& x, const LogsumexpOptions& o) {
  Array a = floats(x);
  if (o.mask.defined()) a = where(o.mask, a, zeros_like(a));
  Array b = o.b;
  if (b.defined()) {
    a = add(a, zeros_like(b));  // their common shape and dtype
    a = where(not_equal(b, 0), a, -kInf);
  }
  Array seen = o.mask.defined() ? where(o.mask, a, -kInf) : a;
  Dims axes = o.axis.resolve(a.ndim(), "logsumexp", x.where);
  std::vector<int> each(axes.begin(), axes.end());
  Array m = a.size() == 0 ? zeros_like(sum(a, each, true))
                          : max(is_complex(a.dtype()) ? real(seen) : seen, each, true);
  m = stop_gradient(where(isfinite(m), m, zeros_like(m)));
  Array e = exp(subtract(a, m.astype(a.dtype())));
  if (b.defined()) e = e * b;
  if (o.mask.defined()) e = where(o.mask, e, zeros_like(e));
  Array total = sum(e, each, o.keepdims);
  Array top = o.keepdims || each.empty() ? m : squeeze(m, each);
  return {log(abs(total)) + top, sign(total)};
}

Array logsumexp(const ArrayArg& x, const LogsumexpOptions& o) {
  if (is_complex(x.array.dtype()))
    throw UserError(ErrorParts{"nn::logsumexp", "real operands", x.array.type_string(),
                               "Use logsumexp_with_sign, which gives modulus and phase"},
                    x.where);
  auto [value, s] = logsumexp_with_sign(x, o);
  return o.b.defined() ? where(less(s, 0), std::nan(""), value) : value;
}

Array logmeanexp(const ArrayArg& x, const AxisArg& axis, const Array& mask, bool keepdims) {
  Array r = nn::logsumexp(x, {.axis = axis, .keepdims = keepdims, .mask = mask});
  Array all = ones(x.array.shape(), r.dtype());
  Array n = sum(mask.defined() ? where(mask, all, zeros_like(all)) : all, axis, keepdims);
  return r - log(n);
}

Array standardize(const ArrayArg& x, const AxisArg& axis, const StandardizeOptions& o) {
  Array a = floats(x);
  auto average = [&](const Array& v) {
    if (!o.mask.defined()) return mean(v, axis, true);
    DType wide = dtype_bits(v.dtype()) < 32 ? DType::kF32 : v.dtype();
    Array taken = where(o.mask, v.astype(wide), zeros({}, wide));
    Array n = sum(broadcast_to(o.mask, v.shape()).astype(wide), axis, true);
    return (sum(taken, axis, true) / n).astype(v.dtype());
  };
  Array m = o.mean.defined() ? o.mean : average(a);
  Array v = o.variance;
  if (!v.defined())
    v = o.stable ? average(square(subtract(a, m))) : maximum(average(square(a)) - square(m), 0);
  return subtract(a, m) * lax::rsqrt(v + o.epsilon);
}

Array one_hot(const ArrayArg& x, std::int64_t num_classes, DType dtype, int axis) {
  int n = x.array.ndim() + 1;
  if (axis < -n || axis >= n)
    throw UserError(ErrorParts{"one_hot: axis", fmt::format("an axis in [{}, {})", -n, n),
                               fmt::format("{}", axis), "Use -1 for the last"},
                    x.where);
  int at = axis < 0 ? axis + n : axis;
  Dims shape(static_cast<std::size_t>(n), 1);
  shape[at] = num_classes;
  Array classes = arange(num_classes).astype(x.array.dtype()).reshape(shape);
  return equal(expand_dims(x, at), classes).astype(dtype);
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
