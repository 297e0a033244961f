#include "xylem/base/npy.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "xylem/base/bytes.h"
#include "xylem/base/error.h"
#include "xylem/base/file.h"

namespace xylem {
namespace {

// testdata/npy.json was recorded from NumPy by testdata/make_npy.py.
nlohmann::json golden() {
  std::ifstream in(std::string(XYLEM_SOURCE_DIR) + "/xylem/base/testdata/npy.json");
  return nlohmann::json::parse(in);
}

HostArray parse(const std::string& file, std::optional<DType> raw = std::nullopt) {
  return parse_npy(as_byte_span(file), "test.npy", raw);
}

TEST(NpyTest, ReadsWhatNumPyWrites) {
  const auto g = golden();
  ASSERT_GT(g["cases"].size(), 25u);
  for (const auto& c : g["cases"]) {
    const DType t = parse_dtype(c["dtype"].get<std::string>()).value();
    const HostArray a = parse(from_hex(c["file"].get<std::string>()),
                              c["raw"].get<bool>() ? std::optional(t) : std::nullopt);
    EXPECT_EQ(a.dtype(), t) << c["name"];
    EXPECT_EQ(a.dims(), Dims(c["shape"].get<std::vector<std::int64_t>>())) << c["name"];
    EXPECT_EQ(to_hex(std::span(a.data(), a.nbytes())), c["hex"].get<std::string>()) << c["name"];
  }
}

TEST(NpyTest, WritesTheVeryBytesThatNumPyWrites) {
  const auto g = golden();
  for (const auto& c : g["cases"]) {
    if (!c["exact"].get<bool>()) continue;
    const DType t = parse_dtype(c["dtype"].get<std::string>()).value();
    const auto a = HostArray::from_bytes(t, c["shape"].get<std::vector<std::int64_t>>(),
                                         as_byte_span(from_hex(c["hex"].get<std::string>())));
    // Raw bytes have no order: "|V2" where ml_dtypes writes "<V2".
    std::string file = c["file"].get<std::string>();
    const std::size_t raw = file.find("273c56");
    if (raw != std::string::npos) file.replace(raw, 6, "277c56");
    EXPECT_EQ(to_hex(format_npy(a)), file) << c["name"];
  }
}

TEST(NpyTest, EveryTypeRoundTripsThroughAFile) {
  const std::string dir = make_temporary_directory("npy-test");
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto t = static_cast<DType>(i);
    if (t == DType::kFloat0) continue;
    const HostArray a = HostArray::from(std::vector<float>{1, 0.5, 2, 3}, {2, 2}).astype(t);
    const std::string path = join_path(dir, "a.npy");
    write_npy(path, a);
    EXPECT_TRUE(read_npy(path, t).bit_equal(a)) << dtype_name(t);
  }
  EXPECT_THROW(read_npy(join_path(dir, "missing.npy")), EnvironmentError);
  EXPECT_THROW(format_npy(HostArray(DType::kFloat0, {1})), UserError);
  EXPECT_THROW(format_npy(HostArray()), UserError);
  remove_tree(dir);
}

std::string file_with_header(std::string header, std::string data = std::string(8, '\0')) {
  ByteWriter w;
  w.write_string("\x93NUMPY");
  w.write<std::uint8_t>(1);
  w.write<std::uint8_t>(0);
  w.write(static_cast<std::uint16_t>(header.size()));
  w.write_string(header);
  w.write_string(data);
  return w.take();
}

TEST(NpyTest, MalformedHeadersAreRefusedWithReasons) {
  const auto message = [](const std::string& header, std::string data = std::string(8, '\0')) {
    try {
      parse(file_with_header(header, data));
      return std::string("accepted");
    } catch (const UserError& e) {
      return e.message();
    }
  };
  EXPECT_EQ(message("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"), "accepted");
  EXPECT_EQ(message("{'shape': (2,), 'fortran_order': False, 'descr': '<f4'}\n"), "accepted");
  const auto refused = [&](const std::string& header, const std::string& why) {
    EXPECT_NE(message(header).find(why), std::string::npos) << header << "\n" << message(header);
  };
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", "8 bytes follow");
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "8 bytes follow");
  refused("{'descr': '<f4', 'fortran_order': False}", "fewer keys");
  refused("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", "each once");
  refused("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", "structured");
  refused("{'descr': '|O', 'fortran_order': False, 'shape': ()}", "it is \"|O\"");
  refused("{'descr': '<V1', 'fortran_order': False, 'shape': (8,)}", "1 raw bytes");
  refused("{'descr': '<f4', 'fortran_order': maybe, 'shape': ()}", "True or False");
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "63 bits");
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "8 bytes follow");
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "a dimension");
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", "more text");
  refused("{'descr': '<f4, 'fortran_order': False, 'shape': (2,)}", "");
  refused("", "'{'");
  EXPECT_THROW(parse("\x93NUMPX"), UserError);
  EXPECT_THROW(parse(""), UserError);
}

// Truncated at every length, and with random bytes changed: an array or a UserError, nothing else.
TEST(NpyTest, DamagedFilesGiveArraysOrErrorsAndNothingElse) {
  std::mt19937 random(5);
  const auto g = golden();
  for (const auto& c : g["cases"]) {
    const std::string file = from_hex(c["file"].get<std::string>());
    for (std::size_t n = 0; n < file.size(); ++n)
      EXPECT_THROW(parse(file.substr(0, n), DType::kBF16), UserError) << c["name"] << n;
    EXPECT_THROW(parse(file + "x", DType::kBF16), UserError);
    for (int round = 0; round < 400; ++round) {
      std::string damaged = file;
      for (unsigned k = random() % 4 + 1; k > 0; --k)
        damaged[random() % damaged.size()] = static_cast<char>(random());
      try {
        parse(damaged, random() % 2 ? std::optional(DType::kF8E5M2) : std::nullopt).to_string();
      } catch (const UserError&) {
      }
    }
  }
}

}  // namespace
}  // namespace xylem
