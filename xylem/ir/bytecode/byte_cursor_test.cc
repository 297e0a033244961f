#include "xylem/ir/bytecode/byte_cursor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "xylem/base/bytes.h"
#include "xylem/base/error.h"

namespace xylem::ir::bytecode {
namespace {

std::string varint(std::uint64_t v) {
  std::string s;
  append_varint(s, v);
  return s;
}

TEST(ByteCursorTest, VarintsAreThoseOfMlir) {
  EXPECT_EQ(to_hex(varint(0)), "01");
  EXPECT_EQ(to_hex(varint(1)), "03");
  EXPECT_EQ(to_hex(varint(63)), "7f");
  EXPECT_EQ(to_hex(varint(127)), "ff");
  EXPECT_EQ(to_hex(varint(128)), "0202");
  EXPECT_EQ(to_hex(varint(16384)), "040002");
  EXPECT_EQ(to_hex(varint(UINT64_MAX)), "00ffffffffffffffff");
}

TEST(ByteCursorTest, VarintsOfEveryLengthComeBack) {
  for (int bits = 0; bits < 64; ++bits) {
    for (std::uint64_t v : {std::uint64_t{1} << bits, (std::uint64_t{1} << bits) - 1}) {
      std::string s = varint(v);
      append_signed_varint(s, static_cast<std::int64_t>(v));
      append_signed_varint(s, static_cast<std::int64_t>(-v));
      Source source{s, "x"};
      ByteCursor c(source, 0, s.size());
      EXPECT_EQ(c.varint("v"), v);
      EXPECT_EQ(c.signed_varint("v"), static_cast<std::int64_t>(v));
      EXPECT_EQ(c.signed_varint("v"), static_cast<std::int64_t>(-v));
      EXPECT_TRUE(c.done());
    }
  }
}

TEST(ByteCursorTest, WhatIsCutOffIsToldWithItsPlace) {
  std::string s("\x04\x00", 2);
  Source source{s, "x.bc"};
  ByteCursor c(source, 0, s.size());
  try {
    c.varint("length");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_THAT(e.message(), ::testing::HasSubstr("x.bc:1:1: error: length: 3 more bytes"));
  }
}

TEST(ByteCursorTest, ACountIsBoundedByWhatIsLeft) {
  std::string s = varint(1000) + "ab";
  Source source{s, "x.bc"};
  ByteCursor c(source, 0, s.size());
  EXPECT_THROW(c.count("things"), UserError);
}

}  // namespace
}  // namespace xylem::ir::bytecode
