// Optimizers, schedules, clipping and losses against what Optax gave (tests/goldens/optax.json).

#include "xylem/optim/optim.h"

#include <gtest/gtest.h>

#include <cmath>

#include "xylem/base/testing/golden.h"
#include "xylem/core/core.h"

namespace xylem::optim {
namespace {

using testing::Golden;
using testing::max_ulp;
using testing::relative_error;

// The tree of the recorded runs; rows of numbers hold its leaves one after the other.
struct Params {
  Array bias, kernel, scale;
};

Params params_of(const Array& row) {
  return {lax::slice(row, {0}, {2}), lax::slice(row, {2}, {8}).reshape({2, 3}),
          lax::slice(row, {8}, {11})};
}

Array row_of(const Params& p) { return concatenate({p.bias, ravel(p.kernel), p.scale}); }

bool is_kernel(const std::string& path, const Array&) { return path == "kernel"; }

class Recorded : public ::testing::TestWithParam<const char*> {
 protected:
  bool wide() const { return std::string(GetParam()) == "f64"; }
  double tolerance() const { return wide() ? 1e-13 : 1e-6; }
  Golden file = Golden::load("optax.json")[GetParam()];
  Golden runs = file["trajectories"];

  // Follows the recorded run under jit; every row of parameters must equal the recorded one.
  template <class Tx>
  void follow(const std::string& name, const Tx& tx) {
    Array gradients(runs["gradients"].array());
    Params p = params_of(Array(runs["start"].array())[0]);
    auto state = tx.init(p);
    auto step = jit([&](const Array& row, Params params, auto s) {
      auto [u, next] = tx.update(params_of(row), s, params);
      return std::tuple{apply_updates(params, u), next, u};
    });
    for (std::size_t i = 0; i < runs["runs"].size(); ++i) {
      Golden run = runs["runs"].at(i);
      if (run["optimizer"].str() != name) continue;
      Array want(run["params"].array());
      for (std::int64_t k = 0; k < gradients.dim(0); ++k) {
        Params u;
        std::tie(p, state, u) = step(gradients[k], std::move(p), std::move(state));
        ASSERT_LT(relative_error(row_of(p).to_host(), want[k].to_host()), tolerance())
            << name << ", step " << k;
        if (k == 0) {
          EXPECT_LT(
              relative_error(row_of(u).to_host(), Array(run["updates_of_1"].array())[0].to_host()),
              tolerance());
        }
      }
      check_state(run["state_after_100"], state);
      EXPECT_EQ(step.cache_size(), 1u);
      return;
    }
    FAIL() << "no recorded run of " << name;
  }

 private:
  // The recorded leaves, in Optax's order, are those of our state in ours, but for counts: a
  // constant rate has none in Optax.
  template <class State>
  void check_state(const Golden& want, const State& state) {
    std::vector<Array> ours;
    for (const Array& a : tree::leaves<Array>(state))
      if (a.ndim() > 0) ours.push_back(a);
    std::size_t next = 0;
    for (const std::string& path : want.keys()) {
      HostArray w = want[path].array();
      if (w.rank() == 0) {
        EXPECT_EQ(w.at(0), 100) << path;
        continue;
      }
      ASSERT_LT(next, ours.size());
      EXPECT_LT(relative_error(ours[next++].to_host(), w), tolerance()) << path;
    }
    EXPECT_EQ(next, ours.size());
  }
};

Schedule recorded_schedule() { return warmup_cosine_decay_schedule(0.0, 3e-2, 10, 90, 3e-3); }

TEST_P(Recorded, Sgd) { follow("sgd(0.1)", sgd(0.1)); }
TEST_P(Recorded, Momentum) { follow("sgd(0.1, momentum=0.9)", sgd(0.1, 0.9)); }
TEST_P(Recorded, Nesterov) { follow("sgd(0.1, momentum=0.9, nesterov=True)", sgd(0.1, 0.9, true)); }
TEST_P(Recorded, Adam) { follow("adam(0.01)", adam(0.01)); }
TEST_P(Recorded, AdamwDecaysWhereTheMaskHolds) {
  follow("adamw(0.01, weight_decay=0.1, mask=kernel)",
         adamw(0.01, {.weight_decay = 0.1, .mask = is_kernel}));
}
TEST_P(Recorded, ClippedAdamwWithASchedule) {
  follow(
      "chain(clip_by_global_norm(1), adamw(warmup_cosine, b1=0.9, b2=0.99, eps=1e-8, "
      "weight_decay=0.1, mask=kernel))",
      chain(clip_by_global_norm(1.0),
            adamw(recorded_schedule(),
                  {.b1 = 0.9, .b2 = 0.99, .eps = 1e-8, .weight_decay = 0.1, .mask = is_kernel})));
}
TEST_P(Recorded, ClippedMomentumWithASchedule) {
  follow("chain(clip_by_global_norm(0.5), sgd(warmup_cosine, momentum=0.9))",
         chain(clip_by_global_norm(0.5), sgd(recorded_schedule(), 0.9)));
}

TEST_P(Recorded, Schedules) {
  auto make = [](const std::string& name) -> Schedule {
    if (name == "constant(0.5)") return constant_schedule(0.5);
    if (name == "linear(0.0, 1.0, 10)") return linear_schedule(0, 1, 10);
    if (name == "cosine_decay(1.0, 20, alpha=0.1)") return cosine_decay_schedule(1, 20, 0.1);
    if (name == "warmup_cosine_decay(0.0, 0.03, 10, 90, 0.003)") return recorded_schedule();
    if (name == "warmup_cosine_decay(0.01, 1.0, 5, 40, 0.0)")
      return warmup_cosine_decay_schedule(0.01, 1, 5, 40);
    if (name == "warmup_cosine_decay(0.0, 0.004, 225, 4500, 0.0002)")
      return warmup_cosine_decay_schedule(0, 0.004, 225, 4500, 0.0002);
    throw std::runtime_error("unknown schedule " + name);
  };
  Golden all = file["schedules"];
  for (std::size_t i = 0; i < all.size(); ++i) {
    Golden s = all.at(i);
    Schedule schedule = make(s["schedule"].str());
    HostArray want = s["value"].array();
    double peak = 0;
    for (std::int64_t k = 0; k < want.size(); ++k) peak = std::max(peak, want.at(k));
    for (std::int64_t k = 0; k < want.size(); ++k) {
      auto count = static_cast<std::int32_t>(s["count"].at(static_cast<std::size_t>(k)).number());
      Array got = schedule(Array(HostArray::scalar(count)));
      EXPECT_EQ(got.shape(), Dims{});
      // With 64-bit types off a cosine is formed in f32 there, where it loses digits near its end.
      EXPECT_NEAR(got.astype(want.dtype()).item<double>(), want.at(k),
                  (wide() ? 1e-15 : 1.2e-7) * peak)
          << s["schedule"].str() << " at " << count;
    }
  }
}

TEST_P(Recorded, Clipping) {
  Golden all = file["clipping"];
  for (std::size_t i = 0; i < all.size(); ++i) {
    Params g = params_of(Array(all.at(i)["gradients"].array())[0]);
    HostArray norm = all.at(i)["global_norm"].array();
    EXPECT_LT(relative_error(global_norm(g).to_host(), norm), wide() ? 1e-15 : 3e-7);
    auto [clipped, state] = clip_by_global_norm(1.0).update(g, EmptyState{}, g);
    EXPECT_LT(relative_error(row_of(clipped).reshape({1, 11}).to_host(),
                             all.at(i)["clipped_to_1"].array()),
              wide() ? 1e-15 : 3e-7);
  }
}

TEST_P(Recorded, Losses) {
  Golden all = file["losses"];
  for (std::size_t i = 0; i < all.size(); ++i) {
    Golden l = all.at(i);
    std::string name = l["loss"].str();
    Array logits(l["logits"].array()), labels(l["labels"].array());
    auto loss = [&](const Array& x) {
      if (name == "l2_loss") return l2_loss(x, labels);
      if (name == "softmax_cross_entropy") return softmax_cross_entropy(x, labels);
      return softmax_cross_entropy_with_integer_labels(x, labels);
    };
    EXPECT_LT(relative_error(loss(logits).to_host(), l["value"].array()), tolerance()) << name;
    Array g = grad([&](const Array& x) { return mean(loss(x)); })(logits);
    EXPECT_LT(relative_error(g.to_host(), l["gradient_of_mean"].array()), tolerance()) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, Recorded, ::testing::Values("f32", "f64"));

TEST(Optim, PassesOverLeavesWithoutAGradient) {
  struct Model {
    Array weight, steps;
  };
  Model m{array({1, 2}), Array(HostArray::scalar(std::int32_t{7}))};
  auto tx = adamw(0.1);
  auto state = tx.init(m);
  Model g = grad([](const Model& x) { return sum(x.weight * x.weight); })(m);
  EXPECT_FALSE(g.steps.defined());
  auto [u, next] = tx.update(g, state, m);
  Model after = apply_updates(m, u);
  EXPECT_EQ(after.steps.item<int>(), 7);
  EXPECT_LT(after.weight[0].item<double>(), 1);
}

TEST(Optim, ParametersKeepTheirDtype) {
  Array p = array({1, 2}, DType::kBF16), g = array({1, 1}, DType::kBF16);
  auto tx = chain(clip_by_global_norm(1.0), adamw(recorded_schedule()));
  auto [u, state] = tx.update(g, tx.init(p), p);
  EXPECT_EQ(u.dtype(), DType::kBF16);
  EXPECT_EQ(apply_updates(p, u).dtype(), DType::kBF16);
}

TEST(Optim, CountStaysAtItsLargestValue) {
  Array top(HostArray::scalar(std::int32_t{2147483647}));
  EXPECT_EQ(internal::safe_increment(top).item<std::int64_t>(), 2147483647);
}

TEST(Optim, MeaninglessSchedulesAndLossesAreRefused) {
  EXPECT_THROW(cosine_decay_schedule(1, 0), UserError);
  EXPECT_THROW(warmup_cosine_decay_schedule(0, 1, 10, 10), UserError);
  Array logits = zeros({2, 3});
  try {
    softmax_cross_entropy_with_integer_labels(logits, zeros({2, 3}, DType::kI32));
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("softmax_cross_entropy"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("i32[2,3]"), std::string::npos) << e.what();
  }
  EXPECT_THROW(softmax_cross_entropy_with_integer_labels(logits, zeros({2})), UserError);
}

TEST(Optim, BinaryCrossEntropyIsStable) {
  Array x = array({-200, -1, 0, 1, 200}), y = array({0, 1, 0.5, 0, 1});
  std::vector<float> got = sigmoid_binary_cross_entropy(x, y).to_vector<float>();
  EXPECT_EQ(got[0], 0);
  EXPECT_NEAR(got[1], std::log1p(std::exp(1.0)), 1e-6);
  EXPECT_NEAR(got[2], std::log(2.0), 1e-6);
  EXPECT_NEAR(got[3], std::log1p(std::exp(1.0)), 1e-6);
  EXPECT_EQ(got[4], 0);
}

}  // namespace
}  // namespace xylem::optim
