#include "xylem/base/trace_mark.h"

namespace xylem {
namespace internal {
std::atomic<TraceCollector*> g_trace_collector{nullptr};
}

TraceCollector* set_trace_collector(TraceCollector* collector) {
  return internal::g_trace_collector.exchange(collector, std::memory_order_acq_rel);
}

}  // namespace xylem
