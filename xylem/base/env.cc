#include "xylem/base/env.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <mutex>

#include "xylem/base/error.h"

namespace xylem {
namespace {

struct Log {
  std::mutex mutex;
  std::string categories;     // ",compile,donation,"
  std::atomic<int> state{0};  // 0: not read, 1: nothing enabled, 2: something enabled
  std::atomic<void (*)(std::string_view)> sink{nullptr};
};

// Never destroyed: threads may log while the process exits.
Log& log() {
  static Log* l = new Log;
  return *l;
}

void set_categories(Log& l, std::string_view categories) {
  l.categories = ",";
  for (char c : categories)
    if (c != ' ') l.categories += c;
  l.categories += ',';
  l.state.store(l.categories.size() > 2 ? 2 : 1, std::memory_order_release);
}

}  // namespace

std::optional<std::string> env_string(const char* name) {
  const char* v = std::getenv(name);
  if (v == nullptr || *v == '\0') return std::nullopt;
  return v;
}

std::optional<std::int64_t> env_int(const char* name, std::int64_t min, std::int64_t max) {
  const auto text = env_string(name);
  if (!text) return std::nullopt;
  std::int64_t v = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), v);
  if (error != std::errc() || end != text->data() + text->size() || v < min || v > max)
    throw_user_error({fmt::format("environment variable {}", name),
                      fmt::format("must be an integer from {} to {}", min, max),
                      fmt::format("it is \"{}\"", *text), "Change or unset it"});
  return v;
}

bool env_flag(const char* name) {
  const auto text = env_string(name);
  if (!text) return false;
  for (const char* yes : {"1", "true", "yes", "on"})
    if (*text == yes) return true;
  for (const char* no : {"0", "false", "no", "off"})
    if (*text == no) return false;
  throw_user_error({fmt::format("environment variable {}", name), "must be 1 or 0",
                    fmt::format("it is \"{}\"", *text), "Change or unset it"});
}

bool log_enabled(std::string_view category) {
  Log& l = log();
  int state = l.state.load(std::memory_order_acquire);
  if (state == 1) return false;
  const std::lock_guard lock(l.mutex);
  if (l.state.load(std::memory_order_relaxed) == 0)
    set_categories(l, env_string("XYLEM_LOG").value_or(""));
  return l.categories.find(fmt::format(",{},", category)) != std::string::npos ||
         l.categories.find(",all,") != std::string::npos;
}

void log_line(std::string_view category, std::string_view text) {
  std::string line = fmt::format("xylem[{}]: {}", category, text);
  if (auto* sink = log().sink.load()) return sink(line);
  line += '\n';
  // One write keeps lines of several threads and processes whole. Failure has nowhere to go.
  [[maybe_unused]] const auto n = ::write(STDERR_FILENO, line.data(), line.size());
}

void set_log_categories(std::string_view categories) {
  Log& l = log();
  const std::lock_guard lock(l.mutex);
  set_categories(l, categories);
}

void set_log_sink(void (*sink)(std::string_view)) { log().sink.store(sink); }

}  // namespace xylem
