#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/corpus.h"
#include "tests/fuzz_checkpoint/seeds.h"
#include "xylem/base/bytes.h"
#include "xylem/base/error.h"
#include "xylem/checkpoint/storage/codec.h"

// Decoding ends in bytes or an Error, with and without the size known, and agrees. The input is a
// byte that names the codecs, and the encoded bytes.

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  xylem::fuzz::fill_corpus(*argc, *argv, xylem::fuzz::encoded_chunks());
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace xylem;
  using namespace xylem::checkpoint;
  if (size < 1) return 0;
  const auto chains = fuzz::codec_chains();
  const std::vector<Codec>& codecs = chains[bytes[0] % chains.size()];
  const std::span<const std::byte> data(reinterpret_cast<const std::byte*>(bytes + 1), size - 1);
  std::string out;
  try {
    out = decode_unsized(codecs, data, 1 << 20, "fuzz");
  } catch (const Error&) {
    return 0;
  }
  std::string again(out.size(), '\1');
  try {
    decode(codecs, data, std::as_writable_bytes(std::span<char>(again)), "fuzz");
  } catch (const Error&) {
    return 0;
  }
  if (again != out) __builtin_trap();
  return 0;
}
