#include "xylem/data/batches.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "xylem/base/error.h"

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

class BatchesTest : public testing::Test {
 protected:
  std::unique_ptr<WindowBatches> make(std::int64_t batch = 3, bool shuffle = true,
                                      std::uint32_t seed = 1) const {
    return std::make_unique<WindowBatches>(
        Windows(text_, 2, "text"),
        WindowBatchOptions{.batch_size = batch, .seed = seed, .shuffle = shuffle});
  }
  const std::string text_ = counting_text(101);  // 50 windows
};

TEST_F(BatchesTest, VisitEveryWindowOnceAnEpochInAnOrderOfItsOwn) {
  auto batches = make(5);
  std::vector<std::vector<std::int32_t>> epochs(2);
  for (auto& epoch : epochs) {
    std::set<std::int32_t> seen;
    for (int i = 0; i < 10; ++i)
      for (const std::int32_t f : firsts(batches->next())) {
        epoch.push_back(f);
        seen.insert(f);
      }
    EXPECT_EQ(seen.size(), 50u);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_EQ(batches->epoch(), 2);
}

TEST_F(BatchesTest, CrossEpochsInsideABatch) {
  auto batches = make(7, /*shuffle=*/false);
  std::vector<std::int32_t> all;
  for (int i = 0; i < 8; ++i)
    for (const std::int32_t f : firsts(batches->next())) all.push_back(f);
  EXPECT_EQ(all[49], 98);
  EXPECT_EQ(all[50], 0);
}

TEST_F(BatchesTest, ContinueFromAnySavedState) {
  auto reference = make();
  std::vector<std::vector<std::int32_t>> expected;
  std::vector<std::string> states;
  for (int i = 0; i < 40; ++i) {
    states.push_back(reference->state());
    expected.push_back(firsts(reference->next()));
  }
  for (std::size_t i = 0; i < states.size(); ++i) {
    auto resumed = make();
    resumed->set_state(states[i]);
    for (std::size_t k = i; k < std::min(i + 5, expected.size()); ++k)
      EXPECT_EQ(firsts(resumed->next()), expected[k]);
  }
}

TEST_F(BatchesTest, RefuseStatesOfOtherData) {
  const std::string good = make()->state();
  EXPECT_THROW(make(3, true, 2)->set_state(good), UserError);
  EXPECT_THROW(make(3, false)->set_state(good), UserError);
  const std::string other = counting_text(91);
  WindowBatches shorter(Windows(other, 2, "text"), {.batch_size = 3, .seed = 1});
  EXPECT_THROW(shorter.set_state(good), UserError);
  for (const char* bad : {"", "{}", "[]", "3", "{\"kind\": \"window_batches\"}",
                          "{\"kind\":\"window_batches\",\"version\":1,\"windows\":50,\"length\":2,"
                          "\"seed\":1,\"shuffle\":true,\"position\":-1}",
                          "{\"kind\":\"window_batches\",\"version\":1,\"windows\":50,\"length\":2,"
                          "\"seed\":1,\"shuffle\":true,\"position\":\"x\"}"})
    EXPECT_THROW(make()->set_state(bad), UserError) << bad;
  auto kept = make();
  kept->next();
  const std::string before = kept->state();
  EXPECT_THROW(kept->set_state("{}"), UserError);
  EXPECT_EQ(kept->state(), before);
}

TEST_F(BatchesTest, ASavedStateGoesOnWithAnotherBatchSize) {
  auto batches = make(6);
  batches->next();
  auto other = make(2);
  other->set_state(batches->state());
  EXPECT_EQ(firsts(other->next())[0], firsts(batches->next())[0]);
}

TEST_F(BatchesTest, PrefetchGivesTheSameBatchesAndTheStateOfWhatWasGiven) {
  auto direct = make();
  Prefetch ahead(make(), 5);
  for (int i = 0; i < 60; ++i) {
    EXPECT_EQ(ahead.state(), direct->state());
    EXPECT_EQ(firsts(ahead.next()), firsts(direct->next()));
  }
}

TEST_F(BatchesTest, PrefetchContinuesFromASetState) {
  auto direct = make();
  for (int i = 0; i < 20; ++i) direct->next();
  Prefetch ahead(make(), 3);
  ahead.next();
  ahead.set_state(direct->state());
  EXPECT_EQ(firsts(ahead.next()), firsts(direct->next()));
  EXPECT_THROW(ahead.set_state("{}"), UserError);
  EXPECT_EQ(firsts(ahead.next()), firsts(direct->next()));
}

// A source that fails after some batches.
class Failing final : public BatchIterator {
 public:
  explicit Failing(int good) : left_(good) {}
  HostArray next() override {
    if (left_-- == 0) throw_user_error({"source", "more", "none", "stop"});
    return HostArray::scalar(left_);
  }
  std::string state() const override { return "{}"; }
  void set_state(std::string_view) override {}

 private:
  int left_;
};

TEST(Prefetch, PassesOnErrorsAfterTheBatchesBefore) {
  Prefetch ahead(std::make_unique<Failing>(3), 8);
  for (int i = 0; i < 3; ++i) EXPECT_NO_THROW(ahead.next());
  EXPECT_THROW(ahead.next(), UserError);
  EXPECT_THROW(ahead.next(), UserError);
}

TEST(Prefetch, StopsAtOnceWhenTheQueueIsFull) {
  const std::string text = counting_text(101);
  for (int i = 0; i < 50; ++i) {
    Prefetch ahead(std::make_unique<WindowBatches>(Windows(text, 2, "t"), WindowBatchOptions{}), 2);
    if (i % 2) ahead.next();
  }
}

TEST_F(BatchesTest, CollectsBatchesAsBytes) {
  auto batches = make();
  const HostArray all = collect_batches(*batches, 4);
  EXPECT_EQ(all.type_string(), "ui8[4,3,3]");
  auto again = make();
  for (std::int64_t s = 0; s < 4; ++s) {
    const HostArray b = again->next();
    for (std::int64_t i = 0; i < b.size(); ++i)
      EXPECT_EQ(all.as<std::uint8_t>()[s * 9 + i], b.as<std::int32_t>()[i]);
  }
  EXPECT_THROW(collect_batches(*batches, 0), UserError);
}

}  // namespace
}  // namespace xylem::data
