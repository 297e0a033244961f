#pragma once

#include <string_view>

namespace xylem::cli {

// Writes to standard output and flushes it. EnvironmentError if it is closed or full.
void put(std::string_view text);
// Sends what stdio still holds of standard output. EnvironmentError if any of it was lost.
void flush();
// A line on standard error.
void put_error(std::string_view line);

}  // namespace xylem::cli
