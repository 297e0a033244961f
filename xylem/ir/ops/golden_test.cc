#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

#include "xylem/ir/ops/all.h"
#include "xylem/ir/testing/op_call.h"

// Reference evaluations against values recorded from JAX (testdata/make_elementwise.py).

namespace xylem::ir::ops {
namespace {

HostArray from_hex(DType t, const std::string& hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  auto n = static_cast<std::int64_t>(bytes.size()) / dtype_bytes(t);
  return HostArray::from_bytes(t, {n}, bytes);
}

// Spacing of the floats of a type around v.
double ulp(DType t, double v) {
  const DTypeInfo& info = dtype_info(real_dtype(t));
  int exponent = v == 0 ? -10000 : std::ilogb(v);
  return std::ldexp(1.0, std::max(exponent, 1 - info.bias) - info.mantissa_bits);
}

bool subnormal(DType t, double v) {
  return v != 0 && std::isfinite(v) && std::ilogb(v) < 1 - dtype_info(real_dtype(t)).bias;
}

struct Case {
  std::string op;
  DType dtype;
  std::vector<HostArray> operands;
  HostArray expected;
};

std::vector<Case> load_cases() {
  std::ifstream file(XYLEM_SOURCE_DIR "/xylem/ir/ops/testdata/elementwise.txt");
  std::vector<Case> cases;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string op, dtype, hex;
    words >> op >> dtype;
    Case c{op, parse_dtype(dtype).value(), {}, {}};
    std::vector<std::string> arrays;
    while (words >> hex) arrays.push_back(hex);
    for (std::size_t i = 0; i + 1 < arrays.size(); ++i)
      c.operands.push_back(from_hex(c.dtype, arrays[i]));
    DType result = op == "stablehlo.is_finite"                    ? DType::kBool
                   : op == "stablehlo.abs" && is_complex(c.dtype) ? real_dtype(c.dtype)
                                                                  : c.dtype;
    c.expected = from_hex(result, arrays.back());
    cases.push_back(std::move(c));
  }
  return cases;
}

void check_real(const Case& c, const HostArray& got, double tolerance) {
  for (std::int64_t i = 0; i < got.size(); ++i) {
    double want = c.expected.at(i), have = got.at(i);
    // The CPU back end of JAX flushes subnormals, going in and coming out; here they are kept.
    bool flushed = subnormal(got.dtype(), have) || subnormal(got.dtype(), want);
    for (const HostArray& x : c.operands) flushed = flushed || subnormal(c.dtype, x.at(i));
    if (flushed) continue;
    bool same = want == have || (std::isnan(want) && std::isnan(have)) ||
                std::abs(want - have) <= tolerance * ulp(got.dtype(), want);
    std::string operands;
    for (const HostArray& x : c.operands) operands += std::to_string(x.at(i)) + " ";
    EXPECT_TRUE(same) << c.op << " " << dtype_name(c.dtype) << " of " << operands << "is " << have
                      << ", JAX gives " << want;
    if (want == 0 && have == 0) {
      EXPECT_EQ(std::signbit(want), std::signbit(have)) << c.op << " of " << operands;
    }
  }
}

void check_complex(const Case& c, const HostArray& got, double tolerance) {
  for (std::int64_t i = 0; i < got.size(); ++i) {
    std::complex<double> want = c.expected.as<std::complex<float>>()[i];
    std::complex<double> have = got.as<std::complex<float>>()[i];
    if (!std::isfinite(std::abs(want)) || !std::isfinite(std::abs(have))) continue;
    if (c.op == "chlo.sinh" && std::abs(want) < 0.01) continue;  // JAX: (e^z - e^-z) / 2
    EXPECT_LE(std::abs(want - have), tolerance * ulp(DType::kF32, std::abs(want)))
        << c.op << " of " << c.operands[0].as<std::complex<float>>()[i] << " is " << have
        << ", JAX gives " << want;
  }
}

// Where JAX is less accurate than the reference: sinh and cosh are made of exp(x + log ½), erfc
// below 1 of 1 - erf.
double tolerance_of(const OpDef& op) {
  if (&op == &kSinh || &op == &kCosh) return 32;
  if (&op == &kErfc) return 8;
  return op.is(kTranscendental) ? op.max_ulp + 2 : 0;
}

TEST(GoldenTest, ElementwiseOpsAgreeWithJax) {
  std::vector<Case> cases = load_cases();
  ASSERT_GT(cases.size(), 150u);
  for (const Case& c : cases) {
    const OpDef* op = find_op(c.op);
    ASSERT_NE(op, nullptr) << c.op;
    HostArray got = testing::eval_one(*op, c.operands);
    ASSERT_EQ(got.dtype(), c.expected.dtype()) << c.op;
    double tolerance = tolerance_of(*op);
    if (is_complex(got.dtype()))
      check_complex(c, got, tolerance + 2);
    else
      check_real(c, got, tolerance);
  }
}

// The polynomial of erf_inv decides the bits of random normals.
TEST(GoldenTest, ErfInvOfF32HasTheBitsOfJax) {
  for (const Case& c : load_cases()) {
    if (c.op != "chlo.erf_inv" || c.dtype != DType::kF32) continue;
    HostArray got = testing::eval_one(kErfInv, c.operands);
    for (std::int64_t i = 0; i < got.size(); ++i) {
      if (!std::isfinite(got.at(i))) continue;
      EXPECT_LE(std::abs(got.at(i) - c.expected.at(i)), ulp(DType::kF32, got.at(i)))
          << c.operands[0].at(i);
    }
  }
}

// rng_bit_generator ------------------------------------------------------------------------------

struct RngCase {
  const char* algorithm;
  Dims shape;
  DType dtype;
  std::uint64_t counter;  // second word of the new state
  std::vector<std::uint64_t> bits;
};

TEST(GoldenTest, RandomBitsAreThoseOfXla) {
  const std::vector<RngCase> cases = {
      {"THREE_FRY",
       {5},
       DType::kU32,
       1,
       {0x3c3b507a, 0x7093e72c, 0xa4317ba7, 0x21f1aaca, 0x5eff803d}},
      {"THREE_FRY",
       {3, 4},
       DType::kU32,
       4,
       {0x3c3b507a, 0x7093e72c, 0xa4317ba7, 0x21f1aaca, 0x5eff803d, 0x4ce380f9, 0x394bdefc,
        0x64dfd0ae, 0x523f5786, 0x4028dd8d, 0x553d0168, 0xe364850a}},
      {"THREE_FRY",
       {3, 5},
       DType::kU32,
       7,
       {0x3c3b507a, 0x7093e72c, 0xa4317ba7, 0x21f1aaca, 0x5eff803d, 0x394bdefc, 0x64dfd0ae,
        0x523f5786, 0x4028dd8d, 0x553d0168, 0x1f390015, 0xf9d09cb9, 0x81171b02, 0x41fa7d1c,
        0x8393e486}},
      {"THREE_FRY", {}, DType::kU32, ~0ull, {0x3c3b507a}},
      {"THREE_FRY",
       {3},
       DType::kU64,
       1,
       {0x7093e72c3c3b507a, 0x21f1aacaa4317ba7, 0x4ce380f95eff803d}},
      {"THREE_FRY", {2, 2}, DType::kU8, 0, {0x7a, 0xa7, 0x2c, 0xca}},
      {"THREE_FRY", {3}, DType::kU16, 0, {0x507a, 0xe72c, 0x7ba7}},
      {"PHILOX", {5}, DType::kU32, 0, {0xbbd856ff, 0xb795d4a1, 0x9db4dbb7, 0xb129d7a7, 0x583ddf1e}},
      {"PHILOX",
       {3, 4},
       DType::kU32,
       1,
       {0xbbd856ff, 0xb795d4a1, 0x9db4dbb7, 0xb129d7a7, 0x583ddf1e, 0xb3bb590c, 0xea99e9da,
        0x40230b26, 0x102d8cf3, 0x2012dc06, 0xe29031fe, 0xb33c65fe}},
      {"DEFAULT", {}, DType::kU32, ~0ull, {0xbbd856ff}},
      {"PHILOX", {3}, DType::kU64, 0, {0xb795d4a1bbd856ff, 0xb129d7a79db4dbb7, 0xb3bb590c583ddf1e}},
      {"PHILOX", {2, 2}, DType::kU8, ~0ull, {0xff, 0xa1, 0xb7, 0xa7}},
      {"DEFAULT", {3}, DType::kU16, ~0ull, {0x56ff, 0xd4a1, 0xdbb7}},
  };
  HostArray state = testing::vec<std::uint64_t>({0x123456789abcdef0, 0xfffffffffffffffe});
  for (const RngCase& c : cases) {
    auto r = testing::eval_op(
        kRngBitGenerator, {state},
        {{"rng_algorithm", EnumAttr(c.algorithm)}, {"shape", c.shape}, {"result_dtype", c.dtype}});
    EXPECT_EQ(r[0].as<std::uint64_t>()[0], 0x123456789abcdef0u);
    EXPECT_EQ(r[0].as<std::uint64_t>()[1], c.counter) << c.algorithm;
    EXPECT_EQ(r[1].astype(DType::kU64).to_vector<std::uint64_t>(), c.bits) << c.algorithm;
  }
}

}  // namespace
}  // namespace xylem::ir::ops
