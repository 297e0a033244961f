#include "xylem/data/windows.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/data/dataset.h"

namespace xylem::data {
namespace {

std::string counting_text(int n) {
  std::string s;
  for (int i = 0; i < n; ++i) s += static_cast<char>(i);
  return s;
}

std::vector<std::int32_t> firsts(const HostArray& batch) {
  std::vector<std::int32_t> out;
  for (std::int64_t i = 0; i < batch.dims()[0]; ++i)
    out.push_back(batch.as<std::int32_t>()[i * batch.dims()[1]]);
  return out;
}

TEST(Windows, ShareOneByteAndDropTheRest) {
  const std::string text = counting_text(14);
  const Windows w(text, 4, "text");
  EXPECT_EQ(w.size(), 3);
  std::vector<std::int32_t> window(5);
  w.copy(2, window);
  EXPECT_EQ(window, (std::vector<std::int32_t>{8, 9, 10, 11, 12}));
  EXPECT_EQ(Windows(std::string_view(text).substr(0, 13), 4, "t").size(), 3);
  EXPECT_EQ(Windows(std::string_view(text).substr(0, 12), 4, "t").size(), 2);
}

TEST(Windows, RepeatTheLastPastTheEnd) {
  const std::string text = counting_text(9);
  EXPECT_EQ(firsts(Windows(text, 4, "t").range(1, 3)), (std::vector<std::int32_t>{4, 4, 4}));
}

TEST(Windows, TakeBytesAsUnsigned) {
  const std::string text(3, '\xff');
  EXPECT_EQ(firsts(Windows(text, 2, "t").range(0, 1))[0], 255);
}

TEST(Windows, RefuseATextThatIsTooShort) {
  try {
    Windows(std::string_view("abcd"), 4, "validation text");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(e.message().find("validation text"), std::string::npos);
    EXPECT_NE(e.message().find("5 bytes"), std::string::npos);
    EXPECT_NE(e.message().find("4 bytes"), std::string::npos);
  }
  EXPECT_THROW(Windows(std::string_view("abcd"), 0, "t"), UserError);
}

// What training takes: an order of its own in every epoch, batches across epochs, a position as the
// state.
TEST(Windows, AreASourceOfPipelines) {
  const std::string text = counting_text(101);  // 50 windows
  const auto ds = source(Windows(text, 2, "text"), "text")
                      .shuffle(1)
                      .repeat()
                      .batch(7)
                      .to_iter_dataset({.num_threads = 1, .prefetch_buffer_size = 4});
  auto it = ds.iterator();
  std::vector<std::int32_t> got;
  std::string state;
  for (int i = 0; i < 20; ++i) {
    if (i == 11) state = it.get_state();
    const HostArray b = it.next().value();
    EXPECT_EQ(b.type_string(), "i32[7,3]");
    for (const std::int32_t f : firsts(b)) got.push_back(f);
  }
  for (std::int64_t i = 0; i < 140; ++i)
    ASSERT_EQ(got[static_cast<std::size_t>(i)],
              2 * IndexShuffle(50, static_cast<std::uint32_t>(1 + i / 50))(i % 50));
  EXPECT_EQ(state, "{\"next_index\": 11}");
  it.set_state(state);
  EXPECT_EQ(firsts(it.next().value())[0], got[77]);
}

}  // namespace
}  // namespace xylem::data
