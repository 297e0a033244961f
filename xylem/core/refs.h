#pragma once

#include <memory>

#include "xylem/core/array.h"
#include "xylem/core/indexing.h"

namespace xylem {

namespace internal {
struct RefCell;
}

// Mutable memory in programs, as jax.new_ref: a handle whose copies share one array. Reads and
// writes take effect in the order of the program, eagerly and in traced code: under jit (a ref from
// outside is read anew by every call and holds the new value after it), in loops and branches,
// under grad, vmap and remat. Writes from inside to a ref from outside are refused where they have
// no meaning: in conditions of loops, in custom rules, of values that vmap maps, and under jvp, vjp
// and linearize. Not thread safe.
class Ref {
 public:
  explicit Ref(std::shared_ptr<internal::RefCell> cell) : cell_(std::move(cell)) {}

  DType dtype() const;
  const Dims& shape() const;

  // The contents, or the part that an index names; see indexing.h.
  Array get(SourceLoc where = SourceLoc::current()) const;
  Array get(const Index& a, const Index& b = {}, const Index& c = {}, const Index& d = {}) const;
  // Writes a value, converted to the ref's dtype and broadcast to the part.
  void set(const ArrayArg& value) const;
  void set(const ArrayArg& value, const Index& a, const Index& b = {}, const Index& c = {},
           const Index& d = {}) const;
  // Writes, and returns what was there.
  Array swap(const ArrayArg& value) const;
  Array swap(const ArrayArg& value, const Index& a, const Index& b = {}, const Index& c = {},
             const Index& d = {}) const;
  // Adds to the part.
  void addupdate(const ArrayArg& value) const;
  void addupdate(const ArrayArg& value, const Index& a, const Index& b = {}, const Index& c = {},
                 const Index& d = {}) const;

  const std::shared_ptr<internal::RefCell>& cell() const { return cell_; }

 private:
  std::shared_ptr<internal::RefCell> cell_;
};

// A ref that holds x.
Ref new_ref(const ArrayArg& x);
// The contents, for good: later uses of the ref are UserErrors.
Array freeze(const Ref& ref, SourceLoc where = SourceLoc::current());

}  // namespace xylem
