#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "xylem/base/error.h"
#include "xylem/core/indexing.h"
#include "xylem/core/internal/flat.h"
#include "xylem/core/numerics.h"
#include "xylem/core/numpy.h"
#include "xylem/core/numpy/gather.h"
#include "xylem/core/numpy/ops.h"
#include "xylem/ir/ops/all.h"

namespace xylem {

using internal::CallSite;
using ir::Attr;
using ir::Attrs;
namespace ops = ir::ops;

Index::Index(const Array& a, SourceLoc w) : kind(Kind::kArray), array(a.node()), where(w) {
  if (!a.defined())
    throw UserError(ErrorParts{"array index", "an array of integers or bools is needed",
                               "the handle is undefined", "Assign the array before using it"},
                    CallSite::outermost(w));
}

Index Index::scalar_mask(bool mask, SourceLoc w) {
  return Index(internal::make_literal(HostArray::scalar(mask), DType::kBool, false), w);
}

Index idx::slice(std::optional<std::int64_t> start, std::optional<std::int64_t> stop,
                 std::int64_t step, SourceLoc where) {
  Index i(Index::Kind::kSlice);
  i.has_start = start.has_value();
  i.has_stop = stop.has_value();
  i.start = start.value_or(0);
  i.stop = stop.value_or(0);
  i.step = step;
  i.where = where;
  return i;
}

namespace internal {

Array normalize_indices(const Array& indices, std::int64_t size, SourceLoc where) {
  DType t = indices.dtype();
  bool wide = size > std::numeric_limits<std::int32_t>::max() || dtype_bits(t) == 64 ||
              (is_unsigned_int(t) && dtype_bits(t) == 32);
  Array i = indices.astype(wide ? DType::kI64 : DType::kI32, where);
  if (is_unsigned_int(t)) return i;
  Array n = constant(i.dtype(), {}, static_cast<double>(size));
  return xylem::where(ArrayArg(less(ArrayArg(i, where), 0), where), add(ArrayArg(i, where), n), i);
}

Array fill_value(DType t, std::optional<double> given) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (given) return constant(t, {}, *given);
  if (is_inexact(t)) return constant(t, {}, std::numeric_limits<double>::quiet_NaN());
  if (is_bool(t)) return constant(t, {}, 1);
  return constant(t, {}, is_signed_int(t) ? -kInf : kInf);
}

Array indices_in_range(const Array& indices, std::int64_t size, SourceLoc where) {
  Array n = constant(indices.dtype(), {}, static_cast<double>(size));
  return logical_and(ArrayArg(greater_equal(ArrayArg(indices, where), 0), where),
                     less(ArrayArg(indices, where), n));
}

Array gather(const Array& x, const Array& indices, const lax::GatherDims& dims, const Dims& sizes,
             bool sorted, SourceLoc where) {
  Attrs a;
  dims.write(a);
  a.set("slice_sizes", Attr(sizes));
  a.set("indices_are_sorted", Attr(sorted));
  // From an empty axis nothing can be read, which is all right if nothing is.
  Dims readable = x.shape();
  if (indices.size() == 0)
    for (std::size_t d = 0; d < readable.size(); ++d) readable[d] = std::max(readable[d], sizes[d]);
  Array operands[2] = {readable == x.shape() ? x : zeros(readable, x.dtype()), indices};
  return apply_one(ops::kGather, operands, std::move(a), where, x.weak_type());
}

}  // namespace internal

namespace {

using internal::normalize_indices;

ArrayArg at(const Array& a, SourceLoc where) { return {a, where}; }

// An entry with everything counted: axis of the array, elements start, start + step, ….
struct Entry {
  Index::Kind kind = Index::Kind::kSlice;
  int axis = -1;
  std::int64_t start = 0, step = 1, count = 0;
  Array array;
  SourceLoc where;
};

// What an update does with an element and its new value.
struct Combine {
  const char* what;
  const ir::OpDef* op;  // null: the new value
  Array operator()(const Array& old, const Array& value, SourceLoc where) const {
    if (!op) return value;
    Array operands[2] = {old, value};
    return internal::apply_one(*op, operands, {}, where);
  }
};

class Plan {
 public:
  Plan(const Array& x, std::span<const Index> index) : x_(x) {
    for (const Index& i : index)
      if (i.where.known() && !where_.known()) where_ = i.where;
    where_ = CallSite::outermost(where_);
    parse(index);
    lay_out();
  }

  Array read(const GetOptions& options) const {
    Array y = static_part();
    if (arrays_.empty()) return y.reshape(shape_, where_);
    bool fill = options.mode == IndexMode::kFill || options.mode == IndexMode::kDrop;
    std::vector<Array> indices = normalized(options.mode == IndexMode::kClip);
    Array got;
    if (batch_.empty()) {
      got = row(y, indices);
    } else {
      lax::GatherDims g;
      Dims sizes = y.shape();
      for (const Entry* e : arrays_) {
        std::int64_t axis = kept_axis(e->axis);
        g.collapsed_slice_dims.push_back(axis);
        g.start_index_map.push_back(axis);
        sizes[axis] = 1;
      }
      g.offset_dims = offset_dims_;
      g.index_vector_dim = batch_.ssize();
      got = internal::gather(y, stacked(indices), g, sizes, options.indices_are_sorted, where_);
    }
    if (fill) {
      Array ok = internal::broadcast_in_dim(in_range(indices), got_shape(), batch_dims_, where_);
      got = xylem::where(at(ok, where_), got.reshape(got_shape(), where_),
                         internal::fill_value(x_.dtype(), options.fill_value));
    }
    return got.reshape(shape_, where_);
  }

  Array update(const Combine& combine, const ArrayArg& v, const UpdateOptions& options) const {
    Array value = v.array.astype(x_.dtype(), v.where);
    Dims both[2] = {value.shape(), shape_};
    if (internal::broadcast_shapes(both, combine.what, where_) != shape_)
      throw UserError(ErrorParts{combine.what, "the value must broadcast to the indexed part",
                                 fmt::format("the part is {}, the value {}", to_string(shape_),
                                             v.array.type_string()),
                                 "Reshape the value, or index another part"},
                      where_);
    value = internal::broadcast(value, shape_, where_).reshape(got_shape(), where_);
    return changed(
        [&](const Array& old) { return combine(old, value.reshape(old.shape(), where_), where_); },
        [&](const Array& y, const Array& indices) {
          return scatter(y, indices, value, combine.op ? binary(*combine.op) : second(), options);
        },
        options);
  }

  Array apply(internal::FunctionRef<Array(const Array&)> f, const UpdateOptions& options) const {
    auto flat = [&](std::span<const Array> in) {
      return std::vector<Array>{f(in[0]).astype(x_.dtype(), where_)};
    };
    auto each = [&](const Array& old) {
      if (old.size() == 0) return old;
      Array line[1] = {old.reshape({-1}, where_)};
      int axes[1] = {0};
      return internal::vmap(
                 line, axes, -1, "", flat, [](std::size_t n) { return std::vector<int>(n, 0); },
                 where_)[0]
          .reshape(old.shape(), where_);
    };
    if (!arrays_.empty() && !batch_.empty() && options.unique_indices) {
      GetOptions get;
      return update({"at().apply", nullptr}, at(each(read(get)), where_), options);
    }
    auto repeated = [&](const Array& y, const Array& indices) {
      Array zero = zeros({}, x_.dtype());
      internal::FlatTrace t =
          internal::trace_flat(internal::TraceKind::kBody, "apply", {&zero, 1}, flat);
      if (!t.captures.empty())
        throw UserError(
            ErrorParts{"at().apply", "the function may use its argument and constants only",
                       "it uses another array", "Pass unique_indices, or use get and set"},
            where_);
      ir::Builder b("apply");
      ir::ValueId old = b.param(ir::Type::tensor(x_.dtype()));
      b.param(ir::Type::tensor(x_.dtype()));
      ir::GraphPtr region = b.finish(b.inline_graph(*t.graph, {&old, 1}));
      return scatter(y, indices, zeros(got_shape(), x_.dtype()), region, options);
    };
    return changed(each, repeated, options);
  }

 private:
  [[noreturn]] void fail(std::string_view expected, const std::string& given,
                         std::string_view advice, SourceLoc where) const {
    throw UserError(ErrorParts{"array index", expected, given, advice},
                    CallSite::outermost(where.known() ? where : where_));
  }

  void parse(std::span<const Index> index) {
    int used = 0, ellipses = 0;
    for (const Index& i : index) {
      if (i.kind == Index::Kind::kEllipsis) ++ellipses;
      if (i.kind == Index::Kind::kInteger || i.kind == Index::Kind::kSlice) ++used;
      if (i.kind == Index::Kind::kArray) {
        Array a(i.array);
        if (!is_integer(a.dtype()) && !is_bool(a.dtype()))
          fail("index arrays hold integers or bools", a.type_string(), "Convert it with astype",
               i.where);
        used += is_bool(a.dtype()) ? a.ndim() : 1;
      }
    }
    if (ellipses > 1)
      fail("at most one ellipsis", fmt::format("given {}", ellipses), "Leave one of them out", {});
    int rank = x_.ndim();
    if (used > rank)
      fail(fmt::format("at most {} axes can be indexed", rank),
           fmt::format("{} are, of {}", used, x_.type_string()),
           "Leave entries out, or add axes to the array", {});
    Dims prepared;
    int axis = 0;
    auto whole = [&] {
      Entry e;
      e.axis = prepared.ssize();
      e.count = x_.shape()[axis];
      entries_.push_back(std::move(e));
      prepared.push_back(x_.shape()[axis++]);
    };
    for (const Index& i : index) {
      Entry e;
      e.kind = i.kind;
      e.where = i.where;
      switch (i.kind) {
        case Index::Kind::kAbsent: break;
        case Index::Kind::kEllipsis:
          for (int k = rank - used; k > 0; --k) whole();
          break;
        case Index::Kind::kNewAxis: entries_.push_back(std::move(e)); break;
        case Index::Kind::kInteger:
          e.axis = prepared.ssize();
          e.start = in_range(i.start, x_.shape()[axis], axis, i.where);
          e.count = 1;
          entries_.push_back(std::move(e));
          prepared.push_back(x_.shape()[axis++]);
          break;
        case Index::Kind::kSlice:
          e.axis = prepared.ssize();
          resolve(i, x_.shape()[axis], e);
          entries_.push_back(std::move(e));
          prepared.push_back(x_.shape()[axis++]);
          break;
        case Index::Kind::kArray: {
          Array a(i.array);
          if (!is_bool(a.dtype())) {
            e.axis = prepared.ssize();
            e.array = a;
            entries_.push_back(std::move(e));
            prepared.push_back(x_.shape()[axis++]);
            break;
          }
          for (int d = 0; d < a.ndim(); ++d)
            if (a.shape()[d] != x_.shape()[axis + d])
              fail("a mask must have the size of the axes that it stands for",
                   fmt::format("a mask {} for axis {} of {}", a.type_string(), axis,
                               x_.type_string()),
                   "Give a mask of the indexed axes' shape", i.where);
          for (Array& positions : true_positions(a, i.where)) {
            Entry p = e;
            p.axis = prepared.ssize();
            p.array = std::move(positions);
            entries_.push_back(std::move(p));
            prepared.push_back(a.ndim() == 0 ? 1 : x_.shape()[axis]);
            if (a.ndim() > 0) ++axis;
          }
          break;
        }
      }
    }
    while (axis < rank) whole();
    x_shape_ = x_.shape();
    x_ = x_.reshape(prepared, where_);
  }

  std::int64_t in_range(std::int64_t i, std::int64_t n, int axis, SourceLoc where) const {
    if (i >= -n && i < n) return i < 0 ? i + n : i;
    if (numerics() == Numerics::jax && n > 0) return i < 0 ? 0 : n - 1;
    fail(fmt::format("the index of axis {} must be in [-{}, {})", axis, n, n),
         fmt::format("index {} of {}", i, x_.type_string()), "Give an index in range", where);
  }

  void resolve(const Index& i, std::int64_t n, Entry& e) const {
    if (i.step == 0)
      fail("the step of a slice must not be zero", "given 0", "Give a step", i.where);
    std::int64_t lo = i.step > 0 ? 0 : -1, hi = i.step > 0 ? n : n - 1;
    auto end = [&](bool given, std::int64_t v, std::int64_t open) {
      if (!given) return open;
      return std::clamp(v < 0 ? v + n : v, lo, hi);
    };
    std::int64_t start = end(i.has_start, i.start, i.step > 0 ? lo : hi);
    std::int64_t stop = end(i.has_stop, i.stop, i.step > 0 ? hi : lo);
    std::int64_t span = i.step > 0 ? stop - start : start - stop;
    std::int64_t stride = std::abs(i.step);
    e.start = start;
    e.step = i.step;
    e.count = span <= 0 ? 0 : (span - 1) / stride + 1;
    if (e.count <= 1) e.step = 1;
  }

  // One array of positions per axis of the mask; of a scalar, positions on an axis of size 1.
  std::vector<Array> true_positions(const Array& mask, SourceLoc where) const {
    HostArray m;
    try {
      m = mask.to_host(where_).to_contiguous();
    } catch (const ConcretizationError&) {
      throw ConcretizationError(
          ErrorParts{"array index: mask", "the values of a mask must be known: they give the shape",
                     fmt::format("a traced {}", mask.type_string()),
                     "Use where(mask, x, other), or nonzero with a size and index with that"},
          CallSite::outermost(where.known() ? where : where_));
    }
    int rank = mask.ndim();
    std::vector<std::vector<std::int32_t>> at(static_cast<std::size_t>(std::max(rank, 1)));
    Dims strides = row_major_strides(mask.shape());
    for (std::int64_t k = 0; k < m.size(); ++k) {
      if (m.at(k) == 0) continue;
      if (rank == 0) at[0].push_back(0);
      for (int d = 0; d < rank; ++d)
        at[static_cast<std::size_t>(d)].push_back(
            static_cast<std::int32_t>(k / strides[d] % mask.shape()[d]));
    }
    std::vector<Array> r;
    for (const auto& v : at) r.emplace_back(v);
    return r;
  }

  // Shapes of the result and where the axes of the index arrays stand in it.
  void lay_out() {
    std::vector<Dims> shapes;
    int first = -1, last = -1, advanced = 0;
    for (std::size_t k = 0; k < entries_.size(); ++k) {
      const Entry& e = entries_[k];
      if (e.kind == Index::Kind::kArray) {
        arrays_.push_back(&e);
        shapes.push_back(e.array.shape());
      }
      if (e.kind != Index::Kind::kArray && e.kind != Index::Kind::kInteger) continue;
      if (first < 0) first = static_cast<int>(k);
      last = static_cast<int>(k);
      ++advanced;
    }
    if (!arrays_.empty()) batch_ = internal::broadcast_shapes(shapes, "array index", where_);
    bool together = last - first + 1 == advanced;
    int position = 0;
    auto add_batch = [&] {
      for (std::int64_t d : batch_) {
        shape_.push_back(d);
        got_shape_.push_back(d);
        batch_dims_.push_back(position++);
      }
    };
    if (!together) add_batch();
    for (std::size_t k = 0; k < entries_.size(); ++k) {
      const Entry& e = entries_[k];
      if (together && static_cast<int>(k) == first) add_batch();
      if (e.kind == Index::Kind::kNewAxis) shape_.push_back(1);
      if (e.kind != Index::Kind::kSlice) continue;
      shape_.push_back(e.count);
      got_shape_.push_back(e.count);
      offset_dims_.push_back(position++);
    }
    int next = 0;
    kept_.resize(static_cast<std::size_t>(x_.ndim()), -1);
    for (const Entry& e : entries_)
      if (e.axis >= 0 && e.kind != Index::Kind::kInteger)
        kept_[static_cast<std::size_t>(e.axis)] = next++;
  }

  // Without new axes.
  const Dims& got_shape() const { return got_shape_; }
  // The axis once axes with a number are dropped.
  std::int64_t kept_axis(int axis) const { return kept_[static_cast<std::size_t>(axis)]; }

  struct Window {
    Dims lo, hi, step, reversed;
    bool whole = true, strided = false, empty = false;
  };
  Window window() const {
    Window w{Dims(x_.shape().size(), 0), x_.shape(), Dims(x_.shape().size(), 1), {}};
    for (const Entry& e : entries_) {
      if (e.axis < 0 || e.kind == Index::Kind::kArray) continue;
      std::int64_t n = x_.shape()[e.axis], span = (e.count - 1) * e.step;
      if (e.count == 0) {
        w.lo[e.axis] = w.hi[e.axis] = 0;
        w.whole = w.whole && n == 0;
        w.empty = true;
        continue;
      }
      w.lo[e.axis] = std::min(e.start, e.start + span);
      w.hi[e.axis] = std::max(e.start, e.start + span) + 1;
      w.step[e.axis] = std::abs(e.step);
      if (e.step < 0) w.reversed.push_back(e.axis);
      if (std::abs(e.step) != 1) w.strided = true;
      if (w.lo[e.axis] != 0 || w.hi[e.axis] != n || w.strided) w.whole = false;
    }
    return w;
  }

  Array reverse(const Array& a, const Dims& axes) const {
    if (axes.empty()) return a;
    return internal::apply_one(ops::kReverse, std::span<const Array>(&a, 1),
                               Attrs{{"dimensions", Attr(axes)}}, where_, a.weak_type());
  }

  // What numbers and slices leave; axes with a number are dropped.
  Array static_part() const {
    Window w = window();
    Array y = w.whole ? x_ : internal::slice(x_, w.lo, w.hi, w.step, where_);
    y = reverse(y, w.reversed);
    Dims kept;
    for (int d = 0; d < y.ndim(); ++d)
      if (kept_[static_cast<std::size_t>(d)] >= 0) kept.push_back(y.shape()[d]);
    return y.reshape(kept, where_);
  }

  // The array with that part replaced.
  Array put(const Array& part) const {
    Window w = window();
    if (w.empty || x_.size() == 0) return x_;
    Dims full;
    for (int d = 0; d < x_.ndim(); ++d) full.push_back((w.hi[d] - w.lo[d] - 1) / w.step[d] + 1);
    Array y = reverse(part.reshape(full, where_), w.reversed);
    if (w.whole) return y;
    if (!w.strided) {
      std::vector<Array> operands = {x_, y};
      for (std::int64_t s : w.lo)
        operands.push_back(internal::make_literal(HostArray::scalar(static_cast<std::int32_t>(s)),
                                                  DType::kI32, false));
      return internal::apply_one(ops::kDynamicUpdateSlice, operands, {}, where_, x_.weak_type());
    }
    Dims high, interior;
    for (int d = 0; d < x_.ndim(); ++d) {
      high.push_back(x_.shape()[d] - w.hi[d]);
      interior.push_back(w.step[d] - 1);
    }
    auto spread = [&](const Array& a, const Array& between) {
      Array operands[2] = {a, between};
      return internal::apply_one(ops::kPad, operands,
                                 Attrs{{"edge_padding_low", Attr(w.lo)},
                                       {"edge_padding_high", Attr(high)},
                                       {"interior_padding", Attr(interior)}},
                                 where_);
    };
    Array mask = spread(ones(full, DType::kBool), zeros({}, DType::kBool));
    return internal::select(mask, spread(y, zeros({}, x_.dtype())), x_, where_);
  }

  std::vector<Array> normalized(bool clip) const {
    std::vector<Array> r;
    bool wide = false;
    for (const Entry* e : arrays_) {
      std::int64_t n = x_.shape()[e->axis];
      Array i = normalize_indices(e->array, n, where_);
      if (clip)
        i = internal::with_dtype(
            xylem::clip(at(i, where_), 0, static_cast<int>(std::max<std::int64_t>(n - 1, 0))),
            {i.dtype(), false}, where_);
      wide = wide || i.dtype() == DType::kI64;
      r.push_back(internal::broadcast(i, batch_, where_));
    }
    if (wide)
      for (Array& i : r) i = i.astype(DType::kI64, where_);
    return r;
  }

  Array stacked(const std::vector<Array>& indices) const {
    if (indices.size() == 1) return indices[0];
    return stack(indices, -1, where_);
  }

  Array in_range(const std::vector<Array>& indices) const {
    Array ok;
    for (std::size_t k = 0; k < indices.size(); ++k) {
      Array one = internal::indices_in_range(indices[k], x_.shape()[arrays_[k]->axis], where_);
      ok = ok.defined() ? logical_and(at(ok, where_), one) : one;
    }
    return ok;
  }

  // Operands of dynamic_slice and dynamic_update_slice at one position.
  void add_starts(const Array& y, const std::vector<Array>& indices,
                  std::vector<Array>& operands) const {
    Array zero = zeros({}, indices[0].dtype());
    for (int d = 0; d < y.ndim(); ++d) {
      operands.push_back(zero);
      for (std::size_t k = 0; k < indices.size(); ++k)
        if (kept_axis(arrays_[k]->axis) == d) operands.back() = indices[k];
    }
  }
  Array row(const Array& y, const std::vector<Array>& indices) const {
    std::vector<Array> operands = {y};
    add_starts(y, indices, operands);
    Dims sizes = y.shape();
    for (const Entry* e : arrays_) sizes[kept_axis(e->axis)] = 1;
    return internal::apply_one(ops::kDynamicSlice, operands, Attrs{{"slice_sizes", Attr(sizes)}},
                               where_, y.weak_type());
  }

  ir::GraphPtr binary(const ir::OpDef& op) const { return ir::binary_region(op, x_.dtype()); }
  ir::GraphPtr second() const {
    ir::Builder b;
    b.param(ir::Type::tensor(x_.dtype()));
    return b.finish({b.param(ir::Type::tensor(x_.dtype()))});
  }

  Array scatter(const Array& y, const Array& indices, const Array& value,
                const ir::GraphPtr& region, const UpdateOptions& options) const {
    lax::ScatterDims s;
    for (const Entry* e : arrays_) {
      s.inserted_window_dims.push_back(kept_axis(e->axis));
      s.scatter_dims_to_operand_dims.push_back(kept_axis(e->axis));
    }
    s.update_window_dims = offset_dims_;
    s.index_vector_dim = batch_.ssize();
    Attrs a;
    s.write(a);
    a.set("indices_are_sorted", Attr(options.indices_are_sorted));
    a.set("unique_indices", Attr(options.unique_indices));
    Array operands[3] = {y, indices, value};
    return internal::apply(ops::kScatter, operands, std::move(a), {region}, where_)[0];
  }

  // The whole array with its part changed: `whole` maps a part where every element occurs once,
  // `scattered` what numbers and slices leave at an array of positions.
  Array changed(internal::FunctionRef<Array(const Array&)> whole,
                internal::FunctionRef<Array(const Array&, const Array&)> scattered,
                const UpdateOptions& options) const {
    Array y = static_part();
    if (y.size() == 0) return x_.reshape(x_shape_, where_);
    if (arrays_.empty()) return put(whole(y)).reshape(x_shape_, where_);
    bool clip = options.mode == IndexMode::kClip;
    std::vector<Array> indices = normalized(clip);
    if (!batch_.empty()) {
      y = scattered(y, stacked(indices));
      return put(y).reshape(x_shape_, where_);
    }
    Array old = row(y, indices), next = whole(old);
    if (!clip) {
      Array ok = internal::broadcast(in_range(indices), old.shape(), where_);
      next = internal::select(ok, next, old, where_);
    }
    std::vector<Array> operands = {y, next};
    add_starts(y, indices, operands);
    y = internal::apply_one(ops::kDynamicUpdateSlice, operands, {}, where_, y.weak_type());
    return put(y).reshape(x_shape_, where_);
  }

  Array x_;
  Dims x_shape_;
  SourceLoc where_;
  std::vector<Entry> entries_;
  std::vector<const Entry*> arrays_;
  Dims batch_;                     // shape of the index arrays together
  Dims shape_;                     // of the result
  Dims got_shape_;                 // of the result without new axes
  Dims batch_dims_, offset_dims_;  // positions there of the index arrays' axes and of slices
  std::vector<int> kept_;          // position of an axis once those with a number are dropped
};

std::vector<Index> listed(std::initializer_list<const Index*> entries) {
  std::vector<Index> r;
  for (const Index* i : entries)
    if (i->kind != Index::Kind::kAbsent) r.push_back(*i);
  return r;
}

void check_mode(const char* what, IndexMode mode) {
  if (mode != IndexMode::kWrap) return;
  throw_user_error({what, "the mode must be fill, drop, clip or promise_in_bounds", "wrap",
                    "Take the indices modulo the size, or use take"},
                   CallSite::outermost({}));
}

}  // namespace

Array Array::operator()(const Index& a, const Index& b, const Index& c, const Index& d,
                        const Index& e, const Index& f, const Index& g, const Index& h) const {
  return Plan(*this, listed({&a, &b, &c, &d, &e, &f, &g, &h})).read({});
}

IndexedArray Array::at(const Index& a, const Index& b, const Index& c, const Index& d,
                       const Index& e, const Index& f, const Index& g, const Index& h) const {
  return IndexedArray(*this, listed({&a, &b, &c, &d, &e, &f, &g, &h}));
}

Array IndexedArray::get(const GetOptions& options) const {
  check_mode("at().get", options.mode);
  return Plan(x_, index_).read(options);
}
Array IndexedArray::set(const ArrayArg& v, const UpdateOptions& o) const {
  check_mode("at().set", o.mode);
  return Plan(x_, index_).update({"at().set", nullptr}, v, o);
}
Array IndexedArray::add(const ArrayArg& v, const UpdateOptions& o) const {
  check_mode("at().add", o.mode);
  // Bools add up as or, which is what their sum modulo its range says.
  const ir::OpDef& op = is_bool(x_.dtype()) ? ops::kOr : ops::kAdd;
  return Plan(x_, index_).update({"at().add", &op}, v, o);
}
Array IndexedArray::subtract(const ArrayArg& v, const UpdateOptions& o) const {
  return add(negative(ArrayArg(v.array.astype(x_.dtype(), v.where), v.where)), o);
}
Array IndexedArray::multiply(const ArrayArg& v, const UpdateOptions& o) const {
  check_mode("at().multiply", o.mode);
  const ir::OpDef& op = is_bool(x_.dtype()) ? ops::kAnd : ops::kMultiply;
  return Plan(x_, index_).update({"at().multiply", &op}, v, o);
}
Array IndexedArray::min(const ArrayArg& v, const UpdateOptions& o) const {
  check_mode("at().min", o.mode);
  return Plan(x_, index_).update({"at().min", &ops::kMinimum}, v, o);
}
Array IndexedArray::max(const ArrayArg& v, const UpdateOptions& o) const {
  check_mode("at().max", o.mode);
  return Plan(x_, index_).update({"at().max", &ops::kMaximum}, v, o);
}
Array IndexedArray::divide(const ArrayArg& v, const UpdateOptions& o) const {
  IndexedArray factors(ones_like(x_), index_);
  return xylem::divide(ArrayArg(x_, v.where), factors.multiply(v, o));
}
Array IndexedArray::power(const ArrayArg& v, const UpdateOptions& o) const {
  IndexedArray exponents(ones_like(x_), index_);
  return xylem::power(ArrayArg(x_, v.where), exponents.multiply(v, o));
}
Array IndexedArray::apply_flat(internal::FunctionRef<Array(const Array&)> f,
                               const UpdateOptions& o) const {
  check_mode("at().apply", o.mode);
  return Plan(x_, index_).apply(f, o);
}

}  // namespace xylem
