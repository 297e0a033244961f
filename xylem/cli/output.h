#pragma once

#include <string_view>

namespace xylem::cli {

// Writes to standard output and flushes it. EnvironmentError if it is closed or full.
void put(std::string_view text);
// A line on standard error.
void put_error(std::string_view line);

}  // namespace xylem::cli
