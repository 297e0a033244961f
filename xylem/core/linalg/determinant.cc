#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <tuple>

#include "xylem/core/lax_linalg.h"
#include "xylem/core/linalg/internal/util.h"
#include "xylem/core/transforms.h"

namespace xylem::linalg {

using detail::column;
using detail::factorable;
using detail::wrong;
using internal::CallSite;
namespace ll = lax::linalg;

namespace {

Array at(const Array& a, int i, int j) { return a(idx::ellipsis, i, j); }

Array det_2(const Array& a) { return at(a, 0, 0) * at(a, 1, 1) - at(a, 0, 1) * at(a, 1, 0); }

Array det_3(const Array& a) {
  return at(a, 0, 0) * at(a, 1, 1) * at(a, 2, 2) + at(a, 0, 1) * at(a, 1, 2) * at(a, 2, 0) +
         at(a, 0, 2) * at(a, 1, 0) * at(a, 2, 1) - at(a, 0, 2) * at(a, 1, 1) * at(a, 2, 0) -
         at(a, 0, 0) * at(a, 1, 2) * at(a, 2, 1) - at(a, 0, 1) * at(a, 1, 0) * at(a, 2, 2);
}

// How many rows were exchanged, per matrix.
Array exchanges(const Array& pivots) {
  Array moved = pivots != arange(0, pivots.dim(-1), 1, DType::kI32);
  return sum(moved.astype(DType::kI32), -1);
}

// (-1)^count
Array parity_sign(const Array& count, DType dtype) { return (1 - 2 * (count % 2)).astype(dtype); }

SlogdetResult slogdet_small(const Array& a) {
  Array d = a.dim(-1) == 1 ? at(a, 0, 0) : det_2(a);
  return {sign(d), log(abs(d))};
}

SlogdetResult slogdet_lu(const Array& a) {
  const DType t = a.dtype(), r = real_dtype(t);
  ll::LuResult f = ll::lu(a);
  Array diag = linalg::diagonal(f.lu);
  Array zero = any(diag == 0.0, -1), count = exchanges(f.pivots), unit;
  if (is_complex(t)) {
    unit = prod(diag / abs(diag).astype(t), -1);
  } else {
    count = count + sum((diag < 0.0).astype(DType::kI32), -1);
    unit = ones(count.shape(), t);
  }
  Array s = where(zero, zeros(count.shape(), t), unit * parity_sign(count, t));
  Array l = where(zero, full(count.shape(), -std::numeric_limits<double>::infinity(), r),
                  sum(log(abs(diag)), -1));
  return {s, l};
}

SlogdetResult slogdet_qr(const Array& a) {
  ll::HouseholderResult f = ll::geqrf(a);
  Array diag = linalg::diagonal(f.a);
  const std::int64_t n = a.dim(-1);
  // A reflection has determinant -1.
  Array reflected = f.taus(idx::ellipsis, idx::slice(0, std::max<std::int64_t>(n - 1, 0))) != 0.0;
  Array s = prod(sign(diag), -1) * parity_sign(sum(reflected.astype(DType::kI32), -1), a.dtype());
  return {s, sum(log(abs(diag)), -1)};
}

// det a, and (det a) a⁻¹ b, which exists where one pivot is 0 too.
std::pair<Array, Array> cofactor_solve(const Array& a, const Array& b) {
  const std::int64_t n = a.dim(-1);
  if (n == 1) return {at(a, 0, 0), b};
  const DType t = a.dtype();
  ll::LuResult f = ll::lu(a);
  Array signs = parity_sign(exchanges(f.pivots), t);
  // The last is the determinant; the one before is it without the last pivot.
  Array partial = cumprod(linalg::diagonal(f.lu), -1) * column(signs);
  Array whole = partial(idx::ellipsis, n - 1), rest = partial(idx::ellipsis, n - 2);
  const Dims shape = f.lu.shape();
  Array row_number = internal::iota(DType::kI32, shape, static_cast<int>(shape.size()) - 2);
  Array column_number = internal::iota(DType::kI32, shape, static_cast<int>(shape.size()) - 1);
  Array corner = logical_and(row_number == n - 1, column_number == n - 1);
  Array lu = where(corner, broadcast_to(column(column(1.0 / rest)), shape), f.lu);
  // Matrices of lower rank than n - 1 have no cofactors.
  Array d = ll::triangular_solve(lu, ones(detail::leading(b, 1), t), {.left_side = true});
  Array lost = any(logical_or(isnan(d), isinf(d)), -1);
  Array none = broadcast_to(column(column(lost)), b.shape());
  Array order = broadcast_to(column(f.permutation), b.shape());
  Array x = take_along_axis(where(none, zeros_like(b), b), order, -2);
  x = ll::triangular_solve(lu, x, {.left_side = true, .lower = true, .unit_diagonal = true});
  Array last = internal::iota(DType::kI32, b.shape(), b.ndim() - 2) == n - 1;
  x = where(last, x, x * column(column(whole)));
  x = ll::triangular_solve(lu, x, {.left_side = true});
  return {whole, where(none, zeros_like(x), x)};
}

// From the derivative of log det.
auto slogdet_tangents(const SlogdetResult& value, const Array& dot) {
  if (!is_complex(dot.dtype())) return SlogdetResult{zeros_like(value.sign), dot};
  Array r = real(dot);
  return SlogdetResult{(dot - r.astype(dot.dtype())) * value.sign, r};
}

// By d log det m = tr(m⁻¹ dm), in the rule itself again: `order` times.
SlogdetResult slogdet_derived(const Array& x, SlogdetResult (*value)(const Array&), int order) {
  if (order == 0) return value(x);
  auto rule = [value, order](const auto& primals, const auto& tangents) {
    Array m = std::get<0>(primals);
    SlogdetResult r = slogdet_derived(m, value, order - 1);
    return std::pair{r, slogdet_tangents(r, linalg::trace(solve(m, std::get<0>(tangents))))};
  };
  return custom_jvp(value, rule)(x);
}

}  // namespace

Array det(const ArrayArg& x) {
  CallSite site(x.where);
  Array a = factorable("det", x, true);
  if (a.dim(-1) == 0) return ones(detail::leading(a, 2), a.dtype());
  if (a.dim(-1) == 2) return det_2(a);
  if (a.dim(-1) == 3) return det_3(a);
  auto value = [](const Array& m) {
    SlogdetResult r = slogdet(m);
    return r.sign * exp(r.logabsdet).astype(m.dtype());
  };
  auto rule = [](const auto& primals, const auto& tangents) {
    auto [y, z] = cofactor_solve(std::get<0>(primals), std::get<0>(tangents));
    return std::pair{y, linalg::trace(z)};
  };
  return custom_jvp(value, rule)(a);
}

SlogdetResult slogdet(const ArrayArg& x, std::string_view method) {
  CallSite site(x.where);
  Array a = factorable("slogdet", x, true);
  const bool by_qr = method == "qr";
  if (!by_qr && method != "lu")
    wrong("slogdet: method", "\"lu\" or \"qr\"", std::string(method), "Leave it out", x.where);
  if (by_qr && is_complex(a.dtype()))
    wrong("slogdet: method \"qr\"", "real matrices", a.type_string(), "Use method \"lu\"", x.where);
  const std::int64_t n = a.dim(-1);
  if (!by_qr && (n == 1 || n == 2)) {
    auto rule = [n](const auto& primals, const auto& tangents) {
      Array m = std::get<0>(primals), g = std::get<0>(tangents);
      SlogdetResult value = slogdet_small(m);
      Array dot = n == 1 ? at(g, 0, 0) / at(m, 0, 0)
                         : (at(g, 0, 0) * at(m, 1, 1) - at(g, 0, 1) * at(m, 1, 0) -
                            at(g, 1, 0) * at(m, 0, 1) + at(g, 1, 1) * at(m, 0, 0)) /
                               det_2(m);
      return std::pair{value, slogdet_tangents(value, dot)};
    };
    return custom_jvp(slogdet_small, rule)(a);
  }
  return slogdet_derived(a, by_qr ? slogdet_qr : slogdet_lu, 2);
}

}  // namespace xylem::linalg
