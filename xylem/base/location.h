#pragma once

#include <source_location>
#include <string>

namespace xylem {

// A place in user code: file and line of the call that made an op. Cheap to copy: the strings are
// those of the compiler and live as long as the program.
struct SourceLoc {
  const char* file = nullptr;
  const char* function = nullptr;
  int line = 0;
  int column = 0;

  SourceLoc() = default;
  // Implicit, so that a default argument captures the caller.
  SourceLoc(const std::source_location& s)
      : file(s.file_name()),
        function(s.function_name()),
        line(static_cast<int>(s.line())),
        column(static_cast<int>(s.column())) {}

  static SourceLoc current(const std::source_location s = std::source_location::current()) {
    return SourceLoc(s);
  }

  bool known() const { return file != nullptr && line > 0; }
  // "dir/file.cc:12", or "unknown location".
  std::string to_string() const;
};

}  // namespace xylem
