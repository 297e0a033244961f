// Every pointwise op on every dtype: generated code against the kernel interpreter.

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <functional>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "xylem/base/dtype_cast.h"
#include "xylem/compiler/jit/jit_test_util.h"
#include "xylem/ir/kernel/kernel_builder.h"
#include "xylem/ir/ops/all.h"

namespace xylem {
namespace {

using ir::Kernel;
using ir::KernelBuilder;
using ir::KernelValue;
using jit_test::Module;
namespace ops = ir::ops;

std::vector<DType> all_dtypes() {
  std::vector<DType> out;
  for (int i = 0; i < kNumDTypes; ++i)
    if (static_cast<DType>(i) != DType::kFloat0) out.push_back(static_cast<DType>(i));
  return out;
}

// Random bits, special values, and small numbers that make exact ties and zero divisors likely.
HostArray random_array(DType t, std::int64_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  HostArray a(t, {n});
  auto* bytes = reinterpret_cast<std::uint8_t*>(a.data());
  for (std::size_t i = 0; i < a.nbytes(); ++i) bytes[i] = static_cast<std::uint8_t>(random());
  const int bits = dtype_bits(t);
  if (t == DType::kBool)
    for (std::int64_t i = 0; i < n; ++i) bytes[i] &= 1;
  else if (bits < 8)
    for (std::int64_t i = 0; i < n; ++i) bytes[i] &= static_cast<std::uint8_t>((1 << bits) - 1);
  static constexpr double kSpecial[] = {
      0.0,           -0.0,         1,      -1,    2,      3,     -3,  0.5,  1.5, 2.5,  -2.5,
      INFINITY,      -INFINITY,    NAN,    1e-40, -1e-40, 65504, 127, -128, 255, 1e10, 2147483648.0,
      -2147483649.0, 4294967295.0, 9.3e18, 7,     -8};
  const bool integer = is_integer(t) || t == DType::kBool;
  const std::int64_t bytes_each = dtype_bytes(t);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto choice = random() % 4;
    double v = kSpecial[random() % std::size(kSpecial)];
    if (choice == 1) v = static_cast<double>(static_cast<std::int64_t>(random() % 41) - 20) / 4;
    if (choice > 1) continue;  // keep the random bits
    if (integer && !std::isfinite(v)) v = 0;
    double_to_element(v, t, a.data() + i * bytes_each);
    if (is_complex(t)) {
      const DType part = real_dtype(t);
      double_to_element(kSpecial[random() % std::size(kSpecial)], part,
                        a.data() + i * bytes_each + dtype_bytes(part));
    }
  }
  return a;
}

// An op under test on tiles of some size.
struct Case {
  std::string name;
  std::vector<DType> in;
  std::function<KernelValue(KernelBuilder&, std::vector<KernelValue>)> make;
  double ulp = 0;  // allowed distance, where intermediate rounding differs
};

Case simple(const ir::OpDef& def, std::vector<DType> in, ir::Attrs attrs = {}, double ulp = 0) {
  return {
      std::string(def.name), std::move(in),
      [&def, attrs](KernelBuilder& k, std::vector<KernelValue> v) { return k.one(def, v, attrs); },
      ulp};
}

// A multiple of every tile size.
constexpr std::int64_t kElements = 2640;
// Every way of cutting a row into pieces; 33 has a whole vector and a rest, 0 is a scalar.
constexpr std::int64_t kTiles[] = {33, 0, 1, 5, 16};

// The other dtypes differ in arithmetic only, which two sizes show.
std::size_t tiles_for(DType t) {
  for (DType every : {DType::kF32, DType::kI32, DType::kBool, DType::kBF16, DType::kC64})
    if (t == every) return std::size(kTiles);
  return 2;
}

Kernel make_kernel(const Case& c, std::int64_t tile) {
  KernelBuilder k(c.name);
  const std::int64_t n = tile == 0 ? 1 : tile;
  const KernelValue i = k.parallel(kElements / n);
  std::vector<KernelValue> refs;
  for (DType t : c.in) refs.push_back(k.read(t, {kElements}));
  // The result's dtype is found on a trial run.
  KernelBuilder trial;
  std::vector<KernelValue> trial_refs, trial_tiles;
  for (DType t : c.in) trial_refs.push_back(trial.read(t, {kElements}));
  for (const KernelValue& r : trial_refs)
    trial_tiles.push_back(trial.load_scalar(r, {trial.index(0)}));
  const DType out = trial.dtype(c.make(trial, trial_tiles));
  const KernelValue result = k.write(out, {kElements});
  const KernelValue at = k.mul(i, n);
  const Dims dims = tile == 0 ? Dims{} : Dims{0}, shape = tile == 0 ? Dims{} : Dims{tile};
  std::vector<KernelValue> tiles;
  for (const KernelValue& r : refs) tiles.push_back(k.load(r, {at}, dims, shape));
  k.store(result, c.make(k, tiles), {at}, dims);
  return k.finish();
}

std::string text(double v) {
  std::ostringstream out;
  out << std::hexfloat << v << std::defaultfloat << " (" << v << ")";
  return out.str();
}

// The first element that differs, as text; NaNs are equal to each other.
std::string difference(const HostArray& a, const HostArray& b, double ulp) {
  const DType part = is_complex(a.dtype()) ? real_dtype(a.dtype()) : a.dtype();
  const std::int64_t bytes = dtype_bytes(part);
  const std::int64_t n = a.size() * (is_complex(a.dtype()) ? 2 : 1);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::byte *p = a.data() + i * bytes, *q = b.data() + i * bytes;
    if (std::memcmp(p, q, static_cast<std::size_t>(bytes)) == 0) continue;
    const double x = element_to_double(part, p), y = element_to_double(part, q);
    if (is_float(part) && std::isnan(x) && std::isnan(y)) continue;
    if (ulp > 0 && std::isfinite(x) && std::isfinite(y)) {
      double size = std::max(std::abs(x), std::abs(y));
      // Of a complex number the larger part counts.
      if (is_complex(a.dtype())) {
        const double other = element_to_double(part, a.data() + (i ^ 1) * bytes);
        if (std::isfinite(other)) size = std::max(size, std::abs(other));
      }
      const DTypeInfo& info = dtype_info(part);
      const double unit = std::max(std::ldexp(size, -info.mantissa_bits),
                                   std::ldexp(1.0, 1 - info.bias - info.mantissa_bits));
      if (std::abs(x - y) <= ulp * unit) continue;
    }
    // Which part of an infinite complex quotient is infinite hangs on scaling.
    if (ulp > 0 && is_complex(a.dtype()) && !std::isfinite(x) && !std::isfinite(y)) continue;
    return "element " + std::to_string(i) + ": " + text(x) + " against " + text(y);
  }
  return "";
}

void check_cases(const std::vector<Case>& cases, std::uint64_t seed, std::size_t tiles) {
  std::vector<Kernel> kernels;
  std::vector<std::vector<HostArray>> expected, inputs;
  for (const Case& c : cases) {
    for (std::int64_t tile : std::span(kTiles).first(tiles)) {
      kernels.push_back(make_kernel(c, tile));
      const Kernel& k = kernels.back();
      std::vector<HostArray> buffers;
      for (std::size_t i = 0; i < c.in.size(); ++i)
        buffers.push_back(random_array(c.in[i], kElements, seed + i));
      buffers.push_back(HostArray::zeros(k.params.back().dtype, {kElements}));
      inputs.push_back(buffers);
      if (tile == kTiles[0]) {
        buffers.back() = HostArray::zeros(k.params.back().dtype, {kElements});
        run_kernel(k, buffers);
        expected.push_back(buffers);
      } else {
        expected.push_back(expected.back());
      }
    }
  }
  for (int tier : {XYLEM_JIT_TIER_QUICK, XYLEM_JIT_TIER_BEST}) {
    const Module m(kernels, tier);
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const Case& c = cases[i / tiles];
      std::vector<HostArray> buffers = inputs[i];
      buffers.back() = HostArray::zeros(kernels[i].params.back().dtype, {kElements});
      m.run(i, kernels[i], buffers);
      const std::string d = difference(buffers.back(), expected[i].back(), c.ulp);
      std::string where;
      if (!d.empty()) {
        const auto at = static_cast<std::int64_t>(std::stoll(d.substr(8)));
        const std::int64_t e = is_complex(buffers.back().dtype()) ? at / 2 : at;
        for (std::size_t j = 0; j < c.in.size(); ++j) {
          where += " operand " + std::to_string(j) + " " + dtype_name(c.in[j]) + " = " +
                   text(inputs[i][j].at(e));
          if (is_complex(c.in[j])) {
            const DType part = real_dtype(c.in[j]);
            where += " + i " + text(element_to_double(
                                   part, inputs[i][j].data() + (2 * e + 1) * dtype_bytes(part)));
          }
        }
      }
      EXPECT_EQ(d, "") << c.name << " on " << dtype_name(c.in[0]) << ", tile " << kTiles[i % tiles]
                       << ", tier " << tier << where;
    }
  }
}

class Pointwise : public testing::TestWithParam<DType> {};

TEST_P(Pointwise, EqualsInterpreter) {
  const DType t = GetParam();
  const bool integer = is_integer(t), real = is_float(t), complex = is_complex(t);
  std::vector<Case> cases;
  const auto unary = [&](const ir::OpDef& def, double ulp = 0) {
    cases.push_back(simple(def, {t}, {}, ulp));
  };
  const auto binary = [&](const ir::OpDef& def, double ulp = 0) {
    cases.push_back(simple(def, {t, t}, {}, ulp));
  };
  binary(ops::kAdd);
  binary(ops::kMultiply);
  binary(ops::kMaximum);
  binary(ops::kMinimum);
  if (t != DType::kBool) {
    binary(ops::kSubtract);
    binary(ops::kDivide, complex ? 4 : 0);
    unary(ops::kNegate);
    unary(ops::kSquare);
    if (!is_unsigned_int(t)) {
      unary(ops::kAbs, complex ? 2 : 0);
      unary(ops::kSign, complex ? 2 : 0);
    }
    if (!complex) binary(ops::kRemainder);
  }
  if (integer || t == DType::kBool) {
    binary(ops::kAnd);
    binary(ops::kOr);
    binary(ops::kXor);
    unary(ops::kNot);
  }
  if (integer) {
    binary(ops::kPower);
    binary(ops::kShiftLeft);
    binary(ops::kShiftRightLogical);
    binary(ops::kShiftRightArithmetic);
    unary(ops::kPopcnt);
    unary(ops::kCountLeadingZeros);
  }
  if (real) {
    for (const ir::OpDef* def :
         {&ops::kCeil, &ops::kFloor, &ops::kRoundNearestAfz, &ops::kRoundNearestEven, &ops::kSqrt,
          &ops::kIsFinite, &ops::kReal, &ops::kImag})
      unary(*def);
    unary(ops::kRsqrt, 2);
    for (auto [e, m] : {std::pair{5, 10}, {8, 7}, {4, 3}, {3, 2}, {1, 0}, {11, 52}})
      cases.push_back(
          simple(ops::kReducePrecision, {t}, {{"exponent_bits", e}, {"mantissa_bits", m}}));
  }
  if (complex) {
    unary(ops::kReal);
    unary(ops::kImag);
  }
  if (t == DType::kF32 || t == DType::kF64) {
    binary(ops::kComplex);
    cases.push_back(simple(ops::kKernelFma, {t, t, t}));
    cases.push_back(
        {"kernel.ldexp", {t, DType::kI32}, [](KernelBuilder& k, std::vector<KernelValue> v) {
           return k.ldexp(v[0], v[1]);
         }});
    cases.push_back(
        {"kernel.ldexp near", {t, DType::kI8}, [](KernelBuilder& k, std::vector<KernelValue> v) {
           return k.ldexp(v[0], k.one(ops::kConvert, {v[1]}, {{"result_dtype", DType::kI32}}));
         }});
  }
  for (const char* d : {"EQ", "NE", "LT", "LE", "GT", "GE"}) {
    if (complex && d[1] != 'Q' && d[1] != 'E') continue;
    if (complex && (d[0] == 'L' || d[0] == 'G')) continue;
    cases.push_back(simple(ops::kCompare, {t, t}, {{"comparison_direction", ir::EnumAttr(d)}}));
    if (real)
      cases.push_back(simple(ops::kCompare, {t, t},
                             {{"comparison_direction", ir::EnumAttr(d)},
                              {"compare_type", ir::EnumAttr("TOTALORDER")}}));
  }
  cases.push_back(simple(ops::kSelect, {DType::kBool, t, t}));
  cases.push_back(simple(ops::kClamp, {t, t, t}));
  cases.push_back({"copy", {t}, [](KernelBuilder&, std::vector<KernelValue> v) { return v[0]; }});
  check_cases(cases, 7, tiles_for(t));
}

TEST_P(Pointwise, ConvertsToEveryType) {
  const DType t = GetParam();
  std::vector<Case> cases;
  for (DType to : all_dtypes()) cases.push_back(simple(ops::kConvert, {t}, {{"result_dtype", to}}));
  if (t != DType::kBool)
    for (DType to : all_dtypes())
      if (dtype_bits(to) == dtype_bits(t) && is_complex(to) == is_complex(t) && to != DType::kBool)
        cases.push_back(simple(ops::kBitcastConvert, {t}, {{"result_dtype", to}}));
  check_cases(cases, 11, 2);
}

INSTANTIATE_TEST_SUITE_P(DTypes, Pointwise, testing::ValuesIn(all_dtypes()),
                         [](const auto& p) { return std::string(dtype_name(p.param)); });

}  // namespace
}  // namespace xylem
