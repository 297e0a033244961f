#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/fuzz/data_seeds.h"
#include "tests/fuzz/seeds.h"

// Chunks of any content under right hashes, transposed ones too, end in records or in an Error.

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  xylem::fuzz::fill_corpus(*argc, *argv, xylem::fuzz::chunk_lists("riegeli"));
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string file = xylem::fuzz::chunk_file(data, size, false);
  xylem::fuzz::read_records(reinterpret_cast<const std::uint8_t*>(file.data()), file.size(),
                            "riegeli");
  return 0;
}
