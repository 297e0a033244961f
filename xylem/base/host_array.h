#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "xylem/base/dims.h"
#include "xylem/base/dtype.h"

namespace xylem {

// "f32[2,3]".
std::string shape_string(DType dtype, const Dims& dims);

// A dense array in host memory: dtype, shape, strides and shared bytes. A copy shares the bytes;
// `clone` does not. Thread safety: as a shared_ptr; concurrent reads are safe.
//
// Elements are stored as `dtype_info(dtype).bytes` bytes each, little-endian; complex numbers as
// (real, imaginary); bool as 0 or 1.
class HostArray {
 public:
  // An empty handle, `defined()` is false.
  HostArray() = default;
  // Uninitialised contiguous array (64-byte aligned). Throws UserError if the size overflows.
  HostArray(DType dtype, Dims dims);
  // Takes shared bytes as they are. `strides` in bytes; row-major if empty. `owner` keeps the
  // memory alive. The caller warrants that all addressed bytes exist.
  HostArray(DType dtype, Dims dims, std::shared_ptr<std::byte> bytes, Dims strides = {});

  static HostArray zeros(DType dtype, Dims dims);
  // Copies `bytes`, whose length must be the array's size.
  static HostArray from_bytes(DType dtype, Dims dims, std::span<const std::byte> bytes);
  // Copies C++ values; T's dtype: bool, (u)int8..64, float, double, std::complex of both, and the
  // narrow float types of float_types.h.
  template <class T>
  static HostArray from(std::span<const T> values, Dims dims);
  template <class T>
  static HostArray from(const std::vector<T>& values, Dims dims) {
    return from(std::span<const T>(values), std::move(dims));
  }
  template <class T>
  static HostArray scalar(T value) {
    return from(std::span<const T>(&value, 1), {});
  }

  bool defined() const { return bytes_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  int rank() const { return dims_.ssize(); }
  std::int64_t size() const { return size_; }  // elements
  std::size_t nbytes() const;                  // elements * element bytes
  const Dims& byte_strides() const { return strides_; }
  bool contiguous() const { return contiguous_; }
  std::string type_string() const { return shape_string(dtype_, dims_); }

  // The first element. For writing the handle must be the only one that is read elsewhere.
  const std::byte* data() const { return bytes_.get(); }
  std::byte* data() { return bytes_.get(); }
  const std::shared_ptr<std::byte>& owner() const { return bytes_; }
  // Whether the bytes were allocated by this class, so that their last holder may write to them.
  // Bytes given by the caller may be read-only (a mapped file) or somebody else's.
  bool owns_memory() const;

  // Typed pointer of a contiguous array; throws UserError if T is not this dtype's type.
  template <class T>
  const T* as() const;
  template <class T>
  T* as();
  template <class T>
  std::span<const T> span() const {
    return {as<T>(), static_cast<std::size_t>(size_)};
  }
  template <class T>
  std::vector<T> to_vector() const {
    auto s = span<T>();
    return {s.begin(), s.end()};
  }

  HostArray clone() const;             // contiguous copy of its own
  HostArray to_contiguous() const;     // this, or a contiguous copy
  HostArray reshape(Dims dims) const;  // shares bytes when contiguous
  // Converts with StableHLO's `convert` rules (float_types.h).
  HostArray astype(DType dtype) const;
  // Same dtype, dims and bytes (so NaNs of equal bits are equal and -0 differs from +0).
  bool bit_equal(const HostArray& other) const;
  // Element at a flat row-major index, converted to double (real part of complex).
  double at(std::int64_t flat) const;
  // Like NumPy prints: "[[1. 2.]\n [3. 4.]]".
  std::string to_string() const;

 private:
  DType dtype_ = DType::kF32;
  Dims dims_;
  Dims strides_;
  std::int64_t size_ = 0;
  bool contiguous_ = true;
  std::shared_ptr<std::byte> bytes_;
};

// dtype of a C++ element type: dtype_of<float>() == DType::kF32.
template <class T>
constexpr DType dtype_of();

}  // namespace xylem

#include "xylem/base/internal/host_array_inl.h"
