#include "xylem/cli/program_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/cli/commands.h"
#include "xylem/cli/output.h"
#include "xylem/ir/bytecode.h"
#include "xylem/ir/text.h"

namespace xylem::cli {
namespace {

constexpr std::string_view kSplitMarker = "// -----";

bool is_name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '.' ||
         c == '-';
}

std::string_view skip_blanks(std::string_view s) {
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.front()))) s.remove_prefix(1);
  return s;
}

bool take_word(std::string_view& s, std::string_view word) {
  if (!s.starts_with(word) || (s.size() > word.size() && is_name_char(s[word.size()])))
    return false;
  s = skip_blanks(s.substr(word.size()));
  return true;
}

}  // namespace

ProgramFile read_program_file(const std::string& path) {
  ProgramFile file{path, read_file(path), ProgramFile::Kind::kText};
  if (ir::is_bytecode(file.bytes) || ir::is_jax_export(file.bytes))
    file.kind = ProgramFile::Kind::kBytecode;
  return file;
}

Chunk whole(const ProgramFile& file) { return {1, 1, file.bytes}; }

std::vector<Chunk> split_chunks(const ProgramFile& file) {
  if (file.kind != ProgramFile::Kind::kText) return {whole(file)};
  const std::string_view text = file.bytes;
  std::vector<Chunk> chunks;
  std::size_t begin = 0;
  int line = 1, first_line = 1;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view row = text.substr(at, end - at);
    if (row.ends_with('\r')) row.remove_suffix(1);
    if (row == kSplitMarker) {
      chunks.push_back(
          {static_cast<int>(chunks.size()) + 1, first_line, text.substr(begin, at - begin)});
      begin = std::min(end + 1, text.size());
      first_line = line + 1;
    }
    at = end + 1;
    ++line;
  }
  chunks.push_back({static_cast<int>(chunks.size()) + 1, first_line, text.substr(begin)});
  return chunks;
}

ir::Module parse_chunk(const ProgramFile& file, const Chunk& chunk, bool allow_unregistered) {
  if (file.kind == ProgramFile::Kind::kBytecode) return ir::read_bytecode(chunk.text, file.path);
  return ir::parse_stablehlo(
      chunk.text, file.path,
      {.first_line = chunk.first_line, .allow_unregistered = allow_unregistered});
}

const ir::Module::Function& entry_of(const ir::Module& module, std::string_view name) {
  std::string known;
  const ir::Module::Function* only = nullptr;
  int count = 0;
  for (const ir::Module::Function& f : module.functions) {
    if (!f.graph) continue;
    known += fmt::format("{}@{}", known.empty() ? "" : ", ", f.name);
    if (name.empty() ? f.name == "main" : f.name == name) return f;
    if (f.is_private) continue;
    only = &f;
    ++count;
  }
  if (name.empty() && count == 1) return *only;
  throw_user_error({name.empty() ? std::string("run") : fmt::format("run: --entry {}", name),
                    name.empty() ? "a function main, or one public function"
                                 : "the name of a function of the program",
                    known.empty() ? std::string("the program defines no function")
                                  : fmt::format("the program defines {}", known),
                    "Name one of them with --entry"});
}

std::vector<std::string> guess_entries(std::string_view text) {
  std::vector<std::string> names, with_arguments;
  for (std::size_t at = text.find("func"); at != std::string_view::npos;
       at = text.find("func", at + 4)) {
    if (at > 0 && is_name_char(text[at - 1])) continue;
    const std::size_t line = text.rfind('\n', at) + 1;  // 0 if there is none
    if (text.substr(line, at - line).find("//") != std::string_view::npos) continue;
    std::string_view rest = text.substr(at);
    if (!take_word(rest, "func.func") && !take_word(rest, "func")) continue;
    if (take_word(rest, "private") || take_word(rest, "nested")) continue;
    take_word(rest, "public");
    if (!rest.starts_with('@')) continue;
    rest.remove_prefix(1);
    std::size_t n = 0;
    std::string name;
    if (rest.starts_with('"')) {
      n = rest.find('"', 1);
      if (n == std::string_view::npos) continue;
      name = rest.substr(1, n - 1);
      ++n;
    } else {
      while (n < rest.size() && is_name_char(rest[n])) ++n;
      name = rest.substr(0, n);
    }
    rest = skip_blanks(rest.substr(n));
    if (!rest.starts_with('(')) continue;
    rest = skip_blanks(rest.substr(1));
    if (name == "main") return {name};
    (rest.starts_with(')') ? names : with_arguments).push_back(std::move(name));
  }
  return names.empty() ? with_arguments : names;
}

int with_diagnostics(const std::function<int()>& body) {
  try {
    return body();
  } catch (const Error& e) {
    for (const std::string& line : diagnostics_of(e.message())) put_error(line);
    return kFailed;
  }
}

std::vector<std::string> diagnostics_of(std::string_view message) {
  std::vector<std::string> lines;
  while (!message.empty()) {
    const std::size_t end = std::min(message.find('\n'), message.size());
    if (end > 0) lines.emplace_back(message.substr(0, end));
    message.remove_prefix(std::min(end + 1, message.size()));
  }
  return lines;
}

}  // namespace xylem::cli
