#pragma once

#include <string>
#include <vector>

namespace xylem::cli {

struct RunArguments {
  std::string file, backend = "cpu", entry, output_dir, probe_dir;
  std::vector<std::string> inputs;
  int time = 0;
  bool split = false;
};

struct VerifyArguments {
  std::vector<std::string> files;
  bool split = false, allow_unregistered = false;
};

struct ConvertArguments {
  std::string in, out, target;
  bool generic = false, strip_debug = false;
};

struct InspectArguments {
  std::string file, html;
  bool json = false, dot = false;
};

// Each returns the exit status and throws Error.
int run_command(const RunArguments& arguments);
int verify_command(const VerifyArguments& arguments);
int convert_command(const ConvertArguments& arguments);
int inspect_command(const InspectArguments& arguments);

}  // namespace xylem::cli
