#pragma once

namespace xylem::cli {

// The `xylem` command. Returns the exit status: 0 done, 1 failed, 2 the command line is wrong,
// 3 training was stopped by a signal after saving. Errors go to standard error as one line.
int run(int argc, const char* const* argv);

}  // namespace xylem::cli
