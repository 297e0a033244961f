#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/checkpoint/ocdbt/database.h"
#include "xylem/checkpoint/ocdbt/transaction.h"
#include "xylem/checkpoint/testing/faulty_calls.h"

namespace xylem::checkpoint {
namespace {

using Contents = std::map<std::string, std::string>;

Contents contents_of(const KvStore& store) {
  Contents out;
  std::vector<std::string> keys;
  store.for_each("", [&](std::string_view key) { keys.emplace_back(key); });
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
  for (const std::string& key : keys) out[key] = store.find(key)->read_all();
  EXPECT_EQ(out.size(), keys.size());
  return out;
}

Contents contents_of(const FileSystem& fs) {
  if (!ocdbt::Database::exists(fs, "/db")) return {};
  const ocdbt::Database db(fs, "/db");
  db.check([](std::string_view defect) { ADD_FAILURE() << defect; });
  return contents_of(db);
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.message();
  }
  return "";
}

TEST(Transaction, ChangesAreSeenWithinAtOnceAndOutsideAfterTheCommit) {
  const FileSystem fs = FileSystem::memory();
  auto t = ocdbt::begin_transaction(fs, "/db");
  t->write("b/1", "one");
  t->write("a", std::string(5000, 'x'));
  EXPECT_EQ(contents_of(*t), (Contents{{"a", std::string(5000, 'x')}, {"b/1", "one"}}));
  EXPECT_EQ(contents_of(fs), Contents{});
  t->commit();
  EXPECT_EQ(contents_of(fs), (Contents{{"a", std::string(5000, 'x')}, {"b/1", "one"}}));

  t = ocdbt::begin_transaction(fs, "/db");
  t->write("b/0", "zero");
  t->write("b/1", "uno");
  t->write("c", "see");
  t->erase("a");
  t->erase("absent");
  EXPECT_FALSE(t->find("a").has_value());
  EXPECT_EQ(contents_of(*t), (Contents{{"b/0", "zero"}, {"b/1", "uno"}, {"c", "see"}}));
  std::vector<std::string> below;
  t->for_each("b/", [&](std::string_view key) { below.emplace_back(key); });
  EXPECT_EQ(below, (std::vector<std::string>{"b/0", "b/1"}));
  t->erase_prefix("b/");
  t->write("b/1", "again");
  EXPECT_EQ(contents_of(*t), (Contents{{"b/1", "again"}, {"c", "see"}}));
  EXPECT_EQ(contents_of(fs).size(), 2u);
  t->commit();
  EXPECT_EQ(contents_of(fs), (Contents{{"b/1", "again"}, {"c", "see"}}));
  EXPECT_EQ(ocdbt::Database(fs, "/db").generations(), (std::vector<std::uint64_t>{2}));
}

TEST(Transaction, AbortAndDestructionLeaveTheStoreAsItWas) {
  const FileSystem fs = FileSystem::memory();
  auto t = ocdbt::begin_transaction(fs, "/db");
  t->write("k", "v");
  t->abort();
  EXPECT_NE(error_of([&] { t->write("k", "w"); }).find("committed or aborted"), std::string::npos);
  EXPECT_NE(error_of([&] { t->commit(); }).find("committed or aborted"), std::string::npos);
  ocdbt::begin_transaction(fs, "/db")->write("k", "v");
  EXPECT_FALSE(fs.exists("/db"));
  t = ocdbt::begin_transaction(fs, "/db");
  t->commit();
  EXPECT_FALSE(fs.exists("/db")) << "nothing was changed, so nothing is written";
}

TEST(Transaction, OfTwoThatBeganTogetherTheSecondIsRefused) {
  const FileSystem fs = FileSystem::memory();
  for (int round = 0; round < 2; ++round) {
    auto a = ocdbt::begin_transaction(fs, "/db"), b = ocdbt::begin_transaction(fs, "/db");
    a->write("k", "a" + std::to_string(round));
    b->write("l", "b");
    a->commit();
    EXPECT_NE(error_of([&] { b->commit(); }).find("Begin a new transaction"), std::string::npos);
    EXPECT_EQ(contents_of(fs), (Contents{{"k", "a" + std::to_string(round)}}));
  }
}

TEST(Transaction, ThreadsThatTryAgainLoseNoChange) {
  const FileSystem fs = FileSystem::memory();
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k)
    threads.emplace_back([&, k] {
      for (int i = 0; i < 5; ++i)
        for (;;) {
          auto t = ocdbt::begin_transaction(fs, "/db");
          const auto n = t->find("n");
          t->write("n", std::to_string(n ? std::stoi(n->read_all()) + 1 : 1));
          t->write(std::to_string(k) + "/" + std::to_string(i), "x");
          if (error_of([&] { t->commit(); }).empty()) break;
        }
    });
  for (std::thread& t : threads) t.join();
  const Contents c = contents_of(fs);
  EXPECT_EQ(c.at("n"), "20");
  EXPECT_EQ(c.size(), 21u);
}

TEST(Transaction, RandomChangesAreThoseOfAMap) {
  std::mt19937 random(5);
  const FileSystem fs = FileSystem::memory();
  Contents model;
  for (int round = 0; round < 40; ++round) {
    auto t = ocdbt::begin_transaction(fs, "/db");
    Contents now = model;
    for (unsigned n = random() % 30; n > 0; --n) {
      const std::string key = "k" + std::to_string(random() % 60);
      if (random() % 3 == 0) {
        t->erase(key);
        now.erase(key);
      } else if (random() % 20 == 0) {
        const std::string prefix = key.substr(0, 2);
        t->erase_prefix(prefix);
        std::erase_if(now, [&](const auto& x) { return x.first.starts_with(prefix); });
      } else {
        now[key] = std::string(random() % 3000, static_cast<char>('a' + random() % 26));
        t->write(key, now[key]);
      }
    }
    EXPECT_EQ(contents_of(*t), now);
    if (random() % 4 == 0) {
      t->abort();
    } else {
      t->commit();
      model = now;
    }
    ASSERT_EQ(contents_of(fs), model) << round;
  }
}

// Five commits; how many were reported.
std::vector<Contents> commit_all(const FileSystem& fs, std::size_t& reported) {
  std::vector<Contents> states(1);
  reported = 0;
  bool failed = false;
  for (int i = 1; i <= 5; ++i) {
    Contents next = states.back();
    next["small"] = std::to_string(i);
    next["large/" + std::to_string(i)] = std::string(3000, static_cast<char>('a' + i));
    next.erase("large/" + std::to_string(i - 2));
    states.push_back(next);
    if (failed) continue;
    try {
      auto t = ocdbt::begin_transaction(fs, "/db");
      t->write("small", next["small"]);
      t->write("large/" + std::to_string(i), next["large/" + std::to_string(i)]);
      t->erase("large/" + std::to_string(i - 2));
      t->commit();
      ++reported;
    } catch (const Error&) {
      failed = true;
    }
  }
  return states;
}

TEST(Transaction, AfterACrashAtAnyCallTheStoreIsAsBetweenTwoCommits) {
  std::mt19937 random(7);
  std::size_t reported = 0;
  const auto whole = std::make_shared<FaultyCalls>();
  const std::vector<Contents> states = commit_all(FileSystem(whole), reported);
  ASSERT_EQ(reported, 5u);
  int seen = 0;
  for (std::int64_t stop = 0; stop <= whole->calls(); ++stop) {
    const auto calls = std::make_shared<FaultyCalls>();
    calls->stop_at(stop);
    commit_all(FileSystem(calls), reported);
    for (int k = 0; k < 8; ++k, ++seen) {
      const FileSystem disk(calls->after_crash(random));
      const Contents found = contents_of(disk);
      std::size_t at = 0;
      while (at < states.size() && states[at] != found) ++at;
      ASSERT_LT(at, states.size()) << "call " << stop << ": neither before nor after a commit";
      EXPECT_GE(at, reported) << "call " << stop << ": a commit that was reported is gone";
      EXPECT_LE(at, reported + 1) << "call " << stop;
      // And goes on.
      auto t = ocdbt::begin_transaction(disk, "/db");
      t->write("more", "x");
      t->commit();
      Contents more = found;
      more["more"] = "x";
      ASSERT_EQ(contents_of(disk), more) << "call " << stop;
    }
  }
  EXPECT_GT(seen, 100);
}

TEST(Transaction, FaultsLeaveTheStoreBeforeOrAfterTheCommit) {
  std::size_t reported = 0;
  const auto whole = std::make_shared<FaultyCalls>();
  const std::vector<Contents> states = commit_all(FileSystem(whole), reported);
  for (const int error : {EIO, ENOSPC}) {
    for (std::int64_t n = 0; n <= whole->calls(); ++n) {
      const auto calls = std::make_shared<FaultyCalls>();
      calls->fail_at(n, error);
      commit_all(FileSystem(calls), reported);
      calls->fail_at(-1, 0);
      const Contents found = contents_of(FileSystem(calls));
      EXPECT_TRUE(found == states[reported] ||
                  (reported + 1 < states.size() && found == states[reported + 1]))
          << "call " << n;
    }
  }
}

}  // namespace
}  // namespace xylem::checkpoint
