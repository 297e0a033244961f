#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "xylem/base/error.h"
#include "xylem/ir/bytecode.h"
#include "xylem/ir/text.h"

// Programs whose types fit each other and that break a constraint on values or bounds.

namespace xylem::ir {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string error_of(const std::string& body, const std::string& args) {
  try {
    parse_stablehlo("func.func @main(" + args + ") {\n" + body + "\n  return\n}\n", "p");
  } catch (const UserError& e) {
    return e.message();
  }
  return "";
}

std::string reshaped(const std::string& sizes, const std::string& operand,
                     const std::string& result) {
  return error_of("  %s = stablehlo.constant dense<" + sizes +
                      "> : tensor<2xi64>\n"
                      "  %r = stablehlo.dynamic_reshape %x, %s : (" +
                      operand + ", tensor<2xi64>) -> " + result,
                  "%x: " + operand);
}

TEST(StaticCheckTest, ConstantShapesOfDynamicReshapeAreHeldAgainstBothTypes) {
  EXPECT_EQ(reshaped("[2, 2]", "tensor<4xf32>", "tensor<2x2xf32>"), "");
  EXPECT_EQ(reshaped("[2, 2]", "tensor<?xf32>", "tensor<?x?xf32>"), "");
  EXPECT_THAT(reshaped("[2, 2]", "tensor<4xf32>", "tensor<1x4xf32>"),
              HasSubstr("they give [2,2], the result is f32[1,4]"));
  EXPECT_THAT(reshaped("[2, 3]", "tensor<4xf32>", "tensor<?x?xf32>"),
              HasSubstr("[dynamic_reshape_c2]"));
  EXPECT_THAT(reshaped("[-2, -2]", "tensor<?xf32>", "tensor<?x?xf32>"),
              HasSubstr("[dynamic_reshape_c2]"));
}

TEST(StaticCheckTest, ConstantSizesOfDynamicBroadcastAndIotaAreChecked) {
  auto cast = [](const std::string& sizes, const std::string& result) {
    return error_of("  %s = stablehlo.constant dense<" + sizes +
                        "> : tensor<2xi32>\n"
                        "  %r = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [1] : "
                        "(tensor<3xi32>, tensor<2xi32>) -> " +
                        result,
                    "%x: tensor<3xi32>");
  };
  EXPECT_EQ(cast("[2, 3]", "tensor<2x?xi32>"), "");
  EXPECT_THAT(cast("[2, 1]", "tensor<?x?xi32>"), HasSubstr("[dynamic_broadcast_in_dim_c5]"));
  EXPECT_THAT(cast("[-1, 3]", "tensor<?x3xi32>"), HasSubstr("[dynamic_broadcast_in_dim_c5]"));
  EXPECT_THAT(cast("[4, 3]", "tensor<2x3xi32>"), HasSubstr("[dynamic_broadcast_in_dim_c5]"));
  auto iota = [](const std::string& size) {
    return error_of("  %s = stablehlo.constant dense<" + size +
                        "> : tensor<1xi64>\n"
                        "  %r = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi64>) -> "
                        "tensor<4xf32>",
                    "");
  };
  EXPECT_EQ(iota("4"), "");
  EXPECT_THAT(iota("3"), HasSubstr("[dynamic_iota_c2]"));
  EXPECT_THAT(iota("-1"), HasSubstr("[dynamic_iota_c2]"));
}

std::string padded(const std::string& interior, const std::string& result) {
  return error_of("  %i = stablehlo.constant dense<" + interior +
                      "> : tensor<1xi32>\n"
                      "  %e = stablehlo.constant dense<1> : tensor<1xi32>\n"
                      "  %r = stablehlo.dynamic_pad %x, %v, %e, %e, %i : (tensor<4xf32>, "
                      "tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> " +
                      result,
                  "%x: tensor<4xf32>, %v: tensor<f32>");
}

TEST(StaticCheckTest, ConstantPaddingsAreChecked) {
  EXPECT_EQ(padded("1", "tensor<9xf32>"), "");
  EXPECT_EQ(padded("1", "tensor<?xf32>"), "");
  EXPECT_THAT(padded("-1", "tensor<?xf32>"), HasSubstr("[dynamic_pad_c3]"));
  EXPECT_THAT(padded("1", "tensor<8xf32>"), HasSubstr("[dynamic_pad_c4]"));
}

TEST(StaticCheckTest, ConstantSliceSizesOfDynamicGatherAreChecked) {
  auto gathered = [](const std::string& sizes, const std::string& result) {
    return error_of("  %s = stablehlo.constant dense<" + sizes +
                        "> : tensor<2xi32>\n"
                        "  %r = \"stablehlo.dynamic_gather\"(%x, %i, %s) <{dimension_numbers = "
                        "#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], "
                        "start_index_map = [0], index_vector_dim = 1>}> : (tensor<5x4xf32>, "
                        "tensor<3x1xi32>, tensor<2xi32>) -> " +
                        result,
                    "%x: tensor<5x4xf32>, %i: tensor<3x1xi32>");
  };
  EXPECT_EQ(gathered("[1, 4]", "tensor<3x4xf32>"), "");
  EXPECT_THAT(gathered("[2, 4]", "tensor<3x4xf32>"), HasSubstr("[dynamic_gather_c8]"));
  EXPECT_THAT(gathered("[1, 5]", "tensor<3x?xf32>"), HasSubstr("[dynamic_gather_c12]"));
  EXPECT_THAT(gathered("[1, -1]", "tensor<3x?xf32>"), HasSubstr("[dynamic_gather_c12]"));
  EXPECT_THAT(gathered("[1, 3]", "tensor<3x4xf32>"), HasSubstr("[dynamic_gather_c13]"));
}

TEST(StaticCheckTest, OtherConstantOperandsAreChecked) {
  EXPECT_THAT(error_of("  %a = stablehlo.constant dense<0> : tensor<1xi32>\n"
                       "  %b = stablehlo.constant dense<9> : tensor<1xi32>\n"
                       "  %c = stablehlo.constant dense<1> : tensor<1xi32>\n"
                       "  %r = stablehlo.real_dynamic_slice %x, %a, %b, %c : (tensor<4xf32>, "
                       "tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>",
                       "%x: tensor<4xf32>"),
              HasSubstr("[real_dynamic_slice_c3]"));
  EXPECT_THAT(error_of("  %s = stablehlo.constant dense<7> : tensor<1xi64>\n"
                       "  %r = \"stablehlo.rng\"(%a, %a, %s) <{rng_distribution = "
                       "#stablehlo<rng_distribution UNIFORM>}> : (tensor<f32>, tensor<f32>, "
                       "tensor<1xi64>) -> tensor<12xf32>",
                       "%a: tensor<f32>"),
              HasSubstr("[rng_c3]"));
  EXPECT_THAT(error_of("  %p = stablehlo.constant dense<[[0, 1]]> : tensor<1x2xi64>\n"
                       "  %r = \"stablehlo.dynamic_conv\"(%x, %w, %p) <{dimension_numbers = "
                       "#stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 "
                       ": i64, batch_group_count = 1 : i64}> : (tensor<1x4x2xf32>, "
                       "tensor<2x2x3xf32>, tensor<1x2xi64>) -> tensor<1x5x3xf32>",
                       "%x: tensor<1x4x2xf32>, %w: tensor<2x2x3xf32>"),
              HasSubstr("[dynamic_conv_c25]"));
  EXPECT_THAT(error_of("  %k = stablehlo.constant dense<2> : tensor<1xi32>\n"
                       "  %r = \"stablehlo.collective_broadcast\"(%x, %k) <{replica_groups = "
                       "dense<[[0, 1]]> : tensor<1x2xi64>, has_dynamic_root = true}> : "
                       "(tensor<4xf32>, tensor<1xi32>) -> tensor<4xf32>",
                       "%x: tensor<4xf32>"),
              HasSubstr("[collective_broadcast_c6]"));
}

std::string bounded(const std::string& op, const std::string& operand) {
  return error_of("  %r = " + op, "%x: " + operand);
}

TEST(StaticCheckTest, SizesDoNotPassTheBoundsThatGoWithThem) {
  const std::string b4 = "tensor<?xf32, #stablehlo.bounds<4>>";
  EXPECT_EQ(bounded("stablehlo.negate %x : (" + b4 + ") -> tensor<3xf32>", b4), "");
  EXPECT_THAT(bounded("stablehlo.negate %x : (" + b4 + ") -> tensor<5xf32>", b4),
              HasSubstr("a size must not pass the bound"));
  EXPECT_THAT(error_of("  %r = stablehlo.add %x, %y : (" + b4 + ", tensor<5xf32>) -> tensor<5xf32>",
                       "%x: " + b4 + ", %y: tensor<5xf32>"),
              HasSubstr("[add_c1]"));
  EXPECT_THAT(bounded("stablehlo.slice %x [0:5] : (" + b4 + ") -> tensor<5xf32>", b4),
              HasSubstr("[slice_c3]"));
  EXPECT_THAT(error_of("  %r = stablehlo.pad %x, %v, low = [-6], high = [0], interior = [0] : (" +
                           b4 + ", tensor<f32>) -> tensor<?xf32>",
                       "%x: " + b4 + ", %v: tensor<f32>"),
              HasSubstr("[pad_c4]"));
  EXPECT_THAT(
      bounded("stablehlo.concatenate %x, %x, dim = 0 : (" + b4 + ", " + b4 + ") -> tensor<9xf32>",
              b4),
      HasSubstr("the parts have at most 8"));
  const std::string b34 = "tensor<?x3xf32, #stablehlo.bounds<4, ?>>";
  EXPECT_THAT(
      bounded("stablehlo.transpose %x, dims = [1, 0] : (" + b34 + ") -> tensor<3x6xf32>", b34),
      HasSubstr("6 in f32[3,6] against 4"));
}

TEST(StaticCheckTest, ResultsThatOnlyTheTypeSizesAreKnownOrHaveOneBound) {
  const std::string x = "tensor<3xf32>";
  EXPECT_THAT(
      bounded("stablehlo.broadcast_in_dim %x, dims = [1] : (" + x + ") -> tensor<?x3xf32>", x),
      HasSubstr("Use dynamic_broadcast_in_dim"));
  EXPECT_EQ(bounded("stablehlo.broadcast_in_dim %x, dims = [1] : (" + x +
                        ") -> tensor<?x3xf32, #stablehlo.bounds<5, ?>>",
                    x),
            "");
  const std::string b = "tensor<?x?xf32, #stablehlo.bounds<5, 5>>";
  EXPECT_THAT(bounded("stablehlo.reshape %x : (" + b + ") -> " + b, b), HasSubstr("[reshape_o1]"));
}

TEST(StaticCheckTest, QuantisedReducersKeepTheExpressedType) {
  auto reduced = [](const std::string& to) {
    return error_of(
        "  %r = stablehlo.reduce(%x init: %i) across dimensions = [0] : "
        "(tensor<4x!quant.uniform<i8:f32, 2.0>>, tensor<!quant.uniform<i8:f32, 2.0>>) -> tensor<" +
            to + ">\n  reducer(%a: tensor<" + to + ">, %b: tensor<" + to +
            ">) {\n    %s = stablehlo.add %a, %b : tensor<" + to +
            ">\n    stablehlo.return %s : tensor<" + to + ">\n  }",
        "%x: tensor<4x!quant.uniform<i8:f32, 2.0>>, %i: tensor<!quant.uniform<i8:f32, 2.0>>");
  };
  EXPECT_THAT(reduced("!quant.uniform<i32:f32, 2.0>"), Not(HasSubstr("reduce_c6")));
  EXPECT_THAT(reduced("!quant.uniform<i32:f64, 2.0>"), HasSubstr("[reduce_c6]"));
}

TEST(StaticCheckTest, QuantisationDimensionsMoveThoughTheShapeStays) {
  const std::string x = "tensor<2x2x!quant.uniform<i8:f32:0, {0.5, 0.25}>>";
  const std::string y = "tensor<2x2x!quant.uniform<i8:f32:1, {0.5, 0.25}>>";
  auto moved = [&](const std::string& to) {
    return bounded("stablehlo.transpose %x, dims = [1, 0] : (" + x + ") -> " + to, x);
  };
  EXPECT_EQ(moved(y), "");
  EXPECT_THAT(moved(x), HasSubstr("[transpose_c4]"));
}

TEST(StaticCheckTest, AliasesDoNotLookIntoTensors) {
  EXPECT_THAT(error_of("  %r = stablehlo.custom_call @f(%x) {output_operand_aliases = "
                       "[#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index "
                       "= 0, operand_tuple_indices = [3]>]} : (tensor<2xf32>) -> tensor<2xf32>",
                       "%x: tensor<2xf32>"),
              HasSubstr("operand_tuple_indices names a part of the operand"));
}

TEST(StaticCheckTest, UnrankedTensorsAreCarriedByCustomCallsOnly) {
  EXPECT_EQ(error_of("  %r = stablehlo.custom_call @f(%x) : (tensor<*xf32>) -> tensor<*xf32>",
                     "%x: tensor<*xf32>"),
            "");
  EXPECT_THAT(error_of("  %r = stablehlo.negate %x : tensor<*xf32>", "%x: tensor<*xf32>"),
              HasSubstr("[negate_i1]"));
}

}  // namespace
}  // namespace xylem::ir
