// Reads, prints and evaluates programs for the Python suites.
//
//   ir_tool stablehlo FILE              StableHLO text of FILE
//   ir_tool native FILE                 native text of FILE
//   ir_tool samples OUT_DIR             writes a StableHLO text of every op into OUT_DIR
//   ir_tool chunks FILE [OUT_DIR]       reads each part of FILE between lines "// -----" and writes
//                                       "ok K", or "error K" and the diagnostics, one a line behind
//                                       a tab; lines count from the start of the file. Ops of
//                                       unknown dialects are allowed in a part with the line
//                                       "// allow-unregistered". OUT_DIR/K.mlir, K.generic.mlir and
//                                       K.locations.mlir get good parts as they are written
//   ir_tool time FILE                   processor seconds that reading and checking StableHLO text
//   takes, and
//                                       the peak of resident bytes
//   ir_tool run FILE OUT_DIR [INPUT…]   evaluates @main with the interpreter
//
// FILE is native text if its name ends in ".xir", else StableHLO text. An INPUT holds one
// argument's raw bytes; OUT_DIR/K.bin gets those of result K, and "dtype dims…" a line goes to
// standard output.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/ir/bytecode.h"
#include "xylem/ir/interpreter.h"
#include "xylem/ir/testing/text_samples.h"
#include "xylem/ir/text.h"
#include "xylem/ir/verify.h"

namespace xylem::ir {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw EnvironmentError(ErrorParts{"ir_tool", "a readable file", path, "Check the path"});
  std::string text;
  in.seekg(0, std::ios::end);
  text.resize(static_cast<std::size_t>(in.tellg()));
  in.seekg(0);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  return text;
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

// Of this process (VmHWM of Linux).
std::int64_t peak_bytes() {
  std::string line;
  for (std::ifstream status("/proc/self/status"); std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  return 0;
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

void chunk(int k, std::string_view text, const std::string& file, int first_line,
           const std::string& out_dir) {
  ParseOptions options;
  options.first_line = first_line;
  options.allow_unregistered = text.find("// allow-unregistered\n") != std::string_view::npos;
  try {
    Module m = parse_stablehlo(text, file, options);
    std::string broken;
    for (const Module::Function& f : m.functions)
      if (f.graph)
        for (const Diagnostic& d : verify(*f.graph))
          broken += fmt::format("\tverify: {}\n", d.message);
    if (!out_dir.empty()) {
      write_file(fmt::format("{}/{}.mlir", out_dir, k), print_stablehlo(m));
      write_file(fmt::format("{}/{}.generic.mlir", out_dir, k),
                 print_stablehlo(m, {.generic = true}));
      write_file(fmt::format("{}/{}.locations.mlir", out_dir, k),
                 print_stablehlo(m, {.locations = true}));
    }
    fmt::print("{} {}\n{}", broken.empty() ? "ok" : "error", k, broken);
  } catch (const UserError& e) {
    fmt::print("error {}\n", k);
    std::string_view rest = e.message();
    while (!rest.empty()) {
      std::size_t end = rest.find('\n');
      fmt::print("\t{}\n", rest.substr(0, end));
      rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
    }
  }
}

void chunks(const std::string& path, const std::string& out_dir) {
  const std::string text = read_file(path);
  constexpr std::string_view kMark = "// -----\n";
  int k = 0, line = 1;
  std::size_t start = 0;
  for (std::size_t at = 0;; ++at) {
    at = text.find(kMark, at);
    bool last = at == std::string::npos;
    if (!last && at > 0 && text[at - 1] != '\n') continue;
    std::string_view part = std::string_view(text).substr(start, last ? at : at - start);
    chunk(++k, part, path, line, out_dir);
    if (last) return;
    line += 1 + static_cast<int>(std::count(part.begin(), part.end(), '\n'));
    start = at + kMark.size();
    at = start - 1;
  }
}

int main_with(const std::vector<std::string>& args) {
  if (args.size() == 2 && args[0] == "stablehlo") {
    std::fputs(print_stablehlo(load(args[1])).c_str(), stdout);
  } else if (args.size() == 2 && args[0] == "native") {
    std::fputs(print(load(args[1])).c_str(), stdout);
  } else if (args.size() == 2 && args[0] == "time") {
    const std::string text = read_file(args[1]);
    std::clock_t start = std::clock();
    Module m = is_bytecode(text) ? read_bytecode(text, args[1]) : parse_stablehlo(text, args[1]);
    double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    fmt::print("{} {}\n", seconds, peak_bytes());
  } else if (args.size() >= 2 && args[0] == "chunks") {
    chunks(args[1], args.size() > 2 ? args[2] : "");
  } else if (args.size() == 2 && args[0] == "samples") {
    samples(args[1]);
  } else if (args.size() >= 3 && args[0] == "run") {
    run(args[1], args[2], {args.begin() + 3, args.end()});
  } else {
    std::fputs(
        "usage: ir_tool stablehlo|native FILE, samples OUT_DIR, chunks FILE [OUT_DIR], or run FILE "
        "OUT_DIR [INPUT…]\n",
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
