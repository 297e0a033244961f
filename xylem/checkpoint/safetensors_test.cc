#include "xylem/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "xylem/base/bytes.h"
#include "xylem/base/error.h"
#include "xylem/base/file.h"

namespace xylem::checkpoint {
namespace {

class SafetensorsTest : public testing::Test {
 protected:
  void SetUp() override { dir_ = make_temporary_directory("safetensors-test"); }
  void TearDown() override { remove_tree(dir_); }
  std::string at(std::string_view name) const { return join_path(dir_, name); }
  // The bytes of a file written from these.
  std::string written(const NamedArrays& arrays,
                      const std::map<std::string, std::string>& metadata = {}) const {
    write_safetensors(at("w"), arrays, metadata);
    return read_file(at("w"));
  }
  std::string error_of(const std::string& bytes) const {
    write_file(at("r"), bytes);
    try {
      read_safetensors(at("r"));
    } catch (const UserError& e) {
      return e.message();
    }
    return "none";
  }
  std::string dir_;
};

std::string file_of(const std::string& header, std::size_t data) {
  ByteWriter w;
  w.write(static_cast<std::uint64_t>(header.size()));
  return w.take() + header + std::string(data, '\0');
}

HostArray codes(DType dtype, Dims dims) {
  HostArray a(dtype, std::move(dims));
  const unsigned mask = is_bool(dtype)          ? 1u
                        : dtype_bits(dtype) < 8 ? (1u << dtype_bits(dtype)) - 1
                                                : 255u;
  for (std::size_t i = 0; i < a.nbytes(); ++i)
    a.data()[i] = static_cast<std::byte>((i * 37 + 11) & mask);
  return a;
}

constexpr DType kAll[] = {
    DType::kBool,       DType::kF4E2M1FN, DType::kF6E2M3FN, DType::kF6E3M2FN,  DType::kU8,
    DType::kI8,         DType::kF8E5M2,   DType::kF8E4M3FN, DType::kF8E8M0FNU, DType::kF8E4M3FNUZ,
    DType::kF8E5M2FNUZ, DType::kI16,      DType::kU16,      DType::kF16,       DType::kBF16,
    DType::kI32,        DType::kU32,      DType::kF32,      DType::kC64,       DType::kF64,
    DType::kI64,        DType::kU64};

TEST_F(SafetensorsTest, EveryTypeAndShapeComesBackBitForBit) {
  NamedArrays all;
  for (const DType t : kAll)
    for (const Dims& dims : {Dims{8}, Dims{2, 4, 3}, Dims{0, 5}, Dims{4, 1, 1, 2}})
      all.push_back({std::string(dtype_name(t)) + to_string(dims), codes(t, dims)});
  all.push_back({"scalar", codes(DType::kF32, {})});
  write_safetensors(at("all"), all, {{"a", "b"}});
  const SafetensorsFile file(at("all"));
  EXPECT_EQ(file.tensors().size(), all.size());
  EXPECT_EQ(file.metadata().at("a"), "b");
  for (const NamedArray& a : all) {
    const TensorInfo* info = file.find(a.name);
    ASSERT_NE(info, nullptr) << a.name;
    EXPECT_TRUE(file.read(*info).bit_equal(a.value)) << a.name;
  }
  EXPECT_EQ(file.find("none"), nullptr);
}

// The header that the safetensors library (0.6.2) writes for these three tensors.
TEST_F(SafetensorsTest, WritesTheLibrarysBytes) {
  const std::string header =
      "{\"c\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]},"
      "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]},"
      "\"a\":{\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[16,20]}}";
  const std::string bytes = written({{"b", HostArray::from(std::vector<float>{1, 2}, {2})},
                                     {"a", HostArray::scalar(std::int32_t{7})},
                                     {"c", HostArray::from(std::vector<std::int64_t>{9}, {1})}});
  std::uint64_t length;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  const std::string padded = header + std::string(length - header.size(), ' ');
  EXPECT_EQ(bytes.substr(8, length), padded);
  EXPECT_LT(length - header.size(), 8u);
  EXPECT_EQ(bytes.size(), 8 + length + 20);
}

TEST_F(SafetensorsTest, QuotesNamesAsSerdeDoes) {
  const std::string name = "q\"b\\s/n\nt\tu\x01 \xc3\xa9";
  const std::string bytes = written({{name, HostArray::scalar(1.0f)}});
  EXPECT_NE(bytes.find("\"q\\\"b\\\\s/n\\nt\\tu\\u0001 \xc3\xa9\""), std::string::npos);
  EXPECT_EQ(SafetensorsFile(at("w")).tensors()[0].name, name);
}

TEST_F(SafetensorsTest, AnEmptyFileOfMetadataAloneIsLegal) {
  EXPECT_EQ(written({}).substr(8), "{}      ");
  written({}, {{"k", "v"}});
  EXPECT_EQ(SafetensorsFile(at("w")).metadata().at("k"), "v");
}

TEST_F(SafetensorsTest, RefusesToWriteWhatCannotBeRead) {
  const HostArray one = HostArray::scalar(1.0f);
  EXPECT_THROW(written({{"a", one}, {"a", one}}), UserError);
  EXPECT_THROW(written({{"__metadata__", one}}), UserError);
  EXPECT_THROW(written({{"a", HostArray(DType::kC128, {1})}}), UserError);
  EXPECT_THROW(written({{"a", HostArray::zeros(DType::kI4, {2})}}), UserError);
  EXPECT_THROW(written({{"a", HostArray::zeros(DType::kF4E2M1FN, {3})}}), UserError);
  EXPECT_FALSE(path_exists(at("w")));
}

TEST_F(SafetensorsTest, RefusesHostileHeaders) {
  const auto tensor = [](const std::string& dtype, const std::string& shape,
                         const std::string& offsets) {
    return "{\"a\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
           ",\"data_offsets\":" + offsets + "}}";
  };
  struct Case {
    std::string bytes, message;
  };
  const std::string two_to_32 = "4294967296";
  const Case cases[] = {
      {"", "8 bytes"},
      {"1234567", "8 bytes"},
      {std::string("\0\0\0\0\0\0\0\x80", 8), "header of at most"},
      {std::string("\x10\0\0\0\0\0\0\0", 8) + "{}", "header of 16"},
      {file_of("", 0), "begins with {"},
      {file_of("[]", 0), "begins with {"},
      {file_of("{} x", 0), "JSON object"},
      {file_of("{\"a\":1}", 0), "dtype, shape and data_offsets"},
      {file_of("{\"\xff\":1}", 0), "JSON object"},
      {file_of(std::string(100000, '{'), 0), "JSON object"},
      {file_of("{" + std::string(50000, '['), 0), "JSON object"},
      {file_of(tensor("F33", "[1]", "[0,4]"), 4), "known dtype"},
      {file_of(tensor("F32", "[-1]", "[0,4]"), 4), "shape"},
      {file_of(tensor("F32", "[1.5]", "[0,4]"), 4), "shape"},
      {file_of(tensor("F32", "[1]", "[4,0]"), 4), "span its 4 bytes"},
      {file_of(tensor("F32", "[1]", "[0,5]"), 5), "span its 4 bytes"},
      {file_of(tensor("F32", "[1]", "[0]"), 4), "two offsets"},
      {file_of(tensor("F32", "[1]", "[-1,3]"), 4), "two offsets"},
      {file_of(tensor("F32", "[1]", "[1,5]"), 5), "begins at 1"},
      {file_of(tensor("F32", "[1]", "[0,4]"), 3), "4 bytes of tensors"},
      {file_of(tensor("F32", "[1]", "[0,4]"), 5), "4 bytes of tensors"},
      {file_of(tensor("F32", "[" + two_to_32 + "," + two_to_32 + "]", "[0,0]"), 0), "64 bits"},
      {file_of(tensor("F32", "[9223372036854775808,0]", "[0,0]"), 0), "64 bits"},
      {file_of(tensor("F4", "[3]", "[0,1]"), 1), "whole number of bytes"},
      {file_of("{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
               "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
               3),
       "begins at 1"},
      {file_of("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
               "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
               1),
       "twice"},
      {file_of("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":1}}", 1),
       "dtype, shape and data_offsets"},
      {file_of("{\"__metadata__\":{\"a\":1}}", 0), "metadata of strings"},
      {file_of("{\"__metadata__\":[]}", 0), "__metadata__"},
  };
  for (const Case& c : cases) {
    const std::string e = error_of(c.bytes);
    EXPECT_NE(e.find(c.message), std::string::npos) << c.bytes.substr(0, 120) << "\n" << e;
    EXPECT_NE(e.find(at("r")), std::string::npos) << e;
  }
  std::string bad_bool = file_of(tensor("BOOL", "[1]", "[0,1]"), 1);
  bad_bool.back() = 2;
  EXPECT_NE(error_of(bad_bool).find("bytes 0 and 1"), std::string::npos);
}

TEST_F(SafetensorsTest, SavingOverAMappedFileLeavesTheMappingAsItWas) {
  const NamedArrays first{{"a", HostArray::from(std::vector<float>(5000, 1), {5000})}};
  const NamedArrays second{{"a", HostArray::from(std::vector<float>(10, 2), {10})}};
  write_safetensors(at("m"), first);
  const std::string before = read_file(at("m"));
  const MappedFile mapped(at("m"));
  const SafetensorsFile open(at("m"));
  write_safetensors(at("m"), second);
  EXPECT_EQ(as_string_view(mapped.bytes()), before);
  EXPECT_TRUE(open.read(open.tensors()[0]).bit_equal(first[0].value));
  EXPECT_TRUE(read_safetensors(at("m"))[0].value.bit_equal(second[0].value));
}

TEST_F(SafetensorsTest, NoTruncationIsAccepted) {
  const std::string whole =
      written({{"x", codes(DType::kF32, {3})}, {"y", codes(DType::kU8, {5})}});
  for (std::size_t n = 0; n < whole.size(); ++n)
    EXPECT_NE(error_of(whole.substr(0, n)), "none") << n;
  EXPECT_NE(error_of(whole + '\0'), "none");
}

TEST_F(SafetensorsTest, NoFlippedByteDoesHarm) {
  const std::string whole =
      written({{"x", codes(DType::kF32, {3})}, {"y", codes(DType::kF4E2M1FN, {4})}});
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = whole;
    for (int k = 0; k < 1 + i % 3; ++k)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    const auto head = as_byte_span(damaged);
    try {
      const SafetensorsHeader h = parse_safetensors_header(head, damaged.size(), "x");
      std::uint64_t total = 0;
      for (const TensorInfo& t : h.tensors) total += t.end - t.begin;
      EXPECT_EQ(h.data_begin + total, damaged.size());
    } catch (const UserError&) {
    }
  }
}

}  // namespace
}  // namespace xylem::checkpoint
