// Index expressions and updates through them against JAX (tests/goldens/core_indexing.json).

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "xylem/base/error.h"
#include "xylem/base/testing/golden.h"
#include "xylem/core/core.h"

namespace xylem {
namespace {

using testing::Golden;

Array formula(const Dims& shape, int factor, int modulus, int shift, float divisor) {
  std::vector<float> v(static_cast<std::size_t>(num_elements(shape)));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<float>(static_cast<int>(i) * factor % modulus - shift) / divisor;
  return Array(std::span<const float>(v), shape);
}
Array x_of(const Dims& shape) { return formula(shape, 7, 11, 5, 2); }
Array v_of(const Dims& shape) { return formula(shape, 5, 7, 3, 2); }
Array w_of(const Dims& shape) { return formula(shape, 3, 5, 2, 1); }

std::vector<Index> index_of(const Golden& g) {
  std::vector<Index> r;
  for (std::size_t k = 0; k < g.size(); ++k) {
    Golden e = g.at(k);
    if (e.has("int")) {
      r.push_back(Index(static_cast<std::int64_t>(e["int"].number())));
    } else if (e.has("array")) {
      r.push_back(Index(Array(e["array"].array())));
    } else if (e.has("token")) {
      r.push_back(e["token"].str() == "newaxis" ? idx::newaxis : idx::ellipsis);
    } else {
      auto end = [&](std::size_t i) -> std::optional<std::int64_t> {
        std::string s = e["slice"].at(i).str();
        if (s.empty()) return std::nullopt;
        return std::atoll(s.c_str());
      };
      r.push_back(idx::slice(end(0), end(1), *end(2)));
    }
  }
  return r;
}

Array update(const IndexedArray& part, const std::string& op, const Array& v, UpdateOptions o) {
  if (op == "set") return part.set(v, o);
  if (op == "add") return part.add(v, o);
  if (op == "multiply") return part.multiply(v, o);
  if (op == "min") return part.min(v, o);
  if (op == "max") return part.max(v, o);
  return part.subtract(v, o);
}

void expect_equal(const char* what, const Array& got, const HostArray& want, double tolerance) {
  SCOPED_TRACE(what);
  ASSERT_EQ(shape_string(got.dtype(), got.shape()), want.type_string());
  HostArray g = got.to_host();
  for (std::int64_t k = 0; k < want.size(); ++k) {
    if (std::isnan(g.at(k)) && std::isnan(want.at(k))) continue;
    EXPECT_NEAR(g.at(k), want.at(k), tolerance) << "element " << k;
  }
}

TEST(Indexing, EqualsJaxOnRandomExpressions) {
  Golden all = Golden::load("core_indexing.json")["records"];
  ASSERT_GE(all.size(), 150u);
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    Golden r = all.at(i);
    Dims shape;
    for (std::size_t k = 0; k < r["shape"].size(); ++k)
      shape.push_back(static_cast<std::int64_t>(r["shape"].at(k).number()));
    Array x = x_of(shape);
    std::vector<Index> index = index_of(r["index"]);
    auto part = [&](const Array& a) { return IndexedArray(a, index); };
    Array got = part(x).get();
    expect_equal("get", got, r["get"].array(), 0);
    expect_equal("fill", part(x).get({.mode = IndexMode::kFill, .fill_value = 7.0}),
                 r["fill"].array(), 0);
    Array v = v_of(got.shape());
    if (r["scalar"].flag()) v = got.size() ? v.reshape({-1})[0] : ones({});
    std::string mode = r["mode"].str(), op = r["op"].str();
    UpdateOptions o;
    if (mode == "clip") o.mode = IndexMode::kClip;
    if (mode == "drop") o.mode = IndexMode::kDrop;
    auto changed = [&](const Array& a, const Array& b) { return update(part(a), op, b, o); };
    expect_equal("update", changed(x, v), r["out"].array(), 1e-6);
    expect_equal("update under jit", jit(changed)(x, v), r["out"].array(), 1e-6);
    Array w = w_of(got.shape());
    auto read = [&](const Array& a) { return sum(sin(part(a).get()) * w); };
    expect_equal("gradient of the read", grad(read)(x), r["read_grad"].array(), 1e-5);
    if (!r.has("grad_x")) continue;
    Array w2 = w_of(shape);
    auto [gx, gv] =
        grad([&](const Array& a, const Array& b) { return sum(sin(changed(a, b)) * w2); },
             argnums<0, 1>)(x, v);
    expect_equal("gradient of the update by x", gx, r["grad_x"].array(), 1e-5);
    expect_equal("gradient of the update by v", gv, r["grad_v"].array(), 1e-5);
  }
}

TEST(Indexing, ReadsAsNumPyDoes) {
  Array x = x_of({3, 4});
  EXPECT_EQ(x(-1).to_vector<float>(), x[2].to_vector<float>());
  EXPECT_EQ(x(idx::all, 1).shape(), (Dims{3}));
  EXPECT_EQ(x(idx::ellipsis, idx::newaxis).shape(), (Dims{3, 4, 1}));
  EXPECT_EQ(x(idx::slice(idx::none, idx::none, -1))(0).to_vector<float>(), x[2].to_vector<float>());
  EXPECT_EQ(x(x > 0.0).ndim(), 1);
  Array rows(std::vector<std::int32_t>{0, 2}), columns(std::vector<std::int32_t>{3, 1});
  EXPECT_EQ(x(rows, columns).to_vector<float>(),
            (std::vector<float>{x(0, 3).item<float>(), x(2, 1).item<float>()}));
}

TEST(Indexing, TracedIndicesWorkUnderJitAndVmap) {
  Array x = x_of({3, 4});
  auto row = jit([](const Array& a, const Array& i) { return a(i); });
  EXPECT_EQ(row(x, Array(HostArray::scalar(9))).to_vector<float>(), x[2].to_vector<float>());
  EXPECT_EQ(row(x, Array(HostArray::scalar(-2))).to_vector<float>(), x[1].to_vector<float>());
  Array i(std::vector<std::int32_t>{2, 0, 5});
  Array each = vmap([](const Array& r, const Array& k) { return r(k); })(x, i);
  EXPECT_EQ(each.to_vector<float>(), x(arange(3), i).to_vector<float>());
  auto put = [](const Array& r, const Array& k) { return r.at(k).set(7.0); };
  Array set = vmap(put)(x, i);
  EXPECT_EQ(set.to_vector<float>(), x.at(arange(3), i).set(7.0).to_vector<float>());
}

TEST(Indexing, UpdatesOfOneElementKeepTheOthers) {
  Array x = arange(5).astype(DType::kF32);
  EXPECT_EQ(x.at(-1).set(9).to_vector<float>(), (std::vector<float>{0, 1, 2, 3, 9}));
  EXPECT_EQ(x.at(1).power(3.0).to_vector<float>(), (std::vector<float>{0, 1, 2, 3, 4}));
  EXPECT_EQ(x.at(2).power(3.0).to_vector<float>(), (std::vector<float>{0, 1, 8, 3, 4}));
  Array twice(std::vector<std::int32_t>{4, 4});
  EXPECT_EQ(x.at(twice).divide(2.0).to_vector<float>(), (std::vector<float>{0, 1, 2, 3, 1}));
  EXPECT_EQ(x.at(twice).apply([](const Array& v) { return v * 2.0; }).to_vector<float>(),
            (std::vector<float>{0, 1, 2, 3, 16}));
  EXPECT_EQ(x.at(3).apply([](const Array& v) { return -v; }).to_vector<float>(),
            (std::vector<float>{0, 1, 2, -3, 4}));
  Array far(std::vector<std::int32_t>{7, 1});
  EXPECT_EQ(x.at(far).mul(10.0).to_vector<float>(), (std::vector<float>{0, 10, 2, 3, 4}));
}

TEST(Indexing, MultiplyAndApplyHaveDerivativesAtIndicesThatDiffer) {
  Array x = arange(4).astype(DType::kF32) + 1.0, i(std::vector<std::int32_t>{2, 0});
  Array v(std::vector<float>{3, 5});
  auto f = [&](const Array& a, const Array& b) {
    return sum(square(a.at(i).multiply(b, {.unique_indices = true})));
  };
  auto [gx, gv] = grad(f, argnums<0, 1>)(x, v);
  EXPECT_EQ(gx.to_vector<float>(), (std::vector<float>{50, 4, 54, 8}));
  EXPECT_EQ(gv.to_vector<float>(), (std::vector<float>{54, 10}));
  auto g = [&](const Array& a) {
    return sum(a.at(i).apply([](const Array& e) { return e * e; }, {.unique_indices = true}));
  };
  EXPECT_EQ(grad(g)(x).to_vector<float>(), (std::vector<float>{2, 1, 6, 1}));
  EXPECT_THROW(grad([&](const Array& a) { return sum(a.at(i).multiply(2.0)); })(x), UserError);
}

std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Indexing, RefusesWhatDoesNotFit) {
  Array x = x_of({3, 4});
  auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(message([&] { x(3); }), "the index of axis 0 must be in [-3, 3)");
  has(message([&] { x(0, 0, 0); }), "at most 2 axes can be indexed");
  has(message([&] { x(idx::ellipsis, idx::ellipsis); }), "at most one ellipsis");
  has(message([&] { x(ones({2})); }), "index arrays hold integers or bools");
  has(message([&] { x(ones({2}, DType::kBool)); }), "size of the axes that it stands for");
  has(message([&] { x(idx::slice(0, 2, 0)); }), "step of a slice must not be zero");
  has(message([&] { x.at(0).set(ones({3})); }), "the shapes must broadcast");
  has(message([&] { x.at(0).set(1, {.mode = IndexMode::kWrap}); }), "wrap");
  has(message([&] { jit([&](const Array& a) { return a(a > 0.0); })(x); }),
      "the values of a mask must be known");
  NumericsScope jax(Numerics::jax);
  EXPECT_EQ(x(7).to_vector<float>(), x[2].to_vector<float>());
}

TEST(Indexing, TakeHasJaxsModes) {
  Array x = arange(5).astype(DType::kF32), i(std::vector<std::int32_t>{-1, -7, 7});
  EXPECT_EQ(take(x, i, 0, IndexMode::kClip).to_vector<float>(), (std::vector<float>{0, 0, 4}));
  EXPECT_EQ(take(x, i, 0, IndexMode::kWrap).to_vector<float>(), (std::vector<float>{4, 3, 2}));
  EXPECT_EQ(take(x, i, 0, IndexMode::kFill, 9.0).to_vector<float>(), (std::vector<float>{4, 9, 9}));
  EXPECT_EQ(take_along_axis(x, i, 0, IndexMode::kClip).to_vector<float>(),
            (std::vector<float>{4, 0, 4}));
  EXPECT_THROW(take(zeros({0}), i), UserError);
}

}  // namespace
}  // namespace xylem
