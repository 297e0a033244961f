#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace xylem {

// Receives the marks of all threads while it is registered.
class TraceCollector {
 public:
  virtual ~TraceCollector() = default;
  // A scope was entered on the calling thread; what is returned is handed to `end`. `name` lives
  // during the call only.
  virtual std::uint64_t begin(std::string_view name) = 0;
  // The scope was left, on the same thread.
  virtual void end(std::uint64_t token) = 0;
};

namespace internal {
extern std::atomic<TraceCollector*> g_trace_collector;
}

// Registers a collector, or none (null), and returns the former one. Scopes that are open still
// end with the collector they began with: keep it until they have ended.
TraceCollector* set_trace_collector(TraceCollector* collector);

inline bool tracing() {
  return internal::g_trace_collector.load(std::memory_order_relaxed) != nullptr;
}

// Marks the scope it lives in: `TraceMark mark("compile");`. Costs one load while nobody collects.
class TraceMark {
 public:
  explicit TraceMark(std::string_view name)
      : collector_(internal::g_trace_collector.load(std::memory_order_acquire)) {
    if (collector_ != nullptr) [[unlikely]]
      token_ = collector_->begin(name);
  }
  ~TraceMark() {
    if (collector_ != nullptr) [[unlikely]]
      collector_->end(token_);
  }
  TraceMark(const TraceMark&) = delete;
  TraceMark& operator=(const TraceMark&) = delete;

 private:
  TraceCollector* collector_;
  std::uint64_t token_ = 0;
};

}  // namespace xylem
