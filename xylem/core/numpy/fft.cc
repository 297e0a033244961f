#include "xylem/core/fft.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "xylem/base/error.h"
#include "xylem/core/internal/trace.h"
#include "xylem/core/numpy/ops.h"
#include "xylem/ir/ops/linalg.h"

namespace xylem::fft {

using internal::CallSite;
using ir::Attr;
using ir::Attrs;

namespace {

bool wide(DType t) { return t == DType::kF64 || t == DType::kC128; }

// The axis cut or padded with zeros to n.
Array fitted(const Array& x, int axis, std::int64_t n) {
  std::int64_t have = x.shape()[axis];
  if (have == n) return x;
  if (have > n) {
    Dims hi = x.shape();
    hi[axis] = n;
    return internal::slice(x, Dims(hi.size(), 0), hi, Dims(hi.size(), 1), {});
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> widths(x.shape().size());
  widths[static_cast<std::size_t>(axis)].second = n - have;
  return pad(x, widths);
}

// The factor that a norm adds to the op's own (none forward, 1 / n inverse).
Array scaled(const Array& x, std::string_view norm, bool inverse, double n) {
  if (norm == "backward") return x;
  if (norm == "ortho") return inverse ? x * std::sqrt(n) : x / std::sqrt(n);
  if (norm == "forward") return inverse ? x * n : x / n;
  throw_user_error({"fft: norm", "backward, ortho or forward", std::string(norm), "Choose one"},
                   CallSite::outermost({}));
}

Array run(const Array& x, const char* type, const Dims& lengths) {
  return internal::apply_one(
      ir::ops::kFft, std::span<const Array>(&x, 1),
      Attrs{{"fft_type", Attr(ir::EnumAttr(type))}, {"fft_length", Attr(lengths)}});
}

// One axis. Real types go through the complex ones but for rfft and irfft.
Array along(const ArrayArg& x, const char* what, const char* type, std::optional<std::int64_t> n,
            int axis, std::string_view norm) {
  CallSite site(x.where);
  std::string kind = type;
  DType t = x.array.dtype();
  if (kind == "RFFT" && is_complex(t))
    throw_user_error({what, "a real array is needed", x.array.type_string(), "Use fft"},
                     CallSite::outermost(x.where));
  DType real_type = wide(t) ? DType::kF64 : DType::kF32;
  DType complex_type = wide(t) ? DType::kC128 : DType::kC64;
  Array a = x.array.astype(kind == "RFFT" ? real_type : complex_type);
  int ax = static_cast<int>(AxisArg(axis).resolve(a.ndim(), what, x.where)[0]);
  std::int64_t have = a.shape()[ax];
  std::int64_t length = n.value_or(kind == "IRFFT" ? 2 * (have - 1) : have);
  if (length < 1)
    throw_user_error({what, "at least one point", fmt::format("n = {}", length),
                      "Give a length, or an array with elements along the axis"},
                     CallSite::outermost(x.where));
  a = fitted(a, ax, kind == "IRFFT" ? length / 2 + 1 : length);
  a = moveaxis(a, ax, -1);
  Array r = moveaxis(run(a, type, {length}), -1, ax);
  bool inverse = kind == "IFFT" || kind == "IRFFT";
  return scaled(r, norm, inverse, static_cast<double>(length));
}

std::vector<int> axes_of(const Array& x, const std::vector<int>& axes) {
  if (!axes.empty()) return axes;
  std::vector<int> all;
  for (int i = 0; i < x.ndim(); ++i) all.push_back(i);
  return all;
}

}  // namespace

Array fft(const ArrayArg& x, std::optional<std::int64_t> n, int axis, std::string_view norm) {
  return along(x, "fft", "FFT", n, axis, norm);
}
Array ifft(const ArrayArg& x, std::optional<std::int64_t> n, int axis, std::string_view norm) {
  return along(x, "ifft", "IFFT", n, axis, norm);
}
Array rfft(const ArrayArg& x, std::optional<std::int64_t> n, int axis, std::string_view norm) {
  return along(x, "rfft", "RFFT", n, axis, norm);
}
Array irfft(const ArrayArg& x, std::optional<std::int64_t> n, int axis, std::string_view norm) {
  return along(x, "irfft", "IRFFT", n, axis, norm);
}

Array fftn(const ArrayArg& x, const std::vector<int>& axes, std::string_view norm) {
  CallSite site(x.where);
  Array r = x.array;
  for (int a : axes_of(x.array, axes)) r = fft(r, std::nullopt, a, norm);
  return r;
}
Array ifftn(const ArrayArg& x, const std::vector<int>& axes, std::string_view norm) {
  CallSite site(x.where);
  Array r = x.array;
  for (int a : axes_of(x.array, axes)) r = ifft(r, std::nullopt, a, norm);
  return r;
}
Array rfftn(const ArrayArg& x, const std::vector<int>& axes, std::string_view norm) {
  CallSite site(x.where);
  std::vector<int> all = axes_of(x.array, axes);
  if (all.empty()) return x.array;
  Array r = rfft(x, std::nullopt, all.back(), norm);
  for (std::size_t i = 0; i + 1 < all.size(); ++i) r = fft(r, std::nullopt, all[i], norm);
  return r;
}
Array irfftn(const ArrayArg& x, const std::vector<int>& axes, std::string_view norm) {
  CallSite site(x.where);
  std::vector<int> all = axes_of(x.array, axes);
  Array r = x.array;
  if (all.empty()) return r;
  for (std::size_t i = 0; i + 1 < all.size(); ++i) r = ifft(r, std::nullopt, all[i], norm);
  return irfft(r, std::nullopt, all.back(), norm);
}
Array fft2(const ArrayArg& x, std::string_view norm) { return fftn(x, {-2, -1}, norm); }
Array ifft2(const ArrayArg& x, std::string_view norm) { return ifftn(x, {-2, -1}, norm); }
Array rfft2(const ArrayArg& x, std::string_view norm) { return rfftn(x, {-2, -1}, norm); }
Array irfft2(const ArrayArg& x, std::string_view norm) { return irfftn(x, {-2, -1}, norm); }

Array fftfreq(std::int64_t n, double d) {
  auto half = static_cast<int>((n - 1) / 2 + 1);
  Array i = arange(n);
  Array k = where(i < half, i, i - static_cast<int>(n));
  return k.astype(DType::kF32) / (static_cast<double>(n) * d);
}
Array rfftfreq(std::int64_t n, double d) {
  return arange(n / 2 + 1).astype(DType::kF32) / (static_cast<double>(n) * d);
}

Array fftshift(const ArrayArg& x, const AxisArg& axes) {
  CallSite site(x.where);
  Array r = x.array;
  for (std::int64_t a : axes.resolve(r.ndim(), "fftshift", x.where))
    r = roll(r, r.shape()[a] / 2, static_cast<int>(a));
  return r;
}
Array ifftshift(const ArrayArg& x, const AxisArg& axes) {
  CallSite site(x.where);
  Array r = x.array;
  for (std::int64_t a : axes.resolve(r.ndim(), "ifftshift", x.where))
    r = roll(r, -(r.shape()[a] / 2), static_cast<int>(a));
  return r;
}

}  // namespace xylem::fft
