// The kernel.* ops: shape rules and reference evaluations.

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>

#include "xylem/ir/kernel.h"
#include "xylem/ir/kernel/internal/ref_table.h"
#include "xylem/ir/ops/families.h"

namespace xylem::ir {
namespace {

using internal::ref_table_of;

Type i64_scalar() { return Type::tensor(DType::kI64); }

void want_ref(const OpCall& call, std::string_view label) {
  if (!call.operands[0].is_ref())
    call.fail(label, "operand 0 must be a ref", call.operands[0].to_string(),
              "Pass a parameter of the kernel.");
}

// Operands first … first+rank-1 are the element's index.
void want_indices(const OpCall& call, std::size_t first, std::size_t rank, std::string_view label) {
  for (std::size_t i = first; i < first + rank; ++i)
    if (call.operands[i] != i64_scalar())
      call.fail(label, "indices must be i64[]",
                fmt::format("operand {} is {}", i, call.operands[i].to_string()),
                "Convert the index to i64.");
}

void want_count(const OpCall& call, std::size_t expected, std::string_view label) {
  if (call.operands.size() != expected)
    call.fail(label, fmt::format("{} operands for this ref and mask", expected),
              fmt::format("{}", call.operands.size()),
              "Give one index per dimension of the ref, and the mask last if there is one.");
}

void want_mask(const OpCall& call, const Dims& shape, std::string_view label) {
  const Type expected = Type::tensor(DType::kBool, shape);
  if (call.operands.back() != expected)
    call.fail(label, "the mask must be " + expected.to_string(), call.operands.back().to_string(),
              "Compare the tile's indices with their limit to get a mask of its shape.");
}

// The tile walks along distinct dimensions of the ref.
void want_walk(const OpCall& call, const Dims& dims, const Dims& shape, std::string_view label) {
  const int rank = call.operands[0].rank();
  bool ok = dims.size() == shape.size();
  for (std::size_t i = 0; i < dims.size(); ++i) {
    ok = ok && dims[i] >= 0 && dims[i] < rank;
    for (std::size_t j = 0; j < i; ++j) ok = ok && dims[i] != dims[j];
  }
  for (std::int64_t n : shape) ok = ok && n >= 1;
  if (!ok)
    call.fail(label,
              fmt::format("`dims` must name distinct dimensions of the ref (rank {}), one per "
                          "dimension of the tile, all of whose sizes are positive",
                          rank),
              fmt::format("dims {}, tile {}", to_string(dims), to_string(shape)),
              "Name the ref dimension that each tile dimension walks along.");
}

std::vector<Type> load_shape(const OpCall& call) {
  want_ref(call, "kernel_load_c1");
  const Dims& dims = call.attrs.dims("dims");
  const Dims& shape = call.attrs.dims("shape");
  const auto rank = static_cast<std::size_t>(call.operands[0].rank());
  const bool masked = call.attrs.flag("masked");
  want_count(call, 1 + rank + (masked ? 1 : 0), "kernel_load_c2");
  want_indices(call, 1, rank, "kernel_load_c3");
  want_walk(call, dims, shape, "kernel_load_c4");
  if (masked) want_mask(call, shape, "kernel_load_c5");
  return {Type::tensor(call.operands[0].dtype(), shape)};
}

std::vector<Type> store_shape(const OpCall& call) {
  want_ref(call, "kernel_store_c1");
  const Type& ref = call.operands[0];
  const Type& value = call.operands[1];
  const auto rank = static_cast<std::size_t>(ref.rank());
  const bool masked = call.attrs.flag("masked");
  want_count(call, 2 + rank + (masked ? 1 : 0), "kernel_store_c2");
  if (!value.is_tensor() || value.dtype() != ref.dtype())
    call.fail("kernel_store_c3",
              fmt::format("a tile of {}, the ref's element type", dtype_name(ref.dtype())),
              value.to_string(), "Convert the value before it is stored.");
  want_indices(call, 2, rank, "kernel_store_c4");
  want_walk(call, call.attrs.dims("dims"), value.dims(), "kernel_store_c5");
  if (masked) want_mask(call, value.dims(), "kernel_store_c6");
  return {};
}

void want_offsets(const OpCall& call, const Type& offsets, std::string_view label) {
  if (!offsets.is_tensor() || (offsets.dtype() != DType::kI64 && offsets.dtype() != DType::kI32))
    call.fail(label, "offsets must be a tile of i64 or i32", offsets.to_string(),
              "Convert the offsets.");
}

std::vector<Type> gather_shape(const OpCall& call) {
  want_ref(call, "kernel_gather_c1");
  const bool masked = call.attrs.flag("masked");
  want_count(call, masked ? 3 : 2, "kernel_gather_c2");
  want_offsets(call, call.operands[1], "kernel_gather_c3");
  if (masked) want_mask(call, call.operands[1].dims(), "kernel_gather_c4");
  return {Type::tensor(call.operands[0].dtype(), call.operands[1].dims())};
}

std::vector<Type> scatter_shape(const OpCall& call) {
  want_ref(call, "kernel_scatter_c1");
  const bool masked = call.attrs.flag("masked");
  want_count(call, masked ? 4 : 3, "kernel_scatter_c2");
  want_offsets(call, call.operands[2], "kernel_scatter_c3");
  const Type expected = Type::tensor(call.operands[0].dtype(), call.operands[2].dims());
  if (call.operands[1] != expected)
    call.fail("kernel_scatter_c4", "the value must be " + expected.to_string(),
              call.operands[1].to_string(), "Give one value of the ref's element type per offset.");
  if (masked) want_mask(call, call.operands[2].dims(), "kernel_scatter_c5");
  return {};
}

std::vector<Type> prefetch_shape(const OpCall& call) {
  want_ref(call, "kernel_prefetch_c1");
  const auto rank = static_cast<std::size_t>(call.operands[0].rank());
  want_count(call, 1 + rank, "kernel_prefetch_c2");
  want_indices(call, 1, rank, "kernel_prefetch_c3");
  return {};
}

std::vector<Type> for_shape(const OpCall& call) {
  const std::int64_t carries = call.attrs.i64("num_carries");
  want_indices(call, 0, 2, "kernel_for_c1");
  if (call.attrs.i64("step") < 1)
    call.fail("kernel_for_c2", "a positive step", fmt::format("{}", call.attrs.i64("step")),
              "Reverse the loop's index in its body instead.");
  if (carries < 0 || carries > static_cast<std::int64_t>(call.operands.size()) - 2)
    call.fail("kernel_for_c3", "as many carries as there are operands behind the bounds, or fewer",
              fmt::format("{} carries, {} operands", carries, call.operands.size()),
              "Pass the carries first, then the captures.");
  const Graph& body = *call.regions[0];
  std::vector<Type> expected = {i64_scalar()};
  expected.insert(expected.end(), call.operands.begin() + 2, call.operands.end());
  if (body.param_types() != expected)
    call.fail("kernel_for_c4",
              "a region whose parameters are the index (i64[]), the carries and the captures",
              fmt::format("a region with {} parameters", body.params.size()),
              "Give the region one parameter per operand, of the same type, behind the index.");
  std::vector<Type> results(expected.begin() + 1, expected.begin() + 1 + carries);
  for (const Type& t : results)
    if (!t.is_tensor())
      call.fail("kernel_for_c5", "carries must be tiles", t.to_string(), "Pass refs as captures.");
  if (body.result_types() != results)
    call.fail("kernel_for_c6", "a region whose results are the next carries",
              fmt::format("{} results for {} carries", body.results.size(), carries),
              "Return every carry with its type unchanged.");
  return results;
}

std::vector<Type> fma_shape(const OpCall& call) {
  const Type& a = call.operands[0];
  if (!a.is_tensor() || (a.dtype() != DType::kF32 && a.dtype() != DType::kF64))
    call.fail("kernel_fma_c1", "operands of f32 or f64", a.to_string(), "Convert them first.");
  if (call.operands[1] != a || call.operands[2] != a)
    call.fail("kernel_fma_c2", "three operands of one type",
              fmt::format("{}, {}, {}", a.to_string(), call.operands[1].to_string(),
                          call.operands[2].to_string()),
              "Broadcast or convert the operands.");
  return {a};
}

std::vector<Type> ldexp_shape(const OpCall& call) {
  const Type& x = call.operands[0];
  if (!x.is_tensor() || (x.dtype() != DType::kF32 && x.dtype() != DType::kF64))
    call.fail("kernel_ldexp_c1", "an operand of f32 or f64", x.to_string(), "Convert it first.");
  if (call.operands[1] != x.with_dtype(DType::kI32))
    call.fail("kernel_ldexp_c2", "exponents " + x.with_dtype(DType::kI32).to_string(),
              call.operands[1].to_string(), "Give one i32 exponent per element.");
  return {x};
}

// Reference evaluations.

template <class T, class F>
HostArray pointwise(const Type& type, F f) {
  HostArray out(type.dtype(), type.dims());
  T* p = out.as<T>();
  for (std::int64_t i = 0; i < out.size(); ++i) p[i] = f(i);
  return out;
}

std::vector<HostArray> fma_eval(const EvalCall& call) {
  const Type& t = call.result_types[0];
  const auto run = [&]<class T>(T) {
    const T* a = call.operands[0].as<T>();
    const T* b = call.operands[1].as<T>();
    const T* c = call.operands[2].as<T>();
    return pointwise<T>(t, [&](std::int64_t i) { return std::fma(a[i], b[i], c[i]); });
  };
  return {t.dtype() == DType::kF32 ? run(float{}) : run(double{})};
}

std::vector<HostArray> ldexp_eval(const EvalCall& call) {
  const Type& t = call.result_types[0];
  const std::int32_t* n = call.operands[1].as<std::int32_t>();
  const auto run = [&]<class T>(T) {
    const T* x = call.operands[0].as<T>();
    return pointwise<T>(t, [&](std::int64_t i) { return std::ldexp(x[i], n[i]); });
  };
  return {t.dtype() == DType::kF32 ? run(float{}) : run(double{})};
}

Dims index_operands(const EvalCall& call, std::size_t first, std::size_t rank) {
  Dims at;
  for (std::size_t i = 0; i < rank; ++i) at.push_back(*call.operands[first + i].as<std::int64_t>());
  return at;
}

const HostArray* mask_operand(const EvalCall& call) {
  return call.op.attrs.flag("masked") ? &call.operands.back() : nullptr;
}

std::vector<HostArray> load_eval(const EvalCall& call) {
  internal::RefTable& refs = ref_table_of(call.regions, call.op.def->name);
  const internal::RefView& ref = refs.view(call.operands[0]);
  const Dims at = index_operands(call, 1, ref.dims.size());
  const Type& t = call.result_types[0];
  HostArray out = HostArray::zeros(t.dtype(), t.dims());
  refs.walk(call.op, ref, at, call.op.attrs.dims("dims"), t.dims(), mask_operand(call),
            [&](std::byte* element, std::int64_t i) {
              std::copy_n(element, ref.element_bytes, out.data() + i * ref.element_bytes);
            });
  return {out};
}

std::vector<HostArray> store_eval(const EvalCall& call) {
  internal::RefTable& refs = ref_table_of(call.regions, call.op.def->name);
  const internal::RefView& ref = refs.view(call.operands[0]);
  const Dims at = index_operands(call, 2, ref.dims.size());
  const HostArray& value = call.operands[1];
  refs.walk(call.op, ref, at, call.op.attrs.dims("dims"), value.dims(), mask_operand(call),
            [&](std::byte* element, std::int64_t i) {
              std::copy_n(value.data() + i * ref.element_bytes, ref.element_bytes, element);
            });
  return {};
}

std::vector<HostArray> gather_eval(const EvalCall& call) {
  internal::RefTable& refs = ref_table_of(call.regions, call.op.def->name);
  const internal::RefView& ref = refs.view(call.operands[0]);
  const Type& t = call.result_types[0];
  HostArray out = HostArray::zeros(t.dtype(), t.dims());
  refs.walk_offsets(call.op, ref, call.operands[1], mask_operand(call),
                    [&](std::byte* element, std::int64_t i) {
                      std::copy_n(element, ref.element_bytes, out.data() + i * ref.element_bytes);
                    });
  return {out};
}

std::vector<HostArray> scatter_eval(const EvalCall& call) {
  internal::RefTable& refs = ref_table_of(call.regions, call.op.def->name);
  const internal::RefView& ref = refs.view(call.operands[0]);
  const HostArray& value = call.operands[1];
  refs.walk_offsets(call.op, ref, call.operands[2], mask_operand(call),
                    [&](std::byte* element, std::int64_t i) {
                      std::copy_n(value.data() + i * ref.element_bytes, ref.element_bytes, element);
                    });
  return {};
}

std::vector<HostArray> prefetch_eval(const EvalCall&) { return {}; }

std::vector<HostArray> for_eval(const EvalCall& call) {
  const std::int64_t lo = *call.operands[0].as<std::int64_t>();
  const std::int64_t hi = *call.operands[1].as<std::int64_t>();
  const std::int64_t step = call.op.attrs.i64("step");
  const auto carries = static_cast<std::size_t>(call.op.attrs.i64("num_carries"));
  std::vector<HostArray> args(call.operands.begin() + 1, call.operands.end());
  for (std::int64_t i = lo; i < hi; i += step) {
    args[0] = HostArray::scalar(i);
    std::vector<HostArray> next = call.regions.run(*call.op.regions[0], args);
    std::move(next.begin(), next.end(), args.begin() + 1);
    if (i > hi - step) break;  // i + step may overflow
  }
  return {args.begin() + 1, args.begin() + 1 + static_cast<std::ptrdiff_t>(carries)};
}

const AttrDef kDimsAttr{"dims", AttrKind::kDims};
const AttrDef kShapeAttr{"shape", AttrKind::kDims};
const AttrDef kMaskedAttr{"masked", AttrKind::kUnit, false};
// A hint: the stored tile is not read again soon and may bypass the caches.
const AttrDef kStreamingAttr{"streaming", AttrKind::kUnit, false};

}  // namespace

namespace ops {

const OpDef kKernelLoad{
    .name = "kernel.load",
    .traits = kEffect | kKernelOnly,
    .min_operands = 1,
    .max_operands = -1,
    .attrs = {kDimsAttr, kShapeAttr, kMaskedAttr},
    .shape = load_shape,
    .eval = load_eval,
    .labels = "kernel_load_c1 kernel_load_c2 kernel_load_c3 kernel_load_c4 kernel_load_c5"};

const OpDef kKernelStore{.name = "kernel.store",
                         .traits = kEffect | kKernelOnly,
                         .min_operands = 2,
                         .max_operands = -1,
                         .attrs = {kDimsAttr, kMaskedAttr, kStreamingAttr},
                         .shape = store_shape,
                         .eval = store_eval,
                         .labels =
                             "kernel_store_c1 kernel_store_c2 kernel_store_c3 "
                             "kernel_store_c4 kernel_store_c5 kernel_store_c6"};

const OpDef kKernelGather{
    .name = "kernel.gather",
    .traits = kEffect | kKernelOnly,
    .min_operands = 2,
    .max_operands = 3,
    .attrs = {kMaskedAttr},
    .shape = gather_shape,
    .eval = gather_eval,
    .labels = "kernel_gather_c1 kernel_gather_c2 kernel_gather_c3 kernel_gather_c4"};

const OpDef kKernelScatter{.name = "kernel.scatter",
                           .traits = kEffect | kKernelOnly,
                           .min_operands = 3,
                           .max_operands = 4,
                           .attrs = {kMaskedAttr},
                           .shape = scatter_shape,
                           .eval = scatter_eval,
                           .labels =
                               "kernel_scatter_c1 kernel_scatter_c2 kernel_scatter_c3 "
                               "kernel_scatter_c4 kernel_scatter_c5"};

// An effect, because its region may store.
const OpDef kKernelFor{.name = "kernel.for",
                       .traits = kEffect | kControlFlow | kKernelOnly,
                       .min_operands = 2,
                       .max_operands = -1,
                       .num_regions = 1,
                       .attrs = {{"step", AttrKind::kInt}, {"num_carries", AttrKind::kInt}},
                       .shape = for_shape,
                       .eval = for_eval,
                       .labels =
                           "kernel_for_c1 kernel_for_c2 kernel_for_c3 kernel_for_c4 "
                           "kernel_for_c5 kernel_for_c6"};

const OpDef kKernelFma{.name = "kernel.fma",
                       .traits = kPointwise | kExact | kKernelOnly,
                       .min_operands = 3,
                       .max_operands = 3,
                       .shape = fma_shape,
                       .eval = fma_eval,
                       .labels = "kernel_fma_c1 kernel_fma_c2"};

const OpDef kKernelLdexp{.name = "kernel.ldexp",
                         .traits = kPointwise | kExact | kKernelOnly,
                         .min_operands = 2,
                         .max_operands = 2,
                         .shape = ldexp_shape,
                         .eval = ldexp_eval,
                         .labels = "kernel_ldexp_c1 kernel_ldexp_c2"};

const OpDef kKernelPrefetch{.name = "kernel.prefetch",
                            .traits = kEffect | kKernelOnly,
                            .min_operands = 1,
                            .max_operands = -1,
                            .shape = prefetch_shape,
                            .eval = prefetch_eval,
                            .labels = "kernel_prefetch_c1 kernel_prefetch_c2 kernel_prefetch_c3"};

Family kernel_family() {
  static constexpr std::array kOps = {&kKernelLoad,    &kKernelStore,   &kKernelGather,
                                      &kKernelScatter, &kKernelFor,     &kKernelFma,
                                      &kKernelLdexp,   &kKernelPrefetch};
  return kOps;
}

}  // namespace ops
}  // namespace xylem::ir
