#include "xylem/ir/refine.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "xylem/ir/text.h"

namespace xylem::ir {
namespace {

// The program's function of this name for one argument of type `type`.
GraphPtr refined(const std::string& text, const std::string& type) {
  const Module module = parse_stablehlo(text);
  const std::vector<Type> types = {parse_type(type)};
  return refine(module.find("main")->graph, types);
}

constexpr const char* kOpen = R"(
func.func private @twice(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
  %d = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %three = stablehlo.constant dense<3> : tensor<1xi32>
  %shape = stablehlo.concatenate %d, %three, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %b = stablehlo.dynamic_broadcast_in_dim %two, %shape, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x3xf32>
  %y = stablehlo.multiply %x, %b : tensor<?x3xf32>
  return %y : tensor<?x3xf32>
}
func.func @main(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %y = stablehlo.composite "a.twice" %x {decomposition = @twice} : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %z = call @twice(%y) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  return %z : tensor<?x3xf32>
}
)";

TEST(RefineTest, CompositesAndCallsOfOpenShapesGiveWayToTheirBodies) {
  const GraphPtr g = refined(kOpen, "f32[5,3]");
  for (const Value& v : g->values) EXPECT_TRUE(v.type.is_static()) << print(*g);
  EXPECT_EQ(g->result_types()[0].to_string(), "f32[5,3]");
  for (const Op& op : g->ops) EXPECT_TRUE(op.regions.empty()) << print(*g);
}

TEST(RefineTest, CompositesOfStaticShapesAreKept) {
  const GraphPtr g = refined(R"(
func.func private @negated(%x: tensor<3xf32>) -> tensor<3xf32> {
  %y = stablehlo.negate %x : tensor<3xf32>
  return %y : tensor<3xf32>
}
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %y = stablehlo.composite "a.negated" %x {decomposition = @negated} : (tensor<3xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}
)",
                             "f32[3]");
  ASSERT_EQ(g->ops.size(), 1u);
  EXPECT_EQ(g->ops[0].regions.size(), 1u);
}

TEST(RefineTest, OpsThatAreDefinedByTheirExpansionAreFoldedToo) {
  const GraphPtr g = refined(R"(
func.func @main(%x: tensor<?xf32>) -> tensor<?x?xf32> {
  %c = stablehlo.constant dense<[2, 9, 3]> : tensor<3xi32>
  %i = stablehlo.constant dense<[2, 0]> : tensor<2xi32>
  %shape = "stablehlo.torch_index_select"(%c, %i) <{dim = 0 : i64, batch_dims = 0 : i64}> : (tensor<3xi32>, tensor<2xi32>) -> tensor<2xi32>
  %y = stablehlo.dynamic_reshape %x, %shape : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
)",
                             "f32[6]");
  EXPECT_EQ(g->result_types()[0].to_string(), "f32[3,2]");
}

}  // namespace
}  // namespace xylem::ir
