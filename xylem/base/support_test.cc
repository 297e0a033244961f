// Tests of the small parts: env.h, json.h, signal.h, tokenizer.h, trace_mark.h.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "xylem/base/env.h"
#include "xylem/base/error.h"
#include "xylem/base/json.h"
#include "xylem/base/signal.h"
#include "xylem/base/tokenizer.h"
#include "xylem/base/trace_mark.h"

namespace xylem {
namespace {

TEST(EnvTest, VariablesAreReadAndChecked) {
  setenv("XYLEM_TEST_VALUE", "12", 1);
  EXPECT_EQ(env_int("XYLEM_TEST_VALUE", 0, 100), 12);
  EXPECT_THROW(env_int("XYLEM_TEST_VALUE", 0, 10), UserError);
  EXPECT_THROW(env_flag("XYLEM_TEST_VALUE"), UserError);
  setenv("XYLEM_TEST_VALUE", "12x", 1);
  EXPECT_THROW(env_int("XYLEM_TEST_VALUE", 0, 100), UserError);
  setenv("XYLEM_TEST_VALUE", "on", 1);
  EXPECT_TRUE(env_flag("XYLEM_TEST_VALUE"));
  setenv("XYLEM_TEST_VALUE", "", 1);
  EXPECT_EQ(env_string("XYLEM_TEST_VALUE"), std::nullopt);
  EXPECT_FALSE(env_flag("XYLEM_TEST_VALUE"));
}

std::string g_lines;

TEST(EnvTest, OnlyNamedCategoriesAreLogged) {
  set_log_categories("compile, donation");
  EXPECT_TRUE(log_enabled("compile"));
  EXPECT_TRUE(log_enabled("donation"));
  EXPECT_FALSE(log_enabled("comp"));
  set_log_categories("all");
  EXPECT_TRUE(log_enabled("anything"));
  set_log_categories("");
  EXPECT_FALSE(log_enabled("compile"));
  set_log_sink([](std::string_view line) { g_lines += line; });
  log_line("compile", "hello");
  set_log_sink(nullptr);
  EXPECT_EQ(g_lines, "xylem[compile]: hello");
}

TEST(JsonTest, ObjectsAndArraysNest) {
  JsonWriter w;
  w.begin_object();
  w.field("step", 3);
  w.field("loss", 0.1);
  w.field("f", 0.1f);
  w.field("name", "a\"b\\\n\x01");
  w.field("ok", true);
  w.field("nan", std::numeric_limits<double>::quiet_NaN());
  w.array("shape", std::vector<int>{2, 3});
  w.key("empty");
  w.begin_object();
  w.end_object();
  w.field("big", std::numeric_limits<std::uint64_t>::max());
  w.end_object();
  const std::string text = w.take();
  EXPECT_EQ(
      text,
      "{\"step\": 3, \"loss\": 0.1, \"f\": 0.1, \"name\": \"a\\\"b\\\\\\n\\u0001\", \"ok\": "
      "true, \"nan\": null, \"shape\": [2, 3], \"empty\": {}, \"big\": 18446744073709551615}");
  EXPECT_EQ(nlohmann::json::parse(text)["name"], "a\"b\\\n\x01");
}

TEST(JsonTest, IndentationSpreadsLines) {
  JsonWriter w(2);
  w.begin_array();
  w.value(1);
  w.begin_object();
  w.field("a", 2);
  w.end_object();
  w.end_array();
  EXPECT_EQ(w.take(), "[\n  1,\n  {\n    \"a\": 2\n  }\n]");
}

TEST(JsonTest, BytesThatAreNotUtf8AreReplaced) {
  EXPECT_EQ(json_quote("\xc3\xa9"), "\"\xc3\xa9\"");
  for (const char* bad : {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"})
    EXPECT_TRUE(nlohmann::json::accept(json_quote(bad))) << bad;
  EXPECT_EQ(json_quote("a\xff"
                       "b"),
            "\"a\xef\xbf\xbd"
            "b\"");
}

TEST(JsonTest, MisuseIsAnInternalError) {
  JsonWriter w;
  w.begin_object();
  EXPECT_THROW(w.value(1), InternalError);
  EXPECT_THROW(w.end_array(), InternalError);
  EXPECT_THROW(w.take(), InternalError);
  JsonWriter two;
  two.value(1);
  EXPECT_THROW(two.value(2), InternalError);
}

TEST(SignalTest, SignalsSetTheFlagWhileTheObjectLives) {
  clear_stop_request();
  {
    const StopSignals signals;
    EXPECT_FALSE(stop_requested());
    std::raise(SIGTERM);
    EXPECT_TRUE(stop_requested());
    EXPECT_EQ(stop_signal(), SIGTERM);
    clear_stop_request();
    request_stop();
    EXPECT_TRUE(stop_requested());
    EXPECT_EQ(stop_signal(), 0);
  }
  clear_stop_request();
  const StopSignals again;
  EXPECT_THROW(StopSignals(), InternalError);
}

TEST(SignalTest, TheSecondSignalEndsTheProcess) {
  const pid_t child = fork();
  if (child == 0) {
    clear_stop_request();
    const StopSignals signals;
    std::raise(SIGINT);
    if (!stop_requested()) _exit(1);
    std::raise(SIGINT);
    _exit(2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGINT);
}

TEST(TokenizerTest, BytesAreTokens) {
  const ByteTokenizer t;
  const std::string text("a\xff\0b", 4);
  const auto ids = t.encode(text);
  EXPECT_EQ(ids, (std::vector<std::int32_t>{97, 255, 0, 98}));
  EXPECT_EQ(t.decode(ids), text);
  EXPECT_EQ(t.vocab_size(), 256);
  EXPECT_THROW(t.decode(std::vector<std::int32_t>{256}), UserError);
  EXPECT_THROW(t.decode(std::vector<std::int32_t>{-1}), UserError);
}

TEST(TraceMarkTest, MarksReachTheRegisteredCollector) {
  struct Collector : TraceCollector {
    std::string seen;
    std::uint64_t begin(std::string_view name) override {
      seen += "<" + std::string(name);
      return seen.size();
    }
    void end(std::uint64_t token) override { seen += std::to_string(token) + ">"; }
  } collector;
  { TraceMark unseen("x"); }
  EXPECT_FALSE(tracing());
  EXPECT_EQ(set_trace_collector(&collector), nullptr);
  {
    TraceMark a("a");
    TraceMark b("b");
    EXPECT_EQ(set_trace_collector(nullptr), &collector);
    TraceMark c("c");
  }
  EXPECT_EQ(collector.seen, "<a<b4>2>");
}

}  // namespace
}  // namespace xylem
