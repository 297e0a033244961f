#include "xylem/core/jaxpr.h"

#include <gtest/gtest.h>

#include "xylem/core/core.h"

// The texts are what jax.make_jaxpr of JAX 0.10.2 prints for the same programs.

namespace xylem {
namespace {

template <class F, class... Args>
std::string text_of(F&& f, const Args&... args) {
  return make_jaxpr(std::forward<F>(f))(args...).to_string();
}

TEST(Jaxpr, OneEquationFitsOneLine) {
  EXPECT_EQ(text_of([](const Array& x, const Array& y) { return x * y; }, ones({3}), ones({3})),
            "{ lambda ; a:f32[3] b:f32[3]. let c:f32[3] = mul a b in (c,) }");
}

TEST(Jaxpr, LongerProgramsHaveALineForEachEquation) {
  EXPECT_EQ(text_of([](const Array& x, const Array& y) { return x * y + 1.0; }, ones({}), ones({})),
            R"({ lambda ; a:f32[] b:f32[]. let
    c:f32[] = mul a b
    d:f32[] = add c 1.0:f32[]
  in (d,) })");
}

TEST(Jaxpr, ParametersThatDoNotFitHaveALineEach) {
  EXPECT_EQ(text_of([](const Array& x, const Array& y) { return matmul(sin(x), y); }, ones({2, 3}),
                    ones({3})),
            R"({ lambda ; a:f32[2,3] b:f32[3]. let
    c:f32[2,3] = sin a
    d:f32[2] = dot_general[
      dimension_numbers=(([1], [0]), ([], []))
      preferred_element_type=float32
    ] c b
  in (d,) })");
}

TEST(Jaxpr, ScanHoldsItsBody) {
  EXPECT_EQ(text_of(
                [](const Array& x, const Array& xs) {
                  return scan(
                      [](const Array& c, const Array& y) {
                        return std::pair{c + y, c * y};
                      },
                      x, xs);
                },
                ones({}), ones({3})),
            R"({ lambda ; a:f32[] b:f32[3]. let
    c:f32[] d:f32[3] = scan[
      jaxpr={ lambda ; e:f32[] f:f32[]. let
          g:f32[] = add e f
          h:f32[] = mul e f
        in (g, h) }
      length=3
      num_carry=1
      num_consts=0
      reverse=False
      unroll=1
    ] a b
  in (c, d) })");
}

TEST(Jaxpr, WhilePassesToEachFunctionWhatItReads) {
  EXPECT_EQ(text_of(
                [](const Array& n, const Array& x) {
                  return while_loop([&](const Array& c) { return c < n; },
                                    [](const Array& c) { return c * 2; }, x);
                },
                Array(HostArray::scalar(10)), Array(HostArray::scalar(1))),
            R"({ lambda ; a:i32[] b:i32[]. let
    c:i32[] = while[
      body_jaxpr={ lambda ; d:i32[]. let e:i32[] = mul d 2:i32[] in (e,) }
      body_nconsts=0
      cond_jaxpr={ lambda ; f:i32[] g:i32[]. let h:bool[] = lt g f in (h,) }
      cond_nconsts=1
    ] a b
  in (c,) })");
}

TEST(Jaxpr, CondSelectsABranchByNumber) {
  EXPECT_EQ(text_of(
                [](const Array& p, const Array& x) {
                  return cond(
                      p, [](const Array& v) { return sin(v); },
                      [](const Array& v) { return v * 2; }, x);
                },
                ones({}, DType::kBool), ones({})),
            R"({ lambda ; a:bool[] b:f32[]. let
    c:i32[] = convert_element_type[new_dtype=int32 weak_type=False] a
    d:f32[] = cond[
      branches=(
        { lambda ; e:f32[]. let f:f32[] = mul e 2.0:f32[] in (f,) }
        { lambda ; g:f32[]. let h:f32[] = sin g in (h,) }
      )
    ] c b
  in (d,) })");
}

TEST(Jaxpr, CapturedArraysAreConstants) {
  Array c = array({1.0, 2.0, 3.0});
  EXPECT_EQ(text_of([&](const Array& x) { return x + c; }, ones({3})),
            "{ lambda a:f32[3]; b:f32[3]. let c:f32[3] = add b a in (c,) }");
}

TEST(Jaxpr, JittedFunctionsAreCallsAndSharedOnesStandInFront) {
  auto f = jit([](const Array& v) { return sin(v); }, {.name = "wave"});
  EXPECT_EQ(text_of([&](const Array& x) { return f(x) + 1.0; }, ones({})),
            R"({ lambda ; a:f32[]. let
    b:f32[] = jit[
      name=wave
      jaxpr={ lambda ; c:f32[]. let d:f32[] = sin c in (d,) }
    ] a
    e:f32[] = add b 1.0:f32[]
  in (e,) })");
  EXPECT_EQ(text_of([&](const Array& x) { return f(f(x)); }, ones({})),
            R"(let wave = { lambda ; a:f32[]. let b:f32[] = sin a in (b,) } in
{ lambda ; c:f32[]. let
    d:f32[] = jit[name=wave jaxpr=wave] c
    e:f32[] = jit[name=wave jaxpr=wave] d
  in (e,) })");
}

TEST(Jaxpr, UnusedResultsAreBlanks) {
  std::string text = text_of(
      [](const Array& x) {
        Array unused = exp(x);
        return x;
      },
      ones({}));
  EXPECT_EQ(text, "{ lambda ; a:f32[]. let _:f32[] = exp a in (a,) }");
}

TEST(Jaxpr, SelectTakesTheFalseCaseFirst) {
  EXPECT_EQ(text_of(
                [](const Array& x) {
                  Array positive = x > 0.0, twice = 2 * x;
                  return where(positive, x, twice);
                },
                ones({3})),
            R"({ lambda ; a:f32[3]. let
    b:bool[3] = gt a 0.0:f32[]
    c:f32[3] = mul 2.0:f32[] a
    d:f32[3] = select_n b c a
  in (d,) })");
}

}  // namespace
}  // namespace xylem
