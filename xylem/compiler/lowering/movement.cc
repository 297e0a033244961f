// Ops that move whole pieces of memory.

#include <fmt/format.h>

#include <cstring>

#include "xylem/compiler/fusion/buffer_elemental.h"
#include "xylem/compiler/lowering/lowering.h"
#include "xylem/ir/op_def.h"

namespace xylem::compiler {
namespace {

using ir::Op;
using ir::ValueId;

// Operands 0 … n-1 side by side in operand n: `rows` rows, of which operand i has bytes[i] each.
class Concatenate final : public Action {
 public:
  Concatenate(std::int64_t rows, std::vector<std::size_t> bytes)
      : rows_(rows), bytes_(std::move(bytes)) {}
  void run(void* const* operands) const override {
    auto* out = static_cast<std::byte*>(operands[bytes_.size()]);
    for (std::int64_t r = 0; r < rows_; ++r)
      for (std::size_t i = 0; i < bytes_.size(); ++i) {
        std::memcpy(
            out,
            static_cast<const std::byte*>(operands[i]) + static_cast<std::size_t>(r) * bytes_[i],
            bytes_[i]);
        out += bytes_[i];
      }
  }
  std::string text() const override {
    return fmt::format("concatenate {} arrays in {} rows", bytes_.size(), rows_);
  }

 private:
  std::int64_t rows_;
  std::vector<std::size_t> bytes_;
};

}  // namespace

void lower_concatenate(Lowering& l, const Op& op) {
  const ir::Graph& g = l.graph();
  const auto axis = static_cast<int>(op.attrs.i64("dimension"));
  std::int64_t rows = 1;
  const ir::Type& result = g.type(op.results[0]);
  for (int d = 0; d < axis; ++d) rows *= result.dim(d);
  std::vector<std::size_t> bytes;
  std::vector<Use> uses;
  for (ValueId v : op.operands) {
    bytes.push_back(static_cast<std::size_t>(g.type(v).nbytes() / std::max<std::int64_t>(rows, 1)));
    uses.push_back({l.buffer(v)});
  }
  uses.push_back({l.buffer(op.results[0]), true});
  l.action(std::make_shared<Concatenate>(rows, std::move(bytes)), std::move(uses), "concatenate",
           static_cast<double>(result.nbytes()) / 10);
}

// Low bits first is how memory lies: the bytes stay, whatever the widths (from 8 bits up).
namespace {

// Elements of under 8 bits take a byte each in memory: their bits are put together, or apart, the
// first element lowest.
class BitcastBits final : public Action {
 public:
  BitcastBits(DType from, DType to, std::int64_t elements)
      : from_(from), to_(to), elements_(elements) {}

  void run(void* const* operands) const override {
    const auto* in = static_cast<const std::uint8_t*>(operands[0]);
    auto* out = static_cast<std::uint8_t*>(operands[1]);
    const int in_bits = dtype_bits(from_), out_bits = dtype_bits(to_);
    const int in_bytes = dtype_bytes(from_), out_bytes = dtype_bytes(to_);
    const std::int64_t total = elements_ * in_bits;
    std::memset(out, 0, static_cast<std::size_t>(total / out_bits * out_bytes));
    for (std::int64_t bit = 0; bit < total; ++bit) {
      const std::int64_t i = bit / in_bits, j = bit / out_bits;
      const int ib = static_cast<int>(bit % in_bits), jb = static_cast<int>(bit % out_bits);
      const int value = in[i * in_bytes + ib / 8] >> (ib % 8) & 1;
      out[j * out_bytes + jb / 8] =
          static_cast<std::uint8_t>(out[j * out_bytes + jb / 8] | value << (jb % 8));
    }
  }
  std::string text() const override { return "bitcast bits"; }

 private:
  DType from_, to_;
  std::int64_t elements_;
};

}  // namespace

void lower_bitcast(Lowering& l, const Op& op) {
  const ir::Type& from = l.graph().type(op.operands[0]);
  const ir::Type& to = l.graph().type(op.results[0]);
  if (dtype_bits(from.dtype()) < 8 || dtype_bits(to.dtype()) < 8) {
    l.action(std::make_shared<BitcastBits>(from.dtype(), to.dtype(), from.size()),
             {{l.buffer(op.operands[0])}, {l.buffer(op.results[0]), true}}, "bitcast",
             static_cast<double>(from.size()) * 8);
    return;
  }
  l.action(make_copy(from.nbytes()),
           {{l.buffer(op.operands[0])}, {l.buffer(op.results[0]), true, 0}}, "bitcast",
           static_cast<double>(from.nbytes()) / 20);
}

// out = operand with update written over it: in place where the operand dies.
void lower_dynamic_update_slice(Lowering& l, const Op& op) {
  const ir::Graph& g = l.graph();
  const ir::Type& whole = g.type(op.operands[0]);
  const ir::Type& part = g.type(op.operands[1]);
  ir::KernelBuilder k("update_slice");
  TileLoops loops;
  loops.declare(k, part.dims(), dtype_bytes(part.dtype()));
  BufferElemental e(g, l.plan(), part.dims(), &k);
  for (std::size_t i = 1; i < op.operands.size(); ++i) e.read(op.operands[i]);
  const ir::KernelValue out = k.read_write(whole.dtype(), {whole.size()});
  Forms starts;
  e.loops().push_back({0, 0, 1, k.index(0)});
  for (int d = 0; d < whole.rank(); ++d) {
    const ValueId s = op.operands[static_cast<std::size_t>(d) + 2];
    starts.push_back(e.clamped(e.eval(s, {}, {}), g.type(s).dtype(), whole.dim(d) - part.dim(d)));
  }
  loops.run(e, part.dims(), [&](const Elemental::Guard& guard) {
    Forms index, at;
    for (int d = 0; d < part.rank(); ++d) {
      index.push_back(part.dim(d) == 1 ? Form() : Form::axis(d));
      at.push_back(index.back() + starts[static_cast<std::size_t>(d)]);
    }
    e.store(out, flatten(at, whole.dims()), e.eval(op.operands[1], index, guard), guard);
  });
  std::vector<Use> uses;
  for (ValueId v : e.inputs()) uses.push_back({v});
  const int alias = static_cast<int>(uses.size()) + 1;
  uses.push_back({l.buffer(op.results[0]), true, alias, true});
  uses.push_back({.buffer = l.buffer(op.operands[0]), .hidden = true});
  const double bytes = 2.0 * static_cast<double>(part.nbytes());
  l.kernel(k.finish(), std::move(uses), loops.points, bytes / 20 + 20, 0, bytes);
}

}  // namespace xylem::compiler
