#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "xylem/base/dtype_cast.h"
#include "xylem/base/error.h"
#include "xylem/base/fp_environment.h"
#include "xylem/base/host_array.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/ops/internal/shape_util.h"

// What reference evaluations share.
//
// Elementwise ops are computed in few C++ types and converted at both ends, so a functor is
// instantiated for at most six of them:
//
//   bool                     bool
//   signed, unsigned ints    int64, uint64; storing wraps to the width
//   floats                   double. Exact for + - * / sqrt of every type up to f32: a result that
//                            was rounded to 53 bits and then to p bits, 53 >= 2p + 2, equals the
//                            one that is rounded once. Elementary functions of f64 use long double.
//   complex                  the type itself, or double / long double parts for elementary ones

namespace xylem::ir::ops {

inline constexpr std::int64_t kChunk = 256;

template <class C>
constexpr DType storage_of() {
  if constexpr (std::is_same_v<C, long double>) {
    return DType::kF64;
  } else if constexpr (std::is_same_v<C, std::complex<long double>>) {
    return DType::kC128;
  } else {
    return dtype_of<C>();
  }
}
template <class C>
inline constexpr bool kIsLong =
    std::is_same_v<C, long double> || std::is_same_v<C, std::complex<long double>>;
template <class C>
using Storage = std::conditional_t<
    std::is_same_v<C, long double>, double,
    std::conditional_t<std::is_same_v<C, std::complex<long double>>, std::complex<double>, C>>;

// n elements of `a` from flat index `at`, converted to C.
template <class C>
void load(const HostArray& a, std::int64_t at, std::int64_t n, C* out) {
  const std::byte* src = a.data() + at * dtype_bytes(a.dtype());
  if constexpr (kIsLong<C>) {
    Storage<C> narrow[kChunk];
    for (std::int64_t i = 0; i < n; i += kChunk) {
      std::int64_t m = std::min(kChunk, n - i);
      convert_elements(a.dtype(), src + i * dtype_bytes(a.dtype()), storage_of<C>(), narrow, m);
      for (std::int64_t k = 0; k < m; ++k) out[i + k] = C(narrow[k]);
    }
  } else {
    convert_elements(a.dtype(), src, storage_of<C>(), out, n);
  }
}

template <class C>
void store(HostArray& a, std::int64_t at, std::int64_t n, const C* in) {
  std::byte* dst = a.data() + at * dtype_bytes(a.dtype());
  if constexpr (kIsLong<C>) {
    Storage<C> narrow[kChunk];
    for (std::int64_t i = 0; i < n; i += kChunk) {
      std::int64_t m = std::min(kChunk, n - i);
      for (std::int64_t k = 0; k < m; ++k) narrow[k] = Storage<C>(in[i + k]);
      convert_elements(storage_of<C>(), narrow, a.dtype(), dst + i * dtype_bytes(a.dtype()), m);
    }
  } else {
    convert_elements(storage_of<C>(), in, a.dtype(), dst, n);
  }
}

// The whole array as values of type C.
template <class C>
std::vector<C> load_all(const HostArray& a) {
  std::vector<C> out(static_cast<std::size_t>(a.size()));
  load(a, 0, a.size(), out.data());
  return out;
}

// Calls fn(C()) with the compute type of dtype; `Set` leaves out kinds the op does not have;
// `Wide` takes long double for f64 and double or long double parts for complex.
template <unsigned Set, bool Wide, class Fn>
void with_compute_type(DType dtype, Fn&& fn) {
  switch (dtype_info(dtype).kind) {
    case DTypeKind::kBool:
      if constexpr ((Set & kElBool) != 0) return fn(bool());
      break;
    case DTypeKind::kSigned:
      if constexpr ((Set & kElSigned) != 0) return fn(std::int64_t());
      break;
    case DTypeKind::kUnsigned:
      if constexpr ((Set & kElUnsigned) != 0) return fn(std::uint64_t());
      break;
    case DTypeKind::kFloat:
      if constexpr ((Set & kElFloat) != 0) {
        if constexpr (Wide) {
          if (dtype == DType::kF64) return fn(static_cast<long double>(0));
        }
        return fn(double());
      }
      break;
    case DTypeKind::kComplex:
      if constexpr ((Set & kElComplex) != 0) {
        if constexpr (Wide) {
          if (dtype == DType::kC128) return fn(std::complex<long double>());
          return fn(std::complex<double>());
        } else {
          if (dtype == DType::kC128) return fn(std::complex<double>());
          return fn(std::complex<float>());
        }
      }
      break;
    case DTypeKind::kFloat0: break;
  }
  throw_internal_error("element kind", dtype_name(dtype), SourceLoc::current());
}

// Calls fn(A()) with the type in which a sum of `result` is taken: each step rounds as the result's
// own arithmetic does; narrow floats are summed wider and rounded once.
template <class Fn>
void with_accumulator(DType result, Fn&& fn) {
  switch (result) {
    case DType::kF32: return fn(float());
    case DType::kC64: return fn(std::complex<float>());
    case DType::kC128: return fn(std::complex<double>());
    default: return fn(double());
  }
}

// A functor made for a dtype: those with a member `bits` get the width.
template <class F>
F make_functor(DType dtype) {
  F f{};
  if constexpr (requires { f.bits; }) f.bits = dtype_bits(dtype);
  return f;
}

template <class C, class F>
void map_unary(const HostArray& a, HostArray& out, F f) {
  using R = std::decay_t<decltype(f(C()))>;
  C x[kChunk];
  R y[kChunk];
  for (std::int64_t i = 0; i < a.size(); i += kChunk) {
    std::int64_t n = std::min(kChunk, a.size() - i);
    load(a, i, n, x);
    for (std::int64_t k = 0; k < n; ++k) y[k] = f(x[k]);
    store(out, i, n, y);
  }
}

template <class C, class F>
void map_binary(const HostArray& a, const HostArray& b, HostArray& out, F f) {
  using R = std::decay_t<decltype(f(C(), C()))>;
  C x[kChunk];
  C y[kChunk];
  R z[kChunk];
  for (std::int64_t i = 0; i < a.size(); i += kChunk) {
    std::int64_t n = std::min(kChunk, a.size() - i);
    load(a, i, n, x);
    load(b, i, n, y);
    for (std::int64_t k = 0; k < n; ++k) z[k] = f(x[k], y[k]);
    store(out, i, n, z);
  }
}

template <class F, unsigned Set, bool Wide = false>
std::vector<HostArray> unary_eval(const EvalCall& call) {
  DefaultFpEnvironment fp;
  const HostArray& a = call.operands[0];
  HostArray out(call.result_types[0].dtype(), a.dims());
  with_compute_type<Set, Wide>(
      a.dtype(), [&](auto c) { map_unary<decltype(c)>(a, out, make_functor<F>(a.dtype())); });
  return {std::move(out)};
}

template <class F, unsigned Set, bool Wide = false>
std::vector<HostArray> binary_eval(const EvalCall& call) {
  DefaultFpEnvironment fp;
  const HostArray& a = call.operands[0];
  HostArray out(call.result_types[0].dtype(), a.dims());
  with_compute_type<Set, Wide>(a.dtype(), [&](auto c) {
    map_binary<decltype(c)>(a, call.operands[1], out, make_functor<F>(a.dtype()));
  });
  return {std::move(out)};
}

// Moves on to the next index of `shape` in row-major order; false after the last.
inline bool next_index(std::vector<std::int64_t>& index, const Dims& shape) {
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (++index[d] < shape[d]) return true;
    index[d] = 0;
  }
  return false;
}

inline std::int64_t flat_index(const std::vector<std::int64_t>& index, const Dims& strides) {
  std::int64_t at = 0;
  for (std::size_t d = 0; d < index.size(); ++d) at += index[d] * strides[d];
  return at;
}

// Calls fn(flat index of the first element of the line) for every line along `axis`.
template <class Fn>
void for_each_line(const Dims& dims, std::int64_t axis, const Fn& fn) {
  Dims outer = dims;
  outer[axis] = 1;
  Dims strides = row_major_strides(dims);
  std::vector<std::int64_t> index(dims.size(), 0);
  std::int64_t lines = num_elements(outer);
  for (std::int64_t i = 0; i < lines; ++i, next_index(index, outer)) fn(flat_index(index, strides));
}

// Value of an integer scalar, clamped to the range of int64.
std::int64_t integer_scalar(const HostArray& a, std::int64_t at = 0);

// One element as a scalar array of its own.
HostArray element(const HostArray& a, std::int64_t at);
void set_element(HostArray& a, std::int64_t at, const HostArray& scalar);

}  // namespace xylem::ir::ops
