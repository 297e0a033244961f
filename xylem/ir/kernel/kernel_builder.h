#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "xylem/ir/builder.h"
#include "xylem/ir/kernel.h"

namespace xylem::ir {

// A value of a kernel that is being built. It may be used in the scope that made it and in every
// scope inside: the builder turns such uses into captures of the closed regions.
struct KernelValue {
  std::int32_t scope = -1;
  ValueId id = kNoValue;
  bool defined() const { return id != kNoValue; }
  friend bool operator==(const KernelValue&, const KernelValue&) = default;
};

// Builds a kernel: first axes, then parameters, then launch scalars, then ops.
//
//   KernelBuilder k("scale");
//   KernelValue row = k.parallel(64);
//   KernelValue x = k.read(DType::kF32, {64, 1024});
//   KernelValue y = k.write(DType::kF32, {64, 1024});
//   k.for_(k.index(0), k.index(1024), 16, {}, [&](KernelValue j, auto) {
//     KernelValue v = k.load(x, {row, j}, {1}, {16});
//     k.store(y, k.one(ops::kMultiply, {v, v}), {row, j}, {1});
//     return std::vector<KernelValue>{};
//   });
//   Kernel kernel = k.finish();
//
// Not thread safe. Every method throws UserError or ConstraintError if a rule is broken.
class KernelBuilder {
 public:
  using Value = KernelValue;
  using Values = std::vector<KernelValue>;
  using List = std::initializer_list<KernelValue>;

  explicit KernelBuilder(std::string name = "");
  ~KernelBuilder();
  KernelBuilder(const KernelBuilder&) = delete;
  KernelBuilder& operator=(const KernelBuilder&) = delete;

  // Declarations.
  //
  // Grid axes, outermost first; the value is the point's index (i64).
  Value parallel(std::int64_t size);
  Value ordered(std::int64_t size);
  // An axis whose size is launch scalar number `scalar`.
  Value dynamic_axis(Kernel::AxisKind kind, int scalar);
  // Refs. For blocks of a buffer give `map`; `alias` is the number of another parameter (the
  // `param_number` of its ref).
  Value read(DType dtype, Dims dims, Kernel::BlockMap map = {});
  Value write(DType dtype, Dims dims, Kernel::BlockMap map = {}, int alias = -1);
  Value read_write(DType dtype, Dims dims, Kernel::BlockMap map = {});
  Value scratch(DType dtype, Dims dims);
  Value param(Kernel::Param p);
  int param_number(Value ref) const;
  Value scalar();

  // Ops. All work in the innermost open scope.
  Values op(const OpDef& def, std::span<const Value> operands, Attrs attrs = {},
            std::vector<GraphPtr> regions = {});
  Value one(const OpDef& def, List operands, Attrs attrs = {}, std::vector<GraphPtr> regions = {});
  Value one(const OpDef& def, std::span<const Value> operands, Attrs attrs = {},
            std::vector<GraphPtr> regions = {});
  // A copy of an op of another graph (attributes, regions, location) on these operands.
  Values clone(const Op& op, std::span<const Value> operands);
  Values inline_graph(const Graph& graph, std::span<const Value> args);

  Value constant(HostArray value);
  Value index(std::int64_t value);  // i64[]; one value per scope and number
  Value splat(DType dtype, const Dims& dims, double value);
  // A scalar or tile repeated along new or size-1 dimensions; `dims[i]` is where dimension i of
  // the operand goes.
  Value broadcast(Value v, const Dims& shape, const Dims& dims = {});

  // i64 scalars, with constants folded.
  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value min(Value a, Value b);
  Value add(Value a, std::int64_t b);
  Value mul(Value a, std::int64_t b);
  // i1[]: a < b.
  Value less(Value a, Value b);

  // The tile of `shape` that walks along the ref dimensions `dims` from the element at `at`.
  Value load(Value ref, std::span<const Value> at, const Dims& dims, const Dims& shape,
             Value mask = {});
  Value load(Value ref, List at, const Dims& dims, const Dims& shape, Value mask = {});
  Value load_scalar(Value ref, std::span<const Value> at);
  Value load_scalar(Value ref, List at);
  // `streaming` hints that the tile is not read again soon.
  void store(Value ref, Value value, std::span<const Value> at, const Dims& dims, Value mask = {},
             bool streaming = false);
  void store(Value ref, Value value, List at, const Dims& dims, Value mask = {},
             bool streaming = false);
  // Flat row-major element offsets.
  Value gather(Value ref, Value offsets, Value mask = {});
  void scatter(Value ref, Value value, Value offsets, Value mask = {});
  void prefetch(Value ref, List at);
  Value fma(Value a, Value b, Value c);
  Value ldexp(Value x, Value n);

  // i1<lanes>: lane j is true where first + j < limit. The mask of a tail.
  Value tail_mask(Value first, Value limit, std::int64_t lanes);

  // for (iv = lo; iv < hi; iv += step) carries = body(iv, carries). Returns the last carries.
  using LoopBody = std::function<Values(Value iv, std::span<const Value> carries)>;
  Values for_(Value lo, Value hi, std::int64_t step, std::span<const Value> carries,
              const LoopBody& body);
  Values for_(Value lo, Value hi, std::int64_t step, List carries, const LoopBody& body);
  // Both branches give values of the same types. `otherwise` may be null if there are none.
  using Branch = std::function<Values()>;
  Values if_(Value predicate, const Branch& then, const Branch& otherwise = nullptr);
  using Condition = std::function<Value(std::span<const Value> carries)>;
  using WhileBody = std::function<Values(std::span<const Value> carries)>;
  Values while_(std::span<const Value> carries, const Condition& condition, const WhileBody& body);

  const Type& type(Value v) const;
  DType dtype(Value v) const { return type(v).dtype(); }
  const Dims& dims(Value v) const { return type(v).dims(); }
  // The number behind a constant i64 scalar; false if v is not one.
  bool constant_index(Value v, std::int64_t* value) const;
  void set_location(Location loc);

  // Ends the kernel and verifies it. The builder is empty afterwards.
  Kernel finish();

 private:
  struct Scope;
  Scope& top();
  const Scope& top() const;
  // The value as seen in the innermost scope, captured on the way.
  ValueId resolve(Value v);
  ValueId resolve_in(std::size_t scope_index, Value v);
  Value wrap(ValueId id) const;
  Values wrap(std::span<const ValueId> ids) const;
  void open_scope();
  std::unique_ptr<Scope> close_scope();
  void declare(int stage, const char* what);

  Kernel kernel_;
  std::vector<std::unique_ptr<Scope>> scopes_;
  std::int32_t next_scope_ = 0;
  int stage_ = 0;  // 0: axes, 1: parameters, 2: scalars, 3: ops
  std::vector<Value> refs_;
  Location loc_;
};

}  // namespace xylem::ir
