#include <cstdint>
#include <string_view>

#include "tests/fuzz/seeds.h"
#include "xylem/base/error.h"
#include "xylem/ir/bytecode.h"
#include "xylem/ir/text.h"
#include "xylem/ir/verify.h"

// Reading bytecode ends in a program or a UserError, with and without checks; what is read with
// checks can be written as text and as an artifact.

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  xylem::fuzz::fill_corpus(*argc, *argv, xylem::fuzz::artifacts());
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace xylem::ir;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    read_bytecode(bytes, "fuzz", {.check = false});
  } catch (const xylem::UserError&) {
  }
  try {
    Module module = read_bytecode(bytes, "fuzz");
    for (const Module::Function& f : module.functions)
      if (f.graph) verify(*f.graph);
    print_stablehlo(module);
    write_artifact(module, kCurrentVersion);
  } catch (const xylem::UserError&) {
  }
  return 0;
}
