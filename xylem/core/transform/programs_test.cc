// Jacobians, associative scans, implicit derivatives and collectives under vmap against JAX
// (tests/goldens/core_transforms.json).

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "xylem/base/error.h"
#include "xylem/base/testing/golden.h"
#include "xylem/core/core.h"

namespace xylem {
namespace {

using testing::Golden;
using V = std::vector<Array>;

Array formula(const Dims& shape, int factor, int modulus, int shift, float divisor) {
  std::vector<float> v(static_cast<std::size_t>(num_elements(shape)));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<float>(static_cast<int>(i) * factor % modulus - shift) / divisor;
  return Array(std::span<const float>(v), shape);
}
Array X(const Dims& shape) { return formula(shape, 7, 11, 5, 4); }
Array W(const Dims& shape) { return formula(shape, 3, 5, 2, 1); }

struct P {
  Array a, b;
};
struct Q {
  Array u, v;
};

Array f(const Array& x) { return sin(matmul(x, W({3, 2}))) * x(0); }
Array g(const Array& x) { return sum(sin(x) * square(flip(x))); }
Q pair(const P& p) { return {p.a * p.b, sum(exp(p.b))}; }

Array cube_root(const Array& a) {
  auto newton = [](const auto& h, const Array& x0) {
    return fori_loop(
        0, 30, [&](const Array&, const Array& x) { return x - h(x) / grad(h)(x); }, x0);
  };
  return custom_root([&](const Array& x) { return x * x * x - a; },
                     ArrayArg(1.0).array.astype(DType::kF32), newton,
                     [](const auto& h, const Array& y) { return y / h(ones({})); });
}

Array matrix() {
  return Array(std::vector<float>{4, 1, 0.5, 1, 3, -1, 0.25, -0.5, 5}).reshape({3, 3});
}
Array solve(const Array& a, const Array& b) {
  auto jacobi = [](const auto& mv, const Array& rhs) {
    return fori_loop(
        0, 200, [&](const Array&, const Array& x) { return x + 0.15 * (rhs - mv(x)); },
        zeros_like(rhs));
  };
  return custom_linear_solve([&](const Array& x) { return matmul(a, x); }, b, jacobi, jacobi);
}
Array loss(const Array& a, const Array& b) { return sum(sin(solve(a, b))); }

using Mapped = std::function<Array(const Array&)>;
struct Collective {
  Dims shape;
  Mapped f;
  int axis = 0;
};

const std::map<std::string, Collective>& collectives() {
  static const std::map<std::string, Collective> all = {
      {"psum", {{3, 2}, [](const Array& x) { return x * lax::psum(x, "i"); }}},
      {"pmean", {{3, 2}, [](const Array& x) { return x - lax::pmean(x, "i"); }}},
      {"pmax", {{3, 2}, [](const Array& x) { return lax::pmax(x, "i"); }}},
      {"pmin", {{3, 2}, [](const Array& x) { return lax::pmin(x, "i"); }}},
      {"psum of a constant", {{3, 2}, [](const Array& x) { return x + lax::psum(W({2}), "i"); }}},
      {"all_gather", {{3, 2}, [](const Array& x) { return lax::all_gather(x, "i", 1); }}},
      {"all_gather tiled",
       {{3, 2, 2}, [](const Array& x) { return lax::all_gather(x, "i", -1, true); }}},
      {"psum_scatter", {{3, 3}, [](const Array& x) { return lax::psum_scatter(x, "i"); }}},
      {"psum_scatter 1", {{3, 2, 3}, [](const Array& x) { return lax::psum_scatter(x, "i", 1); }}},
      {"psum_scatter tiled",
       {{3, 6}, [](const Array& x) { return lax::psum_scatter(x, "i", 0, true); }}},
      {"all_to_all", {{3, 3, 2}, [](const Array& x) { return lax::all_to_all(x, "i", 0, 0); }}},
      {"all_to_all 0 1", {{3, 3, 2}, [](const Array& x) { return lax::all_to_all(x, "i", 0, 1); }}},
      {"all_to_all 1 0",
       {{3, 2, 3, 2}, [](const Array& x) { return lax::all_to_all(x, "i", 1, 0); }}},
      {"all_to_all tiled",
       {{3, 6, 2}, [](const Array& x) { return lax::all_to_all(x, "i", 0, 1, true); }}},
      {"all_to_all tiled 1 0",
       {{3, 2, 3}, [](const Array& x) { return lax::all_to_all(x, "i", 1, 0, true); }}},
      {"ppermute",
       {{3, 2},
        [](const Array& x) {
          return lax::ppermute(x, "i", {{0, 2}, {1, 0}, {2, 1}});
        }}},
      {"axis_index", {{3, 2}, [](const Array& x) { return x * lax::axis_index("i"); }}},
      {"in_axes 1", {{2, 3}, [](const Array& x) { return lax::psum(x, "i") * x; }, 1}},
  };
  return all;
}

V leaves(const auto& t) { return tree::leaves<Array>(t); }

V run(const std::string& name) {
  if (std::size_t at = name.find(": grad "); at != std::string::npos || collectives().count(name)) {
    const Collective& c = collectives().at(name.substr(0, at));
    VmapOptions in{.in_axes = c.axis, .axis_name = "i"}, both{c.axis, c.axis, "i"};
    Array x = X(c.shape);
    if (at == std::string::npos) return {vmap(c.f, both)(x)};
    if (name.ends_with("inside"))
      return {vmap(grad([&](const Array& v) { return sum(sin(c.f(v))); }), in)(x)};
    return {grad([&](const Array& v) {
      Array y = vmap(c.f, both)(v);
      return sum(sin(y) * W(y.shape()));
    })(x)};
  }
  if (name.starts_with("associative_scan add "))
    return {associative_scan([](const Array& a, const Array& b) { return a + b; },
                             X({std::stoll(name.substr(21)), 2}))};
  if (name.starts_with("associative_scan reverse "))
    return {associative_scan([](const Array& a, const Array& b) { return a * b; },
                             X({2, std::stoll(name.substr(25))}) + 1.0,
                             {.reverse = true, .axis = -1})};
  if (name.starts_with("map ")) {
    std::int64_t batch = name == "map None" ? -1 : std::stoll(name.substr(4));
    return {map([](const Array& r) { return sin(r) * sum(r); }, X({5, 2}), {.batch_size = batch})};
  }
  using Affine = std::pair<Array, Array>;
  static const std::map<std::string, std::function<V()>> others = {
      {"jacfwd", [] { return V{jacfwd(f)(X({3}))}; }},
      {"jacrev", [] { return V{jacrev(f)(X({3}))}; }},
      {"hessian", [] { return V{hessian(g)(X({4}))}; }},
      {"hvp", [] { return V{hvp(g)(X({4}), W({4}))}; }},
      {"jacrev of jacfwd", [] { return V{jacrev(jacfwd(f))(X({3}))}; }},
      {"jacfwd by 1",
       [] {
         auto outer2 = [](const Array& a, const Array& b) { return outer(a, b * b); };
         return V{jacfwd(outer2, argnums<1>)(X({2}), X({3}))};
       }},
      {"jacrev of a struct to an array",
       [] {
         auto h = [](const P& p) { return cos(p.a) * p.b; };
         return leaves(jacrev(h)(P{X({3}), W({3}) / 2.0}));
       }},
      {"jacfwd of a struct to a struct",
       [] {
         return leaves(jacfwd(pair)(P{X({3}), W({3}) / 2.0}));
       }},
      {"jacrev of a struct to a struct",
       [] {
         return leaves(jacrev(pair)(P{X({3}), W({3}) / 2.0}));
       }},
      {"associative_scan affine",
       [] {
         auto step = [](const Affine& p, const Affine& q) {
           return Affine{p.first * q.first, p.second * q.first + q.second};
         };
         return leaves(associative_scan(step, Affine{X({7}), W({7})}));
       }},
      {"grad of associative_scan",
       [] {
         return V{grad([](const Array& x) {
           auto product = [](const Array& a, const Array& b) { return a * b; };
           return sum(associative_scan(product, x) * W({5}));
         })(X({5}))};
       }},
      {"custom_root", [] { return V{cube_root(full({}, 5.0))}; }},
      {"custom_root grad", [] { return V{grad(cube_root)(full({}, 5.0))}; }},
      {"custom_root hessian", [] { return V{grad(grad(cube_root))(full({}, 5.0))}; }},
      {"custom_root vmap",
       [] {
         return V{vmap(grad(cube_root))(Array(std::vector<float>{1, 2, 8}))};
       }},
      {"custom_root jvp",
       [] {
         return V{jvp(cube_root, std::tuple{full({}, 5.0)}, std::tuple{full({}, 2.0)}).second};
       }},
      {"linear_solve", [] { return V{solve(matrix(), X({3}))}; }},
      {"linear_solve grads", [] { return leaves(grad(loss, argnums<0, 1>)(matrix(), X({3}))); }},
      {"linear_solve jvp",
       [] {
         Array a = matrix();
         return V{jvp(solve, std::tuple{a, X({3})}, std::tuple{a * 0.1, W({3})}).second};
       }},
      {"linear_solve vmap",
       [] {
         return V{vmap(solve, {.in_axes = {no_axis, 0}})(matrix(), X({2, 3}))};
       }},
      {"linear_solve vmap of grad",
       [] {
         return V{vmap(grad(loss), {.in_axes = {no_axis, 0}})(matrix(), X({2, 3}))};
       }},
      {"linear_solve hvp",
       [] {
         Array a = matrix();
         return V{jvp(grad(loss, argnums<1>), std::tuple{a, X({3})}, std::tuple{a * 0.1, W({3})})
                      .second};
       }},
      {"linear_transpose",
       [] {
         auto h = [](const Array& x, const Array& y) {
           return matmul(W({2, 3}), x) + 2.0 * y(idx::slice(0, 2));
         };
         auto t = linear_transpose(h, shape_dtype_struct({3}, DType::kF32),
                                   shape_dtype_struct({4}, DType::kF32));
         return leaves(t(Array(std::vector<float>{1, -2})));
       }},
      {"psum in scan",
       [] {
         auto body = [](const Array& x) {
           return scan(
                      [&](const Array& c, const Array& y) {
                        return std::pair{c + lax::psum(y * x(0), "i"), c * y};
                      },
                      x(0), x)
               .second;
         };
         return V{vmap(body, {.axis_name = "i"})(X({3, 4}))};
       }},
      {"two axes",
       [] {
         auto body = [](const Array& x) {
           return lax::psum(x, {"i", "j"}) + 10 * lax::axis_index("j") + lax::psum(x, "i");
         };
         return V{vmap(vmap(body, {.axis_name = "j"}), {.axis_name = "i"})(X({2, 3}))};
       }},
      {"out_axes none",
       [] {
         return V{vmap([](const Array& x) { return lax::psum(x, "i"); },
                       {.out_axes = no_axis, .axis_name = "i"})(X({3, 2}))};
       }},
      {"axis_size",
       [] {
         auto body = [] { return lax::axis_index("i") * static_cast<int>(lax::axis_size("i")); };
         return V{vmap(body, {.axis_name = "i", .axis_size = 4})()};
       }},
  };
  return others.at(name)();
}

TEST(Transforms, EqualJax) {
  Golden all = Golden::load("core_transforms.json")["results"];
  for (const std::string& name : all.keys()) {
    SCOPED_TRACE(name);
    V got;
    try {
      got = run(name);
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
      continue;
    }
    Golden want = all[name];
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      HostArray w = want.at(i).array();
      EXPECT_EQ(shape_string(got[i].dtype(), got[i].shape()), w.type_string());
      if (got[i].shape() != w.dims()) continue;
      HostArray h = got[i].to_host();
      for (std::int64_t k = 0; k < w.size(); ++k)
        EXPECT_NEAR(h.at(k), w.at(k), 2e-5 * std::max(1.0, std::abs(w.at(k)))) << "element " << k;
    }
  }
}

std::string message(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Transforms, CollectivesRefuseWhatTheyCannotDo) {
  auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  Array x = X({3, 2});
  has(message([&] { lax::psum(x, "k"); }), "unbound axis name: k");
  has(message([&] {
        vmap([](const Array& v) { return lax::ppermute(v, "i", {{0, 1}}); }, {.axis_name = "i"})(x);
      }),
      "every position must have a source");
  has(message([&] {
        vmap(grad([](const Array& v) { return sum(lax::pmax(v, "i")); }), {.axis_name = "i"})(x);
      }),
      "no derivative");
  has(message([&] {
        vmap([](const Array& v) { return lax::psum_scatter(v, "i"); }, {.axis_name = "i"})(x);
      }),
      "axis size");
  has(message([&] { jacfwd([](const Array& v) { return v * 1.5; })(arange(3)); }), "float");
  has(message([&] { linear_transpose([](const Array& v) { return v * v; }, x)(x); }), "linear");
  has(message([&] {
        auto half = [](const Array& b) {
          return custom_linear_solve([](const Array& v) { return v * 2.0; }, b,
                                     [](const auto&, const Array& r) { return r / 2.0; });
        };
        grad([&](const Array& b) { return sum(half(b)); })(x);
      }),
      "transposed system");
}

TEST(Transforms, PsumOfANumberIsANumber) {
  Array n;
  vmap(
      [&](const Array& x) {
        n = lax::psum(1, "i");
        return x;
      },
      {.axis_name = "i"})(X({3}));
  EXPECT_EQ(n.item<int>(), 3);
  EXPECT_TRUE(n.weak_type());
}

TEST(Transforms, AJittedFunctionInsideAMappedOneSeesTheAxis) {
  auto total = jit([](const Array& x) { return lax::psum(x, "i"); });
  auto mapped = vmap([&](const Array& x) { return total(x); }, {.axis_name = "i"});
  EXPECT_EQ(jit(mapped)(arange(4)).to_vector<int>(), (std::vector<int>{6, 6, 6, 6}));
  EXPECT_EQ(mapped(arange(3)).to_vector<int>(), (std::vector<int>{3, 3, 3}));
  EXPECT_THROW(total(arange(3)), UserError);
}

TEST(Transforms, CustomVmapUsesItsRule) {
  int calls = 0;
  auto twice = custom_vmap(
      [](const Array& x, const Array& y) { return x * y; },
      [&](std::int64_t n, const std::vector<bool>& mapped, const Array& x, const Array& y) {
        ++calls;
        EXPECT_EQ(n, 3);
        EXPECT_EQ(mapped, (std::vector<bool>{true, false}));
        return std::pair{x * y + 100.0, std::vector<bool>{true}};
      });
  Array x = arange(3).astype(DType::kF32);
  Array r = vmap(twice, {.in_axes = {0, no_axis}})(x, full({}, 2.0));
  EXPECT_EQ(r.to_vector<float>(), (std::vector<float>{100, 102, 104}));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(twice(x, x).to_vector<float>(), (std::vector<float>{0, 1, 4}));
  EXPECT_EQ(grad([&](const Array& v) { return sum(twice(v, v)); })(x).to_vector<float>(),
            (std::vector<float>{0, 2, 4}));
  EXPECT_EQ(jit(twice)(x, x).to_vector<float>(), (std::vector<float>{0, 1, 4}));
}

}  // namespace
}  // namespace xylem
