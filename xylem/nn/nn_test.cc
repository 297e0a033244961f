// Layers, streams and activations against what Flax NNX gave (tests/goldens/flax.json).

#include "xylem/nn/nn.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "xylem/base/testing/golden.h"
#include "xylem/core/core.h"

namespace xylem::nn {
namespace {

using testing::Golden;
using testing::max_ulp;
using testing::relative_error;

constexpr double kTolerance = 2e-6;

Golden file() {
  static const Golden g = Golden::load("flax.json");
  return g;
}

std::vector<std::uint32_t> words(const random::Key& k) { return k.data.to_vector<std::uint32_t>(); }
std::vector<std::uint32_t> words(const Golden& g) {
  std::vector<std::uint32_t> r;
  for (std::size_t i = 0; i < g.size(); ++i)
    r.push_back(static_cast<std::uint32_t>(g.at(i).number()));
  return r;
}

bool flag(const Golden& args, const char* name, bool otherwise) {
  return args.has(name) ? args[name].flag() : otherwise;
}
std::int64_t number(const Golden& args, const char* name, std::int64_t otherwise = -1) {
  return args.has(name) ? static_cast<std::int64_t>(args[name].number()) : otherwise;
}

// The recorded parameters in a layer's fields. Kernels of attention are recorded with an axis for
// the heads, which is part of the flattened one here.
template <class Layer>
Layer with_params(const Layer& layer, const Golden& params) {
  return tree::map_with_path<Array>(
      [&](const std::string& path, const Array& a) {
        return a.defined() ? Array(params[path].array()).reshape(a.shape()) : a;
      },
      layer);
}

// Construction, output and gradients of one recorded layer.
template <class Layer, class Call>
void check(const Golden& record, const Layer& made, std::int64_t draws, Call call) {
  EXPECT_EQ(draws, number(record, "draws"));
  std::size_t count = 0;
  tree::visit<Array>(made, [&](const std::string& path, const Array& a) {
    if (!a.defined()) return;
    ++count;
    Array want(record["initial"][path].array());
    EXPECT_LE(max_ulp(a.to_host(), want.reshape(a.shape()).to_host()), 2) << path;
  });
  EXPECT_EQ(count, record["initial"].size());

  Layer layer = with_params(made, record["params"]);
  Array x(record["inputs"].at(0).array());
  EXPECT_LT(relative_error(call(layer, x).to_host(), record["output"].array()), kTolerance);
  EXPECT_LT(relative_error(jit(call)(layer, x).to_host(), record["output"].array()), kTolerance);
  if (!record.has("cotangent")) return;
  Array cotangent(record["cotangent"].array());
  auto loss = [&](const Layer& l, const Array& in) { return sum(call(l, in) * cotangent); };
  auto [gl, gx] = jit(grad(loss, argnums<0, 1>))(layer, x);
  tree::visit<Array>(gl, [&](const std::string& path, const Array& g) {
    if (!g.defined()) return;
    Array want = Array(record["param_gradients"][path].array()).reshape(g.shape());
    // What cancels is compared by the size of its terms: keys' biases have no gradient at all.
    double scale = path == "key.bias" ? 1e-5 : 0;
    if (scale > 0)
      EXPECT_LT(max(abs(g - want)).item<double>(), scale) << path;
    else
      EXPECT_LT(relative_error(g.to_host(), want.to_host()), 2 * kTolerance) << path;
  });
  if (record["input_gradients"].size() > 0) {
    EXPECT_LT(relative_error(gx.to_host(), record["input_gradients"].at(0).array()),
              2 * kTolerance);
  }
}

// How many keys the default stream has given: the next one is draw n.
std::int64_t draws_of(Rngs& rngs, std::int64_t seed) {
  std::vector<std::uint32_t> next = words(rngs());
  for (std::uint32_t n = 0; n < 32; ++n)
    if (words(random::fold_in(random::key(seed), Array(HostArray::scalar(n)))) == next) return n;
  return -1;
}

class Layers : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Layers, EqualFlax) {
  Golden r = file()["layers"].at(GetParam());
  Golden a = r["args"];
  std::string name = r["layer"].str();
  Rngs rngs(0);
  auto plain = [](const auto& layer, const Array& x) { return layer(x); };
  if (name == "Linear") {
    auto l = Linear::make(number(a, "in"), number(a, "out"), rngs,
                          {.use_bias = flag(a, "use_bias", true)});
    check(r, l, draws_of(rngs, 0), plain);
  } else if (name == "Embed") {
    auto e = Embed::make(number(a, "num"), number(a, "features"), rngs);
    std::int64_t n = draws_of(rngs, 0);
    if (a.has("method"))
      check(r, e, n, [](const Embed& l, const Array& x) { return l.attend(x); });
    else
      check(r, e, n, plain);
  } else if (name == "LayerNorm") {
    auto l = LayerNorm::make(number(a, "features"), rngs,
                             {.use_bias = flag(a, "use_bias", true),
                              .use_fast_variance = flag(a, "use_fast_variance", true)});
    check(r, l, draws_of(rngs, 0), plain);
  } else if (name == "RMSNorm") {
    auto l = RMSNorm::make(number(a, "features"), rngs, {.use_scale = flag(a, "use_scale", true)});
    check(r, l, draws_of(rngs, 0), plain);
  } else if (name == "MultiHeadAttention") {
    std::int64_t heads = number(a, "num_heads"), qkv = number(a, "qkv_features", -1);
    auto m = MultiHeadAttention::make(number(a, "in_features"), rngs,
                                      {.num_heads = heads,
                                       .head_dim = qkv > 0 ? qkv / heads : -1,
                                       .num_kv_heads = number(a, "num_kv_heads"),
                                       .use_bias = flag(a, "use_bias", true),
                                       .is_causal = flag(a, "causal", false)});
    check(r, m, draws_of(rngs, 0), plain);
  } else {
    FAIL() << "unknown layer " << name;
  }
}

// All recorded layers but those with normalize_qk: MultiHeadAttention has no norms of its own.
std::vector<std::size_t> offered() {
  std::vector<std::size_t> r;
  Golden all = file()["layers"];
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!all.at(i)["args"].has("normalize_qk")) r.push_back(i);
  return r;
}

INSTANTIATE_TEST_SUITE_P(Recorded, Layers, ::testing::ValuesIn(offered()), [](const auto& row) {
  return file()["layers"].at(row.param)["layer"].str() + std::to_string(row.param);
});

TEST(Embed, IndicesCountFromTheEndAndNanMarksThoseOutside) {
  Embed e{array({1, 2, 3, 4, 5, 6}).reshape({3, 2})};
  Array rows = e(Array(std::vector<std::int32_t>{-1, 3, -4, -3}));
  std::vector<float> v = rows.to_vector<float>();
  EXPECT_EQ(v[0], 5);
  for (int i = 2; i < 6; ++i) EXPECT_TRUE(std::isnan(v[static_cast<std::size_t>(i)]));
  EXPECT_EQ(v[7], 2);
  // The lone row of a table is the answer to any index, as in Flax.
  Embed one{array({7, 8}).reshape({1, 2})};
  EXPECT_EQ(one(Array(std::vector<std::int32_t>{5})).to_vector<float>(),
            (std::vector<float>{7, 8}));
  EXPECT_THROW(e(array({0, 1})), UserError);
}

TEST(MultiHeadAttention, DecodesTokenByTokenAsFlax) {
  Golden r = file()["decode"];
  Rngs rngs(0);
  auto m = with_params(MultiHeadAttention::make(8, rngs, {.num_heads = 2, .is_causal = true}),
                       r["initial"]);
  Array x(r["inputs"].at(0).array());
  KVCache cache = KVCache::make(1, 5, 2, 4);
  auto step = jit([](const MultiHeadAttention& layer, const Array& token, const KVCache& c) {
    return layer(token, c);
  });
  std::vector<Array> outputs;
  for (std::int64_t i = 0; i < 5; ++i) {
    auto [y, next] = step(m, lax::slice(x, {0, i, 0}, {1, i + 1, 8}), cache);
    outputs.push_back(y);
    cache = next;
  }
  EXPECT_EQ(step.cache_size(), 1u);
  EXPECT_LT(relative_error(concatenate(outputs, 1).to_host(), r["output"].array()), kTolerance);
  EXPECT_LT(relative_error(cache.key.to_host(), r["cached_key"].array()), kTolerance);
  EXPECT_LT(relative_error(cache.value.to_host(), r["cached_value"].array()), kTolerance);
  EXPECT_EQ(cache.length.item<int>(), 5);
  EXPECT_LT(relative_error(m(x).to_host(), r["output"].array()), kTolerance);
}

TEST(MultiHeadAttention, SizesThatDoNotDivideAreRefused) {
  Rngs rngs(0);
  EXPECT_THROW(MultiHeadAttention::make(8, rngs, {.num_heads = 3}), UserError);
  EXPECT_THROW(MultiHeadAttention::make(8, rngs, {.num_heads = 4, .num_kv_heads = 3}), UserError);
  auto m = MultiHeadAttention::make(8, rngs, {.num_heads = 2});
  EXPECT_THROW(m(zeros({5, 8})), UserError);
}

TEST(Dropout, MasksEqualFlax) {
  Golden all = file()["dropout"];
  for (std::size_t i = 0; i < all.size(); ++i) {
    Golden r = all.at(i);
    Dropout d{r["rate"].number()};
    Array x(r["input"].array());
    // A layer of Flax draws from a fork: a stream whose key is one draw.
    Rngs rngs(0);
    random::Key fork = rngs.dropout();
    for (int call = 0; call < 2; ++call) {
      Array y = d(x, random::fold_in(fork, call));
      HostArray want = r[call == 0 ? "first_call" : "second_call"].array();
      EXPECT_EQ(max_ulp(y.to_host(), want), 0) << "rate " << d.rate << ", call " << call;
    }
    EXPECT_EQ(d(x, fork, true).to_vector<float>(), x.to_vector<float>());
  }
}

TEST(Rngs, StreamsEqualFlax) {
  Golden s = file()["streams"];
  Rngs r(0);
  Golden three = s["Rngs(0): three draws"];
  EXPECT_EQ(words(r.params()), words(three.at(0)));
  EXPECT_EQ(words(r.dropout()), words(three.at(1)));
  EXPECT_EQ(words(r()), words(three.at(2)));

  Golden named = s["Rngs(params=3, dropout=4): params, dropout, params"];
  Rngs n(std::map<std::string, std::int64_t>{{"params", 3}, {"dropout", 4}});
  EXPECT_EQ(words(n.params()), words(named.at(0)));
  EXPECT_EQ(words(n.dropout()), words(named.at(1)));
  EXPECT_EQ(words(n.params()), words(named.at(2)));
  EXPECT_THROW(n("noise"), UserError);

  Rngs f(0);
  random::Key fork = f();
  EXPECT_EQ(words(fork), words(s["Rngs(0): key of the first fork"]));
  EXPECT_EQ(words(random::fold_in(fork, 0)), words(s["Rngs(0): fork, then its first draw"]));
  Rngs t(0);
  EXPECT_EQ(words(random::split(t(), 2)), words(s["Rngs(0).split(2): keys"]));
}

TEST(Functional, GeluEqualsJax) {
  Golden r = file()["gelu"];
  Array x(r["input"].array());
  EXPECT_LT(relative_error(gelu(x).to_host(), r["tanh"].array()), 3e-7);
  EXPECT_LT(relative_error(gelu(x, false).to_host(), r["exact"].array()), 3e-7);
  Array g = grad([](const Array& v) { return sum(gelu(v)); })(x);
  // In its left tail the recorded f32 gradient is itself 2.4e-6 from the true one.
  EXPECT_LT(relative_error(g.to_host(), r["tanh_gradient"].array()), 3e-6);
}

double size_of(double v) { return std::max(1.0, std::abs(v)); }

TEST(Functional, ActivationsAndTheirGradientsEqualJaxAtEdges) {
  using Activation = std::function<Array(const Array&)>;
  const std::map<std::string, Activation> all = {
      {"relu", [](const Array& x) { return relu(x); }},
      {"gelu", [](const Array& x) { return gelu(x); }},
      {"gelu exact", [](const Array& x) { return gelu(x, false); }},
      {"silu", [](const Array& x) { return silu(x); }},
      {"softplus", [](const Array& x) { return softplus(x); }},
      {"log_sigmoid", [](const Array& x) { return log_sigmoid(x); }},
      {"sigmoid", [](const Array& x) { return sigmoid(x); }},
      {"elu", [](const Array& x) { return elu(x); }},
      {"leaky_relu", [](const Array& x) { return leaky_relu(x); }}};
  Golden g = Golden::load("core_points.json");
  auto same = [](double a, double b, double tolerance) {
    return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= tolerance * size_of(b);
  };
  for (const char* t : {"f32", "f64"}) {
    DType dtype = parse_dtype(t).value();
    double tolerance = dtype == DType::kF64 ? 1e-15 : 3e-7;
    HostArray points = g["points"].array(), at = g["gradient_points"].array();
    Golden values = g["elementwise"][t]["nn"], slopes = g["gradients"][t]["scalar_nn"];
    for (const std::string& name : values.keys()) {
      HostArray got = all.at(name)(Array(points.astype(dtype))).to_host();
      HostArray want = values[name].array();
      for (std::int64_t i = 0; i < want.size(); ++i)
        EXPECT_TRUE(same(got.at(i), want.at(i), tolerance))
            << name << " " << t << " at " << points.at(i) << ": " << got.at(i) << ", JAX "
            << want.at(i);
    }
    for (const std::string& name : slopes.keys()) {
      HostArray want = slopes[name].array();
      HostArray got = vmap(grad(all.at(name)))(Array(at.astype(dtype))).to_host();
      for (std::int64_t i = 0; i < want.size(); ++i)
        EXPECT_TRUE(same(got.at(i), want.at(i), 4 * tolerance))
            << "grad of " << name << " " << t << " at " << at.at(i) << ": " << got.at(i) << ", JAX "
            << want.at(i);
    }
  }
}

TEST(Initializers, EqualJax) {
  namespace in = initializers;
  const std::map<std::string, in::Initializer> all = {
      {"lecun_normal", in::lecun_normal()},
      {"lecun_uniform", in::lecun_uniform()},
      {"glorot_normal", in::glorot_normal()},
      {"glorot_uniform", in::glorot_uniform()},
      {"he_normal", in::he_normal()},
      {"he_uniform", in::he_uniform()},
      {"normal(0.01)", in::normal()},
      {"normal(0.02)", in::normal(0.02)},
      {"uniform(0.01)", in::uniform()},
      {"zeros", in::zeros()},
      {"ones", in::ones()},
      {"constant(1.5)", in::constant(1.5)},
      {"variance_scaling(1, fan_in, normal, out_axis=0)",
       in::variance_scaling(1, in::Mode::kFanIn, in::Distribution::kNormal, -2, 0)},
      {"variance_scaling(2, fan_avg, truncated_normal)",
       in::variance_scaling(2, in::Mode::kFanAvg, in::Distribution::kTruncatedNormal)}};
  Golden records = Golden::load("random.json")["initializers"];
  int compared = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    Golden r = records.at(i);
    std::string name = r["name"].str();
    if (name == "truncated_normal(0.01)") continue;  // not offered
    random::Key key = r.has("seed") ? random::key(static_cast<std::int64_t>(r["seed"].number()))
                                    : random::Key{Array(words(r["key"]))};
    HostArray want = r["out"].array();
    EXPECT_LE(max_ulp(all.at(name)(key, want.dims()).to_host(), want), 2) << name << " " << i;
    ++compared;
  }
  EXPECT_EQ(compared, 43);
}

TEST(Functional, EdgesAreThoseOfJax) {
  auto slope = [](auto f, double at) {
    return grad([&](const Array& x) { return f(x); })(full({}, at, DType::kF32))
        .template item<double>();
  };
  EXPECT_EQ(slope([](const Array& x) { return relu(x); }, 0), 0);
  EXPECT_EQ(slope([](const Array& x) { return elu(x); }, 0), 1);
  EXPECT_EQ(slope([](const Array& x) { return leaky_relu(x); }, 0), 1);
  EXPECT_TRUE(std::isnan(relu(array({NAN}))[0].item<double>()));
  EXPECT_EQ(softplus(array({-1000, 1000})).to_vector<float>(), (std::vector<float>{0, 1000}));
  EXPECT_EQ(log_sigmoid(array({-1000, 1000})).to_vector<float>(), (std::vector<float>{-1000, 0}));
  EXPECT_EQ(softmax(array({1e4, 0})).to_vector<float>(), (std::vector<float>{1, 0}));
  EXPECT_TRUE(std::isnan(softmax(array({-INFINITY, -INFINITY}))[0].item<double>()));
  EXPECT_EQ(one_hot(Array(std::vector<std::int32_t>{1, -1, 3}), 3).to_vector<float>(),
            (std::vector<float>{0, 1, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(gelu(array({1}, DType::kBF16)).dtype(), DType::kBF16);
  EXPECT_EQ(gelu(Array(std::vector<std::int32_t>{1})).dtype(), DType::kF32);
}

TEST(Functional, ARowThatMaySeeNothingAveragesTheValues) {
  Array q = ones({1, 1, 1, 2}), k = ones({1, 3, 1, 2});
  Array v = array({1, 2, 3, 4, 5, 6}).reshape({1, 3, 1, 2});
  Array y = dot_product_attention(q, k, v, {.mask = zeros({1, 3}, DType::kBool)});
  EXPECT_NEAR(y.to_vector<float>()[0], 3, 1e-6);
  EXPECT_NEAR(y.to_vector<float>()[1], 4, 1e-6);
}

TEST(Linear, NamesTheSizeItWants) {
  Rngs rngs(0);
  Linear l = Linear::make(3, 4, rngs);
  try {
    l(zeros({2, 5}));
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("the last axis must be 3"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("f32[2,5]"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("nn_test.cc"), std::string::npos) << e.what();
  }
}

TEST(Norms, ComputeWideAndKeepTheirInputsDtype) {
  Rngs rngs(0);
  Array x = array({1, 2, 3, 4}, DType::kBF16).reshape({1, 4});
  EXPECT_EQ(LayerNorm::make(4, rngs)(x).dtype(), DType::kF32);
  EXPECT_EQ(LayerNorm::make(4, rngs, {.param_dtype = DType::kBF16})(x).dtype(), DType::kBF16);
  EXPECT_EQ(RMSNorm::make(4, rngs, {.param_dtype = DType::kBF16})(x).dtype(), DType::kBF16);
}

}  // namespace
}  // namespace xylem::nn
