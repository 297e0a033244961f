#include "xylem/data/dataset.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace xylem::data {
namespace {

template <class D>
auto first(const D& ds, std::int64_t n) {
  std::vector<typename D::Element> out;
  for (std::int64_t i = 0; i < n; ++i) out.push_back(ds[i]);
  return out;
}

using Ints = std::vector<std::int64_t>;

TEST(MapDataset, GivesGrainsOrders) {
  EXPECT_EQ(first(range(10).seed(42).shuffle(), 10), (Ints{1, 7, 6, 9, 0, 8, 4, 5, 3, 2}));
  EXPECT_EQ(first(range(10).shuffle(42), 20),
            (Ints{8, 6, 7, 9, 0, 5, 1, 2, 4, 3, 2, 0, 9, 1, 5, 7, 6, 8, 4, 3}));
}

}  // namespace
}  // namespace xylem::data
