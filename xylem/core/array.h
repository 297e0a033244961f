#pragma once

#include <complex>
#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "xylem/base/dims.h"
#include "xylem/base/dtype.h"
#include "xylem/base/host_array.h"
#include "xylem/base/location.h"

namespace xylem {

namespace internal {
struct ArrayNode;
}

class Array;
class IndexedArray;

// One entry of an index expression, x(entry, …): an integer, a slice, a new axis, an ellipsis, or
// an array of integers or bools. indexing.h has the tokens (idx::all, …) and the rules.
class Index {
 public:
  enum class Kind : std::uint8_t { kAbsent, kInteger, kSlice, kNewAxis, kEllipsis, kArray };

  Index() = default;
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
      Index(T i, SourceLoc w = SourceLoc::current())
      : kind(Kind::kInteger), start(static_cast<std::int64_t>(i)), where(w) {}
  template <class T>
  requires std::is_same_v<T, bool> Index(T mask, SourceLoc w = SourceLoc::current())
      : Index(scalar_mask(mask, w)) {}
  Index(const Array& a, SourceLoc w = SourceLoc::current());
  explicit Index(Kind k) : kind(k) {}

  Kind kind = Kind::kAbsent;
  bool has_start = false, has_stop = false;    // of a slice
  std::int64_t start = 0, stop = 0, step = 1;  // `start` is the integer, too
  std::shared_ptr<const internal::ArrayNode> array;
  SourceLoc where;

 private:
  static Index scalar_mask(bool mask, SourceLoc w);
};

// A multidimensional array: a concrete buffer on a device, a value of a program being traced, or a
// shape without contents (inside eval_shape). A copy shares the contents; contents never change.
// Thread safety: as a shared_ptr; concrete arrays may be used from any thread, traced ones only
// from the thread that traces.
class Array {
 public:
  // An undefined handle; most uses throw UserError.
  Array() = default;
  // Copies (or shares, where alignment allows) host memory to the default device.
  Array(const HostArray& host);
  // Copies a vector or span: a 1-d array of the element type's dtype.
  template <class T>
  explicit Array(const std::vector<T>& values)
      : Array(HostArray::from(values, {static_cast<std::int64_t>(values.size())})) {}
  // Copies a span, row-major; one axis if no shape is given.
  template <class T>
  explicit Array(std::span<const T> values)
      : Array(HostArray::from(values, {static_cast<std::int64_t>(values.size())})) {}
  template <class T>
  Array(std::span<const T> values, Dims shape) : Array(HostArray::from(values, std::move(shape))) {}
  explicit Array(std::shared_ptr<const internal::ArrayNode> node) : node_(std::move(node)) {}

  bool defined() const { return node_ != nullptr; }
  DType dtype() const;
  const Dims& shape() const;
  int ndim() const { return shape().ssize(); }
  std::int64_t size() const { return num_elements(shape()); }
  std::int64_t dim(int axis) const;  // negative axes count from the end
  // A weak type gives way in promotion, as Python scalars do in JAX.
  bool weak_type() const;
  bool is_concrete() const;
  bool is_traced() const;
  // "f32[2,3]".
  std::string type_string() const;

  // The contents in host memory; waits for them. Under grad, jvp and vjp outside jit a traced value
  // is evaluated; under jit, vmap and loop bodies this throws ConcretizationError.
  HostArray to_host(SourceLoc where = SourceLoc::current()) const;
  // The single element, converted to T. UserError if size() != 1.
  template <class T>
  requires std::is_arithmetic_v<T> T item(SourceLoc where = SourceLoc::current())
  const {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      if (is_integer(dtype())) return static_cast<T>(item_int64(where));
    return static_cast<T>(item_double(where));
  }
  explicit operator bool() const { return item_double(SourceLoc::current()) != 0; }
  template <class T>
  std::vector<T> to_vector(SourceLoc where = SourceLoc::current()) const {
    return to_host(where).template to_vector<T>();
  }
  // Waits until the contents are there; throws the error of the computation.
  const Array& block_until_ready() const;
  // Printed as NumPy prints. A traced array prints its type.
  std::string to_string() const;

  // Same contents, other dtype (StableHLO's convert rules) or shape (-1 once: inferred).
  Array astype(DType dtype, SourceLoc where = SourceLoc::current()) const;
  Array reshape(Dims shape, SourceLoc where = SourceLoc::current()) const;
  // Axes reversed, or permuted.
  Array T(SourceLoc where = SourceLoc::current()) const;
  Array transpose(Dims permutation, SourceLoc where = SourceLoc::current()) const;
  // x[i] along the first axis.
  Array operator[](std::int64_t i) const;
  // x(i, idx::all, idx::slice(a, b), mask, …): NumPy's basic and advanced indexing; see indexing.h.
  Array operator()(const Index& a, const Index& b = {}, const Index& c = {}, const Index& d = {},
                   const Index& e = {}, const Index& f = {}, const Index& g = {},
                   const Index& h = {}) const;
  // The part of the array that an index names, for x.at(i).set(v) and its kin; see indexing.h.
  IndexedArray at(const Index& a, const Index& b = {}, const Index& c = {}, const Index& d = {},
                  const Index& e = {}, const Index& f = {}, const Index& g = {},
                  const Index& h = {}) const;

  const std::shared_ptr<const internal::ArrayNode>& node() const { return node_; }

 private:
  double item_double(SourceLoc where) const;
  // Of an integer array; u64 as the same bits.
  std::int64_t item_int64(SourceLoc where) const;
  std::shared_ptr<const internal::ArrayNode> node_;
};

// An undefined array is an empty leaf of a tree (the gradient of an integer).
inline bool is_empty_leaf(const Array& a) { return !a.defined(); }

// How functions take arrays: converts from arrays and C++ scalars (weakly typed) and remembers the
// place of the call.
struct ArrayArg {
  Array array;
  SourceLoc where;

  ArrayArg(const Array& a, SourceLoc w = SourceLoc::current()) : array(a), where(w) {}
  ArrayArg(const HostArray& a, SourceLoc w = SourceLoc::current()) : array(a), where(w) {}
  template <class S>
  requires std::is_arithmetic_v<S> ArrayArg(S scalar, SourceLoc w = SourceLoc::current())
      : ArrayArg(make_scalar(scalar), w) {}
  ArrayArg(std::complex<double> scalar, SourceLoc w = SourceLoc::current());

 private:
  template <class S>
  static Array make_scalar(S s) {
    if constexpr (std::is_same_v<S, bool>)
      return bool_scalar(s);
    else if constexpr (std::is_integral_v<S>)
      return int_scalar(static_cast<std::int64_t>(s));
    else
      return float_scalar(static_cast<double>(s));
  }
  static Array bool_scalar(bool v);
  static Array int_scalar(std::int64_t v);
  static Array float_scalar(double v);
};

Array operator+(const ArrayArg& x, const ArrayArg& y);
Array operator-(const ArrayArg& x, const ArrayArg& y);
Array operator*(const ArrayArg& x, const ArrayArg& y);
Array operator/(const ArrayArg& x, const ArrayArg& y);  // true division
Array operator%(const ArrayArg& x, const ArrayArg& y);  // sign of the divisor, as NumPy
Array operator-(const ArrayArg& x);
Array operator==(const ArrayArg& x, const ArrayArg& y);
Array operator!=(const ArrayArg& x, const ArrayArg& y);
Array operator<(const ArrayArg& x, const ArrayArg& y);
Array operator<=(const ArrayArg& x, const ArrayArg& y);
Array operator>(const ArrayArg& x, const ArrayArg& y);
Array operator>=(const ArrayArg& x, const ArrayArg& y);
Array operator&(const ArrayArg& x, const ArrayArg& y);
Array operator|(const ArrayArg& x, const ArrayArg& y);
Array operator^(const ArrayArg& x, const ArrayArg& y);
Array operator~(const ArrayArg& x);
Array operator<<(const ArrayArg& x, const ArrayArg& y);
Array operator>>(const ArrayArg& x, const ArrayArg& y);
Array& operator+=(Array& x, const ArrayArg& y);
Array& operator-=(Array& x, const ArrayArg& y);
Array& operator*=(Array& x, const ArrayArg& y);
Array& operator/=(Array& x, const ArrayArg& y);

}  // namespace xylem
