#include "xylem/core/aot.h"

#include <gtest/gtest.h>

#include "xylem/base/error.h"
#include "xylem/core/core.h"

namespace xylem {
namespace {

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "nothing was thrown";
}

Array wave(const Array& x, const Array& y) { return sin(x) * y; }

TEST(Aot, LoweredTextIsStableHlo) {
  auto lowered = jit(wave).lower(ones({3}), ones({3}));
  std::string text = lowered.as_text();
  EXPECT_NE(text.find("module @jit"), std::string::npos) << text;
  EXPECT_NE(text.find("func.func public @main(%arg0: tensor<3xf32>, %arg1: tensor<3xf32>) -> "
                      "tensor<3xf32>"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("stablehlo.sine"), std::string::npos) << text;
  EXPECT_EQ(text.find("loc("), std::string::npos);
  EXPECT_NE(lowered.as_text(true).find("aot_test.cc"), std::string::npos);
}

TEST(Aot, LoweringDoesNotRunAndTakesAbstractArguments) {
  auto lowered =
      jit(wave).lower(shape_dtype_struct({5}, DType::kF32), shape_dtype_struct({5}, DType::kF32));
  EXPECT_EQ(lowered.cost_analysis().flops, 5);
  EXPECT_EQ(lowered.cost_analysis().transcendentals, 5);
  auto compiled = lowered.compile();
  Array x = arange(5).astype(DType::kF32);
  EXPECT_TRUE(array_equal(compiled(x, x), jit(wave)(x, x)).item<bool>());
}

TEST(Aot, CompiledReportsItsMemory) {
  auto compiled = jit(wave).lower(ones({100}), ones({100})).compile();
  MemoryAnalysis m = compiled.memory_analysis();
  EXPECT_EQ(m.argument_size_in_bytes, 800);
  EXPECT_EQ(m.output_size_in_bytes, 400);
  EXPECT_GE(compiled.cost_analysis().flops, 100);
  EXPECT_FALSE(compiled.as_text().empty());
}

TEST(Aot, CompiledRefusesOtherTypesAndTransformations) {
  auto compiled = jit(wave).lower(ones({3}), ones({3})).compile();
  std::string m = message_of([&] { compiled(ones({4}), ones({3})); });
  EXPECT_NE(m.find("expected f32[3]"), std::string::npos) << m;
  EXPECT_NE(m.find("given f32[4]"), std::string::npos) << m;
  m = message_of([&] { grad([&](const Array& x) { return sum(compiled(x, x)); })(ones({3})); });
  EXPECT_NE(m.find("compiled code cannot be transformed"), std::string::npos) << m;
  // Weakness does not matter.
  auto scalar = jit([](const Array& x) { return x * 2; }).lower(Array(HostArray::scalar(1.0f)));
  EXPECT_EQ(scalar.compile()(ArrayArg(3.0).array).item<float>(), 6);
}

struct Pair {
  Array a;
  int n = 2;
};

TEST(Aot, StructuresGoInAndOut) {
  auto f = jit([](const Pair& p) { return Pair{p.a * p.n, p.n + 1}; });
  auto compiled = f.lower(Pair{ones({2}), 3}).compile();
  Pair r = compiled(Pair{ones({2}), 3});
  EXPECT_EQ(r.n, 4);
  EXPECT_EQ(r.a.to_vector<float>(), (std::vector<float>{3, 3}));
  std::string m = message_of([&] { compiled(Pair{ones({2}), 5}); });
  EXPECT_NE(m.find("the structure that it was lowered for"), std::string::npos) << m;
}

TEST(Aot, CapturedArraysAreConstantsOfTheTextAndInputsOfTheCode) {
  Array c = arange(3);
  auto lowered = jit([&](const Array& x) { return x + c; }).lower(arange(3));
  EXPECT_NE(lowered.as_text().find("dense<[0, 1, 2]>"), std::string::npos) << lowered.as_text();
  EXPECT_EQ(lowered.compile()(arange(3)).to_vector<int>(), (std::vector<int>{0, 2, 4}));
}

}  // namespace
}  // namespace xylem
