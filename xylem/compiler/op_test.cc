// Every op on every dtype, and random programs, against the interpreter.

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "xylem/base/error.h"
#include "xylem/compiler/compile.h"
#include "xylem/compiler/testing/compare.h"
#include "xylem/ir/builder.h"
#include "xylem/ir/interpreter.h"
#include "xylem/ir/ops/all.h"
#include "xylem/ir/testing/text_samples.h"

namespace xylem::compiler {
namespace {

using ir::Attr;
using ir::Attrs;
using ir::Builder;
using ir::GraphPtr;
using ir::OpDef;
using ir::Type;
using ir::ValueId;
using testing::compare;
using testing::make_args;
using testing::Tolerance;

int env_count(const char* name, int otherwise) {
  const char* v = std::getenv(name);
  return v ? std::atoi(v) : otherwise;
}

// Programs that the interpreter refuses cannot be compared.
bool evaluates(const ir::Graph& g, const std::vector<HostArray>& args) {
  try {
    ir::evaluate(g, args);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

TEST(OpCoverage, PointwiseOpsOfAllDtypes) {
  std::map<std::string, std::set<std::string>> refused;
  for (const OpDef* op : ir::op_table()) {
    if (!op->is(ir::kPointwise) || op->is(ir::kKernelOnly) || op->num_regions != 0) continue;
    for (int d = 0; d + 1 < kNumDTypes; ++d) {
      const auto dtype = static_cast<DType>(d);
      GraphPtr g;
      try {
        Builder b(std::string(op->name));
        Attrs attrs;
        if (op->find_attr("comparison_direction"))
          attrs.set("comparison_direction", Attr(ir::EnumAttr("NE")));
        if (op->find_attr("result_dtype")) attrs.set("result_dtype", Attr(DType::kF32));
        if (op->find_attr("exponent_bits")) {
          attrs.set("exponent_bits", Attr(5));
          attrs.set("mantissa_bits", Attr(4));
        }
        std::vector<ValueId> in;
        for (int i = 0; i < op->max_operands; ++i)
          in.push_back(b.param(
              Type::tensor(op == &ir::ops::kSelect && i == 0 ? DType::kBool : dtype, {37})));
        const ir::ValueIds out = b.op(*op, in, attrs);
        g = b.finish(out.to_vector());
      } catch (const UserError&) {
        continue;  // the op does not take this dtype
      }
      // Neither zero nor negative numbers: decompositions meet NaN on the way.
      if (dtype == DType::kF8E8M0FNU && op->expand) continue;
      const std::vector<HostArray> args = make_args(*g, 3);
      if (!evaluates(*g, args)) continue;
      Tolerance tolerance;
      if (!op->is(ir::kExact) || is_complex(dtype)) {
        const DType real = is_complex(dtype) ? real_dtype(dtype) : dtype;
        const int bits = is_float(real) ? dtype_info(real).mantissa_bits : 0;
        // Parts of complex numbers are as exact as the larger of the two.
        const double ulps = is_complex(dtype) ? 128 : 16;
        tolerance = {ulps * std::pow(2.0, -bits), ulps * std::pow(2.0, -bits)};
      }
      try {
        const std::string diff = compare(g, args, tolerance);
        EXPECT_EQ(diff, "") << op->name << " of " << dtype_name(dtype);
      } catch (const UserError& e) {
        refused[dtype_name(dtype)].insert(std::string(op->name));
      }
    }
  }
  for (const auto& [dtype, ops] : refused) {
    std::string list;
    for (const std::string& o : ops) list += " " + o;
    ADD_FAILURE() << dtype << " is refused by" << list;
  }
}

// Quantised types, shapes that depend on contents, and what looks into a run.
bool stays_with_the_interpreter(const ir::Graph& g) {
  for (const ir::Value& v : g.values)
    if (v.type.is_tensor() && (!v.type.is_static() || (v.type.extra() && v.type.extra()->quant)))
      return true;
  for (const ir::Op& op : g.ops)
    if (op.def->name.starts_with("interpreter.")) return true;
  return false;
}

TEST(OpCoverage, EveryOpOfTheTable) {
  for (const GraphPtr& g : ir::testing::sample_graphs()) {
    if (stays_with_the_interpreter(*g)) continue;
    const std::vector<HostArray> args = [&] {
      try {
        return make_args(*g, 5);
      } catch (const Error&) {
        return std::vector<HostArray>{};
      }
    }();
    bool tensors = args.size() == g->params.size();
    for (ValueId v : g->params) tensors = tensors && g->type(v).is_tensor();
    if (!tensors || !evaluates(*g, args)) continue;
    try {
      EXPECT_EQ(compare(g, args, {1e-4, 1e-5}), "") << g->to_string();
    } catch (const UserError& e) {
      ADD_FAILURE() << e.what() << "\n" << g->to_string();
    }
  }
}

void random_programs(bool exact, int count, std::uint64_t first) {
  int failures = 0;
  for (int i = 0; i < count && failures < 5; ++i) {
    const std::string failure =
        testing::random_failure(exact, first + static_cast<std::uint64_t>(i));
    EXPECT_EQ(failure, "");
    failures += failure.empty() ? 0 : 1;
  }
}

TEST(RandomPrograms, ExactOnesAgreeBitForBit) {
  random_programs(true, env_count("XYLEM_RANDOM_PROGRAMS", 150), 1);
}

TEST(RandomPrograms, OthersAgreeClosely) {
  random_programs(false, env_count("XYLEM_RANDOM_PROGRAMS", 80), 1000000);
}

}  // namespace
}  // namespace xylem::compiler
