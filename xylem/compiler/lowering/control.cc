// Control flow: steps that run programs of their own, over memory of the program around them.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "xylem/base/error.h"
#include "xylem/compiler/compile_internal.h"
#include "xylem/compiler/fusion/buffer_elemental.h"
#include "xylem/compiler/lowering/lowering.h"
#include "xylem/compiler/passes/passes.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/ops/all.h"

namespace xylem::compiler {
namespace {

using ir::Op;
using ir::ValueId;
using Sub = std::shared_ptr<const ProgramImpl>;

std::int64_t bytes_of(const ir::Type& t) { return t.is_tensor() ? t.nbytes() : 0; }
std::int64_t aligned(std::int64_t n) { return std::max<std::int64_t>((n + 63) / 64 * 64, 64); }

std::string indent(const std::string& text) {
  std::string out = "\n    ";
  for (char c : text) {
    out += c;
    if (c == '\n') out += "    ";
  }
  return out;
}

// The running values of a loop: each iteration reads them at `now` and writes them at `next`.
// A value whose update the body makes in place stays where it is once it lies in memory of the
// loop; the others go to and fro between two buffers.
struct Carry {
  std::int64_t bytes = 0;
  bool in_place = false;
};

class Carries {
 public:
  Carries(std::span<const Carry> shape, void* const* in, void* const* out, void* const* spare)
      : shape_(shape), out_(out), spare_(spare), now_(in, in + shape.size()), next_(shape.size()) {}

  // Where iteration writes, given how many more follow (negative: unknown).
  std::span<void* const> next(std::int64_t more) {
    for (std::size_t i = 0; i < shape_.size(); ++i) {
      const bool own = now_[i] == out_[i] || now_[i] == spare_[i];
      if (shape_[i].in_place && own)
        next_[i] = now_[i];
      else if (now_[i] == out_[i])
        next_[i] = spare_[i];
      else if (now_[i] == spare_[i] || more < 0 || more % 2 == 0 || shape_[i].in_place)
        next_[i] = out_[i];
      else
        next_[i] = spare_[i];
    }
    return next_;
  }
  void step() { now_.swap(next_); }
  std::span<void* const> now() const { return now_; }
  // Brings the last values to where they are wanted.
  void finish() const {
    for (std::size_t i = 0; i < shape_.size(); ++i)
      if (now_[i] != out_[i])
        std::memcpy(out_[i], now_[i], static_cast<std::size_t>(shape_[i].bytes));
  }

 private:
  std::span<const Carry> shape_;
  void* const* out_;
  void* const* spare_;
  std::vector<void*> now_, next_;
};

std::vector<Carry> carries_of(const ProgramImpl& body, std::size_t first_param, std::size_t count) {
  std::vector<Carry> out;
  for (std::size_t i = 0; i < count; ++i)
    out.push_back({bytes_of(body.results[i]),
                   body.placement[i].aliased_param == static_cast<int>(first_param + i)});
  return out;
}

// Operands: carried × n, captures × c, results × n, spares × n, predicate, arena.
class While final : public Action {
 public:
  While(Sub cond, Sub body, std::size_t n, std::size_t captures)
      : cond_(std::move(cond)),
        body_(std::move(body)),
        n_(n),
        captures_(captures),
        carry_(carries_of(*body_, 0, n)) {}

  void run(void* const* o) const override {
    void* const* captures = o + n_;
    void* const* out = captures + captures_;
    void* const* spare = out + n_;
    auto* predicate = static_cast<const std::uint8_t*>(spare[n_]);
    void* const predicate_out[1] = {spare[n_]};
    void* arena = spare[n_ + 1];
    Carries carries(carry_, o, out, spare);
    std::vector<void*> args(n_ + captures_);
    std::copy(captures, captures + captures_, args.begin() + static_cast<std::ptrdiff_t>(n_));
    while (true) {
      std::copy(carries.now().begin(), carries.now().end(), args.begin());
      cond_->run(args, predicate_out, arena);
      if (*predicate == 0) break;
      body_->run(args, carries.next(-1), arena);
      carries.step();
    }
    carries.finish();
  }
  std::string text() const override {
    return "while" + indent(cond_->text()) + indent(body_->text());
  }

 private:
  Sub cond_, body_;
  std::size_t n_, captures_;
  std::vector<Carry> carry_;
};

// Operands: index or predicate, captures × c, results × n, arena.
class Branches final : public Action {
 public:
  Branches(std::vector<Sub> branches, std::size_t captures, std::size_t results, bool predicate)
      : branches_(std::move(branches)),
        captures_(captures),
        results_(results),
        predicate_(predicate) {}

  void run(void* const* o) const override {
    std::size_t which = 0;
    if (predicate_) {
      which = *static_cast<const std::uint8_t*>(o[0]) != 0 ? 0 : 1;
    } else {
      const std::int32_t i = *static_cast<const std::int32_t*>(o[0]);
      which = i < 0 || static_cast<std::size_t>(i) >= branches_.size()
                  ? branches_.size() - 1
                  : static_cast<std::size_t>(i);
    }
    branches_[which]->run({o + 1, captures_}, {o + 1 + captures_, results_},
                          o[1 + captures_ + results_]);
  }
  std::string text() const override {
    std::string out = predicate_ ? "if" : "case";
    for (const Sub& b : branches_) out += indent(b->text());
    return out;
  }

 private:
  std::vector<Sub> branches_;
  std::size_t captures_, results_;
  bool predicate_;
};

// Operands: consts × c, carry × n, xs × x, results: carry × n, ys × y, then spares × n, staging for
// slices of xs and ys that do not start at aligned addresses, arena.
class Scan final : public Action {
 public:
  struct Shape {
    std::int64_t length = 0;
    bool reverse = false;
    std::size_t consts = 0, carry = 0, xs = 0, ys = 0;
    std::vector<std::int64_t> x_bytes, y_bytes;  // of one slice
  };
  Scan(Sub body, Shape shape)
      : body_(std::move(body)),
        s_(std::move(shape)),
        carry_(carries_of(*body_, s_.consts, s_.carry)) {}

  void run(void* const* o) const override {
    void* const* in = o + s_.consts;
    void* const* xs = in + s_.carry;
    void* const* out = xs + s_.xs;
    void* const* ys = out + s_.carry;
    void* const* spare = ys + s_.ys;
    void* const* stage_x = spare + s_.carry;
    void* const* stage_y = stage_x + s_.xs;
    void* arena = stage_y[s_.ys];
    Carries carries(carry_, in, out, spare);
    std::vector<void*> args(s_.consts + s_.carry + s_.xs), results(s_.carry + s_.ys);
    std::copy(o, o + s_.consts, args.begin());
    for (std::int64_t step = 0; step < s_.length; ++step) {
      const std::int64_t i = s_.reverse ? s_.length - 1 - step : step;
      std::copy(carries.now().begin(), carries.now().end(),
                args.begin() + static_cast<std::ptrdiff_t>(s_.consts));
      for (std::size_t x = 0; x < s_.xs; ++x) {
        std::byte* at = static_cast<std::byte*>(xs[x]) + i * s_.x_bytes[x];
        const bool staged = s_.x_bytes[x] % 64 != 0;
        if (staged) std::memcpy(stage_x[x], at, static_cast<std::size_t>(s_.x_bytes[x]));
        args[s_.consts + s_.carry + x] = staged ? stage_x[x] : at;
      }
      const auto next = carries.next(s_.length - 1 - step);
      std::copy(next.begin(), next.end(), results.begin());
      for (std::size_t y = 0; y < s_.ys; ++y)
        results[s_.carry + y] = s_.y_bytes[y] % 64 != 0
                                    ? stage_y[y]
                                    : static_cast<std::byte*>(ys[y]) + i * s_.y_bytes[y];
      body_->run(args, results, arena);
      for (std::size_t y = 0; y < s_.ys; ++y)
        if (s_.y_bytes[y] % 64 != 0)
          std::memcpy(static_cast<std::byte*>(ys[y]) + i * s_.y_bytes[y], stage_y[y],
                      static_cast<std::size_t>(s_.y_bytes[y]));
      carries.step();
    }
    carries.finish();
  }
  std::string text() const override {
    return fmt::format("scan {}{}", s_.length, s_.reverse ? " reversed" : "") +
           indent(body_->text());
  }

 private:
  Sub body_;
  Shape s_;
  std::vector<Carry> carry_;
};

Sub compile_region(Lowering& l, const ir::GraphPtr& region, std::size_t first_donated,
                   std::size_t donated) {
  Options options;
  options.quick = l.options().quick;
  for (std::size_t i = 0; i < donated; ++i)
    options.donated.push_back(static_cast<int>(first_donated + i));
  return compile_program(region, options);
}

void write_all(Lowering& l, const Op& op, std::vector<Use>* uses) {
  for (ValueId v : op.results) uses->push_back({l.buffer(v), true});
}

// A region that one kernel can hold: elementwise ops on scalars.
bool is_scalar_code(const ir::Graph& g) {
  for (const ir::Value& v : g.values) {
    if (!v.type.is_tensor() || v.type.rank() != 0) return false;
    const DTypeInfo& info = dtype_info(v.type.dtype());
    const bool machine = info.bits >= 8 || info.kind == DTypeKind::kBool;
    const bool number = !is_float(v.type.dtype()) || info.bits >= 32;
    if (!machine || !number || is_complex(v.type.dtype())) return false;
  }
  return std::all_of(g.ops.begin(), g.ops.end(), [](const Op& op) {
    return op.regions.empty() && op.results.size() == 1 &&
           op.def != &ir::ops::kOptimizationBarrier &&
           (op.def->is(ir::kPointwise) || op.def == &ir::ops::kConstant ||
            op.def == &ir::ops::kReshape || op.def == &ir::ops::kBroadcastInDim);
  });
}

// A loop over scalars is a loop of machine code, without a step per op and iteration.
bool lower_scalar_while(Lowering& l, const Op& op) {
  using Values = std::vector<ir::KernelValue>;
  for (ValueId v : op.operands)
    if (!l.graph().type(v).is_tensor() || l.graph().type(v).rank() != 0) return false;
  const ir::GraphPtr cond = optimize(op.regions[0], false), body = optimize(op.regions[1], false);
  if (!is_scalar_code(*cond) || !is_scalar_code(*body)) return false;
  const std::size_t n = op.results.size();
  ir::KernelBuilder k("while");
  BufferElemental e(l.graph(), l.plan(), {1}, &k);
  std::vector<Use> uses;
  Values in, out;
  for (ValueId v : op.operands) {
    in.push_back(k.read(l.graph().type(v).dtype(), {1}));
    uses.push_back({l.buffer(v)});
  }
  for (ValueId v : op.results) {
    out.push_back(k.write(l.graph().type(v).dtype(), {1}));
    uses.push_back({l.buffer(v), true});
  }
  e.loops().push_back({0, 0, 1, k.index(0)});
  Values start, captured;
  for (std::size_t i = 0; i < in.size(); ++i)
    (i < n ? start : captured).push_back(k.load_scalar(in[i], {k.index(0)}));
  const auto run = [&](const ir::Graph& region, std::span<const ir::KernelValue> carries) {
    Values args(carries.begin(), carries.end());
    args.insert(args.end(), captured.begin(), captured.end());
    e.enter();
    Values results = e.inline_region(region, args);
    e.leave();
    return results;
  };
  const Values last = k.while_(
      start, [&](std::span<const ir::KernelValue> carries) { return run(*cond, carries)[0]; },
      [&](std::span<const ir::KernelValue> carries) { return run(*body, carries); });
  for (std::size_t i = 0; i < n; ++i) k.store(out[i], last[i], {k.index(0)}, {});
  l.kernel(k.finish(), std::move(uses), 1, 1000);
  return true;
}

}  // namespace

void lower_while(Lowering& l, const Op& op) {
  if (lower_scalar_while(l, op)) return;
  const std::size_t n = op.results.size();
  const Sub cond = compile_region(l, op.regions[0], 0, 0);
  const Sub body = compile_region(l, op.regions[1], 0, n);
  std::vector<Use> uses;
  for (ValueId v : op.operands) uses.push_back({l.buffer(v)});
  write_all(l, op, &uses);
  for (ValueId v : op.results) uses.push_back({l.temp(aligned(bytes_of(l.graph().type(v)))), true});
  uses.push_back({l.temp(64), true});
  uses.push_back({l.temp(aligned(std::max(cond->arena, body->arena))), true});
  const double ns = 10 * (cond->ns + body->ns);
  l.action(std::make_shared<While>(cond, body, n, op.operands.size() - n), std::move(uses), "while",
           ns);
}

void lower_branches(Lowering& l, const Op& op) {
  std::vector<Sub> branches;
  std::int64_t arena = 64;
  double ns = 0;
  for (const ir::GraphPtr& r : op.regions) {
    branches.push_back(compile_region(l, r, 0, 0));
    arena = std::max(arena, branches.back()->arena);
    ns = std::max(ns, branches.back()->ns);
  }
  std::vector<Use> uses;
  for (ValueId v : op.operands) uses.push_back({l.buffer(v)});
  write_all(l, op, &uses);
  uses.push_back({l.temp(aligned(arena)), true});
  const bool predicate = op.def == &ir::ops::kIf;
  l.action(std::make_shared<Branches>(std::move(branches), op.operands.size() - 1,
                                      op.results.size(), predicate),
           std::move(uses), predicate ? "if" : "case", ns);
}

void lower_scan(Lowering& l, const Op& op) {
  const ir::Graph& g = l.graph();
  Scan::Shape s;
  s.length = op.attrs.i64("length");
  s.reverse = op.attrs.flag("reverse");
  s.consts = static_cast<std::size_t>(op.attrs.i64("num_consts"));
  s.carry = static_cast<std::size_t>(op.attrs.i64("num_carry"));
  s.xs = op.operands.size() - s.consts - s.carry;
  s.ys = op.results.size() - s.carry;
  const ir::Graph& region = *op.regions[0];
  for (std::size_t x = 0; x < s.xs; ++x)
    s.x_bytes.push_back(bytes_of(region.type(region.params[s.consts + s.carry + x])));
  for (std::size_t y = 0; y < s.ys; ++y)
    s.y_bytes.push_back(bytes_of(region.type(region.results[s.carry + y])));
  const Sub body = compile_region(l, op.regions[0], s.consts, s.carry);
  std::vector<Use> uses;
  for (ValueId v : op.operands) uses.push_back({l.buffer(v)});
  write_all(l, op, &uses);
  for (std::size_t i = 0; i < s.carry; ++i)
    uses.push_back({l.temp(aligned(bytes_of(g.type(op.results[i])))), true});
  for (std::int64_t b : s.x_bytes) uses.push_back({l.temp(b % 64 ? aligned(b) : 64), true});
  for (std::int64_t b : s.y_bytes) uses.push_back({l.temp(b % 64 ? aligned(b) : 64), true});
  uses.push_back({l.temp(aligned(body->arena)), true});
  const double ns = static_cast<double>(s.length) * body->ns;
  l.action(std::make_shared<Scan>(body, std::move(s)), std::move(uses), "scan", ns);
}

}  // namespace xylem::compiler
