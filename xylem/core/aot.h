#pragma once

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "xylem/core/transforms.h"

// Ahead of time: jit(f).lower(args…) traces, .compile() compiles, and the result runs arguments of
// these very types only, without a cache. As jax.stages.

namespace xylem {

// What a program asks of the machine, from shapes alone.
struct CostAnalysis {
  double flops = 0;
  double transcendentals = 0;
  double bytes_accessed = 0;
};
// Bytes of a compiled program, named as in jax.stages.
struct MemoryAnalysis {
  std::int64_t argument_size_in_bytes = 0;
  std::int64_t output_size_in_bytes = 0;
  std::int64_t temp_size_in_bytes = 0;
  std::int64_t alias_size_in_bytes = 0;
  std::int64_t generated_code_size_in_bytes = 0;
};

namespace internal {

// A traced program with its signature.
class Staged;
using StagedPtr = std::shared_ptr<const Staged>;
StagedPtr stage(const JitCache& cache, const Structure& structure, std::span<const Array> args,
                FlatFunction traced, SourceLoc where);
std::string stablehlo_text(const Staged& s, bool debug_info);
std::string native_text(const Staged& s);
CostAnalysis cost_analysis(const Staged& s);

class CompiledProgram;
using CompiledPtr = std::shared_ptr<const CompiledProgram>;
CompiledPtr compile(StagedPtr s);
std::vector<Array> call(const CompiledProgram& c, const Structure& structure,
                        std::span<const Array> args, SourceLoc where);
std::string optimized_text(const CompiledProgram& c);
CostAnalysis cost_analysis(const CompiledProgram& c);
MemoryAnalysis memory_analysis(const CompiledProgram& c);

}  // namespace internal

// A compiled program. Thread safe; copies share the code.
template <class R, class... A>
class Compiled {
 public:
  Compiled(internal::CompiledPtr program, std::shared_ptr<const R> skeleton)
      : program_(std::move(program)), skeleton_(std::move(skeleton)) {}

  // Arguments of the structure, shapes and dtypes that it was lowered for (weakness aside);
  // UserError otherwise, and under a transformation.
  R operator()(const A&... args) const {
    std::tuple<const A&...> inputs{args...};
    std::tuple<A...> copy(inputs);
    tree::Flat<Array> flat = tree::flatten<Array>(copy);
    return tree::unflatten<Array>(
        R(*skeleton_),
        internal::call(*program_, flat.structure, flat.leaves, internal::current_call_site()));
  }

  // The optimised program.
  std::string as_text() const { return internal::optimized_text(*program_); }
  CostAnalysis cost_analysis() const { return internal::cost_analysis(*program_); }
  MemoryAnalysis memory_analysis() const { return internal::memory_analysis(*program_); }

 private:
  internal::CompiledPtr program_;
  std::shared_ptr<const R> skeleton_;
};

// A traced program that takes A... and returns R.
template <class R, class... A>
class Lowered {
 public:
  Lowered(internal::StagedPtr staged, std::shared_ptr<const R> skeleton, Structure result)
      : staged_(std::move(staged)),
        skeleton_(std::move(skeleton)),
        out_structure_(std::move(result)) {}

  // StableHLO, as the real parser reads it; captured arrays are constants. `debug_info` adds
  // locations: the user's lines, and named scopes.
  std::string as_text(bool debug_info = false) const {
    return internal::stablehlo_text(*staged_, debug_info);
  }
  // Native text, with xylem.* ops.
  std::string native_text() const { return internal::native_text(*staged_); }
  CostAnalysis cost_analysis() const { return internal::cost_analysis(*staged_); }
  Compiled<R, A...> compile() const { return {internal::compile(staged_), skeleton_}; }

  const internal::StagedPtr& staged() const { return staged_; }
  const Structure& out_structure() const { return out_structure_; }

 private:
  internal::StagedPtr staged_;
  std::shared_ptr<const R> skeleton_;
  Structure out_structure_;
};

template <class F>
template <class... Args>
auto Jitted<F>::lower(const Args&... args) const {
  using Tuple = std::tuple<internal::PassAs<F, Args>...>;
  using R = std::decay_t<decltype(std::apply(std::declval<F&>(), std::declval<const Tuple&>()))>;
  Tuple inputs{internal::as_tree(args)...};
  tree::Flat<Array> flat = tree::flatten<Array>(inputs);
  std::optional<R> result;
  internal::StagedPtr staged =
      internal::stage(*cache_, flat.structure, flat.leaves, internal::recording(f_, inputs, result),
                      internal::current_call_site());
  Structure structure = tree::structure<Array>(*result);
  auto skeleton = std::make_shared<const R>(internal::without_arrays(std::move(*result)));
  return Lowered<R, internal::PassAs<F, Args>...>(std::move(staged), std::move(skeleton),
                                                  std::move(structure));
}

}  // namespace xylem
