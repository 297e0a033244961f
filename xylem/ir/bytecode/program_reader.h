#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "xylem/ir/bytecode/frame.h"
#include "xylem/ir/bytecode/op_forms.h"
#include "xylem/ir/bytecode/value_reader.h"
#include "xylem/ir/graph.h"
#include "xylem/ir/op_def.h"

namespace xylem::ir::bytecode {

// The graph of a function's or region's body while it grows. Outer values that a region uses
// become parameters of its graph: captures.
struct Body {
  explicit Body(Body* outer) : parent(outer), graph(std::make_shared<Graph>()) {}

  struct Capture {
    ValueId outer = kNoValue;
    ValueId local = kNoValue;
  };

  Body* parent;  // null for a function's body, which sees nothing outside
  std::shared_ptr<Graph> graph;
  std::vector<Capture> captures;  // in the order of first use
  std::unordered_map<ValueId, ValueId> captured;
  std::shared_ptr<GraphLocations> given;

  ValueId add_param(Type type);
  // `v` of `owner`, this body or one around it, as a value of this graph; kNoValue if there is no
  // way.
  ValueId reach(const Body* owner, ValueId v);
  GraphLocations& locations();
};

// Whether the file says where it came from.
inline bool is_given(const Location& l) { return !l.mlir.empty() || l.source.known(); }

// Ops, regions, functions and modules of a file.
class ProgramReader {
 public:
  ProgramReader(Source& source, const Frame& frame, const BytecodeOptions& options);
  Module read();

 private:
  // A value by its number in the file.
  struct Slot {
    Body* body = nullptr;  // null: not defined yet
    ValueId value = kNoValue;
  };
  // What an op name of the file means.
  struct Name {
    std::string op;                                 // "stablehlo.add", "func.call", "sdy.mesh"
    const OpForm* form = nullptr;                   // of VHLO's ops
    int revision = 1;                               // the number behind "_v"
    const std::vector<PlainAttr>* plain = nullptr;  // of other dialects' ops
    bool vhlo = false;
    bool known = false;
  };
  struct FileOp {
    std::size_t at = 0;
    const Name* name = nullptr;
    Location loc;
    bool has_attrs = false, has_record = false;
    std::size_t attrs = 0, record = 0;  // numbers of the dictionary and of the property record
    std::vector<std::size_t> result_types;
    std::vector<std::size_t> operands;
    std::size_t num_regions = 0;
    bool isolated = false;
    std::vector<std::unique_ptr<Body>> regions;
  };
  struct CallSite {
    std::string callee;
    std::size_t at;
    int depth;
    std::vector<Type> operands, results;
    bool typed = true;  // the callee takes the operands and gives the results
  };
  struct Function {
    std::shared_ptr<Graph> graph = std::make_shared<Graph>();
    std::size_t at = 0;
    bool defined = false;
    bool has_body = false;
    int depth = 1;
    std::vector<Type> results;
    std::vector<CallSite> calls;
  };
  using Functions = std::unordered_map<std::string, Function>;
  // An op whose constraints can be checked when all functions are read.
  struct Deferred {
    std::shared_ptr<Graph> graph;
    std::size_t op;
    std::size_t at;
  };

  void read_names();
  FileOp read_head(ByteCursor& c);
  void skip_use_lists(ByteCursor& c, std::size_t values);
  // Calls `body(cursor)` on the bytes of the op's regions.
  void with_regions(ByteCursor& c, const FileOp& op, const std::function<void(ByteCursor&)>& body);

  void read_module(ByteCursor& c, FileOp& op, Module& module);
  void read_module_item(ByteCursor& c, Module& module);
  void read_function(ByteCursor& c, FileOp& op, Module& module);
  void finish_declaration(Module& module, Function& f, Body& body, const std::vector<Type>& params);
  void read_mesh(FileOp& op, Module& module);
  void check_calls();
  void check_recursion();

  // A region with one block as a graph: its arguments, ops and terminator.
  void read_region(ByteCursor& c, Body& body, bool isolated, const FileOp& op);
  void read_block(ByteCursor& c, Body& body, std::size_t& next, std::size_t limit);
  void read_regions(ByteCursor& c, Body& body, FileOp& op);
  void read_op(ByteCursor& c, Body& body, std::size_t& next, std::size_t limit);
  ValueId use(Body& body, std::size_t number, std::size_t at);
  void define(Body& body, std::size_t& next, std::size_t limit, ValueId v, std::size_t at);

  // Attributes as the generic form of StableHLO has them, discardable ones included.
  Attrs read_attrs(const FileOp& op, const OpDef* def);
  void read_vhlo_record(const FileOp& op, const OpDef* def, Attrs& attrs);
  void read_plain_record(const FileOp& op, const OpDef* def, Attrs& attrs);
  void read_vhlo_attr(const FileOp& op, const AttrForm& form, std::size_t index, const OpDef* def,
                      Attrs& attrs);
  // The attribute numbers of an op's own attributes by name.
  std::vector<std::pair<std::string_view, std::size_t>> record_of(const FileOp& op);
  ValueReader::Mode mode_of(const OpDef* def, std::string_view attr) const;

  void finish_op(Body& body, FileOp& op, std::size_t& next, std::size_t limit);
  bool expand(Body& body, FileOp& op, const OpDef*& def, std::vector<ValueId>& operands,
              const std::vector<Type>& results, Attrs& attrs, std::size_t& next, std::size_t limit);
  void finish_regions(Body& body, FileOp& op, const OpDef* def, std::vector<ValueId>& operands,
                      Attrs& attrs, std::vector<GraphPtr>& regions);
  void add_functions(const Body& body, const FileOp& op, const Attrs& attrs,
                     const std::vector<ValueId>& operands, const std::vector<Type>& results,
                     std::vector<GraphPtr>& regions);
  void check_types(Body& body, FileOp& op, const OpDef& def, const std::vector<ValueId>& operands,
                   const std::vector<GraphPtr>& regions, const std::vector<Type>& results,
                   Attrs& attrs);

  // Notes an error of meaning; reading goes on so that all of them are told.
  void report(const FileOp& op, std::string_view operation, std::string_view expected,
              std::string_view given, std::string_view advice);
  void report_line(std::size_t at, const Location& loc, std::string_view message);

  Source& source_;
  const Frame& frame_;
  BytecodeOptions options_;
  ValueReader values_;
  std::vector<Name> names_;
  std::vector<Slot> slots_;       // of the enclosing regions that values can be seen in
  std::deque<Functions> tables_;  // one per module
  Functions* functions_ = nullptr;
  Function* function_ = nullptr;
  std::vector<Deferred> deferred_;
  int region_depth_ = 0;
  std::string errors_;
  int num_errors_ = 0;
};

}  // namespace xylem::ir::bytecode
