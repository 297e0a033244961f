#include "xylem/ir/ops/dynamic.h"

#include <fmt/format.h>

#include <optional>

#include "xylem/ir/builder.h"
#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/gather_scatter.h"
#include "xylem/ir/ops/internal/call_util.h"
#include "xylem/ir/ops/internal/constant_rules.h"
#include "xylem/ir/ops/internal/eval_util.h"
#include "xylem/ir/ops/internal/gather_dims.h"
#include "xylem/ir/ops/movement.h"
#include "xylem/ir/quant.h"

namespace xylem::ir::ops {
namespace {

using Values = std::vector<HostArray>;

// The one written result, a tensor of operand 0's element type unless `dtype_label` is empty.
Type written_tensor(const OpCall& call, std::string_view dtype_label) {
  std::vector<Type> types = written_results(call);
  if (types.size() != 1 || !types[0].is_tensor())
    fail(call, "result_types", "there must be one tensor result", types_text(types), "Give one");
  const Type& t = types[0];
  if (!dtype_label.empty() && t.dtype() != call.operands[0].dtype())
    fail(call, dtype_label, "operand and result must have one element type",
         fmt::format("the operand is {}, the result {}", call.operands[0].to_string(),
                     t.to_string()),
         "Convert the operand");
  return t;
}

// Operand i: a vector of integers of this length.
void check_vector(const OpCall& call, int i, std::int64_t size, std::string_view what,
                  std::string_view size_of) {
  const Type& t = tensor_operand(call, i, kElInt);
  if (t.rank() != 1)
    fail(call, fmt::format("i{}", i + 1), fmt::format("operand {} must have one dimension", i),
         "it is " + t.to_string(), "Pass a vector");
  if (t.dim(0) == kDynamic)
    fail(call, fmt::format("i{}", i + 1), fmt::format("operand {} must have a known size", i),
         "it is " + t.to_string(), "The rank of the result must be known");
  if (!size_fits(t.dim(0), size))
    fail(call, what,
         fmt::format("operand {} must have one entry for each {} ({})", i, size_of, size),
         "it is " + t.to_string(), fmt::format("Give {} entries", size));
}

void check_shape(const OpCall& call, std::string_view what, const Type& result,
                 const Dims& inferred) {
  if (!dims_fit(result.dims(), inferred))
    fail(call, what, "the result must have the shape that follows from the operands",
         fmt::format("{} against {}", result.to_string(), result.with_dims(inferred).to_string()),
         "Correct the result's type");
}

Dims vector_of(const HostArray& a) {
  Dims d;
  for (std::int64_t i = 0; i < a.size(); ++i) d.push_back(integer_scalar(a, i));
  return d;
}

// Evaluates the static counterpart on the first `n` operands, and holds its result against the
// written type.
Values eval_static(const EvalCall& call, const OpDef& def, std::size_t n, Attrs attrs) {
  Op op;
  op.def = &def;
  op.attrs = std::move(attrs);
  op.loc = call.op.loc;
  std::vector<Type> types;
  for (std::size_t i = 0; i < n; ++i)
    types.push_back(Type::tensor(call.operands[i].dtype(), call.operands[i].dims()));
  std::vector<Type> results = infer_types({def, types, op.attrs, {}, call.op.loc});
  const Type& want = call.result_types[0];
  if (!dims_fit(results[0].dims(), want.dims()))
    throw UserError(ErrorParts{call.op.def->name, fmt::format("the result is {}", want.to_string()),
                               fmt::format("the operands give {}", results[0].to_string()),
                               "Make the written type and the sizes agree"},
                    call.op.loc.source);
  return def.eval({op, call.operands.first(n), results, call.regions, types});
}

DimMap opaque_dims(const OpCall& call, std::span<const Type> results) {
  DimMap m;
  for (const Type& t : call.operands)
    m.operands.push_back(add_factors(m, t.dims(), DimMap::FactorKind::kOpaque));
  for (const Type& t : results)
    m.results.push_back(add_factors(m, t.dims(), DimMap::FactorKind::kOpaque));
  return m;
}

// For decompositions: the static result type, or the constant value of an operand.
Type static_result(const Op& op) {
  const AttrList* types = op.attrs.at("result_types").list();
  const Type* t = types && types->size() == 1 ? (*types)[0].get<Type>() : nullptr;
  if (!t || !t->is_static())
    throw UserError(ErrorParts{op.def->name, "compiled code needs static sizes",
                               fmt::format("the result is {}", t ? t->to_string() : "absent"),
                               "Refine the shapes first, or use the interpreter"},
                    op.loc.source);
  return *t;
}

Dims constant_vector(const Builder& b, const Op& op, ValueId v) {
  const Op* def = b.graph().def(v);
  if (!def || !def->def->is(ir::kConstant))
    throw UserError(ErrorParts{op.def->name, "compiled code needs constant sizes",
                               "an operand is computed", "Fold it first, or use the interpreter"},
                    op.loc.source);
  return vector_of(def->attrs.array("value").to_contiguous());
}

// dynamic_reshape --------------------------------------------------------------------------------

std::vector<Type> reshape_shape_rule(const OpCall& call) {
  const Type& x = tensor_operand(call, 0);
  Type t = written_tensor(call, "c1");
  check_vector(call, 1, t.rank(), "c4", "result dimension");
  if (x.is_static() && t.is_static() && x.size() != t.size())
    fail(call, "c2", "operand and result must have equally many elements",
         fmt::format("{} and {}", x.to_string(), t.to_string()), "Change the shape");
  return {t};
}

Values reshape_eval(const EvalCall& call) {
  return eval_static(call, kReshape, 1, {{"shape", vector_of(call.operands[1])}});
}

std::vector<ValueId> expand_reshape(Builder& b, const Op& op, std::span<const ValueId> v) {
  return {b.one(kReshape, {v[0]}, {{"shape", static_result(op).dims()}})};
}

void reshape_constants(const OpCall& call, std::span<const Type> results, Constants constants) {
  if (constants[1])
    check_static_counterpart(call, results[0], kReshape, 1, {{"shape", vector_of(*constants[1])}},
                             "c2");
}

// dynamic_broadcast_in_dim -----------------------------------------------------------------------

std::vector<Type> broadcast_shape_rule(const OpCall& call) {
  const Type& x = tensor_operand(call, 0);
  Type t = written_tensor(call, "c1");
  const Dims& dims = call.attrs.dims("broadcast_dimensions");
  check_size(call, "c2", "broadcast_dimensions", dims, x.rank(), "operand dimension");
  check_in_range(call, "c3", "broadcast_dimensions", dims, t.rank());
  check_unique(call, "c4", "broadcast_dimensions", dims);
  for (int d = 0; d < x.rank(); ++d)
    if (x.dim(d) != 1 && !size_fits(x.dim(d), t.dims()[dims[d]]))
      fail(call, "c5", "an operand dimension must be 1 or the result's size",
           fmt::format("the operand is {}, the result {}", x.to_string(), t.to_string()),
           "Change the shape");
  check_vector(call, 1, t.rank(), "c7", "result dimension");
  Dims known = call.attrs.dims_or("known_expanding_dimensions", {});
  Dims kept = call.attrs.dims_or("known_nonexpanding_dimensions", {});
  check_in_range(call, "c9", "known_expanding_dimensions", known, x.rank());
  check_in_range(call, "c10", "known_nonexpanding_dimensions", kept, x.rank());
  for (std::int64_t d : kept) known.push_back(d);
  check_unique(call, "c8", "known expanding and nonexpanding dimensions", known);
  return {t};
}

Values broadcast_eval(const EvalCall& call) {
  return eval_static(call, kBroadcastInDim, 1,
                     {{"shape", vector_of(call.operands[1])},
                      {"broadcast_dimensions", call.op.attrs.dims("broadcast_dimensions")}});
}

std::vector<ValueId> expand_broadcast(Builder& b, const Op& op, std::span<const ValueId> v) {
  return {b.one(kBroadcastInDim, {v[0]},
                {{"shape", static_result(op).dims()},
                 {"broadcast_dimensions", op.attrs.dims("broadcast_dimensions")}})};
}

void broadcast_constants(const OpCall& call, std::span<const Type> results, Constants constants) {
  if (constants[1])
    check_static_counterpart(call, results[0], kBroadcastInDim, 1,
                             {{"shape", vector_of(*constants[1])},
                              {"broadcast_dimensions", call.attrs.dims("broadcast_dimensions")}},
                             "c5");
}

// dynamic_iota -----------------------------------------------------------------------------------

std::vector<Type> iota_shape_rule(const OpCall& call) {
  Type t = written_tensor(call, "");
  if (!in_elements(t.dtype(), kElNumber))
    fail(call, "o1", "the result must be a tensor of numbers", "it is " + t.to_string(),
         "Choose another element type");
  check_vector(call, 0, t.rank(), "c2", "result dimension");
  std::int64_t d = call.attrs.i64("iota_dimension");
  if (d < 0 || d >= t.rank())
    fail(call, "c1", fmt::format("iota_dimension must lie in [0, {})", t.rank()),
         fmt::format("it is {}", d), "Name a dimension of the result");
  return {t};
}

Values iota_eval(const EvalCall& call) {
  return eval_static(call, kIota, 0,
                     {{"shape", vector_of(call.operands[0])},
                      {"iota_dimension", call.op.attrs.i64("iota_dimension")},
                      {"result_dtype", call.result_types[0].dtype()}});
}

std::vector<ValueId> expand_iota(Builder& b, const Op& op, std::span<const ValueId>) {
  Type t = static_result(op);
  return {b.one(kIota, {},
                {{"shape", t.dims()},
                 {"iota_dimension", op.attrs.i64("iota_dimension")},
                 {"result_dtype", t.dtype()}})};
}

void iota_constants(const OpCall& call, std::span<const Type> results, Constants constants) {
  if (constants[0])
    check_static_counterpart(call, results[0], kIota, 0,
                             {{"shape", vector_of(*constants[0])},
                              {"iota_dimension", call.attrs.i64("iota_dimension")},
                              {"result_dtype", results[0].dtype()}},
                             "c2");
}

// dynamic_pad ------------------------------------------------------------------------------------

std::vector<Type> pad_shape_rule(const OpCall& call) {
  const Type& x = tensor_operand(call, 0);
  const Type& value = tensor_operand(call, 1);
  if (value.rank() != 0)
    fail(call, "i2", "the padding value must be a scalar", "it is " + value.to_string(),
         "Pass a scalar");
  if (value.dtype() != x.dtype())
    fail(call, "c1", "operand and padding value must have one element type",
         differ("the operand", x, "the padding value", value), "Convert the padding value");
  Type t = written_tensor(call, "c1");
  for (int i = 2; i < 5; ++i) check_vector(call, i, x.rank(), "c2", "operand dimension");
  if (t.rank() != x.rank())
    fail(call, "c4", "the result must have the operand's rank", "it is " + t.to_string(),
         "Correct the result's type");
  return {t};
}

Attrs pad_attrs(const Dims& low, const Dims& high, const Dims& interior) {
  return {{"edge_padding_low", low}, {"edge_padding_high", high}, {"interior_padding", interior}};
}

Values pad_eval(const EvalCall& call) {
  return eval_static(call, kPad, 2,
                     pad_attrs(vector_of(call.operands[2]), vector_of(call.operands[3]),
                               vector_of(call.operands[4])));
}

std::vector<ValueId> expand_pad(Builder& b, const Op& op, std::span<const ValueId> v) {
  return {b.one(kPad, {v[0], v[1]},
                pad_attrs(constant_vector(b, op, v[2]), constant_vector(b, op, v[3]),
                          constant_vector(b, op, v[4])))};
}

void pad_constants(const OpCall& call, std::span<const Type> results, Constants constants) {
  if (constants[4])
    for (std::int64_t n : vector_of(*constants[4]))
      if (n < 0)
        fail(call, "c3", "interior_padding must not be negative", fmt::format("it has {}", n),
             "Use 0 or more");
  if (constants[2] && constants[3] && constants[4])
    check_static_counterpart(
        call, results[0], kPad, 2,
        pad_attrs(vector_of(*constants[2]), vector_of(*constants[3]), vector_of(*constants[4])),
        "c4");
}

// real_dynamic_slice -----------------------------------------------------------------------------

std::vector<Type> slice_shape_rule(const OpCall& call) {
  const Type& x = tensor_operand(call, 0);
  Type t = written_tensor(call, "c1");
  for (int i = 1; i < 4; ++i) {
    check_vector(call, i, x.rank(), "c2", "operand dimension");
    if (call.operands[static_cast<std::size_t>(i)].dtype() != call.operands[1].dtype())
      fail(call, "c3", "start, limit and strides must have one element type",
           types_text(call.operands), "Convert them");
  }
  if (t.rank() != x.rank())
    fail(call, "c4", "the result must have the operand's rank", "it is " + t.to_string(),
         "Correct the result's type");
  return {t};
}

Attrs slice_attrs(const Dims& start, const Dims& limit, const Dims& strides) {
  return {{"start_indices", start}, {"limit_indices", limit}, {"strides", strides}};
}

Values slice_eval(const EvalCall& call) {
  return eval_static(call, kSlice, 1,
                     slice_attrs(vector_of(call.operands[1]), vector_of(call.operands[2]),
                                 vector_of(call.operands[3])));
}

std::vector<ValueId> expand_slice(Builder& b, const Op& op, std::span<const ValueId> v) {
  return {b.one(kSlice, {v[0]},
                slice_attrs(constant_vector(b, op, v[1]), constant_vector(b, op, v[2]),
                            constant_vector(b, op, v[3])))};
}

void slice_constants(const OpCall& call, std::span<const Type> results, Constants constants) {
  if (constants[1] && constants[2] && constants[3])
    check_static_counterpart(
        call, results[0], kSlice, 1,
        slice_attrs(vector_of(*constants[1]), vector_of(*constants[2]), vector_of(*constants[3])),
        "c4");
}

// dynamic_gather ---------------------------------------------------------------------------------

std::vector<Type> gather_shape_rule(const OpCall& call) {
  const Type& x = tensor_operand(call, 0);
  const Type& indices = tensor_operand(call, 1, kElInt);
  Type t = written_tensor(call, "c14");
  check_vector(call, 2, x.rank(), "c11", "operand dimension");
  GatherDims g = GatherDims::of_gather(call.attrs);
  if (x.rank() !=
      static_cast<int>(g.window.size() + g.collapsed.size() + g.operand_batching.size()))
    fail(call, "c1", "every operand dimension must be an offset or collapsed dimension",
         fmt::format("rank {}, but {} offset and {} collapsed dimensions", x.rank(),
                     g.window.size(), g.collapsed.size()),
         "Change the dimension lists");
  if (g.index_vector_dim < 0 || g.index_vector_dim > indices.rank())
    fail(call, "c2", fmt::format("index_vector_dim must lie in [0, {}]", indices.rank()),
         fmt::format("it is {}", g.index_vector_dim),
         "Name a dimension of the indices or its rank");
  std::int64_t components =
      g.index_vector_dim < indices.rank() ? indices.dims()[g.index_vector_dim] : 1;
  if (!size_fits(components, g.index_map.ssize()))
    fail(call, "c3",
         fmt::format("start_index_map must have one entry for each index component ({})",
                     components),
         fmt::format("start_index_map = {}", list(g.index_map)), "Map every component");
  check_unique(call, "c4", "offset_dims", g.window);
  check_sorted(call, "c4", "offset_dims", g.window);
  Dims index_batch = g.index_batch_dims(indices.rank());
  int rank = static_cast<int>(index_batch.size() + g.window.size());
  check_in_range(call, "c5", "offset_dims", g.window, rank);
  check_unique(call, "c6", "collapsed_slice_dims", g.collapsed);
  check_sorted(call, "c6", "collapsed_slice_dims", g.collapsed);
  check_in_range(call, "c7", "collapsed_slice_dims", g.collapsed, x.rank());
  check_unique(call, "c9", "start_index_map", g.index_map);
  check_in_range(call, "c10", "start_index_map", g.index_map, x.rank());
  Dims shape(static_cast<std::size_t>(rank), kDynamic);
  Dims batch = g.batch_dims(rank);
  for (std::size_t k = 0; k < batch.size(); ++k) shape[batch[k]] = indices.dims()[index_batch[k]];
  check_shape(call, "c13", t, shape);
  return {t};
}

Attrs gather_attrs(const Op& op, const Dims& sizes) {
  Attrs a;
  for (std::string_view name :
       {"offset_dims", "collapsed_slice_dims", "operand_batching_dims",
        "start_indices_batching_dims", "start_index_map", "index_vector_dim", "indices_are_sorted"})
    if (const Attr* v = op.attrs.find(name)) a.set(name, *v);
  a.set("slice_sizes", sizes);
  return a;
}

Values gather_eval(const EvalCall& call) {
  return eval_static(call, kGather, 2, gather_attrs(call.op, vector_of(call.operands[2])));
}

std::vector<ValueId> expand_gather(Builder& b, const Op& op, std::span<const ValueId> v) {
  return {b.one(kGather, {v[0], v[1]}, gather_attrs(op, constant_vector(b, op, v[2])))};
}

void gather_constants(const OpCall& call, std::span<const Type> results, Constants constants) {
  if (!constants[2]) return;
  const Type& x = call.operands[0];
  Dims sizes = vector_of(*constants[2]);
  GatherDims g = GatherDims::of_gather(call.attrs);
  for (const Dims* dims : {&g.collapsed, &g.operand_batching})
    for (std::int64_t d : *dims)
      if (sizes[d] > 1)
        fail(call, "c8", "slice sizes of collapsed and batching dimensions must be at most 1",
             fmt::format("slice_sizes = {}, dimension {}", list(sizes), d),
             "Use 1, or keep the dimension");
  for (int d = 0; d < x.rank(); ++d)
    if (sizes[d] < 0 || (x.dim(d) != kDynamic && sizes[d] > x.dim(d)))
      fail(call, "c12", "slice_sizes must lie between 0 and the operand's sizes",
           fmt::format("slice_sizes = {}, the operand is {}", list(sizes), x.to_string()),
           "Take slices that the operand has");
  int k = 0;
  for (int d = 0; d < x.rank(); ++d) {
    if (contains(g.collapsed, d) || contains(g.operand_batching, d)) continue;
    std::int64_t at = g.window[k++];
    if (!size_fits(results[0].dim(static_cast<int>(at)), sizes[d]))
      fail(call, "c13", "offset dimensions of the result have the slice's sizes",
           fmt::format("slice_sizes = {}, the result is {}", list(sizes), results[0].to_string()),
           "Correct the result's type");
  }
}

// get_dimension_size and set_dimension_size ------------------------------------------------------

void check_dimension(const OpCall& call) {
  const Type& x = call.operands[0];
  std::int64_t d = call.attrs.i64("dimension");
  if (d < 0 || d >= x.rank())
    fail(call, "c1", fmt::format("dimension must lie in [0, {})", x.rank()),
         fmt::format("it is {}", d), "Name a dimension of the operand");
}

std::vector<Type> get_dimension_size_shape_rule(const OpCall& call) {
  tensor_operand(call, 0);
  check_dimension(call);
  return {Type::tensor(DType::kI32)};
}

Values get_dimension_size_eval(const EvalCall& call) {
  return {HostArray::scalar(
      static_cast<std::int32_t>(call.operands[0].dims()[call.op.attrs.i64("dimension")]))};
}

std::vector<ValueId> expand_get_dimension_size(Builder& b, const Op& op,
                                               std::span<const ValueId> v) {
  std::int64_t n = b.type(v[0]).dims()[op.attrs.i64("dimension")];
  if (n == kDynamic)
    throw UserError(ErrorParts{op.def->name, "compiled code needs static sizes",
                               "the operand is " + b.type(v[0]).to_string(),
                               "Refine the shapes first, or use the interpreter"},
                    op.loc.source);
  return {b.constant(HostArray::scalar(static_cast<std::int32_t>(n)))};
}

std::vector<Type> set_dimension_size_shape_rule(const OpCall& call) {
  const Type& x = tensor_operand(call, 0);
  const Type& size = tensor_operand(call, 1, kElSigned);
  if (size.dtype() != DType::kI32 || size.rank() != 0)
    fail(call, "i2", "the size must be an i32 scalar", "it is " + size.to_string(),
         "Convert it to i32");
  check_dimension(call);
  Type t = written_tensor(call, "c2");
  Dims shape = x.dims();
  shape[call.attrs.i64("dimension")] = kDynamic;
  check_shape(call, "c2", t, shape);
  return {t};
}

Values set_dimension_size_eval(const EvalCall& call) {
  const HostArray& x = call.operands[0];
  std::int64_t d = call.op.attrs.i64("dimension"), n = integer_scalar(call.operands[1]);
  if (n < 0 || n > x.dims()[d])
    throw UserError(
        ErrorParts{"set_dimension_size", fmt::format("the size lies in [0, {}]", x.dims()[d]),
                   fmt::format("it is {}", n), "Set a size that the operand has"},
        call.op.loc.source);
  Dims limit = x.dims();
  limit[d] = n;
  return eval_static(call, kSlice, 1,
                     slice_attrs(Dims(limit.size(), 0), limit, Dims(limit.size(), 1)));
}

std::vector<ValueId> expand_set_dimension_size(Builder& b, const Op& op,
                                               std::span<const ValueId> v) {
  Type t = static_result(op);
  if (t.dims() == b.type(v[0]).dims()) return {v[0]};
  return {b.one(kSlice, {v[0]},
                slice_attrs(Dims(t.dims().size(), 0), t.dims(), Dims(t.dims().size(), 1)))};
}

constexpr AttrDef kResultTypes = {"result_types", AttrKind::kList};

OpDef dynamic(std::string_view name, int operands, std::vector<AttrDef> attrs, ShapeRule shape,
              EvalRule eval, ExpandRule expand, std::string_view labels,
              std::string_view result_labels) {
  return {.name = name,
          .traits = kStructural | kExact,
          .min_operands = operands,
          .max_operands = operands,
          .attrs = std::move(attrs),
          .shape = shape,
          .eval = eval,
          .dims = opaque_dims,
          .labels = labels,
          .expand = expand,
          .quant = QuantSupport::kPerAxis,
          .result_labels = result_labels};
}

}  // namespace

const OpDef kDynamicReshape =
    dynamic("stablehlo.dynamic_reshape", 2, {kResultTypes}, reshape_shape_rule, reshape_eval,
            expand_reshape,
            "dynamic_reshape_i1 dynamic_reshape_i2 dynamic_reshape_c1 dynamic_reshape_c2 "
            "dynamic_reshape_c4",
            "c1 c2");
const OpDef kDynamicBroadcastInDim =
    dynamic("stablehlo.dynamic_broadcast_in_dim", 2,
            {{"broadcast_dimensions", AttrKind::kDims},
             {"known_expanding_dimensions", AttrKind::kDims, false},
             {"known_nonexpanding_dimensions", AttrKind::kDims, false},
             kResultTypes},
            broadcast_shape_rule, broadcast_eval, expand_broadcast,
            "dynamic_broadcast_in_dim_i1 dynamic_broadcast_in_dim_i2 dynamic_broadcast_in_dim_c1 "
            "dynamic_broadcast_in_dim_c2 dynamic_broadcast_in_dim_c3 dynamic_broadcast_in_dim_c4 "
            "dynamic_broadcast_in_dim_c5 dynamic_broadcast_in_dim_c7 dynamic_broadcast_in_dim_c8 "
            "dynamic_broadcast_in_dim_c9 dynamic_broadcast_in_dim_c10",
            "c1 c5");
const OpDef kDynamicIota =
    dynamic("stablehlo.dynamic_iota", 1, {{"iota_dimension", AttrKind::kInt}, kResultTypes},
            iota_shape_rule, iota_eval, expand_iota,
            "dynamic_iota_i1 dynamic_iota_c1 dynamic_iota_c2 dynamic_iota_o1", "o1 c2");
const OpDef kDynamicPad =
    dynamic("stablehlo.dynamic_pad", 5, {kResultTypes}, pad_shape_rule, pad_eval, expand_pad,
            "dynamic_pad_i1 dynamic_pad_i2 dynamic_pad_i3 dynamic_pad_i4 dynamic_pad_i5 "
            "dynamic_pad_c1 dynamic_pad_c2 dynamic_pad_c3 dynamic_pad_c4",
            "c1 c4");
const OpDef kDynamicGather = dynamic(
    "stablehlo.dynamic_gather", 3,
    {{"offset_dims", AttrKind::kDims, false},
     {"collapsed_slice_dims", AttrKind::kDims, false},
     {"operand_batching_dims", AttrKind::kDims, false},
     {"start_indices_batching_dims", AttrKind::kDims, false},
     {"start_index_map", AttrKind::kDims, false},
     {"index_vector_dim", AttrKind::kInt, false},
     {"indices_are_sorted", AttrKind::kBool, false},
     kResultTypes},
    gather_shape_rule, gather_eval, expand_gather,
    "dynamic_gather_i1 dynamic_gather_i2 dynamic_gather_i3 dynamic_gather_c1 dynamic_gather_c2 "
    "dynamic_gather_c3 dynamic_gather_c4 dynamic_gather_c5 dynamic_gather_c6 dynamic_gather_c7 "
    "dynamic_gather_c8 dynamic_gather_c9 dynamic_gather_c10 dynamic_gather_c11 "
    "dynamic_gather_c12 dynamic_gather_c13 dynamic_gather_c14",
    "c14 c13");
const OpDef kRealDynamicSlice = dynamic(
    "stablehlo.real_dynamic_slice", 4, {kResultTypes}, slice_shape_rule, slice_eval, expand_slice,
    "real_dynamic_slice_i1 real_dynamic_slice_i2 real_dynamic_slice_i3 "
    "real_dynamic_slice_i4 real_dynamic_slice_c1 real_dynamic_slice_c2 "
    "real_dynamic_slice_c3 real_dynamic_slice_c4",
    "c1 c4");
const OpDef kGetDimensionSize =
    dynamic("stablehlo.get_dimension_size", 1, {{"dimension", AttrKind::kInt}},
            get_dimension_size_shape_rule, get_dimension_size_eval, expand_get_dimension_size,
            "get_dimension_size_i1 get_dimension_size_c1", "o1");
const OpDef kSetDimensionSize = dynamic(
    "stablehlo.set_dimension_size", 2, {{"dimension", AttrKind::kInt}, kResultTypes},
    set_dimension_size_shape_rule, set_dimension_size_eval, expand_set_dimension_size,
    "set_dimension_size_i1 set_dimension_size_i2 set_dimension_size_c1 set_dimension_size_c2",
    "c2");

std::vector<ConstantRuleOf> dynamic_constant_rules() {
  return {{&kDynamicReshape, reshape_constants}, {&kDynamicBroadcastInDim, broadcast_constants},
          {&kDynamicIota, iota_constants},       {&kDynamicPad, pad_constants},
          {&kRealDynamicSlice, slice_constants}, {&kDynamicGather, gather_constants}};
}

Family dynamic_family() {
  static const OpDef* const kOps[] = {
      &kDynamicReshape, &kDynamicBroadcastInDim, &kDynamicIota,      &kDynamicPad,
      &kDynamicGather,  &kRealDynamicSlice,      &kGetDimensionSize, &kSetDimensionSize};
  return kOps;
}

}  // namespace xylem::ir::ops
