#pragma once

#include <cstdint>
#include <vector>

#include "xylem/compiler/fusion/form.h"
#include "xylem/ir/graph.h"

namespace xylem::compiler {

// How an op's result comes about.
enum class Role : std::uint8_t {
  kInline,    // evaluated where it is used
  kMember,    // computed by a fused loop (elementwise, row-wise or reducing)
  kSpecial,   // a step of its own
  kConstant,  // lies among the program's constants
  kView,      // the same bytes as its first operand
};

// One dimension of a fused loop's space: kept or reduced.
struct Part {
  std::int64_t size = 1;
  bool reduced = false;
  friend bool operator==(const Part&, const Part&) = default;
};

// Ops that one kernel computes in one pass over one iteration space, or one special op.
struct Group {
  bool special = false;
  bool closed = false;   // takes no more ops: a reduction over nothing, whose rows are its elements
  std::vector<int> ops;  // in graph order
  std::vector<Part> space;  // kept and reduced dimensions, sizes > 1, neighbours of a kind merged
  std::int64_t total = 1;   // elements of the space
  std::int64_t outer = 1;   // elements of its kept part
  int cost = 0;             // ops per element
  std::vector<ir::ValueId> inputs;   // values read from buffers (roots)
  std::vector<ir::ValueId> outputs;  // values written to buffers
};

struct Plan {
  std::vector<Role> roles;           // per op
  std::vector<int> group_of;         // per op: index into groups, -1 for none
  std::vector<Group> groups;         // in an order of execution
  std::vector<ir::ValueId> view_of;  // per value: the value whose memory it is (itself mostly)
  std::vector<bool> row;             // per op: a member whose value spans the kept part only

  ir::ValueId root(ir::ValueId v) const { return view_of[static_cast<std::size_t>(v)]; }
};

// Decides what is fused with what. Single-use elementwise ops are evaluated inside of their
// consumer; values with several uses are computed once, in the loop of a producer where the index
// maps agree, so that no work is repeated. Linear but for dependence sets of groups.
Plan make_plan(const ir::Graph& graph);

// Whether the op is a reduction that fused loops compute (reduce, argmax, argmin).
bool is_reduction(const ir::Op& op);
Dims reduced_dims(const ir::Op& op);

// Common factors of two factorisations of one number of elements, innermost last; false if they
// do not line up. first[i], second[i]: the dimension that factor i belongs to.
bool common_factors(const Dims& a, const Dims& b, Dims* factors, std::vector<int>* first,
                    std::vector<int>* second);

}  // namespace xylem::compiler
