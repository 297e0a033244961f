#include "xylem/core/internal/finite.h"

#include <fmt/format.h>

#include <cmath>

#include "xylem/base/env.h"
#include "xylem/core/debug.h"
#include "xylem/ir/interpreter.h"
#include "xylem/ir/op_def.h"

namespace xylem {
namespace {

thread_local bool jit_disabled = false;
thread_local bool nans = env_flag("XYLEM_DEBUG_NANS");
thread_local bool infs = env_flag("XYLEM_DEBUG_INFS");
thread_local bool captures = env_flag("XYLEM_CHECK_CAPTURES");
thread_local std::string_view path;

}  // namespace

DisableJit::DisableJit(bool on) : before_(std::exchange(jit_disabled, on)) {}
DisableJit::~DisableJit() { jit_disabled = before_; }
bool DisableJit::active() { return jit_disabled; }

DebugNans::DebugNans(bool on) : before_(std::exchange(nans, on)) {}
DebugNans::~DebugNans() { nans = before_; }
bool DebugNans::active() { return nans; }

DebugInfs::DebugInfs(bool on) : before_(std::exchange(infs, on)) {}
DebugInfs::~DebugInfs() { infs = before_; }
bool DebugInfs::active() { return infs; }

CheckCaptures::CheckCaptures(bool on) : before_(std::exchange(captures, on)) {}
CheckCaptures::~CheckCaptures() { captures = before_; }
bool CheckCaptures::active() { return captures; }

NamedScope::NamedScope(std::string_view name) : before_(path) {
  path = ir::intern(path.empty() ? std::string(name) : fmt::format("{}/{}", path, name));
}
NamedScope::~NamedScope() { path = before_; }

namespace internal {

std::string_view scope_path() { return path; }

namespace {

// "nan" or "inf", whichever the array holds and this thread asked for; empty otherwise.
std::string_view bad_value(const HostArray& a) {
  if (!is_inexact(a.dtype())) return "";
  const DType wide = is_complex(a.dtype()) ? DType::kC128 : DType::kF64;
  const HostArray w = a.astype(wide).to_contiguous();
  const auto* v = reinterpret_cast<const double*>(w.data());
  const std::size_t n = w.nbytes() / sizeof(double);
  for (std::size_t i = 0; i < n; ++i) {
    if (nans && std::isnan(v[i])) return "nan";
    if (infs && std::isinf(v[i])) return "inf";
  }
  return "";
}

[[noreturn]] void fail(std::string_view bad, std::string_view op, SourceLoc where) {
  throw FloatingPointError(
      ErrorParts{fmt::format("invalid value ({}) encountered in {}", bad, op),
                 fmt::format("results without {}, as debug_{}s asks for", bad, bad),
                 fmt::format("a result of {} holds {}", op, bad),
                 "Look at the operands of this op, or take the scope away"},
      where);
}

std::string_view short_name(const ir::OpDef& def) {
  return def.name.substr(def.name.find('.') + 1);
}

// Evaluates op by op and throws at the first bad result of good operands.
class Finder final : public ir::RegionRunner {
 public:
  std::vector<HostArray> run(const ir::Graph& g, std::span<const HostArray> args) override {
    std::vector<HostArray> value(g.values.size());
    for (std::size_t i = 0; i < args.size(); ++i) value[at(g.params[i])] = args[i];
    for (const ir::Op& op : g.ops) {
      std::vector<HostArray> operands;
      std::vector<ir::Type> operand_types, types;
      bool good = true;
      for (ir::ValueId v : op.operands) {
        operands.push_back(value[at(v)].to_contiguous());
        operand_types.push_back(g.type(v));
        good = good && bad_value(operands.back()).empty();
      }
      for (ir::ValueId v : op.results) types.push_back(g.type(v));
      if (op.results.empty() && op.def->is(ir::kEffect)) continue;
      std::vector<HostArray> r = op.def->eval({op, operands, types, *this, operand_types});
      for (std::size_t i = 0; i < r.size(); ++i) {
        std::string_view bad = bad_value(r[i]);
        if (good && !bad.empty() && !op.def->is(ir::kConstant))
          fail(bad, short_name(*op.def), op.loc.source);
        value[at(op.results[i])] = std::move(r[i]);
      }
    }
    std::vector<HostArray> out;
    for (ir::ValueId v : g.results) out.push_back(value[at(v)]);
    return out;
  }

 private:
  static std::size_t at(ir::ValueId v) { return static_cast<std::size_t>(v); }
};

}  // namespace

bool checks_values() { return nans || infs; }

void check_values(std::span<const Array> results, std::string_view what, SourceLoc where) {
  for (const Array& a : results) {
    if (!a.defined() || a.is_traced()) continue;
    std::string_view bad = bad_value(a.to_host());
    if (!bad.empty()) fail(bad, what, where);
  }
}

void check_program(const ir::Graph& graph, std::span<const runtime::BufferPtr> args,
                   std::span<const Array> results, std::string_view name, SourceLoc where) {
  bool good = true;
  for (const Array& a : results) good = good && bad_value(a.to_host()).empty();
  if (good) return;
  std::vector<HostArray> in;
  for (const runtime::BufferPtr& b : args) in.push_back(b->to_host());
  Finder().run(graph, in);
  check_values(results, fmt::format("the jitted '{}', one of whose arguments holds it", name),
               where);
}

}  // namespace internal
}  // namespace xylem
