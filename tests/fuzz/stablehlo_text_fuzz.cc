#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/fuzz/seeds.h"
#include "xylem/base/error.h"
#include "xylem/ir/text.h"

// Reading StableHLO text ends in a program or a UserError; what is read can be written and read
// again, in both forms.

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  xylem::fuzz::fill_corpus(*argc, *argv, xylem::fuzz::stablehlo_texts());
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace xylem::ir;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  Module module;
  try {
    module = parse_stablehlo(text, "fuzz", {.allow_unregistered = size % 2 == 1});
  } catch (const xylem::UserError&) {
    return 0;
  }
  std::string printed;
  try {
    printed = print_stablehlo(module, {.generic = size % 3 == 0, .locations = true});
  } catch (const xylem::UserError&) {
    return 0;  // what is read in the native text alone
  }
  std::string again;
  try {
    again = print_stablehlo(parse_stablehlo(printed, "printed", {.allow_unregistered = true}),
                            {.generic = size % 3 == 0, .locations = true});
  } catch (const xylem::UserError& e) {
    std::fprintf(stderr, "what was printed is not read: %s\n%s\n", e.what(), printed.c_str());
    std::abort();
  }
  if (again != printed) {
    std::fprintf(stderr, "printing again differs\n%s\n----\n%s\n", printed.c_str(), again.c_str());
    std::abort();
  }
  return 0;
}
