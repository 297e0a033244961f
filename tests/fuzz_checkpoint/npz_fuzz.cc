#include <cstdint>
#include <string_view>

#include "tests/fuzz/corpus.h"
#include "tests/fuzz_checkpoint/seeds.h"
#include "xylem/base/error.h"
#include "xylem/checkpoint/internal/rescue.h"
#include "xylem/checkpoint/npz.h"

// A zip archive of arrays gives them or an Error; so does what is saved of a damaged one.

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  xylem::fuzz::fill_corpus(*argc, *argv, xylem::fuzz::npz_files());
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace xylem;
  using namespace xylem::checkpoint;
  const FileSystem fs = FileSystem::memory();
  fs.write_file("/x.npz", {reinterpret_cast<const char*>(bytes), size});
  try {
    const auto item = open_npz(fs, "/x.npz");
    item->check([](std::string_view, std::string_view) {});
    for (std::size_t i = 0; i < item->leaves().size(); ++i)
      if (item->leaves()[i].dtype) item->read(i);
  } catch (const Error&) {
  }
  try {
    checkpoint::internal::rescue_npz(fs, "/x.npz", "");
  } catch (const Error&) {
  }
  return 0;
}
