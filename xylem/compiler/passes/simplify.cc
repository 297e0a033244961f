#include <cstring>
#include <numeric>
#include <optional>

#include "xylem/base/dtype_cast.h"
#include "xylem/base/error.h"
#include "xylem/compiler/passes/passes.h"
#include "xylem/compiler/passes/rewriter.h"
#include "xylem/compiler/reducer.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/ops/all.h"

namespace xylem::compiler {
namespace {

namespace o = ir::ops;
using ir::Attr;
using ir::Attrs;
using ir::Builder;
using ir::kNoValue;
using ir::Op;
using ir::Type;
using ir::ValueId;
using ir::ValueIds;

// Largest result of a folded structural op, in elements.
constexpr std::int64_t kFoldLimit = 1024;

class NoRegions final : public ir::RegionRunner {
 public:
  std::vector<HostArray> run(const ir::Graph&, std::span<const HostArray>) override {
    throw_internal_error("NoRegions", "an op with regions was folded", SourceLoc::current());
  }
};

bool all_equal_elements(const HostArray& a) {
  const auto bytes = static_cast<std::size_t>(dtype_bytes(a.dtype()));
  for (std::int64_t i = 1; i < a.size(); ++i)
    if (std::memcmp(a.data(), a.data() + static_cast<std::size_t>(i) * bytes, bytes) != 0)
      return false;
  return a.size() > 0;
}

HostArray first_element(const HostArray& a) {
  return HostArray::from_bytes(a.dtype(), {},
                               {a.data(), static_cast<std::size_t>(dtype_bytes(a.dtype()))});
}

bool is_identity(const Dims& d) {
  for (int i = 0; i < d.ssize(); ++i)
    if (d[i] != i) return false;
  return true;
}

class Simplifier {
 public:
  explicit Simplifier(const ir::Graph& graph) : rewriter_(graph), b_(rewriter_.builder()) {}

  ir::GraphPtr run() {
    for (const Op& op : rewriter_.old().ops) {
      const ValueIds operands = rewriter_.operands(op);
      if (op.results.size() == 1 && !op.def->is(ir::kEffect)) {
        ValueId v = rewrite(op, operands);
        if (v != kNoValue) {
          rewriter_.set(op.results[0], v);
          changed_ = true;
          continue;
        }
      }
      rewriter_.replace(op, b_.clone(op, operands));
    }
    return changed_ ? rewriter_.finish() : nullptr;
  }

 private:
  const Op* def(ValueId v, const ir::OpDef& d) const {
    const Op* op = b_.graph().def(v);
    return op && op->def == &d ? op : nullptr;
  }
  const Type& type(ValueId v) const { return b_.type(v); }

  // The one value that every element of v has, if that is known.
  std::optional<HostArray> splat(ValueId v) const {
    while (const Op* op = def(v, o::kBroadcastInDim)) v = op->operands[0];
    if (const Op* c = def(v, o::kConstant)) {
      const HostArray& a = c->attrs.array("value");
      if (a.size() == 1) return first_element(a);
    }
    return std::nullopt;
  }
  bool is_number(ValueId v, double number) const {
    auto s = splat(v);
    if (!s || is_complex(s->dtype())) return false;
    HostArray want(s->dtype(), {});
    double_to_element(number, s->dtype(), want.data());
    return s->bit_equal(want);
  }

  ValueId broadcast(ValueId v, const Dims& shape, const Dims& dims) {
    if (type(v).dims() == shape && is_identity(dims)) return v;
    return b_.one(o::kBroadcastInDim, {v},
                  Attrs{{"broadcast_dimensions", Attr(dims)}, {"shape", Attr(shape)}});
  }
  ValueId reshape(ValueId v, const Dims& shape) {
    if (type(v).dims() == shape) return v;
    if (const Op* r = def(v, o::kReshape)) return reshape(r->operands[0], shape);
    return b_.one(o::kReshape, {v}, Attrs{{"shape", Attr(shape)}});
  }
  ValueId constant(HostArray scalar, const Dims& shape) {
    return broadcast(b_.constant(std::move(scalar)), shape, {});
  }

  ValueId rewrite(const Op& op, const ValueIds& in) {
    const Type& result = rewriter_.old().type(op.results[0]);
    if (!result.is_tensor() || !result.is_static()) return kNoValue;
    if (op.def == &o::kConstant) {
      const HostArray& a = op.attrs.array("value");
      if (a.rank() > 0 && all_equal_elements(a)) return constant(first_element(a), a.dims());
      return kNoValue;
    }
    if (result.size() == 0 && !op.def->is(ir::kControlFlow))
      return b_.constant(HostArray(result.dtype(), result.dims()));
    if (ValueId v = fold(op, in, result); v != kNoValue) return v;
    if (op.def->is(ir::kPointwise)) return pointwise(op, in, result);
    if (op.def->is(ir::kStructural)) return structural(op, in, result);
    return empty_operand(op, in, result);
  }

  // f(constants) -> constant.
  ValueId fold(const Op& op, const ValueIds& in, const Type& result) {
    if (in.empty() || op.def->is(ir::kControlFlow) || !op.regions.empty() || !op.def->eval ||
        op.def == &o::kOptimizationBarrier)
      return kNoValue;
    const bool elementwise = op.def->is(ir::kPointwise);
    if (!elementwise && (!op.def->is(ir::kStructural) || op.def == &o::kBroadcastInDim ||
                         result.size() > kFoldLimit))
      return kNoValue;
    std::vector<HostArray> args;
    for (ValueId v : in) {
      if (elementwise) {
        auto s = splat(v);
        if (!s) return kNoValue;
        args.push_back(*s);
      } else {
        const Op* c = def(v, o::kConstant);
        if (!c) return kNoValue;
        args.push_back(c->attrs.array("value"));
      }
    }
    NoRegions regions;
    const Type t = elementwise ? result.with_dims({}) : result;
    std::vector<HostArray> out = op.def->eval({op, args, std::span<const Type>(&t, 1), regions});
    if (!elementwise) return b_.constant(std::move(out[0]));
    return constant(out[0].to_contiguous(), result.dims());
  }

  ValueId pointwise(const Op& op, const ValueIds& in, const Type& result) {
    const bool real = is_float(result.dtype());
    const bool integer = is_integer(result.dtype());
    if (op.def == &o::kMultiply || op.def == &o::kDivide) {
      // x * 1, x / 1 -> x.
      if ((real || integer) && is_number(in[1], 1)) return in[0];
      if (op.def == &o::kMultiply && (real || integer) && is_number(in[0], 1)) return in[1];
      if (op.def == &o::kMultiply && integer && is_number(in[0], 0)) return in[0];
      if (op.def == &o::kMultiply && integer && is_number(in[1], 0)) return in[1];
    }
    if (op.def == &o::kAdd) {
      // x + (-0.0) -> x; with +0.0 the result of -0.0 would change its sign. Integers: x + 0.
      const double zero = real ? -0.0 : 0.0;
      if ((real || integer) && is_number(in[1], zero)) return in[0];
      if ((real || integer) && is_number(in[0], zero)) return in[1];
    }
    if (op.def == &o::kSubtract && (real || integer) && is_number(in[1], 0)) return in[0];
    if (op.def == &o::kNegate)
      if (const Op* n = def(in[0], o::kNegate)) return n->operands[0];
    if (op.def == &o::kNot)
      if (const Op* n = def(in[0], o::kNot)) return n->operands[0];
    if (op.def->is(ir::kIdempotent) && in.size() == 1)
      if (const Op* n = def(in[0], *op.def)) return n->results[0];
    if ((op.def == &o::kMaximum || op.def == &o::kMinimum || op.def == &o::kAnd ||
         op.def == &o::kOr) &&
        in[0] == in[1])
      return in[0];
    if (op.def == &o::kSelect) {
      if (in[1] == in[2]) return in[1];
      if (is_number(in[0], 1)) return in[1];
      if (is_number(in[0], 0)) return in[2];
    }
    if (op.def == &o::kConvert) {
      const DType to = result.dtype();
      if (type(in[0]).dtype() == to) return in[0];
      if (const Op* c = def(in[0], o::kConvert)) {
        // narrow -> wide -> narrow, where the first step is exact.
        const DType from = type(c->operands[0]).dtype();
        if (from == to && exact_conversion(from, type(in[0]).dtype())) return c->operands[0];
      }
    }
    return kNoValue;
  }

  static bool exact_conversion(DType from, DType to) {
    const DTypeInfo &a = dtype_info(from), &b = dtype_info(to);
    if (a.kind == DTypeKind::kFloat && b.kind == DTypeKind::kFloat)
      return (from == DType::kBF16 || from == DType::kF16 || from == DType::kF32) &&
             (to == DType::kF32 || to == DType::kF64) && a.bits < b.bits;
    if (a.kind == b.kind && is_integer(from)) return a.bits < b.bits;
    return is_bool(from) && is_integer(to);
  }

  ValueId structural(const Op& op, const ValueIds& in, const Type& result) {
    if (op.def == &o::kReshape) {
      if (type(in[0]).dims() == result.dims()) return in[0];
      if (const Op* r = def(in[0], o::kReshape)) return reshape(r->operands[0], result.dims());
      if (auto s = splat(in[0])) return constant(*s, result.dims());
      // reshape(broadcast(scalar)) -> broadcast(scalar).
      if (const Op* br = def(in[0], o::kBroadcastInDim); br && type(br->operands[0]).rank() == 0)
        return broadcast(br->operands[0], result.dims(), {});
      return kNoValue;
    }
    if (op.def == &o::kBroadcastInDim) {
      const Dims& dims = op.attrs.dims("broadcast_dimensions");
      if (type(in[0]).dims() == result.dims() && is_identity(dims)) return in[0];
      if (const Op* inner = def(in[0], o::kBroadcastInDim)) {
        Dims composed;
        for (std::int64_t d : inner->attrs.dims("broadcast_dimensions"))
          composed.push_back(dims[d]);
        return broadcast(inner->operands[0], result.dims(), composed);
      }
      return kNoValue;
    }
    if (op.def == &o::kTranspose) {
      const Dims& perm = op.attrs.dims("permutation");
      if (is_identity(perm)) return in[0];
      if (const Op* inner = def(in[0], o::kTranspose)) {
        const Dims& first = inner->attrs.dims("permutation");
        Dims composed;
        for (std::int64_t p : perm) composed.push_back(first[p]);
        if (is_identity(composed)) return inner->operands[0];
        return b_.one(o::kTranspose, {inner->operands[0]}, Attrs{{"permutation", Attr(composed)}});
      }
      if (auto s = splat(in[0])) return constant(*s, result.dims());
      // Only dimensions of size 1 move: a reshape.
      Dims moved, kept;
      for (std::int64_t p : perm)
        if (type(in[0]).dim(static_cast<int>(p)) != 1) moved.push_back(p);
      if (std::is_sorted(moved.begin(), moved.end())) return reshape(in[0], result.dims());
      return kNoValue;
    }
    if (op.def == &o::kSlice) {
      if (type(in[0]).dims() == result.dims()) return in[0];
      if (auto s = splat(in[0])) return constant(*s, result.dims());
      return slice_of(op, in, result);
    }
    if (op.def == &o::kReverse) {
      bool moves = false;
      for (std::int64_t d : op.attrs.dims("dimensions"))
        moves = moves || type(in[0]).dim(static_cast<int>(d)) > 1;
      return moves ? kNoValue : in[0];
    }
    if (op.def == &o::kConcatenate) {
      ValueIds full;
      for (ValueId v : in)
        if (type(v).size() > 0) full.push_back(v);
      if (full.size() == 1) return full[0];
      if (full.size() == in.size()) return kNoValue;
      return b_.one(o::kConcatenate, full, op.attrs);
    }
    if (op.def == &o::kPad) {
      const Dims zeros(result.dims().size(), 0);
      if (type(in[0]).size() == 0) return broadcast(in[1], result.dims(), {});
      if (op.attrs.dims("edge_padding_low") == zeros &&
          op.attrs.dims("edge_padding_high") == zeros && type(in[0]).dims() == result.dims())
        return in[0];
      return kNoValue;
    }
    if (op.def == &o::kDynamicSlice) {
      if (type(in[0]).dims() == result.dims()) return in[0];
      return constant_dynamic_slice(in, result);
    }
    if (op.def == &o::kDynamicUpdateSlice) {
      if (type(in[1]).size() == 0) return in[0];
      if (type(in[1]).dims() == result.dims()) return in[1];
      return kNoValue;
    }
    return kNoValue;
  }

  // slice(slice(x)) -> slice(x); slice(concatenate(…)) inside one operand -> slice(operand).
  ValueId slice_of(const Op& op, const ValueIds& in, const Type& result) {
    const Dims& start = op.attrs.dims("start_indices");
    const Dims& limit = op.attrs.dims("limit_indices");
    const Dims strides = op.attrs.dims_or("strides", Dims(start.size(), 1));
    if (const Op* inner = def(in[0], o::kSlice)) {
      const Dims& start0 = inner->attrs.dims("start_indices");
      const Dims strides0 = inner->attrs.dims_or("strides", Dims(start.size(), 1));
      Dims s, l, st;
      for (std::size_t i = 0; i < start.size(); ++i) {
        s.push_back(start0[i] + start[i] * strides0[i]);
        st.push_back(strides0[i] * strides[i]);
        l.push_back(s[i] + (result.dims()[i] - 1) * st[i] + 1);
      }
      return b_.one(
          o::kSlice, {inner->operands[0]},
          Attrs{{"start_indices", Attr(s)}, {"limit_indices", Attr(l)}, {"strides", Attr(st)}});
    }
    if (const Op* c = def(in[0], o::kConcatenate)) {
      const auto axis = static_cast<std::size_t>(c->attrs.i64("dimension"));
      std::int64_t at = 0;
      for (ValueId part : c->operands) {
        const std::int64_t size = type(part).dims()[axis];
        if (start[axis] >= at && limit[axis] <= at + size) {
          Dims s = start, l = limit;
          s[axis] -= at;
          l[axis] -= at;
          if (type(part).dims() == result.dims()) return part;
          return b_.one(o::kSlice, {part},
                        Attrs{{"start_indices", Attr(s)},
                              {"limit_indices", Attr(l)},
                              {"strides", Attr(strides)}});
        }
        at += size;
      }
    }
    return kNoValue;
  }

  // dynamic_slice with constant starts -> slice.
  ValueId constant_dynamic_slice(const ValueIds& in, const Type& result) {
    const Type operand = type(in[0]);
    Dims start, limit;
    for (std::size_t i = 1; i < in.size(); ++i) {
      auto s = splat(in[i]);
      if (!s) return kNoValue;
      HostArray wide = s->astype(DType::kI64);
      const std::int64_t room = operand.dims()[i - 1] - result.dims()[i - 1];
      start.push_back(std::clamp<std::int64_t>(*wide.as<std::int64_t>(), 0, room));
      limit.push_back(start.back() + result.dims()[i - 1]);
    }
    return b_.one(o::kSlice, {in[0]},
                  Attrs{{"start_indices", Attr(start)},
                        {"limit_indices", Attr(limit)},
                        {"strides", Attr(Dims(start.size(), 1))}});
  }

  // Ops that combine nothing: reduce of no elements -> init, products over nothing -> 0.
  ValueId empty_operand(const Op& op, const ValueIds& in, const Type& result) {
    if (op.def == &o::kReduce && in.size() >= 2 && type(in[0]).size() == 0 &&
        op.attrs.i64_or("num_captures", 0) == 0) {
      ValueId init = in[1];
      if (type(init).dtype() != result.dtype())
        init = b_.one(o::kConvert, {init}, Attrs{{"result_dtype", Attr(result.dtype())}});
      return broadcast(init, result.dims(), {});
    }
    if (op.def == &o::kReduce && in.size() == 2 && op.results.size() == 1)
      return trivial_reduce(op, in, result);
    if (op.def == &o::kDotGeneral && (type(in[0]).size() == 0 || type(in[1]).size() == 0))
      return b_.splat(result.dtype(), result.dims(), 0);
    if (op.def == &o::kScatter && in.size() >= 3 && type(in[2]).size() == 0) return in[0];
    return kNoValue;
  }

  // reduce over dimensions of size 1 by one op -> op(init, x).
  ValueId trivial_reduce(const Op& op, const ValueIds& in, const Type& result) {
    for (std::int64_t d : op.attrs.dims("dimensions"))
      if (type(in[0]).dims()[d] != 1) return kNoValue;
    const ir::OpDef* combine = known_reducer(*op.regions[0]);
    if (!combine || type(in[0]).dtype() != result.dtype()) return kNoValue;
    const ValueId x = reshape(in[0], result.dims());
    return b_.one(*combine, {broadcast(in[1], result.dims(), {}), x});
  }

  Rewriter rewriter_;
  Builder& b_;
  bool changed_ = false;
};

}  // namespace

ir::GraphPtr simplify(const ir::GraphPtr& graph) {
  ir::GraphPtr out = Simplifier(*graph).run();
  return out ? out : graph;
}

}  // namespace xylem::compiler
