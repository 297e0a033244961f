#include "xylem/ir/quant.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "xylem/base/dtype_cast.h"
#include "xylem/base/error.h"
#include "xylem/base/fp_environment.h"
#include "xylem/ir/ops/internal/shape_util.h"

namespace xylem::ir {
namespace {

using ops::fail;

bool per_axis(const Type& t) { return t.quant() && t.quant()->axis >= 0; }

bool same_baseline(const Type& a, const Type& b) {
  const QuantParams *p = a.quant(), *q = b.quant();
  if (!p || !q) return !p && !q && a.dtype() == b.dtype();
  return p->storage == q->storage && a.dtype() == b.dtype() &&
         storage_range(*p) == storage_range(*q);
}

bool same_quant(const Type& a, const Type& b) {
  if (!a.quant() || !b.quant()) return !a.quant() && !b.quant();
  return *a.quant() == *b.quant() && a.dtype() == b.dtype();
}

// What the rules of quantised types see: the call and its results.
struct Site {
  const OpCall& call;
  const std::vector<Type>& results;

  const Type& operand(std::size_t i) const { return call.operands[i]; }
  [[noreturn]] void bad(std::string_view label, std::string_view expected, const Type& a,
                        const Type& b) const {
    fail(call, label, std::string(expected), fmt::format("{} and {}", a.to_mlir(), b.to_mlir()),
         "Give the quantised types the parameters that the operation asks for");
  }
  void require(bool ok, std::string_view label, std::string_view expected, const Type& a,
               const Type& b) const {
    if (!ok) bad(label, expected, a, b);
  }
  void same_elements(std::string_view label, const Type& a, const Type& b) const {
    require(same_quant(a, b), label, "the element types must be the same, quantisation included", a,
            b);
  }
};

void add_rule(const Site& s) {
  const Type &a = s.operand(0), &b = s.operand(1), &r = s.results[0];
  s.require(a.quant() && b.quant() && r.quant(), "c2",
            "both operands and the result must be quantised", a, b);
  const QuantParams &p = *a.quant(), &q = *b.quant(), &o = *r.quant();
  s.require(p.storage == q.storage && p.storage == o.storage, "c3",
            "operands and result must have one storage type", a, p.storage == q.storage ? r : b);
  s.require(a.dtype() == b.dtype() && a.dtype() == r.dtype(), "c4",
            "operands and result must have one expressed type", a, b);
  s.require((per_axis(a) || per_axis(b)) == per_axis(r), "c5",
            "the result must be quantised per axis exactly when an operand is", a, r);
  s.require(!per_axis(a) || p.axis == o.axis, "c6",
            "lhs and result must have one quantisation dimension", a, r);
  s.require(!per_axis(b) || q.axis == o.axis, "c7",
            "rhs and result must have one quantisation dimension", b, r);
}

struct ContractionLabels {
  std::string_view quantised, storage, expressed, granularity, hybrid;
};

// What dot_general and convolution demand alike.
void contraction_rule(const Site& s, const ContractionLabels& l) {
  const Type &a = s.operand(0), &b = s.operand(1), &r = s.results[0];
  s.require(b.quant() && (a.quant() != nullptr) == (r.quant() != nullptr), l.quantised,
            "rhs must be quantised, and lhs exactly when the result is", a, b.quant() ? r : b);
  if (a.quant()) {
    s.require(a.quant()->storage == b.quant()->storage, l.storage,
              "lhs and rhs must have one storage type", a, b);
    s.require(a.dtype() == b.dtype() && a.dtype() == r.dtype(), l.expressed,
              "lhs, rhs and result must have one expressed type", a, b);
    s.require(per_axis(b) || !per_axis(r), l.granularity,
              "a result of per-tensor quantised operands must be quantised per tensor", b, r);
  } else {
    s.require(a.dtype() == b.dtype() && a.dtype() == r.dtype(), l.hybrid,
              "lhs and result must have the expressed type of rhs", a, b);
  }
}

void dot_general_rule(const Site& s) {
  const Type& b = s.operand(1);
  contraction_rule(s, {"c14", "c17", "c18", "c19", "c20"});
  for (std::int64_t z : b.quant()->zero_points)
    s.require(z == 0, "c15", "the zero points of rhs must be 0", b, b);
  s.require(!per_axis(b) || !ops::contains(s.call.attrs.dims_or("rhs_contracting_dimensions", {}),
                                           b.quant()->axis),
            "c16", "the quantisation dimension of rhs must not be contracted", b, b);
}

void convolution_rule(const Site& s) {
  const Type &b = s.operand(1), &r = s.results[0];
  contraction_rule(s, {"c28", "c31", "c32", "c33", "c34"});
  auto axis_is = [&](const Type& t, std::string_view attr) {
    return !per_axis(t) || t.quant()->axis == s.call.attrs.i64_or(attr, -1);
  };
  s.require(axis_is(b, "kernel_output_feature_dimension"), "c29",
            "rhs must be quantised along kernel_output_feature_dimension", b, b);
  s.require(axis_is(r, "output_feature_dimension"), "c30",
            "the result must be quantised along output_feature_dimension", r, r);
}

// Movements of per-axis quantised elements may renumber the axis.
void moved_rule(const Site& s, std::int64_t axis, std::string_view label,
                std::string_view axis_label) {
  const Type &x = s.operand(0), &r = s.results[0];
  s.require(same_baseline(x, r), label,
            "operand and result must have one element type, quantisation included", x, r);
  if (!per_axis(x) || !per_axis(r)) return s.same_elements(label, x, r);
  s.require(r.quant()->axis == axis, axis_label,
            "the quantisation dimension must move like the other dimensions", x, r);
}

bool same_parameters(const Type& x, const Type& r) {
  return x.quant()->scales == r.quant()->scales && x.quant()->zero_points == r.quant()->zero_points;
}

void transpose_rule(const Site& s) {
  const Type &x = s.operand(0), &r = s.results[0];
  std::int64_t axis = -1;
  const Dims& permutation = s.call.attrs.dims("permutation");
  for (std::size_t i = 0; per_axis(x) && i < permutation.size(); ++i)
    if (permutation[i] == x.quant()->axis) axis = static_cast<std::int64_t>(i);
  moved_rule(s, axis, "c1", "c4");
  if (per_axis(x))
    s.require(same_parameters(x, r), "c1", "scales and zero points must be the same", x, r);
}

void broadcast_rule(const Site& s) {
  const Type &x = s.operand(0), &r = s.results[0];
  moved_rule(s, per_axis(x) ? s.call.attrs.dims("broadcast_dimensions")[x.quant()->axis] : -1, "c1",
             "c6");
  if (!per_axis(x)) return;
  if (x.dim(x.quant()->axis) != 1) {
    s.require(same_parameters(x, r), "c6", "scales and zero points must be the same", x, r);
    return;
  }
  for (std::size_t i = 0; i < r.quant()->scales.size(); ++i)
    s.require(r.quant()->scales[i] == x.quant()->scales[0] &&
                  r.quant()->zero_points[i] == x.quant()->zero_points[0],
              "c6", "a broadcast slice must repeat its scale and zero point", x, r);
}

void reshape_rule(const Site& s) {
  const Type &x = s.operand(0), &r = s.results[0];
  s.require(same_baseline(x, r), "c1",
            "operand and result must have one element type, quantisation included", x, r);
  if (!per_axis(x) || !per_axis(r)) return s.same_elements("c1", x, r);
  s.require(same_parameters(x, r), "c1", "scales and zero points must be the same", x, r);
  if (!x.is_static() || !r.is_static()) return;
  auto product = [](const Type& t, int first, int last) {
    std::int64_t p = 1;
    for (int i = first; i < last; ++i) p *= t.dim(i);
    return p;
  };
  int i = x.quant()->axis, k = r.quant()->axis;
  s.require(x.dim(i) == r.dim(k) && product(x, 0, i) == product(r, 0, k) &&
                product(x, i + 1, x.rank()) == product(r, k + 1, r.rank()),
            "c3", "the reshape must keep the quantisation dimension apart", x, r);
}

// The reducer's element type may differ from the operand's in a wider storage type only.
void reducer_rule(const Site& s, std::string_view label, std::size_t region) {
  if (region >= s.call.regions.size() || !s.call.regions[region]) return;
  const std::vector<Type> computed = s.call.regions[region]->result_types();
  for (std::size_t i = 0; i < computed.size() && i < s.call.operands.size(); ++i) {
    const Type &from = s.operand(i), &to = computed[i];
    const QuantParams *p = from.quant(), *q = to.quant();
    if (!p && !q) continue;
    s.require(p && q && from.dtype() == to.dtype() &&
                  is_unsigned_int(p->storage) == is_unsigned_int(q->storage) &&
                  dtype_bits(p->storage) <= dtype_bits(q->storage),
              label, "the computation must keep the expressed type and not narrow the storage type",
              from, to);
  }
}

struct Reducer {
  std::string_view op, label;
  std::size_t region = 0;
};
constexpr Reducer kReducers[] = {
    {"stablehlo.all_reduce", "c5"},
    {"stablehlo.reduce_scatter", "c7"},
    {"stablehlo.reduce", "c6"},
    {"stablehlo.reduce_window", "c13"},
    {"stablehlo.scatter", "c23"},
    {"stablehlo.select_and_scatter", "c10", 1},
    {"stablehlo.collective_reduce", "c4"},
};

// Operand k of an op whose results have exactly the element types of operands.
struct Exact {
  std::string_view op;
  std::string_view label;
  bool all_operands = false;  // of one element type, not only operand 0
};

constexpr Exact kExact[] = {
    {"stablehlo.concatenate", "c1", true},
    {"stablehlo.pad", "c1", true},
    {"stablehlo.dynamic_pad", "c1"},
    {"stablehlo.slice", "c1"},
    {"stablehlo.dynamic_slice", "c1"},
    {"stablehlo.real_dynamic_slice", "c1"},
    {"stablehlo.reverse", "c1"},
    {"stablehlo.gather", "c23"},
    {"stablehlo.dynamic_gather", "c14"},
    {"stablehlo.dynamic_update_slice", "c2", true},
    {"stablehlo.sort", "c2"},
    {"stablehlo.collective_permute", "c5"},
    {"stablehlo.collective_broadcast", "c3"},
    {"stablehlo.all_gather", "c6"},
    {"stablehlo.all_to_all", "c9"},
    {"stablehlo.optimization_barrier", "c1"},
};

using Rule = void (*)(const Site&);
constexpr std::pair<std::string_view, Rule> kRules[] = {
    {"stablehlo.add", add_rule},
    {"stablehlo.dot_general", dot_general_rule},
    {"stablehlo.convolution", convolution_rule},
    {"stablehlo.dynamic_conv", convolution_rule},
    {"stablehlo.transpose", transpose_rule},
    {"stablehlo.broadcast_in_dim", broadcast_rule},
    {"stablehlo.dynamic_broadcast_in_dim", broadcast_rule},
    {"stablehlo.reshape", reshape_rule},
    {"stablehlo.dynamic_reshape", reshape_rule},
};

// Ops whose own rule says all there is to say, or which take any mix.
bool is_free(const OpDef& def) {
  static constexpr std::string_view kFree[] = {
      "stablehlo.uniform_quantize", "stablehlo.uniform_dequantize",
      "stablehlo.custom_call",      "stablehlo.composite",
      "stablehlo.constant",         "stablehlo.bitcast_convert",
      "stablehlo.convert",          "stablehlo.get_dimension_size",
      "stablehlo.outfeed",          "stablehlo.send"};
  return def.is(kControlFlow) ||
         std::find(std::begin(kFree), std::end(kFree), def.name) != std::end(kFree);
}

// Where all float tensors must have one baseline type.
void baseline_rule(const Site& s) {
  std::size_t blank = s.call.def.result_labels.find(' ');
  std::string_view label = s.call.def.result_labels.substr(0, blank);
  if (label.empty()) label = "c1";
  const Type* first = nullptr;
  auto visit = [&](const Type& t) {
    if (!t.is_tensor() || !(is_float(t.dtype()) || t.quant())) return;
    if (!first) first = &t;
    s.require(same_baseline(*first, t), label,
              "operands and results must have one storage and one expressed type", *first, t);
  };
  for (const Type& t : s.call.operands) visit(t);
  for (const Type& t : s.results) visit(t);
}

void check_rules(const OpCall& call, const std::vector<Type>& results) {
  Site site{call, results};
  for (auto [name, rule] : kRules)
    if (name == call.def.name) return rule(site);
  for (const Exact& e : kExact) {
    if (e.op != call.def.name) continue;
    for (std::size_t i = 1; e.all_operands && i < call.operands.size(); ++i)
      if (is_float(call.operands[i].dtype()) || call.operands[i].quant())
        site.same_elements(e.label, call.operands[0], call.operands[i]);
    for (std::size_t i = 0; i < results.size() && i < call.operands.size(); ++i)
      site.same_elements(e.label, call.operands[i], results[i]);
    return;
  }
  for (const Reducer& r : kReducers)
    if (r.op == call.def.name) return reducer_rule(site, r.label, r.region);
  // Other regions may compute in another type, and have been checked against it.
  if (!is_free(call.def) && call.regions.empty()) baseline_rule(site);
}

// The ops whose operands share an expressed type, and the labels of that: of quantised operands
// only, and of a float lhs with a quantised rhs. The op's own rule would tell it as a difference of
// element types.
struct Expressed {
  std::string_view op, label, hybrid;
};
constexpr Expressed kExpressed[] = {
    {"stablehlo.add", "c4", ""},
    {"stablehlo.dot_general", "c18", "c20"},
    {"stablehlo.convolution", "c32", "c34"},
    {"stablehlo.dynamic_conv", "c32", "c34"},
};

void check_expressed(const OpCall& call) {
  for (const Expressed& e : kExpressed) {
    if (e.op != call.def.name) continue;
    const Type &a = call.operands[0], &b = call.operands[1];
    if (a.dtype() == b.dtype() || !b.quant() || !a.is_tensor()) return;
    std::string_view label = a.quant() ? e.label : e.hybrid;
    if (!label.empty() && is_float(a.dtype()))
      fail(call, label, "the operands must have one expressed type",
           fmt::format("{} and {}", a.to_mlir(), b.to_mlir()), "Quantise them alike");
  }
}

Type with_quant_of(const Type& t, const Type& from) {
  TypeExtra extra = t.extra() ? *t.extra() : TypeExtra();
  extra.quant = from.extra()->quant;
  return Type::with_extra(t, std::move(extra));
}

}  // namespace

Type without_quant(const Type& t) {
  if (t.is_tuple() || t.is_future()) {
    std::vector<Type> elements;
    for (const Type& e : t.elements()) elements.push_back(without_quant(e));
    return t.is_tuple() ? Type::tuple(std::move(elements)) : Type::future(std::move(elements));
  }
  if (!t.quant()) return t;
  TypeExtra extra = *t.extra();
  extra.quant = nullptr;
  return Type::with_extra(t, std::move(extra));
}

Type storage_type(const Type& t) {
  return t.quant() ? without_quant(t).with_dtype(t.quant()->storage) : t;
}

bool has_quant(const Type& t) {
  if (t.is_tuple() || t.is_future()) return has_quant(t.elements());
  return t.quant() != nullptr;
}

bool has_quant(std::span<const Type> types) {
  return std::any_of(types.begin(), types.end(), [](const Type& t) { return has_quant(t); });
}

std::pair<std::int64_t, std::int64_t> storage_range(const QuantParams& q) {
  if (q.storage_min != 0 || q.storage_max != 0) return {q.storage_min, q.storage_max};
  int bits = dtype_bits(q.storage);
  if (is_unsigned_int(q.storage)) return {0, (std::int64_t{1} << bits) - 1};
  return {-(std::int64_t{1} << (bits - 1)), (std::int64_t{1} << (bits - 1)) - 1};
}

bool check_quant(const Type& t, QuantFault& fault) {
  const QuantParams& q = *t.quant();
  auto bad = [&](std::string expected, std::string given) {
    fault = {std::move(expected), std::move(given)};
    return false;
  };
  if (!is_integer(q.storage) || dtype_bits(q.storage) > 32)
    return bad("the storage type is an integer of at most 32 bits", dtype_name(q.storage));
  if (!is_float(t.dtype())) return bad("the expressed type is a float", dtype_name(t.dtype()));
  QuantParams full;
  full.storage = q.storage;
  auto [least, greatest] = storage_range(full);
  auto [low, high] = storage_range(q);
  if (low < least || high > greatest || low >= high)
    return bad(fmt::format("the range of stored values lies in [{}, {}]", least, greatest),
               fmt::format("{}:{}", low, high));
  HostArray limits(t.dtype(), {});
  for (std::size_t i = 0; i < q.scales.size(); ++i) {
    double scale = q.scales[i];
    double back = scale;
    convert_elements(DType::kF64, &scale, t.dtype(), limits.data(), 1);
    convert_elements(t.dtype(), limits.data(), DType::kF64, &back, 1);
    const DTypeInfo& info = dtype_info(t.dtype());
    // Smaller than the least normal number of the expressed type.
    bool tiny = scale < std::ldexp(1.0, 1 - info.bias);
    if (!(scale > 0) || !std::isfinite(back) || tiny)
      return bad(fmt::format("scales are positive numbers of {}", dtype_name(t.dtype())),
                 fmt::format("{}", scale));
    if (q.zero_points[i] < low || q.zero_points[i] > high)
      return bad(fmt::format("zero points lie in [{}, {}]", low, high),
                 fmt::format("{}", q.zero_points[i]));
  }
  if (q.axis < 0) return true;
  if (q.axis >= t.rank())
    return bad(fmt::format("the quantisation dimension lies in [0, {})", t.rank()),
               fmt::format("{}", q.axis));
  if (t.dim(q.axis) != kDynamic && t.dim(q.axis) != static_cast<std::int64_t>(q.scales.size()))
    return bad(fmt::format("there is a scale for each of the {} slices", t.dim(q.axis)),
               fmt::format("{} scales", q.scales.size()));
  return true;
}

bool is_by_storage(const OpDef& def) {
  return def.is(kConstant) || def.name == "stablehlo.bitcast_convert";
}

std::vector<Type> infer_refined(const OpCall& call, const AttrList* written) {
  bool quantised = has_quant(call.operands);
  std::vector<Type> wanted;
  if (written)
    for (const Attr& a : *written) {
      const Type* t = a.get<Type>();
      if (!t)
        fail(call, "result_types", "the attribute holds types", a.to_string(), "Give types only");
      wanted.push_back(*t);
      quantised = quantised || has_quant(*t);
    }
  std::vector<Type> expressed;
  bool strip = quantised && call.def.quant != QuantSupport::kNone;
  if (strip) {
    for (std::size_t i = 0; i < call.operands.size(); ++i) {
      const Type& t = call.operands[i];
      if (per_axis(t) && call.def.quant == QuantSupport::kPerTensor &&
          !(i == 1 && call.def.max_operands == 2 && call.def.name == "stablehlo.dot_general"))
        fail(call, fmt::format("i{}", call.def.max_operands < 0 ? 1 : i + 1),
             fmt::format("operand {} may be quantised per tensor only", i), t.to_mlir(),
             "Dequantise it first");
      expressed.push_back(is_by_storage(call.def) ? storage_type(t) : without_quant(t));
    }
  }
  if (quantised) check_expressed(call);
  std::span<const Type> operands = strip ? std::span<const Type>(expressed) : call.operands;
  std::vector<Type> results =
      call.def.shape({call.def, operands, call.attrs, call.regions, call.loc});
  if (written) {
    bool fits = wanted.size() == results.size();
    for (std::size_t i = 0; fits && i < wanted.size(); ++i)
      fits = types_compatible(is_by_storage(call.def) ? storage_type(wanted[i]) : wanted[i],
                              results[i]);
    if (!fits)
      fail(call, "result_types", fmt::format("the results must be {}", ops::types_text(results)),
           fmt::format("result_types says {}", ops::types_text(wanted)), "Correct the attribute");
    results = std::move(wanted);
  } else if (quantised && !call.def.find_attr("result_types")) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!results[i].is_tensor() || results[i].quant()) continue;
      // The operand at the same place, else the first quantised one.
      const Type* from =
          i < call.operands.size() && call.operands[i].quant() ? &call.operands[i] : nullptr;
      bool hybrid = call.def.max_operands <= 3 && !call.operands.empty() &&
                    is_float(call.operands[0].dtype()) && !call.operands[0].quant();
      for (const Type& t : call.operands)
        if (!from && t.quant() && !hybrid) from = &t;
      bool moved =
          from && per_axis(*from) &&
          (call.def.name == "stablehlo.transpose" || call.def.name == "stablehlo.reshape" ||
           call.def.name == "stablehlo.broadcast_in_dim");
      bool fits = from && !moved && from->dtype() == results[i].dtype() &&
                  (from->quant()->axis < 0 || from->dims() == results[i].dims());
      if (fits) results[i] = with_quant_of(results[i], *from);
      // Per-axis parameters that move along are told by the written type alone.
      if (from && !fits && from->dtype() == results[i].dtype()) return results;
    }
  }
  if (quantised) {
    if (call.def.quant == QuantSupport::kNone && !call.def.is(kControlFlow))
      for (const Type& t : results)
        if (t.quant())
          fail(call, "o1", "the result must not be quantised", t.to_mlir(), "Quantise it apart");
    if (call.def.quant == QuantSupport::kPerTensor)
      for (const Type& t : results)
        if (per_axis(t))
          fail(call, "o1", "the result may be quantised per tensor only", t.to_mlir(),
               "Quantise it per tensor");
    check_rules(call, results);
  }
  return results;
}

}  // namespace xylem::ir
