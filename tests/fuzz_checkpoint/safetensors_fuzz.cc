#include <cstdint>
#include <string_view>

#include "tests/fuzz/corpus.h"
#include "tests/fuzz_checkpoint/seeds.h"
#include "xylem/base/error.h"
#include "xylem/checkpoint/internal/rescue.h"
#include "xylem/checkpoint/safetensors.h"

// A file gives its tensors or an Error; so does what is saved of a damaged one.

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  xylem::fuzz::fill_corpus(*argc, *argv, xylem::fuzz::safetensors_files());
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace xylem;
  using namespace xylem::checkpoint;
  const FileSystem fs = FileSystem::memory();
  fs.write_file("/x.safetensors", {reinterpret_cast<const char*>(bytes), size});
  try {
    const SafetensorsFile file("/x.safetensors", fs);
    file.read_all();
    for (const TensorInfo& t : file.tensors())
      if (t.dims.size() > 0 && t.dims[0] > 1) file.read_rows(t, 1, 2);
  } catch (const Error&) {
  }
  try {
    checkpoint::internal::rescue_safetensors(fs, "/x.safetensors", "");
  } catch (const Error&) {
  }
  return 0;
}
