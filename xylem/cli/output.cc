#include "xylem/cli/output.h"

#include <cstdio>

#include "xylem/base/error.h"

namespace xylem::cli {

namespace {

[[noreturn]] void refused() {
  throw EnvironmentError(ErrorParts{"print", "standard output must take the text",
                                    "it is closed or full", "Send the output somewhere else"});
}

}  // namespace

void put(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    refused();
}

void flush() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) refused();
}

void put_error(std::string_view line) {
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fputc('\n', stderr);
}

}  // namespace xylem::cli
