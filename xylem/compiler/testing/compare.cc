#include "xylem/compiler/testing/compare.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "xylem/base/dtype_cast.h"
#include "xylem/base/env.h"
#include "xylem/base/error.h"
#include "xylem/ir/interpreter.h"
#include "xylem/ir/testing/minimise.h"
#include "xylem/ir/testing/random_program.h"

namespace xylem::compiler::testing {

namespace {

bool guarded() {
  static const bool yes = env_flag("XYLEM_GUARD");
  return yes;
}

// Memory for a run, full of signalling NaNs; with XYLEM_GUARD=1 it ends at an inaccessible page.
std::shared_ptr<std::byte> memory(std::size_t bytes) {
  const std::size_t size = (std::max<std::size_t>(bytes, 1) + 63) / 64 * 64;
  std::shared_ptr<std::byte> out;
  if (guarded()) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t mapped = (size + page - 1) / page * page + page;
    void* base = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    XYLEM_CHECK(base != MAP_FAILED, "no memory for a guarded block");
    std::byte* end = static_cast<std::byte*>(base) + mapped - page;
    mprotect(end, page, PROT_NONE);
    out = {end - size, [base, mapped](std::byte*) { munmap(base, mapped); }};
  } else {
    out = {static_cast<std::byte*>(std::aligned_alloc(64, size)),
           [](std::byte* p) { std::free(p); }};
  }
  const std::uint32_t signalling = 0x7FA5A5A5u;
  for (std::size_t i = 0; i < size; i += 4) std::memcpy(out.get() + i, &signalling, 4);
  return out;
}

}  // namespace

std::vector<HostArray> run_program(const Program& program, const std::vector<HostArray>& args,
                                   bool donate) {
  std::vector<HostArray> params, results;
  std::vector<void*> p, r;
  for (const HostArray& a : args) {
    params.emplace_back(a.dtype(), a.dims(), memory(a.nbytes()));
    std::memcpy(params.back().data(), a.data(), a.nbytes());
    p.push_back(params.back().data());
  }
  for (std::size_t i = 0; i < program.result_types().size(); ++i) {
    const ir::Type& t = program.result_types()[i];
    const int alias = program.placements()[i].aliased_param;
    if (!t.is_tensor())
      results.emplace_back(DType::kBool, Dims{1});
    else if (donate && alias >= 0)
      results.emplace_back(t.dtype(), t.dims(), params[static_cast<std::size_t>(alias)].owner());
    else
      results.emplace_back(t.dtype(), t.dims(), memory(static_cast<std::size_t>(t.nbytes())));
    r.push_back(results.back().data());
  }
  const std::shared_ptr<std::byte> arena = memory(static_cast<std::size_t>(program.arena_bytes()));
  program.run(p, r, arena.get());
  for (std::size_t i = 0; i < args.size() && !donate; ++i)
    XYLEM_CHECK(params[i].bit_equal(args[i]),
                "a program wrote to an argument that it was not given");
  return results;
}

std::vector<HostArray> make_args(const ir::Graph& graph, std::uint64_t seed) {
  std::mt19937_64 random(seed * 7919 + 1);
  std::vector<HostArray> args;
  for (ir::ValueId v : graph.params) {
    const ir::Type& t = graph.type(v);
    HostArray a = HostArray::zeros(t.dtype(), t.dims());
    const auto width = static_cast<std::size_t>(dtype_bytes(t.dtype()));
    const bool complex = is_complex(t.dtype());
    const DType part = complex ? real_dtype(t.dtype()) : t.dtype();
    const std::size_t step = complex ? width / 2 : width;
    for (std::size_t at = 0; at < a.nbytes(); at += step) {
      double x = 0;
      if (is_bool(part))
        x = static_cast<double>(random() % 2);
      else if (is_inexact(part))
        x = static_cast<double>(static_cast<std::int64_t>(random() % 4001) - 2000) / 512;
      else
        x = static_cast<double>(random() % (dtype_bits(part) < 4 ? 2 : 7));
      double_to_element(x, part, a.data() + at);
    }
    args.push_back(std::move(a));
  }
  return args;
}

std::string difference(const HostArray& want, const HostArray& got, const Tolerance& tolerance) {
  if (want.dtype() != got.dtype() || want.dims() != got.dims())
    return fmt::format("want {}, got {}", want.type_string(), got.type_string());
  const auto width = static_cast<std::size_t>(dtype_bytes(want.dtype()));
  const bool complex = is_complex(want.dtype());
  const DType part = complex ? real_dtype(want.dtype()) : want.dtype();
  const std::size_t step = complex ? width / 2 : width;
  for (std::size_t at = 0; at < want.nbytes(); at += step) {
    if (std::memcmp(want.data() + at, got.data() + at, step) == 0) continue;
    const double a = element_to_double(part, want.data() + at);
    const double b = element_to_double(part, got.data() + at);
    if (std::isnan(a) && std::isnan(b)) continue;
    const double error = std::abs(a - b);
    const double most =
        tolerance.absolute + tolerance.relative * std::max(std::abs(a), std::abs(b));
    if (tolerance.relative + tolerance.absolute > 0 && error <= most) continue;
    return fmt::format("element {} of {}: want {}, got {}", at / step, want.type_string(), a, b);
  }
  return "";
}

std::string compare(const ir::GraphPtr& graph, const std::vector<HostArray>& args,
                    const Tolerance& tolerance, const Options& options) {
  const std::vector<HostArray> want = ir::evaluate(*graph, args);
  const std::shared_ptr<const Program> program = compile(graph, options);
  const std::vector<HostArray> got = run_program(*program, args, !options.donated.empty());
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (!program->result_types()[i].is_tensor()) continue;
    const std::string d = difference(want[i], got[i], tolerance);
    if (!d.empty()) return fmt::format("result {}: {}", i, d);
  }
  return "";
}

std::string random_failure(bool exact, std::uint64_t seed) {
  const ir::GraphPtr g = ir::testing::random_program(seed, {.exact = exact});
  // The program at work when a run ends in a fault.
  if (log_enabled("random")) log_line("random", fmt::format("seed {}\n{}", seed, g->to_string()));
  const std::vector<HostArray> args = make_args(*g, seed);
  try {
    ir::evaluate(*g, args);
  } catch (const UserError&) {
    return "";  // what the interpreter refuses cannot be compared
  }
  Options options;
  options.quick = seed % 2 == 0;
  if (seed % 3 == 0)
    for (std::size_t p = 0; p < g->params.size(); ++p)
      options.donated.push_back(static_cast<int>(p));
  auto difference_of = [&](const ir::testing::ProgramCase& c) -> std::string {
    Options o = options;
    std::erase_if(o.donated, [&](int p) { return p >= static_cast<int>(c.args.size()); });
    try {
      return compare(c.graph, c.args, exact ? Tolerance{} : Tolerance{1e-3, 1e-3}, o);
    } catch (const Error& e) {
      return e.what();
    }
  };
  if (difference_of({g, args}).empty()) return "";
  // Reported as a few ops.
  const ir::testing::ProgramCase least = ir::testing::minimise(
      {g, args}, [&](const ir::testing::ProgramCase& c) { return !difference_of(c).empty(); });
  return fmt::format("seed {}: {}\n{}", seed, difference_of(least), ir::testing::case_text(least));
}

}  // namespace xylem::compiler::testing
