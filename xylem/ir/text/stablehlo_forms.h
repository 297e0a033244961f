#pragma once

#include <span>
#include <string_view>

namespace xylem::ir::text {

// The pretty forms of most ops are a list of operands and some "key = value" clauses:
//
//   stablehlo.pad %x, %v, low = [0], high = [0], interior = [1] : (T, U) -> V
//
// One table serves the reader and the writer.
struct Clause {
  enum class Kind { kDims, kInt, kBool, kEnum, kString };
  std::string_view key;
  std::string_view attr;
  Kind kind;
};

struct Form {
  std::string_view op;
  std::span<const Clause> clauses;
  bool parentheses = false;  // "chlo.top_k(%x, k = 3)"
};

// Null: the op has operands only.
const Form* find_form(std::string_view op);
// Ops that StableHLO prints in the generic form only.
bool is_generic_only(std::string_view op);

}  // namespace xylem::ir::text
