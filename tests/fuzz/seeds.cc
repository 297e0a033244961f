#include "tests/fuzz/seeds.h"

#include "xylem/base/dtype.h"
#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/base/npy.h"
#include "xylem/ir/bytecode.h"
#include "xylem/ir/testing/random_program.h"
#include "xylem/ir/testing/text_samples.h"
#include "xylem/ir/text.h"

namespace xylem::fuzz {
namespace {

std::vector<ir::Module> modules() {
  std::vector<ir::Module> out;
  auto add = [&](const ir::GraphPtr& g) {
    ir::Module m;
    m.functions.push_back({"main", false, g});
    out.push_back(std::move(m));
  };
  for (const ir::GraphPtr& g : ir::testing::stablehlo_samples()) add(g);
  for (std::uint64_t seed = 1; seed <= 24; ++seed)
    add(ir::testing::random_program(seed, {.exact = seed % 2 == 0, .num_ops = 6}));
  return out;
}

// What a writer refuses is no seed of its reader.
template <class Write>
void add(std::vector<std::string>& out, const Write& write) {
  try {
    out.push_back(write());
  } catch (const UserError&) {
  }
}

}  // namespace

std::vector<std::string> stablehlo_texts() {
  std::vector<std::string> out;
  for (const ir::Module& m : modules()) {
    add(out, [&] { return ir::print_stablehlo(m); });
    add(out, [&] { return ir::print_stablehlo(m, {.generic = true, .locations = true}); });
  }
  for (const char* name : {"control.0.9.0.bc", "mixed.bc", "control.export"})
    add(out, [&] {
      return ir::print_stablehlo(ir::read_bytecode(
          read_file(std::string(XYLEM_SOURCE_DIR "/xylem/ir/bytecode/testdata/") + name)));
    });
  return out;
}

std::vector<std::string> native_texts() {
  std::vector<std::string> out;
  for (const ir::GraphPtr& g : ir::testing::sample_graphs()) out.push_back(ir::print(*g, true));
  for (std::uint64_t seed = 1; seed <= 16; ++seed)
    out.push_back(ir::print(*ir::testing::random_program(seed, {.num_ops = 8})));
  return out;
}

std::vector<std::string> artifacts() {
  std::vector<std::string> out;
  for (const char* name : {"control.0.9.0.bc", "control.0.14.0.bc", "control.1.17.0.bc",
                           "control.plain.bc", "mixed.bc", "mixed.plain.bc", "control.export"})
    add(out, [&] {
      return read_file(std::string(XYLEM_SOURCE_DIR "/xylem/ir/bytecode/testdata/") + name);
    });
  for (const ir::Module& m : modules())
    for (ir::Version v : {ir::kMinimumVersion, ir::kDefaultVersion, ir::kCurrentVersion})
      add(out, [&] { return ir::write_artifact(m, v); });
  return out;
}

std::vector<std::string> npy_files() {
  std::vector<std::string> out;
  for (int d = 0; d < kNumDTypes; ++d)
    for (const Dims& dims : {Dims{}, Dims{3}, Dims{2, 0, 4}})
      add(out, [&] { return format_npy(HostArray(static_cast<DType>(d), dims)); });
  for (const char* head : {"{'descr': '>f4', 'fortran_order': True, 'shape': (2, 3), }",
                           "{'descr': '|b1', 'fortran_order': False, 'shape': (1,), }"}) {
    std::string h = head;
    h.resize(64 - 12 - 1, ' ');
    h += '\n';
    std::string file("\x93NUMPY\x02\x00", 8);
    file += static_cast<char>(h.size());
    file += std::string(3, '\0') + h + std::string(24, '\1');
    out.push_back(file);
  }
  return out;
}

}  // namespace xylem::fuzz
