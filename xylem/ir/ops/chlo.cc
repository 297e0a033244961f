#include "xylem/ir/ops/chlo.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "xylem/ir/expr.h"
#include "xylem/ir/ops/contraction.h"
#include "xylem/ir/ops/control.h"
#include "xylem/ir/ops/convert.h"
#include "xylem/ir/ops/elementwise_binary.h"
#include "xylem/ir/ops/elementwise_unary.h"
#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/gather_scatter.h"
#include "xylem/ir/ops/internal/call_util.h"
#include "xylem/ir/ops/internal/elementwise.h"
#include "xylem/ir/ops/internal/eval_by_expand.h"
#include "xylem/ir/ops/movement.h"
#include "xylem/ir/ops/transform.h"

namespace xylem::ir::ops {
namespace {

using Types = std::vector<Type>;
using Values = std::vector<ValueId>;
using Operands = std::span<const ValueId>;

// Simple elementwise ones ------------------------------------------------------------------------

struct IsInf {
  bool operator()(double x) const { return std::isinf(x); }
};
struct IsPosInf {
  bool operator()(double x) const { return std::isinf(x) && x > 0; }
};
struct IsNegInf {
  bool operator()(double x) const { return std::isinf(x) && x < 0; }
};

Types predicate_shape_rule(const OpCall& call) {
  return {tensor_operand(call, 0, kElFloat).with_dtype(DType::kBool)};
}

Values expand_is_inf(Builder& b, const Op& op, Operands v) {
  Expr x{&b, v[0]};
  if (op.def == &kIsInf) return {compare(unary(kAbs, x), INFINITY, "EQ").v};
  return {compare(x, op.def == &kIsPosInf ? INFINITY : -INFINITY, "EQ").v};
}

Values expand_conj(Builder& b, const Op&, Operands v) {
  Expr x{&b, v[0]};
  if (!is_complex(x.dtype())) return {v[0]};
  return {binary(kComplex, unary(kReal, x), -unary(kImag, x)).v};
}

// Of half words: the carries of the lower half count.
struct Mulhi {
  int bits = 64;
  std::int64_t operator()(std::int64_t a, std::int64_t b) const {
    return static_cast<std::int64_t>((static_cast<__int128>(a) * b) >> bits);
  }
  std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(a) * b) >> bits);
  }
};

Values expand_mulhi(Builder& b, const Op&, Operands v) {
  Expr x{&b, v[0]}, y{&b, v[1]};
  DType t = x.dtype();
  int bits = dtype_bits(t);
  bool is_signed = is_signed_int(t);
  auto shift = [&](Expr e, int n) {
    return binary(is_signed ? kShiftRightArithmetic : kShiftRightLogical, e, like(e, n));
  };
  if (bits < 64) {
    DType wide = is_signed ? (bits < 32 ? DType::kI32 : DType::kI64)
                           : (bits < 32 ? DType::kU32 : DType::kU64);
    return {convert(shift(convert(x, wide) * convert(y, wide), bits), t).v};
  }
  Expr mask = like(x, 4294967295.0);
  Expr x0 = binary(kAnd, x, mask), y0 = binary(kAnd, y, mask), x1 = shift(x, 32), y1 = shift(y, 32);
  Expr low = binary(kShiftRightLogical, x0 * y0, like(x, 32));
  Expr middle = x1 * y0 + low;
  Expr cross = binary(kAnd, middle, mask) + x0 * y1;
  return {(x1 * y1 + shift(middle, 32) + shift(cross, 32)).v};
}

// constant_like ----------------------------------------------------------------------------------

HostArray scalar_of(const Attr& a, DType dtype) {
  if (const HostArray* h = a.get<HostArray>()) return h->astype(dtype);
  double v = 0;
  if (const ScalarAttr* s = a.get<ScalarAttr>())
    v = is_float(s->dtype) ? s->real : static_cast<double>(s->integer);
  if (const std::int64_t* i = a.get<std::int64_t>()) return HostArray::scalar(*i).astype(dtype);
  if (const double* d = a.get<double>()) v = *d;
  if (const bool* t = a.get<bool>()) v = *t;
  return HostArray::scalar(v).astype(dtype);
}

Types constant_like_shape_rule(const OpCall& call) {
  const Type& x = tensor_operand(call, 0);
  const Attr& a = call.attrs.at("value");
  if (a.get<std::int64_t>()) return {x.with_dtype(DType::kI64)};
  if (a.get<double>()) return {x.with_dtype(DType::kF64)};
  if (a.get<bool>()) return {x.with_dtype(DType::kBool)};
  if (const ScalarAttr* s = a.get<ScalarAttr>()) return {x.with_dtype(s->dtype)};
  const HostArray* h = a.get<HostArray>();
  if (!h || h->size() != 1)
    fail(call, "c1", "the value must be a number", "it is " + a.to_string(), "Write one");
  return {x.with_dtype(h->dtype())};
}

Values expand_constant_like(Builder& b, const Op& op, Operands v) {
  Type t = b.type(v[0]);
  const Attr& value = op.attrs.at("value");
  const ScalarAttr* s = value.get<ScalarAttr>();
  const HostArray* h = value.get<HostArray>();
  DType dtype = s                           ? s->dtype
                : h                         ? h->dtype()
                : value.get<double>()       ? DType::kF64
                : value.get<std::int64_t>() ? DType::kI64
                                            : DType::kBool;
  ValueId c = b.constant(scalar_of(value, dtype).reshape({}));
  return {broadcast_to(Expr{&b, c}, t.dims()).v};
}

Types chlo_constant_shape_rule(const OpCall& call) {
  const HostArray& v = call.attrs.array("value");
  if (!v.defined())
    fail(call, "c1", "the value must be an array", "it is undefined", "Give the array");
  return {Type::tensor(v.dtype(), v.dims())};
}

Values expand_chlo_constant(Builder& b, const Op& op, Operands) {
  return {b.constant(op.attrs.array("value"))};
}

// broadcast_* ------------------------------------------------------------------------------------

struct Broadcast {
  std::string_view name;
  const OpDef* base;
};

constexpr int kNumBroadcasts = 22;

const std::array<Broadcast, kNumBroadcasts>& broadcasts() {
  static const std::array<Broadcast, kNumBroadcasts> kTable = {{
      {"chlo.broadcast_add", &kAdd},
      {"chlo.broadcast_atan2", &kAtan2},
      {"chlo.broadcast_divide", &kDivide},
      {"chlo.broadcast_maximum", &kMaximum},
      {"chlo.broadcast_minimum", &kMinimum},
      {"chlo.broadcast_multiply", &kMultiply},
      {"chlo.broadcast_next_after", &kNextAfter},
      {"chlo.broadcast_polygamma", &kPolygamma},
      {"chlo.broadcast_power", &kPower},
      {"chlo.broadcast_remainder", &kRemainder},
      {"chlo.broadcast_shift_left", &kShiftLeft},
      {"chlo.broadcast_shift_right_arithmetic", &kShiftRightArithmetic},
      {"chlo.broadcast_shift_right_logical", &kShiftRightLogical},
      {"chlo.broadcast_subtract", &kSubtract},
      {"chlo.broadcast_zeta", &kZeta},
      {"chlo.broadcast_and", &kAnd},
      {"chlo.broadcast_or", &kOr},
      {"chlo.broadcast_xor", &kXor},
      {"chlo.broadcast_complex", &kComplex},
      {"chlo.broadcast_compare", &kCompare},
      {"chlo.broadcast_select", &kSelect},
      {"chlo.broadcast_clamp", &kClamp},
  }};
  return kTable;
}

const OpDef& base_of(const OpDef& def) {
  for (const Broadcast& b : broadcasts())
    if (b.name == def.name) return *b.base;
  XYLEM_CHECK(false, def.name);
  return def;
}

// Where each operand's dimensions go in the result's shape.
struct Placement {
  Dims shape;
  std::vector<Dims> dims;
};

Placement place(const OpCall& call) {
  Placement p;
  int rank = 0;
  for (const Type& t : call.operands) rank = std::max(rank, t.rank());
  p.shape = Dims(static_cast<std::size_t>(rank), 1);
  const Attr* given = call.attrs.find("broadcast_dimensions");
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    const Type& t = call.operands[i];
    Dims dims;
    if (given && given->get<Dims>() && t.rank() < rank) {
      dims = *given->get<Dims>();
      check_size(call, "c2", "broadcast_dimensions", dims, t.rank(),
                 "dimension of the smaller operand");
      check_in_range(call, "c2", "broadcast_dimensions", dims, rank);
      check_unique(call, "c2", "broadcast_dimensions", dims);
      check_sorted(call, "c2", "broadcast_dimensions", dims);
    } else {
      for (int d = 0; d < t.rank(); ++d) dims.push_back(rank - t.rank() + d);
    }
    for (int d = 0; d < t.rank(); ++d) {
      std::int64_t& size = p.shape[dims[d]];
      if (t.dim(d) == 1 || t.dim(d) == size) continue;
      if (size == 1 || size == kDynamic) {
        if (size == 1 || t.dim(d) != kDynamic) size = t.dim(d);
      } else if (t.dim(d) != kDynamic) {
        fail(call, "c1", "sizes must be equal or 1 in every dimension",
             fmt::format("operand {} is {}, the others have {} in dimension {}", i, t.to_string(),
                         size, dims[d]),
             "Reshape or slice one of them");
      }
    }
    p.dims.push_back(dims);
  }
  return p;
}

Types broadcast_shape_rule(const OpCall& call) {
  for (int i = 0; i < static_cast<int>(call.operands.size()); ++i)
    tensor_operand(call, i, kElAny, "i1");
  Placement p = place(call);
  Types spread;
  for (const Type& t : call.operands) spread.push_back(Type::tensor(t.dtype(), p.shape));
  Attrs attrs = call.attrs;
  attrs.erase("broadcast_dimensions");
  try {
    return infer_types({base_of(call.def), spread, attrs, {}, call.loc});
  } catch (const ConstraintError& e) {
    fail(call, "c3", "the operands must suit the op that is broadcast", e.message(),
         "Convert them first");
  }
}

Values expand_broadcast(Builder& b, const Op& op, Operands v) {
  Types types;
  for (ValueId x : v) types.push_back(b.type(x));
  Placement p = place({*op.def, types, op.attrs, {}, op.loc});
  for (std::int64_t d : p.shape)
    if (d == kDynamic)
      throw UserError(ErrorParts{op.def->name, "sizes are static", types_text(types),
                                 "Refine the shapes first"},
                      op.loc.source);
  Values spread;
  for (std::size_t i = 0; i < v.size(); ++i)
    spread.push_back(
        types[i].dims() == p.shape ? v[i] : broadcast_in_dim(Expr{&b, v[i]}, p.shape, p.dims[i]).v);
  Attrs attrs = op.attrs;
  attrs.erase("broadcast_dimensions");
  return b.op(base_of(*op.def), spread, attrs).to_vector();
}

DimMap opaque_dims(const OpCall& call, std::span<const Type> results) {
  DimMap m;
  for (const Type& t : call.operands)
    m.operands.push_back(add_factors(m, t.dims(), DimMap::FactorKind::kOpaque));
  for (const Type& t : results)
    m.results.push_back(add_factors(m, t.dims(), DimMap::FactorKind::kOpaque));
  return m;
}

OpDef make_broadcast(const Broadcast& b) {
  OpDef d{.name = b.name,
          .shape = broadcast_shape_rule,
          .eval = eval_by_expand,
          .dims = opaque_dims,
          .expand = expand_broadcast,
          .quant = QuantSupport::kPerTensor,
          .result_labels = "c1"};
  d.min_operands = d.max_operands =
      b.name == "chlo.broadcast_select" || b.name == "chlo.broadcast_clamp" ? 3 : 2;
  d.attrs = {{"broadcast_dimensions", AttrKind::kDims, false}};
  if (b.name == "chlo.broadcast_compare") {
    d.attrs.push_back({"comparison_direction", AttrKind::kEnum, true, "EQ NE GE GT LE LT"});
    d.attrs.push_back({"compare_type", AttrKind::kEnum, false, "FLOAT TOTALORDER SIGNED UNSIGNED"});
  }
  d.labels = intern(fmt::format("{0}_i1 {0}_c1 {0}_c2 {0}_c3", b.name.substr(5)));
  return d;
}

// ragged_dot -------------------------------------------------------------------------------------

struct Ragged {
  Dims lhs_batch, rhs_batch, lhs_contract, rhs_contract, ragged, group;
  explicit Ragged(const Attrs& a)
      : lhs_batch(a.dims_or("lhs_batching_dimensions", {})),
        rhs_batch(a.dims_or("rhs_batching_dimensions", {})),
        lhs_contract(a.dims_or("lhs_contracting_dimensions", {})),
        rhs_contract(a.dims_or("rhs_contracting_dimensions", {})),
        ragged(a.dims_or("lhs_ragged_dimensions", {})),
        group(a.dims_or("rhs_group_dimensions", {})) {}

  enum class Mode { kFree, kContracting, kBatch };
  Mode mode() const {
    if (contains(lhs_batch, ragged[0])) return Mode::kBatch;
    return contains(lhs_contract, ragged[0]) ? Mode::kContracting : Mode::kFree;
  }
  // dot_general of one group: rhs without its group dimension.
  Attrs dot(const Attrs& a) const {
    auto lower = [&](const Dims& d) {
      Dims out;
      for (std::int64_t v : d) out.push_back(!group.empty() && v > group[0] ? v - 1 : v);
      return out;
    };
    Attrs out{{"lhs_batching_dimensions", lhs_batch},
              {"rhs_batching_dimensions", lower(rhs_batch)},
              {"lhs_contracting_dimensions", lhs_contract},
              {"rhs_contracting_dimensions", lower(rhs_contract)}};
    for (std::string_view name : {"precision_config", "result_dtype"})
      if (const Attr* v = a.find(name)) out.set(name, *v);
    return out;
  }
};

Type without_dim(const Type& t, std::int64_t d) {
  Dims dims = t.dims();
  dims.erase(static_cast<std::size_t>(d));
  return Type::tensor(t.dtype(), dims);
}

Types ragged_dot_shape_rule(const OpCall& call) {
  const Type &lhs = tensor_operand(call, 0), &rhs = tensor_operand(call, 1);
  const Type& sizes = tensor_operand(call, 2, kElInt);
  Ragged r(call.attrs);
  if (r.ragged.size() != 1)
    fail(call, "c1", "there must be one ragged dimension of lhs", list(r.ragged), "Name one");
  check_in_range(call, "c2", "lhs_ragged_dimensions", r.ragged, lhs.rank());
  check_in_range(call, "c3", "rhs_group_dimensions", r.group, rhs.rank());
  bool free = r.mode() == Ragged::Mode::kFree;
  if (r.group.size() != (free ? 1u : 0u))
    fail(call, "c4",
         free ? "rhs must have one group dimension where the ragged dimension is not contracted"
              : "rhs must have no group dimension where the ragged dimension is contracted or "
                "batched",
         list(r.group), "Change rhs_group_dimensions");
  for (const Dims* d : {&r.rhs_batch, &r.rhs_contract})
    if (free && contains(*d, r.group[0]))
      fail(call, "c5", "the group dimension must be neither a batching nor a contracting one",
           list(*d), "Name another");
  if (sizes.rank() < 1)
    fail(call, "c6", "group_sizes must have a dimension", "it is " + sizes.to_string(),
         "Pass one size for each group");
  if (sizes.rank() > 1) {
    // One vector of sizes for each index of the dimensions around the ragged one.
    Dims want;
    auto add = [&](const Dims& dims) {
      for (std::int64_t d : dims) want.push_back(lhs.dims()[d]);
    };
    if (r.mode() == Ragged::Mode::kBatch) {
      for (std::int64_t d : r.lhs_batch) {
        if (d == r.ragged[0]) break;
        want.push_back(lhs.dims()[d]);
      }
    } else {
      add(r.lhs_batch);
      if (free) {
        Dims taken = r.lhs_batch;
        for (std::int64_t d : r.lhs_contract) taken.push_back(d);
        for (std::int64_t d : other_dims(lhs.rank(), taken)) {
          if (d == r.ragged[0]) break;
          want.push_back(lhs.dims()[d]);
        }
      } else {
        for (std::int64_t d : r.lhs_contract) {
          if (d == r.ragged[0]) break;
          want.push_back(lhs.dims()[d]);
        }
      }
    }
    want.push_back(sizes.dims().back());
    if (!dims_fit(want, sizes.dims()))
      fail(call, "c6", "group_sizes must be a vector, or have a vector for each prefix of lhs",
           fmt::format("it is {}, expected shape {}", sizes.to_string(), list(want)),
           "Reshape group_sizes");
  }
  std::int64_t groups = sizes.dims().back();
  if (free && !size_fits(rhs.dims()[r.group[0]], groups))
    fail(call, "c7", "there must be a size for each group",
         fmt::format("rhs is {}, group_sizes {}", rhs.to_string(), sizes.to_string()),
         "Make them agree");
  Types types{lhs, free ? without_dim(rhs, r.group[0]) : rhs};
  Type t;
  Attrs dot = r.dot(call.attrs);
  try {
    t = infer_types({kDotGeneral, types, dot, {}, call.loc})[0];
  } catch (const ConstraintError& e) {
    fail(call, "c8", "each group must be a dot_general", e.message(),
         "Correct the dimension lists");
  }
  if (r.mode() == Ragged::Mode::kContracting) {
    Dims dims = t.dims();
    dims.insert(0, groups);
    t = t.with_dims(dims);
  }
  return {t};
}

Values expand_ragged_dot(Builder& b, const Op& op, Operands v) {
  Ragged r(op.attrs);
  Expr lhs{&b, v[0]}, rhs{&b, v[1]}, sizes{&b, v[2]};
  Attrs dot = r.dot(op.attrs);
  if (r.mode() == Ragged::Mode::kBatch) return {b.one(kDotGeneral, {lhs.v, rhs.v}, dot)};
  std::int64_t d = r.ragged[0], groups = sizes.dims().back();
  // Positions along the ragged dimension, compared with the group's borders; these are the same in
  // all batches if group_sizes has one dimension, else it has lhs' batching dimensions in front.
  Expr position = iota(b, sizes.dtype(), lhs.dims(), static_cast<int>(d));
  Dims batch;
  for (int i = 0; i + 1 < sizes.rank(); ++i) batch.push_back(sizes.dims()[i]);
  Dims to;
  for (std::size_t i = 0; i < batch.size(); ++i) to.push_back(r.lhs_batch[i]);
  Expr start = broadcast_to(scalar(b, sizes.dtype(), 0), batch);
  Expr zero = zeros(b, lhs.type());
  Values parts;
  Expr sum;
  for (std::int64_t g = 0; g < groups; ++g) {
    Dims low(sizes.dims().size(), 0), high = sizes.dims();
    low[low.ssize() - 1] = g;
    high[high.ssize() - 1] = g + 1;
    Expr size = reshape(slice(sizes, low, high, Dims(low.size(), 1)), batch);
    Expr end = start + size;
    auto spread = [&](Expr e) { return broadcast_in_dim(e, lhs.dims(), to); };
    Expr inside =
        binary(kAnd, compare(position, spread(start), "GE"), compare(position, spread(end), "LT"));
    Expr own = select(inside, lhs, zero);
    Expr weights = rhs;
    if (!r.group.empty()) {
      Dims from(rhs.dims().size(), 0), limit = rhs.dims();
      from[r.group[0]] = g;
      limit[r.group[0]] = g + 1;
      weights = reshape(slice(rhs, from, limit, Dims(from.size(), 1)),
                        without_dim(rhs.type(), r.group[0]).dims());
    }
    Expr product{&b, b.one(kDotGeneral, {own.v, weights.v}, dot)};
    if (r.mode() == Ragged::Mode::kContracting) {
      parts.push_back(broadcast_new_dim(product, 0, 1).v);
    } else {
      sum = sum.defined() ? sum + product : product;
    }
    start = end;
  }
  if (r.mode() == Ragged::Mode::kContracting)
    return {b.one(kConcatenate, parts, {{"dimension", 0}})};
  return {sum.v};
}

// scan -------------------------------------------------------------------------------------------

struct ScanShape {
  std::size_t inputs;
  std::int64_t dimension, length = 0;

  ScanShape(const Attrs& a, std::size_t operands)
      : inputs(operands), dimension(a.i64_or("dimension", 0)) {
    if (const Attr* s = a.find("operandSegmentSizes"))
      if (const Dims* d = s->get<Dims>(); d && d->size() == 2 && (*d)[0] >= 0)
        inputs = std::min(operands, static_cast<std::size_t>((*d)[0]));
    length = a.i64_or("scan_dim_size", -1);
  }
};

Types chlo_scan_shape_rule(const OpCall& call) {
  ScanShape s(call.attrs, call.operands.size());
  Types params, carries;
  std::int64_t length = s.length;
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    const Type& t = tensor_operand(call, static_cast<int>(i), kElAny, "i1");
    if (i >= s.inputs) {
      params.push_back(t);
      carries.push_back(t);
      continue;
    }
    if (s.dimension < 0 || s.dimension >= t.rank())
      fail(call, "c1", fmt::format("dimension must lie in [0, {})", t.rank()),
           fmt::format("it is {}", s.dimension), "Name a dimension of every input");
    std::int64_t n = t.dims()[s.dimension];
    if (length >= 0 && !size_fits(n, length))
      fail(call, "c2", "inputs must have one size along the dimension",
           fmt::format("{} and {}", length, n), "Slice or pad one of them");
    if (n != kDynamic) length = n;
    params.push_back(without_dim(t, s.dimension));
  }
  if (length < 0)
    fail(call, "c3", "the number of steps must follow from an input or scan_dim_size",
         "there is neither", "Give scan_dim_size");
  const GraphPtr& g = call.regions[0];
  check_region(call, "c4", 0, params, nullptr);
  Types returned = g->result_types();
  bool good = returned.size() >= carries.size() &&
              std::equal(carries.begin(), carries.end(),
                         returned.end() - static_cast<std::ptrdiff_t>(carries.size()));
  if (!good)
    fail(call, "c5", fmt::format("the body must return outputs and then {}", types_text(carries)),
         fmt::format("it returns {}", types_text(returned)), "Return the carries last");
  Types results;
  for (std::size_t i = 0; i + carries.size() < returned.size(); ++i) {
    Dims dims = returned[i].dims();
    if (s.dimension > dims.ssize())
      fail(call, "c1", fmt::format("dimension must lie in [0, {}]", dims.ssize()),
           fmt::format("it is {}", s.dimension), "Return outputs of a higher rank");
    dims.insert(static_cast<std::size_t>(s.dimension), length);
    results.push_back(returned[i].with_dims(dims));
  }
  results.insert(results.end(), carries.begin(), carries.end());
  return results;
}

// As xylem.scan, which runs along dimension 0 and has the carries in front.
Values expand_chlo_scan(Builder& b, const Op& op, Operands v) {
  ScanShape s(op.attrs, v.size());
  const Graph& body = *op.regions[0];
  std::size_t carries = v.size() - s.inputs, outputs = body.results.size() - carries;
  Types types;
  for (ValueId x : v) types.push_back(b.type(x));
  for (std::size_t i = 0; i < s.inputs; ++i) s.length = types[i].dims()[s.dimension];
  Builder inner("scan");
  Values carry_args, slice_args;
  for (std::size_t i = s.inputs; i < v.size(); ++i) carry_args.push_back(inner.param(types[i]));
  for (std::size_t i = 0; i < s.inputs; ++i)
    slice_args.push_back(inner.param(without_dim(types[i], s.dimension)));
  Values args = slice_args;
  args.insert(args.end(), carry_args.begin(), carry_args.end());
  Values returned = inner.inline_graph(body, args);
  Values ordered(returned.begin() + static_cast<std::ptrdiff_t>(outputs), returned.end());
  ordered.insert(ordered.end(), returned.begin(),
                 returned.begin() + static_cast<std::ptrdiff_t>(outputs));
  GraphPtr step = inner.finish(ordered);
  Values operands(v.begin() + static_cast<std::ptrdiff_t>(s.inputs), v.end());
  for (std::size_t i = 0; i < s.inputs; ++i)
    operands.push_back(move_dim(Expr{&b, v[i]}, static_cast<int>(s.dimension), 0).v);
  ValueIds r = b.op(kScan, operands,
                    {{"length", s.length},
                     {"num_consts", 0},
                     {"num_carry", static_cast<std::int64_t>(carries)},
                     {"reverse", op.attrs.flag("is_reverse")}},
                    {step});
  Values out;
  for (std::size_t i = 0; i < outputs; ++i)
    out.push_back(move_dim(Expr{&b, r[carries + i]}, 0, static_cast<int>(s.dimension)).v);
  for (std::size_t i = 0; i < carries; ++i) out.push_back(r[i]);
  return out;
}

// Old StableHLO ops ------------------------------------------------------------------------------

// "ij,jk->ik": the letters of each operand and of the result.
struct EinsumConfig {
  std::vector<std::string> operands;
  std::string result;
  bool good = false;

  EinsumConfig(const std::string& text, std::size_t n) {
    std::size_t arrow = text.find("->");
    if (arrow == std::string::npos) return;
    std::string left = text.substr(0, arrow);
    result = text.substr(arrow + 2);
    for (std::size_t at = 0;;) {
      std::size_t comma = left.find(',', at);
      operands.push_back(left.substr(at, comma - at));
      if (comma == std::string::npos) break;
      at = comma + 1;
    }
    auto letters = [](const std::string& s) {
      for (std::size_t i = 0; i < s.size(); ++i)
        if (!std::isalpha(static_cast<unsigned char>(s[i])) || s.find(s[i]) != i) return false;
      return true;
    };
    good = operands.size() == n && letters(result);
    for (const std::string& o : operands) good = good && letters(o);
    for (char c : result)
      good = good && std::any_of(operands.begin(), operands.end(), [&](const std::string& o) {
               return o.find(c) != std::string::npos;
             });
  }
};

Types einsum_shape_rule(const OpCall& call) {
  EinsumConfig c(call.attrs.str_or("einsum_config", ""), call.operands.size());
  if (!c.good)
    fail(call, "c1",
         fmt::format("einsum_config must have letters for {} operands and a result, each once",
                     call.operands.size()),
         call.attrs.str_or("einsum_config", ""), "Write it like \"ij,jk->ik\"");
  std::vector<std::pair<char, std::int64_t>> sizes;
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    const Type& t = tensor_operand(call, static_cast<int>(i), kElAny);
    if (t.rank() != static_cast<int>(c.operands[i].size()))
      fail(call, "c2",
           fmt::format("operand {} must have a dimension for each of '{}'", i, c.operands[i]),
           "it is " + t.to_string(), "Name every dimension");
    for (int d = 0; d < t.rank(); ++d) {
      char name = c.operands[i][static_cast<std::size_t>(d)];
      auto known =
          std::find_if(sizes.begin(), sizes.end(), [&](const auto& s) { return s.first == name; });
      if (known == sizes.end()) {
        sizes.push_back({name, t.dim(d)});
      } else if (!size_fits(known->second, t.dim(d))) {
        fail(call, "c3", fmt::format("dimension '{}' must have one size", name),
             types_text(call.operands), "Slice or pad one of them");
      }
    }
  }
  if (call.operands.size() == 2 && call.operands[0].dtype() != call.operands[1].dtype())
    fail(call, "c4", "operands must have one dtype", types_text(call.operands), "Convert one");
  Dims shape;
  for (char name : c.result)
    for (auto [n, size] : sizes)
      if (n == name) shape.push_back(size);
  const Attr* dtype = call.attrs.find("result_dtype");
  return {Type::tensor(dtype ? *dtype->get<DType>() : call.operands[0].dtype(), shape)};
}

Values expand_einsum(Builder& b, const Op& op, Operands v) {
  EinsumConfig c(op.attrs.str_or("einsum_config", ""), v.size());
  // Letters of one operand alone that the result lacks are summed first.
  std::vector<Expr> x;
  std::vector<std::string> names = c.operands;
  for (std::size_t i = 0; i < v.size(); ++i) {
    Expr e{&b, v[i]};
    Dims summed;
    std::string kept;
    for (std::size_t d = 0; d < names[i].size(); ++d) {
      char n = names[i][d];
      bool other = v.size() == 2 && names[1 - i].find(n) != std::string::npos;
      if (!other && c.result.find(n) == std::string::npos) {
        summed.push_back(static_cast<std::int64_t>(d));
      } else {
        kept += n;
      }
    }
    if (!summed.empty()) e = reduce_sum(e, summed);
    names[i] = kept;
    x.push_back(e);
  }
  Expr y = x[0];
  std::string order = names[0];
  if (v.size() == 2) {
    Dims lb, rb, lc, rc;
    std::string batch, left, right;
    for (std::size_t d = 0; d < names[0].size(); ++d) {
      std::size_t k = names[1].find(names[0][d]);
      if (k == std::string::npos) {
        left += names[0][d];
      } else if (c.result.find(names[0][d]) != std::string::npos) {
        lb.push_back(static_cast<std::int64_t>(d));
        rb.push_back(static_cast<std::int64_t>(k));
        batch += names[0][d];
      } else {
        lc.push_back(static_cast<std::int64_t>(d));
        rc.push_back(static_cast<std::int64_t>(k));
      }
    }
    for (char n : names[1])
      if (names[0].find(n) == std::string::npos) right += n;
    Attrs attrs{{"lhs_batching_dimensions", lb},
                {"rhs_batching_dimensions", rb},
                {"lhs_contracting_dimensions", lc},
                {"rhs_contracting_dimensions", rc}};
    if (const Attr* dtype = op.attrs.find("result_dtype")) attrs.set("result_dtype", *dtype);
    y = Expr{&b, b.one(kDotGeneral, {x[0].v, x[1].v}, attrs)};
    order = batch + left + right;
  }
  Dims permutation;
  for (char n : c.result) permutation.push_back(static_cast<std::int64_t>(order.find(n)));
  Expr r = transpose(y, permutation);
  if (const Attr* dtype = op.attrs.find("result_dtype")) r = convert(r, *dtype->get<DType>());
  return {r.v};
}

Types torch_index_select_shape_rule(const OpCall& call) {
  const Type& x = tensor_operand(call, 0);
  const Type& i = tensor_operand(call, 1, kElInt);
  std::int64_t dim = call.attrs.i64("dim"), batch = call.attrs.i64("batch_dims");
  if (dim < 0 || dim >= x.rank())
    fail(call, "c1", fmt::format("dim must lie in [0, {})", x.rank()), fmt::format("it is {}", dim),
         "Name a dimension of the operand");
  bool good = batch >= 0 && batch <= dim && batch <= i.rank();
  for (std::int64_t d = 0; good && d < batch; ++d) good = size_fits(x.dims()[d], i.dims()[d]);
  if (!good)
    fail(call, "c2", "the first batch_dims dimensions must agree, before dim",
         fmt::format("batch_dims = {}, dim = {}, {} and {}", batch, dim, x.to_string(),
                     i.to_string()),
         "Change batch_dims");
  Dims shape;
  for (std::int64_t d = 0; d < dim; ++d) shape.push_back(x.dims()[d]);
  for (std::int64_t d = batch; d < i.rank(); ++d) shape.push_back(i.dims()[d]);
  for (std::int64_t d = dim + 1; d < x.rank(); ++d) shape.push_back(x.dims()[d]);
  return {Type::tensor(x.dtype(), shape)};
}

Values expand_torch_index_select(Builder& b, const Op& op, Operands v) {
  std::int64_t dim = op.attrs.i64("dim"), batch = op.attrs.i64("batch_dims");
  const Type x = b.type(v[0]), i = b.type(v[1]);
  if (x.size() == 0) {  // nothing to select from
    Types types{x, i};
    return {zeros(b, infer_types({*op.def, types, op.attrs, {}, op.loc})[0]).v};
  }
  Dims sizes = x.dims(), offset, batching;
  sizes[dim] = 1;
  for (std::int64_t d = 0; d < batch; ++d) {
    sizes[d] = 1;
    batching.push_back(d);
  }
  // gather's result: batch, then index dimensions, with the operand's others as offsets; the
  // operand's dimensions before dim stand before the index dimensions.
  std::int64_t index_dims = i.rank() - batch;
  for (std::int64_t d = batch; d < dim; ++d) offset.push_back(d);
  for (std::int64_t d = dim + 1; d < x.rank(); ++d) offset.push_back(d - 1 + index_dims);
  return {b.one(kGather, {v[0], v[1]},
                {{"offset_dims", offset},
                 {"collapsed_slice_dims", Dims{dim}},
                 {"operand_batching_dims", batching},
                 {"start_indices_batching_dims", batching},
                 {"start_index_map", Dims{dim}},
                 {"index_vector_dim", i.rank()},
                 {"slice_sizes", sizes}})};
}

OpDef pointwise(std::string_view name, int operands, ShapeRule shape, EvalRule eval,
                ExpandRule expand, std::string_view labels) {
  return {.name = name,
          .traits = kPointwise | kExact,
          .min_operands = operands,
          .max_operands = operands,
          .shape = shape,
          .eval = eval,
          .labels = labels,
          .expand = expand,
          .result_labels = "c1"};
}

struct ConjFunctor {
  template <class T>
  std::complex<T> operator()(std::complex<T> x) const {
    return std::conj(x);
  }
  double operator()(double x) const { return x; }
};

}  // namespace

const OpDef kIsInf = pointwise("chlo.is_inf", 1, predicate_shape_rule, unary_eval<IsInf, kElFloat>,
                               expand_is_inf, "is_inf_i1");
const OpDef kIsPosInf = pointwise("chlo.is_pos_inf", 1, predicate_shape_rule,
                                  unary_eval<IsPosInf, kElFloat>, expand_is_inf, "is_pos_inf_i1");
const OpDef kIsNegInf = pointwise("chlo.is_neg_inf", 1, predicate_shape_rule,
                                  unary_eval<IsNegInf, kElFloat>, expand_is_inf, "is_neg_inf_i1");
const OpDef kConj = pointwise("chlo.conj", 1, unary_shape_rule<kElInexact>,
                              unary_eval<ConjFunctor, kElInexact>, expand_conj, "conj_i1");
const OpDef kMulhi =
    pointwise("chlo.mulhi", 2, binary_shape_rule<kElInt>, binary_eval<Mulhi, kElInt>, expand_mulhi,
              "mulhi_i1 mulhi_i2 mulhi_c1");
const OpDef kConstantLike = {.name = "chlo.constant_like",
                             .min_operands = 1,
                             .max_operands = 1,
                             .attrs = {{"value", AttrKind::kAny}},
                             .shape = constant_like_shape_rule,
                             .eval = eval_by_expand,
                             .dims = opaque_dims,
                             .labels = "constant_like_i1 constant_like_c1",
                             .expand = expand_constant_like,
                             .result_labels = "c1"};
const OpDef kChloConstant = {.name = "chlo.constant",
                             .attrs = {{"value", AttrKind::kArray}},
                             .shape = chlo_constant_shape_rule,
                             .eval = eval_by_expand,
                             .dims = opaque_dims,
                             .labels = "constant_c1",
                             .expand = expand_chlo_constant,
                             .result_labels = "c1"};
const OpDef kRaggedDot = {
    .name = "chlo.ragged_dot",
    .min_operands = 3,
    .max_operands = 3,
    .attrs = {{"lhs_batching_dimensions", AttrKind::kDims, false},
              {"rhs_batching_dimensions", AttrKind::kDims, false},
              {"lhs_contracting_dimensions", AttrKind::kDims, false},
              {"rhs_contracting_dimensions", AttrKind::kDims, false},
              {"lhs_ragged_dimensions", AttrKind::kDims, false},
              {"rhs_group_dimensions", AttrKind::kDims, false},
              {"precision_config", AttrKind::kList, false},
              {"result_dtype", AttrKind::kDType, false}},
    .shape = ragged_dot_shape_rule,
    .eval = eval_by_expand,
    .dims = opaque_dims,
    .labels =
        "ragged_dot_i1 ragged_dot_i2 ragged_dot_i3 ragged_dot_c1 ragged_dot_c2 ragged_dot_c3 "
        "ragged_dot_c4 ragged_dot_c5 ragged_dot_c6 ragged_dot_c7 ragged_dot_c8",
    .expand = expand_ragged_dot,
    .result_labels = "o1"};
const OpDef kChloScan = {.name = "chlo.scan",
                         .traits = kControlFlow,
                         .max_operands = -1,
                         .num_regions = 1,
                         .attrs = {{"operandSegmentSizes", AttrKind::kDims, false},
                                   {"resultSegmentSizes", AttrKind::kDims, false},
                                   {"dimension", AttrKind::kInt},
                                   {"scan_dim_size", AttrKind::kInt, false},
                                   {"is_reverse", AttrKind::kBool, false},
                                   {"is_associative", AttrKind::kBool, false}},
                         .shape = chlo_scan_shape_rule,
                         .eval = eval_by_expand,
                         .dims = opaque_dims,
                         .labels = "scan_i1 scan_c1 scan_c2 scan_c3 scan_c4 scan_c5",
                         .expand = expand_chlo_scan,
                         .result_labels = "o1"};
const OpDef kEinsum = {
    .name = "stablehlo.einsum",
    .min_operands = 2,
    .max_operands = 2,
    .attrs = {{"einsum_config", AttrKind::kString}, {"result_dtype", AttrKind::kDType, false}},
    .shape = einsum_shape_rule,
    .eval = eval_by_expand,
    .dims = opaque_dims,
    .labels = "einsum_i1 einsum_i2 einsum_c1 einsum_c2 einsum_c3 einsum_c4",
    .expand = expand_einsum,
    .result_labels = "o1"};
const OpDef kUnaryEinsum = {
    .name = "stablehlo.unary_einsum",
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {{"einsum_config", AttrKind::kString}, {"result_dtype", AttrKind::kDType, false}},
    .shape = einsum_shape_rule,
    .eval = eval_by_expand,
    .dims = opaque_dims,
    .labels = "unary_einsum_i1 unary_einsum_c1 unary_einsum_c2",
    .expand = expand_einsum,
    .result_labels = "o1"};
const OpDef kTorchIndexSelect = {
    .name = "stablehlo.torch_index_select",
    .traits = kExact,
    .min_operands = 2,
    .max_operands = 2,
    .attrs = {{"dim", AttrKind::kInt}, {"batch_dims", AttrKind::kInt}},
    .shape = torch_index_select_shape_rule,
    .eval = eval_by_expand,
    .dims = opaque_dims,
    .labels =
        "torch_index_select_i1 torch_index_select_i2 torch_index_select_c1 "
        "torch_index_select_c2",
    .expand = expand_torch_index_select,
    .result_labels = "o1"};

std::span<const OpDef* const> broadcast_ops() {
  static const std::vector<const OpDef*> kOps = [] {
    std::vector<const OpDef*> ops;
    for (const Broadcast& b : broadcasts()) ops.push_back(new OpDef(make_broadcast(b)));
    return ops;
  }();
  return kOps;
}

Family chlo_family() {
  static const std::vector<const OpDef*> kOps = [] {
    std::vector<const OpDef*> ops = {
        &kLgamma,    &kDigamma,  &kPolygamma, &kZeta,        &kBesselI1e,       &kIsInf,
        &kIsPosInf,  &kIsNegInf, &kConj,      &kMulhi,       &kConstantLike,    &kChloConstant,
        &kRaggedDot, &kChloScan, &kEinsum,    &kUnaryEinsum, &kTorchIndexSelect};
    for (const OpDef* d : broadcast_ops()) ops.push_back(d);
    return ops;
  }();
  return kOps;
}

}  // namespace xylem::ir::ops
