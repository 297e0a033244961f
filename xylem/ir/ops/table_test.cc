#include <gtest/gtest.h>

#include <set>
#include <string>

#include "xylem/ir/op_def.h"

// Walks the op table: every op has every rule.

namespace xylem::ir {
namespace {

std::set<std::string> words(std::string_view text) {
  std::set<std::string> out;
  while (!text.empty()) {
    std::size_t blank = text.find(' ');
    if (blank != 0) out.emplace(text.substr(0, blank));
    if (blank == std::string_view::npos) break;
    text.remove_prefix(blank + 1);
  }
  return out;
}

TEST(OpTableTest, HasAtLeast45OpsWithDistinctNames) {
  std::set<std::string_view> names;
  for (const OpDef* op : op_table()) {
    EXPECT_TRUE(names.insert(op->name).second) << op->name;
    EXPECT_EQ(find_op(op->name), op);
    EXPECT_EQ(op_table()[static_cast<std::size_t>(op->id())], op);
  }
  EXPECT_GE(names.size(), 45u);
  EXPECT_EQ(find_op("stablehlo.no_such_op"), nullptr);
}

TEST(OpTableTest, EveryNameHasADialectThatItsTraitsAgreeWith) {
  for (const OpDef* op : op_table()) {
    std::string_view dialect = op->name.substr(0, op->name.find('.'));
    if (op->is(kXylem)) {
      EXPECT_EQ(dialect, "xylem") << op->name;
    } else if (op->is(kKernelOnly)) {
      EXPECT_EQ(dialect, "kernel") << op->name;
    } else {
      EXPECT_TRUE(dialect == "stablehlo" || dialect == "chlo" || dialect == "check" ||
                  dialect == "interpreter" || dialect == "sdy")
          << op->name;
    }
  }
}

TEST(OpTableTest, EveryOpHasAShapeRule) {
  for (const OpDef* op : op_table()) EXPECT_NE(op->shape, nullptr) << op->name;
}

TEST(OpTableTest, EveryGraphOpHasAReferenceEvaluation) {
  for (const OpDef* op : op_table()) {
    if (!op->is(kKernelOnly)) {
      EXPECT_NE(op->eval, nullptr) << op->name;
    }
  }
}

// Ops without a map of their own are pointwise, run regions that hide their dimensions, or are
// named here with the reason.
TEST(OpTableTest, EveryOpHasADimensionMapOrIsOpaqueForAReason) {
  const std::set<std::string_view> opaque = {
      "stablehlo.after_all",          // has no dimensions
      "stablehlo.rng_bit_generator",  // the state decides every element
      "xylem.pure_callback",          // the host sees whole arrays
      "xylem.io_callback",
      "xylem.check",  // one element decides
  };
  for (const OpDef* op : op_table()) {
    if (op->is(kKernelOnly) || op->is(kPointwise)) continue;
    if (op->dims == nullptr) {
      EXPECT_TRUE(op->num_regions != 0 || opaque.count(op->name) == 1) << op->name;
    }
  }
}

TEST(OpTableTest, LabelsAreThoseOfTheOpItself) {
  const std::set<std::string_view> none = {
      "stablehlo.optimization_barrier",  // takes anything and gives it back
      "stablehlo.tuple",                 // takes anything
      "stablehlo.replica_id",            // takes nothing
      "stablehlo.partition_id",
  };
  for (const OpDef* op : op_table()) {
    if (op->is(kKernelOnly)) continue;
    std::string prefix = std::string(op->name.substr(op->name.find('.') + 1)) + "_";
    EXPECT_EQ(op->labels.empty(), none.count(op->name) == 1) << op->name;
    for (const std::string& label : words(op->labels))
      EXPECT_EQ(label.rfind(prefix, 0), 0u) << op->name << ": " << label;
  }
}

TEST(OpTableTest, TranscendentalOpsStateAnErrorBoundAndExactOnesDoNot) {
  for (const OpDef* op : op_table()) {
    EXPECT_EQ(op->is(kTranscendental), op->max_ulp > 0) << op->name;
    EXPECT_FALSE(op->is(kTranscendental | kExact)) << op->name;
  }
}

TEST(OpTableTest, OpsWithRegionsCanHoldCaptures) {
  for (const OpDef* op : op_table()) {
    if (op->num_regions == 0 || op->is(kXylem) || op->is(kKernelOnly)) continue;
    // Their regions are functions of the module, or closed like them.
    if (op->find_attr("result_types") && op->num_regions < 0) continue;
    if (op->name == "chlo.scan") continue;
    EXPECT_NE(op->find_attr("num_captures"), nullptr) << op->name;
  }
}

TEST(OpTableTest, EnumerationsNameTheirMembers) {
  for (const OpDef* op : op_table())
    for (const AttrDef& a : op->attrs)
      EXPECT_EQ(a.kind == AttrKind::kEnum, !a.members.empty()) << op->name << " " << a.name;
}

}  // namespace
}  // namespace xylem::ir
