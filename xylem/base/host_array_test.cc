#include "xylem/base/host_array.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <complex>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/base/float_types.h"

namespace xylem {
namespace {

TEST(HostArrayTest, ArraysAreMadeFromValuesAndReadBack) {
  const auto a = HostArray::from(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(a.type_string(), "f32[2,3]");
  EXPECT_EQ(a.rank(), 2);
  EXPECT_EQ(a.size(), 6);
  EXPECT_EQ(a.nbytes(), 24u);
  EXPECT_EQ(a.byte_strides(), (Dims{12, 4}));
  EXPECT_EQ(a.to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(a.at(4), 5);
  EXPECT_THROW(a.at(6), UserError);
  EXPECT_THROW(a.as<double>(), UserError);
  EXPECT_THROW(HostArray::from(std::vector<float>{1, 2}, {3}), UserError);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.data()) % 64, 0u);
}

TEST(HostArrayTest, EveryElementTypeHasItsDType) {
  static_assert(dtype_of<bool>() == DType::kBool);
  static_assert(dtype_of<std::int8_t>() == DType::kI8);
  static_assert(dtype_of<long long>() == DType::kI64);
  static_assert(dtype_of<unsigned long>() == DType::kU64);
  static_assert(dtype_of<const float>() == DType::kF32);
  static_assert(dtype_of<std::complex<double>>() == DType::kC128);
  static_assert(dtype_of<bf16>() == DType::kBF16);
  static_assert(dtype_of<i4>() == DType::kI4);
  EXPECT_EQ(HostArray::scalar(bf16(1.5f)).at(0), 1.5);
  EXPECT_EQ(HostArray::scalar(std::complex<float>(2, 3)).at(0), 2);
  EXPECT_EQ(HostArray::scalar(true).dims(), Dims{});
}

TEST(HostArrayTest, CopiesShareBytesAndClonesDoNot) {
  auto a = HostArray::from(std::vector<int>{1, 2}, {2});
  HostArray b = a;
  HostArray c = a.clone();
  a.as<int>()[0] = 9;
  EXPECT_EQ(b.at(0), 9);
  EXPECT_EQ(c.at(0), 1);
  EXPECT_FALSE(HostArray().defined());
  EXPECT_FALSE(HostArray().clone().defined());
}

TEST(HostArrayTest, StridedArraysReadInRowMajorOrder) {
  const auto a = HostArray::from(std::vector<std::int16_t>{1, 2, 3, 4, 5, 6}, {2, 3});
  // Transposed, and the first row reversed by a negative stride.
  const HostArray t(DType::kI16, {3, 2}, a.owner(), {2, 6});
  EXPECT_FALSE(t.contiguous());
  EXPECT_EQ(t.at(1), 4);
  EXPECT_EQ(t.to_contiguous().to_vector<std::int16_t>(),
            (std::vector<std::int16_t>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(t.astype(DType::kF32).to_vector<float>(), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_THROW(t.as<std::int16_t>(), UserError);
  const HostArray r(DType::kI16, {3}, std::shared_ptr<std::byte>(a.owner(), a.owner().get() + 4),
                    {-2});
  EXPECT_EQ(r.to_contiguous().to_vector<std::int16_t>(), (std::vector<std::int16_t>{3, 2, 1}));
  const HostArray broadcast(DType::kI16, {2, 2}, a.owner(), {0, 2});
  EXPECT_EQ(broadcast.reshape({4}).to_vector<std::int16_t>(),
            (std::vector<std::int16_t>{1, 2, 1, 2}));
  EXPECT_THROW(HostArray(DType::kI16, {3}, a.owner(), {2, 2}), UserError);
}

TEST(HostArrayTest, ReshapeSharesAndChecks) {
  const auto a = HostArray::from(std::vector<float>{1, 2, 3, 4}, {4});
  const HostArray b = a.reshape({2, 2});
  EXPECT_EQ(b.data(), a.data());
  EXPECT_THROW(a.reshape({3}), UserError);
}

TEST(HostArrayTest, BitEqualTellsZerosAndNaNsApart) {
  const auto plus = HostArray::scalar(0.0f);
  const auto minus = HostArray::scalar(-0.0f);
  const auto nan = HostArray::scalar(std::numeric_limits<float>::quiet_NaN());
  EXPECT_FALSE(plus.bit_equal(minus));
  EXPECT_TRUE(nan.bit_equal(nan.clone()));
  EXPECT_FALSE(plus.bit_equal(HostArray::scalar(0.0)));
  EXPECT_FALSE(plus.bit_equal(plus.reshape({1})));
  EXPECT_TRUE(HostArray().bit_equal(HostArray()));
}

TEST(HostArrayTest, OverflowingSizesAreRefused) {
  EXPECT_THROW(HostArray(DType::kF32, {std::int64_t{1} << 62}), UserError);
  EXPECT_THROW(HostArray(DType::kF32, {std::int64_t{1} << 32, std::int64_t{1} << 32}), UserError);
  EXPECT_THROW(HostArray(DType::kF32, {-1}), UserError);
  EXPECT_EQ(HostArray(DType::kF32, {0, std::int64_t{1} << 62, std::int64_t{1} << 62}).size(), 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose allocators abort
  EXPECT_THROW(HostArray(DType::kI8, {std::int64_t{1} << 60}), EnvironmentError);
#endif
}

TEST(HostArrayTest, Float0HasNoBytes) {
  const HostArray a(DType::kFloat0, {3});
  EXPECT_TRUE(a.defined());
  EXPECT_EQ(a.nbytes(), 0u);
  EXPECT_EQ(a.astype(DType::kF32).to_vector<float>(), (std::vector<float>{0, 0, 0}));
}

// testdata/print.json was recorded from NumPy by testdata/make_print.py.
TEST(HostArrayTest, PrintsAsNumPyDoes) {
  std::ifstream in(std::string(XYLEM_SOURCE_DIR) + "/xylem/base/testdata/print.json");
  const auto golden = nlohmann::json::parse(in);
  ASSERT_GT(golden["cases"].size(), 150u);
  for (const auto& c : golden["cases"]) {
    const DType t = parse_dtype(c["dtype"].get<std::string>()).value();
    const std::string hex = c["hex"];
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < hex.size(); i += 2)
      bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    const auto a = HostArray::from_bytes(t, c["shape"].get<std::vector<std::int64_t>>(), bytes);
    EXPECT_EQ(a.to_string(), c["text"].get<std::string>()) << a.type_string();
  }
}

TEST(HostArrayTest, AnUndefinedHandlePrintsAsSuch) {
  EXPECT_EQ(HostArray().to_string(), "<undefined>");
}

TEST(DimsTest, GrowsBeyondItsInlineStoreAndCopies) {
  Dims d;
  for (int i = 0; i < 20; ++i) d.push_back(i);
  const Dims e = d;
  Dims f = std::move(d);
  EXPECT_EQ(e, f);
  f.insert(0, 99);
  f.erase(1);
  EXPECT_EQ(f[0], 99);
  EXPECT_EQ(f.size(), 20u);
  EXPECT_FALSE(e == f);
  f = e;
  EXPECT_EQ(e, f);
  EXPECT_EQ(num_elements(Dims{2, 3}), 6);
  EXPECT_EQ(row_major_strides(Dims{2, 3, 4}), (Dims{12, 4, 1}));
  EXPECT_EQ(to_string(Dims{2, 3}), "[2,3]");
}

TEST(ErrorTest, MessagesHaveFourPartsAndThePlace) {
  const Error e(ErrorParts{"add", "operands must agree", "f32[2] and f32[3]", "Broadcast one"},
                SourceLoc::current());
  EXPECT_EQ(e.message(), "add: operands must agree; f32[2] and f32[3]. Broadcast one.");
  EXPECT_NE(std::string(e.what()).find("host_array_test.cc:"), std::string::npos);
  UserError u("x");
  u.add_context("while reading");
  EXPECT_STREQ(u.what(), "while reading: x");
  EXPECT_THROW(XYLEM_CHECK(1 + 1 == 3, "detail"), InternalError);
}

TEST(HostArray, OwnsWhatItAllocatedOnly) {
  const HostArray own(DType::kF32, {4});
  EXPECT_TRUE(own.owns_memory());
  EXPECT_TRUE(own.reshape({2, 2}).owns_memory());
  EXPECT_TRUE(HostArray::scalar(1.0f).owns_memory());
  static std::byte bytes[16] = {};
  EXPECT_FALSE(HostArray(DType::kF32, {4}, std::shared_ptr<std::byte>(bytes, [](std::byte*) {}))
                   .owns_memory());
  EXPECT_FALSE(HostArray().owns_memory());
}

TEST(HostArray, BlocksOfABatchsSizeAreUsedAgainAndNeverShared) {
  std::vector<std::thread> threads;
  std::atomic<bool> good{true};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t, &good] {
      std::vector<HostArray> held(5);
      for (int i = 0; i < 400; ++i) {
        HostArray a(DType::kI32, {20000 + 1000 * (i % 3)});
        std::fill_n(a.as<std::int32_t>(), a.size(), t * 1000 + i);
        held[static_cast<std::size_t>(i % 5)] = a;
        for (const HostArray& h : held)
          if (h.defined() && (h.as<std::int32_t>()[0] / 1000 != t ||
                              h.as<std::int32_t>()[h.size() - 1] / 1000 != t))
            good = false;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_TRUE(good);
}

}  // namespace
}  // namespace xylem
