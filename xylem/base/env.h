#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace xylem {

// Value of an environment variable; nothing if unset or empty.
std::optional<std::string> env_string(const char* name);
// The same as an integer; UserError if it is not one, or lies outside [min, max].
std::optional<std::int64_t> env_int(const char* name, std::int64_t min, std::int64_t max);
// True for 1, true, yes, on; false for unset, 0, false, no, off; UserError otherwise.
bool env_flag(const char* name);

// Whether XYLEM_LOG names the category (`XYLEM_LOG=compile,donation`; `all` names every one). Cheap
// when nothing is logged. Thread-safe.
bool log_enabled(std::string_view category);
// Writes "xylem[category]: text" and a line end to standard error, in one piece. Does not ask
// log_enabled. Thread-safe.
void log_line(std::string_view category, std::string_view text);

// Replaces what XYLEM_LOG says.
void set_log_categories(std::string_view categories);
// Sends lines (without their end) to `sink` instead of standard error; null restores it. For tests.
void set_log_sink(void (*sink)(std::string_view line));

}  // namespace xylem
