// Each pass, text in and text out.

#include "xylem/compiler/passes/passes.h"

#include <gtest/gtest.h>

#include <string>

#include "xylem/ir/text.h"
#include "xylem/ir/verify.h"

namespace xylem::compiler {
namespace {

using Pass = ir::GraphPtr (*)(const ir::GraphPtr&);

// The pass turns `before` into `after`, and leaves that as it is.
void expect_pass(Pass pass, const std::string& before, const std::string& after) {
  const ir::GraphPtr g = pass(ir::parse_graph(before));
  EXPECT_TRUE(ir::verify(*g).empty());
  const ir::GraphPtr want = ir::parse_graph(after);
  EXPECT_TRUE(ir::structurally_equal(*g, *want)) << "got\n" << ir::print(*g) << "want\n" << after;
}

TEST(Passes, DeadOpsGo) {
  expect_pass(eliminate_dead,
              "graph @f(%0: f32[4]) -> (f32[4]) {\n"
              "  %1 = stablehlo.negate(%0) : f32[4]\n"
              "  %2 = stablehlo.abs(%0) : f32[4]\n"
              "  return %2\n}\n",
              "graph @f(%0: f32[4]) -> (f32[4]) {\n"
              "  %1 = stablehlo.abs(%0) : f32[4]\n"
              "  return %1\n}\n");
}

TEST(Passes, CustomCallsGoUnlessTheyHaveAnEffect) {
  const std::string kept =
      "graph @f(%0: f32[4]) -> (f32[4]) {\n"
      "  %1 = stablehlo.custom_call(%0) {call_target_name = \"a\", has_side_effect = true, "
      "result_types = list[type f32[4]]} : f32[4]\n"
      "  stablehlo.custom_call(%0) {call_target_name = \"b\", result_types = list[]}\n";
  expect_pass(eliminate_dead,
              kept +
                  "  %2 = stablehlo.custom_call(%0) {call_target_name = \"c\", "
                  "result_types = list[type f32[4]]} : f32[4]\n"
                  "  %3 = stablehlo.custom_call(%0) {call_target_name = \"d\", "
                  "has_side_effect = false, result_types = list[type f32[4]]} : f32[4]\n"
                  "  return %0\n}\n",
              kept + "  return %0\n}\n");
}

TEST(Passes, EqualOpsMergeButNotThroughBarriers) {
  expect_pass(merge_common,
              "graph @f(%0: f32[4]) -> (f32[4], f32[4], f32[4]) {\n"
              "  %1 = stablehlo.negate(%0) : f32[4]\n"
              "  %2 = stablehlo.negate(%0) : f32[4]\n"
              "  %3 = stablehlo.optimization_barrier(%0) : f32[4]\n"
              "  %4 = stablehlo.negate(%3) : f32[4]\n"
              "  return %1, %2, %4\n}\n",
              "graph @f(%0: f32[4]) -> (f32[4], f32[4], f32[4]) {\n"
              "  %1 = stablehlo.negate(%0) : f32[4]\n"
              "  %2 = stablehlo.optimization_barrier(%0) : f32[4]\n"
              "  %3 = stablehlo.negate(%2) : f32[4]\n"
              "  return %1, %1, %3\n}\n");
}

TEST(Passes, CallsAreInlined) {
  expect_pass(inline_calls,
              "graph @f(%0: f32[4]) -> (f32[4]) {\n"
              "  %1 = xylem.call(%0) {name = \"g\"} [\n"
              "    graph @g(%0: f32[4]) -> (f32[4]) {\n"
              "      %1 = stablehlo.negate(%0) : f32[4]\n"
              "      return %1\n    }\n  ] : f32[4]\n"
              "  %2 = xylem.stop_gradient(%1) : f32[4]\n"
              "  return %2\n}\n",
              "graph @f(%0: f32[4]) -> (f32[4]) {\n"
              "  %1 = stablehlo.negate(%0) : f32[4]\n"
              "  return %1\n}\n");
}

std::string binary(const std::string& op, const std::string& constant, bool right) {
  return "graph @f(%0: f32[4]) -> (f32[4]) {\n"
         "  %1 = stablehlo.constant() {value = dense f32[] " +
         constant +
         "} : f32[]\n"
         "  %2 = stablehlo.broadcast_in_dim(%1) {broadcast_dimensions = [], shape = [4]} : f32[4]\n"
         "  %3 = stablehlo." +
         op + (right ? "(%0, %2)" : "(%2, %0)") +
         " : f32[4]\n"
         "  return %3\n}\n";
}

TEST(Passes, ExactIdentitiesOnly) {
  const std::string same = "graph @f(%0: f32[4]) -> (f32[4]) {\n  return %0\n}\n";
  const auto cleaned = +[](const ir::GraphPtr& g) { return eliminate_dead(simplify(g)); };
  expect_pass(cleaned, binary("multiply", "1", true), same);
  expect_pass(cleaned, binary("multiply", "1", false), same);
  expect_pass(cleaned, binary("divide", "1", true), same);
  expect_pass(cleaned, binary("add", "-0", true), same);
  expect_pass(cleaned, binary("subtract", "0", true), same);
  // -0 + 0 is +0; 0 * NaN is NaN.
  expect_pass(cleaned, binary("add", "0", true), binary("add", "0", true));
  expect_pass(cleaned, binary("multiply", "0", true), binary("multiply", "0", true));
}

TEST(Passes, MovementChainsCompose) {
  const auto cleaned = +[](const ir::GraphPtr& g) { return eliminate_dead(simplify(g)); };
  expect_pass(cleaned,
              "graph @f(%0: f32[2,3]) -> (f32[2,3], f32[6]) {\n"
              "  %1 = stablehlo.transpose(%0) {permutation = [1, 0]} : f32[3,2]\n"
              "  %2 = stablehlo.transpose(%1) {permutation = [1, 0]} : f32[2,3]\n"
              "  %3 = stablehlo.reshape(%0) {shape = [3, 2]} : f32[3,2]\n"
              "  %4 = stablehlo.reshape(%3) {shape = [6]} : f32[6]\n"
              "  return %2, %4\n}\n",
              "graph @f(%0: f32[2,3]) -> (f32[2,3], f32[6]) {\n"
              "  %1 = stablehlo.reshape(%0) {shape = [6]} : f32[6]\n"
              "  return %0, %1\n}\n");
}

TEST(Passes, SmallConstantsFold) {
  const auto cleaned = +[](const ir::GraphPtr& g) { return eliminate_dead(simplify(g)); };
  expect_pass(cleaned,
              "graph @f() -> (f32[]) {\n"
              "  %0 = stablehlo.constant() {value = dense f32[] 2} : f32[]\n"
              "  %1 = stablehlo.multiply(%0, %0) : f32[]\n"
              "  %2 = stablehlo.add(%1, %0) : f32[]\n"
              "  return %2\n}\n",
              "graph @f() -> (f32[]) {\n"
              "  %0 = stablehlo.constant() {value = dense f32[] 6} : f32[]\n"
              "  return %0\n}\n");
}

TEST(Passes, ProductsWithVectorsBecomeSums) {
  const ir::GraphPtr g = canonicalize_dots(
      ir::parse_graph("graph @f(%0: f32[4,8], %1: f32[8]) -> (f32[4]) {\n"
                      "  %2 = stablehlo.dot_general(%0, %1) {lhs_contracting_dimensions = [1], "
                      "rhs_contracting_dimensions = [0]} : f32[4]\n"
                      "  return %2\n}\n"));
  EXPECT_TRUE(ir::verify(*g).empty());
  EXPECT_EQ(g->to_string().find("dot_general"), std::string::npos);
}

std::string windows(const std::string& window, const std::string& padding, const std::string& op,
                    const std::string& init) {
  return "graph @f(%0: f32[3,5]) -> (f32[3,5]) {\n"
         "  %1 = stablehlo.constant() {value = dense f32[] " +
         init +
         "} : f32[]\n"
         "  %2 = stablehlo.reduce_window(%0, %1) {padding = dense i64[2,2] " +
         padding + ", window_dimensions = " + window +
         "} [\n"
         "    graph @step(%0: f32[], %1: f32[]) -> (f32[]) {\n"
         "      %2 = stablehlo." +
         op +
         "(%0, %1) : f32[]\n"
         "      return %2\n    }\n  ] : f32[3,5]\n"
         "  return %2\n}\n";
}

TEST(Passes, WindowsOverAllThatComesBeforeAreWalks) {
  const auto out = [](const std::string& text) {
    const ir::GraphPtr g = expand_windows(ir::parse_graph(text));
    EXPECT_TRUE(ir::verify(*g).empty());
    return ir::print(*g);
  };
  EXPECT_NE(out(windows("[1, 5]", "[0, 0, 4, 0]", "add", "0"))
                .find("xylem.cumsum(%0) {dimension = 1, reverse = false}"),
            std::string::npos);
  EXPECT_NE(out(windows("[3, 1]", "[0, 2, 0, 0]", "maximum", "-inf"))
                .find("xylem.cummax(%0) {dimension = 0, reverse = true}"),
            std::string::npos);
  // Another start, a window that is shorter, or one on both sides.
  EXPECT_EQ(out(windows("[1, 5]", "[0, 0, 4, 0]", "add", "1")).find("cumsum"), std::string::npos);
  EXPECT_EQ(out(windows("[1, 3]", "[0, 0, 2, 0]", "add", "0")).find("cumsum"), std::string::npos);
  EXPECT_EQ(out(windows("[1, 5]", "[0, 0, 2, 2]", "add", "0")).find("cumsum"), std::string::npos);
}

TEST(Passes, LongSumsAreCutIntoBlocks) {
  const std::string text =
      "graph @f(%0: f32[20000]) -> (f32[]) {\n"
      "  %1 = stablehlo.constant() {value = dense f32[] 0} : f32[]\n"
      "  %2 = stablehlo.reduce(%0, %1) {dimensions = [0]} [\n"
      "    graph @add(%0: f32[], %1: f32[]) -> (f32[]) {\n"
      "      %2 = stablehlo.add(%0, %1) : f32[]\n"
      "      return %2\n    }\n  ] : f32[]\n"
      "  return %2\n}\n";
  const std::string out = split_reductions(ir::parse_graph(text))->to_string();
  EXPECT_NE(out.find("f32[5,4096]"), std::string::npos) << out;
}

}  // namespace
}  // namespace xylem::compiler
