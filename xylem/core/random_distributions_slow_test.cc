// Samplers with parameters and their gradients against JAX (tests/goldens/core_random.json), and
// against their distribution functions.

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
using testing::Golden;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

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

using Sampler = std::function<Array(const Key&)>;
using Samplers = std::map<std::string, Sampler>;

Array A() { return vec({0.01f, 0.3f, 0.9f, 1, 1.5f, 4, 25, 1000}); }
Array B() { return vec({2, 0.5f, 0.9f, 1, 7.5f, 4, 3, 10}); }
Array tail(const Array& x) { return x(idx::slice(1, idx::none)); }
Array rates() { return vec({0, 0.5f, 3, 9.99f, 10, 55, 1e4f, kNaN}); }
Array weights() { return vec({0.1f, 0.2f, 0.3f, 0.4f}); }
Array X() { return arange(12).astype(DType::kF32).reshape({3, 4}); }

void add_gammas(Samplers& s) {
  using namespace random;
  s["gamma"] = [](const Key& k) { return random::gamma(k, A()); };
  s["gamma shape"] = [](const Key& k) { return random::gamma(k, A(), {3, 8}); };
  s["gamma scalar"] = [](const Key& k) { return random::gamma(k, 2.5, {40}); };
  s["gamma bf16"] = [](const Key& k) {
    return random::gamma(k, A()(idx::slice(2, idx::none)), {}, DType::kBF16);
  };
  s["gamma gradient"] = [](const Key& k) {
    return vmap(grad([&](const Array& v) { return random::gamma(k, v); }))(tail(A()));
  };
  s["gamma vjp"] = [](const Key& k) {
    return grad([&](const Array& v) { return sum(sin(random::gamma(k, v, {3, 8}))); })(A());
  };
  s["loggamma"] = [](const Key& k) { return loggamma(k, A()); };
  s["loggamma small"] = [](const Key& k) { return loggamma(k, vec({1e-3f, 1e-5f, 1e-8f})); };
  s["loggamma gradient"] = [](const Key& k) {
    return grad([&](const Array& v) { return sum(loggamma(k, v)); })(tail(A()));
  };
  s["beta"] = [](const Key& k) { return beta(k, A(), B()); };
  s["beta gradient"] = [](const Key& k) {
    return grad([&](const Array& u, const Array& v) { return sum(beta(k, u, v)); })(tail(A()),
                                                                                    tail(B()));
  };
  s["dirichlet"] = [](const Key& k) { return dirichlet(k, A()(idx::slice(1, 5))); };
  s["dirichlet shape"] = [](const Key& k) { return dirichlet(k, B()(idx::slice(0, 3)), {4}); };
  s["dirichlet batch"] = [](const Key& k) {
    return dirichlet(k, stack({B()(idx::slice(0, 3)), A()(idx::slice(1, 4))}));
  };
  s["chisquare"] = [](const Key& k) { return chisquare(k, A() * 2); };
  s["f"] = [](const Key& k) { return random::f(k, A() + 1, B()); };
  s["t"] = [](const Key& k) { return random::t(k, B()); };
  s["t shape"] = [](const Key& k) { return random::t(k, 3.0, {2, 5}); };
}

void add_counts(Samplers& s) {
  using namespace random;
  s["poisson"] = [](const Key& k) { return poisson(k, rates()); };
  s["poisson shape"] = [](const Key& k) { return poisson(k, 4.0, {30}); };
  s["poisson large"] = [](const Key& k) { return poisson(k, 30.0, {30}); };
  s["poisson i16"] = [](const Key& k) {
    return poisson(k, rates()(idx::slice(0, 6)), {}, DType::kI16);
  };
  s["binomial"] = [](const Key& k) {
    return binomial(k, vec({0, 3, 10, 40, 100, 1000, -1, kNaN, 1000}),
                    vec({0.5f, 0.2f, 0.9f, 0.1f, 0.5f, 0.7f, 0.5f, 0.5f, kNaN}));
  };
  s["binomial shape"] = [](const Key& k) { return binomial(k, 7, 0.3, {30}); };
  s["binomial large"] = [](const Key& k) { return binomial(k, 90.0, 0.4, {30}); };
  s["multinomial"] = [](const Key& k) { return multinomial(k, 20, weights()); };
  s["multinomial shape"] = [](const Key& k) { return multinomial(k, 50.0, weights(), {3, 4}); };
  s["geometric"] = [](const Key& k) { return geometric(k, vec({0.9f, 0.5f, 0.1f, 0.01f, 1})); };
  s["geometric shape"] = [](const Key& k) { return geometric(k, 0.3, {20}); };
}

void add_others(Samplers& s) {
  using namespace random;
  s["wald"] = [](const Key& k) { return wald(k, B()); };
  s["wald shape"] = [](const Key& k) { return wald(k, 1.5, {20}); };
  s["triangular"] = [](const Key& k) { return triangular(k, -1.0, 0.5, 3.0, {20}); };
  s["triangular arrays"] = [](const Key& k) { return triangular(k, -A(), A(), A() + B()); };
  s["maxwell"] = [](const Key& k) { return maxwell(k, {2, 5}); };
  s["double_sided_maxwell"] = [](const Key& k) { return double_sided_maxwell(k, 1.0, 2.0, {9}); };
  s["double_sided_maxwell arrays"] = [](const Key& k) {
    return double_sided_maxwell(k, A()(idx::slice(0, 2)), B()(idx::slice(0, 2)), {3});
  };
  s["generalized_normal"] = [](const Key& k) { return generalized_normal(k, 1.5, {9}); };
  s["ball"] = [](const Key& k) { return ball(k, 3, 2, {5}); };
  s["ball 1"] = [](const Key& k) { return ball(k, 2, 1.0, {4}); };
  s["ball of one"] = [](const Key& k) { return ball(k, 4); };
  s["weibull_min"] = [](const Key& k) { return weibull_min(k, 2.0, 1.5, {9}); };
  s["pareto"] = [](const Key& k) { return pareto(k, 2.5, {9}); };
  s["rayleigh"] = [](const Key& k) { return rayleigh(k, 2.0, {9}); };
  s["cauchy"] = [](const Key& k) { return cauchy(k, {9}); };
  s["logistic"] = [](const Key& k) { return logistic(k, {9}); };
  s["lognormal"] = [](const Key& k) { return lognormal(k, 0.7, {9}); };
  s["laplace"] = [](const Key& k) { return laplace(k, {9}); };
  s["rademacher"] = [](const Key& k) { return rademacher(k, {9}); };
  s["bernoulli high"] = [](const Key& k) { return bernoulli(k, 0.3, {30}, Mode::kHigh); };
  s["gumbel high"] = [](const Key& k) { return gumbel(k, {20}, DType::kF32, Mode::kHigh); };
  s["categorical high"] = [](const Key& k) {
    return categorical(k, log(weights()), -1, {20}, {.mode = Mode::kHigh});
  };
  s["categorical no replacement"] = [](const Key& k) {
    return categorical(k, log(weights()), -1, {3}, {.replace = false});
  };
  s["categorical batch no replacement"] = [](const Key& k) {
    return categorical(k, X(), 1, {2, 3}, {.replace = false});
  };
  s["choice axis"] = [](const Key& k) { return choice(k, X(), {5}, true, {}, 1); };
  s["choice axis no replacement"] = [](const Key& k) { return choice(k, X(), {2}, false, {}, 1); };
  s["choice shape"] = [](const Key& k) { return choice(k, X(), {2, 2}); };
  s["choice p axis"] = [](const Key& k) { return choice(k, X(), {3}, true, weights(), 1); };
  s["choice p no replacement"] = [](const Key& k) {
    return choice(k, X(), {3}, false, weights(), -1);
  };
  s["choice none"] = [](const Key& k) { return choice(k, X(), {0}, true, {}, 1); };
  s["permutation axis"] = [](const Key& k) { return permutation(k, X(), 1); };
  s["permutation independent"] = [](const Key& k) { return permutation(k, X(), 1, true); };
  s["permutation rows"] = [](const Key& k) { return permutation(k, X(), 0, true); };
}

void add_matrices(Samplers& s) {
  using namespace random;
  Array mean = vec({1, -1, 0.5f, 0, 2, 3}).reshape({2, 3});
  Array cov = vec({2, 0.3f, 0.1f, 0.3f, 1, -0.2f, 0.1f, -0.2f, 0.5f}).reshape({3, 3});
  Array diagonal = diag(vec({1, 4, 9}));
  s["multivariate_normal"] = [=](const Key& k) { return multivariate_normal(k, mean[0], cov); };
  s["multivariate_normal batch"] = [=](const Key& k) { return multivariate_normal(k, mean, cov); };
  s["multivariate_normal shape"] = [=](const Key& k) {
    return multivariate_normal(k, mean, cov, {4, 2});
  };
  // Squares: the signs of eigenvectors are free.
  s["multivariate_normal eigh"] = [=](const Key& k) {
    Array x = multivariate_normal(k, zeros({3}), diagonal, {2}, NormalMethod::kEigh);
    return xylem::mean(square(x), 0);
  };
  s["multivariate_normal svd"] = [=](const Key& k) {
    return square(multivariate_normal(k, zeros({3}), diagonal, {2}, NormalMethod::kSvd));
  };
  s["orthogonal"] = [](const Key& k) { return orthogonal(k, 4); };
  s["orthogonal batch"] = [](const Key& k) { return orthogonal(k, 3, {2}); };
  s["orthogonal wide"] = [](const Key& k) { return orthogonal(k, 2, {}, DType::kF32, 4); };
  s["orthogonal tall"] = [](const Key& k) { return orthogonal(k, 4, {}, DType::kF32, 2); };
}

TEST(RandomDistributions, SamplesAndGradientsEqualJax) {
  Samplers have;
  add_gammas(have);
  add_counts(have);
  add_others(have);
  add_matrices(have);
  Golden all = file()["samplers"];
  for (const std::string& name : all.keys()) {
    SCOPED_TRACE(name);
    std::size_t space = name.find(' ');
    auto s = have.find(name.substr(space + 1));
    if (s == have.end()) {
      ADD_FAILURE() << "no program";
      continue;
    }
    HostArray want = all[name].array();
    double tolerance = want.dtype() == DType::kBF16 ? 2e-2 : 2e-5;
    // Sines of samples around 1000, which are known to 6e-5.
    if (name.ends_with("gamma vjp")) tolerance = 2e-4;
    if (name.ends_with("gradient")) tolerance = 1e-4;
    try {
      expect_like(s->second(random::key(std::stoll(name))), want, tolerance);
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
  }
  EXPECT_EQ(2 * have.size(), all.keys().size());
}

// One-sample Kolmogorov-Smirnov distance between samples and a distribution function.
double distance(const Array& samples, const std::function<Array(const Array&)>& cdf) {
  Array x = sort(ravel(samples));
  std::vector<float> p = cdf(x).astype(DType::kF32).to_vector<float>();
  double worst = 0, n = static_cast<double>(p.size());
  for (std::size_t i = 0; i < p.size(); ++i) {
    double at = p[i];
    worst = std::max({worst, std::abs(at - static_cast<double>(i) / n),
                      std::abs(at - static_cast<double>(i + 1) / n)});
  }
  return worst;
}

TEST(RandomDistributions, SamplesFollowTheirDistributions) {
  // 1.95 / sqrt(n) is exceeded by chance once in a thousand; the key is fixed.
  constexpr std::int64_t kN = 20000;
  const double limit = 1.95 / std::sqrt(static_cast<double>(kN));
  Key k = random::key(2024);
  for (double a : {0.3, 1.0, 7.5})
    EXPECT_LT(distance(random::gamma(k, a, {kN}),
                       [&](const Array& x) { return special::gammainc(a, x); }),
              limit)
        << a;
  EXPECT_LT(distance(random::chisquare(k, 5.0, {kN}),
                     [](const Array& x) { return special::gammainc(2.5, x / 2.0); }),
            limit);
  EXPECT_LT(distance(random::triangular(k, 0.0, 0.0, 1.0, {kN}),
                     [](const Array& x) { return 1.0 - square(1.0 - x); }),
            limit);
  EXPECT_LT(distance(random::beta(k, 1.0, 3.0, {kN}),
                     [](const Array& x) { return 1.0 - power(1.0 - x, 3.0); }),
            limit);
  EXPECT_LT(distance(random::pareto(k, 2.0, {kN}),
                     [](const Array& x) { return 1.0 - reciprocal(square(x)); }),
            limit);
  auto moments = [&](const Array& x, double mean_want, double var_want) {
    Array y = x.astype(DType::kF64);
    double m = mean(y).item<double>(), v = var(y).item<double>();
    EXPECT_NEAR(m, mean_want, 5 * std::sqrt(var_want / kN));
    EXPECT_NEAR(v, var_want, 0.1 * var_want);
  };
  moments(random::poisson(k, 3.0, {kN}), 3, 3);
  moments(random::poisson(k, 40.0, {kN}), 40, 40);
  moments(random::binomial(k, 12.0, 0.3, {kN}), 3.6, 2.52);
  moments(random::binomial(k, 200.0, 0.4, {kN}), 80, 48);
  moments(random::geometric(k, 0.25, {kN}), 4, 12);
  moments(random::wald(k, 1.0, {kN}), 1, 1);
}

}  // namespace
}  // namespace xylem
