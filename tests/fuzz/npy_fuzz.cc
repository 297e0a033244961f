#include <cstdint>
#include <optional>
#include <span>

#include "tests/fuzz/seeds.h"
#include "xylem/base/error.h"
#include "xylem/base/npy.h"

// Reading .npy bytes ends in an array or a UserError; an array that is read is written and read
// again with equal bytes.

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  xylem::fuzz::fill_corpus(*argc, *argv, xylem::fuzz::npy_files());
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace xylem;
  std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  for (std::optional<DType> raw : {std::optional<DType>(), std::optional<DType>(DType::kI4)}) {
    try {
      HostArray a = parse_npy(bytes, "fuzz", raw);
      std::string first = format_npy(a);
      HostArray b = parse_npy(std::as_bytes(std::span<const char>(first)), "again", a.dtype());
      if (format_npy(b) != first) __builtin_trap();
    } catch (const UserError&) {
    }
  }
  return 0;
}
