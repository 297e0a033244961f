#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/base/host_array.h"
#include "xylem/ir/graph.h"

namespace xylem::ir {

// What passes ask about an op instead of listing opcodes.
enum Trait : std::uint32_t {
  kPointwise = 1u << 0,    // operands and results have one shape; element i depends on elements i
  kCommutative = 1u << 1,  // of two operands
  kAssociative = 1u << 2,  // up to rounding; may be reordered by reductions
  kEffect = 1u << 3,       // reads or writes state: keeps its order, is never removed or merged
  kConstant = 1u << 4,     // no operands, one result, the value is attribute "value"
  kStructural = 1u << 5,   // moves elements without arithmetic (reshape, transpose, slice, …)
  kControlFlow = 1u << 6,  // regions executed zero or more times
  kLinear = 1u << 7,       // linear in all operands together
  kIdempotent = 1u << 8,   // op(op(x)) == op(x)
  kTranscendental = 1u << 9,  // result within a stated error bound rather than exact
  kExact = 1u << 10,          // correctly rounded: bit-equal on interpreter and compiler
  kXylem = 1u << 11,          // not StableHLO or CHLO: legalised before export
  kKernelOnly = 1u << 12,     // only in kernel bodies
};

enum class AttrKind : std::uint8_t {
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
  kSymbol,
  kList,
  kDict,
  kAny,
};

struct AttrDef {
  std::string_view name;
  AttrKind kind = AttrKind::kAny;
  bool required = true;
  // Members of an enumeration, separated by blanks.
  std::string_view members = {};
};

// A call of an op before it stands in a graph: what shape rules see.
struct OpCall {
  const OpDef& def;
  std::span<const Type> operands;
  const Attrs& attrs;
  std::span<const GraphPtr> regions;
  Location loc;

  // Throws ConstraintError with StableHLO's label ("add_c1").
  [[noreturn]] void fail(std::string_view label, std::string_view expected, std::string_view given,
                         std::string_view advice) const;
};

class Process;

// Runs a region on values; given to reference evaluations.
class RegionRunner {
 public:
  virtual ~RegionRunner() = default;
  virtual std::vector<HostArray> run(const Graph& region, std::span<const HostArray> args) = 0;
  // What ops with effects reach: queues, other processes, probes. Null outside of the interpreter.
  virtual Process* process() { return nullptr; }
};

// What a reference evaluation sees. Tuples stand as their elements one after the other, nested
// ones too, so operands and result types hold no tuples. A token is any array; a quantised tensor
// is an array of its storage type.
struct EvalCall {
  const Op& op;
  std::span<const HostArray> operands;  // contiguous
  std::span<const Type> result_types;
  RegionRunner& regions;
  std::span<const Type> operand_types = {};  // as recorded, with tuples; empty in folding passes
};

// How the dimensions of operands and results belong together. Each factor is one loop of the op:
// result and operand dimensions carry the index of their factor, or -1 where a dimension is
// indexed in another way (broadcast size 1, gathered, cut).
struct DimMap {
  enum class FactorKind : std::uint8_t {
    kParallel,  // independent iterations
    kReduced,   // combined into the result
    kOpaque,    // must be whole on every participant (sorted, sliced, padded, …)
  };
  struct Factor {
    FactorKind kind = FactorKind::kParallel;
    std::int64_t size = 0;
  };
  std::vector<Factor> factors;
  std::vector<Dims> operands;  // per operand, per dimension: factor or -1
  std::vector<Dims> results;
};

// Conventions for inherent attributes that StableHLO's text does not print:
//   `shape` (kDims) and `result_dtype` (kDType) give the part of a result type that does not
//   follow from the operands: broadcast_in_dim {broadcast_dimensions, shape}, reshape {shape},
//   iota {iota_dimension, shape, result_dtype}, convert {result_dtype}, bitcast_convert
//   {result_dtype}, dot_general {…, result_dtype optional}, rng_bit_generator {…, shape,
//   result_dtype}.
//   `result_types` (kList of types) are the whole result types: of ops whose results do not follow
//   from the operands (custom_call, infeed, dynamic_reshape, …), and of any other op whose written
//   types say more than the inferred ones (quantisation, sizes known statically, bounds).
//   `num_captures` (kInt, optional, 0): how many trailing operands of an op with regions are
//   captures, passed to every region behind its own arguments.

// Result types; checks every constraint of the op. Throws ConstraintError.
using ShapeRule = std::vector<Type> (*)(const OpCall&);
// Reference evaluation: slow and obvious. Results have the types of `result_types`.
using EvalRule = std::vector<HostArray> (*)(const EvalCall&);
using DimRule = DimMap (*)(const OpCall&, std::span<const Type> results);
class Builder;
// Appends simpler ops with the meaning of `op` to the builder and gives the results; `operands`
// are values of the builder.
using ExpandRule = std::vector<ValueId> (*)(Builder& b, const Op& op,
                                            std::span<const ValueId> operands);

// Which quantised tensors an op takes. Such an op is checked on the expressed types, then by the
// rule of quantised types (quant.h), and evaluated by dequantising, computing, quantising.
enum class QuantSupport : std::uint8_t { kNone, kPerTensor, kPerAxis };

// Everything that the IR knows about an op. One object per op, defined in its family's file.
struct OpDef {
  std::string_view name;  // "stablehlo.add"
  std::uint32_t traits = 0;
  int min_operands = 0;
  int max_operands = 0;  // -1: any number
  int num_regions = 0;   // -1: any number
  std::vector<AttrDef> attrs;
  ShapeRule shape = nullptr;
  EvalRule eval = nullptr;
  // Null: the pointwise map for kPointwise ops, none (all opaque) otherwise.
  DimRule dims = nullptr;
  // Largest error of compiled code in ulp of the result dtype, for kTranscendental.
  double max_ulp = 0;
  // The constraint labels that `shape` can raise, separated by blanks.
  std::string_view labels = {};
  // The decomposition of an op that is not basic, into ops nearer to StableHLO's: what export and
  // whoever has no rule of its own use (legalize.h). Null for basic ops and those that refuse.
  ExpandRule expand = nullptr;
  QuantSupport quant = QuantSupport::kNone;
  // Labels for a written result type that is not the inferred one, by what differs: "c5 c6" for
  // element type and shape, one label for both.
  std::string_view result_labels = {};

  bool is(std::uint32_t trait) const { return (traits & trait) == trait; }
  const AttrDef* find_attr(std::string_view attr) const;
  // Dense number of the op in the table, for rule tables of higher layers.
  int id() const;
};

// All ops, in a fixed order; index = OpDef::id(). Built on first use from the families' lists.
std::span<const OpDef* const> op_table();
// Null if unknown.
const OpDef* find_op(std::string_view name);

// Infers the result types of a call after checking operand count, attribute presence and kinds.
std::vector<Type> infer_types(const OpCall& call);

// A recorded result type may stand for the inferred one: equal, or the same kind, element type and
// rank with sizes that agree where both are known. Quantisation, bounds and encodings are free.
bool types_compatible(const Type& recorded, const Type& inferred);
// The constraint that a result of type `written` breaks where the op's rule gives `inferred`
// ("concatenate_c5"), or nothing if the op names none.
std::string result_label(const OpDef& def, const Type& written, const Type& inferred);

// The dimension map of a call (default or the op's own).
DimMap dimension_map(const OpCall& call, std::span<const Type> results);

}  // namespace xylem::ir
