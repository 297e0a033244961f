// Values of jax.numpy functions against JAX (tests/goldens/core_functions.json), and what they
// refuse.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "xylem/base/error.h"
#include "xylem/base/testing/golden.h"
#include "xylem/core/core.h"
#include "xylem/core/linalg.h"
#include "xylem/core/statistics.h"

namespace xylem {
namespace {

using testing::Golden;
using V = std::vector<Array>;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Array A(const Dims& shape, int k = 0) {
  std::vector<float> v(static_cast<std::size_t>(num_elements(shape)));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<float>((static_cast<int>(i) * 7 + k) % 11 - 5) / 4;
  return Array(std::span<const float>(v), shape);
}
Array I(const Dims& shape, int k = 0) {
  std::vector<std::int32_t> v(static_cast<std::size_t>(num_elements(shape)));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = (static_cast<int>(i) * 5 + k) % 7 - 2;
  return Array(std::span<const std::int32_t>(v), shape);
}
Array B(const Dims& shape) { return A(shape) > 0.0; }
Array N() {
  return Array(std::vector<float>{1, kNaN, -2, 0.5, kNaN, kNaN, kNaN, kNaN, kInf, 3, -kInf, 0,
                                  -0.0f, 2, 2, -1.5})
      .reshape({4, 4});
}
Array floats(std::vector<float> v) { return Array(v); }
Array ints(std::vector<std::int32_t> v) { return Array(v); }
Array bytes(std::vector<std::uint8_t> v) { return Array(v); }
V parts(std::initializer_list<Array> a) { return a; }

using Program = std::function<Array()>;

Array quantiles(QuantileMethod m) {
  return quantile(A({3, 5}), floats({0.1f, 0.4f, 0.5f, 0.93f}), 1, m);
}

#define P(name, ...)                 \
  {                                  \
    name, [] { return __VA_ARGS__; } \
  }
const std::map<std::string, Program>& programs() {
  static const std::map<std::string, Program> all = {
      P("logspace", logspace(0, 2, 5)),
      P("geomspace", geomspace(1, 1000, 4)),
      P("identity", identity(3)),
      P("meshgrid xy 0", meshgrid({A({3}), A({2})})[0]),
      P("meshgrid xy 1", meshgrid({A({3}), A({2})})[1]),
      P("meshgrid ij", meshgrid({A({3}), A({2})}, "ij")[1]),
      P("indices", indices({2, 3})),
      P("tril_indices", tril_indices(3, -1).first),
      P("triu_indices", triu_indices(3, 1, 4).second),
      P("vander", vander(A({3}))),
      P("vander 2", vander(A({3}), 2, true)),
      P("fmax", fmax(N(), 0.25)),
      P("fmin", fmin(N(), 0.25)),
      P("logaddexp2", logaddexp2(A({4}), A({4}, 3))),
      P("heaviside", heaviside(N(), 0.5)),
      P("copysign", copysign(A({4}), N()(3))),
      P("signbit", signbit(N())),
      P("signbit i32", signbit(I({4}))),
      P("sinc", sinc(A({11}))),
      P("sinc grad", vmap(grad([](const Array& x) { return sinc(x); }))(A({11}))),
      P("sinc hessian at 0", grad(grad([](const Array& x) { return sinc(x); }))(0.0)),
      P("deg2rad", deg2rad(A({4}) * 90)),
      P("rad2deg", rad2deg(A({4}))),
      P("angle", angle(A({5}))),
      P("angle complex", angle(A({4}) + std::complex<double>(0, 1) * A({4}, 2))),
      P("rint", rint(A({6}) * 2)),
      P("rint i32", rint(I({3}))),
      P("isposinf", isposinf(N())),
      P("isneginf", isneginf(N())),
      P("bitwise_count", bitwise_count(I({7}) * 37)),
      P("polyval", polyval(A({4}), A({5}))),
      P("round 2", round(A({6}) * 1.2345, 2)),
      P("round -1", round(A({6}) * 50, -1)),
      P("gcd", gcd(I({6}) * 6, I({6}, 3) * 4)),
      P("lcm", lcm(I({6}) * 6, I({6}, 3) * 4)),
      P("divmod 0", divmod(A({6}), 0.75).first),
      P("divmod 1", divmod(A({6}), 0.75).second),
      P("modf 0", modf(A({6}) * 3).first),
      P("modf 1", modf(A({6}) * 3).second),
      P("ldexp", ldexp(A({4}), I({4}))),
      P("float_power", float_power(I({4}) + 3, 2)),
      P("isclose", isclose(N(), N() + 1e-6)),
      P("isclose nan", isclose(N(), N(), 1e-5, 1e-8, true)),
      P("isclose i32", isclose(I({4}), I({4}) + 1)),
      P("allclose", allclose(A({4}), A({4}) * (1 + 1e-6))),
      P("array_equal", array_equal(A({4}), A({4}))),
      P("array_equal shapes", array_equal(A({4}), A({3}))),
      P("array_equal nan", array_equal(N(), N(), true)),
      P("array_equiv", array_equiv(ones({2, 3}), ones({3}))),
      P("nan_to_num", nan_to_num(N(), 7.0, 8.0, -8.0)),
      P("select", select(parts({A({4}) > 0.5, A({4}) > 0.0}), parts({A({4}), A({4}) * 10}), -1.0)),
      P("choose", choose(ints({0, 1, 1, 0}), parts({A({4}), A({4}, 3)}))),
      P("view u32", view(A({3}), DType::kU32)),
      P("view u8", view(A({2}), DType::kU8)),
      P("view wider", view(arange(0, 8, 1, DType::kU8), DType::kU16)),
      P("cumulative_sum", cumulative_sum(A({3, 4}), 1, true)),
      P("cumulative_sum i8", cumulative_sum(I({4}).astype(DType::kI8))),
      P("cumulative_prod", cumulative_prod(A({4}))),
      P("diff", diff(A({3, 4}), 2)),
      P("diff bool", diff(B({5}))),
      P("diff axis 0", diff(A({3, 4}), 1, 0)),
      P("ediff1d", ediff1d(A({2, 3}))),
      P("trapezoid", trapezoid(A({3, 4}), 0.5)),
      P("trapezoid x", trapezoid(A({4}), square(arange(4).astype(DType::kF32)))),
      P("gradient", gradient(A({3, 4}), 0.5, 1)),
      P("moveaxis lists", moveaxis(A({2, 3, 4}), std::vector<int>{0, 1}, std::vector<int>{-1, 0})),
      P("rollaxis", rollaxis(A({2, 3, 4}), 2)),
      P("matrix_transpose", matrix_transpose(A({2, 3, 4}))),
      P("atleast_2d", atleast_2d(A({3}))),
      P("atleast_3d", atleast_3d(A({2, 3}))),
      P("append", append(A({2, 2}), A({3}))),
      P("append axis", append(A({2, 2}), A({1, 2}), 0)),
      P("vstack", vstack(parts({A({3}), A({3}, 1)}))),
      P("hstack", hstack(parts({A({2, 1}), A({2, 2})}))),
      P("hstack 1d", hstack(parts({A({2}), A({3})}))),
      P("dstack", dstack(parts({A({2, 3}), A({2, 3}, 1)}))),
      P("column_stack", column_stack(parts({A({3}), A({3, 2})}))),
      P("block", block({{A({2, 2}), A({2, 1})}, {A({1, 2}), A({1, 1})}})),
      P("array_split", array_split(A({7}), 3)[1]),
      P("hsplit", hsplit(A({2, 4}), 2)[1]),
      P("repeat counts", repeat(A({3, 2}), ints({2, 0, 3}), 0)),
      P("repeat total", repeat(A({3}), ints({2, 0, 3}), 0, 7)),
      P("rot90", rot90(A({2, 3}))),
      P("rot90 3", rot90(A({2, 3}), 3)),
      P("roll flat", roll(A({2, 3}), 2)),
      P("pad edge", pad(A({2, 3}), {{1, 2}, {0, 1}}, "edge")),
      P("pad reflect", pad(A({4}), {{6, 6}}, "reflect")),
      P("pad symmetric", pad(A({3}), {{4, 2}}, "symmetric")),
      P("pad wrap", pad(A({3}), {{4, 5}}, "wrap")),
      P("insert", insert(A({3, 2}), 1, 9.0)),
      P("delete", delete_(A({3, 2}), -1)),
      P("resize", resize(A({2, 3}), {3, 3})),
      P("diagflat", diagflat(A({2}), 1)),
      P("diagonal", diagonal(A({2, 3, 4}), 1, 1, 2)),
      P("diagonal 0 2", diagonal(A({2, 3, 4}), -1, 0, 2)),
      P("trace", trace(A({3, 4}))),
      P("trace i32", trace(I({3, 3}), 1)),
      P("unravel_index", unravel_index(ints({5, 0, -1, 99}), {2, 3})[1]),
      P("ravel_multi_index", ravel_multi_index(parts({ints({0, 1}), ints({2, 1})}), {2, 3})),
      P("packbits", packbits(B({11}))),
      P("packbits axis little", packbits(B({2, 10}), 1, true)),
      P("unpackbits", unpackbits(bytes({5, 200}))),
      P("unpackbits axis little", unpackbits(bytes({5, 200}).reshape({2, 1}), 1, true)),
      P("tensordot lists", tensordot(A({2, 3, 4}), A({4, 2, 5}), {0, 2}, {1, 0})),
      P("vecdot", vecdot(A({2, 3}), A({3}))),
      P("matvec", matvec(A({2, 2, 3}), A({3}))),
      P("vecmat", vecmat(A({2}), A({4, 2, 3}))),
      P("kron", kron(A({2, 2}), A({1, 3}))),
      P("kron vectors", kron(A({2}), A({3}))),
      P("cross", cross(A({2, 3}), A({2, 3}, 4))),
      P("cross 2", cross(A({2}), A({2}, 4))),
      P("cross 2 3", cross(A({2}), A({3}))),
      P("einsum chain",
        einsum("ab,bc,cd,de,ef->af", {A({2, 3}), A({3, 4}), A({4, 2}), A({2, 5}), A({5, 3})})),
      P("average", average(A({3, 4}), 1, floats({1, 2, 3, 4}))),
      P("average all", average(I({4}))),
      P("median", median(A({3, 4}), 1)),
      P("median all", median(A({3, 4}))),
      P("median even", median(A({4}))),
      P("median nan", median(N(), 1)),
      P("median i32", median(I({5}))),
      P("median keepdims", median(A({3, 4}), {0, 1}, true)),
      P("quantile linear", quantiles(QuantileMethod::kLinear)),
      P("quantile lower", quantiles(QuantileMethod::kLower)),
      P("quantile higher", quantiles(QuantileMethod::kHigher)),
      P("quantile midpoint", quantiles(QuantileMethod::kMidpoint)),
      P("quantile nearest", quantiles(QuantileMethod::kNearest)),
      P("quantile scalar", quantile(A({3, 5}), 0.3, 0)),
      P("quantile clamped", quantile(A({5}), floats({-1, 2}))),
      P("percentile", percentile(A({3, 5}), 40.0)),
      P("ptp", ptp(A({3, 4}), 1)),
      P("cov", cov(A({3, 5}))),
      P("cov vector", cov(A({5}))),
      P("corrcoef", corrcoef(A({3, 5}))),
      P("nansum axis", nansum(N(), 1)),
      P("nanprod axis", nanprod(N(), 1)),
      P("nanmean axis", nanmean(N(), 1)),
      P("nanvar axis", nanvar(N(), 1)),
      P("nanstd axis", nanstd(N(), 1)),
      P("nanmax axis", nanmax(N(), 1)),
      P("nanmin axis", nanmin(N(), 1)),
      P("nanargmax axis", nanargmax(N(), 1)),
      P("nanargmin axis", nanargmin(N(), 1)),
      P("nancumsum axis", nancumsum(N(), 1)),
      P("nanmean all", nanmean(N()(0))),
      P("nanvar ddof", nanvar(N(), 1, 1)),
      P("bincount", bincount(ints({1, 3, 1, 0}))),
      P("bincount weights", bincount(ints({1, 3, 1, -2}), A({4}), 0, 3)),
      P("bincount minlength", bincount(ints({1, 0}), Array(), 5)),
      P("histogram", histogram(A({11}), 4).counts),
      P("histogram edges", histogram(A({11}), 4).edges),
      P("histogram range", histogram(A({11}), 3, std::pair{-1.0, 1.0}).counts),
      P("histogram density", histogram(A({11}), floats({-2, 0, 0.5, 3}), Array(), true).counts),
      P("histogram flat", histogram(ones({3}), 2).edges),
      P("histogram weights", histogram(A({11}), 4, std::nullopt, A({11}, 5)).counts),
      P("digitize", digitize(A({6}), floats({-1, 0, 1}))),
      P("digitize right", digitize(A({6}), floats({-1, 0.25, 1}), true)),
      P("digitize descending", digitize(A({6}), floats({1, 0, -1}))),
      P("nonzero 0", nonzero(B({3, 4}))[0]),
      P("nonzero 1", nonzero(B({3, 4}))[1]),
      P("nonzero size", nonzero(B({3, 4}), 9, -1)[1]),
      P("nonzero cut", nonzero(B({3, 4}), 2)[1]),
      P("flatnonzero", flatnonzero(B({3, 4}))),
      P("argwhere", argwhere(B({3, 4}))),
      P("unique", unique(I({3, 4}))),
      P("unique nan", unique(N())),
      P("unique size 9 0", unique_all(I({3, 4}), 9).values),
      P("unique size 9 1", unique_all(I({3, 4}), 9).indices),
      P("unique size 9 3", unique_all(I({3, 4}), 9).counts),
      P("unique size 3 0", unique_all(I({3, 4}), 3).values),
      P("unique indices", unique_all(I({12})).indices),
      P("unique inverse", unique_all(I({12})).inverse),
      P("unique counts", unique_all(I({12})).counts),
      P("unique counts cut", unique_all(I({12}), 3).counts),
      P("unique fill", unique(I({12}), 9, 50)),
      P("isin", isin(I({3, 4}), ints({0, 3}))),
      P("isin invert", isin(I({4}), ints({0, 3}), true)),
      P("union1d", union1d(I({4}), ints({9, -2}))),
      P("intersect1d", intersect1d(I({6}), ints({9, -2, 3}))),
      P("setdiff1d", setdiff1d(I({6}), ints({9, -2, 3}))),
      P("lexsort", lexsort(parts({A({8}), floor_divide(I({8}), 3)}))),
      P("interp", interp(A({9}) * 2, floats({-1, 0, 0.5, 2}), floats({3, 1, 4, -1}))),
      P("interp ends",
        interp(A({9}) * 2, floats({-1, 0, 0.5, 1}), floats({3, 1, 4, -1}), -9.0, 9.0)),
      P("searchsorted nan", searchsorted(floats({1, 2, kNaN}), floats({kNaN, 0, kInf, 2}))),
      P("searchsorted nan right",
        searchsorted(floats({1, 2, kNaN, kNaN}), floats({kNaN, 0, kInf, 2}), true)),
      P("searchsorted empty", searchsorted(zeros({0}), A({2}))),
      P("put_along_axis", put_along_axis(A({2, 3}), ints({1, 2}).reshape({2, 1}), 9.0, 1)),
      P("norm", linalg::norm(A({3, 4}))),
      P("norm axis", linalg::norm(A({3, 4}), std::nullopt, 1)),
      P("norm 1", linalg::norm(A({4}), 1)),
      P("norm inf", linalg::norm(A({4}), kInf)),
      P("norm -inf", linalg::norm(A({4}), -kInf)),
      P("norm 0", linalg::norm(A({5}), 0)),
      P("norm 3", linalg::norm(A({5}), 3)),
      P("norm matrix 1", linalg::norm(A({3, 4}), 1)),
      P("norm matrix inf", linalg::norm(A({3, 4}), kInf)),
      P("norm keepdims", linalg::norm(A({3, 4}), std::nullopt, 1, true)),
      P("matrix_power", linalg::matrix_power(A({3, 3}), 5)),
      P("multi_dot", linalg::multi_dot(parts({A({2, 3}), A({3, 4}), A({4, 2})}))),
  };
  return all;
}

// JAX numbers the results of "unique size" by their place in its tuple.
TEST(Functions, EqualJax) {
  Golden all = Golden::load("core_functions.json")["results"];
  for (const std::string& name : all.keys()) {
    SCOPED_TRACE(name);
    auto it = programs().find(name);
    if (it == programs().end()) {
      ADD_FAILURE() << "no program has the name";
      continue;
    }
    Array got;
    try {
      got = it->second();
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
      continue;
    }
    HostArray want = all[name].array();
    EXPECT_EQ(shape_string(got.dtype(), got.shape()), want.type_string());
    EXPECT_EQ(got.weak_type(), all[name]["weak"].flag());
    if (got.dtype() != want.dtype() || got.shape() != want.dims()) continue;
    HostArray h = got.to_host();
    for (std::int64_t k = 0; k < want.size(); ++k) {
      double a = h.at(k), b = want.at(k);
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      EXPECT_NEAR(a, b, is_inexact(want.dtype()) ? 4e-6 * std::max(1.0, std::abs(b)) : 0)
          << "element " << k;
    }
  }
  EXPECT_EQ(all.size(), programs().size());
}

TEST(Functions, WorkUnderJit) {
  auto f = jit([](const Array& x, const Array& i) {
    Unique u = unique_all(i, 5);
    return std::vector<Array>{median(x, 0),
                              u.values,
                              u.counts,
                              nonzero(i, 4)[0],
                              histogram(x, 3).counts,
                              repeat(x, ints({1, 2, 0}), 0, 3)};
  });
  Array x = A({3}), i = I({6});
  std::vector<Array> got = f(x, i);
  EXPECT_EQ(got[0].item<float>(), median(x).item<float>());
  EXPECT_EQ(got[1].to_vector<int>(), unique(i, 5).to_vector<int>());
  EXPECT_EQ(got[3].to_vector<int>(), nonzero(i, 4)[0].to_vector<int>());
}

TEST(Functions, DifferentiateWhereJaxDoes) {
  Array x = floats({3, 1, 2, 5});
  EXPECT_EQ(grad([](const Array& a) { return median(a); })(x).to_vector<float>(),
            (std::vector<float>{0.5, 0, 0.5, 0}));
  EXPECT_EQ(grad([](const Array& a) { return linalg::norm(a); })(zeros({3})).to_vector<float>(),
            (std::vector<float>{0, 0, 0}));
  NumericsScope jax(Numerics::jax);
  Array g = grad([](const Array& a) { return linalg::norm(a); })(zeros({3}));
  EXPECT_TRUE(all(isnan(g)).item<bool>());
}

TEST(Functions, TypesAreDescribedAsNumPyDoes) {
  EXPECT_EQ(finfo(DType::kF32).max, static_cast<double>(std::numeric_limits<float>::max()));
  EXPECT_EQ(finfo(DType::kF64).max, std::numeric_limits<double>::max());
  EXPECT_EQ(finfo(DType::kBF16).eps, 0.0078125);
  EXPECT_EQ(finfo(DType::kF16).tiny, 6.103515625e-05);
  EXPECT_EQ(finfo(DType::kC64).nmant, 23);
  EXPECT_EQ(iinfo(DType::kI8).min, -128);
  EXPECT_EQ(iinfo(DType::kU64).max, ~std::uint64_t{0});
  EXPECT_TRUE(issubdtype(DType::kBF16, DTypeGroup::kFloating));
  EXPECT_FALSE(issubdtype(DType::kBool, DTypeGroup::kNumber));
  EXPECT_EQ(result_type({I({2}), 1.5}), DType::kF32);
}

std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Functions, RefuseWhatDoesNotFit) {
  auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(message([] { bincount(A({3})); }), "a vector of integers");
  has(message([] { jit([](const Array& x) { return nonzero(x)[0]; })(I({3})); }),
      "size of the result must be known");
  has(message([] { searchsorted(A({2, 2}), 1.0); }), "a sorted vector is needed");
  has(message([] { rot90(A({2, 2}), 1, 0, 0); }), "two different axes");
  has(message([] { pad(A({2}), {{1, 1}}, "mirror"); }), "constant, edge, reflect");
  has(message([] { iinfo(DType::kF32); }), "an integer dtype");
  has(message([] { linalg::norm(A({2, 2, 2}), 1); }), "a vector or a matrix");
  has(message([] { linalg::matrix_power(A({2, 3}), 2); }), "square matrices");
  has(message([] { meshgrid({A({2})}, "yx"); }), "\"xy\" or \"ij\"");
  has(message([] { gcd(A({2}), A({2})); }), "integer arrays are needed");
  has(message([] { view(A({3}), DType::kF64); }), "multiple of 2");
}

}  // namespace
}  // namespace xylem
