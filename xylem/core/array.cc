#include "xylem/core/array.h"

#include <fmt/format.h>

#include "xylem/base/dtype_cast.h"
#include "xylem/base/error.h"
#include "xylem/core/internal/donation.h"
#include "xylem/core/internal/trace.h"
#include "xylem/ir/ops/convert.h"
#include "xylem/ir/ops/movement.h"

namespace xylem {

using internal::ArrayNode;
using internal::CallSite;
using ir::Attr;
using ir::Attrs;

namespace {

const ArrayNode& need(const Array& a) {
  if (!a.defined())
    throw_user_error(
        {"array", "an array with contents is needed",
         "the handle is undefined" + internal::last_donation(), "Assign the array before using it"},
        CallSite::outermost({}));
  return *a.node();
}

}  // namespace

Array::Array(const HostArray& host)
    : node_(internal::make_concrete(runtime::default_client().from_host(host)).node()) {}

DType Array::dtype() const { return need(*this).type.dtype(); }
const Dims& Array::shape() const { return need(*this).type.dims(); }
bool Array::weak_type() const { return need(*this).weak; }
bool Array::is_concrete() const { return need(*this).concrete(); }
bool Array::is_traced() const { return !need(*this).concrete(); }
std::string Array::type_string() const { return need(*this).type.to_string(); }

std::int64_t Array::dim(int axis) const {
  int n = ndim();
  if (axis < -n || axis >= n)
    throw_user_error(
        {"Array::dim", fmt::format("the axis must be in [-{}, {})", n, n),
         fmt::format("axis {} of {}", axis, type_string()), "Give an axis of the array"},
        CallSite::outermost({}));
  return shape()[axis < 0 ? axis + n : axis];
}

HostArray Array::to_host(SourceLoc where) const {
  const ArrayNode& n = need(*this);
  if (n.trace) return n.trace->concretize(n.value, CallSite::outermost(where)).to_host(where);
  if (n.literal.defined()) return n.literal.astype(n.type.dtype());
  return internal::buffer_of(*this, where)->to_host();
}

namespace {

HostArray single_element(const Array& a, SourceLoc where) {
  if (a.size() != 1)
    throw_user_error({"Array::item", "the array must have exactly one element",
                      fmt::format("it is {}", a.type_string()), "Index or reduce it first"},
                     where);
  return a.to_host(where);
}

}  // namespace

double Array::item_double(SourceLoc where) const { return single_element(*this, where).at(0); }

std::int64_t Array::item_int64(SourceLoc where) const {
  return single_element(*this, where).astype(DType::kI64).span<std::int64_t>()[0];
}

const Array& Array::block_until_ready() const {
  const ArrayNode& n = need(*this);
  if (n.buffer) n.buffer->ready().wait();
  return *this;
}

std::string Array::to_string() const {
  if (!defined()) return "<undefined>";
  if (is_traced()) return fmt::format("Traced<{}>", type_string());
  return to_host().to_string();
}

Array Array::astype(DType to, SourceLoc where) const {
  const ArrayNode& n = need(*this);
  if (n.type.dtype() == to && !n.weak) return *this;
  if (n.literal.defined()) return internal::make_literal(n.literal.astype(to), to, false);
  if (n.type.dtype() == to) {
    // Only the weakness goes.
    auto strong = std::make_shared<ArrayNode>(n);
    strong->weak = false;
    return Array(std::move(strong));
  }
  return internal::apply_one(ir::ops::kConvert, std::span<const Array>(this, 1),
                             Attrs{{"result_dtype", Attr(to)}}, where);
}

Array Array::reshape(Dims to, SourceLoc where) const {
  const ArrayNode& n = need(*this);
  std::int64_t known = 1;  // wraps for sizes that are refused below
  int open = -1;
  for (int i = 0; i < to.ssize(); ++i) {
    if (to[i] == -1 && open < 0)
      open = i;
    else
      known = static_cast<std::int64_t>(static_cast<std::uint64_t>(known) *
                                        static_cast<std::uint64_t>(to[i]));
  }
  const Dims asked = to;
  bool fits = open < 0 || known != 0;  // nothing can be inferred beside a zero
  if (open >= 0 && fits) to[open] = size() / known;
  for (std::int64_t d : to) fits = fits && d >= 0;
  if (!fits || num_elements(to) != size())
    throw_user_error({"reshape", "the new shape must have as many elements as the array",
                      fmt::format("{} to {}", type_string(), xylem::to_string(asked)),
                      "Use -1 for the dimension to be inferred"},
                     CallSite::outermost(where));
  if (to == n.type.dims()) return *this;
  return internal::apply_one(ir::ops::kReshape, std::span<const Array>(this, 1),
                             Attrs{{"shape", Attr(to)}}, where, n.weak);
}

Array Array::transpose(Dims permutation, SourceLoc where) const {
  for (std::int64_t& p : permutation)
    if (p < 0) p += ndim();
  return internal::apply_one(ir::ops::kTranspose, std::span<const Array>(this, 1),
                             Attrs{{"permutation", Attr(permutation)}}, where, weak_type());
}

Array Array::T(SourceLoc where) const {
  Dims p;
  for (int i = ndim(); i-- > 0;) p.push_back(i);
  return transpose(p, where);
}

Array Array::operator[](std::int64_t i) const {
  std::int64_t n = dim(0);
  if (i < -n || i >= n)
    throw_user_error({"array index", fmt::format("the index must be in [-{}, {})", n, n),
                      fmt::format("index {} of {}", i, type_string()), "Give an index in range"},
                     CallSite::outermost({}));
  if (i < 0) i += n;
  Dims start(shape().size(), 0), limit = shape(), strides(shape().size(), 1), rest = shape();
  start[0] = i;
  limit[0] = i + 1;
  rest.erase(0);
  Array row = internal::apply_one(ir::ops::kSlice, std::span<const Array>(this, 1),
                                  Attrs{{"start_indices", Attr(start)},
                                        {"limit_indices", Attr(limit)},
                                        {"strides", Attr(strides)}});
  return row.reshape(rest);
}

ArrayArg::ArrayArg(std::complex<double> scalar, SourceLoc w) : where(w) {
  HostArray h(DType::kC64, {});
  convert_elements(DType::kC128, &scalar, DType::kC64, h.data(), 1);
  array = internal::make_literal(std::move(h), DType::kC64, true);
}

Array ArrayArg::bool_scalar(bool v) {
  return internal::make_literal(HostArray::scalar(v), DType::kBool, false);
}

Array ArrayArg::int_scalar(std::int64_t v) {
  // As JAX: a literal integer is a weak i32; one that does not fit is an error, never wrapped.
  if (v < INT32_MIN || v > INT32_MAX)
    throw_user_error(
        {"integer literal", "a weakly typed integer must fit i32", fmt::format("given {}", v),
         "Make an array of the wanted dtype: full({}, value, DType::kI64)"},
        CallSite::outermost({}));
  return internal::make_literal(HostArray::scalar(static_cast<std::int32_t>(v)), DType::kI32, true);
}

Array ArrayArg::float_scalar(double v) {
  return internal::make_literal(HostArray::scalar(v), DType::kF32, true);
}

}  // namespace xylem
