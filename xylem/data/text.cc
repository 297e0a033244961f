#include "xylem/data/text.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/data/formats/internal/input_stream.h"
#include "xylem/data/formats/source.h"
#include "xylem/data/internal/run_program.h"

namespace xylem::data {
namespace {

constexpr const char* kBibleRange = "gen1:1-rev22:21";

std::string load_bible() {
  const internal::ProgramOutput r = internal::run_program({"bible", "-f", kBibleRange});
  if (!r.found)
    throw EnvironmentError(ErrorParts{
        "dataset_path=bible", "the program `bible` must be installed", "there is none on the PATH",
        "Install the Debian packages bible-kjv and bible-kjv-text (apt-get install "
        "bible-kjv bible-kjv-text), or name text files of your own"});
  if (r.exit_status != 0 || r.output.empty())
    throw EnvironmentError(ErrorParts{
        "dataset_path=bible", fmt::format("`bible -f {}` must print the text", kBibleRange),
        fmt::format("it ended with status {} after {} bytes, saying \"{}\"", r.exit_status,
                    r.output.size(), r.errors.substr(0, 200)),
        "Install the Debian packages bible-kjv and bible-kjv-text (the latter holds the text), or "
        "name text files of your own"});
  return r.output;
}

void add_directory(const std::string& path, std::vector<std::string>& files) {
  for (const DirectoryEntry& e : list_directory(path)) {
    if (e.name.front() == '.') continue;
    const std::string p = join_path(path, e.name);
    if (e.is_directory)
      add_directory(p, files);
    else
      files.push_back(p);
  }
}

void add_pattern(const std::string& pattern, std::vector<std::string>& files) {
  glob_t found = {};
  const int r = ::glob(pattern.c_str(), 0, nullptr, &found);
  for (std::size_t i = 0; r == 0 && i < found.gl_pathc; ++i) {
    const std::string path = found.gl_pathv[i];
    if (is_directory(path))
      add_directory(path, files);
    else
      files.push_back(path);
  }
  ::globfree(&found);
}

std::string_view trim(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

}  // namespace

std::vector<std::string> text_files(std::string_view dataset_path) {
  std::vector<std::string> files;
  std::string_view rest = dataset_path;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string part(trim(rest.substr(0, comma)));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (part.empty()) continue;
    const std::size_t before = files.size();
    if (is_directory(part))
      add_directory(part, files);
    else if (path_exists(part) || part.find_first_of("*?[") == std::string::npos ||
             part.find("://") != std::string::npos)
      files.push_back(part);
    else
      add_pattern(part, files);
    if (files.size() == before)
      throw_user_error({"dataset_path", "every part must name at least one file",
                        fmt::format("\"{}\" matches none", part),
                        "Check the spelling and the folder that the command runs in"});
  }
  if (files.empty())
    throw_user_error({"dataset_path", "\"bible\", or files separated by commas",
                      fmt::format("\"{}\"", dataset_path), "Set dataset_path=FILE"});
  return files;
}

std::string read_text_file(const std::string& path, std::uint64_t max_bytes) {
  const SourcePtr source = open_source(path);
  internal::InputStream stream(source, internal::detect_wrapping(*source, false));
  std::string text;
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  while (true) {
    const std::string_view piece = stream.peek(kPiece);
    if (piece.empty()) return text;
    if (piece.size() > max_bytes - text.size())
      throw_user_error({fmt::format("read {}", path), fmt::format("at most {} bytes", max_bytes),
                        "more", "Split the file, or store it as records"});
    text += piece;
    stream.consume(piece.size());
  }
}

std::vector<std::string> load_texts(std::string_view dataset_path) {
  if (trim(dataset_path) == "bible") return {load_bible()};
  std::vector<std::string> texts;
  bool empty = true;
  for (const std::string& f : text_files(dataset_path)) {
    texts.push_back(read_text_file(f));
    empty &= texts.back().empty();
  }
  if (empty)
    throw_user_error({"dataset_path", "text with at least one byte",
                      fmt::format("\"{}\" names {} empty file(s)", dataset_path, texts.size()),
                      "Name a file with text in it"});
  return texts;
}

std::string load_text(std::string_view dataset_path) {
  std::vector<std::string> texts = load_texts(dataset_path);
  std::string all = std::move(texts[0]);
  for (std::size_t i = 1; i < texts.size(); ++i) all += texts[i];
  return all;
}

TextSplit split_text(std::string_view text) {
  const std::size_t held_out = text.size() / 20;
  return {text.substr(0, text.size() - held_out), text.substr(text.size() - held_out)};
}

}  // namespace xylem::data
