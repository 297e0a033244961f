#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "xylem/ir/bytecode.h"
#include "xylem/ir/graph.h"

namespace xylem::ir::bytecode {

// How VHLO stores an attribute of an op, and what StableHLO has instead.
enum class Coding : std::uint8_t {
  kDims,           // tensor<Nxi64>; a list of integers
  kBools,          // tensor<Nxi1>; a list of 0 and 1
  kElements,       // a tensor; a dense array
  kReplicaGroups,  // a tensor, or axes of a mesh
  kInt,            // i64
  kInt32,          // i32
  kBool,           // bool
  kFlag,           // bool; true or absent
  kFloat32,        // f32
  kString,         // string
  kConfig,         // string or dictionary
  kSymbol,         // string; symbol
  kSymbols,        // array of strings; list of symbols
  kEnum,           // member of an enumeration
  kEnums,          // array of such
  kIndexTensors,   // array of tensors of index; list of dense arrays
  kList,           // array of other attributes
  kDict,           // dictionary
  kAliases,        // array of output_operand_alias
  kAccuracy,       // result_accuracy
  kChannelId,      // i64; field of #stablehlo.channel_handle
  kChannelType,
  kAlgorithmType,  // type, none if there is no algorithm; fields of #stablehlo.dot_algorithm
  kAlgorithmInt,
  kAlgorithmBool,
  kDummyPadding,  // zeros that StableHLO does not have
};

// What stands in VHLO where StableHLO leaves an attribute out. Values equal to it are dropped on
// reading.
enum class Absent : std::uint8_t {
  kRequired,  // it cannot be left out
  kZero,      // 0, false, "", no elements, the enumeration's first member
  kOnes,      // 1 for every spatial dimension
  kZeros,     // 0 (0 and 0 for padding) for every spatial dimension
  kMinusOne,
  kTwoDefaults,  // [DEFAULT, DEFAULT]
  kOriginal,     // API_VERSION_ORIGINAL
  kKeptOnes,     // as kOnes, but never dropped on reading
};

struct AttrForm {
  std::string_view name;  // VHLO's
  Coding coding;
  Absent absent = Absent::kRequired;
  // StableHLO's attribute, if the name differs: a structure that holds several.
  std::string_view structure = {};
  std::string_view enumeration = {};  // mnemonic
  Version since = kMinimumVersion;
  Version until = kCurrentVersion;
};

// The forms of one op in VHLO. "stablehlo.gather" is vhlo.gather_v1 up to the first revision,
// vhlo.gather_v2 from there on.
struct OpForm {
  std::string_view name;        // "stablehlo.gather"
  std::vector<AttrForm> attrs;  // by name, as property records have them
  Version since = kMinimumVersion;
  std::vector<Version> revisions;
  // What a program may not use before the first revision, and cannot be told from attributes.
  enum class Limit : std::uint8_t { kNone, kOneOperand, kNoRegions } before = Limit::kNone;
  // Reducers may widen the element type from 0.17.0 on.
  bool promotes = false;

  // "gather" of vhlo.gather_v2.
  std::string_view vhlo_name() const { return name.substr(name.find('.') + 1); }
  int revision(Version v) const;  // number behind "_v"
  bool has(const AttrForm& a, Version v) const { return a.since <= v && v <= a.until; }
};

std::span<const OpForm> op_forms();
// Null if VHLO has no such op.
const OpForm* find_form(std::string_view op);
// By VHLO's name without the version ("gather").
const OpForm* find_vhlo_form(std::string_view name);

// Attributes of ops in the property records of plain bytecode, in their order there. `optional`
// ones may be absent; records of older versions lack the `added` ones altogether.
struct PlainAttr {
  std::string_view name;
  bool optional = false;
  bool added = false;
};
// Null if the op is unknown. Ops without attributes have an empty list.
const std::vector<PlainAttr>* plain_attrs(std::string_view op);

// CHLO ops that serializers keep as composites of this name; the others are spelled out.
bool is_composite_chlo(std::string_view op);

}  // namespace xylem::ir::bytecode
