#include "xylem/core/refs.h"

#include <gtest/gtest.h>

#include <optional>

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

using Floats = std::vector<float>;

TEST(Refs, ReadAndWriteEagerly) {
  Ref r = new_ref(array({1.0, 2.0, 3.0}));
  Ref alias = r;
  r.set(9.0, 0);
  EXPECT_EQ(alias.get().to_vector<float>(), (Floats{9, 2, 3}));
  EXPECT_EQ(r.swap(7, 1).item<float>(), 2);
  r.addupdate(array({1.0, 1.0}), idx::slice(1, idx::none));
  EXPECT_EQ(r.get(idx::slice(1, idx::none)).to_vector<float>(), (Floats{8, 4}));
  r.addupdate(1);
  r.set(0);
  EXPECT_EQ(r.get().to_vector<float>(), (Floats{0, 0, 0}));
  EXPECT_EQ(r.dtype(), DType::kF32);
  EXPECT_EQ(freeze(r).shape(), (Dims{3}));
  EXPECT_NE(message_of([&] { r.get(); }).find("not frozen"), std::string::npos);
}

TEST(Refs, InsideOfTracedCodeTheyAreDataFlow) {
  auto f = [](const Array& x) {
    Ref r = new_ref(x);
    r.set(2.0, 0);
    r.addupdate(x(1), 1);
    Array product = sum(r.get() * x);
    return product + freeze(r)(1);
  };
  Array x = array({3.0, 5.0});
  EXPECT_EQ(f(x).item<float>(), 66);
  EXPECT_EQ(jit(f)(x).item<float>(), 66);
  EXPECT_EQ(grad(f)(x).to_vector<float>(), (Floats{2, 22}));
  EXPECT_EQ(jit(grad(f))(x).to_vector<float>(), (Floats{2, 22}));
  EXPECT_EQ(jit(vmap(f))(stack({x, x})).to_vector<float>(), (Floats{66, 66}));
}

TEST(Refs, JitReadsAndWritesWhatItClosesOverAtEveryCall) {
  Ref count = new_ref(0);
  Ref twice = new_ref(ones({2}));
  int traces = 0;
  auto f = jit([&](const Array& x) {
    ++traces;
    count.addupdate(1);
    twice.set(twice.get() * 2);
    return x + count.get() + twice.get();
  });
  EXPECT_EQ(f(zeros({2})).to_vector<float>(), (Floats{3, 3}));
  EXPECT_EQ(f(zeros({2})).to_vector<float>(), (Floats{6, 6}));
  EXPECT_EQ(traces, 1);
  EXPECT_EQ(count.get().item<int>(), 2);
  count.set(10);  // seen by the next call
  EXPECT_EQ(f(zeros({2})).to_vector<float>(), (Floats{19, 19}));
  EXPECT_EQ(traces, 1);
  // Read only: the contents of the time of the call.
  auto g = jit([&](const Array& x) { return x + count.get(); });
  EXPECT_EQ(g(ones({})).item<float>(), 12);
  count.set(0);
  EXPECT_EQ(g(ones({})).item<float>(), 1);
  // Through a nested function.
  auto outer = jit([&](const Array& x) { return f(x) + f(x); });
  outer(zeros({2}));
  EXPECT_EQ(count.get().item<int>(), 2);
  outer(zeros({2}));
  EXPECT_EQ(count.get().item<int>(), 4);
}

TEST(Refs, LoopsCarryThem) {
  auto body = [](const Array& xs) {
    Ref total = new_ref(zeros({}));
    Ref seen = new_ref(zeros({3}));
    Array ys = scan(
                   [&](const Array& i, const Array& x) {
                     total.addupdate(x);
                     seen.set(total.get(), i);
                     return std::pair{i + 1, total.get() * 10};
                   },
                   Array(HostArray::scalar(0)), xs)
                   .second;
    return std::tuple{total.get(), seen.get(), ys};
  };
  auto check = [](const std::tuple<Array, Array, Array>& r) {
    EXPECT_EQ(std::get<0>(r).item<float>(), 6);
    EXPECT_EQ(std::get<1>(r).to_vector<float>(), (Floats{1, 3, 6}));
    EXPECT_EQ(std::get<2>(r).to_vector<float>(), (Floats{10, 30, 60}));
  };
  Array xs = array({1.0, 2.0, 3.0});
  check(body(xs));
  check(jit(body)(xs));
  {
    DisableJit plain;
    check(body(xs));
  }
  // d/dx of (sum x)²
  auto loss = [](const Array& v) {
    Ref t = new_ref(zeros({}));
    fori_loop(
        0, 3,
        [&](const Array& i, const Array& c) {
          t.addupdate(v(i));
          return c;
        },
        zeros({}));
    return t.get() * t.get();
  };
  EXPECT_EQ(grad(loss)(xs).to_vector<float>(), (Floats{12, 12, 12}));
  EXPECT_EQ(jit(grad(loss))(xs).to_vector<float>(), (Floats{12, 12, 12}));
}

TEST(Refs, WhileReadsThemInItsCondition) {
  auto f = [](const Array& x) {
    Ref r = new_ref(x);
    Array n = while_loop([&](const Array&) { return r.get() < 100; },
                         [&](const Array& c) {
                           r.set(r.get() * 2);
                           return c + 1;
                         },
                         Array(HostArray::scalar(0)));
    return std::pair{n, r.get()};
  };
  auto [n, last] = jit(f)(Array(HostArray::scalar(3.0f)));
  EXPECT_EQ(n.item<int>(), 6);
  EXPECT_EQ(last.item<float>(), 192);
  std::string m = message_of([&] {
    Ref r = new_ref(ones({}));
    while_loop(
        [&](const Array& c) {
          r.set(0);
          return c < 1;
        },
        [](const Array& c) { return c + 1; }, zeros({}));
  });
  EXPECT_NE(m.find("while_loop condition: write to a ref"), std::string::npos) << m;
}

TEST(Refs, BranchesThatDoNotWriteLeaveTheContents) {
  auto f = [](const Array& p, const Array& x) {
    Ref a = new_ref(x), b = new_ref(x * 10);
    Array y = cond(
        p,
        [&](const Array& v) {
          a.set(v + 1);
          return b.get();
        },
        [&](const Array& v) {
          b.addupdate(v);
          b.addupdate(a.get());
          return v;
        },
        x);
    return std::tuple{y, a.get(), b.get()};
  };
  Array x = Array(HostArray::scalar(2.0f));
  auto values = [](const std::tuple<Array, Array, Array>& r) {
    return Floats{std::get<0>(r).item<float>(), std::get<1>(r).item<float>(),
                  std::get<2>(r).item<float>()};
  };
  Array yes = ones({}, DType::kBool), no = zeros({}, DType::kBool);
  EXPECT_EQ(values(jit(f)(yes, x)), (Floats{20, 3, 20}));
  EXPECT_EQ(values(jit(f)(no, x)), (Floats{2, 2, 24}));
  EXPECT_EQ(values(f(yes, x)), (Floats{20, 3, 20}));
}

TEST(Refs, InnerBodiesSeeWhatOuterStepsWrote) {
  auto f = jit([](const Array& xs) {
    Ref r = new_ref(zeros({}));
    return scan(
               [&](const Array& c, const Array& x) {
                 Array seen = cond(
                     x > 0, [&](const Array&) { return r.get(); },
                     [&](const Array&) { return r.get() * 100; }, x);
                 r.addupdate(x);
                 return std::pair{c, seen};
               },
               zeros({}), xs)
        .second;
  });
  EXPECT_EQ(f(array({1.0, 2.0, -4.0, 1.0})).to_vector<float>(), (Floats{0, 1, 300, -1}));
}

TEST(Refs, GradWritesPrimalValuesToRefsFromOutside) {
  Ref seen = new_ref(zeros({}));
  auto loss = [&](const Array& x) {
    Array y = sum(x * x);
    seen.set(y);
    return y;
  };
  Array x = array({1.0, 2.0});
  EXPECT_EQ(grad(loss)(x).to_vector<float>(), (Floats{2, 4}));
  EXPECT_EQ(seen.get().item<float>(), 5);
  EXPECT_EQ(jit(grad(loss))(x * 2).to_vector<float>(), (Floats{4, 8}));
  EXPECT_EQ(seen.get().item<float>(), 20);
  EXPECT_EQ(grad(remat(loss))(x).to_vector<float>(), (Floats{2, 4}));
  EXPECT_EQ(seen.get().item<float>(), 5);
}

TEST(Refs, WritesWithoutMeaningAreRefusedByName) {
  Ref r = new_ref(zeros({}));
  std::string m = message_of([&] {
    vmap([&](const Array& x) {
      r.set(x);
      return x;
    })(ones({3}));
  });
  EXPECT_NE(m.find("vmap: write to a ref from outside"), std::string::npos) << m;
  vmap([&](const Array& x) {
    r.set(5);
    return x;
  })(ones({3}));
  EXPECT_EQ(r.get().item<float>(), 5);
  m = message_of([&] {
    jvp(
        [&](const Array& x) {
          r.set(x);
          return x;
        },
        std::tuple{ones({})}, std::tuple{ones({})});
  });
  EXPECT_NE(m.find("jvp: write to a ref from outside"), std::string::npos) << m;
  std::optional<Ref> kept;
  jit([&](const Array& x) {
    kept = new_ref(x);
    return x;
  })(ones({}));
  m = message_of([&] { kept->get(); });
  EXPECT_NE(m.find("it is used after that ended"), std::string::npos) << m;
  // An error inside leaves the contents.
  m = message_of([&] {
    jit([&](const Array& x) {
      r.set(8);
      return x.reshape({7});
    })(ones({2}));
  });
  EXPECT_EQ(r.get().item<float>(), 5);
}

}  // namespace
}  // namespace xylem
