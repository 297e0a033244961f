// Uses xylem::core from outside the tree: traces, differentiates, compiles and runs.
#if __has_include(<llvm/IR/Module.h>) || __has_include(<llvm-c/Core.h>)
#error "an installed Xylem must not put LLVM's headers on the include path"
#endif

#include <cmath>
#include <cstdio>
#include <vector>

#include "xylem/core/array.h"
#include "xylem/core/numpy.h"
#include "xylem/core/transforms.h"

int main() {
  const auto f = [](const xylem::Array& x) { return xylem::sum(xylem::sin(x) * x); };
  const std::vector<float> x{0.0f, 0.5f, 1.0f, 2.0f};
  const auto g = xylem::jit(xylem::grad(f))(xylem::Array(x)).to_vector<float>();
  if (g.size() != x.size()) return 1;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float want = std::sin(x[i]) + x[i] * std::cos(x[i]);
    if (!(std::abs(g[i] - want) <= 1e-6f)) {
      std::printf("gradient %zu is %g, not %g\n", i, static_cast<double>(g[i]),
                  static_cast<double>(want));
      return 1;
    }
  }
}
