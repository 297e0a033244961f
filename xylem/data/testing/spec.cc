#include "xylem/data/testing/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "xylem/base/json.h"

namespace xylem::data::testing {
namespace {

using Json = nlohmann::json;

std::int64_t scalar_of(const Value& v) { return static_cast<std::int64_t>(v.leaves()[0].at(0)); }

Value filled(std::int64_t n, std::int64_t v) {
  HostArray a(DType::kI64, {n});
  std::fill_n(a.as<std::int64_t>(), n, v);
  return Value(a);
}

Value absent() { return Value::tuple({}); }

Value from_json(const Json& j) {
  if (j.is_number_integer()) return integer_value(j.get<std::int64_t>());
  if (j.is_array()) {
    std::vector<std::int64_t> v = j.get<std::vector<std::int64_t>>();
    return Value(HostArray::from(v, {static_cast<std::int64_t>(v.size())}));
  }
  std::vector<std::pair<std::string, Value>> fields;
  for (const auto& [k, x] : j.items()) fields.emplace_back(k, from_json(x));
  return Value::map(std::move(fields));
}

Value add(const Value& v, std::int64_t k) {
  return tree::map<HostArray>(
      [k](const HostArray& a) {
        HostArray b = a.clone();
        if (b.dtype() == DType::kI64)
          for (std::int64_t i = 0; i < b.size(); ++i) b.as<std::int64_t>()[i] += k;
        return b;
      },
      v);
}

// The functions that specifications name.
Value apply(const Json& j, const Value& v) {
  const std::string fn = j.at("fn");
  if (fn == "id") return v;
  if (fn == "add") return add(v, j.at("k"));
  const std::int64_t x = scalar_of(v);
  if (fn == "pair") return Value::tuple({integer_value(j.at("k")), v});
  // A sequence of x mod m + 1 tokens, every one x + 1.
  if (fn == "seq") return Value::map({{"t", filled(x % j.at("m").get<std::int64_t>() + 1, x + 1)}});
  if (fn == "seq2") {
    const std::int64_t m = j.at("m");
    return Value::map({{"a", filled(x % m + 1, x + 1)}, {"b", filled(x * 3 % m + 1, x + 100)}});
  }
  if (fn == "fail_at" && x == j.at("k").get<std::int64_t>())
    throw std::runtime_error(fmt::format("value {} is bad", x));
  return v;
}

Value random_apply(const Json& j, const Value& v, Generator& g) {
  const std::string fn = j.at("fn");
  if (fn == "real") return Value(HostArray::scalar(g.random()));
  return add(v, g.integers(0, j.value("n", std::int64_t{100})));
}

bool passes(const Json& j, const Value& v) {
  return scalar_of(v) % j.at("m").get<std::int64_t>() == j.at("r").get<std::int64_t>();
}

std::vector<Value> copies(const Value& v) {
  return std::vector<Value>(static_cast<std::size_t>(scalar_of(v) % 3 + 1), v);
}

std::optional<std::int64_t> maybe(const Json& j, const char* key) {
  const auto it = j.find(key);
  if (it == j.end() || it->is_null()) return std::nullopt;
  return it->get<std::int64_t>();
}

Value flat_packed(const Packed<Value>& p) {
  std::vector<std::pair<std::string, Value>> out;
  const std::vector<std::string> paths = tree::paths<HostArray>(p.values);
  for (std::size_t k = 0; k < paths.size(); ++k) {
    const auto field = [&](const std::string& suffix, const Value& v) {
      if (v.leaves()[k].defined())
        out.emplace_back(internal::dotted_path(paths[k]) + suffix, Value(v.leaves()[k]));
    };
    field("", p.values);
    field("_segment_ids", p.segment_ids);
    field("_positions", p.positions);
  }
  return Value::map(std::move(out));
}

FeatureLengths lengths_of(const Json& j) {
  FeatureLengths out;
  for (const auto& pair : j) out.emplace_back(pair.at(0), pair.at(1));
  return out;
}

AnyDataset build(const Json& j);

std::vector<AnyDataset> build_all(const Json& list) {
  std::vector<AnyDataset> out;
  for (const Json& j : list) out.push_back(build(j));
  return out;
}

std::vector<MapDataset<Value>> map_list(const std::vector<AnyDataset>& all) {
  std::vector<MapDataset<Value>> out;
  for (const AnyDataset& a : all) out.push_back(a.map.value());
  return out;
}

std::vector<IterDataset<Value>> iter_list(const std::vector<AnyDataset>& all) {
  std::vector<IterDataset<Value>> out;
  for (const AnyDataset& a : all) out.push_back(a.iter.value());
  return out;
}

AnyDataset combined(const std::string& op, const Json& j) {
  if (op == "mix_named") {
    std::map<std::string, IterDataset<Value>> of;
    for (const auto& [k, x] : j.at("of").items()) of.emplace(k, build(x).iter.value());
    return {.map = {}, .iter = mix(of, j.value("weights", std::map<std::string, double>()))};
  }
  const std::vector<AnyDataset> all = build_all(j.at("of"));
  const std::vector<double> weights = j.value("weights", std::vector<double>());
  const auto tuple = [](std::vector<Value> v) { return Value::tuple(std::span<const Value>(v)); };
  if (op == "interleave") {
    const InterleaveOptions o{j.at("cycle"), j.value("buffer", 1)};
    return {.map = {},
            .iter = all[0].map ? interleave(map_list(all), o) : interleave(iter_list(all), o)};
  }
  if (op == "concatenate") return {.map = concatenate(map_list(all)), .iter = {}};
  if (op == "mix") {
    if (all[0].map) return {.map = mix(map_list(all), weights), .iter = {}};
    return {.map = {}, .iter = mix(iter_list(all), weights)};
  }
  if (all[0].map) return {.map = zip(map_list(all)).map(tuple), .iter = {}};
  return {.map = {}, .iter = zip(iter_list(all), j.value("strict", true)).map(tuple)};
}

template <class D>
std::optional<D> common(const D& d, const std::string& op, const Json& j) {
  const auto seed = maybe(j, "seed");
  if (op == "map") return d.map([j](const Value& v) { return apply(j, v); }, j.at("fn"));
  if (op == "map_with_index")
    return d.map_with_index([](std::int64_t i, const Value& v) {
      return Value::tuple({integer_value(i), v});
    });
  if (op == "random_map")
    return d.random_map([j](const Value& v, Generator& g) { return random_apply(j, v, g); }, seed);
  if (op == "filter") return d.filter([j](const Value& v) { return passes(j, v); });
  if (op == "seed") return d.seed(j.at("seed").get<std::uint64_t>());
  if (op == "compat") return d.compat(j.at("mode") == "grain" ? Compat::grain : Compat::fixed);
  if (op == "window_shuffle") return d.window_shuffle(j.at("window"), *seed);
  if (op == "repeat") {
    if constexpr (std::is_same_v<D, MapDataset<Value>>)
      return d.repeat(maybe(j, "n"), j.value("reseed", true));
    else
      return d.repeat(maybe(j, "n"));
  }
  if (op == "batch") return d.batch(j.at("n").get<std::int64_t>(), j.value("drop", false));
  if (op == "pad_batch") return d.batch_and_pad(j.at("n"), j.value("value", 0.0));
  if (op == "list_batch")
    return d.batch(j.at("n").get<std::int64_t>(),
                   [](std::vector<Value> v) { return Value::tuple(std::span<const Value>(v)); });
  return std::nullopt;
}

AnyDataset map_node(const MapDataset<Value>& d, const std::string& op, const Json& j) {
  if (auto c = common(d, op, j)) return {.map = *c, .iter = {}};
  if (op == "shuffle") return {.map = d.shuffle(maybe(j, "seed")), .iter = {}};
  if (op == "slice") {
    if (j.contains("list"))
      return {.map = d.slice(j.at("list").get<std::vector<std::int64_t>>()), .iter = {}};
    return {.map = d.slice(maybe(j, "start"), maybe(j, "stop"), j.value("step", 1)), .iter = {}};
  }
  if (op == "flat_map") return {.map = d.flat_map(copies, j.at("fan_out")), .iter = {}};
  if (op == "elastic")
    return {.map = {},
            .iter = elastic(d, j.at("batch"), ShardOptions{j.at("index"), j.at("count")},
                            ReadAheadOptions{.num_threads = 0})};
  if (op == "to_iter") {
    const ReadAheadOptions o{j.value("threads", 0), j.value("buffer", 0)};
    if (j.value("nones", false))
      return {.map = {},
              .iter = d.to_iter_dataset_with_absent(o).map(
                  [](const std::optional<Value>& v) { return v ? *v : absent(); })};
    return {.map = {}, .iter = d.to_iter_dataset(o)};
  }
  throw std::runtime_error("no such operation on map-style data sets: " + op);
}

AnyDataset iter_node(const IterDataset<Value>& d, const std::string& op, const Json& j) {
  const auto made = [](IterDataset<Value> i) {
    return AnyDataset{.map = {}, .iter = std::move(i)};
  };
  if (auto c = common(d, op, j)) return made(*c);
  if (op == "flat_map") return made(d.flat_map(copies));
  if (op == "limit") return made(d.limit(j.at("n")));
  if (op == "rebatch") return made(d.rebatch(j.at("n"), j.value("drop", false)));
  if (op == "cache") return made(d.cache());
  if (op == "prefetch") return made(d.thread_prefetch(j.at("buffer")));
  if (op == "mp")
    return made(
        d.mp_prefetch({j.at("workers"), j.value("buffer", 1), j.value("sequential", false)}));
  if (op == "skip_errors") return made(d.with_options({.on_error = OnError::skip}));
  if (op == "pack") {
    PackOptions o;
    o.length = lengths_of(j.at("length"));
    o.num_packing_bins = j.at("bins");
    o.seed = j.value("seed", 0u);
    o.shuffle_bins = j.value("shuffle", true);
    o.shuffle_bins_group_by_feature = j.value("group", std::string());
    o.meta_features = j.value("meta", std::vector<std::string>());
    o.alignment = j.value("alignment", std::map<std::string, std::int64_t>());
    o.padding = j.value("padding", std::map<std::string, double>());
    o.max_sequences_per_bin = maybe(j, "max_sequences");
    const bool best = j.value("best", false);
    return made((best ? d.best_fit_pack(o) : d.first_fit_pack(o)).map(flat_packed));
  }
  if (op == "concat_then_split") {
    ConcatThenSplitOptions o;
    o.length = lengths_of(j.at("length"));
    o.meta_features = j.value("meta", std::vector<std::string>());
    o.split_full_length_features = j.value("split_full", true);
    o.bos_features = j.value("bos_features", std::vector<std::string>());
    o.bos_token_id = maybe(j, "bos");
    if (o.bos_token_id) o.bos_handling = BosHandling::replace_first_token_with_bos;
    return made(d.concat_then_split(o).map(flat_packed));
  }
  throw std::runtime_error("no such operation on iterator-style data sets: " + op);
}

AnyDataset build(const Json& j) {
  const std::string op = j.at("op");
  if (op == "range")
    return {.map = range(j.value("start", 0), j.at("stop"), j.value("step", 1)).map(integer_value),
            .iter = {}};
  if (op == "source") {
    std::vector<Value> values;
    for (const Json& v : j.at("values")) values.push_back(from_json(v));
    return {.map = source(std::move(values)), .iter = {}};
  }
  if (j.at("of").is_array() || op == "mix_named") return combined(op, j);
  const AnyDataset parent = build(j.at("of"));
  return parent.map ? map_node(*parent.map, op, j) : iter_node(*parent.iter, op, j);
}

Json plain_json(const Value& v) {
  if (v.is_leaf()) {
    const HostArray& a = v.leaf();
    const auto at = [&](std::int64_t i) -> Json {
      if (is_float(a.dtype())) return a.at(i);
      return static_cast<std::int64_t>(a.at(i));
    };
    // Nested lists, innermost axis first.
    std::vector<Json> items;
    for (std::int64_t i = 0; i < a.size(); ++i) items.push_back(at(i));
    if (a.rank() == 0) return items[0];
    for (int d = a.rank() - 1; d >= 1; --d) {
      std::vector<Json> next;
      const auto n = static_cast<std::size_t>(a.dims()[d]);
      std::int64_t count = 1;
      for (int e = 0; e < d; ++e) count *= a.dims()[e];
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
        next.push_back(
            Json(std::vector<Json>(items.begin() + static_cast<std::ptrdiff_t>(i * n),
                                   items.begin() + static_cast<std::ptrdiff_t>(i * n + n))));
      items = std::move(next);
    }
    return Json(items);
  }
  if (v.num_leaves() == 0) return nullptr;
  const std::vector<std::string> paths = v.structure().paths();
  const bool keyed = paths[0].starts_with("[\"");
  Json out = keyed ? Json::object() : Json::array();
  for (int i = 0; i < v.num_children(); ++i) {
    if (keyed)
      out[internal::dotted_path(paths[static_cast<std::size_t>(i)])] = plain_json(v.child(i));
    else
      out.push_back(plain_json(v.child(i)));
  }
  return out;
}

}  // namespace

IterDataset<Value> AnyDataset::to_iter() const {
  return iter ? *iter : map->to_iter_dataset(ReadAheadOptions{.num_threads = 0});
}

AnyDataset build_spec(std::string_view json) { return build(Json::parse(json)); }

std::string plain(const Value& v) { return plain_json(v).dump(); }

Value integer_value(std::int64_t v) { return Value(HostArray::scalar(v)); }

std::string random_spec(std::uint64_t seed, bool parallel) {
  Generator g(Philox(Philox::key_of_seed(seed), {0, 0, 0, 0}));
  const auto pick = [&](std::int64_t n) { return g.integers(0, n); };
  const auto over = [](const char* op, Json of, Json arguments = Json::object()) {
    arguments["op"] = op;
    arguments["of"] = std::move(of);
    return arguments;
  };
  const auto map_style = [&](auto&& self, int depth) -> Json {
    Json d{{"op", "range"}, {"stop", 1 + pick(23)}};
    for (int k = 0; k < depth; ++k) switch (pick(10)) {
        case 0: d = over("shuffle", d, {{"seed", pick(1000)}}); break;
        case 1: d = over("map", d, {{"fn", "add"}, {"k", pick(9)}}); break;
        case 2: d = over("random_map", d, {{"fn", "draw"}, {"seed", pick(99)}, {"n", 50}}); break;
        case 3: d = over("filter", d, {{"m", 2 + pick(2)}, {"r", 0}}); break;
        case 4: d = over("slice", d, {{"start", pick(3)}, {"step", 1 + pick(3)}}); break;
        case 5: d = over("window_shuffle", d, {{"window", 1 + pick(6)}, {"seed", pick(99)}}); break;
        case 6: d = over("repeat", d, {{"n", 1 + pick(3)}, {"reseed", pick(4) > 0}}); break;
        case 7:
          if (depth > 2) d = over("concatenate", Json::array({d, self(self, 1)}));
          break;
        case 8: d = over("flat_map", d, {{"fan_out", 3}}); break;
        default:
          // A mixture needs elements in every part.
          d = over("mix", Json::array({d, Json{{"op", "range"}, {"stop", 1 + pick(9)}}}),
                   {{"weights", {1 + pick(3), 1 + pick(3)}}});
      }
    return d;
  };
  const auto to_iter = [&](Json d) {
    const std::int64_t threads = parallel ? pick(4) : 0;
    return over("to_iter", std::move(d),
                {{"threads", threads}, {"buffer", threads * (1 + pick(9))}});
  };
  // Random mixtures can be empty: those that cannot be built are drawn again.
  for (std::uint64_t attempt = 0;; ++attempt) {
    Json d = to_iter(map_style(map_style, static_cast<int>(pick(5))));
    bool batched = false;
    for (std::int64_t k = pick(5); k > 0 && !batched; --k) switch (pick(parallel ? 14 : 12)) {
        case 0: d = over("map", d, {{"fn", "add"}, {"k", pick(9)}}); break;
        case 1: d = over("random_map", d, {{"fn", "draw"}, {"seed", pick(99)}}); break;
        case 2: d = over("filter", d, {{"m", 2}, {"r", pick(2)}}); break;
        case 3: d = over("limit", d, {{"n", 1 + pick(20)}}); break;
        case 4: d = over("repeat", d, {{"n", 1 + pick(3)}}); break;
        case 5: d = over("cache", d); break;
        case 6: d = over("flat_map", d); break;
        case 7: d = over("window_shuffle", d, {{"window", 1 + pick(6)}, {"seed", pick(99)}}); break;
        case 8:
          d = over("mix", Json::array({d, to_iter(map_style(map_style, 1))}),
                   {{"weights", {1 + pick(3), 1 + pick(3)}}});
          break;
        case 9:
          d = over(
              "interleave",
              Json::array({d, to_iter(map_style(map_style, 2)), to_iter(map_style(map_style, 0))}),
              {{"cycle", 1 + pick(4)}});
          break;
        case 10:
          d = over("rebatch", over("batch", d, {{"n", 1 + pick(4)}, {"drop", pick(3) == 0}}),
                   {{"n", 1 + pick(5)}, {"drop", pick(3) == 0}});
          batched = true;
          break;
        case 11: {
          d = over("map", d, {{"fn", pick(2) ? "seq" : "seq2"}, {"m", 6}});
          const Json length =
              d["fn"] == "seq"
                  ? Json::array({Json::array({"t", 6 + pick(4)})})
                  : Json::array({Json::array({"a", 6 + pick(4)}), Json::array({"b", 6 + pick(2)})});
          if (pick(2))
            d = over("pack", d,
                     {{"length", length},
                      {"bins", 1 + pick(4)},
                      {"seed", pick(9)},
                      {"best", pick(2) == 1}});
          else
            d = over("concat_then_split", d, {{"length", length}, {"split_full", pick(2) == 1}});
          batched = true;
          break;
        }
        case 12: d = over("prefetch", d, {{"buffer", pick(5)}}); break;
        default: d = over("mp", d, {{"workers", pick(4)}, {"buffer", 1 + pick(3)}}); break;
      }
    try {
      build(d);
      return d.dump();
    } catch (const UserError&) {
      XYLEM_CHECK(attempt < 1000, "no specification can be built");
    }
  }
}

}  // namespace xylem::data::testing
