// Texts of traced programs for the Python suite: "== NAME" and the text, for each of the functions
// below.

#include <cstdio>
#include <string>

#include "xylem/core/core.h"

namespace xylem {
namespace {

template <class F, class... Args>
void show(const char* name, F&& f, const Args&... args) {
  std::printf("== %s\n%s\n", name, make_jaxpr(std::forward<F>(f))(args...).to_string().c_str());
}

void run() {
  Array s = ones({}), v = ones({3}), m = ones({2, 3}), i = Array(HostArray::scalar(2));
  Array yes = ones({}, DType::kBool);
  using A = const Array&;
  show(
      "mul", [](A x, A y) { return x * y; }, v, v);
  show(
      "scalars", [](A x, A y) { return x * y + 1.0; }, s, s);
  show(
      "product", [](A x, A y) { return matmul(sin(x), y); }, m, v);
  show(
      "sum", [](A x) { return sum(x, 0) * 2; }, m);
  show(
      "reductions",
      [](A x) {
        return std::tuple{max(x), min(x, 1), prod(x, 0)};
      },
      m);
  show(
      "elementwise",
      [](A x) {
        Array a = exp(log1p(tanh(-x))), b = sqrt(abs(x));  // operands in JAX's order
        Array c = a + b;
        return c - floor(cos(x));
      },
      v);
  show(
      "shapes", [](A x) { return transpose(x).reshape({6}); }, m);
  show(
      "cast", [](A x) { return x.astype(DType::kF32) + 1.5; }, i);
  show(
      "scan",
      [](A x, A xs) {
        return scan([](A c, A y) { return std::pair{c + y, c * y}; }, x, xs);
      },
      s, v);
  show(
      "while",
      [](A n, A x) { return while_loop([&](A c) { return c < n; }, [](A c) { return c * 2; }, x); },
      i, i);
  show(
      "cond",
      [](A p, A x) {
        return cond(
            p, [](A a) { return sin(a); }, [](A a) { return a * 2; }, x);
      },
      yes, s);
  show(
      "remat", [](A x) { return remat([](A y) { return sin(sin(y)); })(x); }, v);
  auto wave = jit([](A a) { return sin(a); }, {.name = "wave"});
  show(
      "shared", [&](A x) { return wave(wave(x)); }, s);
  show(
      "named", [](A x) { return checkpoint_name(x * x, "square"); }, s);
  show(
      "concatenate",
      [](A x, A y) {
        return concatenate({x, y});
      },
      v, v);
  show(
      "iota", [](A x) { return x + lax::iota(DType::kF32, {3}, 0); }, v);
}

}  // namespace
}  // namespace xylem

int main() {
  try {
    xylem::run();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
