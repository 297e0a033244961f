#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "xylem/ir/graph.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/text/mlir_reader.h"
#include "xylem/ir/text/name_table.h"
#include "xylem/ir/text/stablehlo_forms.h"

namespace xylem::ir::text {

// The names that are visible while a function's or region's body is read, and the graph that grows
// from it. Outer values that a region uses become parameters of its graph: captures.
struct Scope {
  explicit Scope(Scope* outer, std::shared_ptr<Graph> g) : parent(outer), graph(std::move(g)) {}

  struct Range {
    ValueId first = kNoValue;
    int count = 0;  // "%0:2"
  };
  struct Capture {
    ValueId outer = kNoValue;
    ValueId local = kNoValue;
  };

  Scope* parent;  // null for a function's body, which sees nothing outside
  std::shared_ptr<Graph> graph;
  NameTable<Range> names;
  std::vector<Capture> captures;  // in the order of first use
  std::unordered_map<ValueId, ValueId> captured;
  std::shared_ptr<GraphLocations> given;

  // Locations of the graph as far as they are given; made when the first one is.
  GraphLocations& locations();

  ValueId add_param(Type type);
  // Value `index` of `name` as a value of this scope's graph; kNoValue if unknown.
  ValueId find(std::string_view name, int index);
};

// What is read of an op before it enters the graph.
struct ParsedOp {
  std::size_t pos = 0;
  std::string_view name;  // "stablehlo.add"
  const OpDef* def = nullptr;
  std::vector<ValueId> operands;
  std::vector<std::size_t> operand_pos;
  Attrs attrs;
  std::vector<std::unique_ptr<Scope>> regions;
  std::vector<Type> operand_types;  // as written; empty where the form leaves them out
  std::vector<Type> result_types;
  std::string callee;    // of a call
  bool foreign = false;  // of a dialect that we do not know
  Location loc;
};

// The type of values that an error left undefined: ops on them are not checked.
Type poison_type();
bool is_poison(const Type& t);
std::string join_types(const std::vector<Type>& types);

class StablehloParser {
 public:
  StablehloParser(std::string_view text, std::string_view file, const ParseOptions& options);
  Module parse();

 private:
  struct CallSite {
    std::string callee;
    std::size_t pos;
    int depth;  // of regions around it
    std::vector<Type> operands, results;
    bool reference = false;  // an op that names the function; its rule checks the types
  };
  // An op whose rule needs functions that may stand below it.
  struct Deferred {
    std::size_t pos;
    std::shared_ptr<Graph> graph;
    std::size_t op;
    std::vector<std::string> functions;
  };
  struct Function {
    std::shared_ptr<Graph> graph = std::make_shared<Graph>();
    std::size_t pos = 0;
    bool defined = false;  // the name was declared or defined
    bool has_body = false;
    bool broken = false;  // its head could not be read: calls are not compared with it
    bool is_private = false;
    int depth = 1;  // of the deepest region
    std::vector<Type> results;
    std::vector<CallSite> calls;
    std::vector<Deferred> deferred;
  };
  struct ResultName {
    std::string_view name;
    int count;
    std::size_t pos;
  };

  using Functions = std::unordered_map<std::string, Function>;
  // Thrown when nothing behind an error can be read; all errors are noted already.
  struct Stop {};

  // Modules and functions (stablehlo_module.cc).
  void read_module_body(Module& module, bool braces);
  void read_module_item(Module& module);
  void read_nested_module(Module& module);
  void read_module(Module& module);
  void read_generic_module(Module& module);
  void read_function(Module& module, std::size_t op_pos);
  void read_generic_function(Module& module, std::size_t op_pos);
  Attrs read_function_properties(std::vector<Type>& params, std::vector<Type>& results,
                                 std::string_view close);
  void read_function_type(std::vector<Type>& params, std::vector<Type>& results);
  void read_mesh(Module& module);
  void read_generic_mesh(Module& module);
  Function& declare(Module& module, const std::string& name, std::size_t at, bool is_private);
  void reserve_body(Scope& scope, std::size_t op_pos);
  void finish_function(Function& f, Scope& scope, const std::vector<Type>& results);
  void finish_declaration(Module& module, Function& f, Scope& scope,
                          const std::vector<Type>& results);
  // Arguments and results have attributes of dialects only ("jax.donated").
  void check_dialect_attrs(const Function& f, std::string_view what, const std::vector<Attrs>& all);
  void check_calls();
  void note_mesh(const ParsedOp& op);
  void check_meshes(const Module& module);
  void check_deferred(const Deferred& d);
  void check_recursion();
  void break_cycles();
  // Seek to where the next op of the block, or item of the module, may start behind an error.
  void skip_broken_op(std::size_t op_pos);
  void skip_broken_item();

  // Ops and regions (stablehlo_ops.cc).
  // Reads ops up to the terminator, whose operands become the graph's results.
  void read_block(Scope& scope, bool open = false);
  bool read_terminator(Scope& scope);
  std::size_t read_op(Scope& scope);  // the position of its name
  void read_named_op(Scope& scope, const std::vector<ResultName>& names);
  ValueId poison_value(Scope& scope);
  void read_generic(Scope& scope, ParsedOp& op);
  // `open`: the region may end without a terminator.
  std::unique_ptr<Scope> read_region(Scope& outer, bool open = false);
  std::unique_ptr<Scope> new_region(Scope& outer);
  void read_block_args(Scope& scope);
  void read_arg(Scope& scope);
  void read_param_location(Scope& scope);
  void read_operand(Scope& scope, ParsedOp& op);
  void read_operands(Scope& scope, ParsedOp& op);
  ValueId read_use(Scope& scope);
  void define(Scope& scope, std::string_view name, std::size_t at, Scope::Range range);
  void finish_regions(Scope& scope, ParsedOp& op, std::vector<GraphPtr>& regions);
  void finish_op(Scope& scope, ParsedOp& op, const std::vector<ResultName>& names);
  void finish_foreign(ParsedOp& op);
  bool check_written_operands(const ParsedOp& op, const std::vector<Type>& operands);
  void finish_large_splat(Scope& scope, ParsedOp& op, const std::vector<ResultName>& names,
                          Type type);
  void check_broadcast(Scope& scope, const ParsedOp& op);
  void expand(Scope& scope, ParsedOp& op);
  std::vector<Type> check_types(Scope& scope, ParsedOp& op, const std::vector<GraphPtr>& regions,
                                bool deferred);
  // Takes the written types as "result_types" if they say more than the inferred ones; false if
  // they disagree with them.
  bool refine_types(ParsedOp& op, const std::vector<Type>& operands,
                    const std::vector<GraphPtr>& regions, const std::vector<Type>& inferred);

  // Pretty forms (stablehlo_forms.cc).
  void read_pretty(Scope& scope, ParsedOp& op);
  void read_clause(ParsedOp& op, const Clause& clause);
  void read_types(Scope& scope, ParsedOp& op);
  void read_function_type(ParsedOp& op);
  void read_optional_attrs(ParsedOp& op);
  void read_constant(ParsedOp& op);
  void read_call(Scope& scope, ParsedOp& op);
  void read_compare(Scope& scope, ParsedOp& op);
  void read_slice(Scope& scope, ParsedOp& op);
  void read_dot_general(Scope& scope, ParsedOp& op);
  void read_reduce(Scope& scope, ParsedOp& op);
  void read_reducer(Scope& scope, ParsedOp& op, std::size_t inputs);
  void read_compact_reducer(Scope& scope, ParsedOp& op, std::string_view name, std::size_t at);
  void read_while(Scope& scope, ParsedOp& op);
  void read_reduce_precision(Scope& scope, ParsedOp& op);
  // Forms of calls, convolutions and checks (stablehlo_call_forms.cc).
  void read_convolution(Scope& scope, ParsedOp& op);
  void read_custom_call(Scope& scope, ParsedOp& op);
  void read_composite(Scope& scope, ParsedOp& op);
  void read_get_tuple_element(Scope& scope, ParsedOp& op);
  void read_check(Scope& scope, ParsedOp& op);
  void read_scan(Scope& scope, ParsedOp& op);
  // Shardy's ops (sdy_forms.cc); false if the op is another.
  bool read_sdy(Scope& scope, ParsedOp& op);
  bool read_sdy_part(ParsedOp& op, std::string_view attr, std::string_view key,
                     std::string_view wrapper, char open, bool closes);

  // Notes an error of meaning; reading goes on so that all of them are told.
  void report(std::size_t pos, std::string_view operation, std::string_view expected,
              std::string_view given, std::string_view advice);
  void report_line(std::size_t pos, std::string_view message);
  // Notes an error of form that the cursor has thrown.
  void report_thrown(const UserError& e);
  [[noreturn]] void throw_errors();

  MlirReader r_;
  Cursor& c_;
  bool allow_unregistered_;
  const char* file_;
  // One table of functions per module; all are kept until reading ends.
  std::deque<Functions> tables_;
  Functions* functions_ = nullptr;  // of the module being read
  Function* function_ = nullptr;    // being read
  Attr precision_;  // of the last dot_general that had one: most have the same
  int region_depth_ = 0;
  std::size_t region_owner_ = 0;  // the op whose regions are being read
  bool owner_checks_regions_ = false;
  std::size_t return_pos_ = 0;  // of the terminator that was read last
  // Meshes that replica groups name by symbol: place and name.
  std::vector<std::pair<std::size_t, std::string>> meshes_;
  std::vector<std::pair<std::size_t, std::string>> errors_;
  int num_errors_ = 0;
};

}  // namespace xylem::ir::text
