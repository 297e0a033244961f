#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace xylem::data {

// The text that `dataset_path` names. It is either "bible", the King James Bible as printed by the
// program of Debian's packages bible-kjv and bible-kjv-text, or files separated by commas: a path,
// a pattern (*, ?, [...]) or a directory, which stands for all regular files below it. Files are
// joined in the order given, those of a pattern or directory by name. EnvironmentError if something
// cannot be read, UserError if nothing is named or all is empty.
std::string load_text(std::string_view dataset_path);
// The same, one text for each file.
std::vector<std::string> load_texts(std::string_view dataset_path);

// A file's contents, unwrapped if it begins as gzip or Zstandard does. At most `max_bytes`,
// UserError if there is more.
std::string read_text_file(const std::string& path,
                           std::uint64_t max_bytes = std::uint64_t{1} << 36);

// The files that a dataset_path other than "bible" names.
std::vector<std::string> text_files(std::string_view dataset_path);

// Training and validation part of a text: the last 1/20 of the bytes, rounded down, is held out.
struct TextSplit {
  std::string_view train, validation;
};
TextSplit split_text(std::string_view text);

}  // namespace xylem::data
