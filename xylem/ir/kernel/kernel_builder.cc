#include "xylem/ir/kernel/kernel_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "xylem/base/error.h"
#include "xylem/ir/ops/control.h"
#include "xylem/ir/ops/convert.h"
#include "xylem/ir/ops/elementwise_binary.h"
#include "xylem/ir/ops/movement.h"

namespace xylem::ir {

using Values = std::vector<KernelValue>;

// One graph under construction: the body or a region of it.
struct KernelBuilder::Scope {
  std::int32_t id = 0;
  Builder builder;
  // Values of outer scopes that are used here, in order of first use, with the region parameters
  // that stand for them.
  std::vector<std::pair<KernelValue, ValueId>> captures;
  std::map<std::int64_t, ValueId> index_constants;
};

namespace {

// Numbers values as if the parameters (captures become some late) had been there first.
GraphPtr renumber(const GraphPtr& graph) {
  Graph g = *graph;
  std::vector<ValueId> to(g.values.size(), kNoValue);
  ValueId next = 0;
  for (ValueId v : g.params) to[static_cast<std::size_t>(v)] = next++;
  for (const Op& op : g.ops)
    for (ValueId v : op.results) to[static_cast<std::size_t>(v)] = next++;
  const auto map = [&](auto& ids) {
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = to[static_cast<std::size_t>(ids[i])];
  };
  for (std::size_t v = 0; v < to.size(); ++v)
    g.values[static_cast<std::size_t>(to[v])] = graph->values[v];
  map(g.params);
  map(g.results);
  for (Op& op : g.ops) {
    map(op.operands);
    map(op.results);
  }
  return std::make_shared<const Graph>(std::move(g));
}

}  // namespace

KernelBuilder::KernelBuilder(std::string name) {
  kernel_.name = std::move(name);
  open_scope();
}

KernelBuilder::~KernelBuilder() = default;

KernelBuilder::Scope& KernelBuilder::top() { return *scopes_.back(); }
const KernelBuilder::Scope& KernelBuilder::top() const { return *scopes_.back(); }

void KernelBuilder::open_scope() {
  auto scope = std::make_unique<Scope>();
  scope->id = next_scope_++;
  scope->builder.set_location(loc_);
  scopes_.push_back(std::move(scope));
}

std::unique_ptr<KernelBuilder::Scope> KernelBuilder::close_scope() {
  std::unique_ptr<Scope> scope = std::move(scopes_.back());
  scopes_.pop_back();
  return scope;
}

KernelValue KernelBuilder::wrap(ValueId id) const { return {top().id, id}; }

Values KernelBuilder::wrap(std::span<const ValueId> ids) const {
  Values out;
  out.reserve(ids.size());
  for (ValueId id : ids) out.push_back(wrap(id));
  return out;
}

const Type& KernelBuilder::type(KernelValue v) const {
  for (std::size_t i = scopes_.size(); i-- > 0;)
    if (scopes_[i]->id == v.scope) return scopes_[i]->builder.type(v.id);
  throw_user_error({"kernel builder", "a value of an open scope", "a value of a closed one",
                    "Return the value from its loop or branch and use the result."});
}

ValueId KernelBuilder::resolve_in(std::size_t scope_index, KernelValue v) {
  Scope& scope = *scopes_[scope_index];
  if (scope.id == v.scope) return v.id;
  for (const auto& [outer, inner] : scope.captures)
    if (outer == v) return inner;
  Type t = type(v);
  XYLEM_CHECK(scope_index > 0, "value of an unknown scope");
  // Constants are made anew: a captured number would hide from folding.
  std::int64_t number = 0;
  if (constant_index(v, &number)) {
    auto [it, inserted] = scope.index_constants.emplace(number, kNoValue);
    if (inserted) it->second = scope.builder.constant(HostArray::scalar(number));
    return it->second;
  }
  const ValueId id = scope.builder.param(std::move(t));
  scope.captures.emplace_back(v, id);
  return id;
}

ValueId KernelBuilder::resolve(KernelValue v) { return resolve_in(scopes_.size() - 1, v); }

void KernelBuilder::set_location(Location loc) {
  loc_ = loc;
  top().builder.set_location(loc);
}

// Declarations.

void KernelBuilder::declare(int stage, const char* what) {
  if (stage < stage_ || scopes_.size() != 1 || !top().builder.graph().ops.empty())
    throw_user_error({fmt::format("kernel builder: {}", what),
                      "axes are declared first, then parameters, then scalars, then ops follow",
                      "it comes too late", "Move the declaration up."});
  stage_ = stage;
}

KernelValue KernelBuilder::parallel(std::int64_t size) {
  declare(0, "axis");
  kernel_.grid.push_back({Kernel::AxisKind::kParallel, size, -1});
  return wrap(top().builder.param(Type::tensor(DType::kI64)));
}

KernelValue KernelBuilder::ordered(std::int64_t size) {
  declare(0, "axis");
  kernel_.grid.push_back({Kernel::AxisKind::kOrdered, size, -1});
  return wrap(top().builder.param(Type::tensor(DType::kI64)));
}

KernelValue KernelBuilder::dynamic_axis(Kernel::AxisKind kind, int scalar) {
  declare(0, "axis");
  kernel_.grid.push_back({kind, -1, scalar});
  return wrap(top().builder.param(Type::tensor(DType::kI64)));
}

KernelValue KernelBuilder::param(Kernel::Param p) {
  declare(1, "parameter");
  const Dims& dims = p.map.block.empty() ? p.dims : p.map.block;
  const KernelValue ref = wrap(top().builder.param(Type::ref(p.dtype, dims, p.space)));
  kernel_.params.push_back(std::move(p));
  refs_.push_back(ref);
  return ref;
}

KernelValue KernelBuilder::read(DType dtype, Dims dims, Kernel::BlockMap map) {
  return param({.dtype = dtype, .dims = std::move(dims), .map = std::move(map)});
}

KernelValue KernelBuilder::write(DType dtype, Dims dims, Kernel::BlockMap map, int alias) {
  return param({.dtype = dtype,
                .dims = std::move(dims),
                .access = Kernel::Access::kWrite,
                .map = std::move(map),
                .alias = alias});
}

KernelValue KernelBuilder::read_write(DType dtype, Dims dims, Kernel::BlockMap map) {
  return param({.dtype = dtype,
                .dims = std::move(dims),
                .access = Kernel::Access::kReadWrite,
                .map = std::move(map)});
}

KernelValue KernelBuilder::scratch(DType dtype, Dims dims) {
  return param({.dtype = dtype,
                .dims = std::move(dims),
                .access = Kernel::Access::kReadWrite,
                .space = MemorySpace::kScratch});
}

int KernelBuilder::param_number(KernelValue ref) const {
  const auto it = std::find(refs_.begin(), refs_.end(), ref);
  XYLEM_CHECK(it != refs_.end(), "not a ref of this kernel");
  return static_cast<int>(it - refs_.begin());
}

KernelValue KernelBuilder::scalar() {
  declare(2, "scalar");
  ++kernel_.num_scalars;
  return wrap(top().builder.param(Type::tensor(DType::kI64)));
}

// Ops.

Values KernelBuilder::op(const OpDef& def, std::span<const KernelValue> operands, Attrs attrs,
                         std::vector<GraphPtr> regions) {
  ValueIds ids;
  for (KernelValue v : operands) ids.push_back(resolve(v));
  return wrap(top().builder.op(def, ids, std::move(attrs), std::move(regions)));
}

KernelValue KernelBuilder::one(const OpDef& def, std::span<const KernelValue> operands, Attrs attrs,
                               std::vector<GraphPtr> regions) {
  return op(def, operands, std::move(attrs), std::move(regions))[0];
}

KernelValue KernelBuilder::one(const OpDef& def, List operands, Attrs attrs,
                               std::vector<GraphPtr> regions) {
  return one(def, std::span<const KernelValue>(operands.begin(), operands.size()), std::move(attrs),
             std::move(regions));
}

Values KernelBuilder::clone(const Op& source, std::span<const KernelValue> operands) {
  ValueIds ids;
  for (KernelValue v : operands) ids.push_back(resolve(v));
  return wrap(top().builder.clone(source, ids));
}

Values KernelBuilder::inline_graph(const Graph& graph, std::span<const KernelValue> args) {
  std::vector<ValueId> ids;
  for (KernelValue v : args) ids.push_back(resolve(v));
  return wrap(top().builder.inline_graph(graph, ids));
}

KernelValue KernelBuilder::constant(HostArray value) {
  return wrap(top().builder.constant(std::move(value)));
}

KernelValue KernelBuilder::index(std::int64_t value) {
  auto [it, inserted] = top().index_constants.emplace(value, kNoValue);
  if (inserted) it->second = top().builder.constant(HostArray::scalar(value));
  return wrap(it->second);
}

KernelValue KernelBuilder::splat(DType dtype, const Dims& dims, double value) {
  return wrap(top().builder.splat(dtype, dims, value));
}

KernelValue KernelBuilder::broadcast(KernelValue v, const Dims& shape, const Dims& dims) {
  return one(ops::kBroadcastInDim, {v}, {{"broadcast_dimensions", dims}, {"shape", shape}});
}

bool KernelBuilder::constant_index(KernelValue v, std::int64_t* value) const {
  for (std::size_t i = scopes_.size(); i-- > 0;) {
    if (scopes_[i]->id != v.scope) continue;
    const Graph& g = scopes_[i]->builder.graph();
    const Op* def = g.def(v.id);
    if (!def || !def->def->is(kConstant) || g.type(v.id) != Type::tensor(DType::kI64)) return false;
    *value = *def->attrs.array("value").as<std::int64_t>();
    return true;
  }
  return false;
}

KernelValue KernelBuilder::add(KernelValue a, KernelValue b) {
  std::int64_t x = 0, y = 0;
  const bool cx = constant_index(a, &x), cy = constant_index(b, &y);
  if (cx && cy) return index(x + y);
  if (cx && x == 0) return b;
  if (cy && y == 0) return a;
  return one(ops::kAdd, {a, b});
}

KernelValue KernelBuilder::sub(KernelValue a, KernelValue b) {
  std::int64_t x = 0, y = 0;
  const bool cx = constant_index(a, &x), cy = constant_index(b, &y);
  if (cx && cy) return index(x - y);
  if (cy && y == 0) return a;
  return one(ops::kSubtract, {a, b});
}

KernelValue KernelBuilder::mul(KernelValue a, KernelValue b) {
  std::int64_t x = 0, y = 0;
  const bool cx = constant_index(a, &x), cy = constant_index(b, &y);
  if (cx && cy) return index(x * y);
  if (cx && x == 1) return b;
  if (cy && y == 1) return a;
  if ((cx && x == 0) || (cy && y == 0)) return index(0);
  return one(ops::kMultiply, {a, b});
}

KernelValue KernelBuilder::min(KernelValue a, KernelValue b) {
  std::int64_t x = 0, y = 0;
  if (constant_index(a, &x) && constant_index(b, &y)) return index(std::min(x, y));
  return one(ops::kMinimum, {a, b});
}

KernelValue KernelBuilder::add(KernelValue a, std::int64_t b) {
  return b == 0 ? a : add(a, index(b));
}
KernelValue KernelBuilder::mul(KernelValue a, std::int64_t b) {
  return b == 1 ? a : mul(a, index(b));
}

KernelValue KernelBuilder::less(KernelValue a, KernelValue b) {
  return one(ops::kCompare, {a, b},
             {{"comparison_direction", EnumAttr("LT")}, {"compare_type", EnumAttr("SIGNED")}});
}

namespace {

void add_walk(Values& operands, Attrs& attrs, std::span<const KernelValue> at, const Dims& dims,
              KernelValue mask) {
  operands.insert(operands.end(), at.begin(), at.end());
  attrs.set("dims", dims);
  if (!mask.defined()) return;
  operands.push_back(mask);
  attrs.set("masked", Attr());
}

std::span<const KernelValue> as_span(std::initializer_list<KernelValue> list) {
  return {list.begin(), list.size()};
}

}  // namespace

KernelValue KernelBuilder::load(KernelValue ref, std::span<const KernelValue> at, const Dims& dims,
                                const Dims& shape, KernelValue mask) {
  Values operands = {ref};
  Attrs attrs;
  add_walk(operands, attrs, at, dims, mask);
  attrs.set("shape", shape);
  return one(ops::kKernelLoad, operands, std::move(attrs));
}

KernelValue KernelBuilder::load(KernelValue ref, List at, const Dims& dims, const Dims& shape,
                                KernelValue mask) {
  return load(ref, as_span(at), dims, shape, mask);
}

KernelValue KernelBuilder::load_scalar(KernelValue ref, std::span<const KernelValue> at) {
  return load(ref, at, {}, {});
}

KernelValue KernelBuilder::load_scalar(KernelValue ref, List at) {
  return load(ref, as_span(at), {}, {});
}

void KernelBuilder::store(KernelValue ref, KernelValue value, std::span<const KernelValue> at,
                          const Dims& dims, KernelValue mask, bool streaming) {
  Values operands = {ref, value};
  Attrs attrs;
  add_walk(operands, attrs, at, dims, mask);
  if (streaming) attrs.set("streaming", Attr());
  op(ops::kKernelStore, operands, std::move(attrs));
}

void KernelBuilder::store(KernelValue ref, KernelValue value, List at, const Dims& dims,
                          KernelValue mask, bool streaming) {
  store(ref, value, as_span(at), dims, mask, streaming);
}

KernelValue KernelBuilder::gather(KernelValue ref, KernelValue offsets, KernelValue mask) {
  Values operands = {ref, offsets};
  Attrs attrs;
  if (mask.defined()) {
    operands.push_back(mask);
    attrs.set("masked", Attr());
  }
  return one(ops::kKernelGather, operands, std::move(attrs));
}

void KernelBuilder::scatter(KernelValue ref, KernelValue value, KernelValue offsets,
                            KernelValue mask) {
  Values operands = {ref, value, offsets};
  Attrs attrs;
  if (mask.defined()) {
    operands.push_back(mask);
    attrs.set("masked", Attr());
  }
  op(ops::kKernelScatter, operands, std::move(attrs));
}

void KernelBuilder::prefetch(KernelValue ref, List at) {
  Values operands = {ref};
  operands.insert(operands.end(), at.begin(), at.end());
  op(ops::kKernelPrefetch, operands);
}

KernelValue KernelBuilder::fma(KernelValue a, KernelValue b, KernelValue c) {
  return one(ops::kKernelFma, {a, b, c});
}
KernelValue KernelBuilder::ldexp(KernelValue x, KernelValue n) {
  return one(ops::kKernelLdexp, {x, n});
}

KernelValue KernelBuilder::tail_mask(KernelValue first, KernelValue limit, std::int64_t lanes) {
  // The number of live lanes fits i32 once it is clamped, and narrow compares are cheap.
  const Dims shape = {lanes};
  const KernelValue left =
      one(ops::kConvert, {min(sub(limit, first), index(lanes))}, {{"result_dtype", DType::kI32}});
  const KernelValue lane =
      one(ops::kIota, std::span<const KernelValue>(),
          {{"iota_dimension", 0}, {"shape", shape}, {"result_dtype", DType::kI32}});
  return less(lane, broadcast(left, shape));
}

// Control flow.

Values KernelBuilder::for_(KernelValue lo, KernelValue hi, std::int64_t step,
                           std::span<const KernelValue> carries, const LoopBody& body) {
  std::vector<Type> types;
  for (KernelValue v : carries) types.push_back(type(v));
  open_scope();
  const KernelValue iv = wrap(top().builder.param(Type::tensor(DType::kI64)));
  Values inner;
  for (const Type& t : types) inner.push_back(wrap(top().builder.param(t)));
  Values next = body(iv, inner);
  std::vector<ValueId> results;
  for (KernelValue v : next) results.push_back(resolve(v));
  std::unique_ptr<Scope> scope = close_scope();
  Values operands = {lo, hi};
  operands.insert(operands.end(), carries.begin(), carries.end());
  for (const auto& [outer, id] : scope->captures) operands.push_back(outer);
  GraphPtr region = renumber(scope->builder.finish(std::move(results)));
  return op(ops::kKernelFor, operands,
            {{"step", step}, {"num_carries", static_cast<std::int64_t>(carries.size())}},
            {std::move(region)});
}

Values KernelBuilder::for_(KernelValue lo, KernelValue hi, std::int64_t step, List carries,
                           const LoopBody& body) {
  return for_(lo, hi, step, as_span(carries), body);
}

Values KernelBuilder::if_(KernelValue predicate, const Branch& then, const Branch& otherwise) {
  // Both regions take the same captures, those of the first one first.
  open_scope();
  std::vector<ValueId> then_results;
  for (KernelValue v : then()) then_results.push_back(resolve(v));
  std::unique_ptr<Scope> first = close_scope();
  open_scope();
  for (const auto& [outer, id] : first->captures) resolve(outer);
  std::vector<ValueId> else_results;
  if (otherwise)
    for (KernelValue v : otherwise()) else_results.push_back(resolve(v));
  std::unique_ptr<Scope> second = close_scope();
  Values operands = {predicate};
  for (const auto& [outer, id] : second->captures) {
    if (operands.size() > first->captures.size()) first->builder.param(type(outer));
    operands.push_back(outer);
  }
  GraphPtr then_graph = renumber(first->builder.finish(std::move(then_results)));
  GraphPtr else_graph = renumber(second->builder.finish(std::move(else_results)));
  const auto captures = static_cast<std::int64_t>(operands.size() - 1);
  return op(ops::kIf, operands, {{"num_captures", captures}},
            {std::move(then_graph), std::move(else_graph)});
}

Values KernelBuilder::while_(std::span<const KernelValue> carries, const Condition& condition,
                             const WhileBody& body) {
  std::vector<Type> types;
  for (KernelValue v : carries) types.push_back(type(v));
  open_scope();
  Values inner;
  for (const Type& t : types) inner.push_back(wrap(top().builder.param(t)));
  std::vector<ValueId> condition_results = {resolve(condition(inner))};
  std::unique_ptr<Scope> first = close_scope();
  open_scope();
  inner.clear();
  for (const Type& t : types) inner.push_back(wrap(top().builder.param(t)));
  for (const auto& [outer, id] : first->captures) resolve(outer);
  std::vector<ValueId> body_results;
  for (KernelValue v : body(inner)) body_results.push_back(resolve(v));
  std::unique_ptr<Scope> second = close_scope();
  Values operands(carries.begin(), carries.end());
  for (const auto& [outer, id] : second->captures) {
    if (operands.size() - carries.size() >= first->captures.size())
      first->builder.param(type(outer));
    operands.push_back(outer);
  }
  GraphPtr condition_graph = renumber(first->builder.finish(std::move(condition_results)));
  GraphPtr body_graph = renumber(second->builder.finish(std::move(body_results)));
  const auto captures = static_cast<std::int64_t>(operands.size() - carries.size());
  return op(ops::kWhile, operands, {{"num_captures", captures}},
            {std::move(condition_graph), std::move(body_graph)});
}

Kernel KernelBuilder::finish() {
  XYLEM_CHECK(scopes_.size() == 1, "finish inside a loop or branch");
  std::unique_ptr<Scope> scope = close_scope();
  kernel_.body = scope->builder.finish({});
  Kernel out = std::move(kernel_);
  kernel_ = Kernel();
  open_scope();
  stage_ = 0;
  refs_.clear();
  verify_kernel(out);
  return out;
}

}  // namespace xylem::ir
