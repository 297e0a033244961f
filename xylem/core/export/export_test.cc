#include "xylem/core/export.h"

#include <gtest/gtest.h>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/core/core.h"

namespace xylem {
namespace {

std::string recorded(const std::string& name) {
  return read_file(std::string(XYLEM_SOURCE_DIR) + "/xylem/core/export/testdata/" + name + ".bin");
}

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "nothing was thrown";
}

void expect_close(const Array& a, const Array& b) {
  EXPECT_EQ(a.type_string(), b.type_string());
  EXPECT_TRUE(allclose(a, b, 1e-6, 1e-6).item<bool>()) << a.to_string() << "\n" << b.to_string();
}

using Two = std::tuple<Array, Array>;

TEST(Export, AFunctionComesBackFromItsBytes) {
  auto f = [](const Array& x, const Array& y) { return Two{sin(x) * y, sum(x)}; };
  Array x = linspace(0, 1, 3), y = array({1, 2, 3});
  Exported e = export_(jit(f, {.name = "wave"}))(x, y);
  EXPECT_EQ(e.fun_name(), "wave");
  EXPECT_EQ(e.in_tree(), "((*, *), {})");
  EXPECT_EQ(e.out_tree(), "(*, *)");
  EXPECT_EQ(e.in_avals(), (std::vector<std::string>{"float32[3]", "float32[3]"}));
  Exported again = import_(e.serialize());
  EXPECT_EQ(again.module_serialized(), e.module_serialized());
  auto [a, b] = again.call<Two>(x, y);
  expect_close(a, sin(x) * y);
  expect_close(b, sum(x));
}

struct Params {
  Array kernel, bias;
};

TEST(Export, StructsAreDictionariesByField) {
  auto f = [](const Params& p, const Array& x) { return Params{p.kernel * x, p.bias - x}; };
  Params p{array({1, 2}), array({5, 7})};
  Array x = array({3, 4});
  Exported e = import_(export_(jit(f))(p, x).serialize());
  EXPECT_EQ(e.in_tree(), "(({'bias': *, 'kernel': *}, *), {})");
  Params r = e.call<Params>(p, x);
  expect_close(r.kernel, array({3, 8}));
  expect_close(r.bias, array({2, 3}));
  std::map<std::string, Array> as_map{{"kernel", p.kernel}, {"bias", p.bias}};
  expect_close(e.call<Params>(as_map, x).kernel, array({3, 8}));
}

TEST(Export, DerivativesTravelUpToTheirOrder) {
  auto f = [](const Array& x) { return sum(x * x * x); };
  Array x = array({1.0, 2.0});
  auto once = import_(export_(jit(f))(x).serialize(1));
  auto call = [](const Exported& e) { return [e](const Array& v) { return e.call(v); }; };
  expect_close(grad(call(once))(x), array({3.0, 12.0}));
  auto twice_grad = [&](const Exported& e) {
    return grad([&](const Array& v) { return sum(grad(call(e))(v)); })(x);
  };
  std::string m = message_of([&] { twice_grad(once); });
  EXPECT_NE(m.find("Serialize it with a higher vjp_order"), std::string::npos) << m;
  expect_close(twice_grad(import_(export_(jit(f))(x).serialize(2))), array({6.0, 12.0}));
  // What was not serialized yet makes its own.
  expect_close(twice_grad(export_(jit(f))(x)), array({6.0, 12.0}));
  m = message_of([&] { grad(call(import_(export_(jit(f))(x).serialize(0))))(x); });
  EXPECT_NE(m.find("serialized without derivatives"), std::string::npos) << m;
}

TEST(Export, IntegersHaveNoCotangents) {
  auto f = [](const Array& x, const Array& n) { return Two{x * n, n + 1}; };
  Array x = array({1.0, 2.0}), n = arange(2);
  Exported e = import_(export_(jit(f))(x, n).serialize(1));
  EXPECT_EQ(e.vjp().in_avals(),
            (std::vector<std::string>{"float32[2]", "int32[2]", "float32[2]", "float0[2]"}));
  EXPECT_EQ(e.vjp().out_avals(), (std::vector<std::string>{"float32[2]", "float0[2]"}));
  Array g = grad([&](const Array& v) { return sum(std::get<0>(e.call<Two>(v, n))); })(x);
  expect_close(g, array({0.0, 1.0}));
}

TEST(Export, ImportedProgramsWorkUnderJitAndRefuseVmap) {
  Array x = array({1.0, 2.0, 3.0});
  Exported e = import_(export_(jit([](const Array& v) { return exp(v); }))(x).serialize(1));
  expect_close(jit([&](const Array& v) { return e.call(v) * 2; })(x), exp(x) * 2);
  expect_close(jit(grad([&](const Array& v) { return sum(e.call(v)); }))(x), exp(x));
  std::string m = message_of([&] {
    vmap([&](const Array& v) { return e.call(v); })(stack({x, x}));
  });
  EXPECT_NE(m.find("vmap of call_exported_jit"), std::string::npos) << m;
  m = message_of(
      [&] { jvp([&](const Array& v) { return e.call(v); }, std::tuple{x}, std::tuple{x}); });
  EXPECT_NE(m.find("forward"), std::string::npos) << m;
}

TEST(Export, CapturesBecomePartOfTheProgram) {
  Array c = arange(2);
  Exported e = import_(export_(jit([c](const Array& x) { return x + c; }))(c).serialize());
  EXPECT_EQ(e.call(c).to_vector<int>(), (std::vector<int>{0, 2}));
}

TEST(Export, ReadsWhatJaxWrote) {
  Array x = array({0.5, -1.0, 2.0}), y = array({1.0, 2.0, 3.0});
  Exported e = import_(recorded("pair"));
  auto [a, count] = e.call<Two>(x, y);
  expect_close(a, sin(x) * y);
  EXPECT_EQ(count.item<int>(), 2);
  auto f = [&](const Array& v) { return sum(std::get<0>(e.call<Two>(v, y))); };
  expect_close(grad(f)(x), cos(x) * y);
  expect_close(jit(grad([&](const Array& v) { return sum(grad(f)(v)); }))(x), -sin(x) * y);
}

struct Out {
  Array c, z;
};

TEST(Export, ReadsDictionariesOfJax) {
  Exported e = import_(recorded("dicts"));
  std::map<std::string, Array> d{{"a", array({1.0, 2.0, 3.0})}, {"b", array({4.0, 5.0, 6.0})}};
  Out r = e.call<Out>(d, arange(3));
  expect_close(r.z, array({4.0, 11.0, 20.0}));
  EXPECT_EQ(r.c.item<float>(), 1);
  auto g = grad(
      [&](const std::map<std::string, Array>& v) { return sum(e.call<Out>(v, arange(3)).z); })(d);
  expect_close(g.at("a"), d.at("b"));
}

TEST(Export, OpenShapesAreRefinedToTheArguments) {
  Exported e = import_(recorded("open"));
  EXPECT_EQ(e.in_avals(), (std::vector<std::string>{"float32[b,4]"}));
  for (std::int64_t n : {1, 5}) {
    Array x = ones({n, 4});
    expect_close(e.call(x), sum(tanh(x), 0) + static_cast<double>(n));
    expect_close(grad([&](const Array& v) { return sum(e.call(v)); })(x), 1 - square(tanh(x)));
  }
  std::string m = message_of([&] { e.call(ones({5, 3})); });
  EXPECT_NE(m.find("expected float32[b,4]"), std::string::npos) << m;
}

TEST(Export, KeysAndUnusedArgumentsFit) {
  Array u = import_(recorded("key")).call(random::key(0));
  expect_close(u, random::uniform(random::key(0), {2}));
  Array x = array({1.0, 2.0, 3.0});
  Exported e = import_(recorded("unused"));
  expect_close(e.call(x, x, x), x * x);
  expect_close(grad([&](const Array& v) { return sum(e.call(x, v, x)); })(x), zeros({3}));
}

TEST(Export, CallsThatDoNotFitAreRefused) {
  Exported e = import_(recorded("pair"));
  Array x = ones({3});
  std::string m = message_of([&] { e.call<Two>(x); });
  EXPECT_NE(m.find("arguments of structure ((*, *), {})"), std::string::npos) << m;
  m = message_of([&] { e.call<Two>(x, arange(3)); });
  EXPECT_NE(m.find("expected float32[3]"), std::string::npos) << m;
  m = message_of([&] { e.call<Array>(x, x); });
  EXPECT_NE(m.find("call<std::tuple<Array, Array>>"), std::string::npos) << m;
  m = message_of([&] { import_(recorded("tpu")).call(x); });
  EXPECT_NE(m.find("it was exported for tpu"), std::string::npos) << m;
}

TEST(Export, DamagedBytesAreErrors) {
  const std::string good = recorded("dicts");
  for (std::size_t n = 0; n < good.size(); n += 1 + good.size() / 200)
    EXPECT_THROW(import_(good.substr(0, n)).call_flat({}), UserError) << n;
  for (std::size_t i = 0; i < good.size(); i += 1 + good.size() / 300) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x55);
    try {
      Exported e = import_(bad);
      e.in_avals();
      e.call_flat(std::vector<Array>{ones({3}), ones({3}), arange(3)});
    } catch (const UserError&) {
    }
  }
}

}  // namespace
}  // namespace xylem
