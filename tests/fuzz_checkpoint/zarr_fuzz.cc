#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tests/fuzz/corpus.h"
#include "tests/fuzz_checkpoint/seeds.h"
#include "xylem/base/error.h"
#include "xylem/checkpoint/zarr/array.h"

// Metadata of zarr 2 and 3 and the bytes of its chunks give an array or an Error; what the metadata
// says can be written and says the same. The input is the format's byte, the metadata, a zero byte,
// and what every chunk holds.

namespace {

// Any chunk has the same bytes.
class OneChunk final : public xylem::checkpoint::KvStore {
 public:
  OneChunk(std::string metadata, std::string chunk)
      : metadata_(std::move(metadata)), chunk_(std::move(chunk)) {}
  const std::string& name() const override { return name_; }
  std::optional<xylem::checkpoint::ByteSource> find(std::string_view key) const override {
    if (key == ".zarray" || key == "zarr.json") return xylem::checkpoint::ByteSource(metadata_);
    return xylem::checkpoint::ByteSource(chunk_);
  }
  void for_each(std::string_view, const std::function<void(std::string_view)>&) const override {}

 private:
  std::string name_ = "fuzz", metadata_, chunk_;
};

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  xylem::fuzz::fill_corpus(*argc, *argv, xylem::fuzz::zarr_arrays());
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace xylem;
  using namespace xylem::checkpoint;
  if (size < 1) return 0;
  const std::string_view input(reinterpret_cast<const char*>(bytes), size);
  const int format = bytes[0] % 2 == 0 ? 2 : 3;
  const std::size_t end = std::min(input.find('\0', 1), size);
  const auto store = std::make_shared<const OneChunk>(
      std::string(input.substr(1, end - 1)), std::string(input.substr(std::min(end + 1, size))));
  try {
    const auto array = zarr::ZarrArray::open(store, "", format);
    if (!array) return 0;
    // An element, and the whole where that is small.
    const zarr::Metadata& m = array->metadata();
    std::uint64_t elements = 1;
    bool empty = false;
    for (const std::int64_t d : m.shape) {
      empty = empty || d == 0;
      elements = elements > (1 << 20) ? elements : elements * static_cast<std::uint64_t>(d);
    }
    if (!empty && m.dtype) array->read(zarr::Box{Dims(m.shape.size(), 0), Dims(m.shape.size(), 1)});
    if (elements <= 4096) {
      array->check({}, [](std::string_view) {});
      if (m.dtype) array->read({.missing_is_error = true});
    }
  } catch (const Error&) {
  }
  return 0;
}
