#pragma once

#include <string>
#include <vector>

namespace xylem::data::internal {

struct ProgramOutput {
  bool found = true;    // false: no such program on the PATH
  int exit_status = 0;  // 128 + signal if a signal ended it
  std::string output, errors;
};

// Runs a program by name (looked up on the PATH, no shell) to its end and collects what it writes.
// EnvironmentError if the system cannot start a process.
ProgramOutput run_program(const std::vector<std::string>& arguments);

}  // namespace xylem::data::internal
