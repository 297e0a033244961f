#include "xylem/compiler/testing/compare.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "xylem/base/dtype_cast.h"
#include "xylem/ir/interpreter.h"

namespace xylem::compiler::testing {

std::vector<HostArray> run_program(const Program& program, const std::vector<HostArray>& args,
                                   bool donate) {
  std::vector<HostArray> params, results;
  for (const HostArray& a : args) params.push_back(donate ? a.clone() : a);
  std::vector<void*> p, r;
  for (HostArray& a : params) p.push_back(a.data());
  for (std::size_t i = 0; i < program.result_types().size(); ++i) {
    const ir::Type& t = program.result_types()[i];
    const int alias = program.placements()[i].aliased_param;
    if (!t.is_tensor())
      results.push_back(HostArray(DType::kBool, {1}));
    else if (donate && alias >= 0)
      results.push_back(
          HostArray(t.dtype(), t.dims(), params[static_cast<std::size_t>(alias)].owner()));
    else
      results.push_back(HostArray(t.dtype(), t.dims()));
    r.push_back(results.back().data());
  }
  const auto bytes = static_cast<std::size_t>((program.arena_bytes() + 127) / 64 * 64);
  std::byte* arena = static_cast<std::byte*>(std::aligned_alloc(64, bytes));
  std::memset(arena, 0xFB, bytes);
  program.run(p, r, arena);
  std::free(arena);
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

}  // namespace xylem::compiler::testing
