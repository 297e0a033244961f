#pragma once

namespace xylem {

// While one exists, SIGINT and SIGTERM set a flag instead of ending the process, so that a loop
// can save and leave. The second such signal acts as before, which ends a process that hangs while
// saving. The former handlers return with the object. At most one at a time; make it on the main
// thread.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
};

// Whether a stop was asked for, by a signal or by request_stop. Any thread; async-signal-safe.
bool stop_requested();
// The signal's number, 0 if it was no signal.
int stop_signal();
// Sets the flag as a signal does. Any thread; async-signal-safe.
void request_stop();
// Clears the flag.
void clear_stop_request();

}  // namespace xylem
