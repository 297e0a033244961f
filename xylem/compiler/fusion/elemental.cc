#include "xylem/compiler/fusion/elemental.h"

#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/ir/ops/all.h"

namespace xylem::compiler {

namespace o = ir::ops;
using ir::Attr;
using ir::Attrs;
using ir::Op;
using ir::OpDef;
using ir::Type;
using ir::ValueId;
using Value = ir::KernelValue;

namespace {

bool same_width_bitcast(const ir::Graph& g, const Op& op) {
  if (op.def != &o::kBitcastConvert) return false;
  const DType from = g.type(op.operands[0]).dtype(), to = g.type(op.results[0]).dtype();
  return dtype_bits(from) == dtype_bits(to) && dtype_bytes(from) == dtype_bytes(to);
}

bool pointwise(const ir::Graph& g, const Op& op) {
  return (op.def->is(ir::kPointwise) && op.results.size() == 1 && op.regions.empty() &&
          op.def != &o::kOptimizationBarrier) ||
         same_width_bitcast(g, op);
}

std::size_t tile_key(ValueId v, const Elemental::Guard& g) {
  std::size_t h = static_cast<std::size_t>(v) * 0x9E3779B97F4A7C15ull;
  h ^= static_cast<std::size_t>(g.lanes.id * 31 + g.lanes.scope) << 20;
  h ^= static_cast<std::size_t>(g.all.id * 37 + g.all.scope) << 40;
  return h;
}

}  // namespace

bool is_immediate(const Op& op) {
  return op.def == &o::kConstant && op.attrs.array("value").size() == 1;
}

int cost_of(const OpDef& def) {
  if (def.is(ir::kTranscendental)) return 20;
  if (&def == &o::kDivide || &def == &o::kRemainder || &def == &o::kSqrt) return 4;
  return 1;
}

bool is_free(const ir::Graph&, const Op& op) {
  return is_immediate(op) || op.def == &o::kIota || op.def == &o::kBroadcastInDim ||
         op.def == &o::kReshape || op.def == &o::kTranspose || op.def == &o::kSlice ||
         op.def == &o::kReverse;
}

bool is_elemental(const ir::Graph& g, const Op& op) {
  if (pointwise(g, op) || is_free(g, op)) return true;
  if (op.def == &o::kConcatenate) return op.operands.size() <= 4;
  return op.def == &o::kPad || op.def == &o::kGather || op.def == &o::kDynamicSlice;
}

// ---- Indices -------------------------------------------------------------------------------

bool Elemental::has_lanes(const Form& f) const {
  const Loop& v = loops_.back();
  for (const Term& t : f.terms) {
    const auto& axis = table_.axes[static_cast<std::size_t>(t.axis)];
    if (axis.loop ? (lanes_ > 1 && t.axis >= v.first && t.axis <= v.last) : axis.lanes) return true;
  }
  return false;
}

struct Elemental::Address {
  Value base;             // i64[]
  std::int64_t lane = 0;  // step from lane to lane
  std::vector<std::pair<Value, std::int64_t>> vectors;
};

Elemental::Address Elemental::address(const Form& f) {
  Address a;
  a.base = k_->index(f.constant);
  for (std::size_t l = 0; l < loops_.size(); ++l) {
    const Loop& loop = loops_[l];
    const std::int64_t coef = f.coef(loop.last);
    if (coef == 0) continue;
    a.base = k_->add(a.base, k_->mul(loop.value, coef));
    if (l + 1 == loops_.size() && lanes_ > 1) a.lane = coef;
  }
  for (const Term& t : f.terms) {
    const auto& axis = table_.axes[static_cast<std::size_t>(t.axis)];
    if (axis.loop) continue;
    const Value v = opaque_values_[static_cast<std::size_t>(t.axis)];
    if (axis.lanes)
      a.vectors.emplace_back(v, t.coef);
    else
      a.base = k_->add(a.base, k_->mul(v, t.coef));
  }
  return a;
}

Value Elemental::scalar_index(const Form& f) {
  const std::size_t key = hash(f);
  for (std::size_t s = scopes_.size(); s-- > 0;)
    if (auto it = scopes_[s].numbers.find(key); it != scopes_[s].numbers.end())
      for (auto& [form, value] : it->second)
        if (form == f) return value;
  const Value v = address(f).base;
  scopes_.back().numbers[key].emplace_back(f, v);
  return v;
}

Value Elemental::iota_tile(std::int64_t coef) {
  Value i = k_->one(o::kIota, {},
                    Attrs{{"iota_dimension", Attr(0)},
                          {"shape", Attr(Dims{lanes_})},
                          {"result_dtype", Attr(DType::kI64)}});
  if (coef != 1) i = k_->one(o::kMultiply, {i, widen(k_->index(coef))});
  return i;
}

Value Elemental::index_tile(const Form& f) {
  const Address a = address(f);
  Value v = widen(a.base);
  if (a.lane != 0) v = k_->one(o::kAdd, {v, iota_tile(a.lane)});
  for (const auto& [vec, coef] : a.vectors) {
    Value t = vec;
    if (coef != 1) t = k_->one(o::kMultiply, {t, widen(k_->index(coef))});
    v = k_->one(o::kAdd, {v, t});
  }
  return v;
}

Form Elemental::opaque(Value tile, std::int64_t size) {
  const int axis = static_cast<int>(table_.axes.size());
  AxisTable::Axis a;
  a.size = std::max<std::int64_t>(size, 1);
  a.loop = false;
  a.lanes = !dry() && wide(tile);
  table_.axes.push_back(a);
  opaque_values_.resize(table_.axes.size());
  opaque_values_.back() = tile;
  return Form::axis(axis);
}

Form Elemental::clamped(Value tile, DType dtype, std::int64_t room) {
  if (room == 0) return Form();
  if (dry()) return opaque({}, room + 1);
  if (dtype == DType::kU64) {
    HostArray limit = HostArray::scalar(static_cast<std::uint64_t>(room));
    tile = apply(o::kMinimum, {tile, k_->constant(limit)});
  }
  if (dtype != DType::kI64)
    tile = apply(o::kConvert, {tile}, Attrs{{"result_dtype", Attr(DType::kI64)}});
  if (wide(tile)) {
    tile = apply(o::kMaximum, {tile, k_->index(0)});
    tile = apply(o::kMinimum, {tile, k_->index(room)});
  } else {
    tile = k_->min(tile, k_->index(room));
    tile = k_->one(o::kMaximum, {tile, k_->index(0)});
  }
  return opaque(tile, room + 1);
}

Forms Elemental::split_index(const Form& flat, const Dims& dims, const Guard& guard) {
  Forms index;
  AxisSplit split;
  if (unflatten(table_, flat, dims, &index, &split)) return index;
  if (dry()) {
    if (split.axis >= 0) splits.push_back(split);
    recorded.push_back(flat);
  }
  (void)guard;
  // Division at run time.
  cost += 8;
  index.assign(dims.size(), Form());
  const Dims strides = row_major_strides(dims);
  Value rest;
  if (!dry()) rest = has_lanes(flat) ? index_tile(flat) : scalar_index(flat);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    if (dry()) {
      index[d] = opaque({}, dims[d]);
      continue;
    }
    if (strides[d] == 1) {
      index[d] = opaque(rest, dims[d]);
      break;
    }
    const Value q = apply(o::kDivide, {rest, k_->index(strides[d])});
    rest = apply(o::kSubtract, {rest, apply(o::kMultiply, {q, k_->index(strides[d])})});
    index[d] = opaque(q, dims[d]);
  }
  return index;
}

// ---- Tiles ---------------------------------------------------------------------------------

Value Elemental::widen(Value tile) {
  if (!k_->dims(tile).empty()) return tile;
  return k_->broadcast(tile, {lanes_});
}

Value Elemental::apply(const Op& op, std::vector<Value> operands) {
  cost += cost_of(*op.def);
  if (dry()) return {};
  bool any = false;
  for (Value v : operands) any = any || wide(v);
  if (any)
    for (Value& v : operands) v = widen(v);
  return k_->clone(op, operands)[0];
}

Value Elemental::apply(const OpDef& def, std::vector<Value> operands, Attrs attrs) {
  cost += cost_of(def);
  if (dry()) return {};
  bool any = false;
  for (Value v : operands) any = any || wide(v);
  if (any)
    for (Value& v : operands) v = widen(v);
  return k_->one(def, operands, std::move(attrs));
}

std::vector<Value> Elemental::inline_region(const ir::Graph& region, std::span<const Value> args) {
  std::vector<Value> map(region.values.size());
  for (std::size_t i = 0; i < args.size(); ++i)
    map[static_cast<std::size_t>(region.params[i])] = args[i];
  for (const Op& op : region.ops) {
    std::vector<Value> in;
    for (ValueId v : op.operands) in.push_back(map[static_cast<std::size_t>(v)]);
    std::vector<Value> out;
    if (is_immediate(op)) {
      if (!dry()) {
        const HostArray& a = op.attrs.array("value");
        out = {k_->constant(a.rank() == 0 ? a : a.reshape({}))};
      } else {
        out = {Value{}};
      }
    } else if (pointwise(region, op)) {
      out = {apply(op, std::move(in))};
    } else if (op.def == &o::kReshape || op.def == &o::kBroadcastInDim ||
               op.def == &o::kOptimizationBarrier || op.def == &o::kStopGradient ||
               op.def == &o::kCheckpointName) {
      out = in;  // on scalars, the identity
    } else if (!op.regions.empty() && (op.def == &o::kCall || op.def == &o::kCustomJvp ||
                                       op.def == &o::kCustomVjp || op.def == &o::kRemat)) {
      out = inline_region(*op.regions[0], in);
    } else {
      throw UserError(
          ErrorParts{"compile: region of a reduction or scatter", "elementwise ops on scalars",
                     std::string(op.def->name), "Write the region with elementwise ops."},
          op.loc.source);
    }
    for (std::size_t i = 0; i < op.results.size(); ++i)
      map[static_cast<std::size_t>(op.results[i])] = out[i];
  }
  std::vector<Value> results;
  for (ValueId v : region.results) results.push_back(map[static_cast<std::size_t>(v)]);
  return results;
}

Value Elemental::both(Value a, Value b) {
  if (!a.defined()) return b;
  if (!b.defined()) return a;
  return apply(o::kAnd, {a, b});
}

Elemental::Guard Elemental::narrow(const Guard& guard, Value condition) {
  Guard g = guard;
  if (dry() || !condition.defined()) return g;
  if (wide(condition))
    g.lanes = both(g.lanes, condition);
  else
    g.all = both(g.all, condition);
  return g;
}

Elemental::Guard Elemental::narrow(const Guard& guard, const Guard& condition) {
  if (dry()) return guard;
  return {both(guard.lanes, condition.lanes), both(guard.all, condition.all)};
}

Value Elemental::load(Value ref, const Form& flat, const Guard& guard) {
  cost += 1;
  if (dry()) {
    recorded.push_back(flat);
    return {};
  }
  if (!has_lanes(flat)) {
    const Value at = scalar_index(flat);
    if (!guard.all.defined()) return k_->load_scalar(ref, {at});
    // Element 0 stands in for one that must not be read: there is no branch then.
    return k_->load_scalar(ref, {k_->one(o::kSelect, {guard.all, at, k_->index(0)})});
  }
  Value mask = guard.lanes;
  if (guard.all.defined()) mask = both(widen(guard.all), mask);
  const Address a = address(flat);
  if (a.vectors.empty() && a.lane == 1) {
    const Value at = scalar_index(flat);
    return k_->load(ref, {at}, {0}, {lanes_}, mask);
  }
  return k_->gather(ref, index_tile(flat), mask);
}

void Elemental::store(Value ref, const Form& flat, Value tile, const Guard& guard) {
  if (dry()) {
    recorded.push_back(flat);
    return;
  }
  if (!has_lanes(flat)) {
    const Value at = scalar_index(flat);
    if (!guard.all.defined()) return k_->store(ref, tile, {at}, {});
    k_->if_(guard.all, [&] {
      k_->store(ref, tile, {at}, {});
      return std::vector<Value>{};
    });
    return;
  }
  tile = widen(tile);
  Value mask = guard.lanes;
  if (guard.all.defined()) mask = both(widen(guard.all), mask);
  const Address a = address(flat);
  if (a.vectors.empty() && a.lane == 1)
    k_->store(ref, tile, {scalar_index(flat)}, {0}, mask);
  else
    k_->scatter(ref, tile, index_tile(flat), mask);
}

Value Elemental::in_range(const Form& f, std::int64_t lo, std::int64_t hi, bool* never) {
  *never = table_.greatest(f) < lo || table_.least(f) >= hi;
  if (*never) return {};
  const bool low = table_.least(f) < lo, high = table_.greatest(f) >= hi;
  if (!low && !high) return {};
  cost += 2;
  if (dry()) {
    recorded.push_back(f);
    return {};
  }
  const Value at = has_lanes(f) ? index_tile(f) : scalar_index(f);
  Value ok;
  const auto compare = [&](const char* direction, std::int64_t limit) {
    return apply(o::kCompare, {at, k_->index(limit)},
                 Attrs{{"comparison_direction", Attr(ir::EnumAttr(direction))}});
  };
  if (low) ok = compare("GE", lo);
  if (high) ok = both(ok, compare("LT", hi));
  return ok;
}

// ---- Ops -----------------------------------------------------------------------------------

Value Elemental::eval(ValueId v, const Forms& index, const Guard& guard) {
  Value tile;
  if (available(v, index, guard, &tile)) return tile;
  return eval_op(v, index, guard);
}

Value Elemental::eval_op(ValueId v, const Forms& index, const Guard& guard) {
  const std::size_t key = tile_key(v, guard) ^ hash(index);
  for (std::size_t s = scopes_.size(); s-- > 0;)
    if (auto it = scopes_[s].tiles.find(key); it != scopes_[s].tiles.end())
      for (const Entry& e : it->second)
        if (e.v == v && e.guard.lanes == guard.lanes && e.guard.all == guard.all &&
            e.index == index)
          return e.tile;
  const Op* op = graph_.def(v);
  XYLEM_CHECK(op != nullptr, "a parameter of the graph is not available to a kernel");
  const Value tile = tile_of(*op, v, index, guard);
  scopes_.back().tiles[key].push_back({v, guard, index, tile});
  return tile;
}

Value Elemental::tile_of(const Op& op, ValueId v, const Forms& index, const Guard& guard) {
  if (is_immediate(op)) {
    if (dry()) return {};
    const HostArray& a = op.attrs.array("value");
    return k_->constant(a.rank() == 0 ? a : a.reshape({}));
  }
  if (pointwise(graph_, op)) {
    std::vector<Value> in;
    for (ValueId x : op.operands)
      in.push_back(eval(x, graph_.type(x).rank() == 0 ? Forms{} : index, guard));
    return apply(op, std::move(in));
  }
  if (op.def == &o::kIota) return iota(op, v, index);
  if (op.def == &o::kBroadcastInDim) {
    const Dims& dims = op.attrs.dims("broadcast_dimensions");
    const Dims& shape = graph_.type(op.operands[0]).dims();
    Forms at(dims.size());
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (shape[i] != 1) at[i] = index[static_cast<std::size_t>(dims[i])];
    return eval(op.operands[0], at, guard);
  }
  if (op.def == &o::kReshape) {
    const Form flat = flatten(index, graph_.type(v).dims());
    return eval(op.operands[0], split_index(flat, graph_.type(op.operands[0]).dims(), guard),
                guard);
  }
  if (op.def == &o::kTranspose) {
    const Dims& perm = op.attrs.dims("permutation");
    Forms at(perm.size());
    for (std::size_t i = 0; i < perm.size(); ++i) at[static_cast<std::size_t>(perm[i])] = index[i];
    return eval(op.operands[0], at, guard);
  }
  if (op.def == &o::kSlice) {
    const Dims& start = op.attrs.dims("start_indices");
    const Dims strides = op.attrs.dims_or("strides", Dims(start.size(), 1));
    Forms at(start.size());
    for (std::size_t i = 0; i < start.size(); ++i)
      at[i] = index[i] * strides[i] + Form::number(start[i]);
    return eval(op.operands[0], at, guard);
  }
  if (op.def == &o::kReverse) {
    Forms at = index;
    for (std::int64_t d : op.attrs.dims("dimensions"))
      at[static_cast<std::size_t>(d)] =
          index[static_cast<std::size_t>(d)] * -1 + Form::number(graph_.type(v).dims()[d] - 1);
    return eval(op.operands[0], at, guard);
  }
  if (op.def == &o::kConcatenate) return concatenate(op, index, guard);
  if (op.def == &o::kPad) return pad(op, index, guard);
  if (op.def == &o::kGather) return gather(op, index, guard);
  if (op.def == &o::kDynamicSlice) return dynamic_slice(op, index, guard);
  throw_internal_error("is_elemental", fmt::format("{} reached a fused loop", op.def->name),
                       SourceLoc::current());
}

Value Elemental::iota(const Op& op, ValueId v, const Forms& index) {
  const Form& f = index[static_cast<std::size_t>(op.attrs.i64("iota_dimension"))];
  cost += 1;
  if (dry()) {
    recorded.push_back(f);
    return {};
  }
  Value i = has_lanes(f) ? index_tile(f) : scalar_index(f);
  const DType to = graph_.type(v).dtype();
  const auto convert = [&](DType t) {
    if (t != DType::kI64) i = apply(o::kConvert, {i}, Attrs{{"result_dtype", Attr(t)}});
  };
  if (!is_complex(to)) {
    convert(to);
    return i;
  }
  convert(real_dtype(to));
  return apply(o::kComplex, {i, k_->splat(real_dtype(to), {}, 0)});
}

Form Elemental::spread_index(Form f, std::int64_t n, std::int64_t step, Guard* ok, bool* never) {
  *ok = narrow(*ok, in_range(f, 0, (n - 1) * step + 1, never));
  if (*never || n == 1) return Form();
  if (step == 1) return f;
  // f = step * at exactly, or a hole.
  bool exact = f.constant % step == 0;
  for (const Term& t : f.terms) exact = exact && t.coef % step == 0;
  if (exact) {
    f.constant /= step;
    for (Term& t : f.terms) t.coef /= step;
    return f;
  }
  if (dry()) {
    recorded.push_back(f);
    return opaque({}, n);
  }
  const Value i = has_lanes(f) ? index_tile(f) : scalar_index(f);
  const Value q = apply(o::kDivide, {i, k_->index(step)});
  const Value hit = apply(o::kCompare, {apply(o::kMultiply, {q, k_->index(step)}), i},
                          Attrs{{"comparison_direction", Attr(ir::EnumAttr("EQ"))}});
  *ok = narrow(*ok, hit);
  return opaque(q, n);
}

Value Elemental::pad(const Op& op, const Forms& index, const Guard& guard) {
  const Dims& low = op.attrs.dims("edge_padding_low");
  const Dims& interior = op.attrs.dims("interior_padding");
  const Dims& dims = graph_.type(op.operands[0]).dims();
  Forms at(dims.size());
  Guard inside;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    bool never = false;
    at[d] =
        spread_index(index[d] + Form::number(-low[d]), dims[d], interior[d] + 1, &inside, &never);
    if (never) return eval(op.operands[1], {}, guard);
  }
  const Value x = eval(op.operands[0], at, narrow(guard, inside));
  const Value fill = eval(op.operands[1], {}, guard);
  if (dry()) return {};
  const Value ok = whole(inside);
  if (!ok.defined()) return x;
  return apply(o::kSelect, {ok, x, fill});
}

Value Elemental::concatenate(const Op& op, const Forms& index, const Guard& guard) {
  const auto axis = static_cast<std::size_t>(op.attrs.i64("dimension"));
  const Form& f = index[axis];
  Value result;
  bool first = true;
  std::int64_t at = 0;
  for (ValueId part : op.operands) {
    const std::int64_t size = graph_.type(part).dims()[axis];
    bool never = false;
    const Value inside = in_range(f, at, at + size, &never);
    if (!never) {
      Forms here = index;
      here[axis] = f + Form::number(-at);
      if (size == 1) here[axis] = Form();
      const Value x = eval(part, here, narrow(guard, inside));
      if (!dry()) result = first || !inside.defined() ? x : apply(o::kSelect, {inside, x, result});
      first = false;
    }
    at += size;
  }
  return result;
}

Value Elemental::gather(const Op& op, const Forms& index, const Guard& guard) {
  const Dims& operand = graph_.type(op.operands[0]).dims();
  const Type& starts = graph_.type(op.operands[1]);
  const Dims offset_dims = op.attrs.dims_or("offset_dims", {});
  const Dims collapsed = op.attrs.dims_or("collapsed_slice_dims", {});
  const Dims operand_batch = op.attrs.dims_or("operand_batching_dims", {});
  const Dims start_batch = op.attrs.dims_or("start_indices_batching_dims", {});
  const Dims map = op.attrs.dims_or("start_index_map", {});
  const Dims& sizes = op.attrs.dims("slice_sizes");
  const auto vector_dim = op.attrs.i64("index_vector_dim");
  // Batch dimensions of the result, in order, are the start indices' without the vector's.
  Forms batch;
  for (std::size_t i = 0; i < index.size(); ++i)
    if (!offset_dims.contains(static_cast<std::int64_t>(i))) batch.push_back(index[i]);
  const auto start_index = [&](std::int64_t component) {
    Forms at;
    std::size_t next = 0;
    for (int d = 0; d < starts.rank(); ++d) {
      if (d == vector_dim)
        at.push_back(Form::number(component));
      else
        at.push_back(starts.dim(d) == 1 ? (++next, Form()) : batch[next++]);
    }
    return at;
  };
  Forms at(operand.size());
  for (std::size_t i = 0; i < map.size(); ++i) {
    const auto d = static_cast<std::size_t>(map[i]);
    const Value start = eval(op.operands[1], start_index(static_cast<std::int64_t>(i)), guard);
    at[d] = clamped(start, starts.dtype(), operand[d] - sizes[d]);
  }
  for (std::size_t i = 0; i < operand_batch.size(); ++i) {
    const std::int64_t sd = start_batch[i];
    at[static_cast<std::size_t>(operand_batch[i])] =
        batch[static_cast<std::size_t>(sd - (sd > vector_dim ? 1 : 0))];
  }
  std::size_t next = 0;
  for (std::size_t d = 0; d < operand.size(); ++d) {
    const auto dim = static_cast<std::int64_t>(d);
    if (collapsed.contains(dim) || operand_batch.contains(dim)) continue;
    if (sizes[d] != 1) at[d] = at[d] + index[static_cast<std::size_t>(offset_dims[next])];
    ++next;
  }
  return eval(op.operands[0], at, guard);
}

Value Elemental::dynamic_slice(const Op& op, const Forms& index, const Guard& guard) {
  const Dims& operand = graph_.type(op.operands[0]).dims();
  const Dims& sizes = op.attrs.dims("slice_sizes");
  Forms at(operand.size());
  for (std::size_t d = 0; d < operand.size(); ++d) {
    const ValueId start = op.operands[d + 1];
    Form f;
    if (operand[d] != sizes[d])
      f = clamped(eval(start, {}, guard), graph_.type(start).dtype(), operand[d] - sizes[d]);
    at[d] = sizes[d] == 1 ? f : f + index[d];
  }
  return eval(op.operands[0], at, guard);
}

}  // namespace xylem::compiler
