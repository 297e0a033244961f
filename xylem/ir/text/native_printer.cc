#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "xylem/ir/op_def.h"
#include "xylem/ir/text.h"
#include "xylem/ir/text/element_text.h"
#include "xylem/ir/text/native.h"

namespace xylem::ir {
namespace text {
namespace {

// Longer arrays are written as hexadecimal bytes.
constexpr std::int64_t kMaxListed = 256;

void append_name(std::string& out, std::string_view name) {
  if (is_identifier(name)) {
    out += name;
  } else {
    append_quoted(out, name);
  }
}

void append_dims(std::string& out, const Dims& dims) {
  out += '[';
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i) out += ", ";
    if (dims[i] == kDynamic) {
      out += '?';
    } else {
      fmt::format_to(std::back_inserter(out), "{}", dims[i]);
    }
  }
  out += ']';
}

bool is_splat(const HostArray& a) {
  auto bytes = static_cast<std::size_t>(dtype_bytes(a.dtype()));
  if (a.size() <= 1 || bytes == 0) return a.size() == 1;
  // Equal neighbours all along: the array equals itself shifted by one element.
  return std::memcmp(a.data(), a.data() + bytes, a.nbytes() - bytes) == 0;
}

void append_array(std::string& out, const HostArray& given) {
  if (!given.defined()) {
    out += "dense undefined";
    return;
  }
  HostArray a = given.to_contiguous();
  out += "dense ";
  out += Type::tensor(a.dtype(), a.dims()).to_string();
  out += ' ';
  auto bytes = static_cast<std::size_t>(dtype_bytes(a.dtype()));
  if (bytes == 0 || is_splat(a)) {
    append_element(out, a.dtype(), a.data(), NumberStyle::kNative);
  } else if (a.size() > kMaxListed) {
    out += '"';
    append_hex(out, a.data(), a.nbytes());
    out += '"';
  } else {
    out += '[';
    for (std::int64_t i = 0; i < a.size(); ++i) {
      if (i) out += ", ";
      append_element(out, a.dtype(), a.data() + static_cast<std::size_t>(i) * bytes,
                     NumberStyle::kNative);
    }
    out += ']';
  }
}

struct AttrPrinter {
  std::string& out;

  void operator()(Attr::Unit) const { out += "unit"; }
  void operator()(bool v) const { out += v ? "true" : "false"; }
  void operator()(std::int64_t v) const { fmt::format_to(std::back_inserter(out), "{}", v); }
  void operator()(double v) const { append_double(out, v, NumberStyle::kNative); }
  void operator()(const std::string& v) const { append_quoted(out, v); }
  void operator()(const Dims& v) const { append_dims(out, v); }
  void operator()(const HostArray& v) const { append_array(out, v); }
  void operator()(DType v) const { (out += "dtype ") += dtype_name(v); }
  void operator()(const Type& v) const { (out += "type ") += v.to_string(); }
  void operator()(const EnumAttr& v) const {
    out += '#';
    append_name(out, v.value);
  }
  void operator()(const ScalarAttr& v) const {
    if (is_float(v.dtype)) {
      append_double(out, v.real, NumberStyle::kNative);
    } else {
      fmt::format_to(std::back_inserter(out), "{}", v.integer);
    }
    (out += " : ") += dtype_name(v.dtype);
  }
  void operator()(const SymbolAttr& v) const {
    out += '@';
    append_name(out, v.name);
  }
  void operator()(const OpaqueAttr& v) const {
    out += "opaque ";
    append_quoted(out, v.text);
  }
  void operator()(const std::shared_ptr<const AttrList>& v) const {
    out += "list[";
    bool first = true;
    for (const Attr& a : *v) {
      if (!first) out += ", ";
      first = false;
      write_attr(out, a);
    }
    out += ']';
  }
  void operator()(const std::shared_ptr<const Attrs>& v) const { write_attrs(out, *v); }
};

class GraphPrinter {
 public:
  GraphPrinter(std::string& out, const Graph& g, const NativeOptions& options)
      : out_(out), g_(g), options_(options) {}

  void print() {
    out_ += "graph";
    if (!g_.name.empty()) {
      out_ += " @";
      append_name(out_, g_.name);
    }
    out_ += '(';
    for (std::size_t i = 0; i < g_.params.size(); ++i) {
      if (i) out_ += ", ";
      value(g_.params[i]);
      out_ += ": ";
      type(g_.params[i]);
      if (i < g_.param_attrs.size()) optional_attrs(g_.param_attrs[i]);
    }
    out_ += ") -> (";
    for (std::size_t i = 0; i < g_.results.size(); ++i) {
      if (i) out_ += ", ";
      out_ += valid(g_.results[i]) ? g_.type(g_.results[i]).to_string() : "f32[]";
      if (i < g_.result_attrs.size()) optional_attrs(g_.result_attrs[i]);
    }
    out_ += ')';
    if (!g_.attrs.empty()) {
      out_ += " attributes ";
      write_attrs(out_, g_.attrs);
    }
    out_ += " {\n";
    for (const Op& op : g_.ops) {
      line_start(options_.indent + 2);
      print_op(op);
      out_ += '\n';
    }
    line_start(options_.indent + 2);
    out_ += "return";
    for (std::size_t i = 0; i < g_.results.size(); ++i) {
      out_ += i ? ", " : " ";
      value(g_.results[i]);
    }
    out_ += '\n';
    line_start(options_.indent);
    out_ += '}';
  }

 private:
  // Graphs are printed also when broken, to show what is wrong with them.
  bool valid(ValueId v) const { return v >= 0 && static_cast<std::size_t>(v) < g_.values.size(); }
  void value(ValueId v) { fmt::format_to(std::back_inserter(out_), "%{}", v); }
  void line_start(int indent) { out_.append(static_cast<std::size_t>(indent), ' '); }

  void type(ValueId v) {
    if (!valid(v)) return;
    out_ += g_.type(v).to_string();
    if (const auto& sharding = g_.value(v).sharding) {
      out_ += " sharding(";
      append_quoted(out_, *sharding);
      out_ += ')';
    }
  }

  void optional_attrs(const Attrs& attrs) {
    if (attrs.empty()) return;
    out_ += ' ';
    write_attrs(out_, attrs);
  }

  void print_op(const Op& op) {
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      if (i) out_ += ", ";
      value(op.results[i]);
    }
    if (!op.results.empty()) out_ += " = ";
    out_ += op.def ? op.def->name : std::string_view("undefined");
    out_ += '(';
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      if (i) out_ += ", ";
      value(op.operands[i]);
    }
    out_ += ')';
    optional_attrs(op.attrs);
    if (!op.regions.empty()) print_regions(op);
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      out_ += i ? ", " : " : ";
      type(op.results[i]);
    }
    if (options_.locations) location(op.loc);
  }

  void print_regions(const Op& op) {
    NativeOptions inner = options_;
    inner.indent += 4;
    out_ += " [";
    for (std::size_t i = 0; i < op.regions.size(); ++i) {
      out_ += i ? ",\n" : "\n";
      line_start(inner.indent);
      GraphPrinter(out_, *op.regions[i], inner).print();
    }
    out_ += '\n';
    line_start(options_.indent + 2);
    out_ += ']';
  }

  void location(const Location& loc) {
    const SourceLoc& s = loc.source;
    if (!s.known() && loc.path.empty()) return;
    out_ += " loc(";
    if (s.known()) {
      append_quoted(out_, s.file);
      fmt::format_to(std::back_inserter(out_), ":{}", s.line);
      if (s.column > 0) fmt::format_to(std::back_inserter(out_), ":{}", s.column);
      if (s.function && *s.function) {
        out_ += " in ";
        append_quoted(out_, s.function);
      }
    }
    if (!loc.path.empty()) {
      if (s.known()) out_ += ' ';
      out_ += "at ";
      append_quoted(out_, loc.path);
    }
    out_ += ')';
  }

  std::string& out_;
  const Graph& g_;
  const NativeOptions& options_;
};

}  // namespace

void write_attr(std::string& out, const Attr& attr) { std::visit(AttrPrinter{out}, attr.value()); }

void write_attrs(std::string& out, const Attrs& attrs) {
  out += '{';
  bool first = true;
  for (const auto& [name, value] : attrs.entries()) {
    if (!first) out += ", ";
    first = false;
    append_name(out, name);
    if (value.is_unit()) continue;
    out += " = ";
    write_attr(out, value);
  }
  out += '}';
}

void write_graph(std::string& out, const Graph& graph, const NativeOptions& options) {
  GraphPrinter(out, graph, options).print();
}

}  // namespace text

std::string Attr::to_string() const {
  std::string out;
  text::write_attr(out, *this);
  return out;
}

std::string Graph::to_string() const { return print(*this); }

std::string print(const Graph& graph, bool locations) {
  std::string out;
  text::write_graph(out, graph, {.locations = locations, .indent = 0});
  out += '\n';
  return out;
}

std::string print(const Module& module, bool locations) {
  std::string out = "module";
  if (!module.name.empty()) {
    out += " @";
    text::append_name(out, module.name);
  }
  if (!module.attrs.empty()) {
    out += " attributes ";
    text::write_attrs(out, module.attrs);
  }
  out += " {\n";
  for (const Module::Function& f : module.functions) {
    out += "  ";
    if (f.is_private) out += "private ";
    if (!f.graph) {
      out += "declare @";
      text::append_name(out, f.name);
    } else if (f.graph->name == f.name) {
      text::write_graph(out, *f.graph, {.locations = locations, .indent = 2});
    } else {
      Graph named = *f.graph;
      named.name = f.name;
      text::write_graph(out, named, {.locations = locations, .indent = 2});
    }
    out += '\n';
  }
  out += "}\n";
  return out;
}

}  // namespace xylem::ir
