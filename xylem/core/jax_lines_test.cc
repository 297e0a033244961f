// The lines of docs/xylem-for-jax-users.md, run. The last test holds the page against them.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "xylem/core/core.h"

namespace xylem {
namespace {

struct Params {
  Array w, b;
};

std::vector<std::string>& lines() {
  static std::vector<std::string> all;
  return all;
}

// Without blanks: the formatter moves them.
std::string squeezed(const std::string& s) {
  std::string r;
  for (char c : s)
    if (c != ' ' && c != '\n') r += c;
  return r;
}

#define LINE(...)                              \
  do {                                         \
    lines().push_back(squeezed(#__VA_ARGS__)); \
    (void)(__VA_ARGS__);                       \
  } while (false)

void run_all() {
  Array x, z, o, i, l, f, e, m;
  random::Key key, keys;
  Array y = Array(std::vector<float>{0.5, -1, 2});
  auto g = [](const Array& v) { return sum(sin(v) * v); };
  auto h = [](const Array& a, const Array& b) { return sum(a * b); };
  auto step = [](const Array& c, const Array& v) { return std::pair{c + v, c * v}; };
  auto body = [](const Array&, const Array& c) { return c * 2.0; };
  auto small = [](const Array& c) { return all(c < 100.0); };
  auto twice = [](const Array& c) { return c * 2.0; };
  LINE(key = random::key(0));
  LINE(x = array({1, 2, 3}));
  LINE(z = zeros({2, 3}));
  LINE(o = ones({2, 3}, DType::kBF16));
  LINE(i = arange(3));
  LINE(l = linspace(0, 1, 5));
  LINE(f = full({2, 2}, 7.0));
  LINE(e = eye(3));
  LINE(m = arange(6).astype(DType::kF32).reshape({2, 3}));
  LINE(std::tuple{m.shape(), m.dtype(), m.ndim()});
  LINE(x(0).item<float>());
  LINE(x.to_host());
  LINE(std::vector{x + 1, x * x, x / 2, pow(x, 2)});
  LINE(power(x, y));
  LINE(matmul(x, y));
  LINE(std::vector{-x, x > 1, ~(x > 1)});
  LINE(m(0));
  LINE(m(-1, idx::slice(1, idx::none)));
  LINE(m(idx::all, idx::slice(idx::none, idx::none, -1)));
  LINE(m(idx::ellipsis, idx::newaxis));
  LINE(x(Array(std::vector<int>{2, 0})));
  LINE(x(x > 1));
  LINE(x.at(0).set(9.0));
  LINE(x.at(i).add(1.0));
  LINE(x.at(idx::slice(1, idx::none)).multiply(2));
  LINE(take(x, i, 0, IndexMode::kClip));
  LINE(where(x > 1, x, 0));
  LINE(std::vector{exp(x), log1p(x), tanh(x)});
  LINE(maximum(x, 0));
  LINE(clip(x, 0, 2));
  LINE(std::vector{sum(m), sum(m, 0)});
  LINE(mean(m, -1, true));
  LINE(max(m, {0, 1}));
  LINE(argmax(m, 1));
  LINE(cumsum(x));
  LINE(std::vector{sort(x), argsort(-x)});
  LINE(concatenate({m, m}, 1));
  LINE(stack({x, x}));
  LINE(split(m, 3, 1));
  LINE(std::vector{m.T(), swapaxes(m, 0, 1)});
  LINE(expand_dims(x, 0));
  LINE(broadcast_to(x, {2, 3}));
  LINE(einsum("ij,j->i", {m, x}));
  LINE(pad(m, {{1, 0}, {0, 2}}));
  LINE(unique(i, 3));
  LINE(linalg::norm(x));
  LINE(keys = random::split(key));
  LINE(random::normal(key, {2, 3}));
  LINE(random::randint(key, {3}, 0, 10));
  LINE(random::permutation(key, 5));
  LINE(jit(g)(x));
  LINE(grad(g)(x));
  LINE(value_and_grad(g)(x));
  LINE(grad(h, argnums<0, 1>)(x, y));
  LINE(vmap(g)(m));
  LINE(vmap(h, {.in_axes = {0, no_axis}})(m, x));
  LINE(vmap([](const Array& r) { return r / lax::psum(r, "i"); }, {.axis_name = "i"})(m));
  LINE(jvp(g, std::tuple{x}, std::tuple{y}));
  LINE(vjp(g, x));
  LINE(hessian(g)(x));
  LINE(jacrev([](const Array& v) { return sin(v); })(x));
  LINE(remat(g)(x));
  LINE(stop_gradient(x));
  LINE(scan(step, x(0), x));
  LINE(fori_loop(0, 3, body, x));
  LINE(while_loop(small, twice, x));
  LINE(cond(
      x(0) > 0, [](const Array& v) { return sin(v); }, [](const Array& v) { return cos(v); }, x));
  LINE(map(g, m));
  LINE(associative_scan([](const Array& a, const Array& b) { return a + b; }, x));
  LINE(eval_shape(g, x));
  Params p{x, y};
  LINE(tree::map<Array>([](const Array& a) { return a * 2; }, p));
}

TEST(JaxLines, RunAndAreThoseOfThePage) {
  lines().clear();
  run_all();
  EXPECT_GE(lines().size(), 60u);
  std::ifstream page(XYLEM_SOURCE_DIR "/docs/xylem-for-jax-users.md");
  ASSERT_TRUE(page) << "the page is missing";
  std::vector<std::string> shown;
  for (std::string row; std::getline(page, row);) {
    std::size_t middle = row.find("` | `");
    if (middle == std::string::npos || !row.ends_with("` |")) continue;
    shown.push_back(squeezed(row.substr(middle + 5, row.size() - middle - 8)));
  }
  std::sort(shown.begin(), shown.end());
  std::vector<std::string> run = lines();
  std::sort(run.begin(), run.end());
  EXPECT_EQ(shown, run);
}

}  // namespace
}  // namespace xylem
