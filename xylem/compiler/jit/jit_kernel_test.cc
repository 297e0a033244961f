// Loops, masks, memory access, tiles and errors of generated code, and the object cache.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "xylem/base/dtype_cast.h"
#include "xylem/base/error.h"
#include "xylem/compiler/jit/jit_test_util.h"
#include "xylem/ir/kernel/kernel_builder.h"
#include "xylem/ir/ops/all.h"

namespace xylem {
namespace {

using ir::Kernel;
using ir::KernelBuilder;
using ir::KernelValue;
using jit_test::Module;
using Values = std::vector<KernelValue>;
namespace ops = ir::ops;

constexpr int kTiers[] = {XYLEM_JIT_TIER_QUICK, XYLEM_JIT_TIER_BEST};

HostArray numbers(DType t, Dims dims, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  HostArray a(t, std::move(dims));
  for (std::int64_t i = 0; i < a.size(); ++i)
    double_to_element(static_cast<double>(static_cast<std::int64_t>(random() % 401) - 200) / 8, t,
                      a.data() + i * dtype_bytes(t));
  if (t == DType::kBool)
    for (std::int64_t i = 0; i < a.size(); ++i) a.data()[i] = static_cast<std::byte>(random() & 1);
  return a;
}

// Runs the kernel on both tiers, in one and in several calls, and on the interpreter in order and
// shuffled; all results must agree (within `tolerance` relative to 1 + |x|).
void check(const Kernel& k, const std::vector<HostArray>& inputs,
           const std::vector<std::int64_t>& scalars = {}, double tolerance = 0) {
  const auto fresh = [&] {
    std::vector<HostArray> out;
    for (const HostArray& a : inputs) out.push_back(a.clone());
    return out;
  };
  std::vector<HostArray> expected = fresh();
  run_kernel(k, expected, scalars);
  const auto compare = [&](const std::vector<HostArray>& got, const std::string& where) {
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (tolerance == 0) {
        EXPECT_TRUE(got[i].bit_equal(expected[i]))
            << k.name << ", buffer " << i << ", " << where << "\n"
            << (got[i].size() < 100 ? got[i].to_string() + "\n" + expected[i].to_string() : "");
        continue;
      }
      for (std::int64_t e = 0; e < got[i].size(); ++e)
        ASSERT_NEAR(got[i].at(e), expected[i].at(e), tolerance * (1 + std::abs(expected[i].at(e))))
            << k.name << ", buffer " << i << ", element " << e << ", " << where;
    }
  };
  std::vector<HostArray> shuffled = fresh();
  run_kernel(k, shuffled, scalars, {.shuffle_seed = 5});
  compare(shuffled, "shuffled interpreter");
  for (int tier : kTiers) {
    const Module m({k}, tier);
    for (std::int64_t chunks : {1, 3}) {
      std::vector<HostArray> got = fresh();
      m.run(0, k, got, scalars, chunks);
      compare(got, "tier " + std::to_string(tier) + ", chunks " + std::to_string(chunks));
    }
  }
  EXPECT_EQ(ir::encode_kernel(ir::parse_kernel(k.to_string())), ir::encode_kernel(k)) << k.name;
}

TEST(JitKernel, MaskedTail) {
  for (DType t : {DType::kF32, DType::kBF16, DType::kI8, DType::kBool, DType::kF64, DType::kC64,
                  DType::kI4, DType::kF8E4M3FN}) {
    for (std::int64_t n : {1, 15, 16, 17, 100}) {
      KernelBuilder k("tail");
      const KernelValue i = k.parallel((n + 15) / 16);
      const KernelValue x = k.read(t, {n}), y = k.write(t, {n});
      const KernelValue at = k.mul(i, 16);
      const KernelValue mask = k.tail_mask(at, k.index(n), 16);
      const KernelValue v = k.load(x, {at}, {0}, {16}, mask);
      k.store(y, k.one(ops::kMaximum, {v, v}), {at}, {0}, mask);
      check(k.finish(), {numbers(t, {n}), HostArray::zeros(t, {n})});
    }
  }
}

TEST(JitKernel, LoopsWithCarries) {
  KernelBuilder k("loops");
  const KernelValue row = k.parallel(7);
  const KernelValue x = k.read(DType::kF32, {7, 64}), y = k.write(DType::kF32, {7, 16});
  const KernelValue z = k.write(DType::kI64, {7});
  const Values r =
      k.for_(k.index(0), k.index(64), 16, {k.splat(DType::kF32, {16}, 0), k.index(3)},
             [&](KernelValue j, std::span<const KernelValue> c) {
               const KernelValue v = k.load(x, {row, j}, {1}, {16});
               // A loop in the loop, with a bound that changes.
               const Values inner = k.for_(k.index(0), k.min(row, k.index(3)), 1, {c[0]},
                                           [&](KernelValue, std::span<const KernelValue> d) {
                                             return Values{k.one(ops::kAdd, {d[0], v})};
                                           });
               return Values{k.one(ops::kMaximum, {inner[0], v}), k.add(k.mul(c[1], 5), j)};
             });
  k.store(y, r[0], {row, k.index(0)}, {1});
  k.store(z, r[1], {row}, {});
  check(k.finish(), {numbers(DType::kF32, {7, 64}), HostArray::zeros(DType::kF32, {7, 16}),
                     HostArray::zeros(DType::kI64, {7})});
}

TEST(JitKernel, EmptyLoopsAndGrids) {
  KernelBuilder k("empty");
  const KernelValue i = k.dynamic_axis(Kernel::AxisKind::kParallel, 0);
  const KernelValue o = k.dynamic_axis(Kernel::AxisKind::kOrdered, 1);
  const KernelValue y = k.read_write(DType::kI32, {8});
  const KernelValue n = k.scalar(), m = k.scalar();
  (void)n;
  const Values r = k.for_(m, k.index(2), 1, {k.load_scalar(y, {i})},
                          [&](KernelValue, std::span<const KernelValue> c) {
                            return Values{k.one(ops::kAdd, {c[0], c[0]})};
                          });
  const KernelValue step = k.one(ops::kConvert, {o}, {{"result_dtype", DType::kI32}});
  k.store(y, k.one(ops::kAdd, {r[0], step}), {i}, {});
  const Kernel kernel = k.finish();
  for (std::int64_t a : {0, 1, 8})
    for (std::int64_t b : {0, 1, 4}) check(kernel, {numbers(DType::kI32, {8})}, {a, b});
}

TEST(JitKernel, SeveralAxesAndBlocks) {
  KernelBuilder k("axes");
  const KernelValue a = k.parallel(3), o = k.ordered(2), c = k.parallel(5);
  // Blocks of [2, 8] of a [6, 40] matrix.
  Kernel::BlockMap map{{2, 8}, {2, 0, 0, 0, 0, 8}, {0, 0}};
  const KernelValue x = k.read(DType::kF32, {6, 40}, map);
  const KernelValue y = k.read_write(DType::kF32, {6, 40}, map);
  const KernelValue tile = k.load(x, {o, k.index(0)}, {1}, {8});
  const KernelValue old = k.load(y, {o, k.index(0)}, {1}, {8});
  const KernelValue label =
      k.one(ops::kConvert, {k.add(k.mul(a, 10), c)}, {{"result_dtype", DType::kF32}});
  k.store(y, k.one(ops::kAdd, {k.one(ops::kMultiply, {tile, k.broadcast(label, {8})}), old}),
          {o, k.index(0)}, {1});
  check(k.finish(), {numbers(DType::kF32, {6, 40}), numbers(DType::kF32, {6, 40}, 2)});
}

TEST(JitKernel, TilesOfEveryWalk) {
  for (DType t : {DType::kF32, DType::kF64, DType::kI8, DType::kBF16, DType::kC128, DType::kBool}) {
    for (Dims dims : {Dims{0, 1}, Dims{1, 0}, Dims{2, 0}, Dims{0, 2}, Dims{2, 1, 0}, Dims{0}}) {
      KernelBuilder k("walk " + to_string(dims));
      const KernelValue i = k.parallel(2);
      const KernelValue x = k.read(t, {12, 11, 10}), y = k.write(t, {24, 11, 10});
      Dims shape;
      for (std::size_t d = 0; d < dims.size(); ++d) shape.push_back(5 - static_cast<int>(d));
      const KernelValue v = k.load(x, {i, k.add(i, 2), k.index(3)}, dims, shape);
      k.store(y, v, {k.mul(i, 12), k.index(1), k.add(i, 1)}, dims);
      // The transpose of the tile, masked by a checkerboard.
      if (dims.size() == 2) {
        const KernelValue mask =
            k.one(ops::kCompare,
                  {k.one(ops::kIota, std::span<const KernelValue>(),
                         {{"iota_dimension", 0}, {"shape", shape}, {"result_dtype", DType::kI32}}),
                   k.one(ops::kIota, std::span<const KernelValue>(),
                         {{"iota_dimension", 1}, {"shape", shape}, {"result_dtype", DType::kI32}})},
                  {{"comparison_direction", ir::EnumAttr("LE")}});
        const KernelValue m = k.load(x, {i, k.index(0), k.index(0)}, dims, shape, mask);
        k.store(y, m, {k.add(k.mul(i, 12), 6), k.index(0), k.index(0)}, dims, mask);
      }
      check(k.finish(), {numbers(t, {12, 11, 10}), HostArray::zeros(t, {24, 11, 10})});
    }
  }
}

// Matrices are transposed in registers by squares of the vector's width and less.
TEST(JitKernel, Transposes) {
  for (DType t : {DType::kF32, DType::kF64, DType::kU8, DType::kBF16, DType::kC64, DType::kBool}) {
    for (auto [m, n] : {std::pair{16, 16}, {32, 16}, {8, 32}, {4, 4}, {12, 20}, {16, 5}}) {
      if (t != DType::kF32 && m * n > 128) continue;  // the large ones take long to compile
      KernelBuilder k("transpose");
      const KernelValue i = k.parallel(2);
      const KernelValue x = k.read(t, {64, 64});
      const KernelValue y = k.write(t, {128, 64}), z = k.write(t, {128, 64});
      const KernelValue zero = k.index(0);
      // By the load, by the op, by the store.
      const KernelValue at = k.mul(i, 64);
      k.store(y, k.load(x, {i, zero}, {1, 0}, {m, n}), {at, zero}, {0, 1});
      const KernelValue v = k.load(x, {zero, i}, {0, 1}, {m, n});
      k.store(y, k.one(ops::kTranspose, {v}, {{"permutation", Dims{1, 0}}}), {at, k.index(32)},
              {0, 1});
      k.store(z, v, {at, zero}, {1, 0});
      check(k.finish(),
            {numbers(t, {64, 64}), HostArray::zeros(t, {128, 64}), HostArray::zeros(t, {128, 64})});
    }
  }
}

TEST(JitKernel, StreamingStores) {
  for (DType t : {DType::kF32, DType::kBF16, DType::kI8}) {
    KernelBuilder k("stream");
    const KernelValue i = k.parallel(3);
    const KernelValue x = k.read(t, {3, 70}), y = k.write(t, {3, 128}), z = k.write(t, {3, 70});
    k.for_(k.index(0), k.index(64), 32, {}, [&](KernelValue j, std::span<const KernelValue>) {
      const KernelValue v = k.load(x, {i, j}, {1}, {32});
      k.store(y, v, {i, j}, {1}, {}, true);
      k.store(z, v, {i, k.add(j, 1)}, {1}, {}, true);  // not aligned
      return Values{};
    });
    check(k.finish(),
          {numbers(t, {3, 70}), HostArray::zeros(t, {3, 128}), HostArray::zeros(t, {3, 70})});
  }
}

TEST(JitKernel, GatherScatter) {
  for (DType t : {DType::kF32, DType::kI8, DType::kF64, DType::kC64, DType::kF16, DType::kBool}) {
    KernelBuilder k("gather");
    const KernelValue i = k.parallel(1);
    const KernelValue x = k.read(t, {5, 20}), at = k.read(DType::kI32, {32});
    const KernelValue y = k.read_write(t, {100});
    const KernelValue offsets = k.load(at, {k.index(0)}, {0}, {32});
    const KernelValue mask = k.one(ops::kCompare, {offsets, k.splat(DType::kI32, {32}, 50)},
                                   {{"comparison_direction", ir::EnumAttr("LT")}});
    const KernelValue all = k.gather(x, offsets);
    const KernelValue some = k.gather(x, offsets, mask);
    k.scatter(y, all, offsets);
    // A strided walk spelled with offsets.
    const KernelValue lane =
        k.one(ops::kIota, std::span<const KernelValue>(),
              {{"iota_dimension", 0}, {"shape", Dims{32}}, {"result_dtype", DType::kI64}});
    const KernelValue three = k.broadcast(k.index(3), {32});
    const KernelValue walk =
        k.one(ops::kAdd, {k.broadcast(k.add(i, 4), {32}), k.one(ops::kMultiply, {lane, three})});
    k.store(y, k.gather(x, walk), {k.index(60)}, {0});
    k.scatter(y, some, k.one(ops::kConvert, {offsets}, {{"result_dtype", DType::kI64}}), mask);
    const Kernel kernel = k.finish();
    HostArray indices(DType::kI32, {32});
    std::mt19937 random(3);
    for (int n = 0; n < 32; ++n) indices.as<std::int32_t>()[n] = static_cast<int>(random() % 100);
    check(kernel, {numbers(t, {5, 20}), indices, numbers(t, {100}, 9)});
  }
}

TEST(JitKernel, Structure) {
  for (DType t : {DType::kF32, DType::kBF16, DType::kI64, DType::kBool, DType::kC64}) {
    KernelBuilder k("structure");
    k.parallel(1);
    const KernelValue x = k.read(t, {6, 20}), y = k.write(t, {2000});
    const KernelValue v = k.load(x, {k.index(0), k.index(0)}, {0, 1}, {6, 20});
    std::int64_t at = 0;
    const auto put = [&](KernelValue u) {
      const std::int64_t n = num_elements(k.dims(u));
      k.store(y, k.one(ops::kReshape, {u}, {{"shape", Dims{n}}}), {k.index(at)}, {0});
      at += n;
    };
    put(v);
    put(k.one(ops::kTranspose, {v}, {{"permutation", Dims{1, 0}}}));
    put(k.one(ops::kReshape, {v}, {{"shape", Dims{3, 5, 8}}}));
    put(k.one(ops::kReverse, {v}, {{"dimensions", Dims{0, 1}}}));
    put(k.one(
        ops::kSlice, {v},
        {{"start_indices", Dims{1, 3}}, {"limit_indices", Dims{6, 20}}, {"strides", Dims{2, 3}}}));
    put(k.one(
        ops::kSlice, {v},
        {{"start_indices", Dims{2, 4}}, {"limit_indices", Dims{4, 20}}, {"strides", Dims{1, 1}}}));
    put(k.one(ops::kConcatenate, {v, v}, {{"dimension", 1}}));
    put(k.one(ops::kConcatenate, {v, v}, {{"dimension", 0}}));
    const KernelValue column = k.load(x, {k.index(0), k.index(2)}, {0}, {6});
    put(k.broadcast(column, {6, 16}, {0}));
    put(k.broadcast(column, {3, 6}, {1}));
    put(k.broadcast(k.load_scalar(x, {k.index(1), k.index(1)}), {4, 4}));
    const KernelValue zero = k.load_scalar(x, {k.index(5), k.index(19)});
    put(k.one(ops::kPad, {v, zero},
              {{"edge_padding_low", Dims{1, -2}},
               {"edge_padding_high", Dims{0, 1}},
               {"interior_padding", Dims{0, 1}}}));
    check(k.finish(), {numbers(t, {6, 20}), HostArray::zeros(t, {2000})});
  }
}

TEST(JitKernel, BitcastOfOtherWidths) {
  KernelBuilder k("bitcast");
  k.parallel(1);
  const KernelValue x = k.read(DType::kU32, {8}), y = k.write(DType::kU8, {8, 4});
  const KernelValue z = k.write(DType::kF32, {8}), w = k.write(DType::kI4, {8, 8});
  const KernelValue v = k.load(x, {k.index(0)}, {0}, {8});
  const KernelValue bytes = k.one(ops::kBitcastConvert, {v}, {{"result_dtype", DType::kU8}});
  k.store(y, bytes, {k.index(0), k.index(0)}, {0, 1});
  k.store(z, k.one(ops::kBitcastConvert, {bytes}, {{"result_dtype", DType::kF32}}), {k.index(0)},
          {0});
  k.store(w, k.one(ops::kBitcastConvert, {v}, {{"result_dtype", DType::kI4}}),
          {k.index(0), k.index(0)}, {0, 1});
  HostArray in(DType::kU32, {8});
  for (int i = 0; i < 8; ++i)
    in.as<std::uint32_t>()[i] = 0x3f9e3779u + 0x01234567u * static_cast<unsigned>(i);
  check(k.finish(), {in, HostArray::zeros(DType::kU8, {8, 4}), HostArray::zeros(DType::kF32, {8}),
                     HostArray::zeros(DType::kI4, {8, 8})});
}

ir::GraphPtr reducer(const ir::OpDef& def, DType t) {
  ir::Builder b;
  const ir::ValueId x = b.param(ir::Type::tensor(t)), y = b.param(ir::Type::tensor(t));
  return b.finish({b.one(def, {x, y})});
}

TEST(JitKernel, Reductions) {
  for (DType t : {DType::kF32, DType::kI32, DType::kI64, DType::kBF16, DType::kF64, DType::kU8}) {
    for (const ir::OpDef* def : {&ops::kAdd, &ops::kMaximum}) {
      for (Dims dims :
           {Dims{0}, Dims{1}, Dims{2}, Dims{0, 1}, Dims{1, 2}, Dims{0, 2}, Dims{0, 1, 2}}) {
        KernelBuilder k("reduce");
        k.parallel(1);
        const KernelValue x = k.read(t, {3, 4, 37});
        Dims kept;
        for (int d = 0; d < 3; ++d)
          if (!dims.contains(d)) kept.push_back(Dims{3, 4, 37}[d]);
        const KernelValue y = k.write(t, kept);
        const KernelValue v =
            k.load(x, {k.index(0), k.index(0), k.index(0)}, {0, 1, 2}, {3, 4, 37});
        const KernelValue init = k.splat(t, {}, 3);
        const KernelValue r =
            k.one(ops::kReduce, {v, init}, {{"dimensions", dims}}, {reducer(*def, t)});
        Dims all;
        Values zeros;
        for (int d = 0; d < kept.ssize(); ++d) all.push_back(d), zeros.push_back(k.index(0));
        k.store(y, r, zeros, all);
        const bool sum = def == &ops::kAdd && is_float(t);
        check(k.finish(), {numbers(t, {3, 4, 37}), HostArray::zeros(t, kept)}, {},
              !sum                ? 0
              : t == DType::kBF16 ? 0.2
                                  : 1e-4);
      }
    }
  }
}

// The documented order, which no vector width changes: powers of two, each by halves, from left to
// right.
TEST(JitKernel, SumsHaveOneOrder) {
  for (std::int64_t n : {1, 7, 16, 37, 48, 240, 256}) {
    KernelBuilder k("sum");
    k.parallel(1);
    const KernelValue x = k.read(DType::kF32, {n}), y = k.write(DType::kF32, {});
    const KernelValue v = k.load(x, {k.index(0)}, {0}, {n});
    k.store(y,
            k.one(ops::kReduce, {v, k.splat(DType::kF32, {}, 0.1)}, {{"dimensions", Dims{0}}},
                  {reducer(ops::kAdd, DType::kF32)}),
            {}, {});
    const Kernel kernel = k.finish();
    HostArray a(DType::kF32, {n});
    std::mt19937 random(static_cast<unsigned>(n));
    for (std::int64_t i = 0; i < n; ++i)
      a.as<float>()[i] =
          std::ldexp(static_cast<float>(random()), static_cast<int>(random() % 20) - 40);
    float total = 0;
    for (std::int64_t start = 0; start < n;) {
      std::int64_t size = 1;
      while (2 * size <= n - start) size *= 2;
      std::vector<float> part(a.as<float>() + start, a.as<float>() + start + size);
      for (std::int64_t half = size / 2; half > 0; half /= 2)
        for (std::int64_t i = 0; i < half; ++i)
          part[static_cast<std::size_t>(i)] += part[static_cast<std::size_t>(i + half)];
      total = start == 0 ? part[0] : total + part[0];
      start += size;
    }
    total = 0.1f + total;
    for (int tier : kTiers) {
      std::vector<HostArray> b = {a, HostArray::zeros(DType::kF32, {})};
      Module({kernel}, tier).run(0, kernel, b);
      EXPECT_EQ(*b[1].as<float>(), total) << n << ", tier " << tier;
    }
  }
}

// The place of the largest element: two inputs, a region of several ops.
TEST(JitKernel, ReductionOfPairs) {
  ir::Builder b;
  ir::ValueId p[4];
  for (int i = 0; i < 4; ++i) p[i] = b.param(ir::Type::tensor(i % 2 ? DType::kI32 : DType::kF32));
  const auto greater =
      b.one(ops::kCompare, {p[0], p[2]}, {{"comparison_direction", ir::EnumAttr("GT")}});
  const auto same =
      b.one(ops::kCompare, {p[0], p[2]}, {{"comparison_direction", ir::EnumAttr("EQ")}});
  const auto lower =
      b.one(ops::kCompare, {p[1], p[3]}, {{"comparison_direction", ir::EnumAttr("LT")}});
  const auto first = b.one(ops::kOr, {greater, b.one(ops::kAnd, {same, lower})});
  ir::GraphPtr region = b.finish(
      {b.one(ops::kSelect, {first, p[0], p[2]}), b.one(ops::kSelect, {first, p[1], p[3]})});
  KernelBuilder k("argmax");
  k.parallel(1);
  const KernelValue x = k.read(DType::kF32, {5, 50}), y = k.write(DType::kI32, {5});
  const KernelValue v = k.load(x, {k.index(0), k.index(0)}, {0, 1}, {5, 50});
  const KernelValue lane =
      k.one(ops::kIota, std::span<const KernelValue>(),
            {{"iota_dimension", 1}, {"shape", Dims{5, 50}}, {"result_dtype", DType::kI32}});
  const Values operands = {v, lane, k.splat(DType::kF32, {}, -INFINITY),
                           k.constant(HostArray::scalar(std::int32_t{INT32_MAX}))};
  const Values r = k.op(ops::kReduce, operands, {{"dimensions", Dims{1}}}, {region});
  k.store(y, r[1], {k.index(0)}, {0});
  check(k.finish(), {numbers(DType::kF32, {5, 50}), HostArray::zeros(DType::kI32, {5})});
}

TEST(JitKernel, DotGeneral) {
  struct Shape {
    DType in, out;
  };
  for (Shape s : {Shape{DType::kF32, DType::kF32},
                  {DType::kBF16, DType::kF32},
                  {DType::kI8, DType::kI32},
                  {DType::kF64, DType::kF64},
                  {DType::kC64, DType::kC64}}) {
    KernelBuilder k("dot");
    k.parallel(1);
    const KernelValue x = k.read(s.in, {2, 5, 7}), y = k.read(s.in, {2, 9, 7});
    const KernelValue z = k.write(s.out, {2, 5, 9});
    const KernelValue zero = k.index(0);
    const KernelValue a = k.load(x, {zero, zero, zero}, {0, 1, 2}, {2, 5, 7});
    const KernelValue c = k.load(y, {zero, zero, zero}, {0, 1, 2}, {2, 9, 7});
    const KernelValue d = k.one(ops::kDotGeneral, {a, c},
                                {{"lhs_batching_dimensions", Dims{0}},
                                 {"rhs_batching_dimensions", Dims{0}},
                                 {"lhs_contracting_dimensions", Dims{2}},
                                 {"rhs_contracting_dimensions", Dims{2}},
                                 {"result_dtype", s.out}});
    k.store(z, d, {zero, zero, zero}, {0, 1, 2});
    check(
        k.finish(),
        {numbers(s.in, {2, 5, 7}), numbers(s.in, {2, 9, 7}, 2), HostArray::zeros(s.out, {2, 5, 9})},
        {}, is_integer(s.out) ? 0 : 1e-5);
  }
}

TEST(JitKernel, BranchesAndWhile) {
  KernelBuilder k("control");
  const KernelValue i = k.parallel(9);
  const KernelValue x = k.read(DType::kBF16, {9, 8}), y = k.write(DType::kBF16, {9, 8});
  const KernelValue z = k.write(DType::kI32, {9});
  const KernelValue v = k.load(x, {i, k.index(0)}, {1}, {8});
  const Values r = k.if_(
      k.less(i, k.index(4)),
      [&] {
        return Values{k.one(ops::kAdd, {v, v}), k.add(i, 100)};
      },
      [&] {
        return Values{k.one(ops::kNegate, {v}), k.mul(i, 3)};
      });
  // Halve until at most 5: counts the steps. Stores happen in a branch too.
  const Values w = k.while_(
      Values{r[1], k.splat(DType::kI32, {}, 0)},
      [&](std::span<const KernelValue> c) { return k.less(k.index(5), c[0]); },
      [&](std::span<const KernelValue> c) {
        return Values{k.one(ops::kDivide, {c[0], k.index(2)}),
                      k.one(ops::kAdd, {c[1], k.splat(DType::kI32, {}, 1)})};
      });
  k.if_(k.less(w[0], k.index(4)), [&] {
    k.store(z, w[1], {i}, {});
    return Values{};
  });
  k.store(y, r[0], {i, k.index(0)}, {1});
  check(k.finish(), {numbers(DType::kBF16, {9, 8}), HostArray::zeros(DType::kBF16, {9, 8}),
                     numbers(DType::kI32, {9})});
}

// Rows: largest value, sum of powers of two as a stand-in for exp, division; row kept in scratch.
Kernel softmax_like(std::int64_t rows, std::int64_t columns) {
  KernelBuilder k("softmax like");
  const KernelValue row = k.parallel(rows);
  const KernelValue x = k.read(DType::kF32, {rows, columns}),
                    y = k.write(DType::kF32, {rows, columns});
  const KernelValue s = k.scratch(DType::kF32, {columns});
  const KernelValue zero = k.index(0), n = k.index(columns);
  const Values top =
      k.for_(zero, n, 32, {k.splat(DType::kF32, {32}, -INFINITY)},
             [&](KernelValue j, std::span<const KernelValue> c) {
               return Values{k.one(ops::kMaximum, {c[0], k.load(x, {row, j}, {1}, {32})})};
             });
  const KernelValue largest =
      k.one(ops::kReduce, {top[0], k.splat(DType::kF32, {}, -INFINITY)}, {{"dimensions", Dims{0}}},
            {reducer(ops::kMaximum, DType::kF32)});
  const KernelValue shift = k.broadcast(largest, {32});
  const Values sums = k.for_(
      zero, n, 32, {k.splat(DType::kF32, {32}, 0)},
      [&](KernelValue j, std::span<const KernelValue> c) {
        const KernelValue d = k.one(ops::kSubtract, {k.load(x, {row, j}, {1}, {32}), shift});
        const KernelValue f = k.one(ops::kFloor, {d});
        const KernelValue e = k.one(ops::kConvert, {f}, {{"result_dtype", DType::kI32}});
        const KernelValue p = k.fma(k.one(ops::kSubtract, {d, f}), k.splat(DType::kF32, {32}, 1),
                                    k.splat(DType::kF32, {32}, 1));
        const KernelValue v = k.ldexp(p, e);
        k.store(s, v, {j}, {0});
        return Values{k.one(ops::kAdd, {c[0], v})};
      });
  const KernelValue sum = k.one(ops::kReduce, {sums[0], k.splat(DType::kF32, {}, 0)},
                                {{"dimensions", Dims{0}}}, {reducer(ops::kAdd, DType::kF32)});
  const KernelValue total = k.broadcast(sum, {32});
  k.for_(zero, n, 32, {}, [&](KernelValue j, std::span<const KernelValue>) {
    k.store(y, k.one(ops::kDivide, {k.load(s, {j}, {0}, {32}), total}), {row, j}, {1});
    return Values{};
  });
  return k.finish();
}

TEST(JitKernel, SoftmaxLikeRows) {
  check(softmax_like(5, 96),
        {numbers(DType::kF32, {5, 96}), HostArray::zeros(DType::kF32, {5, 96})}, {}, 1e-6);
}

TEST(JitKernel, InPlace) {
  KernelBuilder k("in place");
  const KernelValue i = k.parallel(4);
  const KernelValue x = k.read(DType::kF32, {64});
  const KernelValue y = k.write(DType::kF32, {64}, {}, k.param_number(x));
  const KernelValue v = k.load(x, {k.mul(i, 16)}, {0}, {16});
  k.store(y, k.one(ops::kAdd, {v, v}), {k.mul(i, 16)}, {0});
  const Kernel kernel = k.finish();
  const Module m({kernel}, XYLEM_JIT_TIER_BEST);
  HostArray a = numbers(DType::kF32, {64});
  const HostArray before = a.clone();
  std::vector<HostArray> both = {a, a};
  m.run(0, kernel, both);
  for (int e = 0; e < 64; ++e) EXPECT_EQ(a.at(e), 2 * before.at(e));
}

TEST(JitKernel, ObjectRoundTrip) {
  const Kernel a = softmax_like(3, 64), c = softmax_like(2, 32);
  const Module first({a, c}, XYLEM_JIT_TIER_BEST);
  const std::string object = first.object();
  EXPECT_EQ(Module({a, c}, XYLEM_JIT_TIER_BEST).object(), object);  // reproducible
  const Module second(object.data(), object.size(), 2);
  for (const Kernel* k : {&a, &c}) {
    const Dims dims = k->params[0].dims;
    std::vector<HostArray> x = {numbers(DType::kF32, dims), HostArray::zeros(DType::kF32, dims)};
    std::vector<HostArray> y = {x[0], HostArray::zeros(DType::kF32, dims)};
    first.run(k == &a ? 0 : 1, *k, x);
    second.run(k == &a ? 0 : 1, *k, y);
    EXPECT_TRUE(x[1].bit_equal(y[1]));
  }
}

TEST(JitKernel, DamagedObjectsAreErrors) {
  const Module m({softmax_like(3, 64)}, XYLEM_JIT_TIER_QUICK);
  const std::string object = m.object();
  EXPECT_THROW(Module(object.data(), 0, 1), std::runtime_error);
  EXPECT_THROW(Module(object.data(), 100, 1), std::runtime_error);
  EXPECT_THROW(Module("not an object at all, just text", 31, 1), std::runtime_error);
  EXPECT_THROW(Module(object.data(), object.size(), 5), std::runtime_error);  // no k4
}

TEST(JitKernel, InvalidKernelsAreErrors) {
  xylem_jit_module* module = nullptr;
  char error[512] = "";
  const char* names[] = {"bad"};
  const auto compile = [&](const std::string& bytes) {
    const char* data[] = {bytes.data()};
    const std::size_t sizes[] = {bytes.size()};
    return xylem_jit_compile(data, sizes, names, 1, nullptr, &module, error, sizeof error);
  };
  EXPECT_NE(compile(""), 0);
  EXPECT_NE(compile("garbage"), 0);
  const std::string good = ir::encode_kernel(softmax_like(2, 32));
  for (std::size_t n = 0; n < good.size(); n += 7) EXPECT_NE(compile(good.substr(0, n)), 0) << n;
  // An op that must have been expanded before.
  KernelBuilder k("exp");
  k.parallel(1);
  const KernelValue x = k.read_write(DType::kF32, {16});
  k.store(x, k.one(ops::kExponential, {k.load(x, {k.index(0)}, {0}, {16})}), {k.index(0)}, {0});
  EXPECT_NE(compile(ir::encode_kernel(k.finish())), 0);
  EXPECT_NE(std::string(error).find("exponential"), std::string::npos) << error;
  EXPECT_NE(std::string(error).find("f32"), std::string::npos) << error;
  EXPECT_EQ(module, nullptr);
}

// Damaged bytes give an error, or another kernel that compiles; never worse.
TEST(JitKernel, FlippedBitsDoNoHarm) {
  const std::string good = ir::encode_kernel(softmax_like(2, 32));
  const char* stride = std::getenv("XYLEM_JIT_FUZZ");
  int refused = 0;
  for (std::size_t i = 0; i < good.size() * 8; i += stride ? 1 : 61) {
    std::string bytes = good;
    bytes[i / 8] = static_cast<char>(bytes[i / 8] ^ (1 << (i % 8)));
    const char* data[] = {bytes.data()};
    const std::size_t sizes[] = {bytes.size()};
    const char* names[] = {"damaged"};
    xylem_jit_module* module = nullptr;
    char error[256] = "";
    if (xylem_jit_compile(data, sizes, names, 1, nullptr, &module, error, sizeof error)) {
      EXPECT_NE(error[0], '\0');
      ++refused;
    } else {
      xylem_jit_release(module);
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(JitKernel, DumpsAndDebugLines) {
  const Kernel kernel = softmax_like(2, 32);
  const std::string bytes = ir::encode_kernel(kernel),
                    prefix = testing::TempDir() + "xylem_jit_dump";
  const char* data[] = {bytes.data(), bytes.data()};
  const std::size_t sizes[] = {bytes.size(), bytes.size()};
  const char* names[] = {"twice", "twice"};
  const xylem_jit_options options{XYLEM_JIT_TIER_QUICK, 1, prefix.c_str()};
  xylem_jit_module* module = nullptr;
  char error[512] = "";
  ASSERT_EQ(xylem_jit_compile(data, sizes, names, 2, &options, &module, error, sizeof error), 0)
      << error;
  EXPECT_NE(xylem_jit_entry(module, 0), xylem_jit_entry(module, 1));
  xylem_jit_release(module);
  const auto read = [&](const char* extension) {
    std::ifstream in(prefix + extension, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    std::remove((prefix + extension).c_str());
    return text;
  };
  const std::string text = read(".kernel"), code = read(".ll");
  EXPECT_FALSE(read(".o").empty());
  EXPECT_NE(code.find("xylem_twice"), std::string::npos);
  // Each line that the code names is the line of an op.
  std::vector<std::string> lines(1);
  for (char c : text) {
    if (c == '\n')
      lines.emplace_back();
    else
      lines.back() += c;
  }
  int checked = 0;
  for (std::size_t at = code.find("!DILocation(line: "); at != std::string::npos;
       at = code.find("!DILocation(line: ", at + 1)) {
    const auto line = static_cast<std::size_t>(std::stoi(code.substr(at + 18)));
    ASSERT_LE(line, lines.size());
    const std::string& there = lines[line - 1];
    EXPECT_TRUE(there.find("stablehlo.") != std::string::npos ||
                there.find("kernel.") != std::string::npos || there.find("graph(") == 0)
        << line << ": " << there;
    ++checked;
  }
  EXPECT_GT(checked, 10);
}

TEST(JitKernel, HasOp) {
  EXPECT_EQ(xylem_jit_has_op("stablehlo.add"), 1);
  EXPECT_EQ(xylem_jit_has_op("kernel.for"), 1);
  EXPECT_EQ(xylem_jit_has_op("stablehlo.sort"), 0);
  EXPECT_EQ(xylem_jit_has_op("no.such"), 0);
}

#ifndef __SANITIZE_ADDRESS__  // which keeps freed memory for a while
TEST(JitKernel, ReleasedCodeIsFreed) {
  const auto resident = [] {
    std::ifstream in("/proc/self/statm");
    long total = 0, pages = 0;
    in >> total >> pages;
    return pages * 4096;
  };
  const Kernel kernel = softmax_like(2, 32);
  for (int i = 0; i < 50; ++i) Module({kernel}, XYLEM_JIT_TIER_QUICK);
  const long before = resident();
  for (int i = 0; i < 300; ++i) Module({kernel}, XYLEM_JIT_TIER_QUICK);
  // Some 10 KB of code and tables each, if they were kept.
  EXPECT_LT(resident() - before, 300 * 4096);
}
#endif

TEST(JitKernel, TwoThreadsCompileAtOnce) {
  const Kernel kernel = softmax_like(3, 64);
  std::vector<HostArray> expected = {numbers(DType::kF32, {3, 64}),
                                     HostArray::zeros(DType::kF32, {3, 64})};
  Module({kernel}, XYLEM_JIT_TIER_BEST).run(0, kernel, expected);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int n = 0; n < 10; ++n) {
        const Module m({kernel}, n % 2);
        std::vector<HostArray> got = {expected[0], HostArray::zeros(DType::kF32, {3, 64})};
        m.run(0, kernel, got);
        wrong[static_cast<std::size_t>(t)] += !got[1].bit_equal(expected[1]);
      }
    });
  for (std::thread& t : threads) t.join();
  for (int w : wrong) EXPECT_EQ(w, 0);
}

}  // namespace
}  // namespace xylem
