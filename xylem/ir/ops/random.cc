#include "xylem/ir/ops/random.h"

#include <fmt/format.h>
#include <algorithm>

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <numbers>

#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/internal/constant_rules.h"
#include "xylem/ir/ops/internal/eval_util.h"
#include "xylem/ir/ops/internal/shape_util.h"

namespace xylem::ir::ops {
namespace {

using Words2 = std::array<std::uint32_t, 2>;
using Words4 = std::array<std::uint32_t, 4>;

std::uint32_t low(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
std::uint32_t high(std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); }
std::uint64_t word64(std::uint32_t lo, std::uint32_t hi) {
  return lo | static_cast<std::uint64_t>(hi) << 32;
}

// Threefry-2x32 with 20 rounds: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011.
Words2 threefry2x32(Words2 x, Words2 key) {
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const std::uint32_t ks[3] = {key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDAu};
  x[0] += ks[0];
  x[1] += ks[1];
  for (std::uint32_t i = 0; i < 5; ++i) {
    for (int r : kRotations[i % 2]) {
      x[0] += x[1];
      x[1] = std::rotl(x[1], r) ^ x[0];
    }
    x[0] += ks[(i + 1) % 3];
    x[1] += ks[(i + 2) % 3] + i + 1;
  }
  return x;
}

// Philox-4x32 with 10 rounds (same paper).
Words4 philox4x32(Words4 x, Words2 key) {
  for (int round = 0; round < 10; ++round) {
    std::uint64_t p = std::uint64_t{0xD2511F53u} * x[0], q = std::uint64_t{0xCD9E8D57u} * x[2];
    x = {high(q) ^ x[1] ^ key[0], low(q), high(p) ^ x[3] ^ key[1], low(p)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return x;
}

// 32-bit words come in pairs along one dimension, the first even one or else the longest: element
// 2i and 2i + 1 there are the two outputs for counter number i of the halved shape. 64-bit words
// take both outputs of one counter.
std::uint64_t three_fry(std::uint64_t key, std::uint64_t counter, const Dims& shape, bool wide,
                        std::vector<std::uint64_t>& out) {
  Words2 k = {low(key), high(key)};
  Dims half = shape;
  std::size_t split = 0;
  if (!wide && !shape.empty()) {
    while (split < shape.size() && shape[split] % 2 != 0) ++split;
    if (split == shape.size())
      split =
          static_cast<std::size_t>(std::max_element(shape.begin(), shape.end()) - shape.begin());
    half[split] = (shape[split] + 1) / 2;
  }
  Dims strides = row_major_strides(half);
  std::vector<std::int64_t> index(shape.size(), 0);
  for (std::uint64_t& word : out) {
    std::vector<std::int64_t> at = index;
    std::size_t which = 0;
    if (!wide && !shape.empty()) {
      which = static_cast<std::size_t>(at[split] % 2);
      at[split] /= 2;
    }
    std::uint64_t c = counter + static_cast<std::uint64_t>(flat_index(at, strides));
    Words2 x = threefry2x32({low(c), high(c)}, k);
    word = wide ? word64(x[0], x[1]) : x[which];
    next_index(index, shape);
  }
  return counter + static_cast<std::uint64_t>(num_elements(half));
}

// Counters are 128 bits wide, (low, high); each gives four 32-bit words.
void philox(std::uint64_t key, std::array<std::uint64_t, 2>& counter, bool wide,
            std::vector<std::uint64_t>& out) {
  std::size_t per = wide ? 2 : 4;
  for (std::size_t i = 0; i < out.size(); i += per) {
    Words4 x = philox4x32({low(counter[0]), high(counter[0]), low(counter[1]), high(counter[1])},
                          {low(key), high(key)});
    for (std::size_t j = 0; j < per && i + j < out.size(); ++j)
      out[i + j] = wide ? word64(x[2 * j], x[2 * j + 1]) : x[j];
    if (++counter[0] == 0) ++counter[1];
  }
}

std::vector<Type> rng_shape_rule(const OpCall& call) {
  const Type& state = tensor_operand(call, 0, kElUnsigned, "i2");
  bool three_fry_algorithm = call.attrs.str_or("rng_algorithm", "") == "THREE_FRY";
  if (state.dtype() != DType::kU64 || state.rank() != 1)
    fail(call, "i2", "the state must be a vector of u64", "it is " + state.to_string(),
         "Bitcast the key to u64 words");
  // DEFAULT is PHILOX, and the specification leaves its state to the implementation.
  if (state.dim(0) != kDynamic && state.dim(0) != 2 && (three_fry_algorithm || state.dim(0) != 3))
    fail(call, "c2",
         three_fry_algorithm ? "THREE_FRY has a state of 2 words (key, counter)"
                             : "PHILOX has a state of 2 or 3 words (key, counter)",
         "it is " + state.to_string(), "Pass a state of that size");
  DType dtype = *call.attrs.at("result_dtype").get<DType>();
  if (!is_integer(dtype) || dtype_bits(dtype) < 8)
    fail(call, "o1", "the bits must be integers of 8 to 64 bits",
         fmt::format("result_dtype is {}", dtype_name(dtype)), "Bitcast integers afterwards");
  return {state, Type::tensor(dtype, shape_attr(call))};
}

std::vector<HostArray> rng_eval(const EvalCall& call) {
  HostArray state = call.operands[0].clone();
  auto* s = state.as<std::uint64_t>();
  const Type& t = call.result_types[1];
  std::vector<std::uint64_t> words(static_cast<std::size_t>(t.size()));
  bool wide = dtype_bits(t.dtype()) == 64;
  if (call.op.attrs.str_or("rng_algorithm", "") == "THREE_FRY") {
    s[1] = three_fry(s[0], s[1], t.dims(), wide, words);
  } else if (state.size() == 2) {  // the counter starts at (low = word 1, high = the key)
    std::array<std::uint64_t, 2> counter = {s[1], s[0]};
    philox(s[0], counter, wide, words);
    s[1] = counter[0];
  } else {
    std::array<std::uint64_t, 2> counter = {s[1], s[2]};
    philox(s[0], counter, wide, words);
    s[1] = counter[0];
    s[2] = counter[1];
  }
  HostArray out(t.dtype(), t.dims());
  store(out, 0, out.size(), words.data());
  return {std::move(state), std::move(out)};
}

// rng --------------------------------------------------------------------------------------------

std::vector<Type> rng_distribution_shape_rule(const OpCall& call) {
  const Type& a = tensor_operand(call, 0, kElBool | kElReal);
  const Type& b = tensor_operand(call, 1, kElBool | kElReal);
  const Type& shape = tensor_operand(call, 2, kElInt);
  for (int i = 0; i < 2; ++i)
    if (call.operands[static_cast<std::size_t>(i)].rank() != 0)
      fail(call, i ? "i2" : "i1", fmt::format("operand {} must be a scalar", i),
           "it is " + call.operands[static_cast<std::size_t>(i)].to_string(), "Pass a scalar");
  if (shape.rank() != 1)
    fail(call, "i3", "the shape must have one dimension", "it is " + shape.to_string(),
         "Pass one size per dimension");
  if (a.dtype() != b.dtype())
    fail(call, "c1", "a and b must have one dtype", differ("a", a, "b", b), "Convert one of them");
  if (call.attrs.str_or("rng_distribution", "") == "NORMAL" && !is_float(a.dtype()))
    fail(call, "c2", "NORMAL numbers are floats", "the operands are " + a.to_string(),
         "Convert a and b");
  const AttrList* types = call.attrs.at("result_types").list();
  const Type* t = types && types->size() == 1 ? (*types)[0].get<Type>() : nullptr;
  if (!t || !t->is_tensor() || t->dtype() != a.dtype())
    fail(call, "c1", fmt::format("the result must be a tensor of {}", dtype_name(a.dtype())),
         t ? "it is " + t->to_string() : "it is absent", "Give that type");
  if (!size_fits(shape.dim(0), t->rank()))
    fail(call, "c3", fmt::format("the result must have {} dimensions", shape.dim(0)),
         "it is " + t->to_string(), "Give the result that shape");
  return {*t};
}

std::vector<HostArray> rng_distribution_eval(const EvalCall& call) {
  static std::atomic<std::uint64_t> streams{0};
  Dims shape;
  for (std::int64_t i = 0; i < call.operands[2].size(); ++i)
    shape.push_back(integer_scalar(call.operands[2], i));
  const Type& t = call.result_types[0];
  for (int d = 0; d < t.rank(); ++d)
    if (shape[d] < 0 || (t.dim(d) != kDynamic && t.dim(d) != shape[d]))
      throw UserError(ErrorParts{"rng", fmt::format("the shape is that of {}", t.to_string()),
                                 fmt::format("it is {}", list(shape)), "Make them agree"},
                      call.op.loc.source);
  HostArray out(t.dtype(), shape);
  std::array<std::uint64_t, 2> counter = {0, 0};
  std::vector<std::uint64_t> words(static_cast<std::size_t>(2 * out.size()));
  philox(streams.fetch_add(1), counter, true, words);
  auto unit = [&](std::size_t i) { return static_cast<double>(words[i] >> 11) * 0x1p-53; };
  bool normal = call.op.attrs.str_or("rng_distribution", "") == "NORMAL";
  if (is_float(t.dtype())) {
    double a = call.operands[0].at(0), b = call.operands[1].at(0);
    for (std::int64_t i = 0; i < out.size(); ++i) {
      auto k = static_cast<std::size_t>(2 * i);
      double v = normal ? a + b * std::sqrt(-2 * std::log1p(-unit(k))) *
                                  std::cos(2 * std::numbers::pi * unit(k + 1))
                        : a + (b - a) * unit(k);
      store(out, i, 1, &v);
      // Rounding may reach b.
      if (!normal && a < b && !(out.at(i) < b)) store(out, i, 1, &a);
    }
  } else {
    std::int64_t a = integer_scalar(call.operands[0]), b = integer_scalar(call.operands[1]);
    std::uint64_t span = static_cast<std::uint64_t>(b) - static_cast<std::uint64_t>(a);
    for (std::int64_t i = 0; i < out.size(); ++i) {
      auto k = static_cast<std::size_t>(2 * i);
      auto v =
          static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + (b > a ? words[k] % span : 0));
      store(out, i, 1, &v);
    }
  }
  return {std::move(out)};
}

void rng_constants(const OpCall& call, std::span<const Type> results, Constants constants) {
  if (!constants[2]) return;
  Dims shape;
  for (std::int64_t i = 0; i < constants[2]->size(); ++i)
    shape.push_back(integer_scalar(*constants[2], i));
  bool negative = std::any_of(shape.begin(), shape.end(), [](std::int64_t n) { return n < 0; });
  if (negative || !dims_fit(shape, results[0].dims()))
    fail(call, "c3", fmt::format("the result must have the shape {}", list(shape)),
         "it is " + results[0].to_string(), "Correct the result's type, or the shape");
}

// One element of `shape` is one element of the result.
DimMap rng_dims(const OpCall& call, std::span<const Type> results) {
  DimMap m;
  for (const Type& t : call.operands)
    m.operands.push_back(add_factors(m, t.dims(), DimMap::FactorKind::kOpaque));
  m.results.push_back(add_factors(m, results[0].dims(), DimMap::FactorKind::kOpaque));
  return m;
}

}  // namespace

const OpDef kRng = {.name = "stablehlo.rng",
                    .traits = kEffect,
                    .min_operands = 3,
                    .max_operands = 3,
                    .attrs = {{"rng_distribution", AttrKind::kEnum, true, "UNIFORM NORMAL"},
                              {"result_types", AttrKind::kList}},
                    .shape = rng_distribution_shape_rule,
                    .eval = rng_distribution_eval,
                    .dims = rng_dims,
                    .labels = "rng_i1 rng_i2 rng_i3 rng_c1 rng_c2 rng_c3",
                    .result_labels = "c1 c3"};
const OpDef kRngBitGenerator = {
    .name = "stablehlo.rng_bit_generator",
    .traits = kExact,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {{"rng_algorithm", AttrKind::kEnum, true, "DEFAULT THREE_FRY PHILOX"},
              {"shape", AttrKind::kDims},
              {"result_dtype", AttrKind::kDType}},
    .shape = rng_shape_rule,
    .eval = rng_eval,
    .labels =
        "rng_bit_generator_i2 rng_bit_generator_c2 rng_bit_generator_o1 "
        "rng_bit_generator_shape",
    .result_labels = "o1 c1"};

ConstantRuleOf rng_constant_rule() { return {&kRng, rng_constants}; }

Family random_family() {
  static const OpDef* const kOps[] = {&kRngBitGenerator, &kRng};
  return kOps;
}

}  // namespace xylem::ir::ops
