// Keys, bits and samplers against what JAX gave (tests/goldens/random.json).

#include "xylem/core/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "xylem/base/testing/golden.h"
#include "xylem/core/core.h"

namespace xylem::random {
namespace {

using testing::Golden;
using testing::max_ulp;

const Golden& file() {
  static const Golden g = Golden::load("random.json");
  return g;
}

std::vector<std::uint64_t> words(const Array& a) {
  return a.to_host().astype(DType::kU64).to_vector<std::uint64_t>();
}
std::vector<std::uint64_t> words(const Golden& g) {
  std::vector<std::uint64_t> r;
  for (std::size_t i = 0; i < g.size(); ++i)
    r.push_back(static_cast<std::uint64_t>(g.at(i).number()));
  return r;
}

TEST(Keys, SeedsEqualJax) {
  Golden all = file()["seeds_x64_off"];
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto seed = static_cast<std::int64_t>(all.at(i)["seed"].number());
    EXPECT_EQ(words(key(seed).data), words(all.at(i)["key"])) << seed;
  }
  // Wider seeds keep their low 32 bits.
  EXPECT_EQ(words(key((std::int64_t{1} << 32) + 5).data), (std::vector<std::uint64_t>{0, 5}));
}

TEST(Keys, SplitFoldInAndBitsEqualJax) {
  Golden all = file()["keys"];
  for (std::size_t i = 0; i < all.size(); ++i) {
    Golden g = all.at(i);
    Key k = key(static_cast<std::int64_t>(g["seed"].number()));
    EXPECT_EQ(words(k.data), words(g["key"]));
    EXPECT_EQ(words(split(k).data), words(g["split2"]));
    EXPECT_EQ(words(split(k, 3).data), words(g["split3"]));
    EXPECT_EQ(words(split(k, {2, 2}).data), words(g["split_2x2"]));
    EXPECT_EQ(split(k, {2, 2}).data.shape(), (Dims{2, 2, 2}));
    EXPECT_EQ(words(at(split(k, 3), 2).data), words(unstack(split(k, 3))[2].data));
    for (const std::string& d : g["fold_in"].keys()) {
      auto n = static_cast<std::uint32_t>(std::stoull(d));
      EXPECT_EQ(words(fold_in(k, Array(HostArray::scalar(n))).data), words(g["fold_in"][d]));
    }
    EXPECT_EQ(words(bits(k, {5}, DType::kU8)), words(g["bits8"]));
    EXPECT_EQ(words(bits(k, {5}, DType::kU16)), words(g["bits16"]));
    EXPECT_EQ(words(bits(k, {5})), words(g["bits32"]));
    EXPECT_EQ(words(bits(k, {2, 3})), words(g["bits32_2x3"]));
    EXPECT_EQ(words(bits(k)), words(g["bits32_scalar"]));
    std::vector<std::uint64_t> wide = words(bits(k, {3}, DType::kU64));
    for (std::size_t n = 0; n < 3; ++n)
      EXPECT_EQ(wide[n], std::stoull(g["bits64_hex"].at(n).str(), nullptr, 16));
  }
}

TEST(Keys, NegativeDataFoldsAsItsTwosComplement) {
  Key k = key(7);
  EXPECT_EQ(words(fold_in(k, -1).data),
            words(fold_in(k, Array(HostArray::scalar(std::uint32_t{0xffffffff}))).data));
}

TEST(Keys, MapOverAnArrayOfKeys) {
  Key ks = split(key(3), 4);
  Array mapped = vmap([](const Key& k) { return bits(k, {2}); })(ks);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(words(mapped[i]), words(bits(at(ks, i), {2})));
}

// One recorded call; an undefined array for samplers that are not offered.
Array draw(const Golden& g) {
  std::string op = g["op"].str();
  Golden args = g["args"];
  Key k = key(static_cast<std::int64_t>(g["seed"].number()));
  Dims shape;
  if (args.has("shape"))
    for (std::size_t i = 0; i < args["shape"].size(); ++i)
      shape.push_back(static_cast<std::int64_t>(args["shape"].at(i).number()));
  HostArray out = g["out"].array();
  DType t = out.dtype();
  auto real = [&](const char* name, double otherwise) {
    return args.has(name) ? args[name].number() : otherwise;
  };
  if (args.has("mode")) return {};
  if (op == "uniform") return uniform(k, shape, t, real("minval", 0), real("maxval", 1));
  if (op == "normal") return normal(k, shape, t);
  if (op == "truncated_normal")
    return truncated_normal(k, args["lower"].number(), args["upper"].number(), shape, t);
  if (op == "gumbel") return gumbel(k, shape, t);
  if (op == "exponential") return exponential(k, shape, t);
  if (op == "randint") {
    bool wide = dtype_bits(t) == 64;
    auto bound = [&](const char* name) {
      double v = args[name].number();
      // The largest i64 is not a double.
      if (v >= 0x1p63) return Array(HostArray::scalar(INT64_MAX));
      HostArray h = HostArray::scalar(static_cast<std::int64_t>(v));
      return Array(wide || t == DType::kU32 ? h : h.astype(DType::kI32));
    };
    return randint(k, shape, bound("minval"), bound("maxval"), t);
  }
  if (op == "bernoulli") {
    Golden p = args["p"];
    if (p.size() > 1) {
      std::vector<float> v;
      for (std::size_t i = 0; i < p.size(); ++i) v.push_back(static_cast<float>(p.at(i).number()));
      return bernoulli(k, Array(v));
    }
    bool x64 = g["x64"].flag();
    return bernoulli(k, full({}, p.number(), x64 ? DType::kF64 : DType::kF32), shape);
  }
  if (op == "permutation") {
    Golden x = args["x"];
    auto axis = static_cast<int>(real("axis", 0));
    if (x.size() > 1)
      return permutation(k, arange(12).reshape({4, 3}), axis, args.has("independent"));
    Array p = permutation(k, static_cast<std::int64_t>(x.number()));
    return g.has("head") ? lax::slice(p, {0}, {20}) : p;
  }
  if (op == "categorical" && !args.has("replace")) {
    std::string name = args["logits"].str();
    Array logits = name == "zeros[3,4]"        ? zeros({3, 4})
                   : name == "zeros[6]"        ? zeros({6})
                   : name == "[-inf 0 -inf 0]" ? array({-INFINITY, 0, -INFINITY, 0})
                                               : log(array({.1, .2, .3, .4}));
    auto axis = static_cast<int>(real("axis", -1));
    return args.has("shape") ? categorical(k, logits, axis, shape) : categorical(k, logits, axis);
  }
  return {};
}

// In units of the last place. A Gumbel variable crosses zero at a logarithm's zero, where neither
// side has relative precision: units of 1 there. Double-precision erf_inv has a bound of 5 in JAX.
double error(const std::string& op, const Array& got, const HostArray& want) {
  if (op == "gumbel") {
    Array w(want);
    Array safe = where(abs(w) < 1, 1, w);
    return max_ulp((got + (safe - w)).to_host(), safe.to_host());
  }
  return max_ulp(got.to_host(), want) / (want.dtype() == DType::kF64 ? 2.5 : 1);
}

TEST(Samplers, EqualJax) {
  Golden all = file()["samplers"];
  std::set<std::string> missing;
  int compared = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Golden g = all.at(i);
    Array got = draw(g);
    if (!got.defined()) {
      missing.insert(g["op"].str());
      continue;
    }
    ++compared;
    HostArray want = g["out"].array();
    std::string what = g["op"].str() + " " + want.type_string() + ", record " + std::to_string(i);
    ASSERT_EQ(got.type_string(), want.type_string()) << what;
    bool exact =
        !is_float(want.dtype()) || (g["op"].str() == "uniform" && !g["args"].has("minval"));
    if (exact)
      EXPECT_TRUE(got.to_host().bit_equal(want)) << what;
    else
      EXPECT_LE(error(g["op"].str(), got, want), 2) << what;
  }
  EXPECT_GE(compared, 170);
  // Modes of the offered ones and sampling without replacement are among the absent.
  EXPECT_EQ(missing, (std::set<std::string>{"bernoulli", "categorical", "cauchy", "choice",
                                            "gumbel", "laplace", "logistic", "rademacher"}));
}

TEST(Samplers, LargeDrawsEqualJax) {
  Golden g = file()["large"];
  std::vector<std::uint64_t> b = words(bits(key(0), {1000000}));
  std::uint64_t sum = 0, parity = 0;
  for (std::uint64_t w : b) sum += w, parity ^= w;
  Golden want = g["bits32[1000000]"];
  EXPECT_EQ(static_cast<double>(sum), want["sum"].number());
  EXPECT_EQ(static_cast<double>(parity), want["xor"].number());
  EXPECT_EQ(static_cast<double>(b.back()), want["last"].number());
  for (std::int64_t n : {1000, 10000}) {
    std::vector<std::uint64_t> p = words(permutation(key(0), n));
    double weighted = 0;
    for (std::size_t i = 0; i < p.size(); ++i) weighted += static_cast<double>(i * p[i]);
    Golden r = g["permutation(" + std::to_string(n) + ")"];
    EXPECT_EQ(weighted, r["sum_of_i_times_p_i"].number());
    p.resize(8);
    EXPECT_EQ(p, words(r["head"]));
  }
}

TEST(Samplers, GiveTheSameUnderJit) {
  Key k = key(42);
  auto same = [&](auto f) { EXPECT_TRUE(jit(f)(k).to_host().bit_equal(f(k).to_host())); };
  same([](const Key& x) { return normal(x, {33}); });
  same([](const Key& x) { return uniform(x, {33}, DType::kBF16); });
  same([](const Key& x) { return randint(x, {33}, 0, 1000); });
  same([](const Key& x) { return permutation(x, 50); });
  same([](const Key& x) { return categorical(x, zeros({4, 7})); });
}

TEST(Samplers, RandintReachesTheLargestNumberByABoundPastIt) {
  // JAX: random.randint(random.key(0), (3,), 2147483646, 2147483648) in 64-bit mode.
  Array past(HostArray::scalar(std::int64_t{1} << 31));
  std::vector<std::int32_t> v = randint(key(0), {64}, 2147483646, past).to_vector<std::int32_t>();
  std::set<std::int32_t> seen(v.begin(), v.end());
  EXPECT_EQ(seen, (std::set<std::int32_t>{2147483646, 2147483647}));
}

TEST(Samplers, RefuseWhatTheyCannotDraw) {
  Key k = key(0);
  EXPECT_THROW(uniform(k, {2}, DType::kI32), UserError);
  EXPECT_THROW(randint(k, {2}, 0, 3, DType::kF32), UserError);
  EXPECT_THROW(bits(k, {2}, DType::kI32), UserError);
  EXPECT_THROW(bits(split(k), {2}), UserError);
  EXPECT_THROW(categorical(k, zeros({3, 4}), -1, {2}), UserError);
  EXPECT_THROW(permutation(k, zeros({3}), 1), UserError);
}

}  // namespace
}  // namespace xylem::random
