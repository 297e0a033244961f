// Pipelines: records a second, time to the first element, cost of a state. Prints one JSON object a
// case; benchmarks/data.py sets them beside Grain and torch.
//
//   data_pipeline [--records FILE.array_record] [--repeats N]

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/data/dataset.h"
#include "xylem/data/record_source.h"

namespace {

using namespace xylem;

double now() {
  timespec t;
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

int repeats = 3;

void print(const char* name, double value, const char* unit, double first_s = -1) {
  std::printf("{\"case\": \"%s\", \"value\": %.6g, \"unit\": \"%s\"", name, value, unit);
  if (first_s >= 0) std::printf(", \"first_batch_s\": %.6g", first_s);
  std::printf("}\n");
  std::fflush(stdout);
}

// Median rate of `count` elements of `per` records each, after ten to warm up.
template <class T>
void rate(const char* name, const data::IterDataset<T>& ds, int count, double per,
          const char* unit = "records/s") {
  std::vector<double> rates, firsts;
  for (int r = 0; r < repeats; ++r) {
    const double start = now();
    auto it = ds.iterator();
    it.next();
    firsts.push_back(now() - start);
    for (int i = 0; i < 10; ++i) it.next();
    const double begin = now();
    for (int i = 0; i < count; ++i) it.next();
    rates.push_back(count * per / (now() - begin));
  }
  std::sort(rates.begin(), rates.end());
  std::sort(firsts.begin(), firsts.end());
  print(name, rates[rates.size() / 2], unit, firsts[firsts.size() / 2]);
}

struct Integers {
  std::int64_t size() const { return 1'000'000; }
  std::int64_t get(std::int64_t i) const { return i; }
};

void memory() {
  const auto ints = data::source(Integers{}, "integers")
                        .shuffle(1)
                        .map([](std::int64_t x) { return x + 1; })
                        .batch(32);
  for (const int threads : {0, 2, 16}) {
    const std::string name =
        "memory 1M ints shuffle+map+batch32, " + std::to_string(threads) + " read threads";
    rate(name.c_str(),
         ints.to_iter_dataset({.num_threads = threads, .prefetch_buffer_size = threads ? 64 : 0}),
         20000, 32);
  }
  rate("memory 1M ints shuffle+map+batch32, 2 workers",
       ints.to_iter_dataset({.num_threads = 0})
           .mp_prefetch({.num_workers = 2, .per_worker_buffer_size = 8}),
       10000, 32);
  const double start = now();
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < 20000; ++i) count += ints[i].size();
  print("memory 1M ints random access dataset[i]", static_cast<double>(count) / (now() - start),
        "records/s");

  auto it = ints.to_iter_dataset().iterator();
  it.next();
  const double begin = now();
  std::size_t bytes = 0;
  for (int i = 0; i < 100000; ++i) bytes += it.get_state().size();
  print("state of shuffle+map+batch as JSON", (now() - begin) / 1e5, "s");
  if (bytes == 0) std::printf("\n");
}

void batches() {
  std::vector<HostArray> rows;
  for (int i = 0; i < 1000; ++i) rows.push_back(HostArray::zeros(DType::kI32, {2048}));
  constexpr double kBytes = 32 * 2048 * 4;
  rate("batches of 32 x 2048 i32",
       data::source(rows).shuffle(1).repeat().batch(32).to_iter_dataset({.num_threads = 0}), 2000,
       kBytes, "bytes/s");
  // The same copies without a pipeline.
  std::vector<double> rates;
  for (int r = 0; r < repeats; ++r) {
    const double begin = now();
    for (int i = 0; i < 2000; ++i) {
      const HostArray b(DType::kI32, {32, 2048});
      for (int k = 0; k < 32; ++k)
        std::memcpy(const_cast<std::byte*>(b.data()) + k * 8192,
                    rows[static_cast<std::size_t>(i * 377 + k * 31) % 1000].data(), 8192);
    }
    rates.push_back(2000 * kBytes / (now() - begin));
  }
  std::sort(rates.begin(), rates.end());
  print("the same by memcpy alone", rates[rates.size() / 2], "bytes/s");
}

void packing() {
  const auto lists = data::range(1'000'000).map([](std::int64_t x) {
    return std::vector<std::int32_t>(static_cast<std::size_t>(x * 7919 % 100 + 1), 1);
  });
  const auto rows = lists.to_iter_dataset({.num_threads = 0})
                        .first_fit_pack({.length = {{"", 512}}, .num_packing_bins = 64});
  // 50.5 tokens a sequence; rows are nearly full.
  rate("first-fit packing, 1 to 100 tokens into 64 rows of 512", rows, 20000, 512 / 50.5,
       "sequences/s");
}

void files(const std::string& path) {
  const auto bytes = data::record_bytes(path);
  const auto records = bytes.shuffle(1).map([](const std::string& r) {
    HostArray a(DType::kI32, {static_cast<std::int64_t>(r.size())});
    for (std::size_t i = 0; i < r.size(); ++i)
      a.as<std::int32_t>()[i] = static_cast<unsigned char>(r[i]);
    return a;
  });
  for (const int threads : {0, 2, 16}) {
    const std::string name =
        "arrayrecord 1KB shuffle+decode+batch32, " + std::to_string(threads) + " read threads";
    rate(name.c_str(),
         records.batch(32).to_iter_dataset(
             {.num_threads = threads, .prefetch_buffer_size = threads ? 64 : 0}),
         3000, 32);
  }
  rate("arrayrecord 1KB shuffle, bytes", bytes.shuffle(1).to_iter_dataset({.num_threads = 0}),
       100000, 1);
}

}  // namespace

int main(int argc, char** argv) {
  std::string path;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--records") == 0) path = argv[i + 1];
    if (std::strcmp(argv[i], "--repeats") == 0) repeats = std::max(1, std::atoi(argv[i + 1]));
  }
  try {
    memory();
    batches();
    packing();
    if (!path.empty()) files(path);
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
