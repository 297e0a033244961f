#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "xylem/core/export/pytree.h"
#include "xylem/ir/graph.h"

namespace xylem::internal {

// A type of an argument or result: sizes as text, which may be expressions of dimension variables.
struct ExportedAval {
  std::vector<std::string> shape;
  std::uint8_t dtype = 0;
  std::uint8_t memory_space = 1;

  bool is_float0() const { return dtype == 22; }
  // The type of the module's parameter or result; open sizes are dynamic.
  ir::Type type() const;
  std::string to_string() const;
};

struct ExportedProgram {
  std::string fun_name;
  PyTree in_tree, out_tree;
  std::vector<ExportedAval> in_avals, out_avals;
  std::vector<std::string> platforms;
  std::vector<std::string> ordered_effects, unordered_effects;
  bool any_platform = false;  // the check of platforms is disabled
  int nr_devices = 1;
  int calling_convention_version = 10;
  std::vector<std::uint16_t> kept;  // arguments that the module takes
  bool uses_global_constants = false;
  std::string module;  // portable artifact

  // The entry function, read from the module on first use; calls are inlined.
  ir::GraphPtr graph() const;
  // Null if there is none: then `differentiable` says whether it can be made from the graph.
  std::shared_ptr<const ExportedProgram> vjp() const;
  bool has_vjp() const { return vjp_ != nullptr || differentiable; }
  bool differentiable = false;

  void set_graph(ir::GraphPtr g) { graph_ = std::move(g); }
  void set_vjp(std::shared_ptr<const ExportedProgram> v) { vjp_ = std::move(v); }

 private:
  mutable std::mutex mutex_;
  mutable ir::GraphPtr graph_;
  mutable std::shared_ptr<const ExportedProgram> vjp_;
};

std::uint8_t exported_dtype(DType t);
// The portable artifact of a graph of StableHLO, CHLO and xylem.* ops.
std::string artifact(const std::string& name, const ir::GraphPtr& graph);

std::string encode_export(const ExportedProgram& p, int vjp_order);
std::shared_ptr<ExportedProgram> decode_export(std::string_view bytes);

}  // namespace xylem::internal
