#include "xylem/ir/ops/internal/compare_arrays.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "xylem/base/error.h"
#include "xylem/ir/ops/internal/eval_util.h"
#include "xylem/ir/text/element_text.h"

namespace xylem::ir::ops {
namespace {

constexpr std::uint64_t kFar = ~std::uint64_t{0};

std::uint64_t bits_of_element(const std::byte* p, int bytes) {
  std::uint64_t v = 0;
  std::memcpy(&v, p, static_cast<std::size_t>(bytes));
  return v;
}

std::uint64_t part_distance(DType t, const std::byte* p, const std::byte* q) {
  const DTypeInfo& info = dtype_info(t);
  std::uint64_t a = bits_of_element(p, info.bytes), b = bits_of_element(q, info.bytes);
  if (a == b) return 0;
  double x = 0, y = 0;
  convert_elements(t, p, DType::kF64, &x, 1);
  convert_elements(t, q, DType::kF64, &y, 1);
  if (std::isnan(x) && std::isnan(y)) return 0;
  if (!std::isfinite(x) || !std::isfinite(y)) return kFar;
  std::uint64_t sign = t == DType::kF8E8M0FNU ? 0 : 1ull << (info.bits - 1);
  std::uint64_t m = a & ~sign, n = b & ~sign;
  if ((a & sign) == (b & sign)) return m > n ? m - n : n - m;
  return m + n;
}

std::string index_text(const HostArray& a, std::int64_t at) {
  std::string s = "[";
  Dims strides = row_major_strides(a.dims());
  for (std::size_t d = 0; d < a.dims().size(); ++d)
    s += fmt::format("{}{}", d ? ", " : "", at / strides[d] % a.dims()[d]);
  return s + "]";
}

std::string element_at(const HostArray& a, std::int64_t at) {
  std::string s;
  text::append_element(s, a.dtype(),
                       a.data() + at * static_cast<std::int64_t>(dtype_bytes(a.dtype())),
                       text::NumberStyle::kMlir);
  return s;
}

std::string difference(const HostArray& got, const HostArray& expected, std::int64_t at) {
  std::string s = fmt::format("first at {}: got {}, expected {}", index_text(got, at),
                              element_at(got, at), element_at(expected, at));
  if (is_inexact(got.dtype())) {
    std::uint64_t d = ulp_distance(got, expected, at);
    s += d == kFar ? std::string(", not comparable in ulp") : fmt::format(", {} ulp apart", d);
  }
  return s;
}

// Looks for the first element for which good(i) is false.
template <class Good>
std::string first_difference(const HostArray& got, const HostArray& expected, std::string_view rule,
                             const Good& good) {
  if (got.dtype() != expected.dtype() || !(got.dims() == expected.dims()))
    return fmt::format("the types agree; got {}, expected {}", got.type_string(),
                       expected.type_string());
  std::int64_t first = -1, count = 0;
  for (std::int64_t i = 0; i < got.size(); ++i)
    if (!good(i)) {
      if (count++ == 0) first = i;
    }
  if (count == 0) return {};
  return fmt::format("{}; {} of {} differ, {}", rule, count, got.size(),
                     difference(got, expected, first));
}

template <class T, class Fn>
bool parts(const HostArray& a, const HostArray& b, std::int64_t i, const Fn& fn) {
  T x, y;
  load(a, i, 1, &x);
  load(b, i, 1, &y);
  if constexpr (std::is_same_v<T, double>) {
    return fn(x, y);
  } else {
    return fn(x.real(), y.real()) && fn(x.imag(), y.imag());
  }
}

template <class Fn>
bool all_parts(const HostArray& a, const HostArray& b, std::int64_t i, const Fn& fn) {
  return is_complex(a.dtype()) ? parts<std::complex<double>>(a, b, i, fn)
                               : parts<double>(a, b, i, fn);
}

bool same_bits(const HostArray& a, const HostArray& b, std::int64_t i) {
  auto bytes = static_cast<std::size_t>(dtype_bytes(a.dtype()));
  auto at = static_cast<std::size_t>(i) * bytes;
  return std::memcmp(a.data() + at, b.data() + at, bytes) == 0;
}

}  // namespace

std::uint64_t ulp_distance(const HostArray& a, const HostArray& b, std::int64_t at) {
  DType part = real_dtype(a.dtype());
  auto bytes = static_cast<std::int64_t>(dtype_bytes(a.dtype()));
  const std::byte *p = a.data() + at * bytes, *q = b.data() + at * bytes;
  std::uint64_t d = part_distance(part, p, q);
  if (!is_complex(a.dtype())) return d;
  return std::max(d, part_distance(part, p + bytes / 2, q + bytes / 2));
}

std::string check_equal(const HostArray& g, const HostArray& e) {
  HostArray got = g.to_contiguous(), expected = e.to_contiguous();
  return first_difference(got, expected, "all elements are equal", [&](std::int64_t i) {
    if (!is_inexact(got.dtype())) return same_bits(got, expected, i);
    return all_parts(got, expected, i, [](double x, double y) { return x == y; });
  });
}

std::string check_almost_equal(const HostArray& g, const HostArray& e, double tolerance) {
  HostArray got = g.to_contiguous(), expected = e.to_contiguous();
  std::string rule = fmt::format("all elements are at most {} apart", tolerance);
  return first_difference(got, expected, rule, [&](std::int64_t i) {
    if (same_bits(got, expected, i)) return true;
    return all_parts(got, expected, i, [&](double x, double y) {
      return x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= tolerance;
    });
  });
}

std::string check_close(const HostArray& g, const HostArray& e, std::uint64_t min_ulp,
                        std::uint64_t max_ulp) {
  HostArray got = g.to_contiguous(), expected = e.to_contiguous();
  std::string rule = min_ulp == 0
                         ? fmt::format("all elements are at most {} ulp apart", max_ulp)
                         : fmt::format("all elements are {} to {} ulp apart", min_ulp, max_ulp);
  return first_difference(got, expected, rule, [&](std::int64_t i) {
    std::uint64_t d = ulp_distance(got, expected, i);
    return min_ulp <= d && d <= max_ulp;
  });
}

void require_check(std::string_view operation, const std::string& fault) {
  if (fault.empty()) return;
  std::size_t split = fault.find("; ");
  throw_user_error(
      {operation, std::string_view(fault).substr(0, split),
       split == std::string::npos ? std::string_view() : std::string_view(fault).substr(split + 2),
       "Compare the program with its expectation"});
}

std::string value_text(const HostArray& given, const Type& type) {
  HostArray a = given.to_contiguous();
  Type shown = type.is_tensor() ? type.with_dims(a.dims()) : type;
  std::string out = shown.to_mlir() + " {";
  auto element = [&](std::int64_t i) {
    const std::byte* p = a.data() + i * static_cast<std::int64_t>(dtype_bytes(a.dtype()));
    if (!is_complex(a.dtype())) {
      text::append_element(out, a.dtype(), p, text::NumberStyle::kMlir);
      return;
    }
    DType part = real_dtype(a.dtype());
    out += '[';
    text::append_element(out, part, p, text::NumberStyle::kMlir);
    out += ", ";
    text::append_element(out, part, p + dtype_bytes(part), text::NumberStyle::kMlir);
    out += ']';
  };
  if (a.rank() == 0) {
    element(0);
    return out + "}";
  }
  Dims strides = row_major_strides(a.dims());
  auto level = [&](auto&& self, int d, std::int64_t at) -> void {
    out += std::string(static_cast<std::size_t>(2 * (d + 1)), ' ') + '[';
    std::int64_t n = a.dims()[d];
    if (d == a.rank() - 1) {
      for (std::int64_t i = 0; i < n; ++i) {
        if (i) out += ", ";
        element(at + i);
      }
    } else {
      for (std::int64_t i = 0; i < n; ++i) {
        out += i ? ",\n" : "\n";
        self(self, d + 1, at + i * strides[d]);
      }
      if (n > 0) out += '\n' + std::string(static_cast<std::size_t>(2 * (d + 1)), ' ');
    }
    out += ']';
  };
  out += '\n';
  level(level, 0, 0);
  return out + "\n}";
}

}  // namespace xylem::ir::ops
