#include "xylem/ir/ops/contraction.h"

#include <fmt/format.h>

#include <cstdlib>

#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/internal/eval_util.h"
#include "xylem/ir/ops/internal/scalar_ops.h"
#include "xylem/ir/ops/internal/shape_util.h"
#include "xylem/ir/ops/internal/strided.h"

namespace xylem::ir::ops {
namespace {

struct DotDims {
  Dims lhs_batch, rhs_batch, lhs_contract, rhs_contract;
  explicit DotDims(const Attrs& a)
      : lhs_batch(a.dims_or("lhs_batching_dimensions", {})),
        rhs_batch(a.dims_or("rhs_batching_dimensions", {})),
        lhs_contract(a.dims_or("lhs_contracting_dimensions", {})),
        rhs_contract(a.dims_or("rhs_contracting_dimensions", {})) {}

  Dims lhs_free(int rank) const { return free(rank, lhs_batch, lhs_contract); }
  Dims rhs_free(int rank) const { return free(rank, rhs_batch, rhs_contract); }

 private:
  static Dims free(int rank, Dims used, const Dims& more) {
    for (std::int64_t d : more) used.push_back(d);
    return other_dims(rank, used);
  }
};

Dims joined(Dims a, const Dims& b) {
  for (std::int64_t d : b) a.push_back(d);
  return a;
}

void check_pairs(const OpCall& call, std::string_view what, const Type& lhs, const Type& rhs,
                 const Dims& l, const Dims& r, std::string_view word) {
  for (std::size_t i = 0; i < l.size(); ++i)
    if (!size_fits(lhs.dims()[l[i]], rhs.dims()[r[i]]))
      fail(call, what, fmt::format("{} dimensions must have one size on both sides", word),
           fmt::format("lhs {} dimension {} against rhs {} dimension {}", lhs.to_string(), l[i],
                       rhs.to_string(), r[i]),
           "Transpose, reshape or pair other dimensions");
}

// The algorithm "#stablehlo.dot_algorithm<…>": its counts are positive, and it decides on
// precision.
void check_algorithm(const OpCall& call) {
  const Attr* a = call.attrs.find("algorithm");
  if (!a) return;
  const AttrList* precision =
      call.attrs.has("precision_config") ? call.attrs.at("precision_config").list() : nullptr;
  for (const Attr& p : precision ? *precision : AttrList{})
    if (const EnumAttr* e = p.get<EnumAttr>(); e && e->value != "DEFAULT")
      fail(call, "c21", "precision_config must be DEFAULT where an algorithm is given",
           fmt::format("it has {}", e->value), "Leave precision_config out");
  auto count = [&](std::string_view what, std::string_view field) {
    std::int64_t n = 1;
    if (const OpaqueAttr* text = a->get<OpaqueAttr>()) {
      std::size_t at = text->text.find(field);
      std::size_t equals = at == std::string::npos ? at : text->text.find('=', at);
      if (equals != std::string::npos)
        n = std::strtoll(text->text.c_str() + equals + 1, nullptr, 10);
    } else if (const Attrs* d = a->dict()) {
      n = d->i64_or(field, 1);
    }
    if (n <= 0)
      fail(call, what, fmt::format("{} must be positive", field), fmt::format("it is {}", n),
           "Use at least 1");
  };
  count("c22", "lhs_component_count");
  count("c23", "rhs_component_count");
  count("c24", "num_primitive_operations");
}

std::vector<Type> dot_general_shape_rule(const OpCall& call) {
  const Type& lhs = tensor_operand(call, 0);
  const Type& rhs = tensor_operand(call, 1);
  DotDims d(call.attrs);
  if (const Attr* precision = call.attrs.find("precision_config");
      precision && precision->list()->size() > 2)
    fail(call, "c11", "precision_config must have one entry for each operand",
         fmt::format("it has {}", precision->list()->size()), "Give two entries");
  check_algorithm(call);
  auto same_count = [&](std::string_view what, const Dims& l, const Dims& r,
                        std::string_view word) {
    if (l.size() != r.size())
      fail(call, what, fmt::format("both sides must name equally many {} dimensions", word),
           fmt::format("lhs {}, rhs {}", list(l), list(r)), "Pair the dimensions");
  };
  same_count("c1", d.lhs_batch, d.rhs_batch, "batching");
  same_count("c2", d.lhs_contract, d.rhs_contract, "contracting");
  check_unique(call, "c3", "batching and contracting dimensions of lhs",
               joined(d.lhs_batch, d.lhs_contract));
  check_unique(call, "c4", "batching and contracting dimensions of rhs",
               joined(d.rhs_batch, d.rhs_contract));
  check_in_range(call, "c5", "lhs_batching_dimensions", d.lhs_batch, lhs.rank());
  check_in_range(call, "c6", "lhs_contracting_dimensions", d.lhs_contract, lhs.rank());
  check_in_range(call, "c7", "rhs_batching_dimensions", d.rhs_batch, rhs.rank());
  check_in_range(call, "c8", "rhs_contracting_dimensions", d.rhs_contract, rhs.rank());
  check_pairs(call, "c9", lhs, rhs, d.lhs_batch, d.rhs_batch, "batching");
  check_pairs(call, "c10", lhs, rhs, d.lhs_contract, d.rhs_contract, "contracting");
  const Attr* result = call.attrs.find("result_dtype");
  DType dtype = result ? *result->get<DType>() : lhs.dtype();
  // Operands of two dtypes are let through when the result says what they are promoted to.
  if (lhs.dtype() != rhs.dtype() && !result)
    fail(call, "c13", "operands must have one dtype unless result_dtype is given",
         differ("lhs", lhs, "rhs", rhs), "Convert one of them, or give result_dtype");
  if (!in_elements(dtype, kElAny) ||
      (is_complex(lhs.dtype()) || is_complex(rhs.dtype())) != is_complex(dtype))
    fail(call, "o1", "the result dtype must be complex exactly when the operands are",
         fmt::format("{} and {} to {}", lhs.to_string(), rhs.to_string(), dtype_name(dtype)),
         "Choose another result_dtype");
  Dims shape;
  for (std::size_t i = 0; i < d.lhs_batch.size(); ++i)
    shape.push_back(refine(lhs.dims()[d.lhs_batch[i]], rhs.dims()[d.rhs_batch[i]]));
  for (std::int64_t i : d.lhs_free(lhs.rank())) shape.push_back(lhs.dims()[i]);
  for (std::int64_t i : d.rhs_free(rhs.rank())) shape.push_back(rhs.dims()[i]);
  return {Type::tensor(dtype, shape)};
}

// The operand as a [batch, free, contracted] array in row-major order.
HostArray as_matrices(const HostArray& x, const Dims& order) {
  Dims dims, strides;
  for (std::int64_t d : order) {
    dims.push_back(x.dims()[d]);
    strides.push_back(x.byte_strides()[d]);
  }
  return strided_view(x, 0, dims, strides).to_contiguous();
}

// A: the type in which products are summed.
template <class A>
void multiply_matrices(const HostArray& lhs, const HostArray& rhs, std::int64_t batch,
                       std::int64_t m, std::int64_t n, std::int64_t k, HostArray& out) {
  auto size = [](std::int64_t v) { return static_cast<std::size_t>(v); };
  std::vector<A> a(size(k)), b(size(n * k));
  std::vector<A> row(size(n));
  for (std::int64_t i = 0; i < batch; ++i) {
    load(rhs, i * n * k, n * k, b.data());
    for (std::int64_t r = 0; r < m; ++r) {
      load(lhs, (i * m + r) * k, k, a.data());
      for (std::int64_t c = 0; c < n; ++c) {
        A sum = A();
        const A* column = b.data() + c * k;
        for (std::int64_t j = 0; j < k; ++j) sum = Add()(sum, Multiply()(a[size(j)], column[j]));
        row[size(c)] = sum;
      }
      store(out, (i * m + r) * n, n, row.data());
    }
  }
}

std::vector<HostArray> dot_general_eval(const EvalCall& call) {
  DefaultFpEnvironment fp;
  const HostArray& lhs = call.operands[0];
  const HostArray& rhs = call.operands[1];
  const Type& t = call.result_types[0];
  DotDims d(call.op.attrs);
  Dims lhs_free = d.lhs_free(lhs.rank()), rhs_free = d.rhs_free(rhs.rank());
  auto product = [](const HostArray& x, const Dims& dims) {
    std::int64_t p = 1;
    for (std::int64_t i : dims) p *= x.dims()[i];
    return p;
  };
  std::int64_t batch = product(lhs, d.lhs_batch), k = product(lhs, d.lhs_contract);
  std::int64_t m = product(lhs, lhs_free), n = product(rhs, rhs_free);
  HostArray a = as_matrices(lhs, joined(joined(d.lhs_batch, lhs_free), d.lhs_contract));
  HostArray b = as_matrices(rhs, joined(joined(d.rhs_batch, rhs_free), d.rhs_contract));
  HostArray out(t.dtype(), t.dims());
  // Products and sums are those of the result's dtype, or of f64 where an operand is wider.
  // Integers wrap in 64 bits, which truncates like wrapping in the result's own width. Bool is an
  // or of ands.
  bool wide = lhs.dtype() == DType::kF64 || rhs.dtype() == DType::kF64 ||
              lhs.dtype() == DType::kC128 || rhs.dtype() == DType::kC128;
  DType operand =
      dtype_info(lhs.dtype()).kind >= dtype_info(rhs.dtype()).kind ? lhs.dtype() : rhs.dtype();
  if (is_complex(operand) || is_float(operand) || is_float(t.dtype())) {
    DType sum = wide ? (is_complex(operand) ? DType::kC128 : DType::kF64) : t.dtype();
    if (is_complex(operand) && !is_complex(sum)) sum = DType::kC64;
    with_accumulator(sum,
                     [&](auto c) { multiply_matrices<decltype(c)>(a, b, batch, m, n, k, out); });
  } else if (is_bool(operand) && is_bool(t.dtype())) {
    // Counts of at most 2^63 products: not zero where one of them is true.
    multiply_matrices<std::uint64_t>(a, b, batch, m, n, k, out);
  } else {
    multiply_matrices<std::int64_t>(a, b, batch, m, n, k, out);
  }
  return {std::move(out)};
}

DimMap dot_general_dims(const OpCall& call, std::span<const Type> results) {
  using Kind = DimMap::FactorKind;
  DimMap m;
  DotDims d(call.attrs);
  const Type& lhs = call.operands[0];
  const Type& rhs = call.operands[1];
  Dims l(static_cast<std::size_t>(lhs.rank()), -1), r(static_cast<std::size_t>(rhs.rank()), -1);
  m.results.push_back(add_factors(m, results[0].dims(), Kind::kParallel));
  std::int64_t f = 0;
  for (std::size_t i = 0; i < d.lhs_batch.size(); ++i, ++f)
    l[d.lhs_batch[i]] = r[d.rhs_batch[i]] = f;
  for (std::int64_t i : d.lhs_free(lhs.rank())) l[i] = f++;
  for (std::int64_t i : d.rhs_free(rhs.rank())) r[i] = f++;
  for (std::size_t i = 0; i < d.lhs_contract.size(); ++i, ++f) {
    l[d.lhs_contract[i]] = r[d.rhs_contract[i]] = f;
    m.factors.push_back({Kind::kReduced, lhs.dims()[d.lhs_contract[i]]});
  }
  m.operands = {l, r};
  return m;
}

}  // namespace

const OpDef kDotGeneral = {
    .name = "stablehlo.dot_general",
    .min_operands = 2,
    .max_operands = 2,
    .attrs = {{"lhs_batching_dimensions", AttrKind::kDims, false},
              {"rhs_batching_dimensions", AttrKind::kDims, false},
              {"lhs_contracting_dimensions", AttrKind::kDims, false},
              {"rhs_contracting_dimensions", AttrKind::kDims, false},
              {"precision_config", AttrKind::kList, false},
              {"algorithm", AttrKind::kAny, false},
              {"result_dtype", AttrKind::kDType, false}},
    .shape = dot_general_shape_rule,
    .eval = dot_general_eval,
    .dims = dot_general_dims,
    .labels =
        "dot_general_i1 dot_general_i2 dot_general_c1 dot_general_c2 dot_general_c3 "
        "dot_general_c4 dot_general_c5 dot_general_c6 dot_general_c7 dot_general_c8 "
        "dot_general_c9 dot_general_c10 dot_general_c11 dot_general_c13 dot_general_o1 "
        "dot_general_c21 dot_general_c22 dot_general_c23 dot_general_c24",
    .quant = QuantSupport::kPerAxis,
    .result_labels = "c13 c12"};

Family contraction_family() {
  static const OpDef* const kOps[] = {&kDotGeneral};
  return kOps;
}

}  // namespace xylem::ir::ops
