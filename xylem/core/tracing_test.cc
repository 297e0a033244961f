// What tracing promises: captures, donation, keys of the cache, leaks, trees, threads, messages.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <optional>
#include <thread>
#include <variant>

#include "xylem/core/core.h"

namespace xylem {
namespace {

Array scalar(float v) { return Array(HostArray::scalar(v)); }

// The text of the UserError that f throws, which must name each of the parts.
template <class F>
void expect_error(F f, std::initializer_list<const char*> parts) {
  try {
    f();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const UserError& e) {
    for (const char* part : parts)
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos)
          << "'" << part << "' is missing in: " << e.what();
  }
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

TEST(Tracing, ALeakedValueIsAnError) {
  Array leaked;
  jit([&](const Array& x) {
    leaked = x * 2;
    return x;
  })(scalar(1));
  expect_error([&] { leaked + 1; }, {"leaked tracer", "Return", "traced inside 'jit'"});
  expect_error([&] { leaked.item<float>(); }, {"leaked tracer"});
  expect_error([&] { jit([&](const Array& x) { return x + leaked; })(scalar(1)); },
               {"leaked tracer"});
}

TEST(Jit, KeepsAsManyProgramsAsItIsTold) {
  int traced = 0;
  auto f = jit(
      [&](const Array& x) {
        ++traced;
        return sum(x * 2);
      },
      {.name = "bounded", .max_programs = 3});
  const auto call = [&](std::int64_t n) {
    EXPECT_EQ(f(ones({n})).item<float>(), 2 * static_cast<float>(n));
  };
  for (std::int64_t n : {1, 2, 3}) call(n);
  EXPECT_EQ(f.cache_size(), 3u);
  call(1);  // 2 is the one called longest ago
  call(4);
  EXPECT_EQ(f.cache_size(), 3u);
  EXPECT_EQ(traced, 4);
  for (std::int64_t n : {1, 3, 4}) call(n);
  EXPECT_EQ(traced, 4);
  call(2);
  EXPECT_EQ(traced, 5);
  for (std::int64_t n = 1; n < 40; ++n) call(n);
  EXPECT_EQ(f.cache_size(), 3u);
}

TEST(Jit, ProgramsThatArePushedOutMayStillRun) {
  auto f = jit([](const Array& x) { return sum(x * 2); }, {.max_programs = 1});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 12; ++i) {
        const std::int64_t n = 1 + (t + i) % 3;
        if (f(ones({n})).item<float>() != 2 * static_cast<float>(n)) ++wrong;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(f.cache_size(), 1u);
}

TEST(Array, ItemsOfWideIntegersAreExact) {
  EXPECT_EQ(Array(std::vector<std::int64_t>{9007199254740993}).item<std::int64_t>(),
            9007199254740993);
  EXPECT_EQ(Array(std::vector<std::uint64_t>{~std::uint64_t{0}}).item<std::uint64_t>(),
            ~std::uint64_t{0});
  EXPECT_EQ(Array(std::vector<std::int64_t>{INT64_MIN}).item<std::int64_t>(), INT64_MIN);
  EXPECT_EQ(Array(std::vector<std::int8_t>{-3}).item<int>(), -3);
}

TEST(Tracing, ValuesOfAnotherThreadAreLeaks) {
  std::string what;
  jit([&](const Array& x) {
    std::thread([&] {
      try {
        (void)(x + 1);
      } catch (const UserError& e) {
        what = e.what();
      }
    }).join();
    return x;
  })(scalar(1));
  EXPECT_NE(what.find("leaked tracer"), std::string::npos) << what;
}

TEST(Tracing, CapturesAreBoundToTheBufferSeen) {
  Array w = array({1, 2});
  int traces = 0;
  auto f = jit([&](const Array& x) {
    ++traces;
    return x * w;
  });
  EXPECT_EQ(f(array({10, 10})).to_vector<float>(), (std::vector<float>{10, 20}));
  w = array({5, 5});
  EXPECT_EQ(f(array({10, 10})).to_vector<float>(), (std::vector<float>{10, 20}));
  EXPECT_EQ(traces, 1);
  // A capture is an input of the program, never a constant in it.
  Array big = zeros({1000});
  std::string text = jit([&](const Array& x) { return x + big; }).lower_text(zeros({1000}));
  EXPECT_EQ(count(text, "constant"), 0u) << text;
}

TEST(Tracing, NumbersAreWeakAndDoNotRecompile) {
  auto f = jit([](const Array& x, const Array& s) { return x * s; });
  Array h = array({1, 2}, DType::kBF16);
  EXPECT_EQ(f(h, 2.0).dtype(), DType::kBF16);
  EXPECT_EQ(f(h, 3.5)[1].item<double>(), 7);
  EXPECT_EQ(f.cache_size(), 1u);
  f(h, 2);  // a weak integer is another type
  EXPECT_EQ(f.cache_size(), 2u);
  f(h, scalar(2));  // and a strong one a third
  EXPECT_EQ(f.cache_size(), 3u);
  EXPECT_EQ(f(h, scalar(2)).dtype(), DType::kF32);
}

TEST(Tracing, DonationEmptiesTheHandle) {
  auto f = jit([](const Array& x) { return x + 1; });
  Array x = array({1, 2, 3}), copy = x;
  Array y = f(std::move(x));
  EXPECT_FALSE(x.defined());  // NOLINT: that is the promise
  // Another handle keeps the contents.
  EXPECT_EQ(copy.to_vector<float>(), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{2, 3, 4}));
  expect_error([&] { x + 1; }, {"undefined", "Assign"});
  // An error before the call leaves the argument as it was.
  Array z = array({1, 2});
  auto bad = jit([](const Array& a) { return a.reshape({5}); });
  EXPECT_THROW(bad(std::move(z)), UserError);
  EXPECT_TRUE(z.defined());  // NOLINT
  // Trees are donated leaf by leaf, const and lvalue arguments never.
  std::pair<Array, Array> p{array({1}), array({2})};
  auto g = jit([](const std::pair<Array, Array>& v) { return v.first + v.second; });
  g(p);
  EXPECT_TRUE(p.first.defined());
  g(std::move(p));
  EXPECT_FALSE(p.first.defined());   // NOLINT
  EXPECT_FALSE(p.second.defined());  // NOLINT
}

TEST(Tracing, NestedJitIsInlinedAndCached) {
  int traces = 0;
  auto inner = jit([&](const Array& x) {
    ++traces;
    return sin(x);
  });
  auto outer = jit([&](const Array& x) { return inner(x) + inner(x * 2); });
  Array x = scalar(0.5f);
  EXPECT_FLOAT_EQ(outer(x).item<float>(), std::sin(0.5f) + std::sin(1.0f));
  EXPECT_EQ(traces, 1);
  EXPECT_FLOAT_EQ(inner(x).item<float>(), std::sin(0.5f));
  EXPECT_EQ(traces, 1);
  EXPECT_FLOAT_EQ(grad(outer)(x).item<float>(), std::cos(0.5f) + 2 * std::cos(1.0f));
}

TEST(Tracing, ManyThreadsCallOneJit) {
  std::atomic<int> traces = 0, wrong = 0;
  auto f = jit([&](const Array& x) {
    ++traces;
    return std::pair{x * 2, sum(x)};
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        auto [a, s] = f(full({4}, t + i, DType::kF32));
        if (a[0].item<int>() != 2 * (t + i) || s.item<int>() != 4 * (t + i)) ++wrong;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(traces, 1);
}

struct Layer {
  Array w;
  std::optional<Array> bias;
  std::string name = "layer";
};
struct Model {
  std::vector<Layer> layers;
  std::map<std::string, Array> table;
  std::variant<int, Array> choice = 0;
  std::array<Array, 2> pair;
  double rate = 0.5;
};

TEST(Tracing, TreesOfManyKindsGoThroughJitAndGrad) {
  Model m;
  m.layers = {{array({1, 2}), array({3, 3}), "a"}, {array({4, 5}), std::nullopt, "b"}};
  m.table = {{"x", array({1, 1})}, {"y", array({2, 2})}};
  m.choice = array({7, 7});
  m.pair = {array({1, 0}), array({0, 1})};
  auto loss = [](const Model& v) {
    Array total = zeros({});
    for (const Layer& l : v.layers) total = total + sum(l.bias ? l.w * *l.bias : l.w);
    for (const auto& [key, a] : v.table) total = total + sum(a * a);
    if (v.choice.index() == 1) total = total + sum(std::get<1>(v.choice));
    return (total + sum(v.pair[0] * v.pair[1])) * v.rate;
  };
  auto step = jit([&](Model v) {
    auto [l, g] = value_and_grad(loss)(v);
    return std::pair{tree::map<Array>([](const Array& a, const Array& d) { return a - d; }, v, g),
                     l};
  });
  auto [next, l] = step(m);
  EXPECT_FLOAT_EQ(l.item<float>(), 0.5f * (9 + 9 + 2 + 8 + 14));
  EXPECT_EQ(next.layers[0].name, "a");
  EXPECT_EQ(next.layers[0].w.to_vector<float>(), (std::vector<float>{-0.5, 0.5}));
  EXPECT_EQ(next.table.at("y").to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(std::get<1>(next.choice).to_vector<float>(), (std::vector<float>{6.5, 6.5}));
  step(m);
  EXPECT_EQ(step.cache_size(), 1u);
  // Static fields, presence and alternatives are part of the key.
  m.rate = 0.25;
  step(m);
  m.choice = 3;
  step(m);
  m.layers[0].bias.reset();
  step(m);
  m.layers[1].name = "c";
  step(m);
  EXPECT_EQ(step.cache_size(), 5u);
}

TEST(Tracing, GradientsOfChosenArgumentsWithAuxiliaryResults) {
  auto f = [](const Array& a, const Array& b, const Array& n) {
    Array v = sum(a * b * b);
    return std::pair{v, std::map<std::string, Array>{{"twice", v * 2}, {"n", n}}};
  };
  Array a = array({1, 2}), b = array({3, 4}), n = Array(std::vector<std::int32_t>{5});
  auto [gb, aux] = grad(f, argnums<1>, has_aux)(a, b, n);
  EXPECT_EQ(gb.to_vector<float>(), (std::vector<float>{6, 16}));
  EXPECT_EQ(aux.at("twice").item<float>(), 82);
  auto [value, grads] = value_and_grad(f, argnums<0, 1, 2>, has_aux)(a, b, n);
  EXPECT_EQ(value.first.item<float>(), 41);
  EXPECT_EQ(std::get<0>(grads).to_vector<float>(), (std::vector<float>{9, 16}));
  EXPECT_FALSE(std::get<2>(grads).defined());
  expect_error([&] { grad([](const Array& x) { return x * 2; })(a); }, {"scalar", "f32[2]"});
  expect_error([&] { grad([](const Array& x) { return sum(x); })(n); }, {"i32"});
}

TEST(Tracing, VmapTakesAxesAsNumbersListsAndTrees) {
  Array x = arange(6).reshape({2, 3});
  auto twice = [](const Array& r) { return r * 2; };
  EXPECT_EQ(vmap(twice, {.in_axes = 1, .out_axes = 1})(x).shape(), (Dims{2, 3}));
  EXPECT_EQ(vmap(twice, {.in_axes = 1})(x).shape(), (Dims{3, 2}));
  EXPECT_EQ(vmap(twice, {.in_axes = -1, .out_axes = -1})(x).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{0, 2, 4, 6, 8, 10}));
  auto add_row = [](const Array& r, const Array& c) { return r + c; };
  Array c = Array(std::vector<std::int32_t>{10, 20, 30});
  EXPECT_EQ(vmap(add_row, {.in_axes = {0, no_axis}})(x, c).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{10, 21, 32, 13, 24, 35}));
  auto of_pair = [](const std::pair<Array, Array>& p) { return p.first * p.second; };
  EXPECT_EQ(vmap(of_pair)(std::pair{x, x}).shape(), (Dims{2, 3}));
  expect_error([&] { vmap(add_row)(x, c); }, {"vmap", "leaf 1", "size 2", "size 3"});
  expect_error([&] { vmap(twice, {.in_axes = 2})(x); }, {"vmap", "in_axes 2", "i32[2,3]"});
  expect_error([&] { vmap(add_row, {.in_axes = {no_axis, no_axis}})(x, c); }, {"axis_size"});
  expect_error([&] { vmap(add_row, {.in_axes = {0}})(x, c); }, {"in_axes", "1", "2"});
  expect_error([&] { vmap([](const Array& r) { return r[0] > 0 ? r : -r; })(x); },
               {"value of a traced array", "vmap"});
}

struct Carry {
  Array position, velocity;
  int steps = 0;
};

TEST(Tracing, ScanCarriesStructs) {
  auto [last, path] = scan(
      [](const Carry& c, const std::pair<Array, Array>& in) {
        Carry n{c.position + c.velocity, c.velocity + in.first * in.second, c.steps};
        return std::pair{n, std::pair{n.position, n.velocity}};
      },
      Carry{zeros({}), ones({}), 4}, std::pair{array({1, 2, 3}), array({1, 1, 1})});
  EXPECT_EQ(path.first.to_vector<float>(), (std::vector<float>{1, 3, 7}));
  EXPECT_EQ(last.velocity.item<float>(), 7);
  EXPECT_EQ(last.steps, 4);
  auto back = scan(
      [](const Array& c, const Array& x) {
        return std::pair{c + x, c};
      },
      zeros({}), array({1, 2, 3}), {.reverse = true});
  EXPECT_EQ(back.second.to_vector<float>(), (std::vector<float>{5, 3, 0}));
  // A weak start takes the body's type.
  auto weak = scan(
      [](const Array& c, const Array& x) {
        return std::pair{c + x, x};
      },
      ArrayArg(0.0).array, array({1, 2}));
  EXPECT_EQ(weak.first.item<float>(), 3);
}

TEST(Tracing, LoopsAndBranchesNameWhatDiffers) {
  Array x = array({1, 2});
  expect_error(
      [&] {
        scan(
            [](const Array& c, const Array& v) {
              return std::pair{stack({c, v}), v};
            },
            zeros({}), x);
      },
      {"scan", "carry", "f32[2]"});
  expect_error(
      [&] {
        while_loop([](const Array&) { return scalar(1) > 0; },
                   [](const Array& v) { return v.astype(DType::kI32); }, x);
      },
      {"while_loop", "f32[2]", "i32[2]"});
  expect_error(
      [&] { while_loop([](const Array& v) { return v; }, [](const Array& v) { return v; }, x); },
      {"while_loop", "bool"});
  expect_error(
      [&] {
        cond(
            x[0] > 0, [](const Array& v) { return v; }, [](const Array& v) { return sum(v); }, x);
      },
      {"cond", "f32[2]", "f32[]"});
  expect_error(
      [&] {
        scan(
            [](const Array& c, const std::pair<Array, Array>& v) {
              return std::pair{c + v.first, v.second};
            },
            zeros({}), std::pair{array({1, 2}), array({1, 2, 3})});
      },
      {"scan", "2", "3"});
}

TEST(Tracing, BranchesAndForLoops) {
  auto pick = [](const Array& i, const Array& x) {
    std::vector<std::function<Array(const Array&)>> branches = {
        [](const Array& v) { return v; }, [](const Array& v) { return v * 2; },
        [](const Array& v) { return v * v; }};
    return switch_(i, branches, x);
  };
  auto at = [&](int i) { return jit(pick)(Array(HostArray::scalar(i)), scalar(3)).item<float>(); };
  EXPECT_EQ(at(0), 3);
  EXPECT_EQ(at(1), 6);
  EXPECT_EQ(at(7), 9);  // clamped
  EXPECT_EQ(at(-5), 3);
  auto power_of = [](const Array& x) {
    return fori_loop(
        0, 5, [&](const Array&, const Array& c) { return c * x; }, ones({}));
  };
  EXPECT_EQ(power_of(scalar(2)).item<float>(), 32);
  EXPECT_EQ(grad(power_of)(scalar(2)).item<float>(), 80);
  Array n = Array(HostArray::scalar(4));
  Array total = jit([](const Array& m) {
    return fori_loop(
        zeros({}, DType::kI32), m, [](const Array& i, const Array& c) { return c + i; },
        zeros({}, DType::kI32));
  })(n);
  EXPECT_EQ(total.item<int>(), 6);
}

TEST(Tracing, RematPoliciesSayWhatIsComputedAgain) {
  auto layer = [](const Array& w, const Array& x) {
    return sin(checkpoint_name(matmul(x, w), "product"));
  };
  Array w = ones({3, 3}), x = ones({2, 3});
  auto text = [&](std::string policy) {
    auto loss = [=](const Array& a, const Array& b) {
      auto f = remat(layer, {.policy = policy});
      return sum(f(a, f(a, b)));
    };
    // Tracing of the linearised program: what stands in it twice is computed again.
    return jit(grad(loss)).lower_text(w, x);
  };
  std::size_t all = count(text("nothing_saveable"), "dot_general");
  std::size_t none = count(text("everything_saveable"), "dot_general");
  EXPECT_GT(all, none);
  EXPECT_EQ(count(text("dots_saveable"), "dot_general"), none);
  EXPECT_EQ(count(text("save_only_these_names:product"), "dot_general"), none);
  EXPECT_EQ(count(text("save_only_these_names:other"), "dot_general"), all);
  EXPECT_EQ(count(text("save_any_names_but_these:product"), "dot_general"), all);
  expect_error([&] { text("some_of_it"); }, {"policy", "some_of_it"});
}

TEST(Tracing, CustomRulesMayCloseOverArrays) {
  Array scale = array({10, 100});
  auto f = custom_jvp([=](const Array& x) { return x * scale; },
                      [=](const std::tuple<Array>& p, const std::tuple<Array>& t) {
                        return std::pair{std::get<0>(p) * scale, std::get<0>(t) * scale * 2};
                      });
  EXPECT_EQ(jit(grad([&](const Array& x) { return sum(f(x)); }))(array({1, 1})).to_vector<float>(),
            (std::vector<float>{20, 200}));
  auto g = custom_vjp([=](const Array& x) { return x * scale; },
                      [=](const Array& x) {
                        return std::pair{x * scale, x};
                      },
                      [=](const Array&, const Array& ct) { return std::tuple{ct * scale * 3}; });
  EXPECT_EQ(jit(grad([&](const Array& x) { return sum(g(x)); }))(array({1, 1})).to_vector<float>(),
            (std::vector<float>{30, 300}));
  // Also over values of an outer trace.
  auto outer = [](const Array& s) {
    auto h = custom_jvp([=](const Array& x) { return x * s; },
                        [=](const std::tuple<Array>& p, const std::tuple<Array>& t) {
                          return std::pair{std::get<0>(p) * s, std::get<0>(t) * s};
                        });
    return grad(h)(s);
  };
  EXPECT_EQ(jit(outer)(scalar(3)).item<float>(), 3);
}

TEST(Tracing, EvalShapeRunsNothing) {
  auto f = [](const Array& x, const std::pair<Array, Array>& p) {
    return std::map<std::string, Array>{{"y", matmul(x, p.first)}, {"z", p.second > 0}};
  };
  auto r = eval_shape(f, shape_dtype_struct({1 << 20, 3}, DType::kF32),
                      std::pair{shape_dtype_struct({3, 1 << 20}, DType::kBF16), ones({2})});
  EXPECT_EQ(r.at("y").shape(), (Dims{1 << 20, 1 << 20}));
  EXPECT_EQ(r.at("y").dtype(), DType::kF32);
  EXPECT_EQ(r.at("z").dtype(), DType::kBool);
  EXPECT_THROW(r.at("z").to_host(), UserError);
}

TEST(Tracing, LinearizedFunctionsAreUsedAgain) {
  int calls = 0;
  auto f = [&](const Array& x) {
    ++calls;
    return sin(x) * x;
  };
  auto [y, linear] = linearize(f, scalar(2));
  EXPECT_FLOAT_EQ(y.item<float>(), 2 * std::sin(2.0f));
  float slope = 2 * std::cos(2.0f) + std::sin(2.0f);
  EXPECT_NEAR(linear(scalar(1)).item<float>(), slope, 1e-6);
  EXPECT_NEAR(linear(scalar(-3)).item<float>(), -3 * slope, 1e-6);
  EXPECT_NEAR(vmap(linear)(array({1, 2}))[1].item<float>(), 2 * slope, 1e-6);
  EXPECT_EQ(calls, 1);
}

TEST(Tracing, PrintsArraysAsNumPyAndTracedOnesByType) {
  EXPECT_EQ(array({1, 2.5, -3}).to_string(), "[ 1.   2.5 -3. ]");
  EXPECT_EQ(arange(4).reshape({2, 2}).to_string(), "[[0 1]\n [2 3]]");
  EXPECT_EQ(Array().to_string(), "<undefined>");
  std::string seen;
  jit([&](const Array& x) {
    seen = x.to_string();
    return x;
  })(zeros({2}));
  EXPECT_EQ(seen, "Traced<f32[2]>");
}

TEST(Tracing, MessagesHaveFourPartsAndTheCallersLine) {
  Array a = zeros({2, 3}), b = zeros({4, 5});
  expect_error([&] { a + b; },
               {"add", "broadcast", "[2,3]", "[4,5]", "expand_dims", "tracing_test.cc"});
  expect_error([&] { matmul(a, b); },
               {"matmul", "one size", "f32[2,3]", "f32[4,5]", "tracing_test.cc"});
  expect_error([&] { sum(a, 2); }, {"sum: axis", "[-2, 2)", "given 2"});
  expect_error([&] { a.reshape({4}); }, {"reshape", "f32[2,3]", "[4]", "-1"});
  expect_error(
      [&] {
        concatenate({a, b});
      },
      {"concatenate", "every axis but 0", "f32[2,3]", "f32[4,5]", "tracing_test.cc"});
  expect_error([&] { take(a, ones({2})); }, {"take", "integers", "f32[2]"});
  expect_error([&] { einsum("ij,jk->ik", {a, b}); }, {"einsum", "'j'", "3 and 4"});
  expect_error([&] { einsum("ij->k", {a}); }, {"einsum", "'k'"});
  expect_error([&] { (void)bool(a > 0); }, {"exactly one element", "i1[2,3]"});
  expect_error([&] { (void)a[5]; }, {"index", "[-2, 2)", "index 5"});
  expect_error([&] { max(zeros({0})); }, {"max", "empty"});
  expect_error([&] { squeeze(a, 0); }, {"squeeze", "size 1", "f32[2,3]"});
  expect_error([&] { zeros({2}) + 3000000000; }, {"integer literal", "3000000000"});
  expect_error([&] { Array().shape(); }, {"undefined"});
  expect_error([&] { bitwise_and(a, a); }, {"and"});
  expect_error([&] { jit([](const Array& x) { return x.item<int>() > 0 ? x : -x; })(scalar(1)); },
               {"value of a traced array", "jit", "cond, where or while_loop"});
}

}  // namespace
}  // namespace xylem
