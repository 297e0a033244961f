// Generators other than the default and the incomplete gamma functions against JAX
// (tests/goldens/core_random.json), and what samplers refuse.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "xylem/base/error.h"
#include "xylem/base/testing/golden.h"
#include "xylem/core/core.h"

namespace xylem {
namespace {

using random::Key;
using random::KeyImpl;
using testing::Golden;

const Golden& file() {
  static const Golden g = Golden::load("core_random.json");
  return g;
}

Array vec(std::vector<float> v) { return Array(v); }

// Floats may differ by `tolerance` relative to the value or 1.
void expect_like(const Array& got, const HostArray& want, double tolerance) {
  EXPECT_EQ(shape_string(got.dtype(), got.shape()), want.type_string());
  if (got.shape() != want.dims()) return;
  HostArray h = got.to_host();
  for (std::int64_t k = 0; k < want.size(); ++k) {
    if (is_integer(want.dtype()) || want.dtype() == DType::kBool) {
      EXPECT_EQ(h.at(k), want.at(k)) << "element " << k;
    } else if (std::isnan(want.at(k)) || std::isinf(want.at(k))) {
      EXPECT_TRUE(std::isnan(want.at(k)) ? std::isnan(h.at(k)) : h.at(k) == want.at(k))
          << h.at(k) << " is not " << want.at(k) << " at " << k;
    } else {
      EXPECT_NEAR(h.at(k), want.at(k), tolerance * std::max(1.0, std::abs(want.at(k))))
          << "element " << k;
    }
  }
}

TEST(RandomKinds, BitsKeysAndSamplesEqualJax) {
  const std::map<std::string, KeyImpl> kinds = {
      {"threefry2x32_legacy", KeyImpl::kThreefry2x32Legacy},
      {"rbg", KeyImpl::kRbg},
      {"unsafe_rbg", KeyImpl::kUnsafeRbg}};
  using Program = std::function<Array(const Key&)>;
  const std::map<std::string, Program> programs = {
      {"key", [](const Key& k) { return key_data(k); }},
      {"split", [](const Key& k) { return key_data(random::split(k)); }},
      {"split 3", [](const Key& k) { return key_data(random::split(k, 3)); }},
      {"split (2, 2)",
       [](const Key& k) {
         return key_data(random::split(k, Dims{2, 2}));
       }},
      {"fold_in 7", [](const Key& k) { return key_data(random::fold_in(k, 7)); }},
      {"bits", [](const Key& k) { return random::bits(k, {5}); }},
      {"bits (2, 3)",
       [](const Key& k) {
         return random::bits(k, {2, 3});
       }},
      {"bits u8", [](const Key& k) { return random::bits(k, {7}, DType::kU8); }},
      {"bits u16", [](const Key& k) { return random::bits(k, {5}, DType::kU16); }},
      {"bits u64", [](const Key& k) { return random::bits(k, {3}, DType::kU64); }},
      {"bits scalar", [](const Key& k) { return random::bits(k); }},
      {"uniform", [](const Key& k) { return random::uniform(k, {5}); }},
      {"normal", [](const Key& k) { return random::normal(k, {5}); }},
      {"permutation", [](const Key& k) { return random::permutation(k, 9); }},
      {"randint", [](const Key& k) { return random::randint(k, {6}, 0, 100); }},
      {"gamma",
       [](const Key& k) {
         return random::gamma(k, vec({0.4f, 3}));
       }},
      {"vmap bits", [](const Key& k) {
         return vmap([](const Key& one) { return random::bits(one, {3}); })(random::split(k, 3));
       }}};
  Golden all = file()["generators"];
  for (const std::string& name : all.keys()) {
    SCOPED_TRACE(name);
    std::size_t first = name.find(' '), second = name.find(' ', first + 1);
    KeyImpl impl = kinds.at(name.substr(0, first));
    Key key = random::key(std::stoll(name.substr(first + 1)), impl);
    try {
      expect_like(programs.at(name.substr(second + 1))(key), all[name].array(), 1e-6);
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

TEST(IncompleteGamma, ValuesAndDerivativesEqualJax) {
  Golden g = file()["gamma"];
  Array a(g["a"].array()), x(g["x"].array());
  using F = Array (*)(const ArrayArg&, const ArrayArg&);
  const std::pair<const char*, F> functions[] = {{"gammainc", special::gammainc},
                                                 {"gammaincc", special::gammaincc},
                                                 {"igamma_grad_a", lax::igamma_grad_a},
                                                 {"random_gamma_grad", lax::random_gamma_grad}};
  // JAX does not sum where x^a e^-x / Γ(a) underflows, where no sample falls.
  Array log_density = a * log(x) - x - special::gammaln(a);
  auto compare = [&](const char* name, const Array& got, const HostArray& want, double least,
                     double tolerance) {
    Array kept = got;
    if (std::string(name) == "random_gamma_grad")
      kept = where(log_density < least, Array(want), got);
    expect_like(kept, want, tolerance);
  };
  for (auto [name, f] : functions) {
    SCOPED_TRACE(name);
    compare(name, f(a, x), g[name].array(), -700, 1e-11);
    // f32's own error is that of e^(a log x - x - lgamma(a)), whose exponent may be some hundreds.
    compare(name, f(a.astype(DType::kF32), x.astype(DType::kF32)),
            g[std::string(name) + " f32"].array(), -85, 2e-4);
  }
  Array by_x = vmap(grad([](const Array& p, const Array& q) { return special::gammainc(p, q); },
                         argnums<1>))(a(idx::slice(0, 80)), x(idx::slice(0, 80)));
  expect_like(by_x, g["gammainc grad x"].array(), 1e-11);
}

Array A() { return vec({0.01f, 0.3f, 0.9f, 1, 1.5f, 4, 25, 1000}); }
Array weights() { return vec({0.1f, 0.2f, 0.3f, 0.4f}); }
Array X() { return arange(12).astype(DType::kF32).reshape({3, 4}); }

std::string message(const std::function<void()>& call) {
  try {
    call();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(RandomDistributions, RefusalsSayWhatToDo) {
  auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  Key k = random::key(0);
  has(message([&] { random::gamma(k, A(), {3}); }), "random::gamma");
  has(message([&] { random::gamma(k, 1.0, {}, DType::kI32); }), "a float dtype");
  has(message([&] { random::poisson(k, 1.0, {}, DType::kF32); }), "an integer dtype");
  has(message([&] { random::poisson(random::key(0, KeyImpl::kRbg), 1.0); }), "a threefry key");
  has(message([&] { random::dirichlet(k, 1.0); }), "a vector of concentrations");
  has(message([&] { random::ball(k, 0); }), "at least one dimension");
  has(message([&] { random::wrap_key_data(zeros({2}, DType::kU32), KeyImpl::kRbg); }), "4");
  has(message([&] { random::bits(random::split(k)); }), "a single key");
  has(message([&] { random::choice(k, X(), {9}, false); }), "Allow replacement");
  has(message([&] { random::multivariate_normal(k, zeros({3}), eye(2)); }), "covariance");
  has(message([&] { random::categorical(k, weights(), -1, {5}, {.replace = false}); }),
      "at most 4");
  // An infinite rate is never accepted; it ends all the same.
  EXPECT_EQ(random::poisson(k, std::numeric_limits<double>::infinity()).item<int>(), -1);
  EXPECT_EQ(random::gamma(k, zeros({0})).shape(), Dims{0});
}

TEST(RandomDistributions, JitAndVmapDrawTheSame) {
  Key k = random::key(5);
  Array plain = random::gamma(k, A());
  EXPECT_EQ(jit([](const Key& key, const Array& a) { return random::gamma(key, a); })(k, A())
                .to_vector<float>(),
            plain.to_vector<float>());
  Key keys = random::split(k, 4);
  Array each = vmap([](const Key& one) { return random::gamma(one, A()); })(keys);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(each[i].to_vector<float>(),
              random::gamma(random::at(keys, i), A()).to_vector<float>());
}

}  // namespace
}  // namespace xylem
