#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "xylem/base/error.h"

// Looking into programs: jit switched off, NaN and infinity found where they arise, names for parts
// of programs. Scopes belong to the thread that makes them, and end in the reverse order.

namespace xylem {

// A NaN or an infinity that debug_nans or debug_infs found.
class FloatingPointError : public UserError {
 public:
  using UserError::UserError;
};

// While it lives, jitted functions of this thread run op by op as they are written, with concrete
// values, as do bodies of loops and branches outside of transformations. As jax.disable_jit.
class DisableJit {
 public:
  explicit DisableJit(bool on = true);
  ~DisableJit();
  DisableJit(const DisableJit&) = delete;
  DisableJit& operator=(const DisableJit&) = delete;
  static bool active();

 private:
  bool before_;
};

// While it lives, every eager op and every jitted call of this thread is checked for NaN in its
// results. After a jitted call that gave one, the program is run again op by op, in loops and
// branches too, and the first op that made a NaN is named with the line that called it, in a
// FloatingPointError. Nothing is donated meanwhile. The environment variable XYLEM_DEBUG_NANS=1
// switches it on for the process. As jax.debug_nans.
class DebugNans {
 public:
  explicit DebugNans(bool on = true);
  ~DebugNans();
  DebugNans(const DebugNans&) = delete;
  DebugNans& operator=(const DebugNans&) = delete;
  static bool active();

 private:
  bool before_;
};

// The same for infinities; XYLEM_DEBUG_INFS=1.
class DebugInfs {
 public:
  explicit DebugInfs(bool on = true);
  ~DebugInfs();
  DebugInfs(const DebugInfs&) = delete;
  DebugInfs& operator=(const DebugInfs&) = delete;
  static bool active();

 private:
  bool before_;
};

// While it lives, a call of a jitted function that is in its cache traces again and compares: an
// array or number that the function closes over and that has changed since it was traced is a
// UserError with the line that uses it. XYLEM_CHECK_CAPTURES=1 switches it on for the process.
class CheckCaptures {
 public:
  explicit CheckCaptures(bool on = true);
  ~CheckCaptures();
  CheckCaptures(const CheckCaptures&) = delete;
  CheckCaptures& operator=(const CheckCaptures&) = delete;
  static bool active();

 private:
  bool before_;
};

// While it lives, ops that this thread traces carry the name in their location, below the names
// around it: "decoder/attention". Shown by Lowered::as_text(true) and by native text with
// locations; changes neither values nor what is compiled. As jax.named_scope.
class NamedScope {
 public:
  explicit NamedScope(std::string_view name);
  ~NamedScope();
  NamedScope(const NamedScope&) = delete;
  NamedScope& operator=(const NamedScope&) = delete;

 private:
  std::string_view before_;
};
inline NamedScope named_scope(std::string_view name) { return NamedScope(name); }

// f under a named scope. As jax.named_call.
template <class F>
auto named_call(F&& f, std::string name) {
  return [f = std::decay_t<F>(std::forward<F>(f)), name = std::move(name)](auto&&... args) mutable {
    NamedScope scope(name);
    return f(std::forward<decltype(args)>(args)...);
  };
}

namespace internal {

// The names of the scopes around the caller, interned.
std::string_view scope_path();

}  // namespace internal
}  // namespace xylem
