#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "xylem/base/error.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/testing/text_samples.h"
#include "xylem/ir/text.h"
#include "xylem/ir/verify.h"

namespace xylem::ir {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string error_of(std::string_view text) {
  try {
    parse_graph(text, "f.xir");
  } catch (const UserError& e) {
    return e.message();
  }
  return "no error";
}

TEST(SamplesTest, UseEveryOpOfTheTable) {
  std::vector<std::string> used;
  for (const GraphPtr& g : testing::sample_graphs()) testing::collect_ops(*g, used);
  std::set<std::string> set(used.begin(), used.end());
  for (const OpDef* op : op_table())
    EXPECT_TRUE(set.contains(std::string(op->name)))
        << op->name << " has no sample graph: add one to xylem/ir/testing/text_samples.cc";
}

TEST(SamplesTest, AreValid) {
  for (const GraphPtr& g : testing::sample_graphs()) {
    std::vector<Diagnostic> d = verify(*g);
    EXPECT_TRUE(d.empty()) << g->name << ": " << (d.empty() ? "" : d[0].message);
  }
}

TEST(NativeTextTest, ReadsBackWhatItPrints) {
  for (const GraphPtr& g : testing::sample_graphs()) {
    for (bool locations : {false, true}) {
      std::string text = print(*g, locations);
      GraphPtr back = parse_graph(text, g->name);
      EXPECT_TRUE(structurally_equal(*g, *back)) << text;
      EXPECT_EQ(print(*back, locations), text);
      EXPECT_EQ(back->name, g->name);
      EXPECT_EQ(back->attrs, g->attrs);
      EXPECT_EQ(back->param_attrs, g->param_attrs);
      EXPECT_EQ(back->result_attrs, g->result_attrs);
    }
  }
}

TEST(NativeTextTest, KeepsLocationsAndShardings) {
  for (const GraphPtr& g : testing::sample_graphs()) {
    if (g->name == "located") {
      GraphPtr back = parse_graph(print(*g, true));
      const Location& l = back->ops[0].loc;
      EXPECT_STREQ(l.source.file, "model.cc");
      EXPECT_EQ(l.source.line, 12);
      EXPECT_EQ(l.source.column, 7);
      EXPECT_STREQ(l.source.function, "forward");
      EXPECT_EQ(l.path, "decoder.layers[3]");
      EXPECT_EQ(back->ops[2].loc.path, "head");
      EXPECT_FALSE(parse_graph(print(*g, false))->ops[0].loc.source.known());
    }
    if (g->name == "attributes") {
      EXPECT_EQ(*parse_graph(print(*g))->value(1).sharding, "{replicated}");
    }
  }
}

TEST(NativeTextTest, ReadsModulesWithFunctionsAndDeclarations) {
  std::string text =
      "module @m attributes {a = 1} {\n"
      "  graph @main(%0: f32[]) -> (f32[]) {\n    return %0\n  }\n"
      "  private graph @f() -> () {\n    return\n  }\n"
      "  private declare @\"g h\"\n"
      "}\n";
  Module m = parse_module(text);
  EXPECT_EQ(print(m), text);
  EXPECT_EQ(m.name, "m");
  ASSERT_EQ(m.functions.size(), 3u);
  EXPECT_TRUE(m.functions[1].is_private);
  EXPECT_EQ(m.functions[2].graph, nullptr);
  EXPECT_EQ(m.find("g h"), &m.functions[2]);
}

TEST(NativeTextTest, PrintsAttributesThatReadBack) {
  EXPECT_EQ(Attr(1).to_string(), "1");
  EXPECT_EQ(Attr(1.0).to_string(), "1.0");
  EXPECT_EQ(Attr(0.1).to_string(), "0.1");
  EXPECT_EQ(Attr(1e100).to_string(), "1e+100");
  EXPECT_EQ(Attr("a\"\n").to_string(), "\"a\\22\\0A\"");
  EXPECT_EQ(Attr(Dims{1, kDynamic}).to_string(), "[1, ?]");
  EXPECT_EQ(Attr(EnumAttr("LT")).to_string(), "#LT");
  EXPECT_EQ(Attr(HostArray::scalar(1.5f)).to_string(), "dense f32[] 1.5");
  for (const GraphPtr& g : testing::sample_graphs()) {
    for (const Value& v : g->values) EXPECT_EQ(parse_type(v.type.to_string()), v.type);
    for (const Op& op : g->ops)
      for (const auto& [name, value] : op.attrs.entries())
        EXPECT_EQ(parse_attr(value.to_string()), value) << value.to_string();
  }
}

TEST(NativeTextTest, ErrorsNamePlaceAndParts) {
  EXPECT_EQ(error_of("graph @f(%0: f32[2]) -> (f32[2]) {\n  %1 = stablehlo.nothing(%0) : f32[2]\n"),
            "f.xir:2:8: error: native text: op: ops are those of the op table; "
            "'stablehlo.nothing' is not. Check the name, dialect included.");
  EXPECT_THAT(error_of("graph(%0: f32[2]) -> (f32[2]) {\n  return %7\n}"),
              StartsWith("f.xir:2:10: error: native text: value: values are defined before"));
  EXPECT_THAT(error_of("graph(%0: f32[2], %0: f32[]) -> () { return }"),
              HasSubstr("1:19: error: native text: value: every value is defined once"));
  EXPECT_THAT(error_of("graph(%0: f33[2]) -> () { return }"),
              HasSubstr("1:11: error: native text: element type"));
  EXPECT_THAT(error_of("graph(%0: f32[2]) -> (f32[3]) { return %0 }"),
              HasSubstr("result 0 of the graph is f32[3]; %0 is f32[2]"));
  EXPECT_THAT(error_of("graph() -> () { return"), HasSubstr("expected '}'; found end of text"));
  EXPECT_THAT(error_of("graph() -> () attributes {a = dense f32[2] [1]} { return }"),
              HasSubstr("f32[2] has 2 elements; the list holds 1"));
  EXPECT_THAT(error_of("graph() -> () attributes {a = dense i8[1] [200]} { return }"),
              HasSubstr("values of i8 are in its range; found '200'"));
  EXPECT_THAT(error_of("graph() -> () attributes {a = 99999999999999999999} { return }"),
              HasSubstr("integers fit 64 bits"));
}

TEST(NativeTextTest, RefusesAliasesWhoseFieldsHaveOtherTypes) {
  int tried = 0;
  for (const GraphPtr& g : testing::sample_graphs()) {
    const std::string text = print(*g);
    for (const auto& [field, expected] :
         {std::pair{"operand_index = ", "operand_index is an integer"},
          std::pair{"output_tuple_indices = ", "output_tuple_indices is a list of integers"}}) {
      const std::size_t at = text.find(field);
      if (at == std::string::npos) continue;
      const std::size_t value = at + std::string_view(field).size();
      const std::size_t end = text.find_first_of(",}", value);
      std::string other = text;
      other.replace(value, end - value, "\"x\"");
      const std::vector<Diagnostic> d = verify(*parse_graph(other));
      EXPECT_THAT(d.empty() ? "no error" : d[0].message, HasSubstr(expected)) << other;
      ++tried;
    }
  }
  EXPECT_GT(tried, 1);
}

TEST(NativeTextTest, RefusesWhatWouldExhaustStackOrMemory) {
  std::string deep = "graph() -> () attributes {a = ";
  for (int i = 0; i < 100000; ++i) deep += "list[";
  EXPECT_THAT(error_of(deep), HasSubstr("at most 200 levels"));
  std::string type(100000, '(');
  EXPECT_THAT(error_of("graph(%0: " + type), HasSubstr("at most 200 levels"));
  EXPECT_THAT(error_of("graph() -> () attributes {a = dense f32[1000000,1000000] 0} { return }"),
              HasSubstr("repeated values of a text take at most"));
  EXPECT_THAT(
      error_of("graph() -> () attributes {a = dense f32[9000000000000000000,9] 0} { return }"),
      HasSubstr("its size fits 63 bits"));
  EXPECT_THAT(error_of("graph() -> () attributes {a = dense f32[9000000000,9] [1]} { return }"),
              HasSubstr("the list holds 1"));
}

// Whatever the text, reading ends in a graph or a UserError.
void read_anything(const std::string& text) {
  try {
    parse_graph(text);
  } catch (const UserError& e) {
    EXPECT_THAT(e.message(), HasSubstr("error: native text: "));
  }
}

TEST(NativeTextTest, TruncationsEndInErrors) {
  for (const GraphPtr& g : testing::sample_graphs()) {
    std::string text = print(*g, true);
    if (text.size() > 3000) text.resize(3000);
    for (std::size_t n = 0; n < text.size(); ++n) read_anything(text.substr(0, n));
  }
}

TEST(NativeTextTest, FlippedBytesEndInErrorsOrGraphs) {
  std::mt19937_64 random(20240807);
  for (const GraphPtr& g : testing::sample_graphs()) {
    std::string text = print(*g, true);
    for (int i = 0; i < 200; ++i) {
      std::string damaged = text;
      for (std::uint64_t k = random() % 3 + 1; k > 0; --k)
        damaged[random() % damaged.size()] ^= static_cast<char>(1u << random() % 8);
      read_anything(damaged);
    }
  }
}

TEST(EncodingTest, DecodesToAnEqualGraph) {
  for (const GraphPtr& g : testing::sample_graphs()) {
    std::string bytes = encode(*g);
    GraphPtr back = decode(bytes);
    EXPECT_TRUE(structurally_equal(*g, *back)) << g->name;
    EXPECT_EQ(encode(*back), bytes) << g->name;
  }
}

TEST(EncodingTest, EqualGraphsHaveEqualBytesWhateverNamesLocationsAndNumbers) {
  GraphPtr a = parse_graph(
      "graph @a(%x: f32[], %y: f32[]) -> (f32[]) {\n"
      "  %s = stablehlo.add(%x, %y) : f32[] loc(\"a.cc\":1)\n  return %s\n}");
  Graph b = *parse_graph(
      "graph @b(%0: f32[], %1: f32[]) -> (f32[]) {\n"
      "  %2 = stablehlo.add(%0, %1) : f32[]\n  return %2\n}");
  EXPECT_EQ(encode(*a), encode(b));
  // The same graph with other value numbers.
  Graph c = b;
  std::swap(c.values[0], c.values[2]);
  auto swap = [](ValueId& v) { v = v == 0 ? 2 : v == 2 ? 0 : v; };
  for (ValueId& v : c.params) swap(v);
  for (ValueId& v : c.ops[0].operands) swap(v);
  for (ValueId& v : c.ops[0].results) swap(v);
  for (ValueId& v : c.results) swap(v);
  EXPECT_TRUE(verify(c).empty());
  EXPECT_TRUE(structurally_equal(b, c));
  EXPECT_EQ(encode(b), encode(c));
  std::swap(c.ops[0].operands[0], c.ops[0].operands[1]);
  EXPECT_NE(encode(b), encode(c));
}

TEST(EncodingTest, SharedRegionsAreEncodedOnceAndLikeCopies) {
  GraphPtr body = parse_graph("graph(%0: f32[]) -> (f32[]) {\n  return %0\n}");
  auto call_twice = [](GraphPtr first, GraphPtr second) {
    Graph g = *parse_graph(
        "graph(%0: f32[]) -> (f32[]) {\n"
        "  %1 = xylem.call(%0) [ graph(%0: f32[]) -> (f32[]) { return %0 } ] : f32[]\n"
        "  %2 = xylem.call(%1) [ graph(%0: f32[]) -> (f32[]) { return %0 } ] : f32[]\n"
        "  return %2\n}");
    g.ops[0].regions[0] = std::move(first);
    g.ops[1].regions[0] = std::move(second);
    return std::make_shared<const Graph>(std::move(g));
  };
  GraphPtr shared = call_twice(body, body);
  GraphPtr copied = call_twice(body, std::make_shared<const Graph>(*body));
  EXPECT_EQ(encode(*shared), encode(*copied));
  // Doubling at every level would be 2^60 graphs if copies were written out.
  GraphPtr g = body;
  for (int i = 0; i < 60; ++i) g = call_twice(g, g);
  std::string bytes = encode(*g);
  EXPECT_LT(bytes.size(), 4000u);
  EXPECT_EQ(encode(*decode(bytes)), bytes);
}

TEST(EncodingTest, DamagedBytesEndInErrors) {
  std::mt19937_64 random(7);
  for (const GraphPtr& g : testing::sample_graphs()) {
    std::string bytes = encode(*g);
    for (std::size_t n = 0; n < bytes.size(); n += std::max<std::size_t>(1, bytes.size() / 500))
      EXPECT_THROW(decode(bytes.substr(0, n)), UserError);
    for (int i = 0; i < 500; ++i) {
      std::string damaged = bytes;
      damaged[random() % damaged.size()] ^= static_cast<char>(1u << random() % 8);
      try {
        decode(damaged);
      } catch (const UserError&) {
      }
    }
  }
  EXPECT_THROW(decode(""), UserError);
  EXPECT_THROW(decode(encode(*testing::sample_graphs()[0]) + "x"), UserError);
}

}  // namespace
}  // namespace xylem::ir
