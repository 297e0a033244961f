#include "xylem/cli/output.h"

#include <cstdio>

#include "xylem/base/error.h"

namespace xylem::cli {

void put(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw EnvironmentError(ErrorParts{"xylem", "standard output must take the text",
                                      "it is closed or full", "Send the output somewhere else"});
}

void put_error(std::string_view line) {
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fputc('\n', stderr);
}

}  // namespace xylem::cli
