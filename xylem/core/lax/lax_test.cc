// Values and gradients of jax.lax functions against JAX (tests/goldens/core_lax.json), and what
// they refuse.

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
Array ints(std::vector<std::int32_t> v, Dims shape) { return Array(v).reshape(shape); }
Array ints(std::vector<std::int32_t> v) { return Array(v); }
Array bf16(const Array& x) { return x.astype(DType::kBF16); }

using Program = std::function<Array()>;
using Programs = std::map<std::string, Program>;

// The value, and the gradients of the sum of sin(y) W by every argument.
template <class F, class... Args>
void both(Programs& p, const std::string& name, F f, Args... args) {
  p[name] = [=] { return f(args...); };
  p[name + ", gradients"] = [=] {
    auto loss = [&](const auto&... a) {
      Array y = f(a...);
      return sum(sin(y) * A(y.shape(), 2));
    };
    V flat;
    for (const Array& g : tree::leaves<Array>([&]<std::size_t... I>(std::index_sequence<I...>) {
           return grad(loss, argnums<static_cast<int>(I)...>)(args...);
         }(std::index_sequence_for<Args...>{})))
      flat.push_back(ravel(g));
    return concatenate(flat);
  };
}

using Dn = lax::ConvDimensionNumbers;
Dn numbers(const char* l, const char* r, const char* o) {
  return lax::conv_dimension_numbers(l, r, o);
}

void add_convolutions(Programs& p) {
  using lax::conv_general_dilated;
  both(
      p, "conv",
      [](const Array& x, const Array& k) {
        return lax::conv(x, k, {1, 2}, "SAME");
      },
      A({2, 3, 5, 6}), A({4, 3, 2, 3}, 3));
  both(
      p, "conv VALID",
      [](const Array& x, const Array& k) {
        return lax::conv(x, k, {2, 1}, "VALID");
      },
      A({1, 2, 5, 6}), A({3, 2, 2, 3}, 3));
  both(
      p, "conv SAME_LOWER",
      [](const Array& x, const Array& k) { return lax::conv(x, k, {2}, "same_lower"); },
      A({1, 2, 6}), A({3, 2, 3}, 3));
  both(
      p, "conv general padding",
      [](const Array& x, const Array& k) {
        return lax::conv_with_general_padding(x, k, {2}, {{2, -1}}, {3}, {2});
      },
      A({2, 2, 5}), A({3, 2, 3}, 3));
  both(
      p, "conv NHWC",
      [](const Array& x, const Array& k) {
        return conv_general_dilated(x, k, {1, 1}, "SAME",
                                    {.dimension_numbers = numbers("NHWC", "HWIO", "NHWC")});
      },
      A({2, 4, 5, 3}), A({3, 2, 3, 4}, 3));
  both(
      p, "conv mixed layout",
      [](const Array& x, const Array& k) {
        return conv_general_dilated(x, k, {1, 2}, {{1, 0}, {0, 2}},
                                    {.dimension_numbers = numbers("HNCW", "WOIH", "CWNH")});
      },
      A({4, 2, 3, 5}), A({3, 2, 3, 2}, 1));
  both(
      p, "conv feature groups",
      [](const Array& x, const Array& k) {
        return conv_general_dilated(x, k, {1}, "VALID", {.feature_group_count = 2});
      },
      A({2, 4, 5}), A({6, 2, 2}, 3));
  both(
      p, "conv batch groups",
      [](const Array& x, const Array& k) {
        return conv_general_dilated(x, k, {1}, "SAME", {.batch_group_count = 2});
      },
      A({4, 3, 5}), A({6, 3, 2}, 3));
  both(
      p, "conv 3d",
      [](const Array& x, const Array& k) {
        return conv_general_dilated(x, k, {1, 1, 2}, "SAME", {.rhs_dilation = {1, 2, 1}});
      },
      A({1, 2, 3, 4, 3}), A({2, 2, 2, 2, 2}, 3));
  both(
      p, "conv 0d",
      [](const Array& x, const Array& k) { return conv_general_dilated(x, k, {}, lax::Pads{}); },
      A({2, 3}), A({4, 3}));
  p["conv i32"] = [] { return lax::conv(I({1, 2, 5}), I({3, 2, 2}), {1}, "SAME"); };
  p["conv bf16"] = [] { return lax::conv(bf16(A({1, 2, 5})), bf16(A({3, 2, 2})), {1}, "SAME"); };
  p["conv preferred"] = [] {
    return conv_general_dilated(bf16(A({1, 2, 5})), bf16(A({3, 2, 2})), {1}, "SAME",
                                {.preferred_element_type = DType::kF32});
  };
  p["conv empty batch"] = [] { return lax::conv(A({0, 2, 5}), A({3, 2, 2}), {1}, "SAME"); };
  for (const char* pad : {"SAME", "VALID"})
    for (Dims s : {Dims{1, 1}, Dims{2, 3}, Dims{3, 1}})
      p[std::string("conv_transpose ") + pad + " (" + std::to_string(s[0]) + ", " +
        std::to_string(s[1]) + ")"] = [=] {
        return lax::conv_transpose(A({1, 4, 3, 2}), A({3, 2, 2, 5}, 3), s, pad);
      };
  both(
      p, "conv_transpose kernel",
      [](const Array& x, const Array& k) {
        return lax::conv_transpose(x, k, {2}, "SAME", {.transpose_kernel = true});
      },
      A({2, 4, 3}), A({3, 5, 3}, 3));
  both(
      p, "conv_transpose dilated",
      [](const Array& x, const Array& k) {
        return lax::conv_transpose(
            x, k, {2}, {{1, 2}},
            {.rhs_dilation = {2}, .dimension_numbers = numbers("NCH", "OIH", "NCH")});
      },
      A({1, 2, 4}), A({3, 2, 3}, 3));
  p["conv_transpose consistent"] = [] {
    return lax::conv_transpose(A({1, 4, 2}), A({3, 2, 5}, 3), {2}, {{1, 0}},
                               {.use_consistent_padding = true});
  };
  both(
      p, "patches",
      [](const Array& x) {
        return lax::conv_general_dilated_patches(x, {2, 3}, {1, 2}, "SAME");
      },
      A({1, 2, 4, 5}));
  p["patches NHWC"] = [] {
    return lax::conv_general_dilated_patches(
        A({1, 4, 5, 2}), {2, 2}, {1, 1}, "VALID",
        {.dimension_numbers = numbers("NHWC", "HWIO", "NHWC")});
  };
  both(
      p, "local",
      [](const Array& x, const Array& k) {
        return lax::conv_general_dilated_local(
            x, k, {1, 1}, "VALID", {2, 2}, {.dimension_numbers = numbers("NHWC", "HWIO", "NHWC")});
      },
      A({2, 3, 4, 2}), A({2, 3, 8, 3}, 3));
  p["conv vmap lhs"] = [] {
    return vmap(
        [](const Array& x) {
          return lax::conv(x, A({3, 2, 2}), {1}, "SAME");
        },
        {.in_axes = 1})(A({2, 3, 2, 5}));
  };
  p["conv vmap rhs"] = [] {
    return vmap(
        [](const Array& k) {
          return lax::conv(A({2, 2, 5}), k, {1}, "SAME");
        },
        {.in_axes = 2, .out_axes = 1})(A({3, 2, 4, 2}));
  };
  p["conv vmap both"] = [] {
    return vmap([](const Array& x, const Array& k) { return lax::conv(x, k, {1}, "SAME"); })(
        A({3, 2, 2, 5}), A({3, 4, 2, 2}));
  };
  p["conv hvp"] = [] {
    auto f = grad([](const Array& k) { return sum(sin(lax::conv(A({1, 2, 5}), k, {1}, "SAME"))); });
    return jvp(f, std::tuple{A({3, 2, 2})}, std::tuple{A({3, 2, 2}, 5)}).second;
  };
}

Array larger(const Array& a, const Array& b) { return maximum(a, b); }
Array smaller(const Array& a, const Array& b) { return minimum(a, b); }
Array plus(const Array& a, const Array& b) { return a + b; }
Array times(const Array& a, const Array& b) { return a * b; }
V argmax_of(const V& a, const V& b) {
  Array keep = a[0] >= b[0];
  return {where(keep, a[0], b[0]), where(keep, a[1], b[1])};
}

void add_windows(Programs& p) {
  p["reduce max"] = [] { return lax::reduce(A({3, 4}), -kInf, larger, {1}); };
  both(
      p, "reduce mul", [](const Array& x) { return lax::reduce(x, 1.0, times, {0}); }, A({3, 4}));
  both(
      p, "reduce logaddexp",
      [](const Array& x) {
        return lax::reduce(x, -100.0,
                           [](const Array& a, const Array& b) { return logaddexp(a, b); }, {0, 1});
      },
      A({3, 4}));
  p["reduce argmax"] = [] {
    Array places = lax::broadcasted_iota(DType::kI32, {3, 5}, 1);
    return lax::reduce(V{A({3, 5}), places}, V{full({}, -kInf), zeros({}, DType::kI32)}, argmax_of,
                       {1})[1];
  };
  using Combine = Array (*)(const Array&, const Array&);
  struct Case {
    const char* name;
    Combine f;
    float init;
  };
  for (const char* pad : {"SAME", "VALID"})
    for (Case c : {Case{"add", plus, 0}, Case{"max", larger, -kInf}, Case{"min", smaller, kInf},
                   Case{"mul", times, 1}})
      p[std::string("window ") + c.name + " " + pad] = [=] {
        return lax::reduce_window(A({2, 7}), c.init, c.f, {1, 3}, {1, 2}, pad);
      };
  auto dilated = [](const Array& x, float init, Combine f) {
    return lax::reduce_window(x, init, f, {2, 3}, {1, 2}, {{1, 0}, {2, 2}},
                              {.base_dilation = {2, 1}, .window_dilation = {1, 2}});
  };
  both(
      p, "window add dilated", [=](const Array& x) { return dilated(x, 0, plus); }, A({4, 6}));
  p["window max dilated"] = [=] { return dilated(A({4, 6}), -kInf, larger); };
  auto padded = [](const Array& x, float init, Combine f) {
    return lax::reduce_window(x, init, f, {2, 3}, {1, 2}, {{1, 0}, {2, 2}});
  };
  both(
      p, "window max padded", [=](const Array& x) { return padded(x, -kInf, larger); }, A({4, 6}));
  both(
      p, "window min padded", [=](const Array& x) { return padded(x, kInf, smaller); }, A({4, 6}));
  auto max3 = [](const Array& x) { return lax::reduce_window(x, -kInf, larger, {3}, {1}, "SAME"); };
  both(
      p, "window max ties", [=](const Array& x) { return max3(round(x)) * max3(x); }, A({9}));
  p["window max of equals, gradients"] = [=] {
    return grad([=](const Array& x) { return sum(max3(x) * A({6}, 1)); })(ones({6}));
  };
  p["window i32"] = [] { return lax::reduce_window(I({3, 5}), 0, plus, {2, 2}, {1, 1}, "SAME"); };
  p["window nan"] = [] { return lax::reduce_window(N(), -kInf, larger, {2, 2}, {1, 1}, "SAME"); };
  p["window general"] = [] {
    return lax::reduce_window(
        A({7}), 1.0, [](const Array& a, const Array& b) { return a * b + 0 * a; }, {2}, {2},
        "VALID");
  };
  p["window vmap"] = [] {
    return vmap(
        [](const Array& x) { return lax::reduce_window(x, -kInf, larger, {2}, {2}, "VALID"); },
        {.in_axes = 1})(A({6, 3}));
  };
  p["window of pairs"] = [] {
    return lax::reduce_window(V{A({8}), arange(8)}, V{full({}, -kInf), full({}, -1, DType::kI32)},
                              argmax_of, {3}, {2}, "VALID")[1];
  };
}

void add_gathers(Programs& p) {
  using G = lax::GatherDimensionNumbers;
  using S = lax::ScatterDimensionNumbers;
  const std::pair<const char*, IndexMode> reads[] = {
      {"clip", IndexMode::kClip},
      {"fill", IndexMode::kFill},
      {"promise_in_bounds", IndexMode::kPromiseInBounds}};
  for (auto [name, mode] : reads) {
    p[std::string("gather ") + name] = [mode = mode] {
      return lax::gather(A({5, 4}), ints({3, 2, 9, 0, -2, 1}, {3, 2}), G{{1, 2}, {}, {0, 1}},
                         {2, 2}, {.mode = mode});
    };
    if (mode == IndexMode::kPromiseInBounds) continue;
    both(
        p, std::string("gather rows ") + name,
        [mode = mode](const Array& x) {
          return lax::gather(x, ints({3, 3, 8, 0}, {4, 1}), G{{1}, {0}, {0}}, {1, 4},
                             {.mode = mode, .fill_value = 0.5});
        },
        A({5, 4}));
  }
  p["gather fill i32"] = [] {
    return lax::gather(I({5}), ints({3, 7}, {2, 1}), G{{}, {0}, {0}}, {1},
                       {.mode = IndexMode::kFill});
  };
  p["gather fill value"] = [] {
    return lax::gather(A({5}), ints({3, 7}, {2, 1}), G{{}, {0}, {0}}, {1},
                       {.mode = IndexMode::kFill, .fill_value = -9.0});
  };
  Array pairs = ints({1, 4, 0, 2, 3, 3}, {3, 2, 1});
  p["gather batching"] = [=] {
    return lax::gather(A({3, 5}), pairs, G{{}, {1}, {1}, {0}, {0}}, {1, 1});
  };
  using Scatter = Array (*)(const ArrayArg&, const ArrayArg&, const ArrayArg&, const S&,
                            const lax::ScatterOptions&);
  const std::pair<const char*, Scatter> all[] = {
      {"scatter", lax::scatter},         {"scatter_add", lax::scatter_add},
      {"scatter_sub", lax::scatter_sub}, {"scatter_mul", lax::scatter_mul},
      {"scatter_min", lax::scatter_min}, {"scatter_max", lax::scatter_max}};
  const S rows{{1}, {0}, {0}};
  for (auto [name, f] : all) {
    std::string n = name;
    if (n != "scatter")
      for (auto [mode_name, mode] :
           {std::pair{"drop", IndexMode::kDrop}, std::pair{"clip", IndexMode::kClip}})
        p[n + " " + mode_name] = [=, f = f, mode = mode] {
          return f(A({5, 3}), ints({1, 1, 6, -1}, {4, 1}), A({4, 3}, 4), rows, {.mode = mode});
        };
    if (n != "scatter_mul")
      both(
          p, n + " twice",
          [=, f = f](const Array& x, const Array& u) {
            return f(x, ints({1, 1, 6, 0}, {4, 1}), u, rows, {});
          },
          A({5, 3}), A({4, 3}, 4));
  }
  both(
      p, "scatter_mul unique",
      [=](const Array& x, const Array& u) {
        return lax::scatter_mul(x, ints({1, 3}, {2, 1}), u, rows, {.unique_indices = true});
      },
      A({5, 3}), A({2, 3}, 4));
  p["scatter windows"] = [] {
    return lax::scatter(A({5, 4}), ints({0, 1, 3, 3, 4, 2}, {3, 2}), A({3, 2, 2}, 4),
                        S{{1, 2}, {}, {0, 1}});
  };
  p["scatter windows clip"] = [] {
    return lax::scatter(A({5, 4}), ints({0, 1, 3, 3}, {2, 2}), A({2, 2, 2}, 4),
                        S{{1, 2}, {}, {0, 1}}, {.mode = IndexMode::kClip});
  };
  p["scatter batching"] = [=] {
    return lax::scatter_add(A({3, 5}), pairs, A({3, 2}, 4), S{{}, {1}, {1}, {0}, {0}});
  };
  p["scatter i32"] = [] {
    return lax::scatter_add(I({5}), ints({1, 1}, {2, 1}), I({2}, 3), S{{}, {0}, {0}});
  };
  p["scatter_apply"] = [] {
    return lax::scatter_apply(A({5}), ints({1, 3, 7}, {3, 1}),
                              [](const Array& x) { return sin(x); }, S{{}, {0}, {0}}, {3});
  };
}

void add_others(Programs& p) {
  p["dot_general preferred"] = [] {
    return lax::dot_general(bf16(A({2, 3})), bf16(A({3, 4})), {1}, {0}, {}, {},
                            {.preferred_element_type = DType::kF32});
  };
  p["dot_general i8"] = [] {
    return lax::dot_general(I({2, 3}).astype(DType::kI8), I({3, 4}).astype(DType::kI8), {1}, {0},
                            {}, {}, {.preferred_element_type = DType::kI32});
  };
  p["batch_matmul"] = [] { return lax::batch_matmul(A({2, 3, 4}), A({2, 4, 2}, 3)); };
  both(
      p, "ragged_dot",
      [](const Array& x, const Array& w) {
        return lax::ragged_dot(x, w, ints({2, 0, 3}));
      },
      A({6, 4}), A({3, 4, 2}, 3));
  p["ragged_dot long"] = [] { return lax::ragged_dot(A({4, 3}), A({2, 3, 2}), ints({3, 9})); };
  p["ragged_dot_general contracting"] = [] {
    return lax::ragged_dot_general(
        A({5, 3}), A({5, 2}, 3), ints({2, 3}),
        {.lhs_contracting = {0}, .rhs_contracting = {0}, .lhs_ragged = {0}});
  };
  p["sort pairs"] = [] { return lax::sort(V{floor_divide(I({9}), 3), A({9})}, -1, true, 2)[1]; };
  p["sort pairs stable"] = [] { return lax::sort(V{floor_divide(I({9}), 3), A({9})})[1]; };
  both(
      p, "sort pairs by first",
      [](const Array& a, const Array& b) {
        V s = lax::sort(V{a, b});
        return s[0] * 2 + s[1];
      },
      A({8}), A({8}, 5));
  p["sort nan"] = [] { return lax::sort(V{N()}, 0)[0]; };
  p["sort_key_val"] = [] { return lax::sort_key_val(A({3, 4}), I({3, 4}), 0).second; };
  p["top_k axis"] = [] { return lax::top_k(A({5, 3}), 2, 0).values; };
  p["top_k axis indices"] = [] { return lax::top_k(A({5, 3}), 2, 0).indices; };
  p["approx_max_k"] = [] { return lax::approx_max_k(A({3, 9}), 4).values; };
  p["approx_max_k indices"] = [] { return lax::approx_max_k(A({3, 9}), 4).indices; };
  p["approx_min_k"] = [] { return lax::approx_min_k(A({3, 9}), 4).values; };
  p["approx_min_k axis"] = [] {
    return lax::approx_min_k(A({9, 2}), 3, {.reduction_dimension = 0}).indices;
  };
  both(
      p, "approx_max_k sums", [](const Array& x) { return lax::approx_max_k(x, 3).values; },
      A({2, 7}));
  both(
      p, "approx_min_k sums", [](const Array& x) { return lax::approx_min_k(x, 3).values; },
      A({2, 7}));
  using Running = Array (*)(const ArrayArg&, int, bool);
  const std::pair<const char*, Running> running[] = {{"cumsum", lax::cumsum},
                                                     {"cumprod", lax::cumprod},
                                                     {"cummax", lax::cummax},
                                                     {"cummin", lax::cummin},
                                                     {"cumlogsumexp", lax::cumlogsumexp}};
  for (auto [name, f] : running)
    for (bool reverse : {false, true})
      both(
          p, std::string(name) + (reverse ? " True" : " False"),
          [=, f = f](const Array& x) { return f(x, 1, reverse); }, A({3, 5}));
  p["cumlogsumexp inf"] = [] {
    return lax::cumlogsumexp(Array(std::vector<float>{-kInf, -kInf, 1, kInf, 2}));
  };
  p["argmax"] = [] { return lax::argmax(N(), 1); };
  p["argmin"] = [] { return lax::argmin(N(), 0); };
  p["reduce_sum"] = [] { return lax::reduce_sum(A({3, 4}), {0}); };
  p["reduce_prod"] = [] { return lax::reduce_prod(A({3, 4}), {0}); };
  p["reduce_max"] = [] { return lax::reduce_max(A({3, 4}), {0}); };
  p["reduce_min"] = [] { return lax::reduce_min(A({3, 4}), {0}); };
  p["reduce_and"] = [] { return lax::reduce_and(I({3, 4}) > 0, {1}); };
  p["reduce_or"] = [] { return lax::reduce_or(I({3, 4}) > 0, {1}); };
  p["reduce_xor"] = [] { return lax::reduce_xor(I({3, 4}) > 0, {1}); };
  p["reduce_xor i32"] = [] { return lax::reduce_xor(I({3, 4}), {1}); };
  p["index_take"] = [] {
    return lax::index_take(A({4, 3, 5}), V{ints({3, 0, -1}), ints({1, 1, 4})}, {0, 2});
  };
  p["broadcast"] = [] { return lax::broadcast(A({3}), {2, 1}); };
  p["broadcast_to_rank"] = [] { return lax::broadcast_to_rank(A({3}), 3); };
  p["select_n"] = [] {
    return lax::select_n(ints({0, 2, 1, 5, -1}), V{A({5}), A({5}, 1), A({5}, 2)});
  };
  p["select_n bool"] = [] { return lax::select_n(A({5}) > 0.0, V{A({5}), A({5}, 1)}); };
  p["shift_right_logical"] = [] { return lax::shift_right_logical(I({7}), 1); };
  p["shift_right_arithmetic"] = [] { return lax::shift_right_arithmetic(I({7}), 1); };
  p["complex"] = [] { return lax::complex(A({3}), A({3}, 1)); };
  both(
      p, "pad",
      [](const Array& x) {
        return lax::pad(x, 2.0, {{1, -1, 0}, {-2, 3, 2}});
      },
      A({3, 4}));
}

Programs programs() {
  Programs p;
  add_convolutions(p);
  add_windows(p);
  add_gathers(p);
  add_others(p);
  return p;
}

TEST(Lax, ValuesAndGradientsEqualJax) {
  Golden all = Golden::load("core_lax.json")["results"];
  Programs have = programs();
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
    if (got.shape() != w.dims()) continue;
    HostArray h = got.to_host();
    if (is_complex(w.dtype())) {
      EXPECT_EQ(h.to_vector<std::complex<float>>(), w.to_vector<std::complex<float>>());
      continue;
    }
    for (std::int64_t k = 0; k < w.size(); ++k) {
      double a = h.at(k), b = w.at(k);
      if (std::isnan(b) || std::isinf(b))
        EXPECT_TRUE(std::isnan(b) ? std::isnan(a) : a == b) << a << " is not " << b << " at " << k;
      else
        EXPECT_NEAR(a, b, 2e-6 * std::max(1.0, std::abs(b))) << "element " << k;
    }
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

TEST(Lax, RefusalsSayWhatToDo) {
  auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  Array x = A({1, 2, 5}), k = A({3, 2, 2});
  has(message([&] { lax::conv(x, k, {1}, "FULL"); }), "\"VALID\", \"SAME\" or \"SAME_LOWER\"");
  has(message([&] { lax::conv(x, k, {0}, "SAME"); }), "positive");
  has(message([&] { lax::conv(x, A({3, 2}), {1}, "SAME"); }), "one rank");
  has(message([&] { lax::conv(x, bf16(k), {1}, "SAME"); }), "one dtype");
  has(message([&] { lax::conv(x, A({3, 5, 2}), {1}, "SAME"); }), "input features");
  has(message([&] { lax::conv_with_general_padding(x, k, {1}, {{0, 0}, {1, 1}}); }), "pair");
  has(message([&] { lax::conv_dimension_numbers("NHWC", "HWIO", "NHC"); }), "letters");
  has(message([&] {
        lax::conv_general_dilated(x, k, {1}, "SAME",
                                  {.dimension_numbers = {{0, 1, 1}, {0, 1, 2}, {0, 1, 2}}});
      }),
      "each of 3 dimensions once");
  has(message([&] { lax::conv_transpose(x, k, {1}, "SAME_LOWER"); }), "conv_transpose");
  has(message([&] { lax::reduce_window(x, 0.0, plus, {2}, {1}, "SAME"); }), "3 positive numbers");
  has(message([&] { lax::reduce(x, zeros({2}), plus, {0}); }), "scalars");
  has(message([&] {
        lax::reduce(x, 0.0, [](const Array& a, const Array&) { return broadcast_to(a, {2}); }, {0});
      }),
      "returns scalars");
  has(message([&] {
        lax::gather(x, A({2, 1}), lax::GatherDimensionNumbers{{}, {0}, {0}}, {1, 1, 1});
      }),
      "indices are integers");
  has(message([&] {
        lax::scatter(x, ints({0}, {1, 1}), x, lax::ScatterDimensionNumbers{{}, {0}, {0}},
                     {.mode = IndexMode::kWrap});
      }),
      "wrap");
  has(message([&] { lax::sort(V{}, 0); }), "at least one operand");
  has(message([&] { lax::approx_max_k(I({4}), 2); }), "floats");
  has(message([&] { lax::approx_max_k(A({4}), 2, {.recall_target = 1.5}); }), "(0, 1]");
  has(message([&] { lax::approx_min_k(A({4}), 5); }), "at most 4");
  has(message([&] { lax::select_n(I({3}), V{A({3}), I({3})}); }), "one shape and dtype");
  has(message([&] { lax::ragged_dot(A({4, 3}), A({2, 3, 2}), A({2})); }), "integers");
  has(message([&] { lax::broadcast_to_rank(x, 2); }), "at least 3");
}

TEST(Lax, ComputationsMayCapture) {
  auto total = jit([](const Array& x, const Array& scale) {
    return lax::reduce(x, 0.0,
                       [&](const Array& a, const Array& b) { return a + b * scale / scale; }, {0});
  });
  EXPECT_FLOAT_EQ(total(A({4}), full({}, 2.0)).item<float>(), sum(A({4})).item<float>());
}

TEST(Lax, PadtypesGiveNumbers) {
  using P = lax::Pads;
  EXPECT_EQ(lax::padtype_to_pads({7, 5}, {3, 2}, {2, 1}, "SAME"), (P{{1, 1}, {0, 1}}));
  EXPECT_EQ(lax::padtype_to_pads({7, 5}, {3, 2}, {2, 1}, "SAME_LOWER"), (P{{1, 1}, {1, 0}}));
  EXPECT_EQ(lax::padtype_to_pads({7, 5}, {3, 2}, {2, 1}, "valid"), (P{{0, 0}, {0, 0}}));
}

}  // namespace
}  // namespace xylem
