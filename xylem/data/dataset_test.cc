#include "xylem/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "xylem/base/file.h"
#include "xylem/data/loader.h"

namespace xylem::data {
namespace {

using ::testing::HasSubstr;
using Ints = std::vector<std::int64_t>;

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.message();
  }
  return "none";
}

template <class D>
auto all(const D& ds) {
  std::vector<typename D::Element> out;
  for (auto& e : ds.iterator()) out.push_back(std::move(e));
  return out;
}

std::size_t threads_of_this_process() { return list_directory("/proc/self/task").size(); }

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

// ---- errors of functions

std::int64_t fails_at_7(std::int64_t i) {
  if (i == 7) throw std::runtime_error("cannot decode");
  return i;
}

TEST(Errors, NameTheNodeTheElementAndTheRecordAtItsPosition) {
  for (const int threads : {0, 3}) {
    const auto ds =
        source(Ints{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, "numbers.txt")
            .shuffle(42)
            .map(fails_at_7, "decode")
            .to_iter_dataset({.num_threads = threads, .prefetch_buffer_size = 4 * threads});
    auto it = ds.iterator();
    EXPECT_EQ(it.next(), 8);
    EXPECT_EQ(it.next(), 6);
    const std::string e = error_of([&] { it.next(); });
    EXPECT_THAT(e, HasSubstr("shuffle(seed=42) > map:decode, element 2 (record 7 of numbers.txt)"));
    EXPECT_THAT(e, HasSubstr("cannot decode"));
    // The position is that of the failing element.
    EXPECT_EQ(it.get_state(), "{\"next_index\": 2}");
    EXPECT_NE(error_of([&] { it.next(); }), "none");
    it.set_state("{\"next_index\": 3}");
    EXPECT_EQ(it.next(), 9);
  }
}

TEST(Errors, OfLaterNodesNameTheRecordToo) {
  const auto ds = source(Ints{5, 6, 7, 8}, "f").to_iter_dataset().map(fails_at_7, "g");
  for (const auto& d : {ds, ds.thread_prefetch(2), ds.mp_prefetch({.num_workers = 2})}) {
    auto it = d.iterator();
    it.next();
    it.next();
    const std::string e = error_of([&] { it.next(); });
    EXPECT_THAT(e, HasSubstr("map:g (record 2 of f)"));
  }
}

TEST(Errors, CanBeSkippedAndAreCounted) {
  for (const int threads : {0, 2}) {
    const auto ds =
        range(20)
            .map(fails_at_7)
            .to_iter_dataset(
                {.num_threads = threads, .prefetch_buffer_size = 8, .on_error = OnError::skip});
    EXPECT_EQ(all(ds).size(), 19u);
    EXPECT_EQ(ds.node()->stats().skipped, 1);
  }
  const auto later =
      range(20).to_iter_dataset().map(fails_at_7).with_options({.on_error = OnError::skip});
  EXPECT_EQ(all(later).size(), 19u);
  EXPECT_THAT(later.describe(), HasSubstr("1 skipped"));
}

TEST(Errors, KeepTheirKind) {
  const auto ds = range(3).map([](std::int64_t) -> std::int64_t {
    throw EnvironmentError(ErrorParts{"read x", "a disk", "none", "Mount it"});
  });
  EXPECT_THROW(ds[0], EnvironmentError);
}

TEST(Filter, WarnsOrFailsWhenItRejectsNearlyEverything) {
  const auto ds = range(5000).to_iter_dataset().filter([](std::int64_t i) { return i % 100 == 0; });
  EXPECT_EQ(all(ds).size(), 50u);
  EXPECT_THAT(error_of([&] { all(ds.with_options({.filter_raise_threshold = 0.95})); }),
              HasSubstr("99.00 %"));
}

// ---- threads

TEST(Threads, LeaveWithTheirIterators) {
  std::thread([] {}).join();  // a sanitizer keeps one of its own from the first on
  const std::size_t before = threads_of_this_process();
  for (int i = 0; i < 1000; ++i) {
    auto it = range(100000)
                  .map([](std::int64_t x) { return x; })
                  .to_iter_dataset({.num_threads = 4, .prefetch_buffer_size = 8})
                  .thread_prefetch(2)
                  .map([](std::int64_t x) { return x + 1; })
                  .thread_prefetch(3)
                  .iterator();
    if (i % 10 == 0) it.start_prefetch();
    if (i % 3 > 0) it.next();
    if (i % 2 > 0) it.close();
  }
  EXPECT_EQ(threads_of_this_process(), before);
}

TEST(Threads, KeepNoMoreThanTheBuffer) {
  std::atomic<int> made{0};
  auto slow = [&made](std::int64_t x) {
    ++made;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    return x;
  };
  auto it = range(100000)
                .map(slow)
                .to_iter_dataset({.num_threads = 3, .prefetch_buffer_size = 20})
                .iterator();
  for (int i = 0; i < 10; ++i) it.next();
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  EXPECT_LE(made, 10 + 20 + 3);
  EXPECT_GE(made, 10);
}

TEST(Threads, AreNoMoreThanAskedFor) {
  std::atomic<int> now{0}, most{0};
  auto work = [&](std::int64_t x) {
    const int n = ++now;
    int seen = most;
    while (n > seen && !most.compare_exchange_weak(seen, n)) {
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    --now;
    return x;
  };
  all(range(200).map(work).to_iter_dataset({.num_threads = 2, .prefetch_buffer_size = 50}));
  EXPECT_LE(most, 2);
}

// ---- sources

struct CountingSource {
  std::shared_ptr<std::vector<Ints>> reads = std::make_shared<std::vector<Ints>>();
  std::int64_t size() const { return 50000; }
  std::int64_t get(std::int64_t i) const { return i; }
  void get_batch(std::span<const std::int64_t> indices,
                 std::span<std::optional<std::int64_t>> out) const {
    reads->emplace_back(indices.begin(), indices.end());
    for (std::size_t k = 0; k < indices.size(); ++k) out[k] = indices[k];
  }
};

TEST(Sources, AreAskedForSortedRuns) {
  CountingSource s;
  const auto ds = source(s, "counting").shuffle(1).batch(64);
  const HostArray b = ds[0];
  ASSERT_EQ(s.reads->size(), 1u);
  EXPECT_EQ((*s.reads)[0].size(), 64u);
  EXPECT_TRUE(std::is_sorted((*s.reads)[0].begin(), (*s.reads)[0].end()));
  const IndexShuffle order(50000, 1);
  for (std::int64_t i = 0; i < 64; ++i) EXPECT_EQ(b.as<std::int64_t>()[i], order(i));
}

// ---- epochs

TEST(Slice, AfterShuffleKeepsItsRecordsInEveryEpoch) {
  const auto part = range(100).shuffle(3).slice(0, 10);
  std::set<std::int64_t> first;
  for (std::int64_t i = 0; i < 10; ++i) first.insert(part[i]);
  bool reordered = false;
  for (std::int64_t epoch = 1; epoch < 5; ++epoch) {
    std::set<std::int64_t> records;
    for (std::int64_t i = 0; i < 10; ++i) {
      records.insert(part[epoch * 10 + i]);
      reordered |= part[epoch * 10 + i] != part[i];
    }
    EXPECT_EQ(records, first);
  }
  EXPECT_TRUE(reordered);
  // The rest is the rest.
  const auto others = range(100).shuffle(3).slice(10, std::nullopt);
  for (std::int64_t i = 0; i < 270; ++i) EXPECT_FALSE(first.contains(others[i]));
}

TEST(Slice, OfRepeatedShufflesKeepsItsRecords) {
  const auto part = range(20).shuffle(3).repeat(2).slice(5, 15);
  std::multiset<std::int64_t> first, second;
  for (std::int64_t i = 0; i < 10; ++i) first.insert(part[i]), second.insert(part[10 + i]);
  EXPECT_EQ(first, second);
}

TEST(WindowShuffle, IsAPermutationOfEveryEpoch) {
  for (const std::int64_t n : {1, 3, 10, 12})
    for (const std::int64_t w : {1, 4, 5, 40}) {
      const auto ds = range(n).window_shuffle(w, 9);
      for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
        std::set<std::int64_t> seen;
        for (std::int64_t i = 0; i < n; ++i) seen.insert(ds[epoch * n + i]);
        EXPECT_EQ(static_cast<std::int64_t>(seen.size()), n);
      }
    }
}

TEST(Elements, AreFlatInMemoryOverManyEpochs) {
  auto it = range(1000).shuffle(1).repeat().batch(64).to_iter_dataset().iterator();
  const auto resident = [] {
    const std::string s = read_file("/proc/self/statm");
    return std::stoll(s.substr(s.find(' '))) * 4096;
  };
  for (int i = 0; i < 500; ++i) it.next();
  const auto before = resident();
  for (int i = 0; i < 4000; ++i) it.next();
  EXPECT_LT(resident() - before, 4 << 20);
}

// ---- packing

struct Tokens {
  HostArray tokens, loss_mask;
};

TEST(Packing, KeepsTheElementsType) {
  const auto ds = range(10).map([](std::int64_t i) {
    const auto n = static_cast<std::int64_t>(i % 3 + 1);
    return Tokens{HostArray::zeros(DType::kI32, {n}), HostArray::zeros(DType::kBool, {n})};
  });
  const PackOptions o{.length = {{"tokens", 8}, {"loss_mask", 8}}, .num_packing_bins = 2};
  std::int64_t tokens = 0;
  for (const Packed<Tokens>& row : all(ds.to_iter_dataset().first_fit_pack(o))) {
    EXPECT_EQ(row.values.tokens.type_string(), "i32[8]");
    EXPECT_EQ(row.values.loss_mask.type_string(), "i1[8]");
    for (const auto id : row.segment_ids.tokens.span<std::int32_t>()) tokens += id > 0;
  }
  EXPECT_EQ(tokens, 19);
}

TEST(Packing, TakesPlainLists) {
  const auto ds = source(std::vector<std::vector<std::int32_t>>{{1, 2, 3}, {4}, {5, 6}});
  const auto rows = all(ds.to_iter_dataset().concat_then_split({.length = {{"", 3}}}));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].values.to_vector<std::int32_t>(), (std::vector<std::int32_t>{4, 5, 6}));
  EXPECT_EQ(rows[1].segment_ids.to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, 2, 2}));
}

TEST(Packing, RefusesSequencesLongerThanARow) {
  const auto ds = source(std::vector<std::vector<std::int32_t>>{{1}, {1, 2, 3}}, "docs");
  const std::string e = error_of([&] {
    all(ds.to_iter_dataset().first_fit_pack({.length = {{"", 2}}, .num_packing_bins = 2}));
  });
  EXPECT_THAT(e, HasSubstr("at most 2 tokens"));
  EXPECT_THAT(e, HasSubstr("record 1 of docs"));
}

TEST(Packing, NamesTheFieldsItHas) {
  const auto ds = range(3).map([](std::int64_t) {
    return Tokens{HostArray::zeros(DType::kI32, {1}), HostArray::zeros(DType::kBool, {1})};
  });
  EXPECT_THAT(error_of([&] {
                all(ds.to_iter_dataset().first_fit_pack({.length = {{"token", 2}}}));
              }),
              HasSubstr("the fields tokens, loss_mask"));
}

TEST(ConcatThenSplit, CutsSeveralFeaturesAtTheirOwnPlaces) {
  const auto numbers = [](std::int64_t from, std::int64_t n) {
    Ints v(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) v[static_cast<std::size_t>(i)] = from + i;
    return HostArray::from(v, {n});
  };
  const auto rows = all(source(std::vector<Arrays2>{{numbers(100, 20), numbers(200, 7)}})
                            .to_iter_dataset()
                            .concat_then_split({.length = {{"a", 5}, {"b", 4}}}));
  Ints a, b;
  for (const auto& r : rows) {
    for (std::int64_t i = 0; i < 5; ++i)
      if (r.segment_ids.a.as<std::int32_t>()[i] > 0) a.push_back(r.values.a.as<std::int64_t>()[i]);
    for (std::int64_t i = 0; i < 4; ++i)
      if (r.segment_ids.b.as<std::int32_t>()[i] > 0) b.push_back(r.values.b.as<std::int64_t>()[i]);
  }
  EXPECT_EQ(a, numbers(100, 20).to_vector<std::int64_t>());
  EXPECT_EQ(b, numbers(200, 7).to_vector<std::int64_t>());
}

// ---- looking inside

TEST(Describe, ShowsTypesShapesAndCounts) {
  const auto ds = range(10).shuffle(1).batch(4).to_iter_dataset().map(
      [](HostArray a) { return a.astype(DType::kF32); }, "cast");
  const std::string text = ds.describe();
  const std::string integer(reflect::type_name<std::int64_t>());  // compilers differ
  EXPECT_EQ(text,
            "map:cast: HostArray = f32[4]\n"
            "  to_iter_dataset(num_threads=16, prefetch_buffer_size=500): HostArray = i64[4]\n"
            "    batch(4): HostArray = i64[4], 3 elements\n"
            "      shuffle(seed=1): " +
                integer +
                " = i64, 10 elements\n"
                "        range(0, 10, 1): " +
                integer + " = i64, 10 elements\n");
  EXPECT_THAT(ds.dot(), HasSubstr("shuffle(seed=1)"));
  EXPECT_EQ(ds.verdict(), "not measured: set PipelineOptions::timing");
}

TEST(Describe, MeasuresNodesAndNamesTheSlowest) {
  const auto slow = [](std::int64_t x) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    return x;
  };
  const auto ds = range(200)
                      .map(slow, "tokenize")
                      .batch(10)
                      .to_iter_dataset({.num_threads = 0})
                      .with_options({.timing = true});
  EXPECT_EQ(all(ds).size(), 20u);
  EXPECT_THAT(ds.verdict(), HasSubstr("input-bound"));
  EXPECT_THAT(ds.verdict(), HasSubstr("`map:tokenize` takes "));
  EXPECT_THAT(ds.verdict(), HasSubstr("threads"));
  EXPECT_THAT(ds.describe(), HasSubstr("200 elements"));
  EXPECT_THAT(ds.html(), HasSubstr("map:tokenize"));
}

TEST(Describe, DebugModeReportsEveryNodesElements) {
  std::vector<std::string> lines;
  PipelineOptions o;
  o.debug = true;
  o.debug_sink = [&](const std::string& s) { lines.push_back(s); };
  const auto ds = range(2)
                      .map([](std::int64_t x) { return x * 2; }, "double")
                      .to_iter_dataset({.num_threads = 4})
                      .thread_prefetch(3)
                      .with_options(o);
  EXPECT_EQ(all(ds), (Ints{0, 2}));
  EXPECT_THAT(lines, ::testing::Contains("range(0, 2, 1) > map:double [1]: i64 = 2"));
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
