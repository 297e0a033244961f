#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "xylem/data/dataset.h"
#include "xylem/data/testing/elements.h"

namespace xylem::data {
namespace {

using testing::all;
using testing::error_of;
using ::testing::HasSubstr;
using Ints = std::vector<std::int64_t>;

struct Arrays2 {
  HostArray a, b;
};

struct Tokens {
  HostArray tokens, loss_mask;
};

TEST(Packing, KeepsTheElementsType) {
  const auto ds = range(10).map([](std::int64_t i) {
    const auto n = static_cast<std::int64_t>(i % 3 + 1);
    return Tokens{HostArray::zeros(DType::kI32, {n}), HostArray::zeros(DType::kBool, {n})};
  });
  const PackOptions o{.length = {{"tokens", 8}, {"loss_mask", 8}}, .num_packing_bins = 2};
  std::int64_t tokens = 0;
  for (const Packed<Tokens>& row : all(ds.to_iter_dataset().first_fit_pack(o))) {
    EXPECT_EQ(row.values.tokens.type_string(), "i32[8]");
    EXPECT_EQ(row.values.loss_mask.type_string(), "i1[8]");
    for (const auto id : row.segment_ids.tokens.span<std::int32_t>()) tokens += id > 0;
  }
  EXPECT_EQ(tokens, 19);
}

TEST(Packing, TakesPlainLists) {
  const auto ds = source(std::vector<std::vector<std::int32_t>>{{1, 2, 3}, {4}, {5, 6}});
  const auto rows = all(ds.to_iter_dataset().concat_then_split({.length = {{"", 3}}}));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].values.to_vector<std::int32_t>(), (std::vector<std::int32_t>{4, 5, 6}));
  EXPECT_EQ(rows[1].segment_ids.to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, 2, 2}));
}

TEST(Packing, RefusesSequencesLongerThanARow) {
  const auto ds = source(std::vector<std::vector<std::int32_t>>{{1}, {1, 2, 3}}, "docs");
  const std::string e = error_of([&] {
    all(ds.to_iter_dataset().first_fit_pack({.length = {{"", 2}}, .num_packing_bins = 2}));
  });
  EXPECT_THAT(e, HasSubstr("at most 2 tokens"));
  EXPECT_THAT(e, HasSubstr("record 1 of docs"));
}

TEST(Packing, NamesTheFieldsItHas) {
  const auto ds = range(3).map([](std::int64_t) {
    return Tokens{HostArray::zeros(DType::kI32, {1}), HostArray::zeros(DType::kBool, {1})};
  });
  EXPECT_THAT(error_of([&] {
                all(ds.to_iter_dataset().first_fit_pack({.length = {{"token", 2}}}));
              }),
              HasSubstr("the fields tokens, loss_mask"));
}

TEST(ConcatThenSplit, CutsSeveralFeaturesAtTheirOwnPlaces) {
  const auto numbers = [](std::int64_t from, std::int64_t n) {
    Ints v(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) v[static_cast<std::size_t>(i)] = from + i;
    return HostArray::from(v, {n});
  };
  const auto rows = all(source(std::vector<Arrays2>{{numbers(100, 20), numbers(200, 7)}})
                            .to_iter_dataset()
                            .concat_then_split({.length = {{"a", 5}, {"b", 4}}}));
  Ints a, b;
  for (const auto& r : rows) {
    for (std::int64_t i = 0; i < 5; ++i)
      if (r.segment_ids.a.as<std::int32_t>()[i] > 0) a.push_back(r.values.a.as<std::int64_t>()[i]);
    for (std::int64_t i = 0; i < 4; ++i)
      if (r.segment_ids.b.as<std::int32_t>()[i] > 0) b.push_back(r.values.b.as<std::int64_t>()[i]);
  }
  EXPECT_EQ(a, numbers(100, 20).to_vector<std::int64_t>());
  EXPECT_EQ(b, numbers(200, 7).to_vector<std::int64_t>());
}

}  // namespace
}  // namespace xylem::data
