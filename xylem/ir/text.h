#pragma once

#include <string>
#include <string_view>

#include "xylem/base/host_array.h"
#include "xylem/ir/graph.h"

namespace xylem::ir {

// Native text. Every op, attribute, type and region has one uniform form; printing and reading
// give an equal graph. `locations` adds `loc("file":line)` to ops.
std::string print(const Graph& graph, bool locations = false);
std::string print(const Module& module, bool locations = false);
// Throws UserError "FILE:LINE:COL: error: …".
GraphPtr parse_graph(std::string_view text, std::string_view file = "<text>");
Module parse_module(std::string_view text, std::string_view file = "<text>");
// One type or attribute as Type::to_string and Attr::to_string print it.
Type parse_type(std::string_view text);
Attr parse_attr(std::string_view text);

// StableHLO text, as the real parser accepts it. The module must hold no xylem.* ops but
// xylem.call, and no key or float0 values (legalise first; UserError otherwise). Captures of
// regions become uses of outer values on writing and are made explicit on reading, in the order of
// their first use; regions of xylem.call become private functions, and calls are read as
// xylem.call.
//
// Reading accepts pretty and generic forms. Attributes that an op does not know are kept. Errors of
// form end reading; errors of meaning (constraints, types that disagree) are all told, one a line,
// each "FILE:LINE:COL: error: …". Ops without a location get the line of the text.
struct ParseOptions {
  int first_line = 1;               // of the text in its file, for diagnostics
  bool allow_unregistered = false;  // ops and types of unknown dialects are carried (kForeign)
};
Module parse_stablehlo(std::string_view text, std::string_view file = "<text>",
                       const ParseOptions& options = {});

struct PrintOptions {
  bool generic = false;    // every op in the generic form, the module and functions too
  bool locations = false;  // `loc(…)` of what has a location that is not just its place in a text
};
std::string print_stablehlo(const Module& module, const PrintOptions& options = {});

// "dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>": elements of any number in decimal (NaN and
// infinities as bit patterns), one for equal ones.
std::string print_dense(const HostArray& array, const Type& type);

// Canonical bytes of a graph without locations and names: equal for structurally equal graphs.
// Used as key and to hand programs to the code generator.
std::string encode(const Graph& graph);
// Throws UserError on damaged bytes.
GraphPtr decode(std::string_view bytes);

}  // namespace xylem::ir
