#include <fmt/format.h>

#include <unordered_map>

#include "xylem/base/error.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/text.h"
#include "xylem/ir/text/cursor.h"
#include "xylem/ir/text/native.h"

namespace xylem::ir {
namespace text {
namespace {

class GraphReader {
 public:
  explicit GraphReader(Cursor& c) : c_(c), graph_(std::make_shared<Graph>()) {}

  GraphPtr read() {
    Cursor::Depth depth(c_);
    c_.expect_word("graph", "graph");
    if (c_.accept('@'))
      graph_->name =
          c_.raw() == '"' ? c_.string("graph name") : std::string(c_.suffix_name("graph name"));
    read_params();
    c_.expect("->", "graph");
    std::vector<Type> result_types = read_result_types();
    if (c_.accept_word("attributes")) graph_->attrs = read_attrs(c_);
    c_.expect('{', "graph");
    while (!c_.looking_at_word("return")) read_op();
    read_return(result_types);
    c_.expect('}', "graph");
    return graph_;
  }

 private:
  struct Name {
    std::string_view text;
    std::size_t pos;
  };

  Name read_value_name() {
    std::size_t at = c_.token_pos();
    c_.expect('%', "value");
    return {c_.suffix_name("value"), at};
  }

  ValueId define(Name name, Type type, std::int32_t def, std::size_t index) {
    auto id = static_cast<ValueId>(graph_->values.size());
    if (!names_.emplace(name.text, id).second)
      c_.fail(name.pos, "value", "every value is defined once",
              fmt::format("%{} is defined again", name.text), "Give it another name");
    graph_->values.push_back({std::move(type), def, static_cast<std::int32_t>(index), nullptr});
    return id;
  }

  ValueId use(Name name) {
    auto it = names_.find(name.text);
    if (it == names_.end())
      c_.fail(name.pos, "value", "values are defined before their use in the same graph",
              fmt::format("%{} is not", name.text),
              "Define it above, or pass it to the region as an operand");
    return it->second;
  }

  void read_sharding(ValueId v) {
    if (!c_.accept_word("sharding")) return;
    c_.expect('(', "sharding");
    graph_->values[static_cast<std::size_t>(v)].sharding =
        std::make_shared<const std::string>(c_.string("sharding"));
    c_.expect(')', "sharding");
  }

  void read_params() {
    c_.expect('(', "parameters");
    bool any = false;
    while (!c_.accept(')')) {
      std::size_t i = graph_->params.size();
      if (i) c_.expect(',', "parameters");
      Name name = read_value_name();
      c_.expect(':', "parameters");
      ValueId v = define(name, read_type(c_), -1, i);
      graph_->params.push_back(v);
      read_sharding(v);
      graph_->param_attrs.emplace_back();
      if (c_.peek() == '{') {
        graph_->param_attrs.back() = read_attrs(c_);
        any = true;
      }
    }
    if (!any) graph_->param_attrs.clear();
  }

  std::vector<Type> read_result_types() {
    std::vector<Type> types;
    bool any = false;
    c_.expect('(', "results");
    while (!c_.accept(')')) {
      if (!types.empty()) c_.expect(',', "results");
      types.push_back(read_type(c_));
      graph_->result_attrs.emplace_back();
      if (c_.peek() == '{') {
        graph_->result_attrs.back() = read_attrs(c_);
        any = true;
      }
    }
    if (!any) graph_->result_attrs.clear();
    return types;
  }

  void read_op() {
    std::vector<Name> results;
    if (c_.peek() == '%') {
      do results.push_back(read_value_name());
      while (c_.accept(','));
      c_.expect('=', "op");
    }
    Op op;
    std::size_t at = c_.token_pos();
    std::string_view name = c_.identifier("op");
    op.def = find_op(name);
    if (!op.def)
      c_.fail(at, "op", "ops are those of the op table", fmt::format("'{}' is not", name),
              "Check the name, dialect included");
    c_.expect('(', "operands");
    while (!c_.accept(')')) {
      if (!op.operands.empty()) c_.expect(',', "operands");
      op.operands.push_back(use(read_value_name()));
    }
    if (c_.peek() == '{') op.attrs = read_attrs(c_);
    if (c_.accept('[')) {
      while (!c_.accept(']')) {
        if (!op.regions.empty()) c_.expect(',', "regions");
        op.regions.push_back(GraphReader(c_).read());
      }
    }
    auto index = static_cast<std::int32_t>(graph_->ops.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      c_.expect(i ? ',' : ':', "result types");
      ValueId v = define(results[i], read_type(c_), index, i);
      op.results.push_back(v);
      read_sharding(v);
    }
    if (c_.accept_word("loc")) read_location(op.loc);
    graph_->ops.push_back(std::move(op));
  }

  void read_location(Location& loc) {
    c_.expect('(', "location");
    if (c_.peek() == '"') {
      loc.source.file = intern_c_string(c_.string("location"));
      c_.expect(':', "location");
      loc.source.line = small_integer();
      if (c_.accept(':')) loc.source.column = small_integer();
      loc.source.function = "";
      if (c_.accept_word("in")) loc.source.function = intern_c_string(c_.string("location"));
    }
    if (c_.accept_word("at")) loc.path = intern(c_.string("location"));
    c_.expect(')', "location");
  }

  int small_integer() {
    std::size_t at = c_.token_pos();
    std::int64_t v = c_.integer("location");
    if (v < 0 || v > INT32_MAX)
      c_.fail(at, "location", "lines and columns are small numbers", fmt::format("found {}", v),
              "Correct the location");
    return static_cast<int>(v);
  }

  void read_return(const std::vector<Type>& types) {
    std::size_t at = c_.token_pos();
    c_.expect_word("return", "graph");
    if (c_.peek() == '%') {
      do {
        Name name = read_value_name();
        ValueId v = use(name);
        std::size_t i = graph_->results.size();
        if (i < types.size() && !(types[i] == graph_->type(v)))
          c_.fail(name.pos, "return",
                  fmt::format("result {} of the graph is {}", i, types[i].to_string()),
                  fmt::format("%{} is {}", name.text, graph_->type(v).to_string()),
                  "Make them agree");
        graph_->results.push_back(v);
      } while (c_.accept(','));
    }
    if (graph_->results.size() != types.size())
      c_.fail(at, "return", fmt::format("the graph has {} results", types.size()),
              fmt::format("{} are returned", graph_->results.size()), "Make them agree");
  }

  Cursor& c_;
  std::shared_ptr<Graph> graph_;
  std::unordered_map<std::string_view, ValueId> names_;
};

void read_function(Cursor& c, Module& module) {
  Module::Function f;
  f.is_private = c.accept_word("private");
  std::size_t at = c.token_pos();
  if (c.accept_word("declare")) {
    c.expect('@', "declaration");
    f.name = c.raw() == '"' ? c.string("declaration") : std::string(c.suffix_name("declaration"));
  } else {
    f.graph = read_graph(c);
    f.name = f.graph->name;
  }
  for (const Module::Function& other : module.functions)
    if (other.name == f.name)
      c.fail(at, "module", "every function has a name of its own",
             fmt::format("@{} is repeated", f.name), "Rename one of them");
  module.functions.push_back(std::move(f));
}

}  // namespace

GraphPtr read_graph(Cursor& c) { return GraphReader(c).read(); }

}  // namespace text

GraphPtr parse_graph(std::string_view text, std::string_view file) {
  text::Cursor c(text, file, "native text");
  GraphPtr g = text::read_graph(c);
  if (!c.at_end()) c.fail_here("graph", "nothing follows the graph", "Remove what follows");
  return g;
}

Type parse_type(std::string_view text) {
  text::Cursor c(text, "<type>", "native text");
  Type t = text::read_type(c);
  if (!c.at_end()) c.fail_here("type", "nothing follows the type", "Remove what follows");
  return t;
}

Attr parse_attr(std::string_view text) {
  text::Cursor c(text, "<attribute>", "native text");
  Attr a = text::read_attr(c);
  if (!c.at_end()) c.fail_here("attribute", "nothing follows it", "Remove what follows");
  return a;
}

Module parse_module(std::string_view text, std::string_view file) {
  text::Cursor c(text, file, "native text");
  Module module;
  if (c.accept_word("module")) {
    if (c.accept('@'))
      module.name =
          c.raw() == '"' ? c.string("module name") : std::string(c.suffix_name("module name"));
    if (c.accept_word("attributes")) module.attrs = text::read_attrs(c);
    c.expect('{', "module");
    while (!c.accept('}')) text::read_function(c, module);
    if (!c.at_end()) c.fail_here("module", "nothing follows the module", "Remove what follows");
  } else {
    while (!c.at_end()) text::read_function(c, module);
  }
  return module;
}

}  // namespace xylem::ir
