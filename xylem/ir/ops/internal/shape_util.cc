#include "xylem/ir/ops/internal/shape_util.h"

#include <fmt/format.h>

#include <algorithm>

#include "xylem/ir/quant.h"

namespace xylem::ir::ops {
namespace {

std::string elements_text(unsigned set) {
  std::string s;
  auto add = [&](unsigned bit, const char* word) {
    if ((set & bit) != bit) return false;
    if (!s.empty()) s += " or ";
    s += word;
    return true;
  };
  add(kElBool, "bool");
  if (!add(kElInt, "integer")) {
    add(kElSigned, "signed integer");
    add(kElUnsigned, "unsigned integer");
  }
  add(kElFloat, "float");
  add(kElComplex, "complex");
  return s;
}

}  // namespace

bool in_elements(DType dtype, unsigned set) {
  switch (dtype_info(dtype).kind) {
    case DTypeKind::kBool: return set & kElBool;
    case DTypeKind::kSigned: return set & kElSigned;
    case DTypeKind::kUnsigned: return set & kElUnsigned;
    case DTypeKind::kFloat: return set & kElFloat;
    case DTypeKind::kComplex: return set & kElComplex;
    case DTypeKind::kFloat0: return false;
  }
  return false;
}

std::string_view short_name(const OpDef& def) { return def.name.substr(def.name.find('.') + 1); }

void fail(const OpCall& call, std::string_view what, const std::string& expected,
          const std::string& given, const std::string& advice) {
  call.fail(fmt::format("{}_{}", short_name(call.def), what), expected, given, advice);
}

const Type& tensor_operand(const OpCall& call, int i, unsigned set, std::string_view what) {
  const Type& t = call.operands[static_cast<std::size_t>(i)];
  bool quantised = t.extra() && t.extra()->quant;
  if (!t.is_tensor() || quantised || !in_elements(t.dtype(), set))
    fail(call, what.empty() ? fmt::format("i{}", i + 1) : std::string(what),
         fmt::format("operand {} must be a tensor of {} elements", i, elements_text(set)),
         fmt::format("it is {}", t.to_string()),
         quantised ? "Dequantise it first" : "Convert it first");
  return t;
}

bool dims_fit(const Dims& a, const Dims& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), size_fits);
}

Dims refine(const Dims& a, const Dims& b) {
  Dims out = a;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = refine(a[i], b[i]);
  return out;
}

std::string list(const Dims& d) { return to_string(d); }

std::string differ(std::string_view name_a, const Type& a, std::string_view name_b, const Type& b) {
  std::string where;
  if (a.dtype() != b.dtype()) {
    where = "in dtype";
  } else if (a.rank() != b.rank()) {
    where = "in rank";
  } else {
    for (int i = 0; i < a.rank() && where.empty(); ++i)
      if (!size_fits(a.dim(i), b.dim(i))) where = fmt::format("at axis {}", i);
  }
  return fmt::format("{} is {}, {} is {}, which differ {}", name_a, a.to_string(), name_b,
                     b.to_string(), where);
}

Type check_same_types(const OpCall& call, std::string_view what, int first, int last) {
  if (last < 0) last = static_cast<int>(call.operands.size());
  Type t = call.operands[static_cast<std::size_t>(first)];
  for (int i = first + 1; i < last; ++i) {
    const Type& u = call.operands[static_cast<std::size_t>(i)];
    if (t == u) continue;
    if (!u.is_tensor() || t.dtype() != u.dtype() || !dims_fit(t.dims(), u.dims()))
      fail(call, what, "operands must have one dtype and shape",
           differ(fmt::format("operand {}", first), t, fmt::format("operand {}", i), u),
           t.dtype() != u.dtype() ? "Convert one of them" : "Broadcast or reshape one of them");
    t = t.with_dims(refine(t.dims(), u.dims()));
  }
  return t;
}

void check_in_range(const OpCall& call, std::string_view what, std::string_view name,
                    const Dims& values, std::int64_t limit) {
  for (std::int64_t v : values)
    if (v < 0 || v >= limit)
      fail(call, what, fmt::format("{} must lie in [0, {})", name, limit),
           fmt::format("{} = {} has {}", name, list(values), v),
           "Name existing dimensions, counted from 0");
}

void check_unique(const OpCall& call, std::string_view what, std::string_view name,
                  const Dims& values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (values[i] == values[j])
        fail(call, what, fmt::format("{} must be different from each other", name),
             fmt::format("{} = {} has {} twice", name, list(values), values[i]),
             "Name each dimension once");
}

void check_sorted(const OpCall& call, std::string_view what, std::string_view name,
                  const Dims& values) {
  if (!std::is_sorted(values.begin(), values.end()))
    fail(call, what, fmt::format("{} must be in increasing order", name),
         fmt::format("{} = {}", name, list(values)), "Sort the list");
}

void check_size(const OpCall& call, std::string_view what, std::string_view name,
                const Dims& values, std::int64_t size, std::string_view size_of) {
  if (values.ssize() != size)
    fail(call, what, fmt::format("{} must have one entry for each {} ({})", name, size_of, size),
         fmt::format("{} = {} has {}", name, list(values), values.size()),
         fmt::format("Give {} entries", size));
}

std::string types_text(std::span<const Type> types) {
  std::string s = "(";
  for (const Type& t : types) s += (s.size() > 1 ? ", " : "") + t.to_string();
  return s + ")";
}

void check_region(const OpCall& call, std::string_view what, int region,
                  std::span<const Type> params, const std::vector<Type>* results) {
  const GraphPtr& g = call.regions[static_cast<std::size_t>(region)];
  if (!g)
    fail(call, what, fmt::format("region {} must be a graph", region), "it is null",
         "Build the region first");
  // Rules see quantised operands by their expressed types; the region has them as they are.
  auto differs = [](std::span<const Type> a, std::span<const Type> b) {
    auto same = [](const Type& p, const Type& q) {
      return p == q || types_compatible(without_quant(p), without_quant(q));
    };
    return !std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
  };
  std::vector<Type> have = g->param_types();
  if (differs(have, params))
    fail(call, what, fmt::format("region {} must take {}", region, types_text(params)),
         fmt::format("it takes {}", types_text(have)),
         "Give the region these parameters; captures come last");
  if (!results) return;
  have = g->result_types();
  if (differs(have, *results))
    fail(call, what, fmt::format("region {} must return {}", region, types_text(*results)),
         fmt::format("it returns {}", types_text(have)), "Convert the region's results");
}

int num_captures(const OpCall& call) {
  std::int64_t n = call.attrs.i64_or("num_captures", 0);
  if (n < 0 || n > static_cast<std::int64_t>(call.operands.size()))
    fail(call, "captures", fmt::format("num_captures must lie in [0, {}]", call.operands.size()),
         fmt::format("it is {}", n), "Count the trailing operands that the regions capture");
  return static_cast<int>(n);
}

const Dims& shape_attr(const OpCall& call) {
  const Dims& shape = call.attrs.dims("shape");
  for (std::int64_t n : shape)
    if (n < 0 && n != kDynamic)
      fail(call, "shape", "sizes must not be negative",
           fmt::format("shape = {} has {}", list(shape), n), "Give the size of every dimension");
  return shape;
}

std::int64_t result_size(const OpCall& call, std::string_view what, __int128 size) {
  if (size < 0 || size > (static_cast<__int128>(1) << 62))
    fail(call, what, "the size of a result dimension must lie in [0, 2^62]",
         fmt::format("it would be {}", size < 0 ? "negative" : "larger"),
         "Change the attributes so that the result exists");
  return static_cast<std::int64_t>(size);
}

bool contains(const Dims& d, std::int64_t v) { return std::find(d.begin(), d.end(), v) != d.end(); }

Dims other_dims(int rank, const Dims& dims) {
  Dims out;
  for (int i = 0; i < rank; ++i)
    if (!contains(dims, i)) out.push_back(i);
  return out;
}

Dims add_factors(DimMap& map, const Dims& shape, DimMap::FactorKind kind) {
  Dims out;
  for (std::int64_t size : shape) {
    out.push_back(static_cast<std::int64_t>(map.factors.size()));
    map.factors.push_back({kind, size});
  }
  return out;
}

}  // namespace xylem::ir::ops
