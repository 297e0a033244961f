#include "xylem/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "xylem/data/loader.h"
#include "xylem/data/testing/elements.h"

namespace xylem::data {
namespace {

using testing::all;
using testing::error_of;
using ::testing::HasSubstr;
using Ints = std::vector<std::int64_t>;

struct Example {
  std::int64_t label = 0;
  HostArray image;
};
struct ExampleBatch {
  HostArray image, label;
};
struct Arrays2 {
  HostArray a, b;
};

// ---- elements

TEST(Batch, StacksStructsOfArraysIntoThemselves) {
  const auto ds = range(4).map([](std::int64_t i) {
    const std::vector<float> v{static_cast<float>(i), 1};
    return Arrays2{HostArray::from(v, {2}), HostArray::scalar(std::int32_t{7})};
  });
  const Arrays2 batch = ds.batch(3)[0];
  EXPECT_EQ(batch.a.type_string(), "f32[3,2]");
  EXPECT_EQ(batch.b.type_string(), "i32[3]");
  EXPECT_EQ(batch.a.at(4), 2);
  EXPECT_EQ(ds.batch(3)[1].a.type_string(), "f32[1,2]");
}

TEST(Batch, GoesIntoAStructThatNamesTheFields) {
  const auto ds = range(4)
                      .map([](std::int64_t i) {
                        return Example{i * 10, HostArray::zeros(DType::kU8, {2, 2})};
                      })
                      .batch<ExampleBatch>(2);
  const ExampleBatch b = ds[1];
  EXPECT_EQ(b.image.type_string(), "ui8[2,2,2]");
  EXPECT_EQ(b.label.to_vector<std::int64_t>(), (Ints{20, 30}));
}

TEST(Batch, TakesNumbersVectorsTextsTuplesAndMaps) {
  const auto ds = range(4).map([](std::int64_t i) {
    return std::tuple{static_cast<float>(i), std::vector<std::int32_t>(3, static_cast<int>(i)),
                      std::string(2, 'a'), std::map<std::string, bool>{{"even", i % 2 == 0}}};
  });
  const auto [f, v, s, m] = ds.batch(2)[1];
  EXPECT_EQ(f.type_string(), "f32[2]");
  EXPECT_EQ(v.type_string(), "i32[2,3]");
  EXPECT_EQ(s, (std::vector<std::string>{"aa", "aa"}));
  EXPECT_EQ(m.at("even").type_string(), "i1[2]");
}

TEST(Batch, RefusesUnequalElementsByNumberAndRecord) {
  const auto ds =
      range(4).map([](std::int64_t i) { return std::vector<std::int32_t>(i == 2 ? 5 : 3); });
  const std::string e = error_of([&] { ds.batch(4)[0]; });
  EXPECT_THAT(e, HasSubstr("element 2"));
  EXPECT_THAT(e, HasSubstr("range(0, 4, 1) > map > batch(4)"));
  EXPECT_THAT(e, HasSubstr("pack"));
}

TEST(Batch, RefusesWhatCanBeAbsent) {
  const auto odd = [](std::int64_t i) { return i % 2 == 1; };
  EXPECT_THAT(error_of([&] { range(4).filter(odd).batch(2); }), HasSubstr("to_iter_dataset()"));
  EXPECT_EQ(all(range(8).filter(odd).to_iter_dataset().batch(2)).size(), 2u);
}

TEST(Batch, MakesWhatItsFunctionGives) {
  const auto sums = range(5).batch(2, [](std::vector<std::int64_t> v) {
    std::int64_t s = 0;
    for (const auto x : v) s += x;
    return s;
  });
  EXPECT_EQ(all(sums), (Ints{1, 5, 4}));
}

// ---- mistakes

TEST(Datasets, RefuseWhatCannotBeMeant) {
  EXPECT_THAT(error_of([] { range(3).shuffle(); }), HasSubstr(".seed("));
  EXPECT_THAT(error_of([] { range(3).shuffle(-1); }), HasSubstr("2^32 - 1"));
  EXPECT_THAT(error_of([] { range(3).shuffle(std::int64_t{1} << 32); }), HasSubstr("4294967296"));
  EXPECT_THAT(error_of([] { range(3).repeat(0); }), HasSubstr("num_epochs"));
  EXPECT_THAT(error_of([] { range(3).repeat().repeat(); }), HasSubstr("without end"));
  EXPECT_THAT(error_of([] { mix({range(3), range(3)}, {1, 0}); }), HasSubstr("positive"));
  EXPECT_THAT(error_of([] { mix({range(3), range(0)}); }), HasSubstr("data set 1"));
  EXPECT_THAT(error_of([] { concatenate({range(3), range(3).repeat()}); }), HasSubstr("finite"));
  EXPECT_THAT(error_of([] { zip(range(3), range(2)); }), HasSubstr("data set 1"));
  EXPECT_THAT(error_of([] { range(3).batch(0); }), HasSubstr("batch_size"));
  EXPECT_THAT(error_of([] { range(3)[-1]; }), HasSubstr("from 0 on"));
  EXPECT_THAT(error_of([] { range(0)[0]; }), HasSubstr("empty"));
  EXPECT_THAT(error_of([] { range(3).slice(0, 3, 0); }), HasSubstr("step"));
  EXPECT_THAT(error_of([] { elastic(range(9), 4, {0, 3}); }), HasSubstr("divides"));
  EXPECT_THAT(error_of([] { all(zip(range(3).to_iter_dataset(), range(2).to_iter_dataset())); }),
              HasSubstr("data set 1"));
}

TEST(DatasetIterator, RefusesForeignStatesAndUseAfterClose) {
  auto it = range(5).to_iter_dataset().batch(2).iterator();
  EXPECT_THAT(error_of([&] { it.set_state("{\"next_index\": 6}"); }), HasSubstr("from 0 to 5"));
  EXPECT_THAT(error_of([&] { it.set_state("{\"next_index\": -1}"); }), HasSubstr("-1"));
  EXPECT_THAT(error_of([&] { it.set_state("{\"epoch\": 1}"); }), HasSubstr("next_index"));
  EXPECT_THAT(error_of([&] { it.set_state("[1"); }), HasSubstr("JSON"));
  EXPECT_THAT(error_of([&] { it.set_state("{\"next_index\": 1.5}"); }), HasSubstr("1.5"));
  EXPECT_THAT(error_of([&] { it.set_state(std::string(500, '[')); }), HasSubstr("levels"));
  it.set_state("{\"next_index\": 4}");
  EXPECT_EQ(it.next()->to_vector<std::int64_t>(), (Ints{4}));
  it.close();
  it.close();
  EXPECT_THAT(error_of([&] { it.next(); }), HasSubstr("closed"));
}

// ---- combined

TEST(Mix, ByNameTakesStatesOfOtherMixtures) {
  const auto part = [](std::int64_t from) { return range(from, from + 50).to_iter_dataset(); };
  using Named = std::map<std::string, IterDataset<std::int64_t>>;
  auto two = mix(Named{{"a", part(0)}, {"b", part(100)}}).iterator();
  for (int i = 0; i < 6; ++i) two.next();
  auto three =
      mix(Named{{"a", part(0)}, {"b", part(100)}, {"c", part(200)}}, {{"a", 1}, {"b", 1}, {"c", 2}})
          .iterator();
  three.set_state(two.get_state());
  std::set<std::int64_t> seen;
  for (int i = 0; i < 8; ++i) seen.insert(three.next().value());
  EXPECT_TRUE(seen.contains(3));
  EXPECT_TRUE(seen.contains(103));
  EXPECT_TRUE(seen.contains(200));
  EXPECT_FALSE(seen.contains(2));
}

TEST(Interleave, OpensDataSetsWhenTheirTurnComes) {
  std::atomic<int> opened{0};
  const auto files = range(100).map([&](std::int64_t i) {
    ++opened;
    return range(i * 10, i * 10 + 3).to_iter_dataset();
  });
  auto it = interleave(files, {.cycle_length = 2}).iterator();
  EXPECT_EQ(it.next(), 0);
  EXPECT_EQ(it.next(), 10);
  EXPECT_EQ(it.next(), 1);
  EXPECT_LE(opened, 3);
}

TEST(DevicePut, PlacesElementsInOrder) {
  const auto ds =
      range(30).to_iter_dataset().device_put([](std::int64_t x) { return std::to_string(x); });
  const auto placed = all(ds);
  ASSERT_EQ(placed.size(), 30u);
  EXPECT_EQ(placed[29], "29");
}

TEST(Select, FollowsAMapOfYourOwn) {
  struct Third final : Selection {
    std::int64_t length() const override { return 6; }
    std::pair<std::int64_t, std::int64_t> at(std::int64_t i) const override {
      return {i % 3 == 0 ? 0 : i < 5 ? 1 : 7, i};
    }
  };
  const auto ds =
      select_from_datasets<std::int64_t>({range(10), range(100, 110)}, std::make_shared<Third>());
  EXPECT_EQ(ds[3], 3);
  EXPECT_EQ(ds[4], 104);
  EXPECT_THAT(error_of([&] { ds[5]; }), HasSubstr("data set 7"));
}

TEST(DataLoader, RefusesStatesOfOtherLoaders) {
  const auto make = [](std::int64_t seed, int workers) {
    return data_loader(range(8), IndexSampler(8, {.shuffle = true, .num_epochs = 1, .seed = seed}),
                       {.worker_count = workers})
        .iterator();
  };
  auto it = make(1, 0);
  it.next();
  EXPECT_THAT(error_of([&] { make(2, 0).set_state(it.get_state()); }), HasSubstr("sampler"));
  EXPECT_THAT(error_of([&] { make(1, 2).set_state(it.get_state()); }), HasSubstr("worker_count"));
}

TEST(State, KeepsTextOfPythonsJson) {
  const std::string text =
      "{\"a\": [1, -2, {\"b\": null}], \"t\": \"x\\\"y\", \"f\": false, \"e\": {}, \"l\": []}";
  EXPECT_EQ(State::parse(text).to_json(), text);
  EXPECT_EQ(State::parse(text).view().at("a").items()[2].at("b").is_null(), true);
  EXPECT_THAT(error_of([&] { State::parse(text).view().at("t").integer(); }), HasSubstr("t"));
}

}  // namespace
}  // namespace xylem::data
