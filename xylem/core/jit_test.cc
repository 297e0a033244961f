#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>

#include "xylem/base/env.h"
#include "xylem/base/error.h"
#include "xylem/core/core.h"

// The cache of jit: what its log says, changed captures, functions that call each other from
// several threads.

namespace xylem {
namespace {

std::mutex lines_mutex;
std::vector<std::string> lines;

class CompileLog {
 public:
  CompileLog() {
    lines.clear();
    set_log_categories("compile");
    set_log_sink([](std::string_view line) {
      std::lock_guard lock(lines_mutex);
      lines.emplace_back(line);
    });
  }
  ~CompileLog() {
    set_log_sink(nullptr);
    set_log_categories("");
  }
  // The last line holds all of these.
  void expect(std::initializer_list<const char*> parts) {
    ASSERT_FALSE(lines.empty());
    for (const char* p : parts)
      EXPECT_NE(lines.back().find(p), std::string::npos) << lines.back() << "\nlacks " << p;
  }
};

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "nothing was thrown";
}

struct Layer {
  Array w;
  int features = 1;
};

TEST(Jit, TheLogSaysWhatOfTheKeyDiffers) {
  CompileLog log;
  auto f =
      jit([](const Layer& l, const Array& x) { return l.w * x * l.features; }, {.name = "layer"});
  const Layer two{ones({2})}, three{ones({3})}, five{ones({2}), 5};
  const Array x = ones({2}), y = ones({3});
  f(two, x);
  log.expect({"layer: first call"});
  f(three, y);
  log.expect({"'[0].w' was f32[2], is f32[3]", "'[1]' was f32[2], is f32[3]"});
  f(five, x);
  log.expect({"structure:", "features", "1", "5"});
  f(two, 2.0);
  log.expect({"'[1]' was f32[2], is f32[] (weak)"});
  f(two, ones({2}));
  log.expect({"donation:", "'[1]' was kept, is donated"});
  {
    NumericsScope scope(Numerics::jax);
    f(two, x);
    log.expect({"numerics were safe, are jax"});
  }
  std::size_t n = lines.size();
  f(three, y);  // known
  EXPECT_EQ(lines.size(), n);
}

TEST(Jit, UseAfterDonationNamesTheCall) {
  auto step = jit([](const Array& x) { return x + 1; }, {.name = "train_step"});
  Array x = ones({2});
  step(std::move(x));
  std::string m = message_of([&] { x + 1; });  // NOLINT
  EXPECT_NE(m.find("the last call that took one was 'train_step'"), std::string::npos) << m;
}

TEST(Jit, ChangedCapturesAreFoundWithTheirLine) {
  Array c = array({1.0, 2.0});
  double scale = 3;
  int line = __LINE__ + 1;
  auto f = jit([&](const Array& x) { return x * c + scale; }, {.name = "affine"});
  EXPECT_EQ(f(ones({2})).to_vector<float>(), (std::vector<float>{4, 5}));
  CheckCaptures scope;
  EXPECT_NO_THROW(f(ones({2})));
  Array same = array({1.0, 2.0});
  std::swap(c, same);  // other memory, equal contents
  EXPECT_NO_THROW(f(ones({2})));
  c = array({1.0, 9.0});
  std::string m = message_of([&] { f(ones({2})); });
  EXPECT_NE(m.find("jit 'affine'"), std::string::npos) << m;
  EXPECT_NE(m.find("[1. 9.]"), std::string::npos) << m;
  EXPECT_NE(m.find("jit_test.cc:" + std::to_string(line)), std::string::npos) << m;
  c = same;
  scale = 4;
  m = message_of([&] { f(ones({2})); });
  EXPECT_NE(m.find("stablehlo.constant"), std::string::npos) << m;
  EXPECT_NE(m.find("jit_test.cc:" + std::to_string(line)), std::string::npos) << m;
  CheckCaptures off(false);
  EXPECT_NO_THROW(f(ones({2})));
}

TEST(Jit, TracerMisuseNamesTheLine) {
  int line = __LINE__ + 1;
  auto f = jit([](const Array& x) { return x.item<float>() > 0 ? x : -x; });
  std::string m = message_of([&] { f(ones({})); });
  EXPECT_NE(m.find("jit_test.cc:" + std::to_string(line)), std::string::npos) << m;
  Array leaked;
  jit([&](const Array& x) { return leaked = x + 1; })(ones({}));
  line = __LINE__ + 1;
  m = message_of([&] { leaked * 2; });
  EXPECT_NE(m.find("leaked tracer"), std::string::npos) << m;
  EXPECT_NE(m.find("jit_test.cc:" + std::to_string(line)), std::string::npos) << m;
  line = __LINE__ + 1;
  auto g = grad([](const Array& x) { return sum(matmul(x, ones({5}))); });
  m = message_of([&] { g(ones({3})); });
  EXPECT_NE(m.find("jit_test.cc:" + std::to_string(line)), std::string::npos) << m;
}

// Each traces the other while a second thread does the same the other way round: both threads are
// inside of their first trace before they go on.
TEST(Jit, FunctionsThatCallEachOtherAreTracedByTwoThreads) {
  std::atomic<int> inside{0};
  auto meet = [&] {
    inside.fetch_add(1);
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (inside.load() < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  };
  std::function<Array(const Array&)> call_f, call_g;
  auto f = jit([&](const Array& x) {
    if (x.dim(0) == 4) meet();
    return x.dim(0) > 1 ? sum(call_g(x(idx::slice(1, idx::none)))) + x : x;
  });
  auto g = jit([&](const Array& x) {
    if (x.dim(0) == 4) meet();
    return x.dim(0) > 1 ? sum(call_f(x(idx::slice(1, idx::none)))) * x : x;
  });
  call_f = [&](const Array& x) { return f(x); };
  call_g = [&](const Array& x) { return g(x); };
  Array x = array({1.0, 2.0, 3.0, 4.0}), a, b;
  std::thread one([&] { a = f(x); });
  std::thread two([&] { b = g(x); });
  one.join();
  two.join();
  EXPECT_EQ(inside.load(), 2);
  EXPECT_TRUE(array_equal(a, f(x)).item<bool>());
  EXPECT_TRUE(array_equal(b, g(x)).item<bool>());
  DisableJit plain;
  EXPECT_TRUE(array_equal(a, f(x)).item<bool>());
  EXPECT_TRUE(array_equal(b, g(x)).item<bool>());
}

}  // namespace
}  // namespace xylem
