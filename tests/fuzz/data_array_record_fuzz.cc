#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/fuzz/data_seeds.h"
#include "tests/fuzz/seeds.h"

// The same with the last chunk as the footer of an ArrayRecord file.

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  xylem::fuzz::fill_corpus(*argc, *argv, xylem::fuzz::chunk_lists("array_record"));
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string file = xylem::fuzz::chunk_file(data, size, true);
  xylem::fuzz::read_records(reinterpret_cast<const std::uint8_t*>(file.data()), file.size(),
                            "array_record");
  return 0;
}
