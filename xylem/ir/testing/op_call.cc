#include "xylem/ir/testing/op_call.h"

#include <gtest/gtest.h>

#include "xylem/base/error.h"
#include "xylem/ir/interpreter.h"
#include "xylem/ir/verify.h"

namespace xylem::ir::testing {

std::vector<HostArray> eval_op(const OpDef& def, const std::vector<HostArray>& operands,
                               Attrs attrs, std::vector<GraphPtr> regions) {
  Builder b("test");
  std::vector<ValueId> values;
  for (const HostArray& a : operands) values.push_back(b.param(Type::tensor(a.dtype(), a.dims())));
  ValueIds results = b.op(def, values, std::move(attrs), std::move(regions));
  GraphPtr g = b.finish({results.begin(), results.end()});
  verify_or_throw(*g);
  std::vector<HostArray> out = evaluate(*g, operands);
  for (std::size_t i = 0; i < out.size(); ++i) {
    EXPECT_EQ(out[i].type_string(), g->type(g->results[i]).to_string()) << def.name;
  }
  return out;
}

HostArray eval_one(const OpDef& def, const std::vector<HostArray>& operands, Attrs attrs,
                   std::vector<GraphPtr> regions) {
  return eval_op(def, operands, std::move(attrs), std::move(regions)).at(0);
}

Violation violation_of(const OpDef& def, std::vector<Type> operands, Attrs attrs,
                       std::vector<GraphPtr> regions) {
  try {
    infer_types({def, operands, attrs, regions, {}});
  } catch (const ConstraintError& e) {
    return {e.label(), e.message()};
  } catch (const Error& e) {
    ADD_FAILURE() << def.name << ": expected a ConstraintError, got: " << e.what();
    return {};
  }
  ADD_FAILURE() << def.name << ": no constraint is violated";
  return {};
}

GraphPtr binary_body(const OpDef& def, DType dtype, Attrs attrs) {
  Builder b("body");
  ValueId x = b.param(Type::tensor(dtype)), y = b.param(Type::tensor(dtype));
  ValueId r = b.one(def, {x, y}, std::move(attrs));
  return b.finish({r});
}

GraphPtr passing_body(std::initializer_list<Type> params, std::initializer_list<int> results) {
  Builder b("body");
  std::vector<ValueId> p, r;
  for (const Type& t : params) p.push_back(b.param(t));
  for (int i : results) r.push_back(p[static_cast<std::size_t>(i)]);
  return b.finish(r);
}

HostArray bools(std::initializer_list<int> values) {
  HostArray a(DType::kBool, {static_cast<std::int64_t>(values.size())});
  std::int64_t i = 0;
  for (int v : values) a.as<bool>()[i++] = v != 0;
  return a;
}

std::vector<double> numbers(const HostArray& a) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < a.size(); ++i) out.push_back(a.at(i));
  return out;
}

}  // namespace xylem::ir::testing
