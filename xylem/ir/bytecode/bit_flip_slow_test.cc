#include <gtest/gtest.h>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/ir/bytecode.h"
#include "xylem/ir/text.h"
#include "xylem/ir/verify.h"

// Every prefix and every single flipped bit of some artifacts: reading ends in a program, which can
// be verified and written, or a UserError.

namespace xylem::ir {
namespace {

void read(std::string_view bytes) {
  try {
    Module m = read_bytecode(bytes, "x.bc");
    for (const Module::Function& f : m.functions)
      if (f.graph) verify(*f.graph);
    print_stablehlo(m);
    write_artifact(m, kCurrentVersion);
  } catch (const UserError&) {
  }
}

TEST(BitFlipSlowTest, FlippedBitsAndPrefixesOfArtifacts) {
  for (const char* name : {"control.0.9.0.bc", "control.0.12.0.bc", "control.1.17.0.bc",
                           "control.plain.bc", "mixed.bc", "mixed.plain.bc", "control.export"}) {
    SCOPED_TRACE(name);
    std::string bytes =
        read_file(std::string(XYLEM_SOURCE_DIR "/xylem/ir/bytecode/testdata/") + name);
    for (std::size_t n = 0; n < bytes.size(); ++n) read(std::string_view(bytes).substr(0, n));
    for (std::size_t i = 0; i < bytes.size(); ++i)
      for (int bit = 0; bit < 8; ++bit) {
        bytes[i] = static_cast<char>(bytes[i] ^ 1 << bit);
        read(bytes);
        bytes[i] = static_cast<char>(bytes[i] ^ 1 << bit);
      }
  }
}

}  // namespace
}  // namespace xylem::ir
