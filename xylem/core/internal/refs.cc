#include "xylem/core/internal/refs.h"

#include <fmt/format.h>

#include <algorithm>

#include "xylem/base/error.h"
#include "xylem/core/internal/flat.h"
#include "xylem/core/numpy.h"
#include "xylem/core/refs.h"

namespace xylem {
namespace internal {

// The contents of a ref in each of the contexts that are open: where it was made at the bottom,
// above it the traces, one inside the other, that touched it.
struct RefCell {
  struct Level {
    std::shared_ptr<Trace> trace;  // null: none
    Array init, value;
    bool written = false;
  };
  ir::Type type;
  bool frozen = false;
  std::vector<Level> levels;
};

namespace {

// Refs by the traces that have a level in them.
struct Opened {
  const Trace* trace;
  RefCellPtr cell;
};
thread_local std::vector<Opened> opened;
thread_local std::vector<RefTouch> last_touches;

// The level of the current context. Traces between it and the outer level get one too: what an
// inner body reads may change with every step of the outer one.
RefCell::Level& level(const RefCellPtr& cell, SourceLoc where) {
  if (cell->frozen)
    throw UserError(ErrorParts{"ref", "a ref that is not frozen", "freeze ended it",
                               "Use the array that freeze returned"},
                    where);
  std::span<const std::shared_ptr<Trace>> live = live_traces();
  std::size_t next = 0;
  if (const auto& top = cell->levels.back().trace) {
    auto it = std::find(live.begin(), live.end(), top);
    if (it == live.end())
      throw UserError(
          ErrorParts{"ref", fmt::format("uses inside of '{}', where it was made", top->name()),
                     "it is used after that ended", "Return freeze(ref) instead of the ref"},
          where);
    next = static_cast<std::size_t>(it - live.begin()) + 1;
  }
  for (; next < live.size(); ++next) {
    RefCell::Level l;
    l.trace = live[next];
    // A node of its own, so that the trace does not take it for another capture of the same array.
    l.init = Array(std::make_shared<ArrayNode>(*cell->levels.back().value.node()));
    l.value = l.trace->wrap(l.trace->use(l.init, where), false);
    opened.push_back({l.trace.get(), cell});
    cell->levels.push_back(std::move(l));
  }
  return cell->levels.back();
}

}  // namespace

Array ref_read(const RefCellPtr& cell, SourceLoc where) { return level(cell, where).value; }

void ref_write(const RefCellPtr& cell, Array value, SourceLoc where) {
  RefCell::Level& l = level(cell, where);
  if (value.node()->literal.defined()) value = make_concrete(buffer_of(value, where));
  l.value = with_weak(value, false);
  l.written = true;
}

RefScope::RefScope(std::shared_ptr<Trace> trace) : trace_(std::move(trace)) {}
RefScope::~RefScope() {
  if (open_) drop();
}

void RefScope::drop() {
  for (std::size_t i = opened.size(); i-- > 0;) {
    if (opened[i].trace != trace_.get()) continue;
    std::vector<RefCell::Level>& levels = opened[i].cell->levels;
    while (!levels.empty() && levels.back().trace == trace_) levels.pop_back();
    opened.erase(opened.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

std::vector<RefTouch> RefScope::leave(std::vector<Array>& last) {
  std::vector<RefTouch> touches;
  for (const Opened& o : opened) {
    if (o.trace != trace_.get()) continue;
    const RefCell::Level& l = o.cell->levels.back();
    touches.push_back({o.cell, l.init, l.written});
    if (l.written) last.push_back(l.value);
  }
  drop();
  open_ = false;
  return touches;
}

std::vector<RefTouch> take_ref_touches() { return std::exchange(last_touches, {}); }
void put_ref_touches(std::vector<RefTouch> touches) { last_touches = std::move(touches); }

std::size_t num_writes(const std::vector<RefTouch>& touches) {
  return static_cast<std::size_t>(
      std::count_if(touches.begin(), touches.end(), [](const RefTouch& t) { return t.written; }));
}

void write_back(const std::vector<RefTouch>& touches, std::size_t n, std::vector<Array>& all,
                SourceLoc where) {
  std::size_t next = n;
  for (const RefTouch& t : touches)
    if (t.written) ref_write(t.cell, all.at(next++), where);
  all.resize(n);
}

void refuse_ref_write(std::string_view what, SourceLoc where) {
  throw UserError(ErrorParts{fmt::format("{}: write to a ref from outside", what),
                             "a function that only reads refs from outside", "it writes to one",
                             "Return the new value, or make the ref inside"},
                  where);
}

}  // namespace internal

using internal::CallSite;

DType Ref::dtype() const { return cell_->type.dtype(); }
const Dims& Ref::shape() const { return cell_->type.dims(); }

Array Ref::get(SourceLoc where) const {
  return internal::ref_read(cell_, CallSite::outermost(where));
}
Array Ref::get(const Index& a, const Index& b, const Index& c, const Index& d) const {
  return get(a.where)(a, b, c, d);
}

void Ref::set(const ArrayArg& value) const {
  Array v = value.array.astype(dtype(), value.where);
  if (v.shape() != shape()) v = broadcast_to(v, shape());
  internal::ref_write(cell_, v, CallSite::outermost(value.where));
}
void Ref::set(const ArrayArg& value, const Index& a, const Index& b, const Index& c,
              const Index& d) const {
  set(get(value.where).at(a, b, c, d).set(value));
}

Array Ref::swap(const ArrayArg& value) const {
  Array before = get(value.where);
  set(value);
  return before;
}
Array Ref::swap(const ArrayArg& value, const Index& a, const Index& b, const Index& c,
                const Index& d) const {
  Array before = get(value.where)(a, b, c, d);
  set(value, a, b, c, d);
  return before;
}

void Ref::addupdate(const ArrayArg& value) const { set(get(value.where) + value); }
void Ref::addupdate(const ArrayArg& value, const Index& a, const Index& b, const Index& c,
                    const Index& d) const {
  set(get(value.where).at(a, b, c, d).add(value));
}

Ref new_ref(const ArrayArg& x) {
  SourceLoc where = CallSite::outermost(x.where);
  auto cell = std::make_shared<internal::RefCell>();
  Array value = internal::with_weak(x.array, false);
  if (!value.defined())
    throw UserError(ErrorParts{"new_ref", "an array with contents", "the handle is undefined",
                               "Assign the array before making a ref of it"},
                    where);
  internal::Trace* trace = internal::current_trace();
  cell->type = value.node()->type;
  internal::RefCell::Level bottom;
  if (trace) {
    bottom.trace = trace->shared_from_this();
    value = trace->wrap(trace->use(value, where), false);
  } else if (value.node()->literal.defined()) {
    value = internal::make_concrete(internal::buffer_of(value, where));
  }
  bottom.value = value;
  cell->levels.push_back(std::move(bottom));
  return Ref(std::move(cell));
}

Array freeze(const Ref& ref, SourceLoc where) {
  Array value = ref.get(where);
  ref.cell()->frozen = true;
  return value;
}

}  // namespace xylem
