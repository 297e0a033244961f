#include "xylem/ir/kernel.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/ir/interpreter.h"
#include "xylem/ir/kernel/kernel_builder.h"
#include "xylem/ir/ops/all.h"
#include "xylem/ir/ops/families.h"

namespace xylem::ir {
namespace {

using Values = std::vector<KernelValue>;

// y[i] = 2 x[i] + row, rows in parallel, columns by a loop.
Kernel scale_kernel() {
  KernelBuilder k("scale");
  const KernelValue row = k.parallel(4);
  const KernelValue x = k.read(DType::kF32, {4, 32}), y = k.write(DType::kF32, {4, 32});
  const KernelValue label = k.one(ops::kConvert, {row}, {{"result_dtype", DType::kF32}});
  k.for_(k.index(0), k.index(32), 8, {}, [&](KernelValue j, std::span<const KernelValue>) {
    const KernelValue v = k.load(x, {row, j}, {1}, {8});
    k.store(y, k.fma(v, k.splat(DType::kF32, {8}, 2), k.broadcast(label, {8})), {row, j}, {1});
    return Values{};
  });
  return k.finish();
}

HostArray counting(DType t, Dims dims) {
  HostArray a(DType::kI64, std::move(dims));
  for (std::int64_t i = 0; i < a.size(); ++i) a.as<std::int64_t>()[i] = i;
  return a.astype(t);
}

// The message of the UserError that fn throws; empty if it throws none.
std::string error_of(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const UserError& e) {
    return e.message();
  }
  return "";
}

TEST(Kernel, RunsInAnyOrder) {
  const Kernel k = scale_kernel();
  EXPECT_EQ(k.parallel_points(), 4);
  for (std::uint64_t seed : {0, 1, 2}) {
    std::vector<HostArray> b = {counting(DType::kF32, {4, 32}),
                                HostArray::zeros(DType::kF32, {4, 32})};
    run_kernel(k, b, {}, {.shuffle_seed = seed});
    for (int i = 0; i < 128; ++i) EXPECT_EQ(b[1].at(i), 2 * i + i / 32);
  }
}

TEST(Kernel, OrderedAxesKeepTheirOrder) {
  KernelBuilder k("fold");
  const KernelValue p = k.parallel(3), o = k.ordered(5);
  const KernelValue y = k.read_write(DType::kI64, {3});
  k.store(y, k.add(k.mul(k.load_scalar(y, {p}), 10), o), {p}, {});
  const Kernel kernel = k.finish();
  for (std::uint64_t seed : {0, 7}) {
    std::vector<HostArray> b = {HostArray::zeros(DType::kI64, {3})};
    run_kernel(kernel, b, {}, {.shuffle_seed = seed});
    for (int i = 0; i < 3; ++i) EXPECT_EQ(b[0].at(i), 1234);
  }
}

TEST(Kernel, TextAndBytesRoundTrip) {
  KernelBuilder k("all \"parts\"\\");
  const KernelValue p = k.dynamic_axis(Kernel::AxisKind::kParallel, 1), o = k.ordered(2);
  const KernelValue x = k.read(DType::kBF16, {8, 8}, {{4, 8}, {4, 0, 0, 0}, {0, 0}});
  const KernelValue y = k.write(DType::kBF16, {8, 8}, {}, k.param_number(x));
  const KernelValue s = k.scratch(DType::kF8E4M3FN, {16});
  k.scalar();
  k.scalar();
  const KernelValue v = k.load(x, {o, k.index(0)}, {1}, {8});
  const Values r = k.if_(
      k.less(p, k.index(1)), [&] { return Values{k.one(ops::kNegate, {v})}; },
      [&] { return Values{v}; });
  k.store(y, r[0], {k.add(k.mul(p, 4), o), k.index(0)}, {1});
  k.store(s, k.splat(DType::kF8E4M3FN, {16}, 1), {k.index(0)}, {0});
  k.prefetch(x, {k.index(0), k.index(0)});
  const Kernel kernel = k.finish();
  for (const Kernel& each : {kernel, scale_kernel()}) {
    const Kernel from_text = parse_kernel(each.to_string());
    EXPECT_EQ(from_text.name, each.name);
    EXPECT_EQ(from_text.grid, each.grid);
    EXPECT_EQ(from_text.params, each.params);
    EXPECT_EQ(from_text.num_scalars, each.num_scalars);
    EXPECT_TRUE(structurally_equal(*from_text.body, *each.body));
    EXPECT_EQ(from_text.to_string(), each.to_string());
    const std::string bytes = encode_kernel(each);
    EXPECT_EQ(encode_kernel(from_text), bytes);
    const Kernel from_bytes = decode_kernel(bytes);
    EXPECT_EQ(from_bytes.params, each.params);
    EXPECT_EQ(encode_kernel(from_bytes), bytes);
  }
}

TEST(Kernel, NameIsNotPartOfTheBytes) {
  Kernel a = scale_kernel(), b = scale_kernel();
  b.name = "another";
  EXPECT_EQ(encode_kernel(a), encode_kernel(b));
  b.grid[0].kind = Kernel::AxisKind::kOrdered;
  EXPECT_NE(encode_kernel(a), encode_kernel(b));
}

TEST(Kernel, DamagedBytesAndTextAreErrors) {
  const std::string bytes = encode_kernel(scale_kernel());
  for (std::size_t n = 0; n < bytes.size(); ++n)
    EXPECT_NE(error_of([&] { decode_kernel(bytes.substr(0, n)); }), "") << n;
  // A flipped bit gives an error or another well-formed kernel, never worse.
  for (std::size_t i = 0; i < bytes.size() * 8; ++i) {
    std::string flipped = bytes;
    flipped[i / 8] = static_cast<char>(flipped[i / 8] ^ (1 << (i % 8)));
    error_of([&] { decode_kernel(flipped); });
  }
  const std::string text = scale_kernel().to_string();
  for (std::size_t n = 0; n < text.size(); n += 5)
    error_of([&] { parse_kernel(text.substr(0, n)); });
  EXPECT_NE(error_of([] { parse_kernel(""); }), "");
  EXPECT_NE(error_of([] { parse_kernel("kernel \"x\"\naxis sideways 3\nbody\n"); }).find("line 2"),
            std::string::npos);
  EXPECT_NE(error_of([] { parse_kernel("kernel \"x\"\nparam read f32[2,a]\nbody\n"); }), "");
}

TEST(Kernel, AccessOutsideOfABufferIsFound) {
  const auto build = [](std::int64_t limit, bool masked) {
    KernelBuilder k("outside");
    const KernelValue i = k.parallel(2);
    const KernelValue x = k.read(DType::kF32, {10}), y = k.write(DType::kF32, {limit});
    const KernelValue at = k.mul(i, 8);
    const KernelValue mask = masked ? k.tail_mask(at, k.index(10), 8) : KernelValue{};
    k.store(y, k.load(x, {at}, {0}, {8}, mask), {at}, {0}, mask);
    return k.finish();
  };
  const auto run = [](const Kernel& k, bool check) {
    std::vector<HostArray> b = {counting(DType::kF32, {10}),
                                HostArray::zeros(DType::kF32, k.params[1].dims)};
    run_kernel(k, b, {}, {.check_bounds = check});
    return b[1];
  };
  const std::string message = error_of([&] { run(build(16, false), true); });
  EXPECT_NE(message.find("kernel.load: parameter 0"), std::string::npos) << message;
  EXPECT_NE(message.find("element [10]"), std::string::npos) << message;
  EXPECT_EQ(run(build(10, true), true).at(9), 9);
  EXPECT_EQ(run(build(16, false), false).at(9), 9);
}

TEST(Kernel, BlocksAreBounds) {
  KernelBuilder k("block");
  const KernelValue i = k.parallel(2);
  const KernelValue x = k.read_write(DType::kI32, {8}, {{4}, {4}, {0}});
  // Element 4 of the block is an element of the neighbour.
  k.store(x, k.splat(DType::kI32, {}, 1), {k.add(i, 3)}, {});
  const Kernel kernel = k.finish();
  std::vector<HostArray> b = {HostArray::zeros(DType::kI32, {8})};
  EXPECT_NE(error_of([&] { run_kernel(kernel, b); }).find("block of [4] at [4]"),
            std::string::npos);
}

TEST(Kernel, GatherAndScatterCheckOffsets) {
  KernelBuilder k("gather");
  k.parallel(1);
  const KernelValue x = k.read(DType::kF32, {2, 3}), at = k.read(DType::kI64, {4});
  const KernelValue y = k.read_write(DType::kF32, {2, 2});
  const KernelValue offsets = k.load(at, {k.index(0)}, {0}, {4});
  k.scatter(y, k.gather(x, offsets),
            k.constant(HostArray::from(std::vector<std::int64_t>{3, 2, 1, 1}, {4})));
  const Kernel kernel = k.finish();
  std::vector<HostArray> b = {counting(DType::kF32, {2, 3}),
                              HostArray::from(std::vector<std::int64_t>{5, 0, 2, 4}, {4}),
                              HostArray::zeros(DType::kF32, {2, 2})};
  run_kernel(kernel, b);
  EXPECT_EQ(b[2].at(3), 5);
  EXPECT_EQ(b[2].at(1), 4);  // the later lane wins
  for (std::int64_t bad : {6, -1}) {
    b[1].as<std::int64_t>()[2] = bad;
    EXPECT_NE(error_of([&] { run_kernel(kernel, b); }).find("offset " + std::to_string(bad)),
              std::string::npos);
  }
}

TEST(Kernel, ScratchIsUndefinedAtEntry) {
  KernelBuilder k("scratch");
  const KernelValue i = k.parallel(2);
  const KernelValue y = k.write(DType::kF32, {2}), s = k.scratch(DType::kF32, {1});
  k.store(y, k.load_scalar(s, {k.index(0)}), {i}, {});
  k.store(s, k.splat(DType::kF32, {}, 1), {k.index(0)}, {});
  const Kernel kernel = k.finish();
  std::vector<HostArray> b = {HostArray::zeros(DType::kF32, {2})};
  run_kernel(kernel, b);
  EXPECT_NE(b[0].at(1), 1);
}

TEST(Kernel, LaunchArgumentsAreChecked) {
  const Kernel k = scale_kernel();
  std::vector<HostArray> none;
  EXPECT_NE(error_of([&] { run_kernel(k, none); }).find("2 buffers"), std::string::npos);
  std::vector<HostArray> wrong = {HostArray::zeros(DType::kF64, {4, 32}),
                                  HostArray::zeros(DType::kF32, {4, 32})};
  EXPECT_NE(error_of([&] { run_kernel(k, wrong); }).find("buffer 0"), std::string::npos);
  std::vector<HostArray> good = {HostArray::zeros(DType::kF32, {4, 32}),
                                 HostArray::zeros(DType::kF32, {4, 32})};
  const std::int64_t extra[] = {1};
  EXPECT_NE(error_of([&] { run_kernel(k, good, extra); }).find("0 launch scalars"),
            std::string::npos);
}

TEST(Kernel, OrdinaryInterpreterRefusesKernelOps) {
  Builder b;
  const ValueId i = b.param(Type::tensor(DType::kI64));
  const ValueId x = b.param(Type::ref(DType::kF32, {4}));
  const ValueId v = b.one(ops::kKernelLoad, {x, i}, {{"dims", Dims{}}, {"shape", Dims{}}});
  const GraphPtr g = b.finish({v});
  EXPECT_NE(error_of([&] {
              evaluate(*g, std::vector<HostArray>{HostArray::scalar(std::int64_t{0}),
                                                  HostArray::zeros(DType::kF32, {4})});
            }).find("run_kernel"),
            std::string::npos);
}

// What the verifier refuses: each entry breaks one rule.
struct Negative {
  const char* name;
  std::function<void()> build;
  const char* expected;
};

class Verifier : public testing::TestWithParam<Negative> {};

TEST_P(Verifier, Refuses) {
  const std::string message = error_of(GetParam().build);
  EXPECT_NE(message.find(GetParam().expected), std::string::npos)
      << GetParam().name << ": " << message;
}

Kernel edited(const std::function<void(Kernel&)>& edit) {
  Kernel k = scale_kernel();
  edit(k);
  verify_kernel(k);
  return k;
}

// A kernel of one ref f32[4, 8] (read and written) whose body is made by fn.
void with_body(const std::function<void(KernelBuilder&, KernelValue)>& fn,
               Kernel::Access access = Kernel::Access::kReadWrite) {
  KernelBuilder k("bad");
  k.parallel(1);
  const KernelValue x = k.param({.dtype = DType::kF32, .dims = {4, 8}, .access = access});
  fn(k, x);
  k.finish();
}

const Negative kNegatives[] = {
    {"axis size", [] { edited([](Kernel& k) { k.grid[0].size = -2; }); }, "grid axis 0"},
    {"axis scalar",
     [] { edited([](Kernel& k) {
            k.grid[0] = {Kernel::AxisKind::kParallel, -1, 0};
          }); },
     "grid axis 0"},
    {"no body", [] { edited([](Kernel& k) { k.body = nullptr; }); }, "a graph"},
    {"missing parameter", [] { edited([](Kernel& k) { k.params.pop_back(); }); }, "parameters"},
    {"parameter type", [] { edited([](Kernel& k) {
                              k.params[0].dims = {4, 31};
                            }); },
     "body parameter 1"},
    {"dynamic buffer", [] { edited([](Kernel& k) {
                              k.params[0].dims = {4, kDynamic};
                            }); },
     "static"},
    {"block map", [] { edited([](Kernel& k) { k.params[0].map.block = {1}; }); }, "block map"},
    {"alias of itself", [] { edited([](Kernel& k) { k.params[1].alias = 1; }); }, "alias"},
    {"alias of nothing", [] { edited([](Kernel& k) { k.params[1].alias = 9; }); }, "alias"},
    {"read only", [] { edited([](Kernel& k) { k.params[1].access = Kernel::Access::kRead; }); },
     "may be written"},
    {"write only", [] { edited([](Kernel& k) { k.params[0].access = Kernel::Access::kWrite; }); },
     "may be read"},
    {"index type",
     [] {
       with_body([](KernelBuilder& k, KernelValue x) {
         const KernelValue i = k.splat(DType::kI32, {}, 0);
         k.load(x, {i, i}, {1}, {8});
       });
     },
     "indices must be i64[]"},
    {"index count",
     [] { with_body([](KernelBuilder& k, KernelValue x) { k.load(x, {k.index(0)}, {1}, {8}); }); },
     "operands"},
    {"walk twice",
     [] {
       with_body([](KernelBuilder& k, KernelValue x) {
         k.load(x, {k.index(0), k.index(0)}, {1, 1}, {2, 2});
       });
     },
     "distinct dimensions"},
    {"walk outside of the rank",
     [] {
       with_body([](KernelBuilder& k, KernelValue x) {
         k.load(x, {k.index(0), k.index(0)}, {2}, {2});
       });
     },
     "distinct dimensions"},
    {"mask type",
     [] {
       with_body([](KernelBuilder& k, KernelValue x) {
         k.load(x, {k.index(0), k.index(0)}, {1}, {8}, k.tail_mask(k.index(0), k.index(3), 4));
       });
     },
     "mask"},
    {"stored type",
     [] {
       with_body([](KernelBuilder& k, KernelValue x) {
         k.store(x, k.splat(DType::kF64, {8}, 0), {k.index(0), k.index(0)}, {1});
       });
     },
     "element type"},
    {"load of no ref",
     [] {
       with_body([](KernelBuilder& k, KernelValue) {
         const KernelValue v = k.splat(DType::kF32, {8}, 0);
         k.load(v, {k.index(0)}, {0}, {8});
       });
     },
     "must be a ref"},
    {"ref as operand",
     [] { with_body([](KernelBuilder& k, KernelValue x) { k.one(ops::kNegate, {x}); }); },
     "negate"},
    {"op that is no tile op",
     [] {
       with_body([](KernelBuilder& k, KernelValue x) {
         const KernelValue v = k.load(x, {k.index(0), k.index(0)}, {1}, {8});
         const KernelValue r = k.one(ops::kCumsum, {v}, {{"dimension", 0}});
         k.store(x, r, {k.index(0), k.index(0)}, {1});
       });
     },
     "an op that works on tiles"},
    {"loop step",
     [] {
       with_body([](KernelBuilder& k, KernelValue) {
         k.for_(k.index(0), k.index(1), 0, {}, [](KernelValue, auto) { return Values{}; });
       });
     },
     "positive step"},
    {"loop carry type",
     [] {
       with_body([](KernelBuilder& k, KernelValue) {
         k.for_(k.index(0), k.index(1), 1, {k.splat(DType::kF32, {}, 0)},
                [&](KernelValue i, auto) { return Values{i}; });
       });
     },
     "next carries"},
    {"gather in blocks",
     [] {
       KernelBuilder k("bad");
       const KernelValue i = k.parallel(2);
       const KernelValue x = k.read(DType::kF32, {8}, {{4}, {4}, {0}});
       k.gather(x, i);
       k.finish();
     },
     "whole buffer"},
    {"fma of integers",
     [] {
       with_body([](KernelBuilder& k, KernelValue) {
         const KernelValue i = k.splat(DType::kI32, {}, 0);
         k.fma(i, i, i);
       });
     },
     "f32 or f64"},
    {"late axis", [] { with_body([](KernelBuilder& k, KernelValue) { k.parallel(2); }); },
     "declared first"},
    {"closed scope",
     [] {
       with_body([](KernelBuilder& k, KernelValue) {
         KernelValue inner;
         k.for_(k.index(0), k.index(1), 1, {}, [&](KernelValue i, auto) {
           inner = i;
           return Values{};
         });
         k.add(inner, 1);
       });
     },
     "closed one"},
};

INSTANTIATE_TEST_SUITE_P(Rules, Verifier, testing::ValuesIn(kNegatives), [](const auto& p) {
  std::string s = p.param.name;
  for (char& c : s)
    if (c == ' ') c = '_';
  return s;
});

TEST(Kernel, FamilyIsInTheTable) {
  for (const OpDef* def : ops::kernel_family()) {
    EXPECT_EQ(find_op(def->name), def);
    EXPECT_TRUE(def->is(kKernelOnly));
    EXPECT_NE(def->eval, nullptr);
  }
}

}  // namespace
}  // namespace xylem::ir
