#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "xylem/core/numpy.h"

// Functions of jax.numpy.linalg. Matrices are the last two axes.
namespace xylem::linalg {

// Order of a norm: a number, or the names of NumPy.
class Order {
 public:
  Order(double p) : p_(p) {}
  Order(int p) : p_(p) {}
  Order(const char* name) : name_(name) {}
  double p() const { return p_; }
  // "fro" or empty.
  std::string_view name() const { return name_; }

 private:
  double p_ = 2;
  std::string_view name_ = {};
};

// The 2-norm of all elements.
Array norm(const ArrayArg& x);
// Vector norms along one axis: sqrt(sum |x|^2), or by order: max and min of |x| for ±inf, the
// number of nonzeros for 0, (sum |x|^p)^(1/p) else. At the zero vector the gradient is 0 (NaN under
// Numerics::jax).
Array norm(const ArrayArg& x, std::optional<Order> order, std::optional<int> axis = std::nullopt,
           bool keepdims = false);
Array vector_norm(const ArrayArg& x, const AxisArg& axis = {}, bool keepdims = false,
                  double order = 2);
// Matrix norms: "fro", 1 and -1 (column sums), inf and -inf (row sums).
Array matrix_norm(const ArrayArg& x, const Order& order = "fro", bool keepdims = false);
Array matrix_power(const ArrayArg& x, int n);
Array multi_dot(std::span<const Array> xs, SourceLoc where = SourceLoc::current());
// Lower factor of Hermitian positive definite matrices, the mean of both triangles being taken; NaN
// in the lower triangle of a matrix that is not positive definite.
Array cholesky(const ArrayArg& x, bool upper = false, bool symmetrize_input = true);
// x with a x = b for triangular matrices a; of them only one triangle is read. b is a vector or
// columns. As jax.scipy.linalg.solve_triangular.
struct TriangularOptions {
  bool lower = false;
  bool transpose = false;  // solves aᵀ x = b
  bool unit_diagonal = false;
};
Array solve_triangular(const ArrayArg& a, const ArrayArg& b, const TriangularOptions& options = {});
// x with a x = b from the factor of a (cho_factor's).
Array cho_solve(const ArrayArg& factor, bool lower, const ArrayArg& b);
Array outer(const ArrayArg& x, const ArrayArg& y);
Array trace(const ArrayArg& x, int offset = 0);
Array diagonal(const ArrayArg& x, int offset = 0);
Array matrix_transpose(const ArrayArg& x);
Array vecdot(const ArrayArg& x, const ArrayArg& y, int axis = -1);
Array cross(const ArrayArg& x, const ArrayArg& y, int axis = -1);

}  // namespace xylem::linalg
