#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "xylem/ir/bytecode/byte_cursor.h"

namespace xylem::ir::bytecode {

enum class Dialect : std::uint8_t { kBuiltin, kFunc, kVhlo, kStablehlo, kChlo, kSdy, kOther };

// A part of the file, by offsets.
struct Part {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// An attribute or type as it lies in the file.
struct Entry {
  Part part;
  Dialect dialect = Dialect::kOther;
  std::uint32_t dialect_index = 0;
  bool custom = false;  // the dialect's own encoding; else assembly text
};

struct OpName {
  Dialect dialect = Dialect::kOther;
  std::uint32_t dialect_index = 0;
  std::string_view name;  // without the dialect
};

struct Resource {
  std::string_view key;
  Part data;
  bool is_blob = false;
};

// The frame of a bytecode file: everything but attributes, types and ops themselves.
struct Frame {
  std::uint64_t format = 0;
  std::string_view producer;
  std::vector<std::string_view> strings;
  std::vector<std::string_view> dialects;
  std::vector<OpName> op_names;
  std::vector<Entry> attrs, types;
  std::vector<Resource> resources;  // in the order of their handles
  std::vector<Part> properties;
  Part ir;
};

inline constexpr std::string_view kMagic = "ML\xEFR";

Frame read_frame(const Source& source);

}  // namespace xylem::ir::bytecode
