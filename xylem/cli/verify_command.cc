#include <string>

#include "xylem/base/error.h"
#include "xylem/cli/commands.h"
#include "xylem/cli/output.h"
#include "xylem/cli/program_commands.h"
#include "xylem/cli/program_file.h"

namespace xylem::cli {

int verify_command(const VerifyArguments& a) {
  bool failed = false;
  for (const std::string& path : a.files) {
    ProgramFile file;
    try {
      file = read_program_file(path);
    } catch (const Error& e) {
      failed = true;
      put_error("xylem: " + e.message());
      continue;
    }
    for (const Chunk& chunk : a.split ? split_chunks(file) : std::vector<Chunk>{whole(file)}) {
      try {
        parse_chunk(file, chunk, a.allow_unregistered);
      } catch (const UserError& e) {
        failed = true;
        std::string text;
        for (const std::string& line : diagnostics_of(e.message())) text += line + "\n";
        put(text);
      }
    }
  }
  return failed ? kFailed : kDone;
}

}  // namespace xylem::cli
