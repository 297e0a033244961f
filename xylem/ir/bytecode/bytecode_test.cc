#include "xylem/ir/bytecode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/ir/bytecode/op_forms.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/testing/text_samples.h"
#include "xylem/ir/text.h"
#include "xylem/ir/verify.h"

namespace xylem::ir {
namespace {

using ::testing::HasSubstr;

std::string data(const std::string& name) {
  return read_file(XYLEM_SOURCE_DIR "/xylem/ir/bytecode/testdata/" + name);
}

std::vector<Version> all_versions() {
  std::vector<Version> v;
  for (int minor = 9; minor <= 20; ++minor) v.push_back({0, minor, 0});
  for (int minor = 0; minor <= 20; ++minor) v.push_back({1, minor, 0});
  return v;
}

std::string refusal(const Module& m, Version target) {
  try {
    write_artifact(m, target);
  } catch (const UserError& e) {
    return e.message();
  }
  return "";
}

std::string reading_error(std::string_view bytes) {
  try {
    read_bytecode(bytes, "x.bc");
  } catch (const UserError& e) {
    return e.message();
  }
  return "";
}

TEST(VersionTest, VersionsHaveThreeNumbers) {
  EXPECT_EQ(Version::parse("1.17.0"), (Version{1, 17, 0}));
  EXPECT_EQ(Version::parse("0.9.3")->to_string(), "0.9.3");
  for (const char* bad : {"", "1", "1.17", "1.17.", "1.17.0 ", "1.17.0.1", "v1.17.0", "1.-1.0",
                          "1..0", "99999999999.0.0"})
    EXPECT_EQ(Version::parse(bad), std::nullopt) << bad;
  EXPECT_LT((Version{0, 20, 0}), (Version{1, 0, 0}));
}

TEST(BytecodeTest, ArtifactsOfEveryFormatReadAsTheirText) {
  std::string want = print_stablehlo(parse_stablehlo(data("control.mlir")));
  for (const char* name : {"control.0.9.0.bc", "control.0.10.0.bc", "control.0.12.0.bc",
                           "control.0.14.0.bc", "control.1.17.0.bc", "control.plain.bc"})
    EXPECT_EQ(print_stablehlo(read_bytecode(data(name), name)), want) << name;
}

TEST(BytecodeTest, ShardyStandsBesideVhlo) {
  std::string want = print_stablehlo(parse_stablehlo(data("mixed.mlir")));
  EXPECT_EQ(print_stablehlo(read_bytecode(data("mixed.bc"))), want);
  EXPECT_EQ(print_stablehlo(read_bytecode(data("mixed.plain.bc"))), want);
  Module m = parse_stablehlo(data("mixed.mlir"));
  EXPECT_EQ(print_stablehlo(read_bytecode(write_artifact(m, {1, 17, 0}))), want);
  EXPECT_EQ(minimum_version(m).version, (Version{1, 11, 0}));
  EXPECT_THAT(refusal(m, {1, 10, 0}), HasSubstr("sdy.mesh exists from 1.11.0"));
}

TEST(BytecodeTest, TheModuleInsideOfAJaxExportIsRead) {
  std::string bytes = data("control.export");
  EXPECT_TRUE(is_jax_export(bytes));
  EXPECT_EQ(print_stablehlo(read_bytecode(bytes)),
            print_stablehlo(parse_stablehlo(data("control.export.mlir"))));
  for (const char* other : {"control.mlir", "control.1.17.0.bc"})
    EXPECT_FALSE(is_jax_export(data(other))) << other;
  // Cut inside the module it is refused, or no envelope any more.
  for (std::size_t n = 0; n < bytes.size() / 2; n += 7) {
    std::string_view cut = std::string_view(bytes).substr(0, n);
    if (is_jax_export(cut)) {
      EXPECT_THROW(read_bytecode(cut), UserError) << n;
    }
  }
}

TEST(BytecodeTest, LocationsAreKeptBothWays) {
  PrintOptions options;
  options.locations = true;
  Module m = read_bytecode(data("control.1.17.0.bc"));
  std::string want = print_stablehlo(m, options);
  EXPECT_THAT(want, HasSubstr("loc(\"scatter-add:\"(\"scatter-add\""));
  EXPECT_EQ(print_stablehlo(read_bytecode(write_artifact(m, {1, 17, 0})), options), want);
  EXPECT_EQ(print_stablehlo(read_bytecode(write_artifact(m, {1, 9, 0})), options), want);
  ArtifactOptions strip;
  strip.strip_debug = true;
  EXPECT_EQ(print_stablehlo(read_bytecode(write_artifact(m, {1, 17, 0}, strip)), options),
            print_stablehlo(m));
}

TEST(BytecodeTest, RangesOfLinesAreNarrowedForOlderReaders) {
  Module m = parse_stablehlo(
      "func.func @main(%a: tensor<f32>) -> tensor<f32> {\n"
      "  %0 = stablehlo.add %a, %a : tensor<f32> loc(\"f.py\":1:2 to :5)\n"
      "  return %0 : tensor<f32>\n}");
  PrintOptions options;
  options.locations = true;
  auto printed = [&](Version v) {
    return print_stablehlo(read_bytecode(write_artifact(m, v)), options);
  };
  EXPECT_THAT(printed({1, 9, 0}), HasSubstr("loc(\"f.py\":1:2 to :5)"));
  EXPECT_THAT(printed({1, 8, 0}), HasSubstr("loc(\"f.py\":1:2)"));
}

TEST(BytecodeTest, NoLocationsAreAdded) {
  Module m = parse_stablehlo(
      "func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }");
  PrintOptions options;
  options.locations = true;
  EXPECT_THAT(print_stablehlo(read_bytecode(write_artifact(m, {1, 17, 0})), options),
              ::testing::Not(HasSubstr("loc(")));
}

TEST(BytecodeTest, SamplesOfEveryOpComeBackFromEveryVersion) {
  int programs = 0, artifacts = 0;
  for (const GraphPtr& g : testing::stablehlo_samples()) {
    Module m;
    m.functions.push_back({"main", false, g});
    std::string text = print_stablehlo(m);
    m = parse_stablehlo(text);
    // CHLO ops come back as their decompositions.
    if (text.find("chlo.") != std::string::npos) continue;
    // Artifacts do not hold the dialects of tests.
    if (text.find("check.") != std::string::npos || text.find("interpreter.") != std::string::npos)
      continue;
    // Attributes that say what their absence says are left out.
    std::string want = print_stablehlo(read_bytecode(write_artifact(m, kCurrentVersion)));
    EXPECT_LE(want.size(), text.size());
    EXPECT_EQ(
        print_stablehlo(read_bytecode(write_artifact(parse_stablehlo(want), kCurrentVersion))),
        want);
    VersionNeed need = minimum_version(m);
    ++programs;
    for (Version v : all_versions()) {
      if (v < need.version) {
        EXPECT_THAT(refusal(m, v), HasSubstr(need.version.to_string())) << text;
        continue;
      }
      std::string bytes = write_artifact(m, v);
      EXPECT_EQ(read_bytecode_header(bytes).producer, "StableHLO_v" + v.to_string());
      EXPECT_EQ(print_stablehlo(read_bytecode(bytes)), want) << v.to_string();
      ++artifacts;
    }
  }
  EXPECT_GT(programs, 50);
  EXPECT_GT(artifacts, 1000);
}

TEST(BytecodeTest, WritingIsDeterministic) {
  Module m = read_bytecode(data("control.1.17.0.bc"));
  std::string once = write_artifact(m, {1, 17, 0});
  EXPECT_EQ(write_artifact(m, {1, 17, 0}), once);
  EXPECT_EQ(write_artifact(read_bytecode(once), {1, 17, 0}), once);
}

TEST(BytecodeTest, WhatAVersionLacksIsRefusedByNameAndPlace) {
  auto module = [](const std::string& line) {
    return parse_stablehlo("func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n" + line +
                               "\n  return %0 : tensor<2xf32>\n}",
                           "f.mlir");
  };
  Module tan = module("  %0 = stablehlo.tan %a : tensor<2xf32>");
  EXPECT_EQ(refusal(tan, {1, 3, 0}),
            "f.mlir:2:8: error: stablehlo.tan: it exists from 1.4.0; the target is 1.3.0. Write "
            "version 1.4.0 or later.");
  EXPECT_EQ(minimum_version(tan).reason, "stablehlo.tan exists from 1.4.0");
  Module accurate = module(
      "  %0 = stablehlo.exponential %a {result_accuracy = #stablehlo.result_accuracy<mode = "
      "#stablehlo.result_accuracy_mode<HIGHEST>>} : tensor<2xf32>");
  EXPECT_THAT(
      refusal(accurate, {1, 8, 0}),
      HasSubstr("stablehlo.exponential: the attribute 'result_accuracy' exists from 1.9.0"));
  EXPECT_EQ(print_stablehlo(read_bytecode(write_artifact(accurate, {1, 9, 0}))),
            print_stablehlo(accurate));
  // All of them are told.
  Module two =
      module("  %1 = stablehlo.tan %a : tensor<2xf32>\n  %0 = stablehlo.tan %1 : tensor<2xf32>");
  std::string message = refusal(two, {0, 9, 0});
  EXPECT_THAT(message, HasSubstr("f.mlir:2:8"));
  EXPECT_THAT(message, HasSubstr("f.mlir:3:8"));
}

TEST(BytecodeTest, VersionsOutsideOfTheWindowAreRefused) {
  Module m = read_bytecode(data("control.1.17.0.bc"));
  for (Version v : {Version{0, 8, 0}, Version{1, 21, 0}, Version{2, 0, 0}})
    EXPECT_THAT(refusal(m, v), HasSubstr("a target version from 0.9.0 to 1.20.0")) << v.to_string();
  // Patches are text.
  EXPECT_EQ(read_bytecode_header(write_artifact(m, {1, 13, 7})).producer, "StableHLO_v1.13.7");
}

TEST(BytecodeTest, ConstantsKeepTheirBits) {
  const char* text =
      "module {\n"
      "  func.func public @main() -> tensor<i1> {\n"
      "    %c = stablehlo.constant {a.s = dense<true> : tensor<9xi1>, a.t = dense<[true, false, "
      "true, true, false, false, true, true, true, true]> : tensor<10xi1>, a.u = dense<[1, -2]> : "
      "tensor<2xi4>, a.v = dense<(1.0, -0.0)> : tensor<3xcomplex<f32>>, a.w = dense<0x7FC00001> : "
      "tensor<f32>, a.x = dense<> : tensor<0x3xf64>, a.y = 3 : ui8, a.z = -1.5 : bf16} "
      "dense<true> : tensor<i1>\n"
      "    return %c : tensor<i1>\n  }\n}\n";
  Module m = parse_stablehlo(text);
  for (Version v : {Version{0, 9, 0}, Version{1, 17, 0}})
    EXPECT_EQ(print_stablehlo(read_bytecode(write_artifact(m, v))), print_stablehlo(m));
}

TEST(BytecodeTest, OtherBytesAreRefused) {
  EXPECT_THAT(reading_error(""), HasSubstr("x.bc:1:1: error: bytecode: the file starts with"));
  EXPECT_THAT(reading_error("module {}"), HasSubstr("it does not"));
  EXPECT_THAT(reading_error("ML\xEFR\x0F"), HasSubstr("a format version of at most 6"));
}

// Ops of the table that need no form: what the text has in another way.
TEST(OpFormsTest, EveryOpOfTheTableHasAForm) {
  for (const OpDef* def : op_table()) {
    bool stablehlo = def->name.starts_with("stablehlo.");
    if (!stablehlo && !def->name.starts_with("chlo.")) continue;
    EXPECT_EQ(bytecode::find_form(def->name) != nullptr, stablehlo) << def->name;
    EXPECT_NE(bytecode::plain_attrs(def->name), nullptr) << def->name;
  }
  for (const char* op : {"func.func", "func.call", "func.return", "stablehlo.return"})
    EXPECT_NE(bytecode::plain_attrs(op), nullptr) << op;
}

TEST(OpFormsTest, EveryAttributeOfTheTableHasAForm) {
  for (const OpDef* def : op_table()) {
    const bytecode::OpForm* form = bytecode::find_form(def->name);
    if (!form) continue;
    for (const AttrDef& a : def->attrs) {
      if (a.name == "shape" || a.name == "result_dtype" || a.name == "num_captures" ||
          a.name == "result_types")
        continue;
      bool known = false;
      for (const bytecode::AttrForm& f : form->attrs)
        known = known || f.name == a.name || f.structure == a.name;
      EXPECT_TRUE(known) << def->name << " " << a.name;
    }
  }
}

}  // namespace
}  // namespace xylem::ir
