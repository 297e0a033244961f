// Compiles a StableHLO (or native) program for the CPU, runs it on arguments drawn at random and
// prints what it costs:
//
//   run_program FILE [--runs N] [--donate 0,1,2] [--text] [--check]
//
// Integers are drawn from 0 … 6, floats from [-0.1, 0.1]. --check compares with the interpreter.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "xylem/base/dtype_cast.h"
#include "xylem/base/error.h"
#include "xylem/compiler/compile.h"
#include "xylem/ir/interpreter.h"
#include "xylem/ir/text.h"

namespace {

using xylem::HostArray;
using Clock = std::chrono::steady_clock;

double ms(Clock::time_point from) {
  return std::chrono::duration<double, std::milli>(Clock::now() - from).count();
}

HostArray draw(const xylem::ir::Type& t, std::mt19937_64& random) {
  HostArray a = HostArray::zeros(t.dtype(), t.dims());
  const auto width = static_cast<std::size_t>(xylem::dtype_bytes(t.dtype()));
  for (std::size_t i = 0; i < a.nbytes(); i += width) {
    const double x = xylem::is_float(t.dtype())
                         ? (static_cast<double>(random() % 2001) - 1000) / 10000
                         : static_cast<double>(random() % 7);
    xylem::double_to_element(x, t.dtype(), a.data() + i);
  }
  return a;
}

int run(int argc, char** argv) {
  std::string file;
  int runs = 20;
  bool text = false, check = false;
  xylem::compiler::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    if (a == "--runs")
      runs = std::atoi(argv[++i]);
    else if (a == "--text")
      text = true;
    else if (a == "--check")
      check = true;
    else if (a == "--ftz")
      __builtin_ia32_ldmxcsr(0x9fc0);
    else if (a == "--donate") {
      std::stringstream list(argv[++i]);
      for (std::string n; std::getline(list, n, ',');) options.donated.push_back(std::stoi(n));
    } else
      file = a;
  }
  std::ifstream in(file);
  std::stringstream content;
  content << in.rdbuf();
  const std::string source = content.str();
  auto t = Clock::now();
  const xylem::ir::Module module =
      source.find("stablehlo.") != std::string::npos && source.find("module") != std::string::npos
          ? xylem::ir::parse_stablehlo(source, file)
          : xylem::ir::parse_module(source, file);
  const auto* main = module.find("main");
  const xylem::ir::GraphPtr graph = main ? main->graph : module.functions.at(0).graph;
  fmt::print("read {:.1f} ms, {} ops\n", ms(t), graph->ops.size());
  t = Clock::now();
  const auto program = xylem::compiler::compile(graph, options);
  const double compiled = ms(t);
  const auto& a = program->analysis();
  fmt::print(
      "compile {:.1f} ms (passes {:.1f}, code {:.1f}), arena {} kB, code {} kB, {:.3f} GFLOP\n",
      compiled, a.passes_ms, a.codegen_ms, a.temporaries / 1024, a.code / 1024, a.flops / 1e9);
  if (text) fmt::print("{}\n", program->text());

  std::mt19937_64 random(1);
  std::vector<HostArray> args, results;
  std::vector<void*> p, r;
  for (const auto& type : program->param_types()) args.push_back(draw(type, random));
  std::vector<HostArray> want;
  if (check) want = xylem::ir::evaluate(*graph, args);
  for (HostArray& x : args) p.push_back(x.data());
  for (std::size_t i = 0; i < program->result_types().size(); ++i) {
    const auto& type = program->result_types()[i];
    const int alias = program->placements()[i].aliased_param;
    results.emplace_back(type.dtype(), type.dims());
    r.push_back(alias >= 0 ? p[static_cast<std::size_t>(alias)] : results.back().data());
  }
  const std::size_t bytes = static_cast<std::size_t>(program->arena_bytes() / 64 + 1) * 64;
  void* arena = std::aligned_alloc(64, bytes);
  std::memset(arena, 0, bytes);
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) {
    t = Clock::now();
    program->run(p, r, arena);
    times.push_back(ms(t));
    if (i == 0 && check)
      for (std::size_t k = 0; k < want.size(); ++k) {
        double worst = 0, largest = 0;
        const auto dtype = want[k].dtype();
        const auto width = static_cast<std::size_t>(xylem::dtype_bytes(dtype));
        for (std::size_t e = 0; e < want[k].nbytes(); e += width) {
          const double x = xylem::element_to_double(dtype, want[k].data() + e);
          const double y = xylem::element_to_double(dtype, static_cast<const std::byte*>(r[k]) + e);
          largest = std::max(largest, std::abs(x));
          const double d = std::isnan(x) && std::isnan(y) ? 0 : std::abs(x - y);
          if (!(d <= worst)) worst = d;
        }
        if (!(worst <= 1e-4 * largest + 1e-6))
          fmt::print("result {}: {} differs by {} of {}\n", k, want[k].type_string(), worst,
                     largest);
      }
  }
  std::free(arena);
  std::sort(times.begin(), times.end());
  if (!times.empty())
    fmt::print("run: min {:.3f} ms, median {:.3f} ms of {}\n", times[0], times[times.size() / 2],
               runs);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const xylem::Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
