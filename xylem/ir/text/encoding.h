#pragma once

#include <cstdint>

// The canonical encoding of graphs. All numbers are LEB128 varints, signed ones zigzagged; bytes,
// floats and array elements are little-endian.
//
//   bytes  = "XYIR" version strings types graphs
//   strings= count {length bytes}           op names, attribute names, enumeration members
//   types  = count {type}
//   graphs = count {graph}                  regions before the graphs that hold them; root last
//   graph  = params {type#} ops {op} results {value#}
//   op     = string# operands {value#} results {type#} attrs {string# attr} regions {graph#}
//
// Values are numbered in the order of their definition. Each table holds every entry once, in the
// order of first use, so equal graphs have equal bytes, whether or not they share their regions.

namespace xylem::ir::text {

inline constexpr char kEncodingMagic[4] = {'X', 'Y', 'I', 'R'};
inline constexpr std::uint8_t kEncodingVersion = 1;

// Kinds of attributes, in the order of Attr::Value.
enum class AttrTag : std::uint8_t {
  kUnit,
  kBool,
  kInt,
  kFloat,
  kString,
  kDims,
  kArray,
  kDType,
  kType,
  kEnum,
  kScalar,
  kSymbol,
  kOpaque,
  kList,
  kDict,
};
inline constexpr int kNumAttrTags = 15;

enum class ArrayForm : std::uint8_t { kUndefined, kFull, kSplat };

}  // namespace xylem::ir::text
