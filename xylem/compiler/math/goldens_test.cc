// Expansions against what JAX 0.10.2 computes on a CPU.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "xylem/compiler/math/expand.h"
#include "xylem/ir/builder.h"
#include "xylem/ir/interpreter.h"
#include "xylem/ir/ops/all.h"

namespace xylem::compiler {
namespace {

namespace ops = ir::ops;

constexpr std::uint32_t kNaN = 0x7fc00000;
const std::vector<float> kPoints = {0.1f, 0.5f, 0.999f, 1.0f, 2.5f, 10.0f, -0.5f, -2.5f, -17.0f};

struct Golden {
  const ir::OpDef* op;
  std::uint32_t bits[9];
  int distance = 2;
};

const Golden kGoldens[] = {
    {&ops::kExponential,
     {0x3f8d763e, 0x3fd3094c, 0x402dcbd1, 0x402df854, 0x4142eb7f, 0x46ac14ee, 0x3f1b4598,
      0x3da81c2e, 0x3331cf18}},
    {&ops::kExponentialMinusOne,
     {0x3dd763d8, 0x3f261299, 0x3fdb97a2, 0x3fdbf0a8, 0x4132eb7f, 0x46ac12ee, 0xbec974d0,
      0xbf6afc7a, 0xbf7fffff}},
    {&ops::kLog,
     {0xc0135d8e, 0xbf317218, 0xba8322ca, 0x00000000, 0x3f6a9208, 0x40135d8e, kNaN, kNaN, kNaN}},
    {&ops::kLogPlusOne,
     {0x3dc331fc, 0x3ecf991f, 0x3f315152, 0x3f317218, 0x3fa05a8a, 0x4019771e, 0xbf317218, kNaN,
      kNaN}},
    {&ops::kLogistic,
     {0x3f066509, 0x3f1f597f, 0x3f3b19c4, 0x3f3b26a8, 0x3f6c948f, 0x3f7ffd06, 0x3ec14d03,
      0x3d9b5b88, 0x3331cf19}},
    {&ops::kTanh,
     {0x3dcc1ebb, 0x3eec9a9f, 0x3f42dc4b, 0x3f42f7d6, 0x3f7c92c2, 0x3f800000, 0xbeec9a9f,
      0xbf7c92c2, 0xbf800000}},
    {&ops::kSine,
     {0x3dcc7577, 0x3ef57744, 0x3f574735, 0x3f576aa4, 0x3f193578, 0xbf0b44f8, 0xbef57744,
      0xbf193578, 0x3f761e25}},
    {&ops::kErf,
     {0x3de652f5, 0x3f053f7b, 0x3f57a002, 0x3f57bb3e, 0x3f7fe554, 0x3f800000, 0xbf053f7b,
      0xbf7fe554, 0xbf800000}},
    {&ops::kErfc,
     {0x3f6335a1, 0x3ef5810c, 0x3e217ffd, 0x3e21130d, 0x39d55c2d, 0x00000000, 0x3fc29fbd,
      0x3ffff2aa, 0x40000000},
     6},  // JAX subtracts erf from 1: 5 floats off at 0.999
    {&ops::kErfInv,
     {0x3db5fa21, 0x3ef430fe, 0x4014e999, 0x7f800000, kNaN, kNaN, 0xbef430fe, kNaN, kNaN}},
    {&ops::kRsqrt,
     {0x404a62c2, 0x3fb504f3, 0x3f801065, 0x3f800000, 0x3f21e89b, 0x3ea1e89b, kNaN, kNaN, kNaN}},
    {&ops::kCbrt,
     {0x3eeda63c, 0x3f4b2ff5, 0x3f7fea26, 0x3f800000, 0x3fadb905, 0x4009e242, 0xbf4b2ff5,
      0xbfadb905, 0xc0248fe1}},
};

TEST(Goldens, JaxValuesAreFewFloatsAway) {
  const auto n = static_cast<std::int64_t>(kPoints.size());
  for (const Golden& golden : kGoldens) {
    ir::Builder b;
    ir::ValueId x = b.param(ir::Type::tensor(DType::kF32, {n}));
    ir::GraphPtr graph = expand_math(*b.finish({b.one(*golden.op, {x})}));
    HostArray got = ir::evaluate(*graph, {{HostArray::from(kPoints, {n})}})[0];
    for (std::size_t i = 0; i < kPoints.size(); ++i) {
      const float g = got.as<float>()[i];
      float want;
      std::memcpy(&want, &golden.bits[i], 4);
      std::int32_t bits;
      std::memcpy(&bits, &g, 4);
      if (std::isnan(want))
        EXPECT_TRUE(std::isnan(g)) << golden.op->name << " of " << kPoints[i] << ": " << g;
      else
        EXPECT_LE(std::abs(std::int64_t{bits} - static_cast<std::int32_t>(golden.bits[i])),
                  golden.distance)
            << golden.op->name << " of " << kPoints[i] << ": " << g << ", JAX " << want;
    }
  }
}

}  // namespace
}  // namespace xylem::compiler
