#pragma once

// Templates of host_array.h.

#include <complex>
#include <type_traits>
#include <utility>

#include "xylem/base/float_types.h"
#include "xylem/base/host_array.h"

namespace xylem {
namespace internal {

template <class T>
inline constexpr bool kNoDType = false;

template <class T>
concept HasDType = requires {
  { T::kDType } -> std::convertible_to<DType>;
};

[[noreturn]] void throw_wrong_element_type(DType wanted, DType have);
[[noreturn]] void throw_not_contiguous(const HostArray& a);

}  // namespace internal

template <class T>
constexpr DType dtype_of() {
  using U = std::remove_cv_t<T>;
  constexpr bool is_char_like = std::is_same_v<U, wchar_t> || std::is_same_v<U, char8_t> ||
                                std::is_same_v<U, char16_t> || std::is_same_v<U, char32_t>;
  if constexpr (internal::HasDType<U>) {
    return U::kDType;
  } else if constexpr (std::is_same_v<U, bool>) {
    return DType::kBool;
  } else if constexpr (std::is_integral_v<U> && !is_char_like) {
    constexpr int log = sizeof(U) == 1 ? 0 : sizeof(U) == 2 ? 1 : sizeof(U) == 4 ? 2 : 3;
    return static_cast<DType>(static_cast<int>(std::is_signed_v<U> ? DType::kI8 : DType::kU8) +
                              log);
  } else if constexpr (std::is_same_v<U, float>) {
    return DType::kF32;
  } else if constexpr (std::is_same_v<U, double>) {
    return DType::kF64;
  } else if constexpr (std::is_same_v<U, std::complex<float>>) {
    return DType::kC64;
  } else if constexpr (std::is_same_v<U, std::complex<double>>) {
    return DType::kC128;
  } else {
    static_assert(internal::kNoDType<U>, "this C++ type is not an element type of arrays");
  }
}

template <class T>
HostArray HostArray::from(std::span<const T> values, Dims dims) {
  return from_bytes(dtype_of<T>(), std::move(dims), std::as_bytes(values));
}

template <class T>
const T* HostArray::as() const {
  if (dtype_ != dtype_of<T>()) internal::throw_wrong_element_type(dtype_of<T>(), dtype_);
  if (!contiguous_) internal::throw_not_contiguous(*this);
  return reinterpret_cast<const T*>(bytes_.get());
}

template <class T>
T* HostArray::as() {
  return const_cast<T*>(std::as_const(*this).template as<T>());
}

}  // namespace xylem
