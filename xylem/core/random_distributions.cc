#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "xylem/base/error.h"
#include "xylem/core/control_flow.h"
#include "xylem/core/internal/trace.h"
#include "xylem/core/lax.h"
#include "xylem/core/linalg.h"
#include "xylem/core/loops.h"
#include "xylem/core/numpy.h"
#include "xylem/core/numpy/ops.h"
#include "xylem/core/random.h"
#include "xylem/core/special.h"
#include "xylem/core/special_gamma.h"
#include "xylem/core/transforms.h"

// Samplers with parameters. Each derives its keys and takes its steps as jax.random does, so that
// samples agree up to rounding.

namespace xylem::random {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

[[noreturn]] void fail(const char* what, std::string expected, std::string given,
                       const char* advice) {
  throw_user_error({what, expected, given, advice}, internal::CallSite::outermost({}));
}

void check_dtype(const char* what, DType dtype) {
  if (!is_float(dtype) || dtype_bits(dtype) < 16)
    fail(what, "a float dtype", std::string(dtype_name(dtype)), "Use f32, f64, bf16 or f16");
}

// The shape to which parameters broadcast, or the given one, to which they must.
Dims shape_of(const char* what, const Dims& shape, std::initializer_list<Dims> params) {
  std::vector<Dims> all(params);
  Dims common = internal::broadcast_shapes(all, what, internal::CallSite::outermost({}));
  if (shape.empty()) return common;
  all.push_back(shape);
  if (internal::broadcast_shapes(all, what, internal::CallSite::outermost({})) != shape)
    fail(what, fmt::format("a shape to which the parameters of {} broadcast", to_string(common)),
         to_string(shape), "Leave the shape out, or put more axes in front");
  return shape;
}

Array spread(const ArrayArg& x, const Dims& shape, DType dtype) {
  return broadcast_to(x.array.astype(dtype), shape);
}

Array number(DType t, double v) { return internal::constant(t, {}, v); }

// --- gamma ------------------------------------------------------------------------------------

struct Attempt {
  Key key;
  Array squared, cubed, u;
};
struct Normal {
  Key key;
  Array x, v;
};

// One sample of Γ(a): Marsaglia and Tsang, "A simple method for generating gamma variables" (2000);
// for a < 1 one of Γ(a + 1) times U^(1/a).
Array gamma_one(const Key& start, const Array& a, bool log_space) {
  DType t = a.dtype();
  Array zero = number(t, 0), one = number(t, 1), third = number(t, 1.0 / 3.0);
  Array large = greater_equal(a, one);
  Array shape = where(large, a, add(a, one));
  Array d = subtract(shape, third), c = divide(third, sqrt(d));
  Key two = split(start);
  auto rejected = [&](const Attempt& s) {
    Array quick = greater_equal(s.u, one - number(t, 0.0331) * (s.squared * s.squared));
    Array exact =
        greater_equal(log(s.u), s.squared * number(t, 0.5) + d * ((one - s.cubed) + log(s.cubed)));
    return logical_and(quick, exact);
  };
  auto attempt = [&](const Attempt& s) {
    Key three = split(s.key, 3);
    auto next = [&](const Normal& n) {
      Key pair = split(n.key);
      Array x = normal(at(pair, 1), {}, t);
      return Normal{at(pair, 0), x, one + x * c};
    };
    Normal n = while_loop([&](const Normal& s2) { return less_equal(s2.v, zero); }, next,
                          Normal{at(three, 1), zero, number(t, -1)});
    return Attempt{at(three, 0), n.x * n.x, (n.v * n.v) * n.v, uniform(at(three, 2), {}, t)};
  };
  Array v = while_loop(rejected, attempt, Attempt{at(two, 0), zero, one, number(t, 2)}).cubed;
  if (log_space) {
    Array e = negative(exponential(at(two, 1), {}, t));
    Array boost = where(logical_or(large, equal(e, 0.0)), zero, e * (one / a));
    return (log(d) + log(v)) + boost;
  }
  Array boost = where(large, one, power(1.0 - uniform(at(two, 1), {}, t), one / a));
  return (d * v) * boost;
}

Array sample_gamma(const Key& key, const Array& a, bool log_space) {
  if (a.size() == 0) return zeros(a.shape(), a.dtype());
  Key keys = split(key, a.size());
  auto one = [&](const Array& data, const Array& alpha) {
    return gamma_one({data, key.impl}, alpha, log_space);
  };
  // Keys of the generator draw one after the other: mapped over, they would share a stream.
  bool mapped = key.impl == KeyImpl::kThreefry2x32 || key.impl == KeyImpl::kThreefry2x32Legacy;
  Array flat = ravel(a);
  Array y =
      mapped ? vmap(one)(keys.data, flat)
             : xylem::map([&](const std::pair<Array, Array>& p) { return one(p.first, p.second); },
                          std::pair{keys.data, flat});
  return y.reshape(a.shape());
}

Array gamma_of(const char* what, const Key& key, const ArrayArg& a, const Dims& given, DType dtype,
               bool log_space) {
  check_dtype(what, dtype);
  Dims shape = shape_of(what, given, {a.array.shape()});
  using Pair = std::tuple<Array, Array>;
  auto primal = [=, impl = key.impl](const Array& data, const Array& alpha) {
    return sample_gamma({data, impl}, alpha, log_space);
  };
  auto rule = [=](const Pair& at, const Pair& by) {
    const auto& [data, alpha] = at;
    Array y = primal(data, alpha), slope;
    if (log_space) {
      // d log x = dx / x; an x that underflows is taken as the least normal number.
      Array x = exp(y);
      x = where(equal(x, 0.0), number(x.dtype(), finfo(x.dtype()).tiny), x);
      slope = lax::random_gamma_grad(alpha, x) / x;
    } else {
      slope = lax::random_gamma_grad(alpha, y);
    }
    return std::pair{y, std::get<1>(by) * slope};
  };
  return custom_jvp(primal, rule)(key.data, spread(a, shape, dtype));
}

}  // namespace

Array gamma(const Key& key, const ArrayArg& a, Dims shape, DType dtype) {
  return gamma_of("random::gamma", key, a, shape, dtype, false);
}
Array loggamma(const Key& key, const ArrayArg& a, Dims shape, DType dtype) {
  return gamma_of("random::loggamma", key, a, shape, dtype, true);
}

Array beta(const Key& key, const ArrayArg& a, const ArrayArg& b, Dims shape, DType dtype) {
  check_dtype("random::beta", dtype);
  Dims full = shape_of("random::beta", shape, {a.array.shape(), b.array.shape()});
  Key keys = split(key);
  Array x = loggamma(at(keys, 0), spread(a, full, dtype), full, dtype);
  Array y = loggamma(at(keys, 1), spread(b, full, dtype), full, dtype);
  // Scaled by the larger, so that neither overflows.
  Array top = maximum(x, y);
  Array p = exp(x - top), q = exp(y - top);
  return p / (p + q);
}

Array dirichlet(const Key& key, const ArrayArg& alpha, Dims shape, DType dtype) {
  check_dtype("random::dirichlet", dtype);
  if (alpha.array.ndim() < 1)
    fail("random::dirichlet", "a vector of concentrations", alpha.array.type_string(),
         "Use beta for two of them");
  Dims lead = alpha.array.shape();
  lead.erase(lead.size() - 1);
  Dims full = shape_of("random::dirichlet", shape, {lead});
  full.push_back(alpha.array.dim(-1));
  Array x = loggamma(key, alpha.array.astype(dtype), full, dtype);
  Array e = exp(x - stop_gradient(max(x, -1, true)));
  return e / sum(e, -1, true);
}

Array chisquare(const Key& key, const ArrayArg& df, Dims shape, DType dtype) {
  check_dtype("random::chisquare", dtype);
  Array half = df.array.astype(dtype) / number(dtype, 2);
  return exp(loggamma(key, half, shape, dtype)) * number(dtype, 2);
}

Array f(const Key& key, const ArrayArg& dfnum, const ArrayArg& dfden, Dims shape, DType dtype) {
  check_dtype("random::f", dtype);
  Dims full = shape_of("random::f", shape, {dfnum.array.shape(), dfden.array.shape()});
  Key keys = split(key);  // denominator first
  Array n = dfnum.array.astype(dtype), d = dfden.array.astype(dtype);
  Array top = chisquare(at(keys, 1), n, full, dtype) / n;
  return top / (chisquare(at(keys, 0), d, full, dtype) / d);
}

Array t(const Key& key, const ArrayArg& df, Dims shape, DType dtype) {
  check_dtype("random::t", dtype);
  Dims full = shape_of("random::t", shape, {df.array.shape()});
  Key keys = split(key);
  Array half = df.array.astype(dtype) / number(dtype, 2);
  Array n = normal(at(keys, 0), full, dtype);
  return n * sqrt(half / gamma(at(keys, 1), half, full, dtype));
}

// --- counts -------------------------------------------------------------------------------------

namespace {

struct KnuthState {
  Array k;
  Key key;
  Array log_product;
};
struct RejectionState {
  Array k, accepted;
  Key key;
};

// Counts uniforms until their product falls below e^-rate.
Array poisson_by_products(const Key& key, const Array& rate, DType dtype) {
  Dims shape = rate.shape();
  KnuthState s{zeros(shape, dtype), key, zeros(shape)};
  auto open = [&](const KnuthState& c) { return c.log_product > negative(rate); };
  s = while_loop([&](const KnuthState& c) { return any(open(c)); },
                 [&](const KnuthState& c) {
                   Key two = split(c.key);
                   Array k = where(open(c), c.k + number(dtype, 1), c.k);
                   Array u = uniform(at(two, 1), shape, DType::kF32);
                   return KnuthState{k, at(two, 0), c.log_product + log(u)};
                 },
                 s);
  return s.k - number(dtype, 1);
}

// Hörmann, "The transformed rejection method for generating Poisson random variables" (1993).
Array poisson_by_rejection(const Key& key, const Array& rate, const Array& done, DType dtype) {
  Array log_rate = log(rate);
  Array b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
  Array inv_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2.0);
  Dims shape = rate.shape();
  RejectionState s{full(shape, -1.0, rate.dtype()), done, key};
  s = while_loop([](const RejectionState& c) { return any(logical_not(c.accepted)); },
                 [&](const RejectionState& c) {
                   Key three = split(c.key, 3);
                   Array u = uniform(at(three, 1), shape, rate.dtype()) - 0.5;
                   Array v = uniform(at(three, 2), shape, rate.dtype());
                   Array edge = 0.5 - abs(u);
                   Array k = floor((2.0 * a / edge + b) * u + rate + 0.43);
                   Array x = log(v * inv_alpha / (a / (edge * edge) + b));
                   Array y = negative(rate) + k * log_rate - special::gammaln(k + 1.0);
                   Array reject = (k < 0.0) | ((edge < 0.013) & (v > edge));
                   Array accept = ((edge >= 0.07) & (v <= v_r)) | (logical_not(reject) & (x <= y));
                   accept = accept & logical_not(done);
                   return RejectionState{where(accept, k, c.k), c.accepted | accept, at(three, 0)};
                 },
                 s);
  return s.k.astype(dtype);
}

}  // namespace

Array poisson(const Key& key, const ArrayArg& rate, Dims shape, DType dtype) {
  if (!is_integer(dtype))
    fail("random::poisson: dtype", "an integer dtype", std::string(dtype_name(dtype)), "Use i32");
  if (key.impl != KeyImpl::kThreefry2x32 && key.impl != KeyImpl::kThreefry2x32Legacy)
    fail("random::poisson", "a threefry key", "a key of another kind",
         "Make one with random::key(seed)");
  Dims full_shape = shape_of("random::poisson", shape, {rate.array.shape()});
  Array r = spread(rate, full_shape, DType::kF32);
  Array small = isnan(r) | (r < 10.0), zero = zeros_like(r);
  Array few = poisson_by_products(key, where(small, r, zero), dtype);
  Array endless = r == kInf;  // is never accepted
  Array many =
      poisson_by_rejection(key, where(small | endless, full_like(r, 1e5), r), endless, dtype);
  Array y = where(small, few, many);
  return where(r == 0.0, zeros_like(y), y);
}

namespace {

struct InversionState {
  Array count, sum;
  Key key;
};

// Successes are reached by geometric steps.
Array binomial_by_inversion(const Key& key, const Array& n, const Array& p, DType dtype) {
  Array log_q = log1p(negative(p));
  Dims shape = n.shape();
  InversionState s{zeros_like(p), zeros_like(p), key};
  s = while_loop([&](const InversionState& c) { return any(c.sum <= n); },
                 [&](const InversionState& c) {
                   Key two = split(c.key);
                   Array count = where(c.sum <= n, c.count + 1.0, c.count);
                   Array u = uniform(at(two, 0), shape, p.dtype());
                   return InversionState{count, c.sum + ceil(log(u) / log_q), at(two, 1)};
                 },
                 s);
  return (s.count - 1.0).astype(dtype);
}

// log k! - (Stirling's formula), by a table up to 9.
Array stirling_tail(const Array& k) {
  static const double kTable[10] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983,
                                    0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
                                    0.0118967099458917,  0.0104112652619720, 0.00925546218271273,
                                    0.00833056343336287};
  Array table = Array(std::vector<double>(kTable, kTable + 10)).astype(k.dtype());
  Array c = minimum(maximum(k, 0.0), 9.0);
  Array s = (c + 1.0) * (c + 1.0);
  Array approx = (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / s) / s) / (c + 1.0);
  return where(k <= 9.0, take(table, floor(c).astype(DType::kI32), 0, IndexMode::kClip), approx);
}

// Hörmann, "The generation of binomial random variates" (1993).
Array binomial_by_rejection(const Key& key, const Array& n, const Array& p, const Array& done,
                            DType dtype) {
  Array dev = sqrt(n * p * (1.0 - p));
  Array b = 1.15 + 2.53 * dev, a = -0.0873 + 0.0248 * b + 0.01 * p, c = n * p + 0.5;
  Array v_r = 0.92 - 4.2 / b, r = p / (1.0 - p), alpha = (2.83 + 5.1 / b) * dev;
  Array m = floor((n + 1.0) * p);
  Dims shape = n.shape();
  RejectionState s{full(shape, -1.0, p.dtype()), done, key};
  s = while_loop([](const RejectionState& w) { return any(logical_not(w.accepted)); },
                 [&](const RejectionState& w) {
                   Key three = split(w.key, 3);
                   Array u = uniform(at(three, 1), shape, p.dtype()) - 0.5;
                   Array v = uniform(at(three, 2), shape, p.dtype());
                   Array us = 0.5 - abs(u);
                   Array quick = (us >= 0.07) & (v <= v_r);
                   Array k = floor((2.0 * a / us + b) * u + c);
                   Array reject = (k < 0.0) | (k > n);
                   v = log(v * alpha / (a / (us * us) + b));
                   Array bound = (m + 0.5) * log((m + 1.0) / (r * (n - m + 1.0))) +
                                 (n + 1.0) * log((n - m + 1.0) / (n - k + 1.0)) +
                                 (k + 0.5) * log(r * (n - k + 1.0) / (k + 1.0)) + stirling_tail(m) +
                                 stirling_tail(n - m) - stirling_tail(k) - stirling_tail(n - k);
                   Array accept =
                       (quick | (logical_not(reject) & (v <= bound))) & logical_not(done);
                   return RejectionState{where(accept, k, w.k), w.accepted | accept, at(three, 0)};
                 },
                 s);
  return s.k.astype(dtype);
}

}  // namespace

Array binomial(const Key& key, const ArrayArg& n, const ArrayArg& p, Dims shape, DType dtype) {
  check_dtype("random::binomial", dtype);
  Dims full_shape = shape_of("random::binomial", shape, {n.array.shape(), p.array.shape()});
  DType t = is_float(p.array.dtype()) ? p.array.dtype() : DType::kF32;
  Array prob = spread(p, full_shape, t), count = spread(n, full_shape, t);
  Array below = prob < 0.5;
  Array q = where(below, prob, 1.0 - prob);
  Array bad_count = isnan(count) | (count < 0.0), bad = isnan(q) | (q < 0.0);
  Array infinite = isinf(count);
  q = where(bad, full_like(q, 0.01), q);
  Array few = bad_count | (count * q <= 10.0);
  count = floor(count);
  Array small = binomial_by_inversion(key, where(few, count, zeros_like(count)), q, dtype);
  Array large = binomial_by_rejection(key, where(few | infinite, full_like(count, 1e4), count),
                                      where(few | infinite, full_like(q, 0.5), q), infinite, dtype);
  Array y = where(few, small, large);
  Array invalid = bad | bad_count;
  y = where(invalid, full_like(y, std::nan("")), y);
  y = where(infinite & logical_not(invalid), full_like(y, kInf), y);
  return where(below | bad_count | isnan(prob) | infinite, y, count.astype(dtype) - y);
}

Array multinomial(const Key& key, const ArrayArg& n, const ArrayArg& p, Dims shape, DType dtype) {
  check_dtype("random::multinomial", dtype);
  if (p.array.ndim() < 1)
    fail("random::multinomial", "a vector of probabilities", p.array.type_string(),
         "Use binomial for two outcomes");
  DType t = is_float(p.array.dtype()) ? p.array.dtype() : DType::kF32;
  Dims full_shape = shape.empty() ? p.array.shape() : shape, lead = full_shape;
  lead.erase(lead.size() - 1);
  Array prob = moveaxis(spread(p, full_shape, t), -1, 0);
  Array left = flip(cumsum(flip(prob, 0), 0), 0);
  Array ratio = prob / where(left == 0.0, ones_like(left), left);
  Key keys = split(key, ratio.dim(0));
  auto step = [&](const Array& rest, const std::pair<Array, Array>& x) {
    Array count = binomial({x.second, key.impl}, rest, clip(x.first, 0, 1), {}, t);
    return std::pair{rest - count, count};
  };
  Array counts = scan(step, spread(n, lead, t), std::pair{ratio, keys.data}).second;
  return moveaxis(counts, 0, -1).astype(dtype);
}

Array geometric(const Key& key, const ArrayArg& p, Dims shape, DType dtype) {
  if (!is_integer(dtype))
    fail("random::geometric: dtype", "an integer dtype", std::string(dtype_name(dtype)), "Use i32");
  Dims full_shape = shape_of("random::geometric", shape, {p.array.shape()});
  DType t = is_float(p.array.dtype()) ? p.array.dtype() : DType::kF32;
  Array u = uniform(key, full_shape, t);
  u = where(u == 0.0, ones_like(u), u);
  Array failures = broadcast_to(log1p(negative(p.array.astype(t))), full_shape);
  return (floor(log(u) / failures) + 1.0).astype(dtype);
}

// --- the rest -----------------------------------------------------------------------------------

Array wald(const Key& key, const ArrayArg& mean, Dims shape, DType dtype) {
  check_dtype("random::wald", dtype);
  Dims full_shape = shape_of("random::wald", shape, {mean.array.shape()});
  Array mu = spread(mean, full_shape, dtype);
  Key keys = split(key);
  Array y = square(normal(at(keys, 0), full_shape, dtype));
  Array z = uniform(at(keys, 1), full_shape, dtype);
  Array mu2 = square(mu);
  Array root = sqrt(4.0 * mu * y + mu2 * square(y));
  Array x = mu + mu2 * y / 2.0 - mu / 2.0 * root;
  return where(z <= mu / (mu + x), x, mu2 / x);
}

Array triangular(const Key& key, const ArrayArg& left, const ArrayArg& mode, const ArrayArg& right,
                 Dims shape, DType dtype) {
  check_dtype("random::triangular", dtype);
  Dims s = shape_of("random::triangular", shape,
                    {left.array.shape(), mode.array.shape(), right.array.shape()});
  Array l = spread(left, s, dtype), m = spread(mode, s, dtype), r = spread(right, s, dtype);
  Array u = uniform(key, s, dtype);
  Array rising = l + sqrt(u * (r - l) * (m - l));
  Array falling = r - sqrt((1.0 - u) * (r - l) * (r - m));
  return where(u < (m - l) / (r - l), rising, falling);
}

Array maxwell(const Key& key, Dims shape, DType dtype) {
  check_dtype("random::maxwell", dtype);
  shape.push_back(3);
  return sqrt(sum(square(normal(key, shape, dtype)), -1));
}

Array double_sided_maxwell(const Key& key, const ArrayArg& loc, const ArrayArg& scale, Dims shape,
                           DType dtype) {
  check_dtype("random::double_sided_maxwell", dtype);
  Dims shapes[2] = {loc.array.shape(), scale.array.shape()};
  Dims params = internal::broadcast_shapes(shapes, "random::double_sided_maxwell", loc.where);
  // The parameters' shape stands behind the given one, twice where none is given.
  if (shape.empty()) shape = params;
  for (std::int64_t d : params) shape.push_back(d);
  Key keys = split(key);
  Array length = maxwell(at(keys, 0), shape, dtype);
  Array sign = rademacher(at(keys, 1), shape, dtype);
  return sign * length * scale.array.astype(dtype) + loc.array.astype(dtype);
}

Array generalized_normal(const Key& key, double p, Dims shape, DType dtype) {
  check_dtype("random::generalized_normal", dtype);
  Key keys = split(key);
  Array g = gamma(at(keys, 0), 1.0 / p, shape, dtype);
  Array sign = rademacher(at(keys, 1), shape, dtype);
  return sign * power(g, 1.0 / p);
}

Array ball(const Key& key, std::int64_t d, double p, Dims shape, DType dtype) {
  check_dtype("random::ball", dtype);
  if (d < 1) fail("random::ball", "at least one dimension", fmt::format("{}", d), "Give d >= 1");
  Key keys = split(key);
  Dims vectors = shape;
  vectors.push_back(d);
  Array g = generalized_normal(at(keys, 0), p, vectors, dtype);
  Array e = exponential(at(keys, 1), shape, dtype);
  Array radius = power(sum(power(abs(g), p), -1) + e, 1.0 / p);
  return g / expand_dims(radius, -1);
}

Array multivariate_normal(const Key& key, const ArrayArg& mean, const ArrayArg& cov, Dims shape,
                          NormalMethod method) {
  const Array &m = mean.array, &c = cov.array;
  if (m.ndim() < 1 || c.ndim() < 2 || c.dim(-1) != m.dim(-1) || c.dim(-2) != m.dim(-1))
    throw_user_error(
        {"random::multivariate_normal", "vectors of means and square covariances of their size",
         fmt::format("{} and {}", m.type_string(), c.type_string()),
         "Make the covariance [..., n, n] for means of [..., n]"},
        internal::CallSite::outermost(mean.where));
  Dims lead_m = m.shape(), lead_c = c.shape();
  lead_m.erase(lead_m.size() - 1);
  lead_c.erase(lead_c.size() - 1);
  lead_c.erase(lead_c.size() - 1);
  Dims drawn = shape_of("random::multivariate_normal", shape, {lead_m, lead_c});
  drawn.push_back(m.dim(-1));
  Array factor;
  if (method == NormalMethod::kCholesky) {
    factor = linalg::cholesky(cov);
  } else if (method == NormalMethod::kEigh) {
    auto [w, v] = linalg::eigh(cov);
    factor = v * expand_dims(sqrt(w), -2);
  } else {
    linalg::SvdResult r = linalg::svd(cov);
    factor = r.u * expand_dims(sqrt(r.s), -2);
  }
  Array z = normal(key, drawn, factor.dtype());
  return add(mean, xylem::einsum("...ij,...j->...i", {factor, z}));
}

Array orthogonal(const Key& key, std::int64_t n, Dims shape, DType dtype,
                 std::optional<std::int64_t> m) {
  std::int64_t other = m.value_or(n);
  shape.push_back(std::max(n, other));
  shape.push_back(std::min(n, other));
  linalg::QrResult f = linalg::qr(normal(key, shape, dtype));
  // The signs of R's diagonal make the factorisation unique, so that Q is uniform.
  Array x = f.q * expand_dims(sign(diagonal(f.r, 0, -2, -1)), -2);
  return n < other ? matrix_transpose(x) : x;
}

Array choice(const Key& key, const ArrayArg& a, Dims shape, bool replace, const Array& p,
             int axis) {
  bool scalar = a.array.ndim() == 0;
  int ax =
      scalar
          ? 0
          : static_cast<int>(AxisArg(axis).resolve(a.array.ndim(), "random::choice", a.where)[0]);
  std::int64_t n = scalar ? a.array.item<std::int64_t>() : a.array.dim(ax);
  std::int64_t draws = num_elements(shape);
  Dims full = scalar ? Dims{} : a.array.shape();
  if (scalar)
    full = shape;
  else {
    full.erase(static_cast<std::size_t>(ax));
    for (std::size_t i = shape.size(); i-- > 0;)
      full.insert(static_cast<std::size_t>(ax), shape[i]);
  }
  if (draws == 0) return zeros(shape, a.array.dtype());  // of that shape alone, as in JAX
  if (n < 1 || (!replace && draws > n) || (p.defined() && p.shape() != Dims{n}))
    throw_user_error({"random::choice",
                      "entries to choose from, no more without replacement than there are, and one "
                      "weight each",
                      fmt::format("{} of {}{}", draws, n,
                                  p.defined() ? ", weights " + p.type_string() : std::string()),
                      "Allow replacement, or draw less"},
                     internal::CallSite::outermost(a.where));
  if (!p.defined() && !replace) {
    if (scalar) return permutation(key, n)(idx::slice(0, draws)).reshape(shape);
    Array shuffled = permutation(key, a, ax);
    return lax::slice_in_dim(shuffled, 0, draws, ax).reshape(full);
  }
  Array index;
  if (!p.defined()) {
    index = randint(key, shape, 0, static_cast<int>(n));
  } else {
    DType t = is_float(p.dtype()) ? p.dtype() : DType::kF32;
    Array weights = p.astype(t);
    if (replace) {
      Array c = cumsum(weights, 0);
      Array u = subtract(number(t, 1), uniform(key, shape, t));
      index = searchsorted(c, multiply(c[-1], u));
    } else {
      Array noise = add(gumbel(key, {n}, t), log(weights));
      index = lax::top_k(noise, draws).indices.reshape(shape);
    }
  }
  return scalar ? index : take(a, index, ax, IndexMode::kClip);
}

}  // namespace xylem::random
