#include "xylem/cli/graph_picture.h"

#include <fmt/format.h>

#include <iterator>

#include "xylem/base/json.h"
#include "xylem/ir/op_def.h"

namespace xylem::cli {
namespace {

using ir::Graph;
using ir::Op;
using ir::ValueId;

constexpr std::size_t kMaxLabel = 60;

std::string shortened(std::string s) {
  if (s.size() <= kMaxLabel) return s;
  std::size_t n = kMaxLabel;
  while (n > 0 && (static_cast<unsigned char>(s[n]) & 0xC0) == 0x80) --n;
  return s.substr(0, n) + "…";
}

std::string attrs_text(const Op& op) {
  std::string s;
  for (const auto& [name, value] : op.attrs.entries())
    s += fmt::format("{}{} = {}", s.empty() ? "" : ", ", name, shortened(value.to_string()));
  return s;
}

std::string escape(std::string_view s) {
  std::string out;
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    out += c;
  }
  return out;
}

class DotWriter {
 public:
  std::string take() { return std::move(out_); }

  void function(const ir::Module::Function& f) {
    open(fmt::format("@{}", f.name));
    graph(*f.graph);
    close();
  }

 private:
  void line(std::string_view s) {
    out_.append(static_cast<std::size_t>(depth_) * 2, ' ');
    out_ += s;
    out_ += '\n';
  }
  void open(std::string_view label) {
    line(fmt::format("subgraph cluster_{} {{", next_++));
    ++depth_;
    line(fmt::format("label=\"{}\";", escape(label)));
  }
  void close() {
    --depth_;
    line("}");
  }
  std::string node(std::string_view label, std::string_view style) {
    std::string name = fmt::format("n{}", next_++);
    line(fmt::format("{} [label=\"{}\"{}];", name, escape(label), style));
    return name;
  }

  void graph(const Graph& g) {
    std::vector<std::string> names(g.values.size());
    for (std::size_t i = 0; i < g.params.size(); ++i)
      names[static_cast<std::size_t>(g.params[i])] = node(fmt::format("arg{}", i), ", shape=oval");
    for (const Op& op : g.ops) {
      const std::string name = node(op.def->name, "");
      for (ValueId v : op.operands) edge(g, v, names[static_cast<std::size_t>(v)], name);
      for (std::size_t r = 0; r < op.regions.size(); ++r) {
        open(fmt::format("{} region {}", op.def->name, r));
        graph(*op.regions[r]);
        close();
      }
      for (ValueId v : op.results) names[static_cast<std::size_t>(v)] = name;
    }
    const std::string end = node("return", ", shape=oval");
    for (ValueId v : g.results) edge(g, v, names[static_cast<std::size_t>(v)], end);
  }
  void edge(const Graph& g, ValueId v, const std::string& from, const std::string& to) {
    line(fmt::format("{} -> {} [label=\"{}\"];", from, to, escape(g.type(v).to_string())));
  }

  std::string out_;
  int depth_ = 1, next_ = 0;
};

// {"name", "nodes": [{"op", "types", "attrs", "loc", "in": [[node, type]…], "regions": […]}…]};
// parameters come first, the node of the results last.
void write_graph(JsonWriter& w, const Graph& g, std::string_view name) {
  std::vector<int> node_of(g.values.size(), -1);
  int next = 0;
  w.begin_object();
  w.field("name", name);
  w.key("nodes");
  w.begin_array();
  const auto write_inputs = [&](const ir::ValueIds& operands) {
    w.key("in");
    w.begin_array();
    for (ValueId v : operands) {
      w.begin_array();
      w.value(node_of[static_cast<std::size_t>(v)]);
      w.value(g.type(v).to_string());
      w.end_array();
    }
    w.end_array();
  };
  for (std::size_t i = 0; i < g.params.size(); ++i) {
    node_of[static_cast<std::size_t>(g.params[i])] = next++;
    w.begin_object();
    w.field("op", fmt::format("arg{}", i));
    w.field("types", g.type(g.params[i]).to_string());
    w.end_object();
  }
  for (const Op& op : g.ops) {
    w.begin_object();
    w.field("op", op.def->name);
    std::string types;
    for (ValueId v : op.results) types += (types.empty() ? "" : ", ") + g.type(v).to_string();
    w.field("types", types);
    w.field("attrs", attrs_text(op));
    if (op.loc.source.file)
      w.field("loc", fmt::format("{}:{}", op.loc.source.file, op.loc.source.line));
    write_inputs(op.operands);
    if (!op.regions.empty()) {
      w.key("regions");
      w.begin_array();
      for (std::size_t r = 0; r < op.regions.size(); ++r)
        write_graph(w, *op.regions[r], fmt::format("region {}", r));
      w.end_array();
    }
    w.end_object();
    for (ValueId v : op.results) node_of[static_cast<std::size_t>(v)] = next;
    ++next;
  }
  w.begin_object();
  w.field("op", "return");
  ir::ValueIds results;
  for (ValueId v : g.results) results.push_back(v);
  write_inputs(results);
  w.end_object();
  w.end_array();
  w.end_object();
}

std::string escape_html(std::string_view s) {
  std::string out;
  for (char c : s) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

// A data block must not hold "</script".
std::string escape_script(std::string_view json) {
  std::string out;
  for (char c : json) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

constexpr std::string_view kPage =
#include "xylem/cli/internal/graph_page.inc"
    ;

std::string replaced(std::string text, std::string_view mark, std::string_view by) {
  const std::size_t at = text.find(mark);
  if (at != std::string::npos) text.replace(at, mark.size(), by);
  return text;
}

}  // namespace

std::string to_dot(const ir::Module& module) {
  std::string out = "digraph module {\n  node [shape=box, fontname=\"monospace\"];\n";
  DotWriter w;
  for (const ir::Module::Function& f : module.functions)
    if (f.graph) w.function(f);
  return out + w.take() + "}\n";
}

std::string to_html(const ir::Module& module, const std::string& title) {
  JsonWriter w;
  w.begin_array();
  for (const ir::Module::Function& f : module.functions)
    if (f.graph) write_graph(w, *f.graph, "@" + f.name);
  w.end_array();
  return replaced(replaced(std::string(kPage), "{{title}}", escape_html(title)), "{{data}}",
                  escape_script(w.take()));
}

}  // namespace xylem::cli
