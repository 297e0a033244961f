#include "xylem/ir/testing/random_program.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "xylem/base/error.h"
#include "xylem/ir/builder.h"
#include "xylem/ir/ops/all.h"

namespace xylem::ir::testing {
namespace {

namespace o = ops;

class Maker {
 public:
  Maker(std::uint64_t seed, const RandomProgramOptions& options)
      : random_(seed * 0x9E3779B97F4A7C15ull + 1), options_(options), b_("random") {
    list_pointwise();
  }
  // A part of another program.
  Maker(std::uint64_t seed, const RandomProgramOptions& options, int depth)
      : random_(seed), options_(options), b_("part"), depth_(depth) {
    list_pointwise();
  }

  GraphPtr run() {
    const int params = number(1, 4);
    for (int i = 0; i < params; ++i) values_.push_back(b_.param(Type::tensor(dtype(), shape())));
    make(options_.num_ops);
    std::vector<ValueId> results = {values_.back()};
    for (int i = number(0, 3); i > 0; --i) results.push_back(any());
    return b_.finish(std::move(results));
  }

  // A program from values of the given types to others: ops that lead from here to there as far as
  // the draws happen to.
  GraphPtr part(const std::vector<Type>& params, const std::vector<Type>& results) {
    for (const Type& t : params) values_.push_back(b_.param(t));
    make(options_.num_ops);
    std::vector<ValueId> out;
    for (const Type& t : results) {
      ValueId found = kNoValue;
      for (ValueId v : values_)
        if (type(v) == t) found = v;  // the newest
      out.push_back(found != kNoValue ? found : b_.splat(t.dtype(), t.dims(), number(0, 3)));
    }
    return b_.finish(std::move(out));
  }

 private:
  void list_pointwise() {
    for (const OpDef* op : op_table()) {
      if (!op->is(kPointwise) || !op->is(kExact) || op->is(kKernelOnly) || op->is(kXylem) ||
          op->num_regions != 0 || op->max_operands < 1)
        continue;
      if (options_.portable && (op == &o::kReducePrecision || op->name.starts_with("chlo.")))
        continue;
      pointwise_.push_back(op);
    }
  }

  void make(int num_ops) {
    int made = 0;
    for (int tries = 0; made < num_ops && tries < 40 * num_ops; ++tries) {
      const std::size_t before = values_.size();
      try {
        step();
      } catch (const UserError&) {
        // The draw broke a rule of the op: draw again.
      }
      if (values_.size() > before) ++made;
    }
  }

  int number(int lo, int hi) {
    return lo + static_cast<int>(random_() % static_cast<std::uint64_t>(hi - lo + 1));
  }
  bool chance(int percent) { return number(1, 100) <= percent; }
  ValueId any() {
    return values_[static_cast<std::size_t>(number(0, static_cast<int>(values_.size()) - 1))];
  }
  DType dtype() {
    static constexpr DType kExactTypes[] = {
        DType::kF32, DType::kF32, DType::kF64, DType::kBF16, DType::kF16, DType::kI32, DType::kI64,
        DType::kI8,  DType::kU8,  DType::kI16, DType::kU32,  DType::kU64, DType::kBool};
    static constexpr DType kRareTypes[] = {DType::kU16,        DType::kC64,
                                           DType::kC128,       DType::kI4,
                                           DType::kU4,         DType::kI2,
                                           DType::kU2,         DType::kF8E4M3FN,
                                           DType::kF8E5M2,     DType::kF8E4M3,
                                           DType::kF8E3M4,     DType::kF8E4M3FNUZ,
                                           DType::kF8E5M2FNUZ, DType::kF8E4M3B11FNUZ,
                                           DType::kF8E8M0FNU,  DType::kF4E2M1FN,
                                           DType::kF6E2M3FN,   DType::kF6E3M2FN};
    if (options_.exact && chance(20)) return kRareTypes[number(0, options_.portable ? 0 : 17)];
    if (options_.exact) return kExactTypes[number(0, 12)];
    return chance(80) ? DType::kF32 : DType::kF64;
  }
  Dims shape() {
    static constexpr std::int64_t kSizes[] = {1, 2, 3, 4, 5, 7, 8, 16, 17, 33};
    Dims d;
    for (int rank = number(0, 3); rank > 0; --rank)
      d.push_back(options_.exact && chance(2) ? 0 : kSizes[number(0, 9)]);
    return d;
  }
  // A copy: appending ops moves the graph's types.
  Type type(ValueId v) const { return b_.type(v); }
  // A value of exactly this type: an old one, or a new one by conversion and broadcast.
  ValueId like(Type t) {
    std::vector<ValueId> fitting;
    for (ValueId v : values_)
      if (type(v) == t) fitting.push_back(v);
    if (!fitting.empty() && chance(85))
      return fitting[static_cast<std::size_t>(number(0, static_cast<int>(fitting.size()) - 1))];
    return b_.splat(t.dtype(), t.dims(), number(0, 3));
  }
  void keep(const ValueIds& made) {
    for (ValueId v : made)
      if (type(v).is_tensor() && type(v).size() <= 40000) values_.push_back(v);
  }
  ValueId fit(ValueId v, DType to) {
    if (type(v).dtype() == to) return v;
    return b_.one(o::kConvert, {v}, Attrs{{"result_dtype", Attr(to)}});
  }
  ValueId index(std::int64_t size) {
    // An index somewhere around the range.
    return b_.constant(
        HostArray::scalar(static_cast<std::int32_t>(number(-1, static_cast<int>(size)))));
  }

  void step() {
    switch (number(0, 19)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4: return pointwise();
      case 5: return broadcast();
      case 6: return reshape();
      case 7: return transpose();
      case 8: return slice();
      case 9: return pad();
      case 10: return concatenate();
      case 11: return reduce();
      case 12: return normalise();
      case 13: return update();
      case 14: return sort_or_walk();
      case 15: return gather_or_scatter();
      case 16: return loop();
      case 17: return branch();
      case 18: return chance(50) ? product() : reduce();
      case 19: return window();
    }
  }

  void pointwise() {
    const ValueId x = any();
    const Type t = type(x);
    if (!options_.exact) {
      static const OpDef* const kUnary[] = {&o::kTanh, &o::kLogistic, &o::kSine, &o::kNegate,
                                            &o::kAbs};
      static const OpDef* const kBinary[] = {&o::kAdd, &o::kSubtract, &o::kMaximum, &o::kMinimum};
      if (is_bool(t.dtype()) || is_integer(t.dtype())) return;
      if (chance(40)) return keep(b_.op(*kUnary[number(0, 4)], {x}));
      if (chance(20)) {
        const ValueId y = b_.one(o::kTanh, {like(t)});
        return keep(b_.op(o::kMultiply, {x, y}));
      }
      return keep(b_.op(*kBinary[number(0, 3)], {x, like(t)}));
    }
    const OpDef& op =
        *pointwise_[static_cast<std::size_t>(number(0, static_cast<int>(pointwise_.size()) - 1))];
    Attrs attrs;
    if (op.find_attr("comparison_direction")) {
      static constexpr const char* kDirections[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
      attrs.set("comparison_direction", Attr(EnumAttr(kDirections[number(0, 5)])));
    }
    if (op.find_attr("result_dtype")) attrs.set("result_dtype", Attr(dtype()));
    if (op.find_attr("exponent_bits")) {
      attrs.set("exponent_bits", Attr(number(3, 8)));
      attrs.set("mantissa_bits", Attr(number(1, 20)));
    }
    // These round complex numbers within a bound only.
    if (is_complex(t.dtype()) &&
        (&op == &o::kDivide || &op == &o::kSign || &op == &o::kMultiply || &op == &o::kSqrt))
      return;
    std::vector<ValueId> in;
    for (int i = 0; i < op.max_operands; ++i) in.push_back(i == 0 ? x : like(t));
    if (&op == &o::kSelect) in[0] = like(Type::tensor(DType::kBool, t.dims())), in[1] = x;
    keep(b_.op(op, in, attrs));
  }

  void broadcast() {
    const ValueId x = any();
    Dims dims, out;
    for (int i = 0; i < type(x).rank(); ++i) {
      while (chance(25) && out.size() < 4) out.push_back(number(1, 5));
      dims.push_back(out.ssize());
      out.push_back(type(x).dim(i) == 1 && chance(50) ? number(1, 9) : type(x).dim(i));
    }
    while (chance(30) && out.size() < 4) out.push_back(number(1, 17));
    keep(b_.op(o::kBroadcastInDim, {x},
               Attrs{{"broadcast_dimensions", Attr(dims)}, {"shape", Attr(out)}}));
  }

  void reshape() {
    const ValueId x = any();
    std::int64_t left = type(x).size();
    Dims out;
    for (std::int64_t f : {2, 3, 4, 5, 7, 8, 16})
      if (left > 1 && left % f == 0 && chance(50)) {
        out.push_back(f);
        left /= f;
      }
    out.insert(static_cast<std::size_t>(number(0, out.ssize())), left);
    keep(b_.op(o::kReshape, {x}, Attrs{{"shape", Attr(out)}}));
  }

  void transpose() {
    const ValueId x = any();
    Dims perm;
    for (int i = 0; i < type(x).rank(); ++i) perm.push_back(i);
    std::shuffle(perm.begin(), perm.end(), random_);
    if (chance(25))
      return keep(b_.op(o::kReverse, {x},
                        Attrs{{"dimensions", Attr(Dims(std::span<const std::int64_t>(
                                                 perm.data(), perm.size() / 2)))}}));
    keep(b_.op(o::kTranspose, {x}, Attrs{{"permutation", Attr(perm)}}));
  }

  void slice() {
    const ValueId x = any();
    Dims start, limit, stride, sizes;
    for (const Dims dims = type(x).dims(); std::int64_t d : dims) {
      const int n = static_cast<int>(d);
      start.push_back(n > 1 ? number(0, n - 1) : 0);
      limit.push_back(n > 0 ? number(static_cast<int>(start.back()) + 1, n) : 0);
      stride.push_back(number(1, 3));
      sizes.push_back(limit.back() - start.back());
    }
    if (chance(60))
      return keep(b_.op(o::kSlice, {x},
                        Attrs{{"start_indices", Attr(start)},
                              {"limit_indices", Attr(limit)},
                              {"strides", Attr(stride)}}));
    std::vector<ValueId> in = {x};
    for (const Dims dims = type(x).dims(); std::int64_t d : dims) in.push_back(index(d));
    keep(b_.op(o::kDynamicSlice, in, Attrs{{"slice_sizes", Attr(sizes)}}));
  }

  void pad() {
    const ValueId x = any();
    Dims low, high, interior;
    for (int i = 0; i < type(x).rank(); ++i) {
      low.push_back(number(-1, 3));
      high.push_back(number(-1, 3));
      interior.push_back(chance(70) ? 0 : number(1, 2));
    }
    const ValueId fill = b_.splat(type(x).dtype(), {}, number(0, 1));
    keep(b_.op(o::kPad, {x, fill},
               Attrs{{"edge_padding_low", Attr(low)},
                     {"edge_padding_high", Attr(high)},
                     {"interior_padding", Attr(interior)}}));
  }

  void concatenate() {
    const ValueId x = any();
    if (type(x).rank() == 0) return;
    std::vector<ValueId> parts = {x};
    for (int i = number(0, 5); i > 0; --i) parts.push_back(like(type(x)));
    keep(b_.op(o::kConcatenate, parts, Attrs{{"dimension", Attr(number(0, type(x).rank() - 1))}}));
  }

  GraphPtr inner(const std::vector<Type>& params, const std::vector<Type>& results) {
    RandomProgramOptions options = options_;
    options.num_ops = number(1, 4);
    return Maker(random_(), options, depth_ + 1).part(params, results);
  }

  GraphPtr region(const OpDef& op, DType t) {
    Builder r("region");
    const ValueId x = r.param(Type::tensor(t)), y = r.param(Type::tensor(t));
    const ValueId z = r.one(op, {x, y});
    return r.finish({z});
  }

  // An op that may be applied in any order with the same bits, or any of them if inexact.
  const OpDef& reducer(DType t) {
    if (is_bool(t)) return chance(50) ? o::kAnd : o::kOr;
    if (is_integer(t) && chance(60)) return chance(50) ? o::kAdd : o::kMultiply;
    if (!options_.exact && chance(60)) return o::kAdd;
    return chance(50) ? o::kMaximum : o::kMinimum;
  }

  Dims some_dims(int rank) {
    Dims d;
    for (int i = 0; i < rank; ++i)
      if (chance(50)) d.push_back(i);
    return d;
  }

  // How often an init value enters is free, so only this one gives one result.
  ValueId neutral(const OpDef& op, DType t) {
    double v = 0;
    if (&op == &o::kMultiply || &op == &o::kAnd) v = 1;
    if (&op == &o::kMaximum) v = is_bool(t) ? 0 : -INFINITY;  // conversion saturates integers
    if (&op == &o::kMinimum) v = is_bool(t) ? 1 : INFINITY;
    return b_.splat(t, {}, v);
  }

  ValueId reduced(ValueId x, const Dims& over) {
    const DType t = type(x).dtype();
    const OpDef& op = reducer(t);
    const ValueId init = options_.portable ? neutral(op, t) : b_.splat(t, {}, number(0, 1));
    return b_.one(o::kReduce, {x, init}, Attrs{{"dimensions", Attr(over)}}, {region(op, t)});
  }

  void reduce() {
    const ValueId x = any();
    if (type(x).rank() == 0 || is_complex(type(x).dtype())) return;
    if (options_.exact && chance(20))
      return keep(b_.op(chance(50) ? o::kArgmax : o::kArgmin, {x},
                        Attrs{{"dimension", Attr(number(0, type(x).rank() - 1))},
                              {"index_dtype", Attr(DType::kI32)}}));
    keep({reduced(x, some_dims(type(x).rank()))});
  }

  // x combined with a reduction of itself, as norms and softmax do.
  void normalise() {
    const ValueId x = any();
    const Type t = type(x);
    if (t.rank() == 0 || is_complex(t.dtype())) return;
    const Dims over = some_dims(t.rank());
    Dims kept;
    for (int i = 0; i < t.rank(); ++i)
      if (!over.contains(i)) kept.push_back(i);
    const ValueId r =
        b_.one(o::kBroadcastInDim, {reduced(x, over)},
               Attrs{{"broadcast_dimensions", Attr(kept)}, {"shape", Attr(t.dims())}});
    keep(b_.op(chance(50) ? o::kMaximum : o::kMinimum, {x, r}));
  }

  void update() {
    const ValueId x = any();
    Dims sizes;
    std::vector<ValueId> in = {x};
    for (const Dims dims = type(x).dims(); std::int64_t d : dims)
      sizes.push_back(number(0, static_cast<int>(d)));
    in.push_back(like(Type::tensor(type(x).dtype(), sizes)));
    for (const Dims dims = type(x).dims(); std::int64_t d : dims) in.push_back(index(d));
    keep(b_.op(o::kDynamicUpdateSlice, in));
  }

  void sort_or_walk() {
    const ValueId x = any();
    const Type t = type(x);
    if (t.rank() == 0 || is_complex(t.dtype())) return;
    const int axis = number(0, t.rank() - 1);
    if (chance(50)) {
      const OpDef* op = &o::kCummax;
      if (is_integer(t.dtype())) op = chance(50) ? &o::kCumsum : &o::kCumprod;
      if (!options_.exact) op = &o::kCumsum;
      return keep(b_.op(*op, {x}, Attrs{{"dimension", Attr(axis)}, {"reverse", Attr(chance(50))}}));
    }
    if (!options_.exact) return;
    Builder r("less");
    const ValueId a = r.param(Type::tensor(t.dtype())), c = r.param(Type::tensor(t.dtype()));
    const bool pair = chance(50);
    if (pair) {
      r.param(Type::tensor(DType::kI32));
      r.param(Type::tensor(DType::kI32));
    }
    // A total order: what another one makes of NaN depends on the algorithm.
    Attrs order{{"comparison_direction", Attr(EnumAttr("LT"))}};
    if (is_float(t.dtype())) order.set("compare_type", Attr(EnumAttr("TOTALORDER")));
    const ValueId less = r.one(o::kCompare, {a, c}, order);
    std::vector<ValueId> in = {x};
    if (pair)
      in.push_back(b_.one(o::kIota, {},
                          Attrs{{"iota_dimension", Attr(axis)},
                                {"shape", Attr(t.dims())},
                                {"result_dtype", Attr(DType::kI32)}}));
    keep(b_.op(o::kSort, in, Attrs{{"dimension", Attr(axis)}, {"is_stable", Attr(true)}},
               {r.finish({less})}));
  }

  void gather_or_scatter() {
    const ValueId x = any();
    const Type t = type(x);
    if (t.rank() == 0 || t.size() == 0) return;
    const int axis = number(0, t.rank() - 1);
    const std::int64_t n = number(1, 9);
    std::vector<std::int32_t> at;
    for (std::int64_t i = 0; i < n; ++i) at.push_back(number(-1, static_cast<int>(t.dim(axis))));
    const ValueId indices = b_.constant(HostArray::from(at, {n}));
    Dims window, rows = {n};
    for (int i = 0; i < t.rank(); ++i)
      if (i != axis) {
        window.push_back(window.ssize() + 1);
        rows.push_back(t.dim(i));
      }
    if (chance(50)) {
      Dims sizes = t.dims();
      sizes[axis] = 1;
      return keep(b_.op(o::kGather, {x, indices},
                        Attrs{{"offset_dims", Attr(window)},
                              {"collapsed_slice_dims", Attr(Dims{axis})},
                              {"start_index_map", Attr(Dims{axis})},
                              {"index_vector_dim", Attr(1)},
                              {"slice_sizes", Attr(sizes)}}));
    }
    const ValueId updates = like(Type::tensor(t.dtype(), rows));
    if (is_complex(t.dtype())) return;
    keep(b_.op(o::kScatter, {x, indices, updates},
               Attrs{{"update_window_dims", Attr(window)},
                     {"inserted_window_dims", Attr(Dims{axis})},
                     {"scatter_dims_to_operand_dims", Attr(Dims{axis})},
                     {"index_vector_dim", Attr(1)}},
               {region(is_bool(t.dtype()) ? o::kOr : o::kAdd, t.dtype())}));
  }

  // for i in 0 … n: x = op(x, capture)
  void loop() {
    const ValueId x = any();
    const Type t = type(x);
    if (is_complex(t.dtype()) || t.size() == 0) return;
    const OpDef& op = is_bool(t.dtype()) ? o::kXor : chance(50) ? o::kMaximum : o::kSubtract;
    const ValueId y = like(t);
    if (chance(50)) {
      Builder body("step");
      const ValueId c = body.param(t), carry = body.param(t), slice = body.param(t);
      const ValueId next = body.one(op, {body.one(op, {carry, c}), slice});
      const GraphPtr g = body.finish({next, body.graph().params[1]});
      Dims stacked = t.dims();
      stacked.insert(0, 3);
      const ValueId xs = like(Type::tensor(t.dtype(), stacked));
      return keep(b_.op(o::kScan, {y, x, xs},
                        Attrs{{"length", Attr(3)},
                              {"num_consts", Attr(1)},
                              {"num_carry", Attr(1)},
                              {"reverse", Attr(chance(50))}},
                        {g}));
    }
    const Type i32 = Type::tensor(DType::kI32);
    Builder cond("cond");
    const ValueId ci = cond.param(i32);
    cond.param(t);
    cond.param(t);
    const bool random_body = depth_ < 2 && chance(60);
    const ValueId less =
        cond.one(o::kCompare, {ci, cond.constant(HostArray::scalar(std::int32_t{number(0, 4)}))},
                 Attrs{{"comparison_direction", Attr(EnumAttr("LT"))}});
    Builder body("body");
    const ValueId bi = body.param(i32), bx = body.param(t), by = body.param(t);
    const ValueId one = body.constant(HostArray::scalar(std::int32_t{1}));
    const ValueId ni = body.one(o::kAdd, {bi, one});
    ValueId nx;
    if (random_body) {
      const std::vector<ValueId> in = {bi, bx, by};
      nx = body.inline_graph(*inner({i32, t, t}, {t}), in)[0];
    } else {
      nx = body.one(op, {bx, by});
    }
    const ValueId zero = b_.constant(HostArray::scalar(std::int32_t{0}));
    keep(b_.op(o::kWhile, {zero, x, y}, Attrs{{"num_captures", Attr(1)}},
               {cond.finish({less}), body.finish({ni, nx})}));
  }

  void branch() {
    const ValueId x = any();
    const Type t = type(x);
    const ValueId y = like(t);
    if (depth_ < 2 && chance(60)) {
      const ValueId z = any();
      const Type u = type(z);
      if (chance(50)) {
        const ValueId p = b_.constant(HostArray::scalar(chance(50)));
        return keep(b_.op(o::kIf, {p, x, z}, Attrs{{"num_captures", Attr(2)}},
                          {inner({t, u}, {t, u}), inner({t, u}, {t, u})}));
      }
      const ValueId i = b_.constant(HostArray::scalar(std::int32_t{number(-1, 3)}));
      return keep(b_.op(o::kCase, {i, x, z}, Attrs{{"num_captures", Attr(2)}},
                        {inner({t, u}, {u, t}), inner({t, u}, {u, t}), inner({t, u}, {u, t})}));
    }
    const auto side = [&](int which) {
      Builder r("side");
      const ValueId a = r.param(t), c = r.param(t);
      return r.finish({which == 0 ? a : c});
    };
    const ValueId i = b_.constant(HostArray::scalar(std::int32_t{number(-1, 2)}));
    keep(b_.op(o::kCase, {i, x, y}, Attrs{{"num_captures", Attr(2)}}, {side(0), side(1)}));
  }

  void product() {
    const ValueId x = any();
    const Type t = type(x);
    if (t.rank() == 0 || (options_.exact && !is_integer(t.dtype())) || is_bool(t.dtype())) return;
    const int k = number(0, t.rank() - 1);
    Dims other = {t.dim(k)};
    if (chance(80)) other.push_back(number(1, 40));
    keep(b_.op(o::kDotGeneral, {x, like(Type::tensor(t.dtype(), other))},
               Attrs{{"lhs_contracting_dimensions", Attr(Dims{k})},
                     {"rhs_contracting_dimensions", Attr(Dims{0})}}));
  }

  void window() {
    const ValueId x = any();
    const Type t = type(x);
    if (t.rank() == 0 || is_complex(t.dtype()) || t.size() == 0) return;
    Dims size, stride;
    for (int i = 0; i < t.rank(); ++i) {
      size.push_back(number(1, 3));
      stride.push_back(number(1, 2));
    }
    const OpDef& op = is_bool(t.dtype()) ? o::kOr : o::kMaximum;
    const ValueId init = options_.portable ? neutral(op, t.dtype()) : b_.splat(t.dtype(), {}, 0);
    keep(b_.op(o::kReduceWindow, {x, init},
               Attrs{{"window_dimensions", Attr(size)}, {"window_strides", Attr(stride)}},
               {region(op, t.dtype())}));
  }

  std::mt19937_64 random_;
  RandomProgramOptions options_;
  Builder b_;
  int depth_ = 0;  // of parts in parts
  std::vector<ValueId> values_;
  std::vector<const OpDef*> pointwise_;
};

}  // namespace

GraphPtr random_program(std::uint64_t seed, const RandomProgramOptions& options) {
  return Maker(seed, options).run();
}

}  // namespace xylem::ir::testing
