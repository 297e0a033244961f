#include "xylem/core/collectives.h"

#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/core/internal/axis_env.h"
#include "xylem/core/numpy.h"
#include "xylem/core/numpy/ops.h"
#include "xylem/ir/ops/named_axis.h"

namespace xylem {

using ir::Attr;
using ir::Attrs;
namespace ops = ir::ops;

namespace internal {
namespace {

struct Axis {
  std::string name;
  std::int64_t size;
};
thread_local std::vector<Axis> bound;

}  // namespace

AxisScope::AxisScope(const std::string& name, std::int64_t size) : set_(!name.empty()) {
  if (set_) bound.push_back({name, size});
}
AxisScope::~AxisScope() {
  if (set_) bound.pop_back();
}

bool any_axis_bound() { return !bound.empty(); }

std::int64_t axis_size(std::string_view name, const char* what, SourceLoc where) {
  for (std::size_t i = bound.size(); i-- > 0;)
    if (bound[i].name == name) return bound[i].size;
  throw UserError(ErrorParts{what, "the axis must be mapped by a vmap around the call",
                             fmt::format("unbound axis name: {}", name),
                             fmt::format("Call it inside vmap(f, {{.axis_name = \"{}\"}})", name)},
                  CallSite::outermost(where));
}

}  // namespace internal

namespace lax {
namespace {

Attrs axis_attrs(const char* what, std::string_view name, SourceLoc where) {
  return Attrs{{"axis_name", Attr(name)},
               {"axis_size", Attr(internal::axis_size(name, what, where))}};
}

Array over(const ir::OpDef& def, const char* what, const Array& x, const AxisNames& axis,
           SourceLoc where) {
  Array r = x;
  for (const std::string& name : axis.names())
    r = internal::apply_one(def, std::span<const Array>(&r, 1), axis_attrs(what, name, where),
                            where, r.weak_type());
  return r;
}

int axis_of(int axis, int rank, const char* what, SourceLoc where) {
  return static_cast<int>(AxisArg(axis).resolve(rank, what, where)[0]);
}

}  // namespace

std::int64_t axis_size(const AxisNames& axis, SourceLoc where) {
  std::int64_t n = 1;
  for (const std::string& name : axis.names()) n *= internal::axis_size(name, "axis_size", where);
  return n;
}

Array psum(const ArrayArg& x, const AxisNames& axis) {
  const HostArray& number = x.array.node()->literal;
  if (number.defined() && number.size() == 1 && !is_bool(x.array.dtype()) &&
      !is_complex(x.array.dtype())) {
    double total = number.at(0) * static_cast<double>(axis_size(axis, x.where));
    return internal::make_literal(HostArray::scalar(total).astype(number.dtype()), x.array.dtype(),
                                  x.array.weak_type());
  }
  Array a = is_bool(x.array.dtype()) ? x.array.astype(DType::kI32, x.where) : x.array;
  return over(ops::kPsum, "psum", a, axis, x.where);
}

Array pmean(const ArrayArg& x, const AxisNames& axis) {
  return divide(ArrayArg(psum(x, axis), x.where), static_cast<int>(axis_size(axis, x.where)));
}
Array pmax(const ArrayArg& x, const AxisNames& axis) {
  return over(ops::kPmax, "pmax", x.array, axis, x.where);
}
Array pmin(const ArrayArg& x, const AxisNames& axis) {
  return over(ops::kPmin, "pmin", x.array, axis, x.where);
}

Array all_gather(const ArrayArg& x, const AxisNames& axis_name, int axis, bool tiled) {
  int d = axis_of(axis, x.array.ndim() + (tiled ? 0 : 1), "all_gather", x.where);
  // The innermost name first, so that the first one ends up outermost; then they become one axis.
  Array r = x.array;
  const std::vector<std::string>& names = axis_name.names();
  for (std::size_t i = names.size(); i-- > 0;) {
    Attrs a = axis_attrs("all_gather", names[i], x.where);
    a.set("dimension", Attr(d));
    a.set("tiled", Attr(tiled));
    r = internal::apply_one(ops::kAllGatherAxis, std::span<const Array>(&r, 1), std::move(a),
                            x.where);
  }
  if (tiled || names.size() == 1) return r;
  Dims shape = x.array.shape();
  shape.insert(static_cast<std::size_t>(d), axis_size(axis_name, x.where));
  return r.reshape(shape, x.where);
}

Array psum_scatter(const ArrayArg& x, std::string_view name, int dimension, bool tiled) {
  Attrs a = axis_attrs("psum_scatter", name, x.where);
  a.set("dimension", Attr(axis_of(dimension, x.array.ndim(), "psum_scatter", x.where)));
  a.set("tiled", Attr(tiled));
  Array v = is_bool(x.array.dtype()) ? x.array.astype(DType::kI32, x.where) : x.array;
  return internal::apply_one(ops::kPsumScatter, std::span<const Array>(&v, 1), std::move(a),
                             x.where);
}

Array all_to_all(const ArrayArg& x, std::string_view name, int split, int concat, bool tiled) {
  Attrs a = axis_attrs("all_to_all", name, x.where);
  a.set("split_dimension", Attr(axis_of(split, x.array.ndim(), "all_to_all", x.where)));
  a.set("concat_dimension", Attr(axis_of(concat, x.array.ndim(), "all_to_all", x.where)));
  a.set("tiled", Attr(tiled));
  return internal::apply_one(ops::kAllToAllAxis, std::span<const Array>(&x.array, 1), std::move(a),
                             x.where);
}

Array ppermute(const ArrayArg& x, std::string_view name,
               const std::vector<std::pair<int, int>>& pairs) {
  Attrs a = axis_attrs("ppermute", name, x.where);
  Dims flat;
  for (const auto& [source, target] : pairs) {
    flat.push_back(source);
    flat.push_back(target);
  }
  a.set("pairs", Attr(flat));
  return internal::apply_one(ops::kPpermute, std::span<const Array>(&x.array, 1), std::move(a),
                             x.where, x.array.weak_type());
}

Array pshuffle(const ArrayArg& x, std::string_view name, const std::vector<int>& perm) {
  std::vector<std::pair<int, int>> pairs;
  for (std::size_t i = 0; i < perm.size(); ++i) pairs.emplace_back(perm[i], static_cast<int>(i));
  return ppermute(x, name, pairs);
}

Array axis_index(const AxisNames& axis) {
  SourceLoc where = internal::CallSite::outermost({});
  Array r;
  for (const std::string& name : axis.names()) {
    Attrs attrs = axis_attrs("axis_index", name, where);
    auto n = static_cast<int>(attrs.i64("axis_size"));
    Array i = internal::apply_one(ops::kAxisIndex, {}, std::move(attrs), where);
    r = r.defined() ? add(multiply(r, n), i) : i;
  }
  return r;
}

}  // namespace lax
}  // namespace xylem
