#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "xylem/ir/builder.h"
#include "xylem/ir/interpreter.h"
#include "xylem/ir/legalize.h"
#include "xylem/ir/ops/all.h"

namespace xylem::ir {
namespace {

std::vector<double> points(const OpDef& op) {
  std::vector<double> v = {0,       -0.0, 1e-300, 1e-30, 1e-8,  0.1, 0.3,
                           0.46875, 0.47, 0.5,    0.9,   0.999, 1};
  if (&op != &ops::kErfInv && &op != &ops::kAsin && &op != &ops::kAcos && &op != &ops::kAtanh)
    for (double x : {1.0001, 1.5, 2.0, 3.9, 4.1, 7.0, 15.0, 25.0, 80.0, 300.0, 1e5, 1e12, 1e30})
      v.push_back(x);
  const std::size_t n = v.size();
  for (std::size_t i = 0; i < n; ++i) v.push_back(-v[i]);
  for (double x : {INFINITY, -INFINITY, NAN}) v.push_back(x);
  return v;
}

// The decomposition against the evaluation, in units of the last place of the value.
TEST(ElementaryExpansion, AgreesWithTheEvaluationToAFewUlp) {
  for (const OpDef* op :
       {&ops::kErf, &ops::kErfc, &ops::kErfInv, &ops::kAsin, &ops::kAcos, &ops::kAtan, &ops::kSinh,
        &ops::kCosh, &ops::kAsinh, &ops::kAcosh, &ops::kAtanh, &ops::kSquare})
    for (DType t : {DType::kF32, DType::kF64, DType::kBF16}) {
      const std::vector<double> x = points(*op);
      const HostArray a = HostArray::from(x, {static_cast<std::int64_t>(x.size())}).astype(t);
      Builder b("f");
      const ValueId p = b.param(Type::tensor(t, a.dims()));
      const GraphPtr g = b.finish({b.one(*op, {p})});
      const HostArray args[] = {a};
      const HostArray want = evaluate(*g, args)[0];
      const GraphPtr plain = decompose(g, [&](const OpDef& d) { return &d == op; });
      const HostArray got = evaluate(*plain, args)[0];
      const double ulp = std::ldexp(1.0, -dtype_info(t).mantissa_bits);
      for (std::int64_t i = 0; i < a.size(); ++i) {
        const double w = want.at(i), v = got.at(i);
        if (std::isnan(w) || std::isinf(w)) {
          EXPECT_EQ(std::isnan(v), std::isnan(w)) << op->name << " " << a.at(i);
          if (std::isinf(w)) {
            EXPECT_EQ(v, w) << op->name << " " << dtype_name(t) << " " << a.at(i);
          }
          continue;
        }
        // exp of a rounded argument costs as many ulp as the argument has units.
        const double slack = (op == &ops::kSinh || op == &ops::kCosh) ? 2 + std::abs(a.at(i)) : 12;
        EXPECT_NEAR(v, w, slack * ulp * std::abs(w) + 1e-37)
            << op->name << " " << dtype_name(t) << " " << a.at(i);
        if (w == 0) {
          EXPECT_EQ(std::signbit(v), std::signbit(w)) << op->name << " " << a.at(i);
        }
      }
    }
}

}  // namespace
}  // namespace xylem::ir
