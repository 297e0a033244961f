#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "xylem/ir/bytecode.h"
#include "xylem/ir/bytecode/op_forms.h"
#include "xylem/ir/bytecode/pools.h"
#include "xylem/ir/graph.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/text/stablehlo_printer.h"

namespace xylem::ir::bytecode {

// Writes one module as an artifact, or finds the lowest version that can express it.
class ArtifactWriter {
 public:
  // `measure`: nothing is refused, the needs are noted.
  ArtifactWriter(Version target, ArtifactOptions options, bool measure);
  std::string write(const Module& module, std::string_view producer);
  const VersionNeed& need() const { return need_; }

 private:
  // The numbers of one graph's values in the file.
  using Numbers = std::vector<std::size_t>;
  struct OpBytes {
    std::size_t name = 0;
    std::size_t location = 0;
    std::vector<std::pair<std::string_view, std::size_t>> own;  // own attributes by name
    bool has_record = false;
    std::string record;  // format 5 and later
    std::vector<std::pair<std::string_view, std::size_t>> discardable;
    std::vector<std::size_t> result_types, operands;
    std::size_t num_regions = 0;
    bool isolated = true;
    std::string regions;
  };

  // Notes that something in the program exists from a version on.
  void require(Version v, std::string what, const Location& loc);
  void refuse(const Location& loc, std::string_view operation, std::string_view expected,
              std::string_view given, std::string_view advice);
  // As VHLO attribute in `dialect` form.
  std::size_t vhlo(std::string bytes, HostArray data = {}) {
    return pools_.attr("vhlo", std::move(bytes), std::move(data));
  }

  // Types (type_writer.cc).
  std::size_t type(const Type& t);
  std::size_t element_type(DType dtype, const TypeExtra* extra);
  std::size_t function_type(std::span<const Type> inputs, std::span<const Type> results);
  std::size_t named_type(std::string_view text);  // "tf32", "none", "index", …
  std::size_t builtin_type(DType dtype);
  std::size_t builtin_tensor_type(const Type& t);

  // Attributes (attr_writer.cc).
  std::size_t string_attr(std::string_view s);  // VHLO's
  std::size_t builtin_string(std::string_view s);
  std::size_t bool_attr(bool v);
  std::size_t int_attr(std::int64_t v, DType dtype = DType::kI64);
  std::size_t float_attr(double v, DType dtype);
  std::size_t array_attr(const std::vector<std::size_t>& list);
  std::size_t dict_attr(const Attrs& attrs);
  std::size_t type_attr(std::size_t type);
  std::size_t enum_attr(std::string_view mnemonic, std::string_view member);
  std::size_t tensor_attr(const HostArray& a, std::size_t type);
  std::size_t dims_attr(const Dims& d);
  std::size_t index_tensor(const Dims& shape, const HostArray& a);
  std::size_t attr(const Attr& a);  // any discardable one
  std::size_t opaque_attr(const std::string& text);
  std::size_t structure_attr(std::string_view mnemonic, const Attrs& fields);
  std::size_t foreign_attr(std::string_view text);
  std::size_t builtin_attr(const Attr& a);  // of the module
  std::size_t builtin_dict(const Attrs& attrs);
  // A part of a mesh's attributes by its text.
  std::size_t mesh_attr(std::string_view text);

  // Locations (location_writer.cc).
  std::size_t location(const Location& loc);
  std::size_t unknown_location();

  // Modules, functions, ops (op_writer.cc, op_attr_writer.cc).
  std::string module_bytes(const Module& module);
  std::string function_bytes(const Graph& g, std::string_view symbol, bool is_private);
  std::string region_bytes(const Graph& g, std::size_t base, const Numbers* outer,
                           std::span<const ValueId> captures, bool shardy = false);
  void shardy_attrs(const Op& op, OpBytes& out);
  std::string op_bytes(const Graph& g, const Op& op, const Numbers& numbers, std::size_t end);
  void composite_bytes(const Graph& g, const Op& op, OpBytes& out);
  void finish(std::string& out, OpBytes& op);
  void own_attrs(const Graph& g, const Op& op, const OpForm& form, OpBytes& out);
  std::size_t own_attr(const Graph& g, const Op& op, const AttrForm& a, bool& needed);
  std::size_t absent_attr(const Graph& g, const Op& op, const AttrForm& a);
  void check_limits(const Graph& g, const Op& op, const OpForm& form);
  Attrs structure_of(const Op& op, std::string_view name);
  // The graph with CHLO ops that the target has no form for replaced by their decompositions.
  GraphPtr spell_out(const GraphPtr& g);

  Version target_;
  ArtifactOptions options_;
  bool measure_;
  int format_;
  Pools pools_;
  VersionNeed need_;
  text::FunctionNames* functions_ = nullptr;
  std::string place_;         // "function @main" for messages
  const Op* here_ = nullptr;  // op being written
  std::unordered_map<std::string_view, std::size_t> locations_;
  // Graph -> itself, kept alive, and what it is spelled out as.
  std::unordered_map<const Graph*, std::pair<GraphPtr, GraphPtr>> spelled_;
  std::string errors_;
  int num_errors_ = 0;
};

}  // namespace xylem::ir::bytecode
