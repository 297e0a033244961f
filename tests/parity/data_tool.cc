// Runs pipelines for data_test.py. Every line of standard input is an object:
//
//   {"spec": specification, "restore": state or absent, "take": number or absent, "states": bool}
//
// and gives one line: {"state0": .., "elements": [..], "states": [..]} or {"error": text}.

#include <cstdint>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/data/loader.h"
#include "xylem/data/testing/spec.h"

namespace {

using Json = nlohmann::ordered_json;
using xylem::data::testing::build_spec;
using xylem::data::testing::plain;

Json iterate(const Json& j, const xylem::data::IterDataset<xylem::data::testing::Value>& ds) {
  Json out;
  auto it = ds.iterator();
  if (j.contains("restore")) it.set_state(j["restore"].dump());
  const bool states = j.value("states", true);
  out["state0"] = Json::parse(it.get_state());
  out["elements"] = out["states"] = Json::array();
  const std::int64_t take = j.value("take", std::int64_t{1} << 60);
  while (static_cast<std::int64_t>(out["elements"].size()) < take) {
    const auto e = it.next();
    if (!e) break;
    out["elements"].push_back(Json::parse(plain(*e)));
    if (states) out["states"].push_back(Json::parse(it.get_state()));
  }
  out["text4"] = it.get_state(4);
  return out;
}

std::optional<xylem::data::ShardOptions> shard_of(const Json& j) {
  if (!j.contains("shard")) return std::nullopt;
  return xylem::data::ShardOptions{j["shard"][0], j["shard"][1], j["shard"][2]};
}

std::shared_ptr<const xylem::data::Sampler> sampler_of(const Json& j) {
  namespace data = xylem::data;
  const data::Compat compat = j.value("compat", false) ? data::Compat::grain : data::Compat::fixed;
  std::optional<std::int64_t> seed, epochs;
  if (j.contains("seed")) seed = j["seed"];
  if (j.contains("epochs")) epochs = j["epochs"];
  if (j.at("kind") == "sequential")
    return std::make_shared<data::SequentialSampler>(j.at("n"), shard_of(j), seed, compat);
  return std::make_shared<data::IndexSampler>(
      j.at("n"), data::IndexSamplerOptions{.shard = shard_of(j),
                                           .shuffle = j.value("shuffle", false),
                                           .num_epochs = epochs,
                                           .seed = seed,
                                           .compat = compat});
}

// {"sampler": .., "n": records, "ops": [..], "workers": number}: a DataLoader over 0 ... n - 1.
xylem::data::IterDataset<xylem::data::testing::Value> loader_of(const Json& j) {
  namespace data = xylem::data;
  using data::testing::Value;
  auto loader = data::data_loader(
      data::range(j.at("n")).map(data::testing::integer_value), sampler_of(j.at("sampler")),
      {.worker_count = j.value("workers", 0), .read = {.num_threads = 0}});
  const auto number = [](const Value& v) { return static_cast<std::int64_t>(v.leaf().at(0)); };
  for (const Json& op : j.at("ops")) {
    if (op == "inc")
      loader =
          loader.map([=](const Value& v) { return data::testing::integer_value(number(v) + 1); });
    else if (op == "even")
      loader = loader.filter([=](const Value& v) { return number(v) % 2 == 0; });
    else if (op == "random")
      loader = loader.random_map([](const Value&, data::Generator& g) {
        return Value(xylem::HostArray::scalar(g.random()));
      });
    else if (op == "twice")
      loader = loader.flat_map([](const Value& v) { return std::vector<Value>{v, v}; }, 2);
    else
      loader = loader.batch(op.get<std::int64_t>());
  }
  return loader.dataset();
}

Json run(const Json& j) {
  if (j.contains("positions")) {
    const auto s = sampler_of(j.at("positions"));
    Json out{{"repr", s->repr()}, {"items", Json::array()}};
    for (std::int64_t i = 0; i < s->size() && i < 30; ++i)
      out["items"].push_back({i, *s->at(i).record_key});
    return out;
  }
  if (j.contains("loader")) return iterate(j, loader_of(j["loader"]));
  const auto built = build_spec(j.at("spec").dump());
  Json out;
  if (j.value("items", 0) > 0) {
    out["length"] = built.map->size();
    out["elements"] = Json::array();
    for (int i = 0; i < j["items"]; ++i) {
      const auto e = built.map->at(i);
      out["elements"].push_back(e ? Json::parse(plain(*e)) : Json());
    }
    return out;
  }
  return iterate(j, built.to_iter());
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    Json out;
    try {
      out = run(Json::parse(line));
    } catch (const std::exception& e) {
      out["error"] = e.what();
    }
    std::cout << out.dump() << std::endl;
  }
}
