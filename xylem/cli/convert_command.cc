#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/cli/commands.h"
#include "xylem/cli/output.h"
#include "xylem/cli/program_commands.h"
#include "xylem/cli/program_file.h"
#include "xylem/ir/bytecode.h"
#include "xylem/ir/text.h"

namespace xylem::cli {

namespace {

int convert(const ConvertArguments& a, std::optional<ir::Version> target) {
  const ProgramFile file = read_program_file(a.in);
  const ir::Module module = parse_chunk(file, whole(file), false);
  if (a.out.ends_with(".mlir")) {
    write_file_atomic(
        a.out, ir::print_stablehlo(module, {.generic = a.generic, .locations = !a.strip_debug}));
    return kDone;
  }
  if (!target) {
    const ir::VersionNeed need = ir::minimum_version(module);
    target = std::max(ir::kDefaultVersion, need.version);
    if (need.version > ir::kDefaultVersion)
      put_error(fmt::format("convert: target {} instead of {}: {}", target->to_string(),
                            ir::kDefaultVersion.to_string(), need.reason));
  }
  write_file_atomic(a.out, ir::write_artifact(module, *target, {.strip_debug = a.strip_debug}));
  return kDone;
}

}  // namespace

int convert_command(const ConvertArguments& a) {
  std::optional<ir::Version> target;
  if (!a.target.empty()) {
    target = ir::Version::parse(a.target);
    if (!target) {
      put_error(fmt::format("xylem: convert --target: a version like {}; {} is none. Give X.Y.Z.",
                            ir::kDefaultVersion.to_string(), a.target));
      return kUsage;
    }
  }
  return with_diagnostics([&] { return convert(a, target); });
}

}  // namespace xylem::cli
