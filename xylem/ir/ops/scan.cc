#include <fmt/format.h>

#include "xylem/ir/builder.h"
#include "xylem/ir/ops/control.h"
#include "xylem/ir/ops/elementwise_binary.h"
#include "xylem/ir/ops/internal/shape_util.h"
#include "xylem/ir/ops/internal/strided.h"
#include "xylem/ir/ops/movement.h"
#include "xylem/ir/ops/transform.h"

namespace xylem::ir::ops {
namespace {

struct ScanShape {
  std::size_t consts, carry, xs;
  std::int64_t length;

  ScanShape(const Attrs& attrs, std::size_t operands)
      : consts(static_cast<std::size_t>(attrs.i64("num_consts"))),
        carry(static_cast<std::size_t>(attrs.i64("num_carry"))),
        xs(operands - consts - carry),
        length(attrs.i64("length")) {}
};

std::vector<Type> scan_shape_rule(const OpCall& call) {
  auto operands = static_cast<std::int64_t>(call.operands.size());
  std::int64_t num_consts = call.attrs.i64("num_consts"), num_carry = call.attrs.i64("num_carry");
  if (num_consts < 0 || num_carry < 0 || num_consts > operands || num_carry > operands - num_consts)
    fail(call, "c1", fmt::format("num_consts + num_carry must lie in [0, {}]", operands),
         fmt::format("num_consts = {}, num_carry = {}", num_consts, num_carry),
         "Count the operands: constants, then carries, then sequences");
  if (call.attrs.i64("length") < 0)
    fail(call, "c2", "length must not be negative",
         fmt::format("it is {}", call.attrs.i64("length")), "Give the number of steps");
  if (call.attrs.i64_or("unroll", 1) < 1)
    fail(call, "c6", "unroll must be at least 1", fmt::format("it is {}", call.attrs.i64("unroll")),
         "Leave it out for no unrolling");
  ScanShape s(call.attrs, call.operands.size());
  std::vector<Type> params(call.operands.begin(), call.operands.end());
  for (std::size_t i = s.consts + s.carry; i < params.size(); ++i) {
    Type& t = params[i];
    if (!(t.is_tensor() || t.is_key()) || t.rank() == 0 || !size_fits(t.dim(0), s.length))
      fail(call, "c3", fmt::format("sequences must have leading size {}", s.length),
           fmt::format("operand {} is {}", i, t.to_string()),
           "Pass arrays whose first dimension is the length");
    Dims dims = t.dims();
    dims.erase(0);
    t = t.with_dims(dims);
  }
  check_region(call, "c4", 0, params, nullptr);
  std::vector<Type> results = call.regions[0]->result_types();
  auto carry = call.operands.subspan(s.consts, s.carry);
  if (results.size() < s.carry || !std::equal(carry.begin(), carry.end(), results.begin()))
    fail(call, "c5",
         fmt::format("the body must return carries of the types it takes, {}", types_text(carry)),
         fmt::format("it returns {}", types_text(results)),
         "Convert or broadcast the new carry to the old one's type");
  for (std::size_t i = s.carry; i < results.size(); ++i) {
    if (!(results[i].is_tensor() || results[i].is_key()))
      fail(call, "c5", "stacked results must be arrays", "one is " + results[i].to_string(),
           "Keep other values in the carry");
    Dims dims = results[i].dims();
    dims.insert(0, s.length);
    results[i] = results[i].with_dims(dims);
  }
  return results;
}

HostArray slice_at(const HostArray& x, std::int64_t i) {
  Dims dims = x.dims(), strides = x.byte_strides();
  dims.erase(0);
  strides.erase(0);
  return strided_view(x, i * x.byte_strides()[0], dims, strides);
}

std::vector<HostArray> scan_eval(const EvalCall& call) {
  ScanShape s(call.op.attrs, call.operands.size());
  bool reverse = call.op.attrs.flag("reverse");
  std::vector<HostArray> args(call.operands.begin(), call.operands.end());
  std::vector<HostArray> ys;
  for (std::size_t k = s.carry; k < call.result_types.size(); ++k)
    ys.emplace_back(call.result_types[k].dtype(), call.result_types[k].dims());
  for (std::int64_t n = 0; n < s.length; ++n) {
    std::int64_t i = reverse ? s.length - 1 - n : n;
    for (std::size_t k = s.consts + s.carry; k < args.size(); ++k)
      args[k] = slice_at(call.operands[k], i);
    std::vector<HostArray> next = call.regions.run(*call.op.regions[0], args);
    for (std::size_t k = 0; k < s.carry; ++k) args[s.consts + k] = next[k];
    for (std::size_t k = 0; k < ys.size(); ++k) {
      Dims strides = ys[k].byte_strides();
      std::int64_t offset = i * strides[0];
      strides.erase(0);
      write_strided(ys[k], offset, strides, next[s.carry + k]);
    }
  }
  std::vector<HostArray> results(args.begin() + static_cast<std::ptrdiff_t>(s.consts),
                                 args.begin() + static_cast<std::ptrdiff_t>(s.consts + s.carry));
  results.insert(results.end(), ys.begin(), ys.end());
  return results;
}

// The loop of the decomposition:
//
//   while (i, carry, ys | consts, xs)  i < length
//     at = reverse ? length - 1 - i : i
//     carry, y = body(consts, carry, xs[at]);  ys[at] = y;  i = i + 1
class ScanLoop {
 public:
  ScanLoop(const Builder& outer, const Op& op, std::span<const ValueId> operands)
      : op_(op), shape_(op.attrs, operands.size()) {
    for (ValueId v : operands) operand_types_.push_back(outer.type(v));
    const Graph& body = *op.regions[0];
    for (std::size_t k = shape_.carry; k < body.results.size(); ++k) {
      Type t = body.type(body.results[k]);
      Dims dims = t.dims();
      dims.insert(0, shape_.length);
      y_types_.push_back(t.with_dims(dims));
    }
    auto consts = operand_types_.begin() + static_cast<std::ptrdiff_t>(shape_.consts);
    auto xs = consts + static_cast<std::ptrdiff_t>(shape_.carry);
    types_.push_back(Type::tensor(DType::kI64));
    types_.insert(types_.end(), consts, xs);
    types_.insert(types_.end(), y_types_.begin(), y_types_.end());
    types_.insert(types_.end(), operand_types_.begin(), consts);
    types_.insert(types_.end(), xs, operand_types_.end());
  }

  std::vector<ValueId> emit(Builder& b, std::span<const ValueId> operands) const {
    std::vector<ValueId> args{b.constant(HostArray::scalar<std::int64_t>(0))};
    auto consts = operands.first(shape_.consts),
         carry = operands.subspan(shape_.consts, shape_.carry);
    auto xs = operands.subspan(shape_.consts + shape_.carry);
    args.insert(args.end(), carry.begin(), carry.end());
    for (const Type& t : y_types_) args.push_back(b.splat(t.dtype(), t.dims(), 0));
    if (shape_.length == 0) return {args.begin() + 1, args.end()};  // nothing to slice
    args.insert(args.end(), consts.begin(), consts.end());
    args.insert(args.end(), xs.begin(), xs.end());
    ValueIds out =
        b.op(kWhile, args, {{"num_captures", static_cast<int>(shape_.consts + shape_.xs)}},
             {condition(), body()});
    return {out.begin() + 1, out.end()};
  }

 private:
  std::vector<ValueId> params(Builder& b) const {
    std::vector<ValueId> p;
    for (const Type& t : types_) p.push_back(b.param(t));
    return p;
  }

  GraphPtr condition() const {
    Builder b("cond");
    ValueId i = params(b)[0];
    return b.finish({b.one(kCompare, {i, b.constant(HostArray::scalar(shape_.length))},
                           {{"comparison_direction", EnumAttr("LT")}})});
  }

  GraphPtr body() const {
    Builder b("body");
    std::vector<ValueId> p = params(b);
    ValueId at = p[0];
    if (op_.attrs.flag("reverse"))
      at = b.one(kSubtract, {b.constant(HostArray::scalar(shape_.length - 1)), at});
    ValueId zero = b.constant(HostArray::scalar<std::int64_t>(0));
    auto starts = [&](std::vector<ValueId> v, const Type& t) {
      v.push_back(at);
      v.resize(v.size() + static_cast<std::size_t>(t.rank()) - 1, zero);
      return v;
    };
    std::size_t first_y = 1 + shape_.carry, first_const = first_y + y_types_.size();
    std::size_t first_x = first_const + shape_.consts;
    std::vector<ValueId> args(p.begin() + static_cast<std::ptrdiff_t>(first_const),
                              p.begin() + static_cast<std::ptrdiff_t>(first_x));
    args.insert(args.end(), p.begin() + 1, p.begin() + static_cast<std::ptrdiff_t>(first_y));
    for (std::size_t k = 0; k < shape_.xs; ++k) {
      const Type t = b.type(p[first_x + k]);
      Dims sizes = t.dims(), rest = t.dims();
      sizes[0] = 1;
      rest.erase(0);
      ValueId slice = b.one(kDynamicSlice, starts({p[first_x + k]}, t), {{"slice_sizes", sizes}});
      args.push_back(b.one(kReshape, {slice}, {{"shape", rest}}));
    }
    std::vector<ValueId> next = b.inline_graph(*op_.regions[0], args);
    std::vector<ValueId> results{
        b.one(kAdd, {p[0], b.constant(HostArray::scalar<std::int64_t>(1))})};
    results.insert(results.end(), next.begin(),
                   next.begin() + static_cast<std::ptrdiff_t>(shape_.carry));
    for (std::size_t k = 0; k < y_types_.size(); ++k) {
      Dims sizes = y_types_[k].dims();
      sizes[0] = 1;
      ValueId y = b.one(kReshape, {next[shape_.carry + k]}, {{"shape", sizes}});
      results.push_back(b.one(kDynamicUpdateSlice, starts({p[first_y + k], y}, y_types_[k])));
    }
    return b.finish(results);
  }

  const Op& op_;
  ScanShape shape_;
  std::vector<Type> operand_types_, y_types_, types_;
};

std::vector<ValueId> expand_scan(Builder& b, const Op& op, std::span<const ValueId> operands) {
  return ScanLoop(b, op, operands).emit(b, operands);
}

}  // namespace

const OpDef kScan = {.name = "xylem.scan",
                     .traits = kXylem | kControlFlow,
                     .max_operands = -1,
                     .num_regions = 1,
                     .attrs = {{"length", AttrKind::kInt},
                               {"num_consts", AttrKind::kInt},
                               {"num_carry", AttrKind::kInt},
                               {"reverse", AttrKind::kBool, false},
                               {"unroll", AttrKind::kInt, false}},
                     .shape = scan_shape_rule,
                     .eval = scan_eval,
                     .labels = "scan_c1 scan_c2 scan_c3 scan_c4 scan_c5 scan_c6",
                     .expand = expand_scan};

}  // namespace xylem::ir::ops
