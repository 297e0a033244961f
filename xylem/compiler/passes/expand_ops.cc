#include <algorithm>
#include <utility>

#include "xylem/compiler/lowering/lowering.h"
#include "xylem/compiler/math/expand.h"
#include "xylem/compiler/passes/passes.h"
#include "xylem/compiler/passes/rewriter.h"
#include "xylem/ir/legalize.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/ops/all.h"
#include "xylem/ir/ops/lapack.h"

namespace xylem::compiler {
namespace {

namespace o = ir::ops;
using ir::Attr;
using ir::Attrs;
using ir::Builder;
using ir::Op;
using ir::Type;
using ir::ValueId;
using ir::ValueIds;

Attrs slice_attrs(const Dims& start, const Dims& limit) {
  return Attrs{{"start_indices", Attr(start)},
               {"limit_indices", Attr(limit)},
               {"strides", Attr(Dims(start.size(), 1))}};
}

// rng_bit_generator THREE_FRY: counters, 20 rounds on u32, and the pairing of the two outputs along
// one dimension, all as plain arithmetic.
class ThreeFry {
 public:
  ThreeFry(Builder& b, ValueId state) : b_(b), state_(state) {}

  std::vector<ValueId> run(const Type& out) {
    const bool wide = dtype_bits(out.dtype()) == 64;
    Dims half = out.dims();
    std::size_t split = 0;
    const bool pairs = !wide && !half.empty();
    if (pairs) {
      while (split < half.size() && half[split] % 2 != 0) ++split;
      if (split == half.size())
        split = static_cast<std::size_t>(std::max_element(half.begin(), half.end()) - half.begin());
      half[split] = (half[split] + 1) / 2;
    }
    const std::int64_t n = num_elements(half);
    const ValueId key = word(0), counter = word(1);
    const Dims flat = {n};
    const ValueId iota = b_.one(o::kIota, {},
                                Attrs{{"iota_dimension", Attr(0)},
                                      {"shape", Attr(flat)},
                                      {"result_dtype", Attr(DType::kU64)}});
    const ValueId c = b_.one(o::kAdd, {spread(counter, flat), iota});
    auto [x0, x1] = rounds(low(c), high(c), spread(low(key), flat), spread(high(key), flat));
    ValueId bits;
    if (wide) {
      const ValueId hi =
          b_.one(o::kShiftLeft, {to(x1, DType::kU64), number(DType::kU64, flat, 32)});
      bits = reshape(b_.one(o::kOr, {to(x0, DType::kU64), hi}), half);
    } else if (!pairs) {
      bits = reshape(x0, {});
    } else {
      Dims apart = half, whole = half;
      apart.insert(split + 1, 1);
      whole[split] *= 2;
      const ValueId both = b_.one(o::kConcatenate, {reshape(x0, apart), reshape(x1, apart)},
                                  Attrs{{"dimension", Attr(static_cast<std::int64_t>(split) + 1)}});
      bits = reshape(both, whole);
      if (!(whole == out.dims()))
        bits = b_.one(o::kSlice, {bits}, slice_attrs(Dims(whole.size(), 0), out.dims()));
    }
    const ValueId next =
        b_.one(o::kAdd, {counter, number(DType::kU64, {}, static_cast<double>(n))});
    const ValueId state = b_.one(o::kConcatenate, {reshape(key, {1}), reshape(next, {1})},
                                 Attrs{{"dimension", Attr(0)}});
    return {state, to(bits, out.dtype())};
  }

 private:
  ValueId number(DType t, const Dims& shape, double v) { return b_.splat(t, shape, v); }
  ValueId spread(ValueId v, const Dims& shape) {
    return b_.one(o::kBroadcastInDim, {v},
                  Attrs{{"broadcast_dimensions", Attr(Dims{})}, {"shape", Attr(shape)}});
  }
  ValueId reshape(ValueId v, const Dims& shape) {
    return b_.one(o::kReshape, {v}, Attrs{{"shape", Attr(shape)}});
  }
  ValueId to(ValueId v, DType t) {
    if (b_.type(v).dtype() == t) return v;
    return b_.one(o::kConvert, {v}, Attrs{{"result_dtype", Attr(t)}});
  }
  ValueId word(std::int64_t i) {
    return reshape(b_.one(o::kSlice, {state_}, slice_attrs({i}, {i + 1})), {});
  }
  ValueId low(ValueId v) { return to(v, DType::kU32); }
  ValueId high(ValueId v) {
    const Dims shape = b_.type(v).dims();
    return to(b_.one(o::kShiftRightLogical, {v, number(DType::kU64, shape, 32)}), DType::kU32);
  }
  ValueId rotate(ValueId v, int n) {
    const Dims shape = b_.type(v).dims();
    return b_.one(o::kOr, {b_.one(o::kShiftLeft, {v, number(DType::kU32, shape, n)}),
                           b_.one(o::kShiftRightLogical, {v, number(DType::kU32, shape, 32 - n)})});
  }
  // Threefry-2x32, 20 rounds.
  std::pair<ValueId, ValueId> rounds(ValueId x0, ValueId x1, ValueId k0, ValueId k1) {
    constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    const Dims shape = b_.type(x0).dims();
    const ValueId parity = number(DType::kU32, shape, 0x1BD11BDA);
    const ValueId ks[3] = {k0, k1, b_.one(o::kXor, {b_.one(o::kXor, {k0, k1}), parity})};
    x0 = b_.one(o::kAdd, {x0, ks[0]});
    x1 = b_.one(o::kAdd, {x1, ks[1]});
    for (int i = 0; i < 5; ++i) {
      for (int r : kRotations[i % 2]) {
        x0 = b_.one(o::kAdd, {x0, x1});
        x1 = b_.one(o::kXor, {rotate(x1, r), x0});
      }
      x0 = b_.one(o::kAdd, {x0, ks[(i + 1) % 3]});
      x1 = b_.one(o::kAdd,
                  {x1, b_.one(o::kAdd, {ks[(i + 2) % 3], number(DType::kU32, shape, i + 1)})});
    }
    return {x0, x1};
  }

  Builder& b_;
  ValueId state_;
};

// Linear algebra on narrow floats is that of f32, rounded once.
bool is_narrow_linalg(const ir::Graph& g, const Op& op) {
  if (op.def != &o::kCholesky && op.def != &o::kTriangularSolve) return false;
  const DType t = g.type(op.results[0]).dtype();
  return is_float(t) && dtype_bits(t) < 32;
}

ValueId convert(Builder& b, ValueId v, DType t) {
  return b.one(o::kConvert, {v}, Attrs{{"result_dtype", Attr(t)}});
}

ValueId expand_narrow_linalg(Builder& b, const Op& op, const ir::ValueIds& operands) {
  const DType t = b.type(operands[0]).dtype();
  std::vector<ValueId> wide;
  for (ValueId v : operands) wide.push_back(convert(b, v, DType::kF32));
  return convert(b, b.clone(op, wide)[0], t);
}

bool is_three_fry(const Op& op) {
  return op.def == &o::kRngBitGenerator && op.attrs.str_or("rng_algorithm", "") == "THREE_FRY";
}

// Insertion into a list, which is how top_k runs, pays for short lists only.
bool is_long_top_k(const Op& op) { return op.def == &o::kTopK && op.attrs.i64("k") > 64; }

// Ops with a decomposition and without code of their own.
bool needs_decomposition(const ir::OpDef& def) {
  return def.expand && !has_lowering(def) && !has_expansion(def);
}

}  // namespace

ir::GraphPtr expand_ops(const ir::GraphPtr& before) {
  const ir::GraphPtr graph = ir::decompose(before, needs_decomposition);
  bool any = false;
  for (const Op& op : graph->ops)
    any = any || is_three_fry(op) || is_long_top_k(op) || op.def == &o::kCustomCall ||
          is_narrow_linalg(*graph, op);
  if (!any) return graph;
  Rewriter rewriter(*graph);
  Builder& b = rewriter.builder();
  for (const Op& op : graph->ops) {
    b.set_location(op.loc);
    if (is_three_fry(op))
      rewriter.replace(op, ThreeFry(b, rewriter[op.operands[0]]).run(graph->type(op.results[1])));
    else if (is_long_top_k(op))
      rewriter.replace(op, op.def->expand(b, op, rewriter.operands(op)));
    else if (is_narrow_linalg(*graph, op))
      rewriter.set(op.results[0], expand_narrow_linalg(b, op, rewriter.operands(op)));
    else if (o::is_identity_call(op))
      rewriter.replace(op, rewriter.operands(op));
    else if (o::is_lapack_call(op))
      rewriter.replace(op, o::expand_lapack_call(b, op, rewriter.operands(op)));
    else
      rewriter.copy(op);
  }
  // Calls of JAX's programs for TPUs became ops that have decompositions.
  return ir::decompose(rewriter.finish(), needs_decomposition);
}

}  // namespace xylem::compiler
