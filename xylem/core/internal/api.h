#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "xylem/base/structure.h"
#include "xylem/core/array.h"
#include "xylem/core/internal/function_ref.h"

// The transformations over (structure, span of arrays): what the templates of core call after
// flattening. One implementation for all types.
namespace xylem::internal {

using FlatFunction = FunctionRef<std::vector<Array>(std::span<const Array>)>;

// --- jit ------------------------------------------------------------------------------------

class JitCache;
struct JitEntry;

// Keeps at most `max_entries` programs (at least one); a new one pushes out the one that was called
// longest ago.
std::shared_ptr<JitCache> make_jit_cache(std::string name, std::size_t max_entries);

// Looks the call up by structure, shapes, dtypes, weakness; traces and compiles it if it is new.
// `made` is where `traced` leaves the typed result without its arrays; the entry keeps it.
struct JitCall {
  std::shared_ptr<JitEntry> entry;
  std::vector<Array> results;
};
// `traced` is called at most once, and only when the key is new. `donors[i]` is the caller's own
// handle of a donated leaf, null for the others: it is emptied when the execution is enqueued, so
// that its buffer can be reused if nobody else holds it; an error before leaves it as it was.
JitCall jit_call(JitCache& cache, const Structure& structure, std::vector<Array> args,
                 std::span<Array* const> donors, FlatFunction traced,
                 const std::shared_ptr<void>& made, SourceLoc where);
// What `made` held after the trace: the typed result without its arrays.
const std::shared_ptr<void>& skeleton(const JitEntry& entry);
std::size_t num_entries(const JitCache& cache);
void clear(JitCache& cache);
// StableHLO-like text of the program that would run for these arguments.
std::string lowered_text(std::span<const Array> args, FlatFunction traced);

// --- differentiation --------------------------------------------------------------------------

// For arguments with arrays, `one` among them, none of which is of a float or complex dtype.
[[noreturn]] void throw_nothing_to_differentiate(const Array& one);

// results: value, auxiliary results…, one gradient per argument (undefined where not
// differentiated). Result 0 of f must be a real scalar.
std::vector<Array> value_and_grad(std::span<const Array> args, const std::vector<bool>& active,
                                  FlatFunction f, std::size_t& num_outputs, SourceLoc where);

struct Jvp {
  std::vector<Array> primals, tangents;  // tangents undefined for results that have none
};
Jvp jvp(std::span<const Array> primals, std::span<const Array> tangents, FlatFunction f,
        SourceLoc where);

// A function with its primal results and a linear part that can be applied any number of times.
class LinearMap;
struct VjpResult {
  std::vector<Array> primals;
  std::shared_ptr<LinearMap> map;
};
VjpResult vjp(std::span<const Array> args, const std::vector<bool>& active, FlatFunction f,
              SourceLoc where);
// Cotangents: one per result (undefined for results without one). Returns one per argument,
// undefined where not active.
std::vector<Array> apply_transpose(const LinearMap& map, std::span<const Array> cotangents,
                                   SourceLoc where);
// Tangents: one per argument. Returns one per result.
std::vector<Array> apply_linear(const LinearMap& map, std::span<const Array> tangents,
                                SourceLoc where);

// --- vmap, remat, custom rules ------------------------------------------------------------------

inline constexpr int kUnmapped = INT32_MIN;

// in_axes: one per argument, kUnmapped for none, negative counts from the end. out_axes is asked
// once the number of results is known.
std::vector<Array> vmap(std::span<const Array> args, std::span<const int> in_axes,
                        std::int64_t axis_size, const std::string& axis_name, FlatFunction f,
                        FunctionRef<std::vector<int>(std::size_t)> out_axes, SourceLoc where);

std::vector<Array> remat(std::span<const Array> args, const std::string& policy, FlatFunction f,
                         SourceLoc where);
std::vector<Array> custom_jvp(std::span<const Array> args, FlatFunction primal, FlatFunction rule,
                              SourceLoc where);
// forward: args -> results, residuals; its number of results must be the primal's plus residuals.
std::vector<Array> custom_vjp(std::span<const Array> args, FlatFunction primal,
                              FlatFunction forward, FlatFunction backward, SourceLoc where);

struct ShapeDtype {
  Dims shape;
  DType dtype = DType::kF32;
  bool weak = false;
};
// Arrays of the results' types without contents.
std::vector<Array> eval_shape(std::span<const Array> args, FlatFunction f, SourceLoc where);
// An array without contents, for eval_shape's arguments.
Array make_abstract(const ShapeDtype& t);

// The outermost call site known so far.
SourceLoc current_call_site();
// [lower, upper) as i32; an index clamped to [0, n). UserError for what i32 does not hold, for
// n = 0 and for an index that is no integer scalar.
Array index_range(std::int64_t lower, std::int64_t upper);
Array clamp_index(const Array& index, std::size_t n);

// UserError that tells how the structures differ, if they do.
void check_structures(const char* what, const Structure& expected, const Structure& given);

// --- control flow -------------------------------------------------------------------------------

struct ScanFlat {
  std::vector<Array> carry, ys;
};
// body(carry…, x…) -> (carry…, y…).
ScanFlat scan(std::span<const Array> init, std::span<const Array> xs, std::int64_t length,
              bool reverse, std::int64_t unroll, FlatFunction body, SourceLoc where);
std::vector<Array> while_loop(std::span<const Array> init, FlatFunction cond, FlatFunction body,
                              SourceLoc where);
// One branch per function; `index` is bool (two branches: false, true) or an integer.
std::vector<Array> branch(const Array& index, std::span<const FlatFunction> branches,
                          std::span<const Array> operands, SourceLoc where);

}  // namespace xylem::internal
