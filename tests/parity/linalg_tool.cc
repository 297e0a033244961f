// For linalg_export_test.py: programs of linear algebra over one 4 x 4 matrix, as StableHLO text.
//   linalg_tool DTYPE        "### NAME" and the module's text, for each program; DTYPE f64 or c128

#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "xylem/core/core.h"
#include "xylem/ir/legalize.h"
#include "xylem/ir/text.h"

namespace xylem {
namespace {

using V = std::vector<Array>;

Array loss(const V& xs) {
  Array total = zeros({}, DType::kF64);
  for (const Array& x : xs) total = total + sum(sin(real(x)));
  return total;
}

struct Program {
  std::string name;
  std::function<V(const Array&)> f;
};

Program gradient(const std::string& name, const std::function<V(const Array&)>& f) {
  return {name + "_grad",
          [f](const Array& x) { return V{grad([&](const Array& a) { return loss(f(a)); })(x)}; }};
}

std::vector<Program> programs() {
  auto qr = [](const Array& x) {
    auto [q, r] = linalg::qr(x);
    return V{q, r};
  };
  auto lu = [](const Array& x) {
    auto [f, pivots, permutation] = lax::linalg::lu(x);
    return V{f, pivots, permutation};
  };
  auto svd = [](const Array& x) {
    auto [u, s, vh] = linalg::svd(x);
    return V{s, matmul(u, vh)};
  };
  auto eigh = [](const Array& x) { return V{linalg::eigh(x).eigenvalues}; };
  auto eigvals = [](const Array& x) {
    Array w = linalg::eigvals(x);
    return V{sum(w), sum(w * w)};
  };
  auto solve = [](const Array& x) { return V{linalg::solve(x, x(0)), linalg::inv(x)}; };
  auto det = [](const Array& x) { return V{linalg::det(x), linalg::slogdet(x).logabsdet}; };
  auto expm = [](const Array& x) { return V{linalg::expm(x / 4.0)}; };
  auto schur = [](const Array& x) {
    auto [t, z] = linalg::schur(x);
    return V{matmul(matmul(z, t), conj(matrix_transpose(z)))};
  };
  auto forms = [](const Array& x) {
    auto [h, q] = linalg::hessenberg(x);
    auto [a, d, e, taus] = lax::linalg::tridiagonal(x);
    return V{h, q, d, e};
  };
  auto pivoted = [](const Array& x) {
    auto [q, r, p] = linalg::qr_pivoting(x);
    return V{q, r, p};
  };
  return {{"qr", qr},
          {"lu", lu},
          {"svd", svd},
          {"eigh", eigh},
          {"eigvals", eigvals},
          {"solve", solve},
          {"det", det},
          {"expm", expm},
          {"schur", schur},
          {"forms", forms},
          {"pivoted", pivoted},
          gradient("qr", qr),
          gradient("svd", svd),
          gradient("eigh", eigh),
          gradient("solve", solve),
          gradient("det", det)};
}

}  // namespace
}  // namespace xylem

int main(int, char** argv) {
  using namespace xylem;
  const Array x = zeros({4, 4}, std::string(argv[1]) == "c128" ? DType::kC128 : DType::kF64);
  for (const Program& p : programs()) {
    ir::Module module;
    module.functions.push_back(
        {.name = "main", .graph = ir::legalize(ir::parse_graph(jit(p.f).lower_text(x), p.name))});
    std::cout << "### " << p.name << "\n" << ir::print_stablehlo(module) << "\n";
  }
}
