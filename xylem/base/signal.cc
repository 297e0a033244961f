#include "xylem/base/signal.h"

#include <atomic>
#include <csignal>

#include "xylem/base/error.h"

namespace xylem {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};
constexpr int kByCall = -1;

// 0: none, kByCall: request_stop, otherwise the signal.
std::atomic<int> g_stop{0};
static_assert(std::atomic<int>::is_always_lock_free);
std::atomic<bool> g_installed{false};
struct sigaction g_former[2];

void on_signal(int signal) {
  if (g_stop.exchange(signal) == 0) return;
  // The second one: as if nobody had caught it.
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

StopSignals::StopSignals() {
  XYLEM_CHECK(!g_installed.exchange(true), "only one StopSignals may exist at a time");
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  // Interrupted system calls go on: who waits must look at the flag himself.
  action.sa_flags = SA_RESTART;
  for (int i = 0; i < 2; ++i) sigaction(kSignals[i], &action, &g_former[i]);
}

StopSignals::~StopSignals() {
  for (int i = 0; i < 2; ++i) sigaction(kSignals[i], &g_former[i], nullptr);
  g_installed.store(false);
}

bool stop_requested() { return g_stop.load(std::memory_order_relaxed) != 0; }

int stop_signal() {
  const int s = g_stop.load();
  return s == kByCall ? 0 : s;
}

void request_stop() {
  int none = 0;
  g_stop.compare_exchange_strong(none, kByCall);
}

void clear_stop_request() { g_stop.store(0); }

}  // namespace xylem
