// Reads, prints and evaluates programs for the Python suites.
//
//   ir_tool stablehlo FILE              StableHLO text of FILE
//   ir_tool native FILE                 native text of FILE
//   ir_tool samples OUT_DIR             writes a StableHLO text of every op into OUT_DIR
//   ir_tool run FILE OUT_DIR [INPUT…]   evaluates @main with the interpreter
//
// FILE is native text if its name ends in ".xir", else StableHLO text. An INPUT holds one
// argument's raw bytes; OUT_DIR/K.bin gets those of result K, and "dtype dims…" a line goes to
// standard output.

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/ir/interpreter.h"
#include "xylem/ir/testing/text_samples.h"
#include "xylem/ir/text.h"
#include "xylem/ir/verify.h"

namespace xylem::ir {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw EnvironmentError(ErrorParts{"ir_tool", "a readable file", path, "Check the path"});
  return {std::istreambuf_iterator<char>(in), {}};
}

Module load(const std::string& path) {
  std::string text = read_file(path);
  Module m = path.ends_with(".xir") ? parse_module(text, path) : parse_stablehlo(text, path);
  for (const Module::Function& f : m.functions)
    if (f.graph) verify_or_throw(*f.graph);
  return m;
}

void run(const std::string& path, const std::string& out_dir,
         const std::vector<std::string>& inputs) {
  Module m = load(path);
  const Module::Function* f = m.find("main");
  if (!f && m.functions.size() == 1) f = &m.functions[0];
  if (!f || !f->graph)
    throw UserError(ErrorParts{"ir_tool run", "a function main", "none", "Name the entry main"});
  std::vector<Type> types = f->graph->param_types();
  std::vector<HostArray> args;
  for (std::size_t i = 0; i < inputs.size() && i < types.size(); ++i) {
    std::string bytes = read_file(inputs[i]);
    args.push_back(HostArray::from_bytes(types[i].dtype(), types[i].dims(),
                                         std::as_bytes(std::span(bytes.data(), bytes.size()))));
  }
  std::vector<HostArray> results = evaluate(*f->graph, args);
  for (std::size_t k = 0; k < results.size(); ++k) {
    const HostArray& r = results[k];
    std::ofstream out(fmt::format("{}/{}.bin", out_dir, k), std::ios::binary);
    out.write(reinterpret_cast<const char*>(r.data()), static_cast<std::streamsize>(r.nbytes()));
    std::string line = dtype_info(r.dtype()).numpy_name;
    for (std::int64_t d : r.dims()) line += fmt::format(" {}", d);
    std::puts(line.c_str());
  }
}

void samples(const std::string& out_dir) {
  for (const GraphPtr& g : testing::stablehlo_samples()) {
    Module m;
    m.name = g->name;
    m.functions.push_back({"main", false, g});
    std::ofstream(fmt::format("{}/{}.mlir", out_dir, g->name)) << print_stablehlo(m);
  }
}

int main_with(const std::vector<std::string>& args) {
  if (args.size() == 2 && args[0] == "stablehlo") {
    std::fputs(print_stablehlo(load(args[1])).c_str(), stdout);
  } else if (args.size() == 2 && args[0] == "native") {
    std::fputs(print(load(args[1])).c_str(), stdout);
  } else if (args.size() == 2 && args[0] == "samples") {
    samples(args[1]);
  } else if (args.size() >= 3 && args[0] == "run") {
    run(args[1], args[2], {args.begin() + 3, args.end()});
  } else {
    std::fputs(
        "usage: ir_tool stablehlo|native FILE, samples OUT_DIR, or run FILE OUT_DIR [INPUT…]\n",
        stderr);
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace xylem::ir

int main(int argc, char** argv) {
  try {
    return xylem::ir::main_with({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
