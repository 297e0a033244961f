#include "xylem/compiler/compile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "xylem/base/error.h"
#include "xylem/compiler/testing/compare.h"
#include "xylem/ir/builder.h"
#include "xylem/ir/ops/all.h"

namespace xylem::compiler {
namespace {

namespace o = ir::ops;
using ir::Attr;
using ir::Attrs;
using ir::Builder;
using ir::GraphPtr;
using ir::Type;
using ir::ValueId;
using testing::compare;
using testing::make_args;
using testing::Tolerance;

constexpr Tolerance kExact{};
constexpr Tolerance kClose{2e-5, 2e-5};

Type f32(Dims d) { return Type::tensor(DType::kF32, std::move(d)); }

GraphPtr binary_region(const ir::OpDef& def, DType dtype) {
  Builder b("region");
  const ValueId x = b.param(Type::tensor(dtype)), y = b.param(Type::tensor(dtype));
  const ValueId z = b.one(def, {x, y});
  return b.finish({z});
}

ValueId reduce(Builder& b, const ir::OpDef& def, ValueId x, Dims dims, double init) {
  const DType t = b.type(x).dtype();
  return b.one(o::kReduce, {x, b.splat(t, {}, init)}, Attrs{{"dimensions", Attr(dims)}},
               {binary_region(def, t)});
}

ValueId broadcast(Builder& b, ValueId x, Dims shape, Dims dims) {
  return b.one(o::kBroadcastInDim, {x},
               Attrs{{"broadcast_dimensions", Attr(dims)}, {"shape", Attr(shape)}});
}

void check(const GraphPtr& g, const Tolerance& tolerance, Options options = {}) {
  EXPECT_EQ(compare(g, make_args(*g, 1), tolerance, options), "") << g->to_string() << "\n"
                                                                  << compile(g, options)->text();
}

TEST(Compile, ElementwiseOddSizes) {
  for (Dims d : {Dims{}, Dims{1}, Dims{3}, Dims{17}, Dims{5, 7}, Dims{2, 3, 64}, Dims{1000}}) {
    Builder b("f");
    const ValueId x = b.param(f32(d)), y = b.param(f32(d));
    const ValueId z = b.one(o::kMultiply, {b.one(o::kAdd, {x, y}), x});
    check(b.finish({z, b.one(o::kSubtract, {z, y})}), kExact);
  }
}

TEST(Compile, RefusesArraysThatNoProcessCanAddress) {
  for (const std::int64_t n : {std::int64_t{1} << 46, std::int64_t{1} << 62}) {
    Builder b("f");
    const GraphPtr g = b.finish({broadcast(b, b.splat(DType::kF32, {}, 1), {n}, {})});
    try {
      compile(g);
      FAIL() << n;
    } catch (const UserError& e) {
      EXPECT_NE(e.message().find("at most 2^47 bytes"), std::string::npos) << e.message();
    }
  }
}

// Kernels end where expressions get long: neither the stack nor the time of compilation grows with
// the square of a chain's length.
TEST(Compile, LongChainsOfElementwiseOps) {
  Builder b("chain");
  const ValueId x = b.param(f32({5}));
  ValueId v = x;
  for (int i = 0; i < 20000; ++i) v = b.one(i % 2 ? o::kAdd : o::kMultiply, {v, x});
  check(b.finish({v}), kExact);
  Builder s("sines");
  const ValueId y = s.param(f32({5}));
  v = y;
  for (int i = 0; i < 120; ++i) v = s.one(o::kSine, {v});
  const GraphPtr g = s.finish({v});
  check(g, kClose);
  EXPECT_GT(compile(g)->text().find("kernel"), 0u);
}

TEST(Compile, SoftmaxRows) {
  for (Dims d : {Dims{4, 16}, Dims{3, 5, 37}, Dims{64, 128}, Dims{2, 1000}}) {
    Builder b("softmax");
    const ValueId x = b.param(f32(d));
    const int last = d.ssize() - 1;
    Dims kept, map;
    for (int i = 0; i < last; ++i) map.push_back(i);
    const ValueId m = reduce(b, o::kMaximum, x, {last}, -std::numeric_limits<double>::infinity());
    const ValueId e = b.one(o::kExponential, {b.one(o::kSubtract, {x, broadcast(b, m, d, map)})});
    const ValueId s = reduce(b, o::kAdd, e, {last}, 0);
    const ValueId y = b.one(o::kDivide, {e, broadcast(b, s, d, map)});
    check(b.finish({y}), kClose);
  }
}

TEST(Compile, ReductionsOverAnyDimensions) {
  for (const Dims& over :
       {Dims{0}, Dims{1}, Dims{2}, Dims{0, 1}, Dims{0, 2}, Dims{1, 2}, Dims{0, 1, 2}})
    for (Dims d : {Dims{3, 4, 5}, Dims{64, 33, 17}, Dims{1, 300, 2}}) {
      Builder b("reduce");
      const ValueId x = b.param(f32(d));
      const ValueId s = reduce(b, o::kAdd, x, over, 0);
      const ValueId m = reduce(b, o::kMinimum, x, over, 1);
      check(b.finish({s, m}), {1e-5, 1e-4});
    }
}

TEST(Compile, LargeSumIsSplit) {
  Builder b("sum");
  const ValueId x = b.param(f32({300, 1000}));
  const ValueId s = reduce(b, o::kAdd, b.one(o::kMultiply, {x, x}), {0, 1}, 0);
  const ValueId c = reduce(b, o::kAdd, x, {0}, 0.5);
  check(b.finish({s, c}), {1e-5, 1e-2});
}

TEST(Compile, LargestOfRowsWithTiesNanAndZeros) {
  for (const DType t :
       {DType::kF32, DType::kF64, DType::kBF16, DType::kI8, DType::kU64, DType::kBool}) {
    for (const auto& [shape, k] :
         {std::pair{Dims{200}, 1}, std::pair{Dims{200}, 64}, std::pair{Dims{200}, 65},
          std::pair{Dims{3, 5, 7}, 3}, std::pair{Dims{3, 5, 7}, 7}, std::pair{Dims{4, 9}, 0},
          std::pair{Dims{0, 9}, 2}}) {
      Builder b("f");
      const ValueId x = b.param(Type::tensor(t, shape));
      const ir::ValueIds r = b.op(o::kTopK, {x}, Attrs{{"k", Attr(k)}});
      const GraphPtr g = b.finish({r[0], r[1]});
      HostArray a(DType::kF32, shape);
      for (std::int64_t i = 0; i < a.size(); ++i) {
        const float edges[] = {NAN, -NAN, INFINITY, -0.0f, 0.0f};
        const auto n = static_cast<float>((i * 37) % 11 - 5);
        a.as<float>()[i] = is_float(t) && i % 9 < 5 ? edges[i % 9] : is_float(t) ? n : n + 5;
      }
      EXPECT_EQ(compare(g, {a.astype(t)}, kExact), "") << dtype_name(t) << " " << k;
    }
  }
}

TEST(Compile, WindowsOverAllThatComesBefore) {
  for (const ir::OpDef* def : {&o::kAdd, &o::kMaximum, &o::kMinimum, &o::kMultiply}) {
    for (const bool reverse : {false, true}) {
      Builder b("f");
      const ValueId x = b.param(f32({6, 37}));
      HostArray padding = HostArray::zeros(DType::kI64, {2, 2});
      padding.as<std::int64_t>()[reverse ? 3 : 2] = 36;
      const double inf = std::numeric_limits<double>::infinity();
      const double init = def == &o::kAdd        ? 0
                          : def == &o::kMultiply ? 1
                          : def == &o::kMaximum  ? -inf
                                                 : inf;
      check(b.finish(
                {b.one(o::kReduceWindow, {x, broadcast(b, b.splat(DType::kF32, {}, init), {}, {})},
                       Attrs{{"window_dimensions", Attr(Dims{1, 37})}, {"padding", Attr(padding)}},
                       {binary_region(*def, DType::kF32)})}),
            kClose);
    }
  }
}

TEST(Compile, LoopsOverScalars) {
  // Newton's square root, counted, with a capture: and a loop that runs no time.
  for (const std::int64_t most : {20, 0}) {
    const Type i = Type::tensor(DType::kI32), f = Type::tensor(DType::kF64);
    Builder cond("cond");
    const ValueId n = cond.param(i), x = cond.param(f), a = cond.param(f);
    const ValueId counted =
        cond.one(o::kCompare, {n, cond.splat(DType::kI32, {}, static_cast<double>(most))},
                 Attrs{{"comparison_direction", Attr(ir::EnumAttr("LT"))}});
    const ValueId square = cond.one(o::kMultiply, {x, x});
    const ValueId far = cond.one(o::kCompare,
                                 {cond.one(o::kAbs, {cond.one(o::kSubtract, {square, a})}),
                                  cond.splat(DType::kF64, {}, 1e-12)},
                                 Attrs{{"comparison_direction", Attr(ir::EnumAttr("GT"))}});
    const GraphPtr condition = cond.finish({cond.one(o::kAnd, {counted, far})});
    Builder step("body");
    const ValueId sn = step.param(i), sx = step.param(f), sa = step.param(f);
    const ValueId half = step.splat(DType::kF64, {}, 0.5);
    const GraphPtr body = step.finish(
        {step.one(o::kAdd, {sn, step.splat(DType::kI32, {}, 1)}),
         step.one(o::kMultiply, {half, step.one(o::kAdd, {sx, step.one(o::kDivide, {sa, sx})})})});
    Builder b("f");
    const ValueId start = b.param(i), guess = b.param(f), of = b.param(f);
    const ir::ValueIds r =
        b.op(o::kWhile, {start, guess, of}, Attrs{{"num_captures", Attr(1)}}, {condition, body});
    const GraphPtr g = b.finish({r[0], r[1]});
    EXPECT_EQ(
        compare(g, {HostArray::scalar(0), HostArray::scalar(1.0), HostArray::scalar(2.0)}, kExact),
        "");
    EXPECT_NE(compile(g)->text().find("   0 while "), std::string::npos) << compile(g)->text();
  }
}

TEST(Compile, Products) {
  struct Case {
    Dims l, r, bl, br, cl, cr;
  };
  for (const Case& c :
       {Case{{4, 8}, {8, 32}, {}, {}, {1}, {0}}, Case{{33, 70}, {70, 45}, {}, {}, {1}, {0}},
        Case{{8, 4}, {8, 32}, {}, {}, {0}, {0}}, Case{{64, 64}, {48, 64}, {}, {}, {1}, {1}},
        Case{{2, 3, 9, 5}, {2, 3, 11, 5}, {0, 1}, {0, 1}, {3}, {3}},
        Case{{3, 5}, {5}, {}, {}, {1}, {0}}, Case{{5}, {5, 7}, {}, {}, {0}, {0}},
        Case{{4, 5, 6}, {6, 5, 3}, {}, {}, {1, 2}, {1, 0}}, Case{{2, 1}, {1, 3}, {}, {}, {1}, {0}},
        Case{{128, 130}, {130, 200}, {}, {}, {1}, {0}}}) {
    Builder b("dot");
    const ValueId x = b.param(f32(c.l)), y = b.param(f32(c.r));
    const ValueId z = b.one(o::kDotGeneral, {x, y},
                            Attrs{{"lhs_batching_dimensions", Attr(c.bl)},
                                  {"rhs_batching_dimensions", Attr(c.br)},
                                  {"lhs_contracting_dimensions", Attr(c.cl)},
                                  {"rhs_contracting_dimensions", Attr(c.cr)}});
    check(b.finish({z}), {1e-5, 1e-3});
  }
}

TEST(Compile, MovementChains) {
  Builder b("move");
  const ValueId x = b.param(f32({4, 6, 5}));
  const ValueId t = b.one(o::kTranspose, {x}, Attrs{{"permutation", Attr(Dims{2, 0, 1})}});
  const ValueId r = b.one(o::kReshape, {t}, Attrs{{"shape", Attr(Dims{10, 12})}});
  const ValueId s = b.one(o::kSlice, {r},
                          Attrs{{"start_indices", Attr(Dims{1, 0})},
                                {"limit_indices", Attr(Dims{9, 12})},
                                {"strides", Attr(Dims{2, 3})}});
  const ValueId p = b.one(o::kPad, {s, b.splat(DType::kF32, {}, 2)},
                          Attrs{{"edge_padding_low", Attr(Dims{1, -1})},
                                {"edge_padding_high", Attr(Dims{0, 2})},
                                {"interior_padding", Attr(Dims{0, 1})}});
  const ValueId v = b.one(o::kReverse, {p}, Attrs{{"dimensions", Attr(Dims{1})}});
  const ValueId c = b.one(o::kConcatenate, {v, p, v}, Attrs{{"dimension", Attr(0)}});
  check(b.finish({c, b.one(o::kNegate, {c}), r}), kExact);
}

// The slow paths of huge angles are functions that all sines and cosines of a kernel call.
TEST(Compile, ManySinesOfHugeAnglesInOneKernel) {
  for (const DType t : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16}) {
    Builder b("f");
    const ValueId x = b.param(Type::tensor(t, {37}));
    std::vector<ValueId> results;
    for (const double scale : {1.0, 300.0, 6e4, 1e9, 1e25}) {
      const ValueId angle = b.one(o::kMultiply, {x, b.splat(t, {37}, scale)});
      results.push_back(b.one(o::kSine, {angle}));
      results.push_back(b.one(o::kCosine, {angle}));
    }
    const double close = t == DType::kF64 ? 1e-15 : t == DType::kF32 ? 1e-6 : 0.01;
    check(b.finish(results), Tolerance{close, close});
  }
}

}  // namespace
}  // namespace xylem::compiler
