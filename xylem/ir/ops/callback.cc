#include "xylem/ir/ops/callback.h"

#include "xylem/ir/host_function.h"
#include "xylem/ir/ops/internal/shape_util.h"

namespace xylem::ir::ops {
namespace {

std::vector<Type> callback_shape_rule(const OpCall& call) {
  std::vector<Type> types;
  for (const Attr& a : *call.attrs.at("result_types").list()) {
    const Type* t = a.get<Type>();
    if (!t || !t->is_tensor() || !t->is_static())
      fail(call, "c1", "result_types is a list of tensor types of static shape",
           "it holds " + a.to_string(), "Declare arrays");
    types.push_back(*t);
  }
  for (std::size_t i = 0; i < call.operands.size(); ++i) tensor_operand(call, static_cast<int>(i));
  const HostArray& f = call.attrs.array("function");
  if (f.dtype() != DType::kI64 || f.size() != 1)
    fail(call, "c2", "function is the number of a host function, an i64 scalar",
         "it has another type", "Make it with keep_host_function");
  return types;
}

std::vector<HostArray> callback_eval(const EvalCall& call) {
  return call_host_function(call.op.attrs.array("function"), call.operands, call.result_types);
}

std::vector<Type> check_shape_rule(const OpCall& call) {
  const Type& t = tensor_operand(call, 0);
  if (t.dtype() != DType::kBool)
    fail(call, "c1", "the predicate is an array of i1", "it is " + t.to_string(), "Compare first");
  for (std::size_t i = 1; i < call.operands.size(); ++i) tensor_operand(call, static_cast<int>(i));
  return {};
}

std::vector<HostArray> check_eval(const EvalCall& call) {
  throw_user_error(
      {"check", "a program that went through checkify", "a check that is still in the program",
       "Wrap the function in checkify, and jit the result"},
      call.op.loc.source);
}

}  // namespace

const OpDef kPureCallback = {.name = "xylem.pure_callback",
                             .traits = kXylem,
                             .max_operands = -1,
                             .attrs = {{"function", AttrKind::kArray},
                                       {"name", AttrKind::kString, false},
                                       {"vmap_method", AttrKind::kString, false},
                                       {"result_types", AttrKind::kList}},
                             .shape = callback_shape_rule,
                             .eval = callback_eval,
                             .labels = "pure_callback_c1 pure_callback_c2 pure_callback_i1"};
const OpDef kIoCallback = {.name = "xylem.io_callback",
                           .traits = kXylem | kEffect,
                           .max_operands = -1,
                           .attrs = {{"function", AttrKind::kArray},
                                     {"name", AttrKind::kString, false},
                                     {"ordered", AttrKind::kBool, false},
                                     {"debug", AttrKind::kBool, false},
                                     {"result_types", AttrKind::kList}},
                           .shape = callback_shape_rule,
                           .eval = callback_eval,
                           .labels = "io_callback_c1 io_callback_c2 io_callback_i1"};
const OpDef kCheck = {.name = "xylem.check",
                      .traits = kXylem | kEffect,
                      .min_operands = 1,
                      .max_operands = -1,
                      .attrs = {{"code", AttrKind::kInt}},
                      .shape = check_shape_rule,
                      .eval = check_eval,
                      .labels = "check_c1 check_i1"};

}  // namespace xylem::ir::ops
