#include <fmt/format.h>

#include <cmath>

#include "xylem/base/error.h"
#include "xylem/core/internal/flat.h"
#include "xylem/core/numpy.h"
#include "xylem/core/numpy/ops.h"

namespace xylem {

Array zeros(Dims shape, DType dtype) { return internal::constant(dtype, shape, 0); }
Array ones(Dims shape, DType dtype) { return internal::constant(dtype, shape, 1); }

Array full(Dims shape, const ArrayArg& value, std::optional<DType> dtype) {
  Array v = dtype ? value.array.astype(*dtype, value.where) : value.array;
  return internal::broadcast(v, shape, value.where);
}

Array zeros_like(const ArrayArg& x, std::optional<DType> dtype) {
  Array r = zeros(x.array.shape(), dtype.value_or(x.array.dtype()));
  return internal::with_weak(r, !dtype && x.array.weak_type());
}
Array ones_like(const ArrayArg& x, std::optional<DType> dtype) {
  Array r = ones(x.array.shape(), dtype.value_or(x.array.dtype()));
  return internal::with_weak(r, !dtype && x.array.weak_type());
}
Array full_like(const ArrayArg& x, const ArrayArg& value) {
  return internal::with_weak(full(x.array.shape(), value, x.array.dtype()), x.array.weak_type());
}

Array arange(std::int64_t stop) { return arange(0, stop); }

Array arange(std::int64_t start, std::int64_t stop, std::int64_t step, DType dtype) {
  if (step == 0)
    throw_user_error({"arange", "the step must not be zero", "given 0", "Give a step"});
  std::int64_t span = step > 0 ? stop - start : start - stop;
  std::int64_t stride = step > 0 ? step : -step;
  std::int64_t n = span <= 0 ? 0 : (span + stride - 1) / stride;
  // Negative steps and starts have no unsigned form.
  if (is_unsigned_int(dtype) && (step < 0 || start < 0))
    return arange(start, stop, step, DType::kI64).astype(dtype);
  Array i = internal::iota(dtype, {n}, 0);
  if (step != 1) i = multiply(i, internal::constant(dtype, {}, static_cast<double>(step)));
  if (start != 0) i = add(i, internal::constant(dtype, {}, static_cast<double>(start)));
  return i;
}

Array internal::float_range(double start, double stop, double step, std::optional<DType> dtype) {
  if (step == 0)
    throw_user_error({"arange", "the step must not be zero", "given 0", "Give a step"});
  const double length = std::ceil((stop - start) / step);
  if (!(length < 0x1p31))
    throw_user_error({"arange", "fewer than 2^31 elements",
                      fmt::format("{} to {} by {}", start, stop, step), "Give other bounds"});
  std::vector<double> v(length > 0 ? static_cast<std::size_t>(length) : 0);
  const DType to = dtype.value_or(DType::kF32);
  // NumPy, and so JAX, takes the step between the first two elements in the result's type.
  if (to == DType::kF32) {
    const auto first = static_cast<float>(start);
    const float by = static_cast<float>(start + step) - first;
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = first + static_cast<float>(i) * by;
  } else {
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = start + static_cast<double>(i) * step;
  }
  return Array(HostArray::from(v, {static_cast<std::int64_t>(v.size())}).astype(to));
}

Array linspace(double start, double stop, std::int64_t num, bool endpoint) {
  if (num < 0)
    throw_user_error({"linspace", "the number of points must not be negative",
                      fmt::format("given {}", num), "Give 0 or more"});
  std::int64_t div = endpoint ? num - 1 : num;
  if (num == 0) return zeros({0});
  if (div <= 0) return full({num}, start, DType::kF32);
  // As jnp.linspace: a blend of the ends, the last point exactly.
  Array step = divide(internal::iota(DType::kF32, {num}, 0), static_cast<double>(div));
  Array blend = add(multiply(start, subtract(1.0, step)), multiply(stop, step));
  if (!endpoint) return blend;
  return where(equal(internal::iota(DType::kI32, {num}, 0), static_cast<int>(num - 1)), stop,
               blend);
}

Array tri(std::int64_t n, std::int64_t m, int k, DType dtype) {
  Array row = internal::iota(DType::kI32, {n, m}, 0),
        column = internal::iota(DType::kI32, {n, m}, 1);
  return greater_equal(add(row, k), column).astype(dtype);
}

Array eye(std::int64_t n, std::int64_t m, int k, DType dtype) {
  if (m < 0) m = n;
  Array row = internal::iota(DType::kI32, {n, m}, 0),
        column = internal::iota(DType::kI32, {n, m}, 1);
  return equal(add(row, k), column).astype(dtype);
}

Array array(std::initializer_list<double> values, DType dtype) {
  std::vector<double> v(values);
  return Array(HostArray::from(v, {static_cast<std::int64_t>(v.size())}).astype(dtype));
}

}  // namespace xylem
