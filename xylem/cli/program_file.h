#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/ir/graph.h"

namespace xylem::cli {

// A program as it lies in a file: StableHLO text, a portable artifact or other MLIR bytecode, or
// what jax.export wrote. Told by the first bytes.
struct ProgramFile {
  std::string path;
  std::string bytes;
  enum class Kind { kText, kBytecode } kind = Kind::kText;
};

// EnvironmentError if the file cannot be read.
ProgramFile read_program_file(const std::string& path);

// One of the pieces between lines that are exactly "// -----".
struct Chunk {
  int number = 1;      // from 1
  int first_line = 1;  // of the file
  std::string_view text;
};

// The file's pieces, one for bytecode. Views of `file`.
std::vector<Chunk> split_chunks(const ProgramFile& file);

// The whole file as one piece.
Chunk whole(const ProgramFile& file);

// Reads and checks a piece. UserError with a line "FILE:LINE:COL: error: …" for every diagnostic.
ir::Module parse_chunk(const ProgramFile& file, const Chunk& chunk, bool allow_unregistered);

// The function that `xylem run` takes: the one named, else "main", else the only public one.
// UserError if there is none.
const ir::Module::Function& entry_of(const ir::Module& module, std::string_view name);

// "main" where it is defined, else every public function of a text that takes no arguments, else
// the other public ones: found without parsing, for texts that do not parse.
std::vector<std::string> guess_entries(std::string_view text);

// Runs `body`; what it throws goes to standard error, a line for every diagnostic, and gives
// status 1.
int with_diagnostics(const std::function<int()>& body);

// The diagnostics of an error, one a line.
std::vector<std::string> diagnostics_of(std::string_view message);

}  // namespace xylem::cli
