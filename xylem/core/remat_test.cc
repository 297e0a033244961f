#include "xylem/core/remat.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "xylem/base/error.h"
#include "xylem/core/core.h"

// The residuals are those that jax.ad_checkpoint.print_saved_residuals of JAX 0.10.2 lists for the
// same programs.

namespace xylem {
namespace {

namespace cp = checkpoint_policies;

using Weights = std::vector<Array>;

Array layers(const Weights& w, Array x) {
  for (std::size_t i = 0; i < w.size(); ++i)
    x = checkpoint_name(sin(matmul(x, w[i])), "h" + std::to_string(i));
  return sum(x);
}

Weights weights() { return {ones({2, 2}), ones({2, 2}) * 2, ones({2, 2}) * 3}; }

// How many residuals come from arguments, and the origins of the others, sorted, without places.
std::vector<std::string> kept(const std::vector<Residual>& residuals) {
  std::vector<std::string> out;
  int arguments = 0;
  for (const Residual& r : residuals) {
    if (r.origin.starts_with("from the argument"))
      ++arguments;
    else
      out.push_back(r.origin.substr(0, r.origin.find(" from ")));
  }
  std::sort(out.begin(), out.end());
  out.insert(out.begin(), std::to_string(arguments) + " arguments");
  return out;
}

std::vector<std::string> kept_under(const std::string& policy) {
  return kept(saved_residuals(remat(layers, {.policy = policy}), weights(), ones({5, 2})));
}

using List = std::vector<std::string>;

TEST(Remat, EveryPolicyKeepsWhatJaxKeeps) {
  const List all{"4 arguments",   "named 'h0'",    "named 'h1'",
                 "output of cos", "output of cos", "output of cos"};
  const List dots{"4 arguments", "output of dot_general", "output of dot_general",
                  "output of dot_general"};
  EXPECT_EQ(kept(saved_residuals(layers, weights(), ones({5, 2}))), all);
  EXPECT_EQ(kept_under(cp::everything_saveable()), all);
  EXPECT_EQ(kept_under(cp::nothing_saveable()), (List{"4 arguments"}));
  EXPECT_EQ(kept_under(cp::dots_saveable()), dots);
  EXPECT_EQ(kept_under(cp::checkpoint_dots()), dots);
  EXPECT_EQ(kept_under(cp::dots_with_no_batch_dims_saveable()), dots);
  EXPECT_EQ(kept_under(cp::save_only_these_names({"h0", "h2"})),
            (List{"4 arguments", "named 'h0'"}));
  EXPECT_EQ(kept_under(cp::save_any_names_but_these({"h0"})), (List{"4 arguments", "named 'h1'"}));
  EXPECT_EQ(kept_under(cp::save_from_both_policies(cp::dots_saveable(),
                                                   cp::save_only_these_names({"h1"}))),
            (List{"4 arguments", "named 'h1'", "output of dot_general", "output of dot_general",
                  "output of dot_general"}));
  EXPECT_EQ(kept_under(cp::offload_dot_with_no_batch_dims("device", "pinned_host")), dots);
  EXPECT_EQ(
      kept_under(cp::save_and_offload_only_these_names({"h0"}, {"h1"}, "device", "pinned_host")),
      (List{"4 arguments", "named 'h0'", "named 'h1'"}));
}

TEST(Remat, BatchedProductsAreToldFromOthers) {
  auto f = [](const Array& w, const Array& x) {
    Array y = einsum("bij,bjk->bik", {reshape(x, {5, 1, 2}), ones({5, 2, 2})});
    return sum(sin(matmul(y, w)));
  };
  auto kinds = [&](const std::string& policy) {
    return kept(saved_residuals(remat(f, {.policy = policy}), ones({2, 2}), ones({5, 2}))).size();
  };
  EXPECT_GT(kinds(cp::dots_saveable()), kinds(cp::dots_with_no_batch_dims_saveable()));
}

TEST(Remat, PoliciesLookIntoJittedFunctions) {
  auto product = jit([](const Array& a, const Array& b) { return matmul(a, b); });
  auto f = [&](const Array& w, const Array& x) { return sum(sin(product(x, w))); };
  EXPECT_EQ(
      kept(saved_residuals(remat(f, {.policy = cp::dots_saveable()}), ones({2, 2}), ones({5, 2}))),
      (List{"2 arguments", "output of dot_general"}));
}

TEST(Remat, GradientsDoNotDependOnThePolicy) {
  Array x = reshape(arange(10).astype(DType::kF32), {5, 2}) / 10;
  Weights want = grad(layers)(weights(), x);
  for (const std::string& policy :
       {cp::everything_saveable(), cp::nothing_saveable(), cp::dots_saveable(),
        cp::save_only_these_names({"h0"}), cp::save_any_names_but_these({"h0"}),
        cp::save_anything_except_these_names({"h1"}),
        cp::save_from_both_policies(cp::dots_saveable(), cp::save_only_these_names({"h1"}))}) {
    Weights got = grad(remat(layers, {.policy = policy}))(weights(), x);
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_TRUE(array_equal(got[i], want[i]).item<bool>()) << policy;
  }
}

TEST(Remat, ResidualsAreListedWithTheirPlaces) {
  int line = __LINE__ + 1;
  std::string text = print_saved_residuals([](const Array& y) { return sin(sin(y)); }, ones({}));
  std::string place = "remat_test.cc:" + std::to_string(line);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  EXPECT_EQ(text.rfind("f32[] output of cos from ", 0), 0u) << text;
  EXPECT_NE(text.find(place), std::string::npos) << text;
  EXPECT_EQ(print_saved_residuals(remat([](const Array& y) { return sin(sin(y)); }), ones({})),
            "f32[] from the argument [0]\n");
}

TEST(Remat, UnknownPoliciesAndMemoriesAreNamed) {
  try {
    kept_under("dots_saveable;everything");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("everything"), std::string::npos);
  }
  EXPECT_THROW(cp::offload_dot_with_no_batch_dims("device", "disk"), UserError);
  EXPECT_THROW(cp::save_only_these_names({"a,b"}), UserError);
}

}  // namespace
}  // namespace xylem
