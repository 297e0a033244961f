#include <fmt/format.h>

#include "xylem/ir/ops/internal/shape_util.h"
#include "xylem/ir/ops/internal/strided.h"
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
    fail(call, "c6", "unroll must be at least 1",
         fmt::format("it is {}", call.attrs.i64("unroll")), "Leave it out for no unrolling");
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
                     .labels = "scan_c1 scan_c2 scan_c3 scan_c4 scan_c5 scan_c6"};

}  // namespace xylem::ir::ops
