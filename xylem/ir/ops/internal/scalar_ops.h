#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>

// The scalar operations that elementwise ops, reductions and cumulative ops share. Overloads that
// are no templates win over the general ones.

namespace xylem::ir::ops {

inline std::uint64_t bits_of(std::int64_t v) { return static_cast<std::uint64_t>(v); }
inline std::int64_t from_bits(std::uint64_t v) { return static_cast<std::int64_t>(v); }

struct Add {
  bool operator()(bool a, bool b) const { return a || b; }
  std::int64_t operator()(std::int64_t a, std::int64_t b) const {
    return from_bits(bits_of(a) + bits_of(b));
  }
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
};

struct Multiply {
  bool operator()(bool a, bool b) const { return a && b; }
  std::int64_t operator()(std::int64_t a, std::int64_t b) const {
    return from_bits(bits_of(a) * bits_of(b));
  }
  template <class T>
  T operator()(T a, T b) const {
    return a * b;
  }
  template <class T>
  std::complex<T> operator()(std::complex<T> a, std::complex<T> b) const {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }
};

template <class T>
bool less(std::complex<T> a, std::complex<T> b) {
  return a.real() == b.real() ? a.imag() < b.imag() : a.real() < b.real();
}
// Of floats of any width -0 is less than +0.
template <class T>
bool less(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a == b ? std::signbit(a) && !std::signbit(b) : a < b;
  return a < b;
}
template <class T>
bool is_nan(T a) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(a);
  return false;
}
template <class T>
bool is_nan(std::complex<T> a) {
  return std::isnan(a.real()) || std::isnan(a.imag());
}

struct Maximum {
  template <class T>
  T operator()(T a, T b) const {
    if (is_nan(a)) return a;
    return is_nan(b) || less(a, b) ? b : a;
  }
};
struct Minimum {
  template <class T>
  T operator()(T a, T b) const {
    if (is_nan(a)) return a;
    return is_nan(b) || less(b, a) ? b : a;
  }
};

struct And {
  bool operator()(bool a, bool b) const { return a && b; }
  template <class T>
  T operator()(T a, T b) const {
    return a & b;
  }
};
struct Or {
  bool operator()(bool a, bool b) const { return a || b; }
  template <class T>
  T operator()(T a, T b) const {
    return a | b;
  }
};
struct Xor {
  bool operator()(bool a, bool b) const { return a != b; }
  template <class T>
  T operator()(T a, T b) const {
    return a ^ b;
  }
};

}  // namespace xylem::ir::ops
