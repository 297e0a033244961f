#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/ir/graph.h"
#include "xylem/ir/op_def.h"

// How StableHLO's attributes map to ours. Ours differ in three ways: structures
// ("dot_dimension_numbers = #stablehlo.dot<…>") are flat, one attribute per field; what only the
// result type says in StableHLO (broadcast's shape, convert's element type) is an attribute
// ("shape", "result_dtype"); "num_captures" counts the operands that regions capture.

namespace xylem::ir::text {

struct StructureField {
  std::string_view name;
  bool integer = false;  // else a list of dimensions
};

// A structure attribute of one op.
struct Structure {
  std::string_view op;        // "stablehlo.gather"
  std::string_view attr;      // "dimension_numbers"
  std::string_view mnemonic;  // "gather" of "#stablehlo.gather<…>"
  std::vector<StructureField> fields;
};

// Marks the graph of a foreign op's region that was written without a terminator.
inline constexpr std::string_view kOpenRegion = "xylem.open";

// Marks the graph of a function that is only declared: its one op, a foreign one, stands for the
// results.
inline constexpr std::string_view kDeclaration = "xylem.declaration";
inline bool is_declaration(const Graph& g) { return g.attrs.has(kDeclaration); }

// The functions that an op's attributes name, in the order of the regions that stand for them:
// composite's decomposition, custom_call's called computations, run_parallel's programs and infeed.
// These regions come before the op's own.
std::vector<std::string> referenced_functions(const OpDef& def, const Attrs& attrs);

// Null if the op has none.
const Structure* find_structure(std::string_view op);

// Attributes that StableHLO text does not write: "shape", "result_dtype", "result_types",
// "num_captures".
bool is_derived(std::string_view attr);

// Whether an attribute belongs to the op's own ones, in StableHLO's spelling or ours.
bool is_inherent(const OpDef& def, std::string_view attr);

// Turns attributes as read into those of the op table: structures become flat, lists and older
// spellings get the kind that the op wants, required derived ones are taken from the result types.
// `fail` is called with (expected, given) if a value has another kind.
using AttrFail = std::function<void(std::string_view, std::string_view)>;
Attrs to_inherent(const OpDef& def, Attrs attrs, std::span<const Type> results,
                  const AttrFail& fail);

// The value with the kind that an attribute has; false if it cannot have that.
bool to_kind(AttrKind kind, Attr& a);

// Sets an optional "result_dtype" from the result types; true if the op has it.
bool derive_result_dtype(const OpDef& def, Attrs& attrs, std::span<const Type> results);
// Whether the written result types agree with the inferred ones. If they say more (quantisation,
// sizes, bounds) they become "result_types", which the op's rule is then held against: throws
// ConstraintError if that fails.
bool refine_result_types(const OpDef& def, Attrs& attrs, std::span<const Type> operands,
                         std::span<const GraphPtr> regions, const std::vector<Type>& written,
                         const std::vector<Type>& inferred);
// Sets "result_types" to these types.
void set_result_types(Attrs& attrs, std::span<const Type> results);

// Appends a discardable attribute's value as MLIR text.
void append_mlir_attr(std::string& out, const Attr& attr);
// Appends "name = value" of an inherent attribute as the generic form has it; a unit attribute's
// name alone.
void append_inherent_attr(std::string& out, const OpDef& def, std::string_view name,
                          const Attr& attr);
// The inherent attributes in the generic form's spelling, "<{…}>", or nothing.
void append_properties(std::string& out, const OpDef& def, const Attrs& attrs);
void append_mlir_name(std::string& out, std::string_view name);  // quoted unless plain
void append_symbol(std::string& out, std::string_view name);     // "@f", "@\"a b\""
// "dense<…> : tensor<…>". More than `max_listed` elements (< 0: no limit) are written as bytes.
void append_dense(std::string& out, const HostArray& a, const Type& type,
                  std::int64_t max_listed = 100);

}  // namespace xylem::ir::text
