#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/seeds.h"
#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/data/formats/image.h"

// JPEG and PNG end in pixels or in a UserError.

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  std::vector<std::string> seeds;
  for (std::int64_t channels = 1; channels <= 4; ++channels)
    seeds.push_back(xylem::data::encode_png(xylem::HostArray(xylem::DType::kU8, {5, 7, channels})));
  xylem::fuzz::fill_corpus(*argc, *argv, seeds);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    xylem::data::decode_image(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz",
                              std::uint64_t{1} << 22);
  } catch (const xylem::UserError&) {
  }
  return 0;
}
