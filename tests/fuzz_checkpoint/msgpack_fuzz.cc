#include <cstdint>
#include <string_view>

#include "tests/fuzz/corpus.h"
#include "tests/fuzz_checkpoint/seeds.h"
#include "xylem/base/error.h"
#include "xylem/checkpoint/flax_msgpack.h"

// Flax's msgpack gives a tree or an Error.

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  xylem::fuzz::fill_corpus(*argc, *argv, xylem::fuzz::msgpack_files());
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(bytes), size);
  try {
    xylem::checkpoint::read_flax_msgpack(input, "fuzz");
  } catch (const xylem::Error&) {
  }
  return 0;
}
