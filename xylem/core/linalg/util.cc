#include <limits>

#include "xylem/base/error.h"
#include "xylem/core/linalg/internal/util.h"

namespace xylem::linalg::detail {

using internal::CallSite;

Array inexact(const ArrayArg& x) {
  return internal::with_dtype(x.array, to_inexact(internal::weak_dtype(x.array)), x.where);
}

std::pair<Array, Array> inexact(const ArrayArg& x, const ArrayArg& y) {
  WeakDType t = to_inexact(
      promote_types(internal::weak_dtype(x.array), internal::weak_dtype(y.array), x.where));
  return {internal::with_dtype(x.array, {t.dtype, false}, x.where),
          internal::with_dtype(y.array, {t.dtype, false}, y.where)};
}

void wrong(const char* what, std::string_view expected, const std::string& given,
           std::string_view advice, SourceLoc where) {
  throw UserError(ErrorParts{what, expected, given, advice}, CallSite::outermost(where));
}

void need_matrix(const char* what, const Array& x, SourceLoc where) {
  if (x.ndim() < 2)
    wrong(what, "an array of two or more axes is needed", x.type_string(), "Add an axis", where);
}

void need_square(const char* what, const Array& x, SourceLoc where) {
  need_matrix(what, x, where);
  if (x.dim(-1) != x.dim(-2))
    wrong(what, "square matrices are needed", x.type_string(),
          "Cut or pad the last two axes to one size", where);
}

Array factorable(const char* what, const ArrayArg& x, bool square) {
  Array a = inexact(x);
  square ? need_square(what, a, x.where) : need_matrix(what, a, x.where);
  const DType t = a.dtype();
  if (t != DType::kF32 && t != DType::kF64 && t != DType::kC64 && t != DType::kC128)
    wrong(what, "a matrix of f32, f64, c64 or c128", a.type_string(),
          "Convert it with astype(DType::kF32)", x.where);
  return a;
}

Array adjoint(const Array& x) { return conj(xylem::matrix_transpose(x)); }

double epsilon(DType dtype) {
  return real_dtype(dtype) == DType::kF64 ? std::numeric_limits<double>::epsilon()
                                          : std::numeric_limits<float>::epsilon();
}

Dims leading(const Array& x, std::size_t n) {
  Dims d = x.shape();
  d.resize(d.size() - n);
  return d;
}

Dims joined(Dims head, std::initializer_list<std::int64_t> tail) {
  for (std::int64_t n : tail) head.push_back(n);
  return head;
}

Array with_batch(const Array& x, const Dims& batch, std::size_t inner) {
  Dims shape = batch;
  for (std::size_t i = x.shape().size() - inner; i < x.shape().size(); ++i)
    shape.push_back(x.shape()[i]);
  return internal::broadcast(x, shape, {});
}

Array column(const Array& x) { return expand_dims(x, -1); }
Array row(const Array& x) { return expand_dims(x, -2); }

}  // namespace xylem::linalg::detail
