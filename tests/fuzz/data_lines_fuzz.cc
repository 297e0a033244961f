#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/fuzz/data_seeds.h"
#include "tests/fuzz/seeds.h"

// Formats that are read from front to back, compressed or not: the first byte says which. They end
// in records or in an Error.

namespace {
constexpr const char* kFormats[] = {"text", "jsonl", "csv", "tfrecord"};
}

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  std::vector<std::string> seeds;
  for (int k = 0; k < 4; ++k)
    for (const std::string& file : xylem::fuzz::record_files(kFormats[k]))
      seeds.push_back(static_cast<char>(k) + file);
  xylem::fuzz::fill_corpus(*argc, *argv, seeds);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 0) xylem::fuzz::read_records(data + 1, size - 1, kFormats[data[0] % 4]);
  return 0;
}
