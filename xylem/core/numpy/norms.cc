#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "xylem/base/error.h"
#include "xylem/core/internal/flat.h"
#include "xylem/core/linalg.h"
#include "xylem/core/linalg/internal/util.h"
#include "xylem/core/numerics.h"
#include "xylem/core/numpy/ops.h"
#include "xylem/ir/ops/linalg.h"

namespace xylem::linalg {

using detail::inexact;
using detail::need_matrix;
using detail::need_square;
using detail::wrong;
using internal::CallSite;

namespace {

Array magnitude(const Array& x) { return abs(x); }

// The root of a sum of squares, whose gradient at zero is zero.
Array root(const Array& squares) {
  if (numerics() == Numerics::jax) return sqrt(squares);
  Array zero = squares == 0.0;
  return where(zero, zeros_like(squares), sqrt(where(zero, ones_like(squares), squares)));
}

Array sum_of_squares(const Array& x, const AxisArg& axis, bool keepdims) {
  Array squares = is_complex(x.dtype()) ? real(x * conj(x)) : x * x;
  return sum(squares, axis, keepdims);
}

}  // namespace

Array vector_norm(const ArrayArg& x, const AxisArg& axis, bool keepdims, double p) {
  CallSite site(x.where);
  Array a = inexact(x);
  if (p == 2) return root(sum_of_squares(a, axis, keepdims));
  Array m = magnitude(a);
  if (std::isinf(p)) return p > 0 ? max(m, axis, keepdims) : min(m, axis, keepdims);
  if (p == 0) return sum((a != 0.0).astype(m.dtype()), axis, keepdims);
  if (p == 1) return sum(m, axis, keepdims);
  return power(sum(power(m, p), axis, keepdims), 1.0 / p);
}

namespace {

// max (sign = 1) or min along the last axis, of nothing 0.
Array extreme(const Array& x, bool largest) {
  if (x.dim(-1) == 0 && largest) return zeros(detail::leading(x, 1), x.dtype());
  return largest ? max(x, -1) : min(x, -1);
}

}  // namespace

Array matrix_norm(const ArrayArg& x, const Order& order, bool keepdims) {
  CallSite site(x.where);
  Array a = inexact(x);
  need_matrix("matrix_norm", a, x.where);
  const std::string_view name = order.name();
  if (name == "fro" || name == "f") return root(sum_of_squares(a, {-2, -1}, keepdims));
  const double p = order.p();
  Array r;
  if (name == "nuc") {
    r = sum(svdvals(a), -1);
  } else if (name.empty() && std::abs(p) == 2) {
    r = extreme(svdvals(a), p > 0);
  } else if (name.empty() && std::abs(p) == 1) {
    r = extreme(sum(magnitude(a), -2), p > 0);
  } else if (name.empty() && std::isinf(p)) {
    r = extreme(sum(magnitude(a), -1), p > 0);
  } else {
    wrong("matrix_norm: order", "\"fro\", \"nuc\", 1, -1, 2, -2, inf or -inf",
          name.empty() ? fmt::format("{}", p) : std::string(name), "Choose one of them", x.where);
  }
  return keepdims ? expand_dims(expand_dims(r, -1), -1) : r;
}

Array norm(const ArrayArg& x, std::optional<Order> order, std::pair<int, int> axes, bool keepdims) {
  CallSite site(x.where);
  const int n = x.array.ndim();
  int r = axes.first < 0 ? axes.first + n : axes.first;
  int c = axes.second < 0 ? axes.second + n : axes.second;
  if (r < 0 || c < 0 || r >= n || c >= n || r == c)
    wrong("norm: axes", fmt::format("two axes of {}", x.array.type_string()),
          fmt::format("{} and {}", axes.first, axes.second), "Name different axes", x.where);
  Array y = matrix_norm(moveaxis(x.array, std::vector<int>{r, c}, std::vector<int>{-2, -1}),
                        order.value_or("fro"), false);
  if (!keepdims) return y;
  return expand_dims(expand_dims(y, std::min(r, c)), std::max(r, c));
}

Array cond(const ArrayArg& x, const Order& order) {
  CallSite site(x.where);
  Array a = detail::factorable("cond", x);
  if (a.dim(-1) == 0 || a.dim(-2) == 0)
    wrong("cond", "a matrix that is not empty", a.type_string(), "Leave the call out", x.where);
  Array r;
  if (order.name().empty() && std::abs(order.p()) == 2) {
    Array s = svdvals(a);
    Array most = s(idx::ellipsis, 0), least = s(idx::ellipsis, -1);
    if (order.p() > 0) return most / least;
    r = least / most;
  } else {
    need_square("cond", a, x.where);
    r = matrix_norm(a, order) * matrix_norm(inv(a), order);
  }
  // No answer is infinite, unless the matrix has none.
  Array lost = logical_and(isnan(r), logical_not(any(isnan(a), {-2, -1})));
  return where(lost, std::numeric_limits<double>::infinity(), r);
}

Array matrix_rank(const ArrayArg& x, const RankOptions& o) {
  CallSite site(x.where);
  Array a = inexact(x);
  if (a.ndim() < 2) return any(a != 0.0).astype(DType::kI32);
  Array s = svdvals(a, o.hermitian);
  if (s.dim(-1) == 0) return zeros(detail::leading(s, 1), DType::kI32);
  Array least = o.rtol ? full_like(max(s, -1), *o.rtol)
                       : max(s, -1) * static_cast<double>(std::max(a.dim(-1), a.dim(-2))) *
                             detail::epsilon(a.dtype());
  return sum((s > detail::column(least)).astype(DType::kI32), -1);
}

Array norm(const ArrayArg& x) {
  CallSite site(x.where);
  return root(sum_of_squares(inexact(x), {}, false));
}

Array norm(const ArrayArg& x, std::optional<Order> order, std::optional<int> axis, bool keepdims) {
  CallSite site(x.where);
  if (!order) {
    return root(sum_of_squares(inexact(x), axis ? AxisArg(*axis) : AxisArg(), keepdims));
  }
  if (axis || x.array.ndim() == 1) {
    if (!order->name().empty())
      wrong("norm: order", "a number, for vectors", std::string(order->name()),
            "Leave the axis out for a matrix norm", x.where);
    return vector_norm(x, AxisArg(axis.value_or(0)), keepdims, order->p());
  }
  if (x.array.ndim() != 2)
    throw UserError(ErrorParts{"norm", "a vector or a matrix, or an axis", x.array.type_string(),
                               "Name the axis of the vectors"},
                    CallSite::outermost(x.where));
  return matrix_norm(x, *order, keepdims);
}

Array matrix_power(const ArrayArg& x, int n) {
  CallSite site(x.where);
  need_matrix("matrix_power", x.array, x.where);
  need_square("matrix_power", x.array, x.where);
  if (n < 0) return matrix_power(inv(x), -n);
  if (n == 0) return broadcast_to(eye(x.array.dim(-1), -1, 0, x.array.dtype()), x.array.shape());
  if (n == 3) return matmul(matmul(x, x), x);
  Array result, square = x.array;
  for (int k = n; k; k >>= 1) {
    if (k & 1) result = result.defined() ? matmul(result, square) : square;
    if (k > 1) square = matmul(square, square);
  }
  return result;
}

Array multi_dot(std::span<const Array> xs, SourceLoc where) {
  CallSite site(where);
  std::size_t n = xs.size();
  if (n == 0)
    throw_user_error({"multi_dot", "at least one matrix", "none was given", "Pass the factors"},
                     CallSite::outermost(where));
  std::vector<Array> m(xs.begin(), xs.end());
  bool row = n > 1 && m[0].ndim() == 1, column = n > 1 && m[n - 1].ndim() == 1;
  if (row) m[0] = expand_dims(m[0], 0);
  if (column) m[n - 1] = expand_dims(m[n - 1], 1);
  // The parentheses with the fewest multiplications.
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
  std::vector<std::vector<std::size_t>> cut(n, std::vector<std::size_t>(n, 0));
  auto dim = [&](std::size_t i, int d) { return static_cast<double>(m[i].dim(d)); };
  for (std::size_t len = 1; len < n; ++len)
    for (std::size_t i = 0; i + len < n; ++i) {
      std::size_t j = i + len;
      for (std::size_t k = i; k < j; ++k) {
        double c = cost[i][k] + cost[k + 1][j] + dim(i, 0) * dim(k, 1) * dim(j, 1);
        if (k == i || c < cost[i][j]) {
          cost[i][j] = c;
          cut[i][j] = k;
        }
      }
    }
  auto product = [&](auto&& self, std::size_t i, std::size_t j) -> Array {
    if (i == j) return m[i];
    return matmul(self(self, i, cut[i][j]), self(self, cut[i][j] + 1, j));
  };
  Array r = product(product, 0, n - 1);
  if (row) r = squeeze(r, 0);
  return column ? squeeze(r, -1) : r;
}

Array cholesky(const ArrayArg& x, bool upper, bool symmetrize_input) {
  CallSite site(x.where);
  Array a = inexact(x);
  need_square("cholesky", a, x.where);
  auto adjoint = [](const Array& m) { return xylem::matrix_transpose(conj(m)); };
  if (symmetrize_input) a = (a + adjoint(a)) / 2.0;
  Array l = internal::apply_one(ir::ops::kCholesky, std::span<const Array>(&a, 1),
                                ir::Attrs{{"lower", ir::Attr(true)}});
  l = tril(l);
  return upper ? adjoint(l) : l;
}

Array solve_triangular(const ArrayArg& a_arg, const ArrayArg& b_arg,
                       const TriangularOptions& options) {
  CallSite site(a_arg.where);
  WeakDType t = to_inexact(promote_types(internal::weak_dtype(a_arg.array),
                                         internal::weak_dtype(b_arg.array), a_arg.where));
  Array a = internal::with_dtype(a_arg.array, {t.dtype, false}, {});
  Array b = internal::with_dtype(b_arg.array, {t.dtype, false}, {});
  need_square("solve_triangular", a, a_arg.where);
  bool vector = b.ndim() == 1;
  if (vector) b = expand_dims(b, -1);
  if (b.dim(-2) != a.dim(-1))
    throw UserError(ErrorParts{"solve_triangular", "as many rows of b as a has columns",
                               fmt::format("{} and {}", a.type_string(), b.type_string()),
                               "Transpose b, or give it as a vector"},
                    CallSite::outermost(a_arg.where));
  Dims ab = a.shape(), bb = b.shape();
  ab.resize(ab.size() - 2);
  bb.resize(bb.size() - 2);
  Dims both[2] = {ab, bb};
  Dims batch = internal::broadcast_shapes(both, "solve_triangular", a_arg.where);
  auto widened = [&](const Array& m) {
    Dims shape = batch;
    shape.push_back(m.dim(-2));
    shape.push_back(m.dim(-1));
    return internal::broadcast(m, shape, {});
  };
  Array operands[2] = {widened(a), widened(b)};
  Array r = internal::apply_one(
      ir::ops::kTriangularSolve, operands,
      ir::Attrs{{"left_side", ir::Attr(true)},
                {"lower", ir::Attr(options.lower)},
                {"unit_diagonal", ir::Attr(options.unit_diagonal)},
                {"transpose_a",
                 ir::Attr(ir::EnumAttr(options.transpose ? "TRANSPOSE" : "NO_TRANSPOSE"))}});
  return vector ? squeeze(r, -1) : r;
}

Array cho_solve(const ArrayArg& factor, bool lower, const ArrayArg& b) {
  CallSite site(factor.where);
  Array l = lower ? factor.array : xylem::matrix_transpose(conj(factor));
  Array y = solve_triangular(l, b, {.lower = true});
  return solve_triangular(conj(l), y, {.lower = true, .transpose = true});
}

Array outer(const ArrayArg& x, const ArrayArg& y) {
  for (const Array& a : {x.array, y.array})
    if (a.ndim() != 1)
      throw UserError(ErrorParts{"outer", "vectors are needed", a.type_string(), "Flatten them"},
                      internal::CallSite::outermost(x.where));
  return xylem::outer(x, y);
}
Array trace(const ArrayArg& x, int offset) { return xylem::trace(x, offset, -2, -1); }
Array diagonal(const ArrayArg& x, int offset) { return xylem::diagonal(x, offset, -2, -1); }
Array matrix_transpose(const ArrayArg& x) { return xylem::matrix_transpose(x); }
Array vecdot(const ArrayArg& x, const ArrayArg& y, int axis) { return xylem::vecdot(x, y, axis); }
Array cross(const ArrayArg& x, const ArrayArg& y, int axis) {
  for (const Array& a : {x.array, y.array})
    if (a.ndim() > 0 && axis >= -a.ndim() && axis < a.ndim() && a.dim(axis) != 3)
      throw UserError(ErrorParts{"cross", "vectors of three", a.type_string(),
                                 "Use xylem::cross for vectors of two"},
                      internal::CallSite::outermost(x.where));
  return xylem::cross(x, y, axis);
}

}  // namespace xylem::linalg
