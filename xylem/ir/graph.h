#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/base/location.h"
#include "xylem/base/small_vec.h"
#include "xylem/ir/attr.h"
#include "xylem/ir/type.h"

namespace xylem::ir {

struct OpDef;
class Graph;
using GraphPtr = std::shared_ptr<const Graph>;

// A value of a graph: an index into `Graph::values`.
using ValueId = std::int32_t;
inline constexpr ValueId kNoValue = -1;
using ValueIds = SmallVec<ValueId, 4>;

// Where an op came from. Strings are interned; never part of keys or of equality.
struct Location {
  SourceLoc source;       // user file and line
  std::string_view path;  // "decoder.layers[3]" or a name location
  // Behind "loc(" as MLIR text had it, aliases replaced; empty if it came from elsewhere.
  std::string_view mlir;
  bool implied = false;  // `source` is only the place in the text that was read

  Location() = default;
  Location(const SourceLoc& s) : source(s) {}
  Location(const SourceLoc& s, std::string_view p) : source(s), path(p) {}
};

struct Value {
  Type type;
  std::int32_t def = -1;   // index of the op that makes it; -1: parameter of the graph
  std::int32_t index = 0;  // which result, or which parameter
  std::shared_ptr<const std::string> sharding;  // annotation, null when none
};

// One operation. Inherent attributes and discardable ones share `attrs`; the op's definition says
// which names are inherent.
struct Op {
  const OpDef* def = nullptr;
  ValueIds operands;
  ValueIds results;
  Attrs attrs;
  std::vector<GraphPtr> regions;
  Location loc;
};

// Locations of a graph besides those of its ops, as far as MLIR text gave them.
struct GraphLocations {
  Location graph;
  Location terminator;
  std::vector<Location> params;  // empty, or one per parameter
};

// A function in SSA form: parameters, ops in an order in which every operand is defined before its
// use, results. Regions are closed: a region is a graph of its own that sees nothing but its
// parameters; what it needs from outside is an explicit operand of the op (a capture), given
// behind the region's own arguments.
//
// Invariants (checked by `verify`): values[i].def/index name the op and result (or parameter)
// that define value i; every value is defined once; types agree with each op's shape rule.
//
// Graphs are built once (by Builder, a reader or a pass) and immutable afterwards, shared by
// GraphPtr; every transformation makes a new graph. Thread safe when immutable.
class Graph {
 public:
  std::string name;
  std::vector<Value> values;
  std::vector<ValueId> params;
  std::vector<Op> ops;
  std::vector<ValueId> results;
  Attrs attrs;
  std::vector<Attrs> param_attrs;                   // empty, or one per parameter
  std::vector<Attrs> result_attrs;                  // empty, or one per result
  std::shared_ptr<const GraphLocations> locations;  // null: none

  const Type& type(ValueId v) const { return values[static_cast<std::size_t>(v)].type; }
  const Value& value(ValueId v) const { return values[static_cast<std::size_t>(v)]; }
  // The op that defines v, null for a parameter.
  const Op* def(ValueId v) const {
    std::int32_t d = value(v).def;
    return d < 0 ? nullptr : &ops[static_cast<std::size_t>(d)];
  }
  std::vector<Type> param_types() const;
  std::vector<Type> result_types() const;
  // Native text.
  std::string to_string() const;
};

// A program: named graphs ("main" is the entry) and attributes. Calls refer to graphs by symbol.
struct Module {
  std::string name;
  Attrs attrs;
  struct Function {
    std::string name;
    bool is_private = false;
    GraphPtr graph;  // null: a declaration
  };
  std::vector<Function> functions;
  std::vector<std::shared_ptr<const Module>> modules;  // nested ones; calls stay within a module
  Location loc;

  const Function* find(std::string_view symbol) const;
};

// Same ops, attributes, types and structure, whatever the locations and graph names.
bool structurally_equal(const Graph& a, const Graph& b);
// Equal for structurally equal graphs.
std::uint64_t structural_hash(const Graph& g);

}  // namespace xylem::ir
