// Reads and writes artifacts for the Python suites.
//
//   bytecode_tool text FILE                 StableHLO text of FILE
//   bytecode_tool debug FILE                with its locations
//   bytecode_tool write FILE VERSION OUT    a portable artifact of FILE
//   bytecode_tool rewrite FILE VERSION OUT  the same, of bytecode whose constraints are not checked
//   bytecode_tool minimum FILE              the lowest version that can express FILE, and why
//   bytecode_tool serve                     the same, one command a line with blanks between words;
//                                           each answer ends with a line "OK" or "ERROR message"
//
// FILE is StableHLO text, bytecode, or what jax.export serialized, told by its first bytes.

#include <fmt/format.h>

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/ir/bytecode.h"
#include "xylem/ir/text.h"
#include "xylem/ir/verify.h"

namespace xylem::ir {
namespace {

void verify_all(const Module& m) {
  for (const Module::Function& f : m.functions)
    if (f.graph) verify_or_throw(*f.graph);
  for (const auto& nested : m.modules) verify_all(*nested);
}

Module load(const std::string& path) {
  std::string bytes = read_file(path);
  bool binary = is_bytecode(bytes) || is_jax_export(bytes);
  Module m = binary ? read_bytecode(bytes, path) : parse_stablehlo(bytes, path);
  verify_all(m);
  return m;
}

std::string run(const std::vector<std::string>& args) {
  const std::string command = args.empty() ? "" : args[0];
  if (command == "text" && args.size() == 2) return print_stablehlo(load(args[1]));
  if (command == "debug" && args.size() == 2) {
    PrintOptions options;
    options.locations = true;
    return print_stablehlo(load(args[1]), options);
  }
  if (command == "write" && args.size() == 4) {
    std::optional<Version> version = Version::parse(args[2]);
    if (!version)
      throw UserError(ErrorParts{"bytecode_tool", "a version X.Y.Z", args[2], "Give one"});
    write_file(args[3], write_artifact(load(args[1]), *version));
    return "";
  }
  if (command == "rewrite" && args.size() == 4) {
    BytecodeOptions options;
    options.check = false;
    Module m = read_bytecode(read_file(args[1]), args[1], options);
    write_file(args[3], write_artifact(m, Version::parse(args[2]).value()));
    return print_stablehlo(m);
  }
  if (command == "minimum" && args.size() == 2) {
    VersionNeed need = minimum_version(load(args[1]));
    return fmt::format("{} {}\n", need.version.to_string(), need.reason);
  }
  throw UserError(ErrorParts{"bytecode_tool", "a command of this tool", command, "See its source"});
}

int serve() {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::vector<std::string> args;
    for (std::string w; words >> w;) args.push_back(w);
    try {
      std::cout << run(args) << "OK" << std::endl;
    } catch (const Error& e) {
      std::string message = e.what();
      for (char& c : message)
        if (c == '\n') c = '|';
      std::cout << "ERROR " << message << std::endl;
    }
  }
  return 0;
}

}  // namespace
}  // namespace xylem::ir

int main(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() == 1 && args[0] == "serve") return xylem::ir::serve();
  try {
    std::cout << xylem::ir::run(args);
    return 0;
  } catch (const xylem::Error& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
