#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "xylem/core/internal/trace.h"

namespace xylem::internal {

struct RefCell;
using RefCellPtr = std::shared_ptr<RefCell>;

// A ref from outside that a trace read or wrote.
struct RefTouch {
  RefCellPtr cell;
  Array init;            // its contents outside when the trace began: a capture of the trace
  bool written = false;  // then its last contents are a result behind the trace's own
};

// The contents in the current context, and new ones.
Array ref_read(const RefCellPtr& cell, SourceLoc where);
void ref_write(const RefCellPtr& cell, Array value, SourceLoc where);

// Ends what refs know of a trace. `leave` gives what it touched, with the last contents of the
// written ones; without it the destructor drops all, after an error.
class RefScope {
 public:
  explicit RefScope(std::shared_ptr<Trace> trace);
  ~RefScope();
  RefScope(const RefScope&) = delete;
  RefScope& operator=(const RefScope&) = delete;
  std::vector<RefTouch> leave(std::vector<Array>& last);

 private:
  void drop();
  std::shared_ptr<Trace> trace_;
  bool open_ = true;
};

// What the trace that ended last touched; taken once.
std::vector<RefTouch> take_ref_touches();
void put_ref_touches(std::vector<RefTouch> touches);

// Writes results behind the first `n` of `all` to their refs, and cuts them off.
void write_back(const std::vector<RefTouch>& touches, std::size_t n, std::vector<Array>& all,
                SourceLoc where);
std::size_t num_writes(const std::vector<RefTouch>& touches);
[[noreturn]] void refuse_ref_write(std::string_view what, SourceLoc where);

// The live traces of this thread, outermost first.
std::span<const std::shared_ptr<Trace>> live_traces();

}  // namespace xylem::internal
