#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xylem/data/formats/value.h"

// Arrays of .npy files whose elements may also be text, bytes, times or structures.

namespace xylem::data::internal {

// The type of an element. `numpy` is NumPy's text for plain numbers ("<f4").
struct NpyType {
  struct Field;
  enum class Kind { kNumber, kText, kBytes, kTime, kFields };
  Kind kind = Kind::kNumber;
  std::string numpy;
  std::size_t size = 0;  // bytes
  bool swap = false;     // big-endian text or time
  std::vector<Field> fields;
  std::vector<std::int64_t> dims;  // of a field that is an array itself
};
struct NpyType::Field {
  std::string name;
  NpyType type;
};

struct NpyHeader {
  NpyType type;
  bool fortran = false;
  std::vector<std::int64_t> dims;
  std::uint64_t data_begin = 0;
  std::uint64_t elements(std::size_t from_axis) const;  // product of dims from that axis on
};

// Parses what a file begins with; `head` holds at least the header, or the first 1 MiB.
// UserError, opened by `name`.
NpyHeader parse_npy_header(std::string_view head, std::string_view name);
// Elements as a value of shape `dims`: an array of numbers, else lists of text, bytes, fields.
Value npy_value(const NpyType& type, const std::vector<std::int64_t>& dims, std::string_view data,
                std::string_view name);
// "float32[2,3]" for people.
std::string npy_type_text(const NpyHeader& h);

}  // namespace xylem::data::internal
