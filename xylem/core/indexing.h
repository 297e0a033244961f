#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "xylem/core/array.h"
#include "xylem/core/internal/function_ref.h"

// Reading and updating parts of arrays, with NumPy's rules: integers drop their axis, slices keep
// it, arrays of integers broadcast together and their axes stand where the first of them stood, or
// in front if a slice or a new axis separates them. Entries that are missing at the end are
// idx::all. An array of bools of rank r stands for r axes; its contents must be known, so it cannot
// be traced under jit.
//
//   x(0)                      the first row
//   x(idx::all, -1)           the last column
//   x(idx::slice(1, 9, 2))    rows 1, 3, 5, 7
//   x(rows, columns)          the elements (rows[i], columns[i])
//   x.at(rows).add(v)         x with v added to some rows
//
// Negative indices count from the end. A number out of range is an error; under Numerics::jax it is
// moved to the next element, as arrays' contents always are.

namespace xylem {
namespace idx {

// A whole axis, a new axis of size 1, all axes that are not named.
inline const Index all{Index::Kind::kSlice};
inline const Index newaxis{Index::Kind::kNewAxis};
inline const Index ellipsis{Index::Kind::kEllipsis};
// An open end of a slice.
inline constexpr std::nullopt_t none = std::nullopt;

// start:stop:step. Ends count from the end if negative; std::nullopt (idx::none) leaves one open.
Index slice(std::optional<std::int64_t> start, std::optional<std::int64_t> stop,
            std::int64_t step = 1, SourceLoc where = SourceLoc::current());

}  // namespace idx

// What becomes of indices out of range.
enum class IndexMode : std::uint8_t {
  kDefault,          // reads: the nearest in range, without gradient; updates: kDrop; take: kFill
  kFill,             // reads give a fill value, updates are dropped
  kDrop,             // the same
  kClip,             // the nearest index in range
  kWrap,             // modulo the size (take only)
  kPromiseInBounds,  // the caller promises that there are none: as kDefault of reads and updates
};

struct GetOptions {
  IndexMode mode = IndexMode::kDefault;
  bool indices_are_sorted = false, unique_indices = false;
  // Of kFill; NaN for floats, the least number of signed and the greatest of unsigned integers,
  // true for bools if not given.
  std::optional<double> fill_value = std::nullopt;
};

struct UpdateOptions {
  IndexMode mode = IndexMode::kDefault;
  // Promises: they allow derivatives of multiply and apply.
  bool indices_are_sorted = false, unique_indices = false;
};

// A part of an array. Its functions return the whole array with that part changed; values broadcast
// to the part and are converted to the array's dtype. Where an index occurs more than once, set
// keeps one of its values (the last on the CPU) and the others apply all of them.
class IndexedArray {
 public:
  IndexedArray(Array x, std::vector<Index> index) : x_(std::move(x)), index_(std::move(index)) {}

  Array get(const GetOptions& options = {}) const;
  Array set(const ArrayArg& v, const UpdateOptions& options = {}) const;
  Array add(const ArrayArg& v, const UpdateOptions& options = {}) const;
  Array subtract(const ArrayArg& v, const UpdateOptions& options = {}) const;
  Array multiply(const ArrayArg& v, const UpdateOptions& options = {}) const;
  Array mul(const ArrayArg& v, const UpdateOptions& options = {}) const {
    return multiply(v, options);
  }
  Array min(const ArrayArg& v, const UpdateOptions& options = {}) const;
  Array max(const ArrayArg& v, const UpdateOptions& options = {}) const;
  // These two give the dtype of the division and power of the arrays.
  Array divide(const ArrayArg& v, const UpdateOptions& options = {}) const;
  Array power(const ArrayArg& v, const UpdateOptions& options = {}) const;
  // f of each element of the part, once for each occurrence of its index. f is traced on a scalar.
  template <class F>
  Array apply(F&& f, const UpdateOptions& options = {}) const {
    return apply_flat([&f](const Array& element) { return Array(f(element)); }, options);
  }

 private:
  Array apply_flat(internal::FunctionRef<Array(const Array&)> f,
                   const UpdateOptions& options) const;

  Array x_;
  std::vector<Index> index_;
};

}  // namespace xylem
