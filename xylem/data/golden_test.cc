// Pipelines, generators and states against values recorded from Grain
// (tests/goldens/make_grain.py).

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "xylem/base/file.h"
#include "xylem/data/random.h"
#include "xylem/data/shuffle.h"
#include "xylem/data/testing/spec.h"

namespace xylem::data {
namespace {

using Json = nlohmann::ordered_json;

const Json& goldens() {
  static const Json g =
      Json::parse(read_file(std::string(XYLEM_SOURCE_DIR) + "/tests/goldens/grain.json"));
  return g;
}

TEST(GrainGoldens, IndexShuffleHasGrainsImagesInTheModeForOldRuns) {
  for (const Json& g : goldens()["index_shuffle"]) {
    const IndexShuffle s(g["max_index"].get<std::int64_t>() + 1, g["seed"], Compat::grain,
                         g["rounds"]);
    for (std::size_t k = 0; k < g["index"].size(); ++k)
      EXPECT_EQ(s(g["index"][k]), g["image"][k]) << g;
  }
}

TEST(GrainGoldens, SeedsAreDerivedAlike) {
  for (const Json& g : goldens()["generators"]["seed_sequence"])
    EXPECT_EQ(derive_seed(g["entropy"].get<std::vector<std::uint64_t>>()), g["word"]) << g;
}

TEST(GrainGoldens, RecordsHaveNumPysGenerators) {
  for (const Json& g : goldens()["generators"]["philox"]) {
    const RecordGenerators make(g["seed"].get<std::uint64_t>());
    Generator raw = make(g["index"]);
    for (const Json& w : g["raw"]) EXPECT_EQ(std::to_string(raw.next_u64()), w.get<std::string>());
    Generator r = make(g["index"]);
    for (const Json& v : g["random"]) EXPECT_EQ(r.random(), v.get<double>());
    for (const Json& v : g["integers10"]) EXPECT_EQ(r.integers(10), v);
    for (const Json& v : g["integers2e40"]) EXPECT_EQ(r.integers(std::int64_t{1} << 40), v);
    for (const Json& v : g["negative"])
      EXPECT_EQ(r.integers(-(std::int64_t{1} << 62), std::int64_t{1} << 62), v);
    std::vector<std::int64_t> order{0, 1, 2, 3, 4};
    r.permute(std::span(order));
    EXPECT_EQ(Json(order), g["permuted5"]);
  }
  EXPECT_EQ(sampler_generator(42, 3).random(), goldens()["generators"]["sampler key 45"][0]);
  for (const Json& g : goldens()["generators"]["pcg64"])
    EXPECT_EQ(Json(permuted_range(g["seed"], g["n"])), g["order"]) << g;
}

void check_items(const char* list) {
  for (const Json& g : goldens()[list]) {
    SCOPED_TRACE(g["name"]);
    const auto ds = testing::build_spec(g["spec"].dump());
    EXPECT_EQ(ds.map->size(), g["length"]);
    for (std::size_t i = 0; i < g["elements"].size(); ++i) {
      const auto e = ds.map->at(static_cast<std::int64_t>(i));
      EXPECT_EQ(e ? Json::parse(testing::plain(*e)) : Json(), g["elements"][i]) << i;
    }
    // All at once: the same.
    std::vector<std::int64_t> indices(g["elements"].size());
    for (std::size_t i = 0; i < indices.size(); ++i)
      indices[i] = static_cast<std::int64_t>(indices.size() - 1 - i);
    const auto all = ds.map->get(indices);
    for (std::size_t i = 0; i < indices.size(); ++i)
      EXPECT_EQ(all[i] ? Json::parse(testing::plain(*all[i])) : Json(),
                g["elements"][indices.size() - 1 - i]);
  }
}

TEST(GrainGoldens, ItemAccessGivesTheElements) { check_items("items"); }
TEST(GrainGoldens, OldRunsGetTheirElements) { check_items("compat_items"); }

void check_runs(const char* list) {
  for (const Json& g : goldens()[list]) {
    SCOPED_TRACE(g["name"]);
    const auto ds = testing::build_spec(g["spec"].dump()).to_iter();
    auto it = ds.iterator();
    EXPECT_EQ(it.get_state(), State::parse(g["state0"].dump()).to_json());
    std::vector<std::string> states{it.get_state()};
    const std::size_t n = g["elements"].size();
    for (std::size_t i = 0; i < n; ++i) {
      const auto e = it.next();
      ASSERT_TRUE(e) << i;
      EXPECT_EQ(testing::plain(*e), nlohmann::json(g["elements"][i]).dump()) << i;
      states.push_back(it.get_state());
      EXPECT_EQ(states.back(), State::parse(g["states"][i].dump()).to_json()) << i;
    }
    EXPECT_FALSE(it.next());
    EXPECT_FALSE(it.next());
    for (std::size_t k = 0; k < states.size(); k += 3) {
      it.set_state(states[k]);
      for (std::size_t i = k; i < n; ++i)
        ASSERT_EQ(testing::plain(it.next().value()), nlohmann::json(g["elements"][i]).dump()) << k;
      EXPECT_FALSE(it.next());
    }
  }
}

TEST(GrainGoldens, IteratorsGiveElementsAndStates) { check_runs("runs"); }
TEST(GrainGoldens, OldRunsGetTheirElementsAndStates) { check_runs("compat_runs"); }

}  // namespace
}  // namespace xylem::data
