#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Seeds and bodies of the fuzzers of record formats.

namespace xylem::fuzz {

// Files of a format by the library's own writer.
std::vector<std::string> record_files(std::string_view format);
// Calls every function of the reader of `format` over the bytes. Anything but an Error gets out.
void read_records(const std::uint8_t* data, std::size_t size, const std::string& format);

// Riegeli chunks as a fuzzer sees them, without hashes, which it could not guess: for each a type,
// the number of records and the decoded size (u16), the size of the data (u16), the data.
std::vector<std::string> chunk_lists(std::string_view format);
// The file of these chunks with every hash right. With `footer` the last chunk is the footer of an
// ArrayRecord file.
std::string chunk_file(const std::uint8_t* data, std::size_t size, bool footer);

// Files of a folder, each as its size (u16) and its bytes, in the order of `names`.
std::string join_files(const std::vector<std::string>& contents);
std::vector<std::string> split_files(const std::uint8_t* data, std::size_t size);

}  // namespace xylem::fuzz
