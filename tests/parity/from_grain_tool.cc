// Runs the right-hand sides of docs/from-grain.md for from_grain_test.py: one JSON object a line,
// {"code": text, "elements": [..]}. Absent elements are null.

#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/data/loader.h"

namespace {

using Json = nlohmann::json;
using namespace xylem::data;

Json plain(std::int64_t v) { return v; }
Json plain(const xylem::HostArray& a) { return a.to_vector<std::int64_t>(); }
template <class... T>
Json plain(const std::tuple<T...>& t) {
  return std::apply([](const auto&... x) { return Json::array({plain(x)...}); }, t);
}

template <class T>
Json elements(const MapDataset<T>& d) {
  Json out = Json::array();
  for (std::int64_t i = 0; i < d.size(); ++i) {
    const auto e = d.at(i);
    out.push_back(e ? plain(*e) : Json());
  }
  return out;
}

template <class T>
Json elements(const IterDataset<T>& d) {
  Json out = Json::array();
  for (auto& e : d.iterator()) out.push_back(plain(e));
  return out;
}

#define SHOW(...) \
  std::cout << Json{{"code", #__VA_ARGS__}, {"elements", elements(__VA_ARGS__)}}.dump() << "\n"

void show() {
  // clang-format off
  SHOW(source({5, 6, 7}));
  SHOW(range(2, 21, 3));
  SHOW(range(10).map([](std::int64_t x) { return x + 1; }));
  SHOW(range(4).map_with_index([](std::int64_t i, std::int64_t x) { return i * x; }));
  SHOW(range(10).random_map([](std::int64_t x, Generator& rng) { return x + rng.integers(0, 10); }, 42));
  SHOW(range(10).shuffle(42).repeat(2));
  SHOW(range(10).seed(42).shuffle());
  SHOW(range(10).slice({}, {}, -3));
  SHOW(range(10).shuffle(1).shard(0, 4));
  SHOW(range(10).filter([](std::int64_t x) { return x % 2 == 0; }));
  SHOW(range(5).batch(2));
  SHOW(range(5).batch(2, true));
  SHOW(range(5).batch_and_pad(2, -1));
  SHOW(mix({range(9), range(10, 14)}, {0.7, 0.3}));
  SHOW(concatenate({range(2), range(7, 9)}));
  SHOW(zip(range(3), range(5, 8)));
  SHOW(range(20).window_shuffle(4, 3));
  SHOW(range(20).compat(Compat::grain).shuffle(5));
  SHOW(range(9).to_iter_dataset());
  SHOW(range(90).to_iter_dataset({.num_threads = 2, .prefetch_buffer_size = 8}));
  SHOW(range(9).to_iter_dataset().limit(4));
  SHOW(range(3).to_iter_dataset().cache().repeat(2));
  SHOW(range(10).to_iter_dataset().batch(4).rebatch(3));
  SHOW(range(10).to_iter_dataset().window_shuffle(4, 42));
  SHOW(mix({range(5).to_iter_dataset(), range(7, 10).to_iter_dataset()}));
  SHOW(interleave(std::vector{range(2), range(3), range(4)}, {.cycle_length = 2}));
  SHOW(range(6).to_iter_dataset().thread_prefetch(3));
  SHOW(range(10).to_iter_dataset().mp_prefetch({.num_workers = 3}));
  SHOW(elastic(range(12), 4, {.shard_index = 1, .shard_count = 2}));
  SHOW(data_loader(range(8), IndexSampler(8, {.shuffle = true, .num_epochs = 1, .seed = 42})).dataset());
  // clang-format on
}

}  // namespace

int main() {
  try {
    show();
  } catch (const xylem::Error& e) {
    std::cerr << e.what() << "\n";
    return 1;
  }
}
