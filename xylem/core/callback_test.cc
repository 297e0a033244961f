#include "xylem/core/callback.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "xylem/base/error.h"
#include "xylem/core/core.h"
#include "xylem/core/debug.h"

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

// Lines of debug_print while it lives.
class Lines {
 public:
  Lines() {
    before_ = set_debug_output([this](std::string_view line) { lines.emplace_back(line); });
  }
  ~Lines() { set_debug_output(before_); }
  std::vector<std::string> lines;

 private:
  std::function<void(std::string_view)> before_;
};

Array host_double(const Array& x) { return x * 2; }

TEST(Callback, PureCallbacksRunEagerlyUnderJitAndInLoops) {
  Array x = array({1.0, 2.0, 3.0});
  auto f = [](const Array& v) { return pure_callback(host_double, v, v) + 1; };
  std::vector<float> want{3, 5, 7};
  EXPECT_EQ(f(x).to_vector<float>(), want);
  EXPECT_EQ(jit(f)(x).to_vector<float>(), want);
  auto loop = jit([](const Array& v) {
    return scan(
        [](const Array& c, const Array& e) {
          Array y = pure_callback(host_double, e, e);
          return std::pair{c + y, y};
        },
        zeros({}), v);
  });
  auto [total, ys] = loop(x);
  EXPECT_EQ(total.item<float>(), 12);
  EXPECT_EQ(ys.to_vector<float>(), (std::vector<float>{2, 4, 6}));
  auto branch = jit([&](const Array& v) {
    return cond(
        v(0) > 0, [](const Array& a) { return pure_callback(host_double, a, a); },
        [](const Array& a) { return a; }, v);
  });
  EXPECT_EQ(branch(x).to_vector<float>(), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(branch(-x).to_vector<float>(), (std::vector<float>{-1, -2, -3}));
}

struct Two {
  Array a, b;
};

TEST(Callback, TreesGoInAndOut) {
  auto f = jit([](const Two& t) {
    return pure_callback(
        [](const Two& h) {
          return Two{h.a + h.b, sum(h.b).astype(DType::kI32)};
        },
        Two{shape_dtype_struct({2}, DType::kF32), shape_dtype_struct({}, DType::kI32)}, t);
  });
  Two r = f(Two{array({1.0, 2.0}), array({3.0, 4.0})});
  EXPECT_EQ(r.a.to_vector<float>(), (std::vector<float>{4, 6}));
  EXPECT_EQ(r.b.item<int>(), 7);
}

TEST(Callback, ErrorsOfTheFunctionAreErrorsOfTheProgram) {
  auto f = jit([](const Array& x) {
    return pure_callback(
        [](const Array&) -> Array { throw std::runtime_error("the disk is full"); }, x, x);
  });
  std::string m = message_of([&] { f(ones({2})).to_host(); });
  EXPECT_NE(m.find("pure_callback 'callback'"), std::string::npos) << m;
  EXPECT_NE(m.find("the disk is full"), std::string::npos) << m;
  // An effect tells at the call, and the next call works.
  bool fail = true;
  auto g = jit([&](const Array& x) {
    io_callback(
        [&](const Array&) {
          if (fail) throw std::runtime_error("no more");
          return std::tuple<>();
        },
        std::tuple<>(), x);
    return x;
  });
  m = message_of([&] { g(ones({2})); });
  EXPECT_NE(m.find("no more"), std::string::npos) << m;
  fail = false;
  EXPECT_EQ(g(ones({2})).to_vector<float>(), (std::vector<float>{1, 1}));
}

TEST(Callback, WrongResultsAreNamed) {
  auto f = jit([](const Array& x) {
    return pure_callback([](const Array& v) { return concatenate({v, v}); }, x, x);
  });
  std::string m = message_of([&] { f(ones({2})).to_host(); });
  EXPECT_NE(m.find("expected f32[2]"), std::string::npos) << m;
  EXPECT_NE(m.find("returned f32[4]"), std::string::npos) << m;
}

TEST(Callback, VmapMethodsGiveTheFunctionWhatTheySay) {
  Array xs = reshape(arange(6).astype(DType::kF32), {3, 2}), y = ones({2});
  std::vector<std::string> seen;
  auto run = [&](const std::string& method) {
    seen.clear();
    return vmap(
        [&](const Array& x, const Array& v) {
          return pure_callback(
              [&](const Array& a, const Array& b) {
                seen.push_back(a.type_string() + " " + b.type_string());
                return a + b;
              },
              shape_dtype_struct({2}, DType::kF32), PureCallbackOptions{.vmap_method = method}, x,
              v);
        },
        {.in_axes = {0, no_axis}})(xs, y);
  };
  std::vector<float> want{1, 2, 3, 4, 5, 6};
  for (const char* method : {"sequential", "sequential_unrolled"}) {
    EXPECT_EQ(run(method).to_vector<float>(), want);
    EXPECT_EQ(seen, std::vector<std::string>(3, "f32[2] f32[2]"));
  }
  EXPECT_EQ(run("expand_dims").to_vector<float>(), want);
  EXPECT_EQ(seen, std::vector<std::string>(1, "f32[3,2] f32[1,2]"));
  EXPECT_EQ(run("broadcast_all").to_vector<float>(), want);
  EXPECT_EQ(seen, std::vector<std::string>(1, "f32[3,2] f32[3,2]"));
  std::string m = message_of([&] { run(""); });
  EXPECT_NE(m.find("vmap_method"), std::string::npos) << m;
  m = message_of([&] { run("legacy"); });
  EXPECT_NE(m.find("a known method"), std::string::npos) << m;
}

TEST(Callback, DerivativesAreRefusedByNameAndGivenByCustomRules) {
  auto f = [](const Array& x) { return sum(pure_callback(host_double, x, x)); };
  std::string m = message_of([&] { grad(f)(ones({2})); });
  EXPECT_NE(m.find("derivative of pure_callback"), std::string::npos) << m;
  EXPECT_NE(m.find("custom_jvp"), std::string::npos) << m;
  auto g = custom_jvp([](const Array& x) { return pure_callback(host_double, x, x); },
                      [](const std::tuple<Array>& p, const std::tuple<Array>& t) {
                        Array x = std::get<0>(p);
                        return std::pair{pure_callback(host_double, x, x), std::get<0>(t) * 2};
                      });
  EXPECT_EQ(grad([&](const Array& x) { return sum(g(x)); })(ones({2})).to_vector<float>(),
            (std::vector<float>{2, 2}));
}

TEST(Callback, IoCallbacksAreNeverDroppedAndKeepTheirOrder) {
  std::vector<int> calls;
  auto note = [&](int n) {
    return [&calls, n](const Array&) {
      calls.push_back(n);
      return std::tuple<>();
    };
  };
  auto f = jit([&](const Array& x) {
    io_callback(note(1), std::tuple<>(), IoCallbackOptions{.ordered = true}, sum(exp(x)));
    io_callback(note(2), std::tuple<>(), IoCallbackOptions{.ordered = true}, x);
    Array y = fori_loop(
        0, 3,
        [&](const Array& i, const Array& c) {
          io_callback(note(3), std::tuple<>(), IoCallbackOptions{.ordered = true}, i);
          return c;
        },
        x);
    io_callback(note(4), std::tuple<>(), IoCallbackOptions{.ordered = true}, matmul(x, x));
    return x;
  });
  f(ones({300}));
  EXPECT_EQ(calls, (std::vector<int>{1, 2, 3, 3, 3, 4}));
  f(ones({300}));
  EXPECT_EQ(calls.size(), 12u);
  std::string m = message_of([&] { vmap(f)(ones({2, 300})); });
  EXPECT_NE(m.find("ordered"), std::string::npos) << m;
}

TEST(Callback, AProgramOfEffectsAloneRuns) {
  int calls = 0;
  auto f = jit([&](const Array& x) {
    debug_callback([&](const Array&) { ++calls; }, x);
    return std::tuple<>();
  });
  f(ones({2}));
  f(ones({2}));
  effects_barrier();
  EXPECT_EQ(calls, 2);
}

TEST(Callback, CallbacksMayRunProgramsOfTheirOwn) {
  auto inner = jit([](const Array& x) { return matmul(x, x); });
  auto f = jit([&](const Array& x) {
    Array y = matmul(x, x);
    return pure_callback([&](const Array& v) { return inner(v).block_until_ready(); }, y, y);
  });
  Array x = eye(400) * 2;
  EXPECT_EQ(f(x)(0, 0).item<float>(), 16);
}

TEST(DebugPrint, PrintsUnderEveryTransformation) {
  Lines out;
  Array x = array({1.0, 2.0});
  debug_print("x = {}, two = {two} {{}}", {x, {"two", 2}});
  EXPECT_EQ(out.lines.back(), "x = [1. 2.], two = 2 {}");
  auto f = [](const Array& v) {
    debug_print("v {}", {v});
    return sum(v * v);
  };
  out.lines.clear();
  jit(f)(x);
  EXPECT_EQ(out.lines, std::vector<std::string>{"v [1. 2.]"});
  out.lines.clear();
  jit(vmap(f))(array({3.0, 4.0}));
  EXPECT_EQ(out.lines, (std::vector<std::string>{"v 3.0", "v 4.0"}));
  out.lines.clear();
  EXPECT_EQ(jit(grad(f))(x).to_vector<float>(), (std::vector<float>{2, 4}));
  EXPECT_EQ(out.lines, std::vector<std::string>{"v [1. 2.]"});
  out.lines.clear();
  grad(f)(x);
  EXPECT_EQ(out.lines, std::vector<std::string>{"v [1. 2.]"});
  out.lines.clear();
  auto loop = [](const Array& v) {
    return scan(
               [](const Array& c, const Array& e) {
                 debug_print("c {c}", {{"c", c}}, true);
                 return std::pair{c * e, c};
               },
               ones({}), v)
        .first;
  };
  jit(grad(loop))(array({2.0, 3.0}));
  EXPECT_EQ(out.lines, (std::vector<std::string>{"c 1.0", "c 2.0"}));
}

TEST(DebugPrint, FormatsThatDoNotFitAreErrors) {
  Array x = ones({});
  EXPECT_NE(message_of([&] { debug_print("{} {}", {x}); }).find("no value"), std::string::npos);
  EXPECT_NE(message_of([&] { debug_print("{y}", {x}); }).find("no value"), std::string::npos);
  EXPECT_NE(message_of([&] { debug_print("x", {x}); }).find("not used"), std::string::npos);
  EXPECT_NE(message_of([&] { debug_print("{", {x}); }).find("without }"), std::string::npos);
}

TEST(Debug, DisableJitRunsThePlainFunction) {
  int runs = 0;
  auto f = jit([&](const Array& x) {
    ++runs;
    if (x.item<float>() > 0) return x + 1;  // needs a number
    return x - 1;
  });
  EXPECT_THROW(f(ones({})), ConcretizationError);
  runs = 0;
  DisableJit scope;
  EXPECT_EQ(f(ones({})).item<float>(), 2);
  EXPECT_EQ(f(ones({})).item<float>(), 2);
  EXPECT_EQ(runs, 2);
  int steps = 0;
  auto [last, ys] = scan(
      [&](const Array& c, const Array& e) {
        ++steps;
        EXPECT_TRUE(c.is_concrete());
        return std::pair{c + e, c};
      },
      zeros({}), array({1.0, 2.0, 3.0}));
  EXPECT_EQ(steps, 3);
  EXPECT_EQ(last.item<float>(), 6);
  EXPECT_EQ(ys.to_vector<float>(), (std::vector<float>{0, 1, 3}));
  Array w = while_loop([](const Array& c) { return c < 10; },
                       [](const Array& c) {
                         EXPECT_TRUE(c.is_concrete());
                         return c * 2;
                       },
                       Array(HostArray::scalar(3)));
  EXPECT_EQ(w.item<int>(), 12);
  int taken = 0;
  cond(
      ArrayArg(true).array, [&](const Array& a) { return ++taken, a; },
      [&](const Array& a) { return taken += 10, a; }, zeros({}));
  EXPECT_EQ(taken, 1);
}

TEST(Debug, NansAreFoundWhereTheyArise) {
  DebugNans scope;
  Array x = array({1.0, -1.0});
  int line = __LINE__ + 1;
  std::string m = message_of([&] { log(x); });
  EXPECT_NE(m.find("invalid value (nan) encountered in log"), std::string::npos) << m;
  EXPECT_NE(m.find("callback_test.cc:" + std::to_string(line)), std::string::npos) << m;
  auto f = jit([](const Array& v) {
    Array y = v * 2;
    return fori_loop(
        0, 2, [](const Array&, const Array& c) { return sqrt(c) + 1; }, y);
  });
  line = __LINE__ - 2;
  EXPECT_NO_THROW(f(array({1.0, 2.0})));
  m = message_of([&] { f(x); });
  EXPECT_NE(m.find("encountered in sqrt"), std::string::npos) << m;
  EXPECT_NE(m.find("callback_test.cc:" + std::to_string(line)), std::string::npos) << m;
  EXPECT_THROW(f(x), FloatingPointError);
  DebugNans off(false);
  EXPECT_NO_THROW(f(x));
  DebugInfs infs;
  m = message_of([&] { jit([](const Array& v) { return 1 / v; })(zeros({})); });
  EXPECT_NE(m.find("invalid value (inf) encountered in divide"), std::string::npos) << m;
}

TEST(Debug, NamedScopesStandInLocations) {
  auto f = jit([](const Array& x) {
    NamedScope outer("decoder");
    Array y = named_call([](const Array& v) { return sin(v); }, "attention")(x);
    return y * 2;
  });
  std::string text = f.lower(ones({2})).as_text(true);
  EXPECT_NE(text.find("loc(\"decoder/attention\"("), std::string::npos) << text;
  EXPECT_NE(text.find("loc(\"decoder\"("), std::string::npos) << text;
  std::string derived = jit(grad([](const Array& x) {
                          NamedScope scope("loss");
                          return sum(sin(x));
                        }))
                            .lower(ones({2}))
                            .as_text(true);
  EXPECT_NE(derived.find("loc(\"loss\"("), std::string::npos) << derived;
}

}  // namespace
}  // namespace xylem
