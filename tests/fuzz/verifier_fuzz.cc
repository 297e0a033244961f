#include <cstdint>
#include <string_view>

#include "tests/fuzz/seeds.h"
#include "xylem/base/error.h"
#include "xylem/ir/text.h"
#include "xylem/ir/verify.h"

// Native text holds graphs that no rule has checked: the verifier takes all of them, and what it
// accepts can be encoded and decoded.

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  xylem::fuzz::fill_corpus(*argc, *argv, xylem::fuzz::native_texts());
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace xylem::ir;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    GraphPtr g = parse_graph(text, "fuzz");
    if (!verify(*g).empty()) return 0;
    GraphPtr back = decode(encode(*g));
    if (!structurally_equal(*g, *back)) __builtin_trap();
  } catch (const xylem::UserError&) {
  }
  return 0;
}
