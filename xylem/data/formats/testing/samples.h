#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "xylem/data/formats/record.h"

namespace xylem::data::testing {

// A small file of some format, made by the format's writer.
struct Sample {
  std::string name;  // a file name with its extension
  std::string format;
  std::string bytes;
  // Whether checksums cover every byte of the records.
  bool checked = false;
  std::vector<Record> records;
};

// Samples of every format of one file, with various options.
const std::vector<Sample>& samples();

// A changed copy: bits flipped, bytes set, parts cut, doubled or moved, lengths made to lie.
std::string mutate(const std::string& bytes, std::mt19937_64& rng);

// Records until the end or the first error.
struct Reading {
  std::vector<Record> records;
  std::string error;  // empty: none
};
Reading read_all(const ReaderPtr& reader);

// Opens bytes as `format` and calls every function of the reader; Errors are fine, everything else
// (other exceptions, crashes) is not. True if nothing at all was found wrong.
bool exercise(const std::string& bytes, const std::string& name, const std::string& format);

// Writes records to a new file below a temporary folder, and gives its bytes.
std::string written(const std::string& name, const WriteOptions& options,
                    const std::vector<Record>& records);

// Folder formats: files by name.
struct FolderSample {
  std::string format;
  std::map<std::string, std::string> files;
};
std::vector<FolderSample> folder_samples();
// Like `exercise`, for files below a temporary folder.
bool exercise_folder(const FolderSample& sample);

}  // namespace xylem::data::testing
