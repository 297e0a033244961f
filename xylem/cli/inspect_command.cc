#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/base/json.h"
#include "xylem/cli/commands.h"
#include "xylem/cli/graph_picture.h"
#include "xylem/cli/output.h"
#include "xylem/cli/program_commands.h"
#include "xylem/cli/program_file.h"
#include "xylem/ir/cost.h"
#include "xylem/ir/op_def.h"
#include "xylem/runtime/client.h"

namespace xylem::cli {
namespace {

struct Summary {
  std::string name;
  bool is_private = false;
  std::vector<std::string> params, results;
  std::map<std::string, std::int64_t> histogram;
  std::int64_t num_ops = 0;
  double constants = 0;
  ir::Cost cost;
  std::optional<runtime::MemoryAnalysis> memory;
  std::string why_no_memory;
};

void count(const ir::Graph& g, Summary& s) {
  for (const ir::Op& op : g.ops) {
    ++s.histogram[std::string(op.def->name)];
    ++s.num_ops;
    for (const ir::GraphPtr& r : op.regions) count(*r, s);
  }
}

Summary summarize(const ir::Module::Function& f, runtime::Client& client) {
  Summary s;
  s.name = f.name;
  s.is_private = f.is_private;
  const ir::Graph& g = *f.graph;
  for (const ir::Type& t : g.param_types()) s.params.push_back(t.to_mlir());
  for (const ir::Type& t : g.result_types()) s.results.push_back(t.to_mlir());
  count(g, s);
  s.constants = ir::constant_bytes(g);
  s.cost = ir::cost_of(g);
  if (f.is_private) {
    s.why_no_memory = "private functions are compiled as part of their callers";
    return s;
  }
  try {
    runtime::CompileOptions options;
    options.quick = true;
    options.name = f.name;
    s.memory = client.compile(f.graph, options)->memory();
  } catch (const Error& e) {
    s.why_no_memory = e.message();
  }
  return s;
}

std::string amount(double n, const char* unit) {
  static constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P"};
  std::size_t i = 0;
  while (n >= 1000 && i + 1 < std::size(kPrefixes)) {
    n /= 1000;
    ++i;
  }
  return i == 0 ? fmt::format("{:.0f} {}", n, unit)
                : fmt::format("{:.3g} {}{}", n, kPrefixes[i], unit);
}

std::string bytes(double n) { return amount(n, "B"); }

std::string join(const std::vector<std::string>& parts) {
  std::string s;
  for (const std::string& p : parts) s += (s.empty() ? "" : ", ") + p;
  return s;
}

std::string as_text(const Summary& s) {
  std::string out = fmt::format("func {}@{}({}) -> ({})\n", s.is_private ? "private " : "", s.name,
                                join(s.params), join(s.results));
  out += fmt::format("  ops {}   constants {}   flops {}   transcendentals {}   bytes {}\n",
                     s.num_ops, bytes(s.constants), amount(s.cost.flops, ""),
                     amount(s.cost.transcendentals, ""), bytes(s.cost.bytes));
  if (s.memory) {
    const runtime::MemoryAnalysis& m = *s.memory;
    const auto b = [](std::int64_t n) { return bytes(static_cast<double>(n)); };
    out += fmt::format("  memory: arguments {}, results {}, temporaries {}, aliased {}, code {}\n",
                       b(m.arguments), b(m.results), b(m.temporaries), b(m.aliased), b(m.code));
  } else {
    out += fmt::format("  memory: not known: {}\n", s.why_no_memory);
  }
  std::vector<std::pair<std::int64_t, std::string>> rows;
  for (const auto& [name, n] : s.histogram) rows.emplace_back(-n, name);
  std::sort(rows.begin(), rows.end());
  for (const auto& [n, name] : rows) out += fmt::format("  {:>8}  {}\n", -n, name);
  return out;
}

void as_json(JsonWriter& w, const Summary& s) {
  w.begin_object();
  w.field("name", s.name);
  w.field("private", s.is_private);
  w.array("parameters", s.params);
  w.array("results", s.results);
  w.field("num_ops", s.num_ops);
  w.key("ops");
  w.begin_object();
  for (const auto& [name, n] : s.histogram) w.field(name, n);
  w.end_object();
  w.field("constant_bytes", s.constants);
  w.field("flops", s.cost.flops);
  w.field("transcendentals", s.cost.transcendentals);
  w.field("bytes", s.cost.bytes);
  w.key("memory");
  if (s.memory) {
    w.begin_object();
    w.field("arguments", s.memory->arguments);
    w.field("results", s.memory->results);
    w.field("temporaries", s.memory->temporaries);
    w.field("aliased", s.memory->aliased);
    w.field("code", s.memory->code);
    w.end_object();
  } else {
    w.null();
    w.field("memory_error", s.why_no_memory);
  }
  w.end_object();
}

int inspect(const InspectArguments& a) {
  const ProgramFile file = read_program_file(a.file);
  const ir::Module module = parse_chunk(file, whole(file), false);
  if (a.dot) {
    put(to_dot(module));
    return kDone;
  }
  if (!a.html.empty()) {
    write_file_atomic(a.html, to_html(module, base_name(a.file)));
    return kDone;
  }
  const auto client = runtime::make_cpu_client(1);
  std::vector<Summary> summaries;
  for (const ir::Module::Function& f : module.functions)
    if (f.graph) summaries.push_back(summarize(f, *client));
  if (a.json) {
    JsonWriter w;
    w.begin_object();
    w.field("file", a.file);
    w.field("module", module.name);
    w.key("functions");
    w.begin_array();
    for (const Summary& s : summaries) as_json(w, s);
    w.end_array();
    w.end_object();
    put(w.take() + "\n");
    return kDone;
  }
  std::string text;
  for (const Summary& s : summaries) text += as_text(s);
  put(text);
  return kDone;
}

}  // namespace

int inspect_command(const InspectArguments& a) {
  return with_diagnostics([&] { return inspect(a); });
}

}  // namespace xylem::cli
