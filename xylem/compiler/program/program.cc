#include "xylem/compiler/program/program.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>

#include "xylem/base/env.h"
#include "xylem/base/error.h"
#include "xylem/compiler/program/parallel.h"

namespace xylem::compiler {
namespace {

class Copy final : public Action {
 public:
  explicit Copy(std::int64_t bytes) : bytes_(bytes) {}
  void run(void* const* operands) const override {
    if (operands[0] != operands[1])
      std::memmove(operands[1], operands[0], static_cast<std::size_t>(bytes_));
  }
  std::string text() const override { return fmt::format("copy {} bytes", bytes_); }

 private:
  std::int64_t bytes_;
};

struct Launch {
  const CompiledKernel* kernel;
  void* const* buffers;
};

void run_piece(void* context, std::int64_t begin, std::int64_t end) {
  const auto* launch = static_cast<const Launch*>(context);
  launch->kernel->run(launch->buffers, begin, end);
}

std::chrono::steady_clock::time_point log_step(const Step& step,
                                               std::chrono::steady_clock::time_point from) {
  const auto now = std::chrono::steady_clock::now();
  log_line("steps", fmt::format("{:9.1f} us {:9.1f} estimated  {} points {} grain {}",
                                std::chrono::duration<double, std::micro>(now - from).count(),
                                step.ns / 1000, step.name, step.points, step.grain));
  return std::chrono::steady_clock::now();
}

}  // namespace

std::shared_ptr<const Action> make_copy(std::int64_t bytes) {
  return std::make_shared<Copy>(bytes);
}

void ProgramImpl::run(std::span<void* const> p, std::span<void* const> r, void* memory) const {
  constexpr std::size_t kInline = 96;
  void* inline_bases[kInline];
  void* inline_operands[kInline];
  std::vector<void*> more_bases, more_operands;
  void** bases = inline_bases;
  void** operands = inline_operands;
  const std::size_t count = 2 + p.size() + r.size();
  if (count > kInline) {
    more_bases.resize(count);
    bases = more_bases.data();
  }
  if (most_operands > kInline) {
    more_operands.resize(most_operands);
    operands = more_operands.data();
  }
  bases[0] = memory;
  bases[1] = constants.get();
  for (std::size_t i = 0; i < p.size(); ++i) bases[2 + i] = p[i];
  for (std::size_t i = 0; i < r.size(); ++i) bases[2 + p.size() + i] = r[i];
  // A result that was to take a parameter's memory but did not get it starts as a copy.
  for (std::size_t i = 0; i < r.size(); ++i) {
    const int a = placement[i].aliased_param;
    if (a < 0 || r[i] == p[static_cast<std::size_t>(a)]) continue;
    std::memcpy(r[i], p[static_cast<std::size_t>(a)],
                static_cast<std::size_t>(results[i].nbytes()));
    bases[2 + static_cast<std::size_t>(a)] = r[i];
  }
  // XYLEM_LOG=steps: what each step of this run takes.
  static const bool timed = log_enabled("steps");
  auto before = std::chrono::steady_clock::now();
  for (const Step& step : steps) {
    if (timed && &step != steps.data()) before = log_step((&step)[-1], before);
    const Place* place = places.data() + step.first;
    for (std::uint32_t i = 0; i < step.count; ++i)
      operands[i] = static_cast<std::byte*>(bases[place[i].base]) + place[i].offset;
    if (step.kernel < 0) {
      step.action->run(operands);
      continue;
    }
    const CompiledKernel& kernel = *kernels[static_cast<std::size_t>(step.kernel)];
    if (step.grain == 0 || kernel.interpreted) {
      kernel.run(operands, 0, step.points);
    } else {
      Launch launch{&kernel, operands};
      parallel(step.points, step.grain, run_piece, &launch);
    }
  }
  if (timed && !steps.empty()) log_step(steps.back(), before);
}

std::string ProgramImpl::text() const {
  std::string out = graph ? graph->to_string() : "";
  out +=
      fmt::format("\narena {} bytes, {} steps, {} kernels\n", arena, steps.size(), kernels.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& s = steps[i];
    out += fmt::format("{:4} {:<28}", i, s.name);
    if (s.kernel >= 0)
      out += fmt::format(" kernel {} points {} grain {} about {:.1f} us", s.kernel, s.points,
                         s.grain, s.ns / 1000);
    else
      out += " " + s.action->text();
    out += "  (";
    for (std::uint32_t k = 0; k < s.count; ++k) {
      const Place& p = places[s.first + k];
      const auto np = static_cast<std::int32_t>(params.size());
      if (k) out += ", ";
      if (p.base == 0)
        out += fmt::format("arena+{}", p.offset);
      else if (p.base == 1)
        out += fmt::format("const+{}", p.offset);
      else if (p.base < 2 + np)
        out += fmt::format("param {}", p.base - 2);
      else
        out += fmt::format("result {}", p.base - 2 - np);
    }
    out += ")\n";
  }
  return out;
}

}  // namespace xylem::compiler
