#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "xylem/base/error.h"
#include "xylem/ir/interpreter.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/testing/text_samples.h"
#include "xylem/ir/text.h"
#include "xylem/ir/verify.h"

namespace xylem::ir {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Module module_of(const GraphPtr& g) {
  Module m;
  m.name = "m";
  m.functions.push_back({"main", false, g});
  return m;
}

std::string error_of(std::string_view text) {
  try {
    parse_stablehlo(text, "f.mlir");
  } catch (const UserError& e) {
    return e.message();
  }
  return "no error";
}

// A function around some ops; the first op is on line 2.
std::string error_in(std::string_view ops) {
  return error_of("func.func @main(%a: tensor<2x3xf32>, %b: tensor<i32>) {\n" + std::string(ops) +
                  "\n  return\n}");
}

const Graph& main_of(const Module& m) { return *m.find("main")->graph; }

TEST(StablehloTextTest, ReadsBackWhatItWrites) {
  for (const GraphPtr& g : testing::stablehlo_samples()) {
    std::string text = print_stablehlo(module_of(g));
    Module back = parse_stablehlo(text, g->name);
    EXPECT_TRUE(structurally_equal(*g, main_of(back))) << text << print(main_of(back)) << print(*g);
    EXPECT_EQ(print_stablehlo(back), text);
    EXPECT_TRUE(verify(main_of(back)).empty()) << text;
  }
}

TEST(StablehloTextTest, SamplesCoverEveryStablehloAndChloOp) {
  std::vector<std::string> used;
  for (const GraphPtr& g : testing::stablehlo_samples()) testing::collect_ops(*g, used);
  for (const OpDef* op : op_table()) {
    if (op->is(kXylem) || op->is(kKernelOnly)) continue;
    EXPECT_TRUE(std::find(used.begin(), used.end(), op->name) != used.end()) << op->name;
  }
}

// Two spellings of one op.
struct Spelling {
  const char* pretty;
  const char* generic;
};

TEST(StablehloTextTest, PrettyAndGenericFormsReadAlike) {
  const Spelling spellings[] = {
      {"stablehlo.add %f, %f : tensor<2x3xf32>",
       "\"stablehlo.add\"(%f, %f) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>"},
      {"stablehlo.add %f, %f : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>",
       "\"stablehlo.add\"(%f, %f) {} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>"},
      {"stablehlo.abs %f {mhlo.x = \"y\"} : tensor<2x3xf32>",
       "\"stablehlo.abs\"(%f) {mhlo.x = \"y\"} : (tensor<2x3xf32>) -> tensor<2x3xf32>"},
      {"chlo.erf %f : tensor<2x3xf32> -> tensor<2x3xf32>",
       "\"chlo.erf\"(%f) : (tensor<2x3xf32>) -> tensor<2x3xf32>"},
      {"stablehlo.constant dense<1> : tensor<2xi32>",
       "\"stablehlo.constant\"() <{value = dense<[1, 1]> : tensor<2xi32>}> : () -> tensor<2xi32>"},
      {"stablehlo.constant dense<[0x7FC00000, -0.0]> : tensor<2xf32>",
       "\"stablehlo.constant\"() {value = dense<\"0x0000C07F00000080\"> : tensor<2xf32>} : () -> "
       "tensor<2xf32>"},
      {"stablehlo.constant dense<[true, false, true]> : tensor<3xi1>",
       "stablehlo.constant dense<\"0x05\"> : tensor<3xi1>"},
      {"stablehlo.constant dense<[1, 0, 1]> : tensor<3xi1>",
       "stablehlo.constant dense<\"0x010001\"> : tensor<3xi1>"},
      {"stablehlo.constant dense<true> : tensor<i1>",
       "stablehlo.constant() <{value = dense<-1> : tensor<i1>}> : () -> tensor<i1>"},
      {"stablehlo.constant dense<(1.0,2.0)> : tensor<2xcomplex<f32>>",
       "stablehlo.constant dense<[(0x3F800000,2.0), (1.0e+00,2.0e0)]> : tensor<2xcomplex<f32>>"},
      {"stablehlo.constant dense<> : tensor<0x3xf32>",
       "stablehlo.constant dense<[]> : tensor<0x3xf32>"},
      {"stablehlo.constant dense<0xFF> : tensor<ui8>",
       "stablehlo.constant dense<255> : tensor<ui8>"},
      {"stablehlo.constant dense<-1> : tensor<i4>",
       "stablehlo.constant dense<\"0xFF\"> : tensor<i4>"},
      {"stablehlo.iota dim = 1 : tensor<2x3xi32>",
       "\"stablehlo.iota\"() <{iota_dimension = 1 : i64}> : () -> tensor<2x3xi32>"},
      {"stablehlo.broadcast_in_dim %f, dims = [1, 2] : (tensor<2x3xf32>) -> tensor<4x2x3xf32>",
       "\"stablehlo.broadcast_in_dim\"(%f) {broadcast_dimensions = dense<[1, 2]> : tensor<2xi64>} "
       ": (tensor<2x3xf32>) -> tensor<4x2x3xf32>"},
      {"stablehlo.transpose %f, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>",
       "\"stablehlo.transpose\"(%f) <{permutation = array<i64: 1, 0>}> : (tensor<2x3xf32>) -> "
       "tensor<3x2xf32>"},
      {"stablehlo.reverse %f, dims = [] : tensor<2x3xf32>",
       "\"stablehlo.reverse\"(%f) <{dimensions = array<i64>}> : (tensor<2x3xf32>) -> "
       "tensor<2x3xf32>"},
      {"stablehlo.slice %f [0:1, 0:3:2] : (tensor<2x3xf32>) -> tensor<1x2xf32>",
       "\"stablehlo.slice\"(%f) <{limit_indices = array<i64: 1, 3>, start_indices = array<i64: 0, "
       "0>, strides = array<i64: 1, 2>}> : (tensor<2x3xf32>) -> tensor<1x2xf32>"},
      {"stablehlo.dynamic_slice %f, %i, %i, sizes = [1, 2] : (tensor<2x3xf32>, tensor<i32>, "
       "tensor<i32>) -> tensor<1x2xf32>",
       "\"stablehlo.dynamic_slice\"(%f, %i, %i) <{slice_sizes = array<i64: 1, 2>}> : "
       "(tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>"},
      {"stablehlo.pad %f, %s, low = [0, -1], high = [0, 2], interior = [0, 1] : (tensor<2x3xf32>, "
       "tensor<f32>) -> tensor<2x6xf32>",
       "\"stablehlo.pad\"(%f, %s) <{edge_padding_high = array<i64: 0, 2>, edge_padding_low = "
       "array<i64: 0, -1>, interior_padding = array<i64: 0, 1>}> : (tensor<2x3xf32>, tensor<f32>) "
       "-> tensor<2x6xf32>"},
      {"stablehlo.compare  LT, %f, %f,  FLOAT : (tensor<2x3xf32>, tensor<2x3xf32>) -> "
       "tensor<2x3xi1>",
       "\"stablehlo.compare\"(%f, %f) <{compare_type = #stablehlo<comparison_type FLOAT>, "
       "comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<2x3xf32>, "
       "tensor<2x3xf32>) -> tensor<2x3xi1>"},
      {"stablehlo.select %p, %f, %f : tensor<i1>, tensor<2x3xf32>",
       "stablehlo.select %p, %f, %f : (tensor<i1>, tensor<2x3xf32>, tensor<2x3xf32>) -> "
       "tensor<2x3xf32>"},
      {"stablehlo.complex %f, %f : tensor<2x3xcomplex<f32>>",
       "stablehlo.complex %f, %f : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xcomplex<f32>>"},
      {"stablehlo.reduce_precision %f, format = e5m10 : tensor<2x3xf32>",
       "\"stablehlo.reduce_precision\"(%f) <{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}> : "
       "(tensor<2x3xf32>) -> tensor<2x3xf32>"},
      {"stablehlo.dot_general %f, %f, contracting_dims = [1] x [1], precision = [HIGHEST, DEFAULT] "
       ": (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>",
       "\"stablehlo.dot_general\"(%f, %f) <{dot_dimension_numbers = "
       "#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, "
       "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision DEFAULT>]}> : "
       "(tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>"},
      {"stablehlo.dot_general %f, %f, contracting_dims = [] x [], algorithm = "
       "<lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, "
       "lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, "
       "allow_imprecise_accumulation = false> : (tensor<2x3xf32>, tensor<2x3xf32>) -> "
       "tensor<2x3x2x3xf32>",
       "\"stablehlo.dot_general\"(%f, %f) <{algorithm = "
       "#stablehlo.dot_algorithm<lhs_precision_type "
       "= tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, "
       "rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = "
       "false>, dot_dimension_numbers = #stablehlo.dot<>}> : (tensor<2x3xf32>, tensor<2x3xf32>) "
       "-> tensor<2x3x2x3xf32>"},
      {"stablehlo.reduce(%f init: %s) applies stablehlo.add across dimensions = [1] : "
       "(tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>",
       "\"stablehlo.reduce\"(%f, %s) <{dimensions = array<i64: 1>}> ({\n"
       "  ^bb0(%l: tensor<f32> loc(\"l\"), %r: tensor<f32> loc(unknown)):\n"
       "    %x = \"stablehlo.add\"(%l, %r) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n"
       "    \"stablehlo.return\"(%x) : (tensor<f32>) -> ()\n"
       "  }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>"},
      {"stablehlo.reduce(%f init: %s) across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> "
       "tensor<2xf32>\n reducer(%l: tensor<f32>, %r: tensor<f32>) {\n %x = stablehlo.add %l, %r : "
       "tensor<f32>\n stablehlo.return %x : tensor<f32>\n }",
       "stablehlo.reduce(%f init: %s) applies stablehlo.add across dimensions = [1] : "
       "(tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>"},
      {"stablehlo.while(%k = %i) : tensor<i32> attributes {mhlo.x} cond {\n"
       "  %x = stablehlo.compare LT, %k, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
       "  stablehlo.return %x : tensor<i1>\n} do {\n  stablehlo.return %k : tensor<i32>\n}",
       "\"stablehlo.while\"(%i) ({\n ^bb0(%k: tensor<i32>):\n"
       "  %x = stablehlo.compare LT, %k, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
       "  stablehlo.return %x : tensor<i1>\n}, {\n ^bb0(%k: tensor<i32>):\n"
       "  stablehlo.return %k : tensor<i32>\n}) {mhlo.x} : (tensor<i32>) -> tensor<i32>"},
      {"stablehlo.broadcast_in_dim %f, dims = [1, 2] : (tensor<2x3xf32>) -> tensor<4x2x3xf32>",
       "stablehlo.broadcast %f, sizes = [4] : (tensor<2x3xf32>) -> tensor<4x2x3xf32>"},
      {"stablehlo.dot_general %f, %v, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] "
       ": (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2xf32>",
       "stablehlo.dot %f, %v, precision = [DEFAULT, DEFAULT] : (tensor<2x3xf32>, tensor<3xf32>) "
       "-> tensor<2xf32>"},
      {"stablehlo.after_all : !stablehlo.token", "stablehlo.create_token : !stablehlo.token"},
      {"stablehlo.exponential %f {result_accuracy = #stablehlo.result_accuracy<mode = "
       "#stablehlo.result_accuracy_mode<HIGHEST>>} : tensor<2x3xf32>",
       "\"stablehlo.exponential\"(%f) <{result_accuracy = #stablehlo.result_accuracy<mode = "
       "#stablehlo.result_accuracy_mode<HIGHEST>>}> : (tensor<2x3xf32>) -> tensor<2x3xf32>"},
  };
  for (const Spelling& s : spellings) {
    auto read = [](const char* op) {
      std::string text =
          "func.func public @main(%f: tensor<2x3xf32>, %s: tensor<f32>, %i: "
          "tensor<i32>, %p: tensor<i1>, %v: tensor<3xf32>) {\n  %r = ";
      return parse_stablehlo(text + op + "\n  return\n}", "spelling");
    };
    Module a = read(s.pretty), b = read(s.generic);
    EXPECT_TRUE(structurally_equal(main_of(a), main_of(b)))
        << print(main_of(a)) << print(main_of(b));
    Module again = parse_stablehlo(print_stablehlo(a));
    EXPECT_TRUE(structurally_equal(main_of(a), main_of(again))) << print_stablehlo(a);
  }
}

TEST(StablehloTextTest, TopKReadsWithParenthesesOnly) {
  Module m = parse_stablehlo(
      "func.func @main(%a: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>) {\n"
      "  %values, %indices = chlo.top_k(%a, k = 2) : tensor<4xf32> -> (tensor<2xf32>, "
      "tensor<2xi32>)\n  return %values, %indices : tensor<2xf32>, tensor<2xi32>\n}");
  EXPECT_EQ(main_of(m).ops[0].attrs.i64("k"), 2);
}

TEST(StablehloTextTest, ResultsMayBeNamedInPacksListsAndMixed) {
  Module m = parse_stablehlo(R"(func.func @main(%a: tensor<f32>) -> tensor<f32> {
    %p:2, %q = stablehlo.optimization_barrier %a, %a, %a : tensor<f32>, tensor<f32>, tensor<f32>
    %0 = stablehlo.add %p#1, %q : tensor<f32>
    %1 = stablehlo.add %p#0, %0 : tensor<f32>
    return %1 : tensor<f32>
  })");
  const Graph& g = main_of(m);
  EXPECT_EQ(g.ops[1].operands, (ValueIds{2, 3}));
  EXPECT_EQ(g.ops[2].operands, (ValueIds{1, 4}));
}

TEST(StablehloTextTest, CapturesBecomeOperandsOfEveryRegion) {
  Module m = parse_stablehlo(R"(module {
  func.func @main(%p: tensor<i1>, %x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
    %0 = "stablehlo.if"(%p) ({
      %1 = "stablehlo.if"(%p) ({
        stablehlo.return %y : tensor<f32>
      }, {
        stablehlo.return %x : tensor<f32>
      }) : (tensor<i1>) -> tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }, {
      %1 = stablehlo.add %x, %x : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<i1>) -> tensor<f32>
    return %0 : tensor<f32>
  }
})");
  const Graph& g = main_of(m);
  EXPECT_TRUE(verify(g).empty());
  EXPECT_EQ(g.ops[0].operands, (ValueIds{0, 0, 2, 1}));
  EXPECT_EQ(g.ops[0].attrs.i64("num_captures"), 3);
  EXPECT_EQ(g.ops[0].regions[0]->params.size(), 3u);
  auto run = [&](bool p) {
    HostArray args[] = {HostArray::scalar(p), HostArray::scalar(2.f), HostArray::scalar(5.f)};
    return evaluate(g, args)[0].at(0);
  };
  EXPECT_EQ(run(true), 5);
  EXPECT_EQ(run(false), 4);
}

TEST(StablehloTextTest, CallsRunTheirFunctionsWhereverTheseAreDefined) {
  Module m = parse_stablehlo(R"(module @jit_f {
  func.func private @first(%a: tensor<f32>) -> tensor<f32> {
    %0 = func.call @second(%a) : (tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
  func.func public @main(%a: tensor<f32>) -> tensor<f32> {
    %0 = call @first(%a) : (tensor<f32>) -> tensor<f32>
    %1 = "func.call"(%0) <{callee = @second}> : (tensor<f32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
  func.func private @second(%a: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.add %a, %a : tensor<f32>
    func.return %0 : tensor<f32>
  }
})");
  HostArray args[] = {HostArray::scalar(3.f)};
  EXPECT_EQ(evaluate(main_of(m), args)[0].at(0), 12);
  EXPECT_TRUE(verify(main_of(m)).empty());
  std::string text = print_stablehlo(m);
  EXPECT_THAT(text, HasSubstr("call @first(%arg0) : (tensor<f32>) -> tensor<f32>"));
  EXPECT_EQ(m.functions.size(), 3u);
  EXPECT_EQ(parse_stablehlo(text).functions.size(), 3u);
}

TEST(StablehloTextTest, EqualRegionsOfCallsBecomeOneFunction) {
  for (const GraphPtr& g : testing::stablehlo_samples()) {
    if (g->name != "stablehlo_calls") continue;
    Module back = parse_stablehlo(print_stablehlo(module_of(g)));
    ASSERT_EQ(back.functions.size(), 3u);
    EXPECT_TRUE(back.find("double")->is_private);
    EXPECT_TRUE(back.find("triple")->is_private);
  }
}

TEST(StablehloTextTest, ModulesAndFunctionsHaveGenericForms) {
  Module m = parse_stablehlo(R"("builtin.module"() <{sym_name = "m"}> ({
  "func.func"() <{arg_attrs = [{a.b = 1 : i32}], function_type = (tensor<f32>) -> tensor<f32>, sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<f32>):
    %0 = "stablehlo.add"(%arg0, %arg0) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "func.return"(%0) : (tensor<f32>) -> ()
  }) : () -> ()
}) {mhlo.num_replicas = 1 : i32} : () -> ())");
  EXPECT_EQ(m.name, "m");
  EXPECT_EQ(m.attrs.i64("mhlo.num_replicas"), 1);
  EXPECT_EQ(main_of(m).param_attrs[0].i64("a.b"), 1);
}

TEST(StablehloTextTest, LocationsAreFollowedThroughAliases) {
  Module m = parse_stablehlo(R"(#loc1 = loc("x.py":10:2 to :14)
module @m {
  func.func @main(%a: tensor<f32> loc("x")) -> tensor<f32> {
    %0 = stablehlo.add %a, %a : tensor<f32> loc(#loc3)
    %1 = stablehlo.add %0, %a : tensor<f32> loc(callsite("f"(#loc1) at "y.py":3:1 to 4:5))
    %2 = stablehlo.add %1, %a : tensor<f32> loc(fused<"meta">[unknown, "z.py":7:8])
    %3 = stablehlo.add %2, %a : tensor<f32>
    return %3 : tensor<f32> loc(unknown)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc3 = loc("jit(f)/add"(#loc1))
)",
                             "f.mlir");
  auto where = [&](std::size_t i) { return main_of(m).ops[i].loc; };
  EXPECT_EQ(where(0).source.to_string(), "x.py:10");
  EXPECT_EQ(where(0).path, "jit(f)/add");
  EXPECT_EQ(where(1).source.to_string(), "x.py:10");
  EXPECT_EQ(where(2).source.to_string(), "z.py:7");
  EXPECT_EQ(where(3).source.to_string(), "f.mlir:7") << "the text's own line where none is given";
}

TEST(StablehloTextTest, MeshesOfGenericModulesAreKeptBesideItsAttributes) {
  Module m = parse_stablehlo(R"("builtin.module"() <{sym_name = "m"}> ({
  "sdy.mesh"() <{mesh = #sdy.mesh<["x"=2]>, sym_name = "a"}> {b = 1 : i64} : () -> ()
  sdy.mesh @c = <[]> {stablehlo.mesh = {axes = []}}
}) {mhlo.num_partitions = 8 : i32} : () -> ())");
  EXPECT_EQ(print_stablehlo(m),
            "module @m attributes {mhlo.num_partitions = 8 : i32} {\n"
            "  sdy.mesh @a = <[\"x\"=2]> {b = 1 : i64}\n"
            "  sdy.mesh @c = <[]> {stablehlo.mesh = {axes = []}}\n}\n");
}

TEST(StablehloTextTest, AliasesThatMultiplyAreRefused) {
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += "#a" + std::to_string(i) + " = [#a" + std::to_string(i + 1) + ", #a" +
            std::to_string(i + 1) + "]\n";
  text += "#a40 = [1]\n";
  EXPECT_THAT(error_of(text + "module attributes {x = #a0} {}"),
              HasSubstr("aliases name one another at most"));
}

TEST(StablehloTextTest, BytesOutsideOfStringsAreAscii) {
  EXPECT_THAT(error_in("  %0 = stablehlo.add %a, %a {x = #a.b<\xff>} : tensor<2x3xf32>"),
              HasSubstr("found byte 0xFF"));
}

TEST(StablehloTextTest, ForeignAttributesAreKeptAsTheyStand) {
  const char* text =
      R"(module @m attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<2xf32> {jax.buffer_donor = true, sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>, tf.aliasing_output = 0 : i32}) -> (tensor<2xf32> {jax.result_info = "result[0]"}) attributes {a = [1 : i64, 2.500000e+00 : f64, "s", @f, #d.x<y -> z>], b = array<i32: 1, 2>, c = dense<[1, 0]> : tensor<2xindex>, d = (tensor<f32>) -> (), e = affine_map<(d0) -> (d0)>, f = !foo.bar<"x">, g = 1 : index, h = tensor<2xf32>, i = f32} {
    %0 = stablehlo.add %arg0, %arg0 {mhlo.frontend_attributes = {num_batch_dims = "1"}, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}]>]>, unit} : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
)";
  Module m = parse_stablehlo(text);
  EXPECT_EQ(print_stablehlo(m), text);
}

TEST(StablehloTextTest, TypesWithBoundsQuantisationAndEncodings) {
  Module m = parse_stablehlo(
      "!t = tensor<4xf32>\n"
      "func.func @main(%a: tensor<?x3xf32, #stablehlo.bounds<8, ?>>, %b: tensor<2x!quant.uniform<"
      "i8<-127:127>:f32:0, {5.0e-01:3, 1.0e-01}>>, %c: tuple<tensor<f32>, tuple<>>, %d: "
      "tensor<4xf32, #foo.enc<{a = 1}>>, %e: !t, %f: tensor<?xbf16, #stablehlo.type_extensions<"
      "bounds = [4]>>, %g: !stablehlo.token, %h: memref<4xf32>, %i: tensor<3xindex>) {\n  "
      "return\n}");
  std::vector<Type> t = main_of(m).param_types();
  EXPECT_EQ(t[0].extra()->bounds, (Dims{8, kDynamic}));
  EXPECT_EQ(t[1].extra()->quant->zero_points, (std::vector<std::int64_t>{3, 0}));
  EXPECT_EQ(t[2].elements()[1].elements().size(), 0u);
  EXPECT_EQ(t[3].extra()->encoding, "#foo.enc<{a = 1}>");
  EXPECT_EQ(t[4], Type::tensor(DType::kF32, {4}));
  EXPECT_EQ(t[5].extra()->bounds, Dims{4});
  EXPECT_TRUE(t[6].is_token());
  EXPECT_TRUE(t[7].is_ref());
  std::string text = print_stablehlo(m);
  EXPECT_EQ(parse_stablehlo(text).find("main")->graph->param_types(), t);
}

TEST(StablehloTextTest, ResourcesHoldConstants) {
  Module m = parse_stablehlo(R"(module {
  func.func @main() -> tensor<2xf32> {
    %0 = stablehlo.constant dense_resource<__elided__> : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
{-#
  dialect_resources: {
    builtin: {
      __elided__: "0x040000000000803F00000040"
    }
  }
#-}
)");
  EXPECT_EQ(main_of(m).ops[0].attrs.array("value").to_vector<float>(), (std::vector<float>{1, 2}));
}

TEST(StablehloTextTest, ErrorsOfFormStopAtTheirPlace) {
  EXPECT_THAT(error_in("  %0 = stablehlo.add %a, %nothing : tensor<2x3xf32>"),
              StartsWith("f.mlir:2:26: error: operand: values are defined before their use"));
  EXPECT_EQ(error_in("  %0 = \"foo.bar\"(%a) : (tensor<2x3xf32>) -> tensor<f32>"),
            "f.mlir:2:8: error: StableHLO text: foo.bar: ops are those of StableHLO and CHLO that "
            "the op table knows; this one is not in it. Legalise the program to such ops.");
  EXPECT_THAT(error_in("  %0 = foo.bar %a : tensor<f32>"), StartsWith("f.mlir:2:8: error: "));
  EXPECT_THAT(error_in("  %0 = xylem.stop_gradient %a : tensor<f32>"),
              StartsWith("f.mlir:2:8: error: "));
  EXPECT_THAT(error_in("  %0 = stablehlo.constant dense<[1, 2, 3]> : tensor<2xi32>"),
              HasSubstr("f.mlir:2:33: error: StableHLO text: dense: dimension 0 of i32[2] has 2 "
                        "elements; the list holds more"));
  EXPECT_THAT(error_in("  %0 = stablehlo.constant dense<\"0x00\"> : tensor<2xi32>"),
              HasSubstr("has 8 bytes; the string holds 1"));
  EXPECT_THAT(error_in("  %0 = stablehlo.constant dense<300> : tensor<i8>"),
              HasSubstr("2:33: error: StableHLO text: dense: values of i8 are in its range"));
  EXPECT_THAT(error_in("  %a = stablehlo.add %a, %a : tensor<2x3xf32>"),
              HasSubstr("2:3: error: value: a name is defined once where it is seen"));
  EXPECT_THAT(error_in("  %0:2 = stablehlo.add %a, %a : tensor<2x3xf32>"),
              HasSubstr("2:3: error: StableHLO text: stablehlo.add: 1 results have names; 2 are"));
  EXPECT_THAT(error_in("  %0 = stablehlo.add %a, %a : tensor<*f32>"),
              HasSubstr("2:39: error: StableHLO text: type: expected 'x' behind '*'"));
  EXPECT_THAT(error_in("  %0 = stablehlo.add %a, %a : tensor<9999999999999x9999999999xf32>"),
              HasSubstr("the size of a tensor fits 63 bits"));
  EXPECT_THAT(error_of("func.func @f(%a: tensor<f32>) { return }\nfunc.func @f() { return }"),
              HasSubstr("2:1: error: function: every function has a name"));
  EXPECT_THAT(error_of("#a = #b\n#b = #a\nmodule attributes {x = #a} {}"),
              HasSubstr("aliases do not refer to themselves"));
  EXPECT_THAT(error_of("module attributes {x = #c} {}"),
              HasSubstr("1:24: error: StableHLO text: alias: aliases are defined"));
}

TEST(StablehloTextTest, ErrorsOfMeaningAreAllReported) {
  std::string errors = error_in(
      "  %0 = stablehlo.add %a, %a : tensor<2x4xf32>\n"
      "  %1 = \"stablehlo.add\"(%a, %b) : (tensor<2x3xf32>, tensor<i32>) -> tensor<2x3xf32>\n"
      "  %2 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>\n"
      "  %3 = \"stablehlo.transpose\"(%a) <{permutation = 3 : i64}> : (tensor<2x3xf32>) -> "
      "tensor<3x2xf32>\n"
      "  %4 = call @nothing(%a) : (tensor<2x3xf32>) -> tensor<f32>\n"
      "  %5 = stablehlo.transpose %a, dims = [0, 0] : (tensor<2x3xf32>) -> tensor<2x2xf32>");
  EXPECT_THAT(errors, HasSubstr("f.mlir:2:22: error: stablehlo.add: operand 0 is tensor<2x3xf32>; "
                                "its written type is tensor<2x4xf32>"));
  EXPECT_THAT(errors, HasSubstr("\nf.mlir:3:8: error: stablehlo.add: "));
  EXPECT_THAT(errors, HasSubstr("[add_c1]\n"));
  EXPECT_THAT(errors, HasSubstr("f.mlir:4:8: error: stablehlo.transpose: the result types are "
                                "(tensor<3x2xf32>); the written ones are (tensor<2x3xf32>)"));
  EXPECT_THAT(errors,
              HasSubstr("f.mlir:5:8: error: stablehlo.transpose: attribute 'permutation' is "
                        "a list of integers; it is 3"));
  EXPECT_THAT(errors, HasSubstr("f.mlir:6:8: error: call @nothing: the callee is defined in the "
                                "module; there is no such function"));
  EXPECT_THAT(errors, HasSubstr("f.mlir:7:8: error: stablehlo.transpose: "));
  EXPECT_THAT(error_of("func.func @main(%a: tensor<f32>) -> tensor<i32> {\n  return %a : "
                       "tensor<f32>\n}"),
              HasSubstr("f.mlir:2:3: error: return: function @main returns (tensor<i32>); this "
                        "return has (tensor<f32>)"));
  EXPECT_THAT(error_of("func.func @main(%a: tensor<f32>) -> tensor<f32> {\n"
                       "  %0 = call @f(%a) : (tensor<f32>) -> tensor<f32>\n"
                       "  return %0 : tensor<f32>\n}\n"
                       "func.func private @f(%a: tensor<i32>) -> tensor<f32>\n"),
              HasSubstr("f.mlir:2:8: error: call @f: the arguments are (tensor<i32>); the call has "
                        "(tensor<f32>)"));
}

TEST(StablehloTextTest, ReadingGoesOnBehindErrorsOfForm) {
  EXPECT_EQ(error_of(R"(module {
  func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.add %a, %a : tensor<2xf33>
    %1 = stablehlo.add %0, %a : tensor<2xf32>
    %2 = stablehlo.transpose %1, dims = [1] : (tensor<2xf32>) -> tensor<2xf32>
    %3 = stablehlo.nothing %2 {
    } : tensor<2xf32>
    return %3 : tensor<2xf32>
  }
  func.func @g(%a: tensor<2xf32>) -> tensor<2xf3> {
    return %a : tensor<2xf3>
  }
  func.func @h(%a: tensor<2xf32>) -> tensor<2xf32> {
    %0 = call @g(%a) : (tensor<2xf32>) -> tensor<7xf32>
    return %none : tensor<2xf32>
  }
}
)"),
            "f.mlir:3:42: error: StableHLO text: element type: expected an element type of "
            "StableHLO; found 'f33'. Use i1, i8, ui8, f32, bf16, complex<f32>, ….\n"
            "f.mlir:5:10: error: stablehlo.transpose: permutation must lie in [0, 1); permutation "
            "= [1] has 1. Name existing dimensions, counted from 0. [transpose_c2]\n"
            "f.mlir:6:10: error: StableHLO text: stablehlo.nothing: ops are those of StableHLO and "
            "CHLO that the op table knows; this one is not in it. Legalise the program to such "
            "ops.\n"
            "f.mlir:10:47: error: StableHLO text: element type: expected an element type of "
            "StableHLO; found 'f3'. Use i1, i8, ui8, f32, bf16, complex<f32>, ….\n"
            "f.mlir:15:12: error: operand: values are defined before their use; %none is not. "
            "Define it above.");
}

TEST(StablehloTextTest, LinesCountFromTheFirstLineThatIsGiven) {
  try {
    parse_stablehlo("\nfunc.func @f(%a: tensor<f32>) {\n  return %b : tensor<f32>\n}", "f.mlir",
                    {.first_line = 40});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_THAT(e.message(), StartsWith("f.mlir:42:10: error: operand: "));
  }
}

TEST(StablehloTextTest, OpsOfUnknownDialectsAreCarriedWhenAllowed) {
  const char* text = R"(module {
  func.func public @main(%arg0: tensor<2xf32>, %arg1: !test.thing<[3, "x"]>) -> index {
    %0 = "test.op"(%arg0, %arg1) <{p = #test.attr<1>}> ({
    ^bb0(%arg2: vector<4xf32>):
      %1 = stablehlo.add %arg0, %arg0 : tensor<2xf32>
      "test.yield"(%1) : (tensor<2xf32>) -> ()
    }, {
      stablehlo.return %arg1 : !test.thing<[3, "x"]>
    }) {a.b = 1 : i32} : (tensor<2xf32>, !test.thing<[3, "x"]>) -> index
    return %0 : index
  }
}
)";
  EXPECT_THAT(error_of(text), HasSubstr("f.mlir:2:55: error: StableHLO text: type: "));
  Module m = parse_stablehlo(text, "f.mlir", {.allow_unregistered = true});
  EXPECT_EQ(print_stablehlo(m), text);
  EXPECT_TRUE(verify(main_of(m)).empty());
  EXPECT_EQ(main_of(m).ops[0].attrs.str("op"), "test.op");
  // Not in the pretty form, and not of a dialect whose ops we know.
  for (const char* op : {"test.op %a : tensor<2x3xf32>", "\"stablehlo.nothing\"() : () -> ()"}) {
    try {
      parse_stablehlo(std::string("func.func @f(%a: tensor<2x3xf32>) {\n ") + op + "\n return\n}",
                      "f.mlir", {.allow_unregistered = true});
      FAIL() << op;
    } catch (const UserError& e) {
      EXPECT_THAT(e.message(), StartsWith("f.mlir:2:2: error: "));
    }
  }
}

TEST(StablehloTextTest, TheGenericFormReadsBack) {
  for (const GraphPtr& g : testing::stablehlo_samples()) {
    std::string text = print_stablehlo(module_of(g), {.generic = true});
    Module back = parse_stablehlo(text, g->name);
    EXPECT_TRUE(structurally_equal(*g, main_of(back))) << text << print(main_of(back)) << print(*g);
    EXPECT_EQ(print_stablehlo(back, {.generic = true}), text);
  }
}

TEST(StablehloTextTest, LocationsAreWrittenAsTheyWereGiven) {
  const char* text = R"(module @m {
  func.func public @main(%arg0: tensor<f32> loc("x")) -> tensor<f32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<f32> loc(callsite("f"("x.py":10:2 to :14) at "y.py":3:1))
    %1 = "stablehlo.case"(%c) ({
      stablehlo.return %0 : tensor<f32> loc(unknown)
    }) : (tensor<i32>) -> tensor<f32>
    return %1 : tensor<f32> loc(fused<"m">[unknown, "z.py":7:8])
  } loc("f.py":1:1)
} loc(unknown)
)";
  std::string with_constant = text;
  with_constant.insert(with_constant.find("    %1 ="),
                       "    %c = stablehlo.constant dense<0> : tensor<i32> loc(\"c\")\n");
  Module m = parse_stablehlo(with_constant);
  EXPECT_EQ(print_stablehlo(m, {.locations = true}), with_constant);
  EXPECT_EQ(print_stablehlo(m).find("loc("), std::string::npos);
}

TEST(StablehloTextTest, DeclarationsAndNestedModulesAreKept) {
  const char* text = R"(module {
  func.func private @g(tensor<f32> {a.b = 1 : i32}) -> (tensor<i32>, tensor<f32>) attributes {c.d}
  func.func public @main(%arg0: tensor<f32>) -> tensor<i32> {
    %0:2 = call @g(%arg0) : (tensor<f32>) -> (tensor<i32>, tensor<f32>)
    return %0#0 : tensor<i32>
  }
  module @inner attributes {a = 1 : i64} {
    func.func private @g() {
      return
    }
  }
}
)";
  EXPECT_EQ(print_stablehlo(parse_stablehlo(text)), text);
  Module m = parse_stablehlo(print_stablehlo(parse_stablehlo(text), {.generic = true}));
  EXPECT_EQ(print_stablehlo(m), text);
}

TEST(StablehloTextTest, DenseTextIsDecimal) {
  HostArray a = HostArray::from(std::vector<float>(200, 0.5f), {200});
  EXPECT_EQ(print_dense(a, Type::tensor(DType::kF32, {200})),
            "dense<5.000000e-01> : tensor<200xf32>");
  a.as<float>()[3] = 2;
  std::string text = print_dense(a, Type::tensor(DType::kF32, {200}));
  EXPECT_EQ(text.find('"'), std::string::npos);
  EXPECT_THAT(text, StartsWith("dense<[5.000000e-01, 5.0"));
}

TEST(StablehloTextTest, ErrorsOfMeaningBeforeAnErrorOfFormAreReportedToo) {
  EXPECT_THAT(error_in("  %0 = stablehlo.add %a, %a : tensor<2x4xf32>\n  %1 = foo.bar"),
              ::testing::AllOf(StartsWith("f.mlir:2:22: error: stablehlo.add: "),
                               HasSubstr("\nf.mlir:3:8: error: StableHLO text: foo.bar: ")));
}

TEST(StablehloTextTest, RecursionIsRefused) {
  std::string f =
      "func.func @f(%a: tensor<f32>) -> tensor<f32> {\n  %0 = call @g(%a) : "
      "(tensor<f32>) -> tensor<f32>\n  return %0 : tensor<f32>\n}\n";
  std::string g =
      "func.func @g(%a: tensor<f32>) -> tensor<f32> {\n  %0 = call @f(%a) : "
      "(tensor<f32>) -> tensor<f32>\n  return %0 : tensor<f32>\n}\n";
  EXPECT_THAT(error_of(f + g), HasSubstr("functions do not call themselves"));
  // A long chain of calls would nest as deep as it is long.
  std::string chain;
  for (int i = 0; i < 5000; ++i)
    chain += "func.func @f" + std::to_string(i) +
             "(%a: tensor<f32>) -> tensor<f32> {\n  %0 = call @f" + std::to_string(i + 1) +
             "(%a) : (tensor<f32>) -> tensor<f32>\n  return %0 : tensor<f32>\n}\n";
  chain += "func.func @f5000(%a: tensor<f32>) -> tensor<f32> {\n  return %a : tensor<f32>\n}\n";
  EXPECT_THAT(error_of(chain), HasSubstr("nest at most 200 deep"));
}

TEST(StablehloTextTest, RefusesWhatWouldExhaustStackOrMemory) {
  std::string deep = "func.func @f(%p: tensor<i1>) {\n";
  for (int i = 0; i < 20000; ++i) deep += "\"stablehlo.if\"(%p) ({\n";
  EXPECT_THAT(error_of(deep), HasSubstr("at most 200 levels"));
  EXPECT_THAT(error_of("module attributes {a = " + std::string(100000, '[')),
              HasSubstr("at most 200 levels"));
  EXPECT_THAT(
      error_in("  %0 = \"stablehlo.add\"(%a, %a) {x = dense<0> : tensor<1000000x1000000xi8>} "
               ": (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>"),
      HasSubstr("repeated values of a text take at most"));
  EXPECT_THAT(error_in("  %0 = stablehlo.constant dense<[0]> : tensor<1000000000000xi8>"),
              HasSubstr("the list holds fewer"));
  std::string rank = "tensor<";
  for (int i = 0; i < 5000; ++i) rank += "1x";
  EXPECT_THAT(error_in("  %0 = stablehlo.constant dense<" + std::string(5000, '[') + "1" +
                       std::string(5000, ']') + "> : " + rank + "i8>"),
              HasSubstr("at most 200 levels"));
  // A chain of locations as deep as a stack trace may be is no error.
  std::string text = "func.func @f() {\n  return loc(#loc4999)\n}\n#loc0 = loc(\"f.py\":1:1)\n";
  for (int i = 1; i < 5000; ++i)
    text += "#loc" + std::to_string(i) + " = loc(callsite(#loc" + std::to_string(i - 1) +
            " at unknown))\n";
  EXPECT_EQ(error_of(text), "no error");
}

TEST(StablehloTextTest, LargeRepeatedConstantsAreReadAsBroadcasts) {
  const std::string type = "tensor<1000000x1000000xi8>";
  for (std::string op :
       {"stablehlo.constant dense<7> : " + type,
        "\"stablehlo.constant\"() <{value = dense<7> : " + type + "}> : () -> " + type}) {
    Module m = parse_stablehlo("func.func @main() -> " + type + " {\n  %0 = " + op +
                               "\n  return %0 : " + type + "\n}");
    const Graph& g = main_of(m);
    ASSERT_EQ(g.ops.size(), 2u);
    EXPECT_EQ(g.ops[0].attrs.array("value").at(0), 7);
    EXPECT_EQ(g.ops[1].def->name, "stablehlo.broadcast_in_dim");
    EXPECT_EQ(g.result_types()[0], Type::tensor(DType::kI8, {1000000, 1000000}));
    EXPECT_TRUE(verify(g).empty());
  }
  EXPECT_THAT(
      error_of("func.func @main() {\n  %0 = \"stablehlo.constant\"() <{value = dense<7> : " + type +
               "}> : () -> tensor<i8>\n  return\n}"),
      HasSubstr("f.mlir:2:8: error: stablehlo.constant: the result types are (" + type));
}

// Each on the line where MLIR tells it.
TEST(StablehloTextTest, MissingTokensAreToldBehindTheLastOne) {
  EXPECT_THAT(error_in("  %0 = stablehlo.abs %a // no type\n  // here\n"),
              StartsWith("f.mlir:2:24: error: StableHLO text: stablehlo.abs: expected ':'"));
  EXPECT_THAT(error_of("func.func @f() {\n  return\n  return\n}"),
              StartsWith("f.mlir:2:3: error: return: it is the last op of its block"));
  EXPECT_THAT(error_of("func.func @f(%a: tensor<f32>) {\n  %0 = stablehlo.abs %a : tensor<f32>\n}"),
              StartsWith("f.mlir:2:8: error: region: the last op is return"));
}

TEST(StablehloTextTest, StructuresAreCheckedWhereverTheyStand) {
  auto in_module = [](std::string_view attr) {
    return error_of("module attributes {\n  a = #stablehlo" + std::string(attr) + "\n} {}");
  };
  EXPECT_EQ(in_module(".gather<offset_dims = [0],\n index_vector_dim = 1,>"), "no error");
  EXPECT_EQ(in_module(".conv<[b, 0, f]x[0, i, o]->[b, 0, f]>"), "no error");
  EXPECT_THAT(in_module(".gather<offset_dims = [0],\n offset_dims = [0]>"),
              HasSubstr("3:2: error: StableHLO text: gather: every field stands once"));
  EXPECT_THAT(in_module(".dot<foo = [0]>"),
              HasSubstr("2:22: error: StableHLO text: dot: its fields"));
  EXPECT_THAT(in_module(".dot<lhs_batching_dimensions = [0]\n rhs_batching_dimensions = [0]>"),
              HasSubstr("2:51: error: StableHLO text: dot: expected ','"));
  EXPECT_THAT(in_module(".channel_handle<handle = 1>"), HasSubstr("field 'type' is required"));
  EXPECT_THAT(in_module("<precision FASTEST>"), HasSubstr("its members are DEFAULT HIGH HIGHEST"));
  EXPECT_THAT(
      in_module(".result_accuracy<ulps = 1, mode = #stablehlo.result_accuracy_mode<HIGHEST>>"),
      HasSubstr("mode HIGHEST has no tolerances"));
  EXPECT_THAT(
      in_module(".result_accuracy<ulps = -1, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>"),
      HasSubstr("tolerances are not negative"));
  auto algorithm = [&](std::string_view types, std::string_view counts) {
    return in_module(".dot_algorithm<lhs_precision_type = " + std::string(types) + ", " +
                     std::string(counts) + ", allow_imprecise_accumulation = false>");
  };
  std::string f32 = "f32, rhs_precision_type = f32, accumulation_type = f32";
  auto counts = [](int lhs, int rhs, int products) {
    return "lhs_component_count = " + std::to_string(lhs) +
           ", rhs_component_count = " + std::to_string(rhs) +
           ", num_primitive_operations = " + std::to_string(products);
  };
  EXPECT_EQ(algorithm(f32, counts(1, 1, 1)), "no error");
  EXPECT_THAT(algorithm(f32, counts(0, 1, 1)), HasSubstr("[dot_general_c22]"));
  EXPECT_THAT(algorithm(f32, counts(1, 0, 1)), HasSubstr("[dot_general_c23]"));
  EXPECT_THAT(algorithm(f32, counts(1, 1, 0)), HasSubstr("[dot_general_c24]"));
  EXPECT_THAT(algorithm(f32, counts(1, 1, 3)), HasSubstr("some hardware has the algorithm"));
}

TEST(StablehloTextTest, OpsAndTypesThatStablehloLacksAreNotWritten) {
  for (const GraphPtr& g : testing::sample_graphs()) {
    std::string want = g->name == "scan"    ? "function @main: the ops are those of StableHLO and "
                                              "CHLO; found xylem.scan"
                       : g->name == "types" ? "the types are those of StableHLO; found key<fry>[2]"
                                            : "";
    if (want.empty()) continue;
    try {
      print_stablehlo(module_of(g));
      FAIL();
    } catch (const UserError& e) {
      EXPECT_THAT(e.message(), HasSubstr(want));
    }
  }
}

// Whatever the text, reading ends in a module or a UserError with a place.
void read_anything(const std::string& text) {
  try {
    parse_stablehlo(text, "f.mlir");
  } catch (const UserError& e) {
    EXPECT_THAT(e.message(), StartsWith("f.mlir:"));
  }
}

TEST(StablehloTextTest, TruncationsEndInErrors) {
  for (const GraphPtr& g : testing::stablehlo_samples()) {
    std::string text = print_stablehlo(module_of(g));
    for (std::size_t n = 0; n < text.size(); n += g->name.starts_with("elementwise") ? 17 : 3)
      read_anything(text.substr(0, n));
  }
}

TEST(StablehloTextTest, FlippedBytesEndInErrorsOrModules) {
  std::mt19937_64 random(20240807);
  for (const GraphPtr& g : testing::stablehlo_samples()) {
    std::string text = print_stablehlo(module_of(g));
    for (int i = 0; i < 100; ++i) {
      std::string damaged = text;
      for (std::uint64_t k = random() % 3 + 1; k > 0; --k)
        damaged[random() % damaged.size()] ^= static_cast<char>(1u << random() % 8);
      read_anything(damaged);
    }
  }
}

}  // namespace
}  // namespace xylem::ir
