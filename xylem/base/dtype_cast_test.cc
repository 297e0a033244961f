#include "xylem/base/dtype_cast.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "xylem/base/float_codec.h"
#include "xylem/base/float_types.h"

namespace xylem {
namespace {

using nlohmann::json;

json read_golden(const std::string& name) {
  std::ifstream in(std::string(XYLEM_SOURCE_DIR) + "/tests/goldens/" + name);
  EXPECT_TRUE(in.good()) << name;
  return json::parse(in);
}

// Fixed-width hexadecimal numbers of `digits` digits each.
std::vector<std::uint64_t> parse_hex(const std::string& s, std::size_t digits) {
  std::vector<std::uint64_t> out;
  for (std::size_t i = 0; i + digits <= s.size(); i += digits)
    out.push_back(std::stoull(s.substr(i, digits), nullptr, 16));
  return out;
}

template <class T>
T convert_one(DType from, auto value, DType to) {
  T out{};
  convert_elements(from, &value, to, &out, 1);
  return out;
}

// Code of a float given by its bits, of f32 or f64, in type `to`.
std::uint64_t encode_bits(std::uint64_t bits, bool f64, DType to) {
  std::uint64_t code = 0;
  if (f64) {
    convert_elements(DType::kF64, &bits, to, &code, 1);
  } else {
    const auto b = static_cast<std::uint32_t>(bits);
    convert_elements(DType::kF32, &b, to, &code, 1);
  }
  return code;
}

bool is_nan_bits(std::uint32_t b) { return (b & 0x7fffffffu) > 0x7f800000u; }

std::vector<DType> narrow_floats() {
  std::vector<DType> out;
  for (int i = 0; i < kNumDTypes; ++i)
    if (is_float(static_cast<DType>(i)) && dtype_bits(static_cast<DType>(i)) <= 16)
      out.push_back(static_cast<DType>(i));
  return out;
}

TEST(DTypeCastTest, EveryCodeOfTheNarrowFloatsDecodesAsInMlDtypes) {
  const json golden = read_golden("dtypes_narrow.json");
  ASSERT_EQ(golden["floats"].size(), 11u);
  for (const auto& [name, g] : golden["floats"].items()) {
    const DType t = parse_dtype(name).value();
    const auto want = parse_hex(g["to_f32"], 8);
    ASSERT_EQ(want.size(), 1u << dtype_bits(t)) << name;
    for (std::size_t code = 0; code < want.size(); ++code) {
      const auto c = static_cast<std::uint8_t>(code);
      const auto got = convert_one<std::uint32_t>(t, c, DType::kF32);
      const auto w = static_cast<std::uint32_t>(want[code]);
      if (is_nan_bits(w))
        EXPECT_TRUE(is_nan_bits(got)) << name << " " << code;
      else
        EXPECT_EQ(got, w) << name << " " << code;
    }
  }
}

// The golden holds the bits at which the code changes, which is the whole conversion: both ends of
// every interval are checked, and points inside.
void check_intervals(const std::string& name, const json& g, bool f64) {
  const DType t = parse_dtype(name).value();
  std::mt19937_64 random(1);
  for (const char* sign : {"positive", "negative"}) {
    const std::uint64_t sign_bit = sign[0] == 'n' ? (f64 ? 1ull << 63 : 1ull << 31) : 0;
    const auto first = parse_hex(g[sign]["first"], f64 ? 16 : 8);
    const auto code = parse_hex(g[sign]["code"], 2);
    ASSERT_EQ(first.size(), code.size());
    const std::uint64_t infinity = f64 ? 0x7ff0000000000000ull : 0x7f800000ull;
    for (std::size_t i = 0; i < first.size(); ++i) {
      const std::uint64_t last = i + 1 < first.size() ? first[i + 1] - 1 : infinity;
      std::vector<std::uint64_t> points = {first[i], last};
      for (int k = 0; k < 8; ++k) points.push_back(first[i] + random() % (last - first[i] + 1));
      for (std::uint64_t p : points)
        ASSERT_EQ(encode_bits(p | sign_bit, f64, t), code[i])
            << name << " " << sign << (f64 ? " f64 " : " f32 ") << std::hex << p;
    }
  }
}

TEST(DTypeCastTest, EveryFloatEncodesToTheNarrowFloatsAsInMlDtypes) {
  const json golden = read_golden("dtypes_narrow.json");
  for (const auto& [name, g] : golden["floats"].items()) {
    check_intervals(name, g["from_f32"], false);
    check_intervals(name, g["from_f64"], true);
    const DType t = parse_dtype(name).value();
    const auto input = parse_hex(g["from_f32_nan"]["input"], 8);
    const auto code = parse_hex(g["from_f32_nan"]["code"], 2);
    for (std::size_t i = 0; i < input.size(); ++i) {
      const std::uint64_t got = encode_bits(input[i], false, t);
      // The sign of a NaN is free.
      const std::uint64_t sign = t == DType::kF8E8M0FNU ? 0 : 1u << (dtype_bits(t) - 1);
      EXPECT_EQ(got | sign, code[i] | sign) << name << " " << i;
    }
  }
}

TEST(DTypeCastTest, NarrowIntegersWrapAndTruncateAsInMlDtypes) {
  const json golden = read_golden("dtypes_narrow.json");
  ASSERT_EQ(golden["integers"].size(), 4u);
  for (const auto& [name, g] : golden["integers"].items()) {
    const DType t = parse_dtype(name).value();
    const std::vector<std::int32_t> values = g["to_i32"];
    for (std::size_t c = 0; c < values.size(); ++c) {
      EXPECT_EQ(convert_one<std::int32_t>(t, static_cast<std::uint8_t>(c), DType::kI32), values[c]);
      // High bits are ignored.
      EXPECT_EQ(convert_one<std::int32_t>(t, static_cast<std::uint8_t>(c | 0xf0), DType::kI32),
                values[c]);
    }
    const std::vector<std::int32_t> ints = g["from_i32"]["input"];
    const std::vector<int> codes = g["from_i32"]["code"];
    for (std::size_t i = 0; i < ints.size(); ++i)
      EXPECT_EQ(convert_one<std::uint8_t>(DType::kI32, ints[i], t), codes[i]) << name << ints[i];
    const std::vector<float> floats = g["from_f32"]["input"];
    const std::vector<int> float_codes = g["from_f32"]["code"];
    for (std::size_t i = 0; i < floats.size(); ++i)
      EXPECT_EQ(convert_one<std::uint8_t>(DType::kF32, floats[i], t), float_codes[i]) << name;
  }
}

TEST(DTypeCastTest, HalfPrecisionTypesAgreeWithTheRecordedConversions) {
  const json golden = read_golden("dtypes_half.json");
  for (const char* name : {"f16", "bf16"}) {
    const DType t = parse_dtype(name).value();
    const json& g = golden["types"][name];
    const auto codes = parse_hex(g["to_f32"]["code"], 4);
    const auto values = parse_hex(g["to_f32"]["value"], 8);
    ASSERT_EQ(codes.size(), values.size());
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const auto got =
          convert_one<std::uint32_t>(t, static_cast<std::uint16_t>(codes[i]), DType::kF32);
      const auto want = static_cast<std::uint32_t>(values[i]);
      EXPECT_TRUE(got == want || (is_nan_bits(got) && is_nan_bits(want)))
          << name << " " << codes[i];
    }
    for (bool f64 : {false, true}) {
      const json& from = g[f64 ? "from_f64" : "from_f32"];
      const auto input = parse_hex(from["input"], f64 ? 16 : 8);
      const auto code = parse_hex(from["code"], 4);
      ASSERT_EQ(input.size(), code.size());
      for (std::size_t i = 0; i < input.size(); ++i)
        EXPECT_EQ(encode_bits(input[i], f64, t), code[i]) << name << " " << std::hex << input[i];
    }
  }
}

// Every code decodes to what sign, exponent and mantissa mean.
TEST(DTypeCastTest, AllCodesOfHalfTypesDecodeByTheirFormula) {
  for (DType t : {DType::kF16, DType::kBF16}) {
    const DTypeInfo& info = dtype_info(t);
    for (int code = 0; code < 65536; ++code) {
      const auto got = convert_one<double>(t, static_cast<std::uint16_t>(code), DType::kF64);
      const int mantissa = code & ((1 << info.mantissa_bits) - 1);
      const int exponent = code >> info.mantissa_bits & ((1 << info.exponent_bits) - 1);
      const double sign = code >> 15 ? -1 : 1;
      if (exponent == (1 << info.exponent_bits) - 1) {
        if (mantissa)
          EXPECT_TRUE(std::isnan(got));
        else
          EXPECT_EQ(got, sign * std::numeric_limits<double>::infinity());
        continue;
      }
      const double want =
          sign * std::ldexp(mantissa + (exponent ? 1 << info.mantissa_bits : 0),
                            (exponent ? exponent : 1) - info.bias - info.mantissa_bits);
      ASSERT_EQ(got, want) << info.name << " " << code;
      ASSERT_EQ(std::signbit(got), std::signbit(want));
    }
  }
}

TEST(DTypeCastTest, EveryFiniteCodeRoundTripsThroughF32AndF64) {
  for (DType t : narrow_floats()) {
    for (std::uint32_t code = 0; code < 1u << dtype_bits(t); ++code) {
      std::uint16_t in = static_cast<std::uint16_t>(code);
      float f;
      double d;
      std::uint16_t back32 = 0;
      std::uint16_t back64 = 0;
      convert_elements(t, &in, DType::kF32, &f, 1);
      convert_elements(t, &in, DType::kF64, &d, 1);
      convert_elements(DType::kF32, &f, t, &back32, 1);
      convert_elements(DType::kF64, &d, t, &back64, 1);
      if (f != f) continue;
      EXPECT_EQ(back32, code) << dtype_name(t);
      EXPECT_EQ(back64, code) << dtype_name(t);
    }
  }
}

TEST(DTypeCastTest, FormatsAgreeWithTheDTypeTable) {
  for (DType t : narrow_floats()) {
    const auto f = float_format(t);
    EXPECT_EQ(f.exponent_bits, dtype_info(t).exponent_bits);
    EXPECT_EQ(f.mantissa_bits, dtype_info(t).mantissa_bits);
    EXPECT_EQ(f.bias, dtype_info(t).bias);
    EXPECT_EQ(f.width(), dtype_bits(t));
  }
}

TEST(DTypeCastTest, LargeIntegersRoundOnce) {
  // Above a half-way point by less than f64 or f32 resolve: rounding twice would go down to even.
  const std::int64_t v = (std::int64_t{1} << 62) + (std::int64_t{1} << 54) + 1;
  EXPECT_EQ(convert_one<std::uint16_t>(DType::kI64, v, DType::kBF16), 0x5e81);
  EXPECT_EQ(convert_one<std::uint16_t>(DType::kI64, v - 1, DType::kBF16), 0x5e80);
  EXPECT_EQ(convert_one<std::uint16_t>(DType::kI64, -v, DType::kBF16), 0xde81);
  EXPECT_EQ(convert_one<std::uint16_t>(DType::kI32, 65519, DType::kF16), 0x7bff);
  EXPECT_EQ(convert_one<std::uint16_t>(DType::kI32, 65520, DType::kF16), 0x7c00);
  EXPECT_EQ(convert_one<std::uint16_t>(DType::kI64, std::numeric_limits<std::int64_t>::min(),
                                       DType::kBF16),
            0xdf00);
  EXPECT_EQ(convert_one<std::uint16_t>(DType::kU64, ~std::uint64_t{0}, DType::kBF16), 0x5f80);
  EXPECT_EQ(convert_one<float>(DType::kI64, (std::int64_t{1} << 60) + (1ll << 36) + 1, DType::kF32),
            std::ldexp(1.0f, 60) + std::ldexp(1.0f, 37));
  EXPECT_EQ(convert_one<std::uint8_t>(DType::kI64, std::int64_t{464}, DType::kF8E4M3FN), 0x7e);
  EXPECT_EQ(convert_one<std::uint8_t>(DType::kI64, std::int64_t{465}, DType::kF8E4M3FN), 0x7f);
  EXPECT_EQ(convert_one<std::uint8_t>(DType::kI64, std::int64_t{61440}, DType::kF8E5M2), 0x7c);
  EXPECT_EQ(convert_one<std::uint8_t>(DType::kI64, std::int64_t{0}, DType::kF8E8M0FNU), 0xff);
}

TEST(DTypeCastTest, F64RoundsOnceToHalfTypes) {
  EXPECT_EQ(convert_one<std::uint16_t>(DType::kF64, 1 + 0x1p-8 + 0x1p-40, DType::kBF16), 0x3f81);
  EXPECT_EQ(convert_one<std::uint16_t>(DType::kF64, 1 + 0x1p-11 + 0x1p-40, DType::kF16), 0x3c01);
  EXPECT_EQ(convert_one<std::uint16_t>(DType::kF64, 0x1p-25, DType::kF16), 0);
  EXPECT_EQ(convert_one<std::uint16_t>(DType::kF64, 0x1p-25 + 0x1p-70, DType::kF16), 1);
}

TEST(DTypeCastTest, FloatsTruncateAndSaturateToIntegers) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  struct Row {
    double x;
    int i8, u8, i4, u4, i2;
    std::int64_t i64;
    std::uint64_t u64;
  };
  const std::int64_t lo = std::numeric_limits<std::int64_t>::min();
  const std::int64_t hi = std::numeric_limits<std::int64_t>::max();
  const std::uint64_t top = std::numeric_limits<std::uint64_t>::max();
  const Row rows[] = {
      {nan, 0, 0, 0, 0, 0, 0, 0},
      {inf, 127, 255, 7, 15, 1, hi, top},
      {-inf, -128, 0, -8, 0, -2, lo, 0},
      {3.99, 3, 3, 3, 3, 1, 3, 3},
      {-3.99, -3, 0, -3, 0, -2, -3, 0},
      {-0.99, 0, 0, 0, 0, 0, 0, 0},
      {127.99, 127, 127, 7, 15, 1, 127, 127},
      {1e30, 127, 255, 7, 15, 1, hi, top},
      {0x1p63, 127, 255, 7, 15, 1, hi, std::uint64_t{1} << 63},
      {-0x1p63, -128, 0, -8, 0, -2, lo, 0},
      {0x1p64, 127, 255, 7, 15, 1, hi, top},
  };
  const auto as_int = [](DType t, double x) {
    return convert_one<std::int32_t>(t, convert_one<std::uint8_t>(DType::kF64, x, t), DType::kI32);
  };
  for (const Row& r : rows) {
    EXPECT_EQ(as_int(DType::kI8, r.x), r.i8) << r.x;
    EXPECT_EQ(as_int(DType::kU8, r.x), r.u8) << r.x;
    EXPECT_EQ(as_int(DType::kI4, r.x), r.i4) << r.x;
    EXPECT_EQ(as_int(DType::kU4, r.x), r.u4) << r.x;
    EXPECT_EQ(as_int(DType::kI2, r.x), r.i2) << r.x;
    EXPECT_EQ(convert_one<std::int64_t>(DType::kF64, r.x, DType::kI64), r.i64) << r.x;
    EXPECT_EQ(convert_one<std::uint64_t>(DType::kF64, r.x, DType::kU64), r.u64) << r.x;
  }
}

TEST(DTypeCastTest, BooleansAreZeroAndOneAndNaNIsTrue) {
  EXPECT_EQ(convert_one<float>(DType::kBool, std::uint8_t{1}, DType::kF32), 1.0f);
  EXPECT_EQ(convert_one<std::int64_t>(DType::kBool, std::uint8_t{255}, DType::kI64), 1);
  EXPECT_EQ(convert_one<std::uint8_t>(DType::kF32, std::nanf(""), DType::kBool), 1);
  EXPECT_EQ(convert_one<std::uint8_t>(DType::kF32, -0.0f, DType::kBool), 0);
  EXPECT_EQ(convert_one<std::uint8_t>(DType::kF64, 5e-324, DType::kBool), 1);
  EXPECT_EQ(convert_one<std::uint8_t>(DType::kI64, std::int64_t{1} << 40, DType::kBool), 1);
  EXPECT_EQ(convert_one<std::uint8_t>(DType::kI4, std::uint8_t{0xf0}, DType::kBool), 0);
}

TEST(DTypeCastTest, IntegersWrap) {
  EXPECT_EQ(convert_one<std::int8_t>(DType::kI32, 200, DType::kI8), -56);
  EXPECT_EQ(convert_one<std::uint8_t>(DType::kI64, std::int64_t{-1}, DType::kU8), 255);
  EXPECT_EQ(convert_one<std::int32_t>(DType::kU64, std::uint64_t{1} << 31, DType::kI32),
            std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(convert_one<std::uint64_t>(DType::kI8, std::int8_t{-1}, DType::kU64),
            ~std::uint64_t{0});
}

TEST(DTypeCastTest, ComplexDropsTheImaginaryPartAndRealGainsZero) {
  const float z[4] = {1.5f, 2, -3, 4};
  std::int32_t ints[2];
  convert_elements(DType::kC64, z, DType::kI32, ints, 2);
  EXPECT_EQ(ints[0], 1);
  EXPECT_EQ(ints[1], -3);
  double wide[4];
  convert_elements(DType::kC64, z, DType::kC128, wide, 2);
  EXPECT_EQ(wide[3], 4);
  std::vector<std::int16_t> many(1000);
  for (int i = 0; i < 1000; ++i) many[static_cast<std::size_t>(i)] = static_cast<std::int16_t>(i);
  std::vector<float> c(2000, 7);
  convert_elements(DType::kI16, many.data(), DType::kC64, c.data(), 1000);
  EXPECT_EQ(c[2 * 999], 999);
  EXPECT_EQ(c[2 * 999 + 1], 0);
}

// The quick loops of common pairs against the general way through f64.
TEST(DTypeCastTest, LongRunsAgreeWithSingleElementsForEveryPair) {
  std::mt19937_64 random(7);
  for (int a = 0; a < kNumDTypes; ++a) {
    for (int b = 0; b < kNumDTypes; ++b) {
      const auto from = static_cast<DType>(a);
      const auto to = static_cast<DType>(b);
      if (from == DType::kFloat0 || to == DType::kFloat0) continue;
      const std::size_t n = 1100;
      const auto fb = static_cast<std::size_t>(dtype_bytes(from));
      const auto tb = static_cast<std::size_t>(dtype_bytes(to));
      std::vector<std::byte> src(n * fb);
      for (auto& x : src) x = static_cast<std::byte>(random());
      std::vector<std::byte> run(n * tb);
      std::vector<std::byte> single(n * tb);
      convert_elements(from, src.data(), to, run.data(), static_cast<std::int64_t>(n));
      for (std::size_t i = 0; i < n; ++i)
        convert_elements(from, src.data() + i * fb, to, single.data() + i * tb, 1);
      EXPECT_EQ(run, single) << dtype_name(from) << " " << dtype_name(to);
    }
  }
}

#if defined(__SSE2__)
TEST(DTypeCastTest, FlushToZeroAndRoundingModeOfTheThreadChangeNothing) {
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(saved | 0x8040 | 0x2000);  // FTZ, DAZ, round down
  const auto half = convert_one<std::uint16_t>(DType::kF32, 0x1p-24f, DType::kF16);
  const auto wide = convert_one<double>(DType::kF32, 0x1p-140f, DType::kF64);
  const auto back = convert_one<std::uint32_t>(DType::kF64, 0x1.8p-149, DType::kF32);
  const auto near = convert_one<float>(DType::kF64, 1 + 0x1.8p-24, DType::kF32);
  const unsigned after = _mm_getcsr();
  _mm_setcsr(saved);
  EXPECT_EQ(half, 1);
  EXPECT_EQ(wide, 0x1p-140);
  EXPECT_EQ(back, 2u);
  EXPECT_EQ(near, 1 + 0x1p-23f);
  EXPECT_EQ(after & 0xe040, (saved | 0x8040 | 0x2000) & 0xe040);
}
#endif

TEST(FloatTypesTest, ScalarsConvertLikeArrays) {
  EXPECT_EQ(bf16(1.0f).bits, 0x3f80);
  EXPECT_EQ(f16(65520.0).bits, 0x7c00);
  EXPECT_EQ(static_cast<float>(f8e4m3fn(464.0f)), 448.0f);
  EXPECT_EQ(static_cast<double>(f8e5m2(1e9)), std::numeric_limits<double>::infinity());
  EXPECT_EQ(static_cast<float>(f4e2m1fn(100.0f)), 6.0f);
  EXPECT_EQ(static_cast<int>(i4(9)), -7);
  EXPECT_EQ(static_cast<int>(u2(-1)), 3);
  EXPECT_TRUE(bf16(0.0f) == bf16(-0.0f));
  EXPECT_FALSE(bf16(std::nanf("")) == bf16(std::nanf("")));
  std::mt19937 random(3);
  for (int i = 0; i < 200000; ++i) {
    const std::uint32_t bits = random();
    const auto f = std::bit_cast<float>(bits);
    if (f != f) continue;
    ASSERT_EQ(f16(f).bits, f16(static_cast<double>(f)).bits) << bits;
    ASSERT_EQ(bf16(f).bits, bf16(static_cast<double>(f)).bits) << bits;
  }
}

TEST(DTypeTest, NamesParseInEverySpelling) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto t = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(dtype_name(t)), t);
    EXPECT_EQ(parse_dtype(dtype_info(t).numpy_name), t);
  }
  EXPECT_EQ(parse_dtype("complex<f32>"), DType::kC64);
  EXPECT_EQ(parse_dtype("u8"), DType::kU8);
  EXPECT_EQ(parse_dtype("f12"), std::nullopt);
  EXPECT_EQ(real_dtype(DType::kC128), DType::kF64);
  EXPECT_EQ(complex_dtype(DType::kF32), DType::kC64);
}

}  // namespace
}  // namespace xylem
