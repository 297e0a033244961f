#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xylem/core/aot.h"

// Programs that outlive the process: StableHLO portable artifacts inside jax.export's
// serialization, which JAX's jax.export.deserialize reads, and which it writes.

namespace xylem {

namespace internal {
struct ExportedProgram;
}

struct ExportOptions {
  std::vector<std::string> platforms = {"cpu"};
};

// An exported function, as jax.export.Exported. Copies share the program. Thread safe.
class Exported {
 public:
  explicit Exported(std::shared_ptr<const internal::ExportedProgram> program)
      : program_(std::move(program)) {}

  const std::string& fun_name() const;
  const std::vector<std::string>& platforms() const;
  int calling_convention_version() const;
  // Types of arguments and results in JAX's order of leaves (dictionaries and structs by key):
  // "float32[b,4]".
  std::vector<std::string> in_avals() const;
  std::vector<std::string> out_avals() const;
  // Structures as JAX prints them: "((*, {'a': *}), {})", positional and keyword arguments.
  std::string in_tree() const;
  std::string out_tree() const;
  // StableHLO text; the same as a portable artifact.
  std::string module_text() const;
  const std::string& module_serialized() const;

  // The function of arguments and cotangents of results that gives the cotangents of the arguments.
  // UserError if the serialization had none.
  bool has_vjp() const;
  Exported vjp() const;

  // Bytes that import_ and jax.export.deserialize read, with derivatives up to this order.
  std::string serialize(int vjp_order = 0) const;

  // Runs the program: R is the type of the result, a tree whose default value has the right
  // structure (Array, tuples, structs of arrays). A struct stands for a dictionary of its fields.
  // Works under jit and, in reverse mode, under grad; vmap refuses it, as in JAX. UserError for
  // other structures, shapes or dtypes.
  template <class R = Array, class... Args>
  R call(const Args&... args) const {
    std::tuple<internal::PassAs<int, Args>...> inputs{internal::as_tree(args)...};
    tree::Flat<Array> flat = tree::flatten<Array>(inputs);
    R result{};
    for (Array* a : tree::leaf_pointers<Array>(result)) *a = placeholder();
    std::vector<Array> r = call_typed(flat.structure, flat.leaves, tree::structure<Array>(result),
                                      internal::current_call_site());
    return tree::unflatten<Array>(std::move(result), std::span<const Array>(r));
  }
  // The same on leaves in JAX's order, for any structure.
  std::vector<Array> call_flat(std::span<const Array> leaves,
                               SourceLoc where = SourceLoc::current()) const;

 private:
  static Array placeholder();
  std::vector<Array> call_typed(const Structure& in, std::span<const Array> leaves,
                                const Structure& out, SourceLoc where) const;

  std::shared_ptr<const internal::ExportedProgram> program_;
};

namespace internal {
Exported export_staged(const Staged& staged, const Structure& out_structure,
                       const ExportOptions& options);
}

// export_(jit(f))(args…) traces f for these arguments (shape_dtype_struct will do) and keeps the
// program. Captured arrays become part of it.
template <class F>
auto export_(const Jitted<F>& f, ExportOptions options = {}) {
  return [f, options = std::move(options)](const auto&... args) {
    auto lowered = f.lower(args...);
    return internal::export_staged(*lowered.staged(), lowered.out_structure(), options);
  };
}

// Reads a serialization of jax.export, of Xylem or of JAX. UserError if it is damaged, of an
// unknown calling convention, for other platforms or for several devices.
Exported import_(std::string_view bytes);

}  // namespace xylem
