#include "xylem/core/random.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "xylem/base/error.h"
#include "xylem/core/internal/trace.h"
#include "xylem/core/lax.h"
#include "xylem/core/linalg.h"
#include "xylem/core/numpy.h"
#include "xylem/core/numpy/ops.h"
#include "xylem/core/special.h"
#include "xylem/ir/expr.h"
#include "xylem/ir/ops/all.h"

namespace xylem::random {

using ir::Attr;
using ir::Attrs;
namespace ops = ir::ops;

namespace {

constexpr DType kU32 = DType::kU32;

// 20 rounds of threefry2x32 on the counters (x0, x1), as u32 arithmetic.
// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
std::pair<Array, Array> threefry2x32(const Array& k0, const Array& k1, Array x0, Array x1) {
  static constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  Array parity = internal::constant(kU32, {}, 0x1BD11BDA);
  Array keys[3] = {k0, k1, bitwise_xor(bitwise_xor(k0, k1), parity)};
  auto rotate = [](const Array& x, int r) {
    return bitwise_or(left_shift(x, internal::constant(kU32, {}, r)),
                      right_shift(x, internal::constant(kU32, {}, 32 - r)));
  };
  x0 = add(x0, keys[0]);
  x1 = add(x1, keys[1]);
  for (int group = 0; group < 5; ++group) {
    for (int r : kRotations[group % 2]) {
      x0 = add(x0, x1);
      x1 = bitwise_xor(rotate(x1, r), x0);
    }
    x0 = add(x0, keys[(group + 1) % 3]);
    x1 = add(x1, add(keys[(group + 2) % 3], internal::constant(kU32, {}, group + 1)));
  }
  return {x0, x1};
}

bool threefry(const Key& key) {
  return key.impl == KeyImpl::kThreefry2x32 || key.impl == KeyImpl::kThreefry2x32Legacy;
}
std::int64_t num_words(KeyImpl impl) {
  return impl == KeyImpl::kThreefry2x32 || impl == KeyImpl::kThreefry2x32Legacy ? 2 : 4;
}

void check_key(const Key& key) {
  if (!key.data.defined() || key.data.dtype() != kU32 ||
      key.data.shape() != Dims{num_words(key.impl)})
    throw_user_error({"random", "a single key is needed",
                      key.data.defined() ? fmt::format("its data is {}", key.data.type_string())
                                         : std::string("the key is undefined"),
                      "Make it with random::key(seed); map over an array of keys with vmap"},
                     internal::CallSite::outermost({}));
}

std::pair<Array, Array> words(const Key& key) { return {key.data[0], key.data[1]}; }

// The two output words for every index of the shape; the counter is the 64-bit flat index.
std::pair<Array, Array> hashes(const Key& key, const Dims& shape) {
  std::int64_t n = num_elements(shape);
  auto [k0, k1] = words(key);
  Array low = internal::iota(kU32, {n}, 0), high = zeros({n}, kU32);
  if (n > (std::int64_t{1} << 32)) {
    Array index = internal::iota(DType::kU64, {n}, 0);
    high = right_shift(index, internal::constant(DType::kU64, {}, 32)).astype(kU32);
  }
  auto [b0, b1] = threefry2x32(k0, k1, high, low);
  return {b0.reshape(shape), b1.reshape(shape)};
}

// Legacy order: the counters 0 … n-1 (and a zero to make them even) are cut in two halves, whose
// hashes follow each other.
Array legacy_words(const Key& key, std::int64_t n) {
  if (n > std::numeric_limits<std::uint32_t>::max())
    throw_user_error({"random bits of a legacy key", "fewer than 2^32 words", fmt::format("{}", n),
                      "Use a key of the default kind"},
                     internal::CallSite::outermost({}));
  auto [k0, k1] = words(key);
  Array counts = internal::iota(kU32, {n}, 0);
  if (n % 2) counts = concatenate({counts, zeros({1}, kU32)});
  std::int64_t half = (n + 1) / 2;
  auto [b0, b1] =
      threefry2x32(k0, k1, counts(idx::slice(0, half)), counts(idx::slice(half, 2 * half)));
  Array all = concatenate({b0, b1});
  return n % 2 ? all(idx::slice(0, n)) : all;
}

// Two keys of two words behind a key of four.
std::pair<Key, Key> halves(const Key& key) {
  return {{key.data(idx::slice(0, 2))}, {key.data(idx::slice(2, 4))}};
}

Array generated(const Key& key, const Dims& shape, DType dtype) {
  DType drawn = dtype == DType::kU64 ? dtype : kU32;
  Array pairs = key.data.reshape({2, 2});
  Array state = internal::apply_one(ops::kBitcastConvert, std::span<const Array>(&pairs, 1),
                                    Attrs{{"result_dtype", Attr(DType::kU64)}});
  return internal::apply(ops::kRngBitGenerator, std::span<const Array>(&state, 1),
                         Attrs{{"rng_algorithm", Attr(ir::EnumAttr("DEFAULT"))},
                               {"shape", Attr(shape)},
                               {"result_dtype", Attr(drawn)}},
                         {}, {})[1]
      .astype(dtype);
}

Dims with_last(Dims shape, std::int64_t n) {
  shape.push_back(n);
  return shape;
}

}  // namespace

Key key(std::int64_t seed, KeyImpl impl) {
  // Narrowed to 32 bits first, as with 64-bit types off; the sign does not spread.
  auto low = static_cast<std::uint32_t>(static_cast<std::uint64_t>(seed));
  std::vector<std::uint32_t> w = {0, low};
  if (num_words(impl) == 4) w = {0, low, 0, low};
  return {Array(HostArray::from(w, {static_cast<std::int64_t>(w.size())})), impl};
}

Key wrap_key_data(const ArrayArg& data, KeyImpl impl) {
  std::int64_t n = num_words(impl);
  if (data.array.dtype() != kU32 || data.array.ndim() == 0 || data.array.dim(-1) != n)
    throw_user_error({"random::wrap_key_data", fmt::format("u32[…, {}]", n),
                      data.array.type_string(), "Pass what key_data gives"},
                     internal::CallSite::outermost(data.where));
  return {data.array, impl};
}

Key split(const Key& key, Dims shape) {
  check_key(key);
  std::int64_t n = num_elements(shape);
  switch (key.impl) {
    case KeyImpl::kThreefry2x32: {
      auto [b0, b1] = hashes(key, shape);
      return {stack({b0, b1}, -1), key.impl};
    }
    case KeyImpl::kThreefry2x32Legacy:
      return {legacy_words(key, 2 * n).reshape(with_last(shape, 2)), key.impl};
    case KeyImpl::kRbg: {
      auto [first, second] = halves(key);
      return {concatenate({split(first, shape).data, split(second, shape).data}, -1), key.impl};
    }
    case KeyImpl::kUnsafeRbg: {
      Array all = generated(key, {10 * n, 4}, kU32);
      return {all(idx::slice(0, 10 * n, 10)).reshape(with_last(shape, 4)), key.impl};
    }
  }
  throw InternalError("unknown kind of key");
}
Key split(const Key& key, std::int64_t n) { return split(key, Dims{n}); }
Key at(const Key& keys, std::int64_t i) { return {keys.data[i], keys.impl}; }

std::vector<Key> unstack(const Key& keys) {
  std::vector<Key> r;
  for (Array& a : xylem::unstack(keys.data)) r.push_back({a, keys.impl});
  return r;
}

Key fold_in(const Key& key, const ArrayArg& data) {
  check_key(key);
  if (key.impl == KeyImpl::kRbg) {
    auto [first, second] = halves(key);
    return {concatenate({fold_in(first, data).data, fold_in(second, data).data}), key.impl};
  }
  Array word = data.array.astype(kU32);
  if (key.impl == KeyImpl::kUnsafeRbg) {
    Array zero = zeros({}, kU32);
    Key seeded{stack({zero, word, zero, word}), key.impl};
    return {bitwise_xor(key.data, generated(seeded, {10, 4}, kU32)[9]), key.impl};
  }
  auto [k0, k1] = words(key);
  auto [b0, b1] = threefry2x32(k0, k1, zeros({}, kU32), word);
  return {stack({b0, b1}), key.impl};
}

namespace {

Array legacy_bits(const Key& key, const Dims& shape, DType dtype) {
  std::int64_t n = num_elements(shape);
  int width = dtype_bits(dtype);
  std::int64_t count = (width * n + 31) / 32;
  Array w = legacy_words(key, count);
  if (width == 64) {
    std::vector<Array> half = xylem::split(w, 2);
    w = bitwise_or(left_shift(half[0].astype(dtype), internal::constant(dtype, {}, 32)),
                   half[1].astype(dtype));
  } else if (width < 32) {
    // The pieces of each word, least significant first.
    Array shifts =
        multiply(internal::iota(kU32, {1, 32 / width}, 1), internal::constant(kU32, {}, width));
    w = right_shift(expand_dims(w, 1), shifts).reshape({-1});
    w = bitwise_and(w, internal::constant(kU32, {}, std::ldexp(1.0, width) - 1)).astype(dtype);
    w = w(idx::slice(0, n));
  }
  return w.reshape(shape);
}

}  // namespace

Array bits(const Key& key, Dims shape, DType dtype) {
  check_key(key);
  if (dtype != DType::kU8 && dtype != DType::kU16 && dtype != kU32 && dtype != DType::kU64)
    throw_user_error({"random::bits: dtype", "expected u8, u16, u32 or u64", dtype_name(dtype),
                      "Draw bits of one of these and convert"},
                     internal::CallSite::outermost({}));
  if (!threefry(key)) return generated(key, shape, dtype);
  if (key.impl == KeyImpl::kThreefry2x32Legacy) return legacy_bits(key, shape, dtype);
  auto [b0, b1] = hashes(key, shape);
  if (dtype == DType::kU64)
    return bitwise_or(left_shift(b0.astype(dtype), internal::constant(dtype, {}, 32)),
                      b1.astype(dtype));
  return bitwise_xor(b0, b1).astype(dtype);
}

namespace {

Array bitcast(const Array& x, DType to) {
  return internal::apply_one(ops::kBitcastConvert, std::span<const Array>(&x, 1),
                             Attrs{{"result_dtype", Attr(to)}});
}

DType unsigned_of_width(int width) {
  return width == 8    ? DType::kU8
         : width == 16 ? DType::kU16
         : width == 32 ? DType::kU32
                       : DType::kU64;
}

void check_float(const char* what, DType dtype) {
  if (is_float(dtype) && (dtype_bits(dtype) >= 16)) return;
  throw_user_error(
      {what, "a float dtype is needed", dtype_name(dtype), "Use f32, f64, bf16 or f16"},
      internal::CallSite::outermost({}));
}

// Multiples of 2^-m in [0, 1), m the mantissa bits.
Array unit_uniform(const Key& key, const Dims& shape, DType dtype) {
  check_float("random::uniform", dtype);
  const DTypeInfo& info = dtype_info(dtype);
  int m = info.mantissa_bits;
  int width = m < 8 ? 8 : info.bits;
  DType drawn = unsigned_of_width(width), whole = unsigned_of_width(info.bits);
  Array b = right_shift(bits(key, shape, drawn), internal::constant(drawn, {}, width - m));
  // With the exponent of 1.0 the bits are a number in [1, 2).
  double one = std::ldexp(static_cast<double>(info.bias), m);
  Array f = bitcast(bitwise_or(b.astype(whole), internal::constant(whole, {}, one)), dtype);
  return subtract(f, internal::constant(dtype, {}, 1));
}

}  // namespace

Array uniform(const Key& key, Dims shape, DType dtype, const ArrayArg& minval,
              const ArrayArg& maxval) {
  Array u = unit_uniform(key, shape, dtype);
  Array lo = minval.array.astype(dtype), hi = maxval.array.astype(dtype);
  if (dtype == DType::kF64) return maximum(lo, add(multiply(u, subtract(hi, lo)), lo));
  // JAX's CPU back end fuses this product and sum: rounding once keeps the values around zero,
  // where the sum cancels, equal to its own.
  Array width = subtract(hi, lo).astype(DType::kF64);
  Array x = add(multiply(u.astype(DType::kF64), width), lo.astype(DType::kF64));
  return maximum(lo, x.astype(dtype));
}

namespace {

// The largest number below 1, negated: nextafter(-1, 0).
double above_minus_one(DType dtype) {
  return -1.0 + std::ldexp(1.0, -(dtype_info(dtype).mantissa_bits + 1));
}

}  // namespace

Array normal(const Key& key, Dims shape, DType dtype) {
  check_float("random::normal", dtype);
  Array u = uniform(key, shape, dtype, above_minus_one(dtype), 1.0);
  return multiply(internal::constant(dtype, {}, std::sqrt(2.0)), special::erfinv(u));
}

Array truncated_normal(const Key& key, const ArrayArg& lower, const ArrayArg& upper, Dims shape,
                       DType dtype) {
  Array lo = lower.array.astype(dtype), hi = upper.array.astype(dtype);
  Array root2 = internal::constant(dtype, {}, std::sqrt(2.0));
  Array a = special::erf(divide(lo, root2)), b = special::erf(divide(hi, root2));
  Array x = multiply(root2, special::erfinv(uniform(key, shape, dtype, a, b)));
  return clip(x,
              special::nextafter(
                  lo, internal::constant(dtype, {}, std::numeric_limits<double>::infinity())),
              special::nextafter(
                  hi, internal::constant(dtype, {}, -std::numeric_limits<double>::infinity())));
}

Array randint(const Key& k, Dims shape, const ArrayArg& minval, const ArrayArg& maxval,
              DType dtype) {
  if (!is_integer(dtype))
    throw_user_error({"random::randint: dtype", "an integer dtype is needed", dtype_name(dtype),
                      "Use i32, or another integer type"},
                     internal::CallSite::outermost({}));
  int width = std::max(dtype_bits(dtype), 32);
  DType wide = width == 32 ? (is_signed_int(dtype) ? DType::kI32 : DType::kU32)
                           : (is_signed_int(dtype) ? DType::kI64 : DType::kU64);
  DType u = unsigned_of_width(width);
  Array lo = minval.array.astype(wide), hi = maxval.array.astype(wide);
  Key keys = split(k);
  Array high = bits(at(keys, 0), shape, u), low = bits(at(keys, 1), shape, u);
  Array one = internal::constant(u, {}, 1);
  Array past;  // whether maxval is beyond the largest number, which is the way to draw that one
  if (is_integer(maxval.array.dtype()) && dtype_bits(maxval.array.dtype()) > width) {
    DType given = maxval.array.dtype();
    double top = std::ldexp(1.0, is_signed_int(dtype) ? width - 1 : width);
    past = greater_equal(maxval.array, internal::constant(given, {}, top));
    hi = minimum(maxval.array, internal::constant(given, {}, top - 1)).astype(wide);
  }
  Array span = where(less_equal(hi, lo), one, subtract(hi, lo).astype(u));
  if (past.defined()) span = where(logical_and(past, less(lo, hi)), add(span, one), span);
  // 2^width mod span without a wider type: the square of 2^(width/2) mod span.
  Array half = mod(internal::constant(u, {}, std::ldexp(1.0, width / 2)), span);
  Array factor = mod(multiply(half, half), span);
  Array offset = mod(add(multiply(mod(high, span), factor), mod(low, span)), span);
  return add(lo, offset.astype(wide)).astype(dtype);
}

Array bernoulli(const Key& key, const ArrayArg& p, Dims shape, Mode mode) {
  DType t = is_float(p.array.dtype()) ? p.array.dtype() : DType::kF32;
  Array chance = p.array.astype(t);
  if (mode == Mode::kLow) return less(uniform(key, shape, t), chance);
  shape.insert(0, 2);
  Array u = uniform(key, shape, t);
  double step = std::ldexp(1.0, -dtype_info(t).mantissa_bits);
  return less(multiply(u[1], internal::constant(t, {}, step)), subtract(chance, u[0]));
}
Array bernoulli(const Key& key, const ArrayArg& p) { return bernoulli(key, p, p.array.shape()); }

Array gumbel(const Key& key, Dims shape, DType dtype, Mode mode) {
  check_float("random::gumbel", dtype);
  double tiny = std::ldexp(1.0, 1 - dtype_info(dtype).bias);
  if (mode == Mode::kLow)
    return negative(log(negative(log(uniform(key, shape, dtype, tiny, 1.0)))));
  shape.insert(0, 2);
  Array u = uniform(key, shape, dtype), high = u[0];
  Array low = multiply(
      u[1], internal::constant(dtype, {}, std::ldexp(1.0, -dtype_info(dtype).mantissa_bits)));
  Array fine = add(add(high, low), internal::constant(dtype, {}, tiny));
  Array x = where(greater_equal(high, 0.5), high, fine);
  return negative(log(negative(log1p(negative(x)))));
}

Array exponential(const Key& key, Dims shape, DType dtype) {
  return negative(log1p(negative(uniform(key, shape, dtype))));
}

Array categorical(const Key& key, const ArrayArg& logits, int axis) {
  Array noise = gumbel(key, logits.array.shape(), logits.array.dtype());
  return argmax(add(noise, logits), axis);
}

Array categorical(const Key& key, const ArrayArg& logits, int axis, Dims shape,
                  const CategoricalOptions& options) {
  const Dims& given = logits.array.shape();
  int n = given.ssize(),
      ax = static_cast<int>(AxisArg(axis).resolve(n, "categorical", logits.where)[0]);
  Dims batch = given;
  batch.erase(static_cast<std::size_t>(ax));
  int prefix = shape.ssize() - batch.ssize();
  bool fits = prefix >= 0;
  for (int i = 0; fits && i < batch.ssize(); ++i) fits = shape[prefix + i] == batch[i];
  if (!fits)
    throw UserError(
        ErrorParts{"random::categorical: shape",
                   fmt::format("the shape must end with {}", xylem::to_string(batch)),
                   xylem::to_string(shape), "Give a shape that repeats the logits' other axes"},
        internal::CallSite::outermost(logits.where));
  if (!options.replace) {
    std::int64_t draws = 1;
    for (int i = 0; i < prefix; ++i) draws *= shape[i];
    if (draws > given[ax])
      throw UserError(ErrorParts{"random::categorical: draws without replacement",
                                 fmt::format("at most {}", given[ax]), fmt::format("{}", draws),
                                 "Allow replacement, or draw less"},
                      internal::CallSite::outermost(logits.where));
    Array noisy = add(gumbel(key, given, logits.array.dtype(), options.mode), logits);
    Array index = lax::top_k(noisy, draws, ax).indices;  // the draws along the axis
    return moveaxis(index, ax, 0).reshape(shape);
  }
  Dims drawn = shape;
  drawn.insert(static_cast<std::size_t>(prefix + ax), given[ax]);
  return argmax(add(gumbel(key, drawn, logits.array.dtype(), options.mode), logits), prefix + ax);
}

namespace {

// Enough rounds of sorting by random bits that ties do not matter.
Array shuffle(Key key, Array x, int axis) {
  double n = static_cast<double>(std::max<std::int64_t>(1, x.size()));
  int rounds = static_cast<int>(std::ceil(3 * std::log(n) / std::log(4294967295.0)));
  ir::Builder b;
  ir::Expr lhs{&b, b.param(ir::Type::tensor(kU32))}, rhs{&b, b.param(ir::Type::tensor(kU32))};
  b.param(ir::Type::tensor(x.dtype()));
  b.param(ir::Type::tensor(x.dtype()));
  ir::GraphPtr before = b.finish({ir::compare(lhs, rhs, "LT").v});
  for (int i = 0; i < rounds; ++i) {
    Key keys = split(key);
    key = at(keys, 0);
    Array operands[2] = {bits(at(keys, 1), x.shape()), x};
    x = internal::apply(ops::kSort, operands,
                        Attrs{{"dimension", Attr(axis)}, {"is_stable", Attr(true)}}, {before},
                        {})[1];
  }
  return x;
}

}  // namespace

Array permutation(const Key& key, std::int64_t n) { return shuffle(key, arange(n), 0); }

Array permutation(const Key& key, const ArrayArg& x, int axis, bool independent) {
  axis = static_cast<int>(AxisArg(axis).resolve(x.array.ndim(), "permutation", x.where)[0]);
  if (x.array.ndim() == 1 || independent) return shuffle(key, x.array, axis);
  return take(x, permutation(key, x.array.dim(axis)), axis);
}

Array laplace(const Key& key, Dims shape, DType dtype) {
  check_float("random::laplace", dtype);
  Array u = uniform(key, shape, dtype, -1.0 + finfo(dtype).epsneg, 1.0);
  return multiply(sign(u), log1p(negative(abs(u))));
}

Array logistic(const Key& key, Dims shape, DType dtype) {
  check_float("random::logistic", dtype);
  Array u = uniform(key, shape, dtype, finfo(dtype).tiny, 1.0);
  return subtract(log(u), log1p(negative(u)));
}

Array cauchy(const Key& key, Dims shape, DType dtype) {
  check_float("random::cauchy", dtype);
  Array u = uniform(key, shape, dtype, finfo(dtype).eps, 1.0);
  Array pi = internal::constant(dtype, {}, 3.14159265358979323846);
  return tan(multiply(pi, subtract(u, internal::constant(dtype, {}, 0.5))));
}

Array rademacher(const Key& key, Dims shape, DType dtype) {
  Array heads = bernoulli(key, 0.5, shape);
  return subtract(multiply(2, heads.astype(dtype)), 1).astype(dtype);
}

Array rayleigh(const Key& key, const ArrayArg& scale, Dims shape, DType dtype) {
  Array u = uniform(key, shape, dtype);
  Array two = internal::constant(dtype, {}, -2);
  return multiply(scale.array.astype(dtype), sqrt(multiply(log(u), two)));
}

Array weibull_min(const Key& key, const ArrayArg& scale, const ArrayArg& concentration, Dims shape,
                  DType dtype) {
  Array u = uniform(key, shape, dtype);
  Array c = concentration.array.astype(dtype);
  Array x = power(negative(log1p(negative(u))), divide(internal::constant(dtype, {}, 1), c));
  return multiply(x, scale.array.astype(dtype));
}

Array pareto(const Key& key, const ArrayArg& b, Dims shape, DType dtype) {
  return exp(divide(exponential(key, shape, dtype), b.array.astype(dtype)));
}

Array lognormal(const Key& key, const ArrayArg& sigma, Dims shape, DType dtype) {
  return exp(multiply(normal(key, shape, dtype), sigma.array.astype(dtype)));
}

}  // namespace xylem::random
