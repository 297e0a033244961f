#include <cstddef>
#include <cstdint>

#include "tests/fuzz/data_seeds.h"
#include "tests/fuzz/seeds.h"

// A Bagz file ends in records or in an Error.

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  xylem::fuzz::fill_corpus(*argc, *argv, xylem::fuzz::record_files("bagz"));
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  xylem::fuzz::read_records(data, size, "bagz");
  return 0;
}
