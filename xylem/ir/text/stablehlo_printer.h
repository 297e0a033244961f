#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "xylem/ir/graph.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/text.h"

namespace xylem::ir::text {

// Operands that the op's regions capture: they stand behind the op's own.
std::size_t num_captures(const Op& op);
// The first regions of an op that are functions which its attributes name.
std::size_t num_function_regions(const Op& op);

// Symbols of the functions of one printed module; regions of xylem.call become private functions,
// one for all equal regions.
class FunctionNames {
 public:
  explicit FunctionNames(const Module& module);
  // The symbol of the function that a call's region is; queues the function if it is new.
  std::string_view symbol_of(const GraphPtr& region, std::string_view wanted);

  struct Pending {
    std::string name;
    GraphPtr graph;
  };
  std::deque<Pending> pending;  // functions that calls added and that are not printed yet

 private:
  std::unordered_map<const Graph*, std::string> by_graph_;
  std::vector<std::pair<GraphPtr, std::string>> unhashed_;
  std::unordered_map<std::uint64_t, std::vector<std::pair<GraphPtr, std::string>>> by_hash_;
  std::unordered_set<std::string> used_;
};

// Prints one function with its regions.
class FunctionPrinter {
 public:
  FunctionPrinter(std::string& out, FunctionNames& functions, std::string_view symbol,
                  const PrintOptions& options, int indent)
      : out_(out), functions_(functions), symbol_(symbol), options_(options), indent_(indent) {}
  void print(const Graph& g, bool is_private);

 private:
  // The names of one graph's values ("%0", "%1#2").
  using Names = std::vector<std::string>;

  void line(int indent) { out_.append(static_cast<std::size_t>(indent), ' '); }
  void print_pretty_head(const Graph& g, bool is_private, Names& names);
  void print_generic_head(const Graph& g, bool is_private, Names& names);
  void print_location(const Location& loc);
  void print_terminator(const Graph& g, const Names& names, int indent, std::string_view name);
  void print_discardable(const Op& op);
  void check_types(const Graph& g) const;
  std::string new_arg_name();
  void name_results(const Graph& g, const Op& op, Names& names);
  void print_ops(const Graph& g, Names& names, int indent, std::string_view terminator);
  void print_op(const Graph& g, const Op& op, Names& names, int indent);
  void print_operands(const Op& op, const Names& names, std::size_t first, std::size_t count);
  void print_attrs(const Op& op, std::string_view skip = {});
  void print_function_type(const Graph& g, const Op& op);
  void print_types(const Graph& g, const Op& op);
  void print_generic(const Graph& g, const Op& op, const Names& names, int indent);
  void print_call(const Graph& g, const Op& op, const Names& names, bool in_region);
  void print_slice(const Graph& g, const Op& op, const Names& names);
  void print_dot_general(const Graph& g, const Op& op, const Names& names);
  void print_reduce(const Graph& g, const Op& op, const Names& names, int indent);
  // The regions that stand in the text: not those of functions that attributes name.
  void print_regions(const Op& op, const Names& names, int indent);
  Attr function_attr(const Op& op, std::string_view name, const Attr& value);
  void print_dict(const Op& op, std::initializer_list<std::string_view> elided);
  void print_convolution(const Graph& g, const Op& op, const Names& names);
  void print_custom_call(const Graph& g, const Op& op, const Names& names);
  void print_composite(const Graph& g, const Op& op, const Names& names, int indent);
  void print_get_tuple_element(const Graph& g, const Op& op, const Names& names);
  void print_scan(const Graph& g, const Op& op, const Names& names, int indent);
  void print_check(const Graph& g, const Op& op, const Names& names);
  void print_while(const Graph& g, const Op& op, const Names& names, int indent);
  bool print_form(const Op& op, const Names& names);
  bool print_sdy(const Graph& g, const Op& op, const Names& names, int indent);
  // The region's values named: its own arguments anew, its captures by the outer names.
  Names region_names(const Graph& region, const Op& op, const Names& outer,
                     std::size_t num_captures);
  void print_block_arg(const Graph& region, std::size_t i, const Names& names);

  std::string& out_;
  FunctionNames& functions_;
  std::string_view symbol_;
  PrintOptions options_;
  int indent_;  // of the function
  int next_value_ = 0;
  int next_arg_ = 0;
  int next_iter_arg_ = 0;
  int next_constant_[2] = {0, 0};
  int region_depth_ = 0;
};

// Appends " loc(…)" unless the location is only a place in a text.
void append_location(std::string& out, const Location& loc);

}  // namespace xylem::ir::text
