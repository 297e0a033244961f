#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/ir/bytecode.h"
#include "xylem/ir/bytecode/byte_cursor.h"
#include "xylem/ir/bytecode/pools.h"

// Damaged and malicious files end in an error that names a place, soon and in little memory.

namespace xylem::ir::bytecode {
namespace {

using ::testing::HasSubstr;

std::string code(std::uint64_t v) {
  std::string s;
  append_varint(s, v);
  return s;
}

std::string error_of(std::string_view bytes) {
  try {
    read_bytecode(bytes, "x.bc");
  } catch (const UserError& e) {
    return e.message();
  }
  return "";
}

std::string data(const std::string& name) {
  return read_file(XYLEM_SOURCE_DIR "/xylem/ir/bytecode/testdata/" + name);
}

// A file whose function returns a constant: attribute `value` is its value.
struct Builder {
  Pools pools{6};
  std::size_t f32 = pools.type("vhlo", code(4));
  std::size_t unknown = pools.attr("builtin", code(15));

  std::size_t tensor(std::initializer_list<std::int64_t> dims) {
    std::string t = code(20) + code(dims.size());
    for (std::int64_t d : dims) append_signed_varint(t, d);
    return pools.type("vhlo", t + code(f32));
  }
  std::size_t string(std::string_view s) {
    return pools.attr("vhlo", code(14) + code(pools.string(s)));
  }
  std::string op(std::string_view dialect, std::string_view name, unsigned mask,
                 const std::string& rest) {
    return code(pools.op_name(dialect, name)) + static_cast<char>(mask) + code(unknown) + rest;
  }
  // The body holds `ops` ops that define `values` values, then returns value 0.
  std::string file(std::size_t value_type, const std::string& body, std::size_t ops,
                   std::size_t values) {
    std::size_t function = pools.type("vhlo", code(8) + code(0) + code(1) + code(value_type));
    std::size_t empty = pools.attr("vhlo", code(1) + code(0));
    std::size_t type = pools.attr("vhlo", code(17) + code(function));
    std::string record =
        code(empty) + code(type) + code(empty) + code(string("main")) + code(string("public"));
    std::string region = code(1) + code(values) + code((ops + 1) << 1) + body +
                         op("vhlo", "return_v1", 0x04, code(1) + code(0));
    std::string func =
        op("vhlo", "func_v1", 0x50,
           code(pools.record(record)) + code(1 << 1 | 1) + '\4' + code(region.size()) + region);
    std::string inside = code(1) + code(0) + code(1 << 1) + func;
    std::string module = op("builtin", "module", 0x50,
                            code(pools.record(code(0) + code(0))) + code(1 << 1 | 1) + '\4' +
                                code(inside.size()) + inside);
    return pools.assemble("StableHLO_v1.17.0", code(1 << 1) + module);
  }
  std::string constant(std::size_t type, std::size_t value) {
    return file(
        type,
        op("vhlo", "constant_v1", 0x42, code(pools.record(code(value))) + code(1) + code(type)), 1,
        1);
  }
};

TEST(HostileBytecodeTest, TheBuilderOfTheseTestsMakesReadableFiles) {
  Builder b;
  std::size_t t = b.tensor({2});
  std::size_t v = b.pools.attr("vhlo", code(15) + code(t) + code(4) + std::string(4, '\0'));
  EXPECT_EQ(error_of(b.constant(t, v)), "");
}

TEST(HostileBytecodeTest, EveryPrefixIsAnError) {
  for (const char* name : {"mixed.bc", "mixed.plain.bc"}) {
    std::string bytes = data(name);
    for (std::size_t n = 0; n < bytes.size(); ++n)
      EXPECT_THAT(error_of(std::string_view(bytes).substr(0, n)), HasSubstr("x.bc:1:"))
          << name << " " << n;
  }
}

TEST(HostileBytecodeTest, ATerabyteInFourBytesIsRefused) {
  Builder b;
  std::size_t t = b.tensor({1 << 20, 1 << 20});
  std::size_t v = b.pools.attr("vhlo", code(15) + code(t) + code(4) + std::string(4, '\0'));
  EXPECT_THAT(error_of(b.constant(t, v)), HasSubstr("repeated values of a file take at most"));
  Builder c;
  t = c.tensor({INT64_MAX / 16});
  v = c.pools.attr("vhlo", code(15) + code(t) + code(4) + std::string(4, '\0'));
  EXPECT_THAT(error_of(c.constant(t, v)), HasSubstr("repeated values"));
}

TEST(HostileBytecodeTest, SizesThatOverflowAreRefused) {
  Builder b;
  std::size_t t = b.tensor({INT64_MAX, INT64_MAX});
  EXPECT_THAT(error_of(b.constant(t, b.unknown)), HasSubstr("the size of a tensor fits 63 bits"));
  Builder c;
  t = c.tensor({-7});
  EXPECT_THAT(error_of(c.constant(t, c.unknown)), HasSubstr("dimensions are not negative"));
}

TEST(HostileBytecodeTest, ConstantsOfAnotherSizeAreRefused) {
  Builder b;
  std::size_t t = b.tensor({3});
  std::size_t v = b.pools.attr("vhlo", code(15) + code(t) + code(5) + std::string(5, '\0'));
  EXPECT_THAT(error_of(b.constant(t, v)), HasSubstr("the bytes of f32[3], or of one element"));
}

// Attribute k is an array of attributes, the last one of itself.
TEST(HostileBytecodeTest, AttributesThatContainThemselvesAreRefused) {
  Builder b;
  std::size_t t = b.tensor({});
  // The next attribute's number is known before it is made.
  std::size_t self = b.pools.attr("vhlo", code(1) + code(0)) + 1;
  std::size_t v = b.pools.attr("vhlo", code(1) + code(1) + code(self));
  ASSERT_EQ(v, self);
  EXPECT_THAT(error_of(b.constant(t, v)), HasSubstr("attributes do not contain themselves"));
  Builder c;
  std::size_t loc = c.pools.attr("builtin", code(12) + code(1) + code(c.unknown)) + 1;
  std::size_t w = c.pools.attr("builtin", code(12) + code(1) + code(loc));
  ASSERT_EQ(w, loc);
  c.unknown = w;
  EXPECT_THAT(error_of(c.constant(c.tensor({}), c.string("x"))),
              HasSubstr("locations do not contain themselves"));
}

TEST(HostileBytecodeTest, TypesThatContainThemselvesAreRefused) {
  Builder b;
  std::size_t self = b.pools.type("vhlo", code(22)) + 1;
  std::size_t t = b.pools.type("vhlo", code(23) + code(1) + code(self));
  ASSERT_EQ(t, self);
  EXPECT_THAT(error_of(b.constant(t, b.unknown)), HasSubstr("types do not contain themselves"));
  Builder c;
  self = c.pools.type("vhlo", code(22)) + 1;
  std::size_t f = c.pools.type("vhlo", code(8) + code(1) + code(self) + code(0));
  ASSERT_EQ(f, self);
  std::size_t v = c.pools.attr("vhlo", code(17) + code(f));
  EXPECT_THAT(error_of(c.constant(c.tensor({}), v)), HasSubstr("types do not contain themselves"));
}

TEST(HostileBytecodeTest, DeepNestingIsRefused) {
  Builder b;
  std::size_t v = b.string("x");
  for (int i = 0; i < 100000; ++i) v = b.pools.attr("vhlo", code(1) + code(1) + code(v));
  EXPECT_THAT(error_of(b.constant(b.tensor({}), v)), HasSubstr("nest at most 200 deep"));
  Builder c;
  std::size_t t = c.pools.type("vhlo", code(22));
  for (int i = 0; i < 100000; ++i) t = c.pools.type("vhlo", code(23) + code(1) + code(t));
  EXPECT_THAT(error_of(c.constant(t, c.unknown)), HasSubstr("nest at most 200 deep"));
  // Regions.
  Builder d;
  std::string body;
  for (int i = 0; i < 3000; ++i) {
    std::string region = code(1) + code(0) + code((body.empty() ? 1 : 2) << 1) + body +
                         d.op("vhlo", "return_v1", 0, "");
    body = d.op("vhlo", "case_v1", 0x10, code(1 << 1) + region);
  }
  EXPECT_THAT(error_of(d.file(d.tensor({}), body, 1, 1)), HasSubstr("regions nest at most 200"));
}

TEST(HostileBytecodeTest, LongChainsOfCallSitesAreRead) {
  Builder b;
  std::size_t place = b.pools.attr(
      "builtin", code(11) + code(b.pools.attr("builtin", code(2) + code(b.pools.string("f.py")))) +
                     code(3) + code(1));
  for (int i = 0; i < 100000; ++i)
    place = b.pools.attr("builtin", code(10) + code(b.unknown) + code(place));
  b.unknown = place;
  std::size_t t = b.tensor({2});
  std::size_t v = b.pools.attr("vhlo", code(15) + code(t) + code(4) + std::string(4, '\0'));
  EXPECT_EQ(error_of(b.constant(t, v)), "");
}

// Shared parts: each level holds the one below twice.
TEST(HostileBytecodeTest, PartsThatMultiplyAreRefused) {
  Builder b;
  std::size_t v = b.string("x");
  for (int i = 0; i < 60; ++i) v = b.pools.attr("vhlo", code(1) + code(2) + code(v) + code(v));
  EXPECT_THAT(error_of(b.constant(b.tensor({}), v)), HasSubstr("shared parts multiply"));
  Builder c;
  std::size_t t = c.pools.type("vhlo", code(22));
  for (int i = 0; i < 60; ++i) t = c.pools.type("vhlo", code(23) + code(2) + code(t) + code(t));
  EXPECT_THAT(error_of(c.constant(t, c.unknown)), HasSubstr("shared parts multiply"));
  Builder d;
  std::size_t l = d.unknown;
  for (int i = 0; i < 60; ++i) l = d.pools.attr("builtin", code(12) + code(2) + code(l) + code(l));
  d.unknown = l;
  t = d.tensor({2});
  v = d.pools.attr("vhlo", code(15) + code(t) + code(4) + std::string(4, '\0'));
  EXPECT_EQ(error_of(d.constant(t, v)), "");
}

TEST(HostileBytecodeTest, ValuesAreDefinedBeforeTheirUse) {
  Builder b;
  std::size_t t = b.tensor({});
  std::string add = b.op("vhlo", "add_v1", 0x06, code(1) + code(t) + code(2) + code(0) + code(7));
  EXPECT_THAT(error_of(b.file(t, add, 1, 1)), HasSubstr("values are defined before their use"));
  EXPECT_THAT(error_of(b.file(t, add, 1, std::uint64_t{1} << 60)), HasSubstr("values"));
}

TEST(HostileBytecodeTest, UnknownOpsAreNamed) {
  Builder b;
  std::size_t t = b.tensor({});
  EXPECT_THAT(error_of(b.file(t, b.op("vhlo", "add_v9", 0x02, code(1) + code(t)), 1, 1)),
              HasSubstr("vhlo.add_v9: ops of VHLO up to StableHLO 1.20"));
  EXPECT_THAT(error_of(b.file(t, b.op("arith", "addf", 0x02, code(1) + code(t)), 1, 1)),
              HasSubstr("arith.addf: ops are those of StableHLO and CHLO"));
}

}  // namespace
}  // namespace xylem::ir::bytecode
