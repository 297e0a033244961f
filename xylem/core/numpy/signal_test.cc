// Sequences, polynomials, NaN statistics, sets and other compositions of jax.numpy against JAX
// (tests/goldens/core_signal.json), and what they refuse.

#include "xylem/core/signal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <map>

#include "xylem/base/error.h"
#include "xylem/base/testing/golden.h"
#include "xylem/core/core.h"

namespace xylem {
namespace {

using testing::Golden;
using V = std::vector<Array>;
using Programs = std::map<std::string, std::function<Array()>>;

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
Array N() {
  return Array(std::vector<float>{1, kNaN, -2, 0.5, kNaN, kNaN, kNaN, kNaN, kInf, 3, -kInf, 0,
                                  -0.0f, 2, 2, -1.5})
      .reshape({4, 4});
}
Array C(std::int64_t n) { return lax::complex(A({n}), A({n}, 2)); }
Array floats(std::vector<float> v) { return Array(v); }
Array ints(std::vector<std::int32_t> v) { return Array(v); }
Array rows(std::vector<std::int32_t> v) { return take(N(), ints(v), 0); }

#define P(name, ...) p[name] = [=] { return __VA_ARGS__; }

void add_sequences(Programs& p) {
  using F = Array (*)(const ArrayArg&, const ArrayArg&, std::string_view);
  for (auto [name, f] : {std::pair<const char*, F>{"convolve", convolve}, {"correlate", correlate}})
    for (const char* m : {"full", "same", "valid"}) {
      std::string n = name;
      p[n + " " + m] = [=, f = f] { return f(A({7}), A({3}, 2), m); };
      p[n + " short " + m] = [=, f = f] { return f(A({3}), A({6}, 2), m); };
    }
  P("convolve i32", convolve(I({4}), I({3})));
  P("convolve complex", convolve(C(5), C(3)));
  P("correlate complex", correlate(C(5), C(3)));
  P("correlate complex short", correlate(C(3), C(5)));
  P("convolve gradient",
    grad([](const Array& x, const Array& y) { return sum(sin(convolve(x, y))); }, argnums<1>)(
        A({7}), A({3})));
  using W = Array (*)(std::int64_t);
  for (auto [name, f] : {std::pair<const char*, W>{"bartlett", bartlett},
                         {"blackman", blackman},
                         {"hamming", hamming},
                         {"hanning", hanning}})
    for (int m : {0, 1, 6, 7}) p[name + (" " + std::to_string(m))] = [=, f = f] { return f(m); };
  P("kaiser", kaiser(7, 4.5));
  P("kaiser 0", kaiser(6, 0.0));
  P("kaiser 1", kaiser(1, 3.0));
  P("unwrap", unwrap(A({9}) * 5));
  P("unwrap axis", unwrap(A({3, 4}) * 6, std::nullopt, 0));
  P("unwrap period", unwrap(A({9}) * 5, std::nullopt, -1, 2.0));
  P("unwrap discont", unwrap(A({9}) * 5, 5.0));
  P("unwrap i32", unwrap(I({9}) * 3, std::nullopt, -1, 5));
  P("trim_zeros", trim_zeros(ints({0, 0, 1, 0, 2, 0})));
  P("trim_zeros f", trim_zeros(ints({0, 0, 1, 0, 2, 0}), "f"));
  P("trim_zeros b", trim_zeros(floats({0, 1, 0}), "b"));
  P("trim_zeros all", trim_zeros(zeros({3})));
}

void add_polynomials(Programs& p) {
  P("polyadd", polyadd(A({2}), A({4}, 1)));
  P("polyadd i32", polyadd(I({3}), I({2})));
  P("polysub", polysub(A({4}), A({3}, 1)));
  P("polymul", polymul(A({4}), A({3}, 1)));
  P("polydiv", polydiv(A({5}), A({3}, 1)).first);
  P("polydiv rest", polydiv(A({5}), A({3}, 1)).second);
  P("polydiv short", polydiv(A({2}), A({3}, 1)).first);
  P("polydiv short rest", polydiv(A({2}), A({3}, 1)).second);
  for (int m : {0, 1, 2, 4}) p["polyder " + std::to_string(m)] = [=] { return polyder(A({5}), m); };
  P("polyder i32", polyder(I({4})));
  P("polyint", polyint(A({4})));
  P("polyint 2", polyint(A({4}), 2, floats({3, -1})));
  P("polyint 3", polyint(A({3}), 3, 2.0));
  P("polyint 0", polyint(A({3}), 0));
  P("poly", poly(A({4})));
  P("poly complex", poly(C(3)));
  P("poly none", poly(zeros({0})));
  P("poly matrix", real(poly(A({3, 3}))));
  P("roots", sort(roots(floats({1, -6, 11, -6}))));
  P("roots zeros", sort(roots(floats({0, 2, 0, -8}))));
  P("roots none", roots(floats({0, 3})));
  P("polyfit", polyfit(A({7}), A({7}, 3), 2));
  P("polyfit weights", polyfit(A({7}), A({7}, 3), 2, abs(A({7})) + 0.1));
  P("polyfit columns", polyfit(A({7}), A({7, 2}, 3), 1));
}

void add_statistics(Programs& p) {
  P("nancumprod", nancumprod(N(), 1));
  P("nancumprod flat", nancumprod(N()(0)));
  P("nanmedian", nanmedian(N()(idx::slice(0, 3)), 1));
  P("nanmedian all", nanmedian(A({3, 4})));
  P("nanmedian keepdims", nanmedian(rows({0, 3}), {0, 1}, true));
  for (auto [name, m] : {std::pair{"linear", QuantileMethod::kLinear},
                         {"lower", QuantileMethod::kLower},
                         {"higher", QuantileMethod::kHigher},
                         {"midpoint", QuantileMethod::kMidpoint},
                         {"nearest", QuantileMethod::kNearest}})
    p[std::string("nanquantile ") + name] = [m = m] {
      return nanquantile(rows({0, 1, 3}), floats({0.1f, 0.4f, 0.93f}), 1, m);
    };
  P("nanquantile scalar", nanquantile(rows({0, 3}), 0.3, 0));
  P("nanpercentile",
    nanpercentile(rows({0, 3}), floats({20, 70}), 1, QuantileMethod::kLinear, true));
  Array x = A({40}), y = A({40}, 3);
  P("histogram2d", histogram2d(x, y, 4).counts);
  P("histogram2d edges", histogram2d(x, y, 4).edges[1]);
  P("histogram2d range", histogram2d(x, y, 3, {{-1, 1}, {-1.25, 1.25}}).counts);
  P("histogram2d weights", histogram2d(x, y, 3, {}, abs(x)).counts);
  P("histogram2d density", histogram2d(x, y, 3, {}, {}, true).counts);
  P("histogramdd",
    histogramdd(A({40, 3}), V{floats({-2, 0, 2}), floats({-1, 0.25f, 1}), floats({-1.25f, 1.25f})})
        .counts);
  P("setxor1d", setxor1d(I({6}), ints({9, -2, 3})));
  P("setxor1d empty", setxor1d(I({3}), I({3})));
  P("unique_counts", unique_counts(I({12})).second);
  P("unique_inverse", unique_inverse(I({3, 4})).second);
  P("unique_values", unique_values(I({12})));
  P("compress", compress(ints({1, 0, 1}), A({3, 4}), 0));
  P("compress flat", compress(ints({0, 1, 1}), A({3, 4})));
  P("compress size", compress(ints({0, 1, 0, 1}), A({3, 4}), 1, 3, 7.0));
  P("extract", extract(A({3, 4}) > 0.0, I({3, 4})));
  P("extract size", extract(A({3, 4}) > 0.0, I({3, 4}), 9, -5));
}

void add_others(Programs& p) {
  P("put", put(A({3, 4}), ints({1, -1, 5, 40}), A({2})));
  P("put clip", put(A({3, 4}), ints({1, -1, 40}), 9.0, IndexMode::kClip));
  P("put wrap", put(A({3, 4}), ints({1, -1, 14}), 9.0, IndexMode::kWrap));
  P("place", place(A({3, 4}), A({3, 4}) > 0.0, floats({7, 8})));
  P("fill_diagonal", fill_diagonal(A({3, 4}), 9.0));
  P("fill_diagonal array", fill_diagonal(A({4, 3}), A({2})));
  P("fill_diagonal cube", fill_diagonal(A({3, 3, 3}), 9.0));
  p["ix_"] = [] {
    V at = ix_(V{ints({0, 2}), ints({1, 1, 4})});
    return A({4, 5})(at[0], at[1]);
  };
  P("tril_indices_from", tril_indices_from(A({3, 4}), 1).second);
  P("triu_indices_from", triu_indices_from(A({3, 4}), 1).first);
  P("sort_complex", sort_complex(C(9)));
  P("sort_complex real", sort_complex(A({5})));
  P("dsplit", dsplit(A({2, 2, 4}), 2)[1]);
  Array points = floats({0, -0.0f, 1, -0.75f, 3, 1e4f, -1e-3f, kInf, -kInf, kNaN});
  for (auto [name, t] :
       {std::pair{"float32", DType::kF32}, {"float16", DType::kF16}, {"bfloat16", DType::kBF16}}) {
    p[std::string("frexp ") + name + " 0"] = [=, t = t] { return frexp(points.astype(t)).first; };
    p[std::string("frexp ") + name + " 1"] = [=, t = t] { return frexp(points.astype(t)).second; };
  }
  P("frexp i32", frexp(I({7})).first);
  P("spacing", spacing(floats({1, -1, 1e10f, -3.5f, kInf, kNaN})));
  P("spacing f16", spacing(floats({1, -1, 100}).astype(DType::kF16)));
  P("i0", i0(A({11}) * 4));
  P("i0 gradient", vmap(grad([](const Array& v) { return i0(v); }))(A({11}) * 4));
  P("i0 large", i0(floats({19, 21, 50, -60})));
  P("i0e", special::i0e(A({11}) * 40));
  P("i1", special::i1(A({11}) * 4));
  P("apply_along_axis",
    apply_along_axis([](const Array& v) { return cumsum(v) * v[0]; }, 1, A({2, 3, 4})));
  P("apply_along_axis scalar",
    apply_along_axis([](const Array& v) { return max(v); }, 0, A({3, 4})));
  P("apply_along_axis matrix",
    apply_along_axis([](const Array& v) { return outer(v, v); }, 1, A({2, 3, 4})));
  P("apply_along_axis last",
    apply_along_axis([](const Array& v) { return v(idx::slice(0, 2)); }, -1, A({2, 3, 4})));
  Array x = A({9});
  P("piecewise",
    piecewise(
        x, V{x<-0.5, x> 0.5}, [](const Array& v) { return -v; },
        [](const Array& v) { return v * v; }, [](const Array& v) { return v * 0 + 3; }));
  P("piecewise rest", piecewise(
                          x, V{x < 0.5, x < -0.5}, [](const Array& v) { return v + 10; },
                          [](const Array& v) { return v + 20; }));
  P("piecewise i32", piecewise(I({7}), V{I({7}) > 0}, [](const Array& v) { return v * 1.5; }));
}

TEST(Signal, ValuesEqualJax) {
  Programs have;
  add_sequences(have);
  add_polynomials(have);
  add_statistics(have);
  add_others(have);
  Golden all = Golden::load("core_signal.json")["results"];
  for (const std::string& name : all.keys()) {
    SCOPED_TRACE(name);
    auto program = have.find(name);
    if (program == have.end()) {
      ADD_FAILURE() << "no program";
      continue;
    }
    Array got;
    try {
      got = program->second();
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
      continue;
    }
    HostArray w = all[name].array();
    EXPECT_EQ(shape_string(got.dtype(), got.shape()), w.type_string());
    if (got.shape() != w.dims() || got.dtype() != w.dtype()) continue;
    HostArray h = got.to_host();
    // Roots and fits go through other algorithms.
    double tolerance = name.starts_with("roots") || name.starts_with("poly") ? 2e-5 : 3e-6;
    auto near = [&](double a, double b) {
      if (std::isnan(b) || std::isinf(b)) return std::isnan(b) ? std::isnan(a) : a == b;
      return std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
    };
    if (is_complex(w.dtype())) {
      auto a = h.to_vector<std::complex<float>>(), b = w.to_vector<std::complex<float>>();
      for (std::size_t k = 0; k < b.size(); ++k)
        EXPECT_TRUE(near(a[k].real(), b[k].real()) && near(a[k].imag(), b[k].imag()))
            << a[k] << " is not " << b[k] << " at " << k;
      continue;
    }
    for (std::int64_t k = 0; k < w.size(); ++k)
      EXPECT_TRUE(near(h.at(k), w.at(k))) << h.at(k) << " is not " << w.at(k) << " at " << k;
  }
  EXPECT_EQ(have.size(), all.keys().size());
}

std::string message(const std::function<void()>& call) {
  try {
    call();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Signal, RefusalsSayWhatToDo) {
  auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(message([] { convolve(A({2, 2}), A({2})); }), "two vectors");
  has(message([] { convolve(A({2}), A({0})); }), "not empty");
  has(message([] { convolve(A({2}), A({2}), "all"); }), "\"full\"");
  has(message([] { hanning(-1); }), "a number of points");
  has(message([] { unwrap(C(3)); }), "real numbers");
  has(message([] { polyder(A({2, 2})); }), "a vector of coefficients");
  has(message([] { polyint(A({2}), -1); }), "polyder");
  has(message([] { polyint(A({2}), 2, A({3})); }), "one for each integration");
  has(message([] { polyfit(A({3}), A({4}), 1); }), "as many values as points");
  has(message([] { nanmedian(A({0})); }), "slices with elements");
  has(message([] { histogramdd(A({3}), 2); }), "a sample [n, d]");
  has(message([] { compress(ints({0, 0, 1}), A({2})); }), "within 2 elements");
  has(message([] { place(A({2}), A({3}), A({1})); }), "a mask of the array's size");
  has(message([] { fill_diagonal(A({3}), 1); }), "a matrix");
  has(message([] { frexp(C(2)); }), "real numbers");
  has(message([] { piecewise(A({2}), V{A({2}) > 0.0}); }), "1 or 2 functions");
}

}  // namespace
}  // namespace xylem
