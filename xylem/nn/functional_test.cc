// Values and gradients of jax.nn's functions against JAX (tests/goldens/nn_functions.json), and
// what they refuse.

#include "xylem/nn/functional.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "xylem/base/error.h"
#include "xylem/base/testing/golden.h"
#include "xylem/core/core.h"

namespace xylem::nn {
namespace {

using testing::Golden;
using V = std::vector<Array>;
using Program = std::function<Array()>;
using Programs = std::map<std::string, Program>;

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
Array points() {
  return Array(std::vector<float>{
      0,  -0.0f, 1e-30f, -1e-5f, 0.25f, -0.25f, 0.5f, -0.5f, 1,     -1,     1.5f, -1.5f, 3,
      -3, 6,     -6,     5.5f,   17.5f, -17.5f, 40,   -40,   1e10f, -1e10f, kInf, -kInf, kNaN});
}
Array M() { return A({3, 4}) > -0.6; }
Array bf16(const Array& x) { return x.astype(DType::kBF16); }
Array ints(std::vector<std::int32_t> v) { return Array(v); }

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

void add_activations(Programs& p) {
  using F = std::function<Array(const Array&)>;
  const std::map<std::string, F> functions = {
      {"relu", [](const Array& x) { return relu(x); }},
      {"relu6", [](const Array& x) { return relu6(x); }},
      {"silu", [](const Array& x) { return silu(x); }},
      {"swish", [](const Array& x) { return swish(x); }},
      {"mish", [](const Array& x) { return mish(x); }},
      {"sigmoid", [](const Array& x) { return sigmoid(x); }},
      {"hard_sigmoid", [](const Array& x) { return hard_sigmoid(x); }},
      {"hard_silu", [](const Array& x) { return hard_silu(x); }},
      {"hard_swish", [](const Array& x) { return hard_swish(x); }},
      {"hard_tanh", [](const Array& x) { return hard_tanh(x); }},
      {"softplus", [](const Array& x) { return softplus(x); }},
      {"log_sigmoid", [](const Array& x) { return log_sigmoid(x); }},
      {"soft_sign", [](const Array& x) { return soft_sign(x); }},
      {"squareplus", [](const Array& x) { return squareplus(x); }},
      {"sparse_plus", [](const Array& x) { return sparse_plus(x); }},
      {"sparse_sigmoid", [](const Array& x) { return sparse_sigmoid(x); }},
      {"elu", [](const Array& x) { return elu(x); }},
      {"celu", [](const Array& x) { return celu(x); }},
      {"selu", [](const Array& x) { return selu(x); }},
      {"leaky_relu", [](const Array& x) { return leaky_relu(x); }},
      {"gelu", [](const Array& x) { return gelu(x); }},
      {"log1mexp", [](const Array& x) { return log1mexp(x); }}};
  for (const auto& [name, f] : functions) {
    p[name] = [f = f] { return f(points()); };
    p[name + " grad"] = [f = f] {
      NumericsScope as_jax(Numerics::jax);
      return vmap(grad([&](const Array& x) { return f(x); }))(points());
    };
    p[name + " bf16"] = [f = f] { return f(bf16(points())); };
    if (name != "log1mexp" && name != "silu" && name != "swish" && name != "sigmoid")
      p[name + " i32"] = [f = f] { return f(I({7})); };
  }
  p["gelu exact"] = [] { return gelu(points(), false); };
  p["elu 2"] = [] { return elu(points(), 2); };
  p["celu 2"] = [] { return celu(points(), 2); };
  p["leaky_relu 0.3"] = [] { return leaky_relu(points(), 0.3); };
  p["squareplus 1"] = [] { return squareplus(points(), 1.0); };
  both(
      p, "glu", [](const Array& x) { return glu(x); }, A({3, 4}));
  p["glu axis 0"] = [] { return glu(A({4, 3}), 0); };
}

void add_softmaxes(Programs& p) {
  Array x = A({3, 4});
  both(
      p, "softmax", [](const Array& a) { return softmax(a); }, x);
  both(
      p, "softmax axis 0", [](const Array& a) { return softmax(a, 0); }, x);
  both(
      p, "softmax axes",
      [](const Array& a) {
        return softmax(a, {0, 1});
      },
      x);
  both(
      p, "softmax where", [](const Array& a) { return softmax(a, -1, M()); }, x);
  p["softmax where none"] = [] { return softmax(A({2, 3}), -1, zeros({2, 3}, DType::kBool)); };
  p["softmax inf"] = [] { return softmax(Array(std::vector<float>{kInf, 1})); };
  p["softmax -inf"] = [] { return softmax(Array(std::vector<float>{-kInf, -kInf})); };
  p["softmax i32"] = [] { return softmax(I({5})); };
  p["softmax empty"] = [] { return softmax(A({0})); };
  p["softmax bf16"] = [=] { return softmax(bf16(x)); };
  both(
      p, "log_softmax", [](const Array& a) { return log_softmax(a); }, x);
  p["log_softmax where"] = [=] { return log_softmax(x, -1, M()); };
  p["log_softmax axes"] = [=] { return log_softmax(x, {0, 1}); };
  both(
      p, "logsumexp", [](const Array& a) { return nn::logsumexp(a, {.axis = 1}); }, x);
  both(
      p, "logsumexp b",
      [](const Array& a, const Array& b) { return nn::logsumexp(a, {.axis = 1, .b = b}); }, x,
      abs(A({3, 4}, 1)) + 0.1);
  p["logsumexp negative"] = [=] { return nn::logsumexp(x, {.axis = 1, .b = -ones({3, 4})}); };
  p["logsumexp sign"] = [=] {
    return logsumexp_with_sign(x, {.axis = 1, .b = A({3, 4}, 1)}).first;
  };
  p["logsumexp the sign"] = [=] {
    return logsumexp_with_sign(x, {.axis = 1, .b = A({3, 4}, 1)}).second;
  };
  p["logsumexp where"] = [=] { return nn::logsumexp(x, {.axis = 1, .mask = M()}); };
  p["logsumexp keepdims"] = [=] { return nn::logsumexp(x, {.axis = {0, 1}, .keepdims = true}); };
  p["logsumexp empty"] = [] { return nn::logsumexp(A({0}), LogsumexpOptions{}); };
  p["logsumexp zero b"] = [] {
    return nn::logsumexp(Array(std::vector<float>{1, kInf}),
                         {.b = Array(std::vector<float>{1, 0})});
  };
  both(
      p, "logmeanexp", [](const Array& a) { return logmeanexp(a, 0); }, x);
  p["logmeanexp where"] = [=] { return logmeanexp(x, 1, M(), true); };
  both(
      p, "standardize", [](const Array& a) { return standardize(a); }, x);
  p["standardize axes"] = [=] { return standardize(x, {0, 1}); };
  p["standardize stable"] = [=] { return standardize(x, -1, {.stable = true}); };
  p["standardize where"] = [=] { return standardize(x, -1, {.mask = M()}); };
  p["standardize given"] = [=] {
    return standardize(x, -1,
                       {.mean = full({}, 0.5f, DType::kF32),
                        .variance = full({}, 2.0f, DType::kF32),
                        .epsilon = 0.1});
  };
  p["standardize bf16"] = [=] { return standardize(bf16(x)); };
  p["one_hot"] = [] { return one_hot(I({5}), 4); };
  p["one_hot axis"] = [] { return one_hot(I({2, 3}), 4, DType::kF32, 0); };
  p["one_hot axis -2"] = [] { return one_hot(I({2, 3}), 4, DType::kF32, -2); };
  p["one_hot i32"] = [] { return one_hot(I({5}), 4, DType::kI32); };
}

void add_attention(Programs& p) {
  Array q = A({2, 5, 4, 3}), k = A({2, 6, 4, 3}, 1), v = A({2, 6, 4, 3}, 2);
  Array g = A({2, 6, 2, 3}, 1), h = A({2, 6, 2, 3}, 2);
  Array mask = A({2, 1, 5, 6}) > -0.9, bias = A({1, 4, 5, 6}, 4);
  Array q_lengths = ints({3, 5}), kv_lengths = ints({6, 2});
  using O = AttentionOptions;
  const std::map<std::string, O> options = {
      {"", {}},
      {" causal", {.is_causal = true}},
      {" mask", {.mask = mask}},
      {" bias", {.bias = bias}},
      {" scale", {.scale = 0.3}},
      {" window", {.local_window_size = std::pair{2, 1}}},
      {" window of one number", {.local_window_size = std::pair{1, 1}}},
      {" lengths", {.query_seq_lengths = q_lengths, .key_value_seq_lengths = kv_lengths}},
      {" key lengths", {.key_value_seq_lengths = kv_lengths}},
      {" all",
       {.is_causal = true,
        .mask = mask,
        .scale = 0.7,
        .bias = bias,
        .key_value_seq_lengths = kv_lengths,
        .local_window_size = std::pair{3, 0}}}};
  for (const auto& [name, o] : options) {
    auto f = [o = o](const Array& a, const Array& b, const Array& c) {
      return dot_product_attention(a, b, c, o);
    };
    both(p, "attention" + name, f, q, k, v);
    both(p, "attention of groups" + name, f, q, g, h);
  }
  both(
      p, "attention bias gradient",
      [=](const Array& b) { return dot_product_attention(q, k, v, {.bias = b}); }, bias);
  p["attention 3d"] = [=] { return dot_product_attention(q[0], k[0], v[0], {.is_causal = true}); };
  p["attention bf16"] = [=] { return dot_product_attention(bf16(q), bf16(k), bf16(v)); };
  p["attention nothing seen"] = [=] {
    return dot_product_attention(q, k, v, {.mask = zeros({1, 1, 5, 6}, DType::kBool)});
  };
  p["attention residual"] = [=] {
    return dot_product_attention_with_residual(q, g, h, {.is_causal = true}).second;
  };
  p["attention residual value"] = [=] {
    return dot_product_attention_with_residual(q, g, h, {.is_causal = true}).first;
  };
  p["attention -inf bias"] = [=] {
    Array b = where(arange(6) < 3, 0.0, -kInf).reshape({1, 1, 1, 6});
    return dot_product_attention(q, k, v, {.bias = b});
  };
}

TEST(NnFunctions, ValuesAndGradientsEqualJax) {
  Programs have;
  add_activations(have);
  add_softmaxes(have);
  add_attention(have);
  Golden all = Golden::load("nn_functions.json")["results"];
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
    double tolerance = w.dtype() == DType::kBF16 ? 8e-3 : 2e-6;
    for (std::int64_t k = 0; k < w.size(); ++k) {
      double a = h.at(k), b = w.at(k);
      if (std::isnan(b) || std::isinf(b))
        EXPECT_TRUE(std::isnan(b) ? std::isnan(a) : a == b) << a << " is not " << b << " at " << k;
      else
        EXPECT_NEAR(a, b, tolerance * std::max(1.0, std::abs(b))) << "element " << k;
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

TEST(NnFunctions, RefusalsSayWhatToDo) {
  auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  Array q = A({2, 5, 4, 3}), k = A({2, 6, 4, 3});
  has(message([&] { glu(A({3})); }), "even number");
  has(message([&] { one_hot(I({2}), 3, DType::kF32, 2); }), "an axis in [-2, 2)");
  has(message([&] { dot_product_attention(q, A({2, 6, 3, 3}), A({2, 6, 3, 3})); }), "dividing H");
  has(message([&] { dot_product_attention(q, bf16(k), bf16(k)); }), "one dtype");
  has(message([&] { dot_product_attention(q, k, k, {.mask = A({5, 6})}); }), "bools");
  has(message([&] { dot_product_attention(q, k, k, {.bias = A({5, 7})}); }), "broadcasts to");
  has(message([&] { dot_product_attention(q, k, k, {.query_seq_lengths = ints({1})}); }),
      "integers [2]");
}

}  // namespace
}  // namespace xylem::nn
