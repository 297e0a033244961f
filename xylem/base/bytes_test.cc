#include "xylem/base/bytes.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>

#include "xylem/base/error.h"

namespace xylem {

namespace internal {
std::uint32_t crc32c_portable(std::span<const std::byte> data, std::uint32_t crc);
}

namespace {

TEST(BytesTest, NumbersRoundTripLittleEndian) {
  ByteWriter w;
  w.write<std::uint16_t>(0x1234);
  w.write<std::int64_t>(-2);
  w.write(1.5f);
  w.write_string("abc");
  w.align(8);
  EXPECT_EQ(to_hex(w.str().substr(0, 2)), "3412");
  EXPECT_EQ(w.size() % 8, 0u);
  ByteReader r(w.str(), "test");
  EXPECT_EQ(r.read<std::uint16_t>(), 0x1234);
  EXPECT_EQ(r.read<std::int64_t>(), -2);
  EXPECT_EQ(r.read<float>(), 1.5f);
  EXPECT_EQ(r.read_string(3), "abc");
  r.seek(0);
  EXPECT_EQ(r.remaining(), w.size());
}

TEST(BytesTest, VarintsRoundTripAndOverlongOnesAreRefused) {
  for (std::uint64_t v : {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128},
                          std::uint64_t{1} << 35, ~std::uint64_t{0}}) {
    ByteWriter w;
    w.write_varint(v);
    w.write_signed_varint(static_cast<std::int64_t>(v));
    ByteReader r(w.str(), "test");
    EXPECT_EQ(r.read_varint(), v);
    EXPECT_EQ(r.read_signed_varint(), static_cast<std::int64_t>(v));
    EXPECT_TRUE(r.done());
  }
  const std::string eleven(11, '\xff');
  EXPECT_THROW(ByteReader(eleven, "test").read_varint(), UserError);
  EXPECT_THROW(ByteReader(std::string(9, '\xff') + "\x02", "test").read_varint(), UserError);
}

TEST(BytesTest, ReadsBeyondTheEndAreRefusedWithThePlace) {
  ByteReader r("abcde", "x.bin");
  r.skip(2);
  try {
    r.read<std::uint32_t>();
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(
        e.message(),
        "x.bin: 4 bytes must follow at offset 2; 3 of 5 bytes are left. The data is cut short "
        "or damaged: get it again.");
  }
  EXPECT_EQ(r.position(), 2u);
  EXPECT_THROW(r.read_bytes(~std::uint64_t{0}), UserError);
  EXPECT_THROW(r.seek(6), UserError);
}

TEST(BytesTest, Crc32cHasItsKnownValues) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c("6789", crc32c("12345")), 0xe3069283u);
  EXPECT_EQ(unmask_crc32c(mask_crc32c(0x12345678u)), 0x12345678u);
  std::mt19937 random(1);
  for (std::size_t n = 0; n < 100; ++n) {
    std::string s(n, ' ');
    for (char& c : s) c = static_cast<char>(random());
    EXPECT_EQ(crc32c(s), internal::crc32c_portable(as_byte_span(s), 0)) << n;
  }
}

// Values of the reference implementation.
TEST(BytesTest, Hash64IsXxh64) {
  EXPECT_EQ(hash64(""), 0xef46db3751d8e999u);
  EXPECT_EQ(hash64("a"), 0xd24ec4f1a98c6e5bu);
  EXPECT_EQ(hash64("abc"), 0x44bc2cf5ad770999u);
  EXPECT_EQ(hash64("Nobody inspects the spammish repetition"), 0xfbcea83c8a378bf1u);
  EXPECT_NE(hash64("abc", 1), hash64("abc"));
  EXPECT_NE(combine_hash(1, 2), combine_hash(2, 1));
}

TEST(BytesTest, HexadecimalTextRoundTrips) {
  EXPECT_EQ(to_hex(std::string_view("\x00\xff\x1a", 3)), "00ff1a");
  EXPECT_EQ(from_hex("00fF1A"), std::string("\x00\xff\x1a", 3));
  EXPECT_THROW(from_hex("0"), UserError);
  EXPECT_THROW(from_hex("0g"), UserError);
}

}  // namespace
}  // namespace xylem
