#include "xylem/core/jaxpr.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <map>
#include <unordered_map>

#include "xylem/core/internal/primitive_name.h"
#include "xylem/core/internal/staged.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/ops/all.h"
#include "xylem/ir/ops/callback.h"
#include "xylem/ir/ops/cumulative.h"

// The layout is that of JAX: a group stands on one line if it fits 80 columns, otherwise every part
// gets a line of its own.

namespace xylem::internal {
namespace {

using ir::Graph;
using ir::GraphPtr;
using ir::Op;
using ir::Type;
using ir::ValueId;
namespace o = ir::ops;

constexpr std::size_t kWidth = 80;

std::string dtype_text(DType t) {
  std::string s = dtype_info(t).numpy_name;
  const std::pair<const char*, const char*> kinds[] = {
      {"uint", "u"}, {"int", "i"}, {"bfloat", "bf"}, {"float", "f"}, {"complex", "c"}};
  for (const auto& [from, to] : kinds)
    if (s.starts_with(from)) return to + s.substr(std::string_view(from).size());
  return s;
}

std::string type_text(const Type& t) {
  if (!t.is_tensor()) return t.to_string();
  return fmt::format("{}[{}]", dtype_text(t.dtype()), fmt::join(t.dims(), ","));
}

// As Python prints tuples.
std::string tuple_text(const Dims& d) {
  return fmt::format("({}{})", fmt::join(d, ", "), d.size() == 1 ? "," : "");
}
std::string list_text(const Dims& d) { return fmt::format("[{}]", fmt::join(d, ", ")); }

std::string float_text(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  std::string s = fmt::format("{}", v);
  return s.find_first_of(".e") == std::string::npos ? s + ".0" : s;
}

std::string scalar_text(const HostArray& a) {
  DType t = a.dtype();
  std::string v;
  if (is_bool(t))
    v = a.at(0) != 0 ? "True" : "False";
  else if (is_complex(t))
    v = a.to_string();
  else if (is_integer(t))
    v = HostArray::from_bytes(t, {}, {a.data(), static_cast<std::size_t>(dtype_bytes(t))})
            .to_string();
  else
    v = float_text(a.at(0));
  return fmt::format("{}:{}[]", v, dtype_text(t));
}

bool is_splat(const HostArray& a) {
  if (a.size() == 0) return false;
  const HostArray d = a.to_contiguous();
  const auto n = static_cast<std::size_t>(dtype_bytes(d.dtype()));
  for (std::size_t i = n; i < d.nbytes(); i += n)
    if (std::memcmp(d.data(), d.data() + i, n) != 0) return false;
  return true;
}

const std::map<const ir::OpDef*, const char*>& names() {
  static const std::map<const ir::OpDef*, const char*> table = {
      {&o::kSubtract, "sub"},
      {&o::kMultiply, "mul"},
      {&o::kDivide, "div"},
      {&o::kRemainder, "rem"},
      {&o::kNegate, "neg"},
      {&o::kMaximum, "max"},
      {&o::kMinimum, "min"},
      {&o::kPower, "pow"},
      {&o::kPopcnt, "population_count"},
      {&o::kCountLeadingZeros, "clz"},
      {&o::kSelect, "select_n"},
      {&o::kConvert, "convert_element_type"},
      {&o::kBitcastConvert, "bitcast_convert_type"},
      {&o::kReverse, "rev"},
      {&o::kCall, "jit"},
      {&o::kRemat, "remat2"},
      {&o::kCustomJvp, "custom_jvp_call"},
      {&o::kCustomVjp, "custom_vjp_call"},
      {&o::kLinearSolve, "custom_linear_solve"},
      {&o::kCheckpointName, "name"},
      {&o::kIf, "cond"},
      {&o::kCase, "cond"},
  };
  return table;
}

std::string primitive(const Op& op) {
  static const std::map<std::string_view, const char*> renamed = {
      {"stablehlo.exponential", "exp"},
      {"stablehlo.exponential_minus_one", "expm1"},
      {"stablehlo.log_plus_one", "log1p"},
      {"stablehlo.sine", "sin"},
      {"stablehlo.cosine", "cos"},
      {"stablehlo.round_nearest_even", "round"},
      {"stablehlo.round_nearest_afz", "round"}};
  if (auto it = names().find(op.def); it != names().end()) return it->second;
  if (auto it = renamed.find(op.def->name); it != renamed.end()) return it->second;
  if (op.def == &o::kCompare) {
    std::string d(op.attrs.at("comparison_direction").get<ir::EnumAttr>()->value);
    for (char& c : d) c = static_cast<char>(std::tolower(c));
    return d;
  }
  if (op.def == &o::kIoCallback) return op.attrs.flag("debug") ? "debug_callback" : "io_callback";
  if (op.def == &o::kReduce && op.regions[0]->ops.size() == 1 && op.results.size() == 1) {
    const std::string_view by = op.regions[0]->ops[0].def->name;
    if (by == "stablehlo.add") return "reduce_sum";
    if (by == "stablehlo.multiply") return "reduce_prod";
    if (by == "stablehlo.maximum") return "reduce_max";
    if (by == "stablehlo.minimum") return "reduce_min";
    if (by == "stablehlo.and") return "reduce_and";
    if (by == "stablehlo.or") return "reduce_or";
  }
  return std::string(op.def->name.substr(op.def->name.find('.') + 1));
}

// A parameter of an equation: text, or jaxprs.
struct Param {
  std::string key, text;
  std::vector<GraphPtr> graphs;
  std::vector<std::vector<std::size_t>> order;  // their parameters in JAX's order
  bool many = false;
};

class Printer {
 public:
  std::string program(const Staged& s) {
    const Graph& g = *s.traced.graph;
    count(g);
    std::size_t own = g.params.size() - s.traced.captures.size();
    std::string head;
    hoist(g, head);
    std::vector<std::size_t> consts, args;
    for (std::size_t i = own; i < g.params.size(); ++i) consts.push_back(i);
    for (std::size_t i = 0; i < own; ++i) args.push_back(i);
    return head + lambda(g, consts, args, 0, 0);
  }

 private:
  using Names = std::unordered_map<ValueId, std::string>;

  std::string fresh() {
    std::size_t n = next_++;
    std::string s;
    do {
      s.insert(s.begin(), static_cast<char>('a' + n % 26));
      n /= 26;
    } while (n > 0);
    return s;
  }

  // --- jaxprs that are printed once, in front ---------------------------------------------------

  void count(const Graph& g) {
    for (const Op& op : g.ops) {
      if (op.def == &o::kCall) ++uses_[op.regions[0].get()];
      if (op.def == &o::kCall && uses_[op.regions[0].get()] > 1) continue;
      for (const GraphPtr& r : op.regions) count(*r);
    }
  }

  void hoist(const Graph& g, std::string& out) {
    for (const Op& op : g.ops) {
      for (const GraphPtr& r : op.regions) hoist(*r, out);
      if (op.def != &o::kCall) continue;
      const Graph* r = op.regions[0].get();
      if (hoisted_.contains(r) || (uses_[r] < 2 && r->ops.size() <= 10)) continue;
      std::string name = op.attrs.str_or("name", "jaxpr");
      if (int n = taken_[name]++) name += std::to_string(n);
      std::vector<std::size_t> args;
      for (std::size_t i = 0; i < r->params.size(); ++i) args.push_back(i);
      out += fmt::format("let {} = {} in\n", name, lambda(*r, {}, args, 0, 7 + name.size()));
      hoisted_[r] = name;
    }
  }

  // --- values -----------------------------------------------------------------------------------

  // The literal that stands for a value, empty if it is none.
  std::string literal(const Graph& g, ValueId v) const {
    const Op* op = g.def(v);
    if (!op) return "";
    if (op->def->is(ir::kConstant)) {
      const HostArray& a = op->attrs.array("value");
      return is_splat(a) && g.type(v).is_tensor() ? scalar_text(a.to_contiguous()) : "";
    }
    return "";
  }

  // Broadcasts of literals that elementwise ops alone read are those literals.
  std::vector<bool> silent(const Graph& g) const {
    std::vector<bool> quiet(g.values.size(), false);
    for (const Op& op : g.ops)
      if (op.def == &o::kBroadcastInDim && !literal(g, op.operands[0]).empty() &&
          g.type(op.operands[0]).rank() == 0)
        quiet[at(op.results[0])] = true;
    for (const Op& op : g.ops)
      for (ValueId v : op.operands)
        if (!op.def->is(ir::kPointwise) || op.def == &o::kSelect) quiet[at(v)] = false;
    for (ValueId v : g.results) quiet[at(v)] = false;
    return quiet;
  }

  static std::size_t at(ValueId v) { return static_cast<std::size_t>(v); }

  // --- lambdas ----------------------------------------------------------------------------------

  // `indent`: column of the line's start; `used`: columns of it that are taken.
  std::string lambda(const Graph& g, const std::vector<std::size_t>& consts,
                     const std::vector<std::size_t>& args, std::size_t indent, std::size_t used) {
    std::size_t saved = next_;
    std::string flat = render(g, consts, args, indent, true);
    if (flat.find('\n') == std::string::npos && used + flat.size() <= kWidth) return flat;
    next_ = saved;
    return render(g, consts, args, indent, false);
  }

  std::string render(const Graph& g, const std::vector<std::size_t>& consts,
                     const std::vector<std::size_t>& args, std::size_t indent, bool one_line) {
    Names name;
    std::string out = "{ lambda ";
    auto bind = [&](ValueId v) {
      name[v] = fresh();
      return name[v] + ":" + type_text(g.type(v));
    };
    std::vector<std::string> binders;
    for (std::size_t i : consts) binders.push_back(bind(g.params[i]));
    for (const Op& op : g.ops)
      if (op.def->is(ir::kConstant) && literal(g, op.results[0]).empty())
        binders.push_back(bind(op.results[0]));
    out += fmt::format("{}; ", fmt::join(binders, " "));
    binders.clear();
    for (std::size_t i : args) binders.push_back(bind(g.params[i]));
    out += fmt::format("{}. let", fmt::join(binders, " "));
    std::vector<bool> quiet = silent(g), used(g.values.size(), false);
    for (const Op& op : g.ops)
      for (ValueId v : op.operands) used[at(v)] = true;
    for (ValueId v : g.results) used[at(v)] = true;
    auto use = [&](ValueId v) {
      if (auto it = name.find(v); it != name.end()) return it->second;
      std::string l = literal(g, v);
      if (l.empty() && quiet[at(v)]) l = literal(g, g.def(v)->operands[0]);
      return l.empty() ? std::string("?") : l;
    };
    std::string separator = one_line ? " " : "\n" + std::string(indent + 4, ' ');
    for (const Op& op : g.ops) {
      if (op.def->is(ir::kConstant) || (op.results.size() == 1 && quiet[at(op.results[0])]))
        continue;
      for (const std::string& line : equation(g, op, name, used, use, indent + 4, one_line)) {
        out += separator + line;
        separator = one_line ? "; " : "\n" + std::string(indent + 4, ' ');
      }
    }
    std::vector<std::string> results;
    for (ValueId v : g.results) results.push_back(use(v));
    out += one_line ? " in " : "\n" + std::string(indent + 2, ' ') + "in ";
    return out + fmt::format("({}{}) }}", fmt::join(results, ", "), results.size() == 1 ? "," : "");
  }

  // --- equations --------------------------------------------------------------------------------

  template <class Use>
  std::vector<std::string> equation(const Graph& g, const Op& op, Names& name,
                                    const std::vector<bool>& used, const Use& use,
                                    std::size_t indent, bool one_line) {
    std::vector<std::string> lines, operands;
    for (ValueId v : op.operands) operands.push_back(use(v));
    std::vector<Param> params = params_of(g, op, operands);
    if (op.def == &o::kSelect) std::swap(operands[1], operands[2]);
    if (op.def == &o::kReduce) operands.resize(operands.size() / 2);
    if (op.def == &o::kIf) {
      // JAX selects a branch by number.
      std::string index = fresh();
      lines.push_back(
          fmt::format("{}:i32[] = convert_element_type[new_dtype=int32 weak_type=False] {}", index,
                      operands[0]));
      operands[0] = index;
    }
    std::string out;
    for (ValueId v : op.results) {
      name[v] = used[at(v)] ? fresh() : "_";
      out += (out.empty() ? "" : " ") + name[v] + ":" + type_text(g.type(v));
    }
    if (!out.empty()) out += " = ";
    out += primitive(op);
    std::string tail = " " + fmt::format("{}", fmt::join(operands, " "));
    if (params.empty()) {
      lines.push_back(out + tail);
      return lines;
    }
    std::size_t saved = next_;
    std::string flat;
    for (Param& p : params) flat += (flat.empty() ? "" : " ") + param(p, 0, true);
    flat = out + "[" + flat + "]" + tail;
    if (one_line || indent + flat.size() <= kWidth) {
      lines.push_back(flat);
      return lines;
    }
    next_ = saved;
    std::string pad = "\n" + std::string(indent + 2, ' ');
    out += "[";
    for (Param& p : params) out += pad + param(p, indent + 2, false);
    lines.push_back(out + "\n" + std::string(indent, ' ') + "]" + tail);
    return lines;
  }

  std::string jaxpr(const Param& p, std::size_t i, std::size_t indent, std::size_t taken,
                    bool one_line) {
    const Graph& g = *p.graphs[i];
    if (auto it = hoisted_.find(&g); it != hoisted_.end()) return it->second;
    if (one_line) return render(g, {}, p.order[i], indent, true);
    return lambda(g, {}, p.order[i], indent, taken);
  }

  std::string param(const Param& p, std::size_t indent, bool one_line) {
    if (p.graphs.empty()) return p.key + "=" + p.text;
    if (!p.many) return p.key + "=" + jaxpr(p, 0, indent, indent + p.key.size() + 1, one_line);
    std::string out = p.key + "=(", pad = one_line ? "" : "\n" + std::string(indent + 2, ' ');
    for (std::size_t i = 0; i < p.graphs.size(); ++i)
      out += (one_line && i ? " " : pad) + jaxpr(p, i, indent + 2, indent + 2, one_line);
    return out + (one_line ? ")" : "\n" + std::string(indent, ' ') + ")");
  }

  static std::vector<std::size_t> all_params(const Graph& g) {
    std::vector<std::size_t> r;
    for (std::size_t i = 0; i < g.params.size(); ++i) r.push_back(i);
    return r;
  }

  static bool reads(const Graph& g, std::size_t param) {
    ValueId p = g.params[param];
    for (const Op& op : g.ops)
      for (ValueId v : op.operands)
        if (v == p) return true;
    for (ValueId v : g.results)
      if (v == p) return true;
    return false;
  }

  static Param text(std::string key, std::string value) {
    Param p;
    p.key = std::move(key);
    p.text = std::move(value);
    return p;
  }
  static Param graph(std::string key, GraphPtr g, std::vector<std::size_t> order) {
    Param p;
    p.key = std::move(key);
    p.graphs.push_back(std::move(g));
    p.order.push_back(std::move(order));
    return p;
  }

  // JAX's parameters; may reorder the operands.
  std::vector<Param> params_of(const Graph& g, const Op& op, std::vector<std::string>& operands) {
    std::vector<Param> r;
    const ir::Attrs& a = op.attrs;
    auto boolean = [](bool b) { return std::string(b ? "True" : "False"); };
    auto dtype = [](DType t) { return std::string(dtype_info(t).numpy_name); };
    const Type* out = op.results.empty() ? nullptr : &g.type(op.results[0]);
    if (op.def == &o::kConvert)
      return {text("new_dtype", dtype(out->dtype())), text("weak_type", "False")};
    if (op.def == &o::kBitcastConvert) return {text("new_dtype", dtype(out->dtype()))};
    if (op.def == &o::kBroadcastInDim) {
      const Dims& d = a.dims("broadcast_dimensions");
      if (!d.empty()) {
        r.push_back(text("broadcast_dimensions", tuple_text(d)));
        r.push_back(text("shape", tuple_text(out->dims())));
        r.push_back(text("sharding", "None"));
      }
      return r;
    }
    if (op.def == &o::kReshape)
      return {text("dimensions", "None"), text("new_sizes", tuple_text(out->dims())),
              text("sharding", "None")};
    if (op.def == &o::kTranspose) return {text("permutation", tuple_text(a.dims("permutation")))};
    if (op.def == &o::kIota)
      return {text("dimension", std::to_string(a.i64("iota_dimension"))),
              text("dtype", dtype(out->dtype())), text("shape", tuple_text(out->dims())),
              text("sharding", "None")};
    if (op.def == &o::kSlice) {
      bool unit = true;
      for (std::int64_t s : a.dims("strides")) unit = unit && s == 1;
      return {text("limit_indices", tuple_text(a.dims("limit_indices"))),
              text("start_indices", tuple_text(a.dims("start_indices"))),
              text("strides", unit ? "None" : tuple_text(a.dims("strides")))};
    }
    if (op.def == &o::kConcatenate) return {text("dimension", std::to_string(a.i64("dimension")))};
    if (op.def == &o::kReverse) return {text("dimensions", tuple_text(a.dims("dimensions")))};
    if (op.def == &o::kDynamicSlice)
      return {text("slice_sizes", tuple_text(a.dims("slice_sizes")))};
    if (op.def == &o::kPad) {
      std::string config;
      const Dims &low = a.dims("edge_padding_low"), &high = a.dims("edge_padding_high"),
                 &inner = a.dims("interior_padding");
      for (int i = 0; i < low.ssize(); ++i)
        config += fmt::format("{}({}, {}, {})", i ? ", " : "", low[i], high[i], inner[i]);
      return {text("padding_config", "(" + config + (low.size() == 1 ? ",)" : ")"))};
    }
    if (op.def == &o::kReduce && op.results.size() == 1) {
      r.push_back(text("axes", tuple_text(a.dims("dimensions"))));
      if (primitive(op) == "reduce_sum") r.push_back(text("out_sharding", "None"));
      return r;
    }
    if (op.def == &o::kDotGeneral) {
      auto d = [&](const char* n) { return list_text(a.dims_or(n, {})); };
      return {text("dimension_numbers",
                   fmt::format("(({}, {}), ({}, {}))", d("lhs_contracting_dimensions"),
                               d("rhs_contracting_dimensions"), d("lhs_batching_dimensions"),
                               d("rhs_batching_dimensions"))),
              text("preferred_element_type", dtype(out->dtype()))};
    }
    if (op.def == &o::kCumsum || op.def == &o::kCumprod || op.def == &o::kCummax ||
        op.def == &o::kCummin)
      return {text("axis", std::to_string(a.i64("dimension"))),
              text("reverse", boolean(a.flag("reverse")))};
    if (op.def->name == "stablehlo.round_nearest_even")
      return {text("rounding_method", "RoundingMethod.TO_NEAREST_EVEN")};
    if (op.def->name == "stablehlo.round_nearest_afz")
      return {text("rounding_method", "RoundingMethod.AWAY_FROM_ZERO")};
    if (op.def == &o::kSort)
      return {text("dimension", std::to_string(a.i64_or("dimension", -1))),
              text("is_stable", boolean(a.flag("is_stable"))), text("num_keys", "1")};
    if (op.def == &o::kCheckpointName) return {text("name", a.str("name"))};
    if (op.def == &o::kCompare) return r;
    if (op.def == &o::kCall)
      return {text("name", a.str_or("name", "jit")),
              graph("jaxpr", op.regions[0], all_params(*op.regions[0]))};
    if (op.def == &o::kRemat) {
      std::string policy = a.str_or("policy", "");
      return {text("differentiated", "False"),
              graph("jaxpr", op.regions[0], all_params(*op.regions[0])),
              text("policy", policy.empty() || policy == "nothing_saveable" ? "None" : policy),
              text("prevent_cse", boolean(a.flag("prevent_cse")))};
    }
    if (op.def == &o::kCustomJvp)
      return {graph("call_jaxpr", op.regions[0], all_params(*op.regions[0])),
              graph("jvp_jaxpr", op.regions[1], all_params(*op.regions[1])),
              text("num_consts", std::to_string(a.i64_or("num_consts", 0))),
              text("symbolic_zeros", "False")};
    if (op.def == &o::kCustomVjp)
      return {graph("bwd", op.regions[2], all_params(*op.regions[2])),
              graph("call_jaxpr", op.regions[0], all_params(*op.regions[0])),
              graph("fwd_jaxpr", op.regions[1], all_params(*op.regions[1])),
              text("num_consts", std::to_string(a.i64_or("num_consts", 0))),
              text("symbolic_zeros", "False")};
    if (op.def == &o::kScan)
      return {graph("jaxpr", op.regions[0], all_params(*op.regions[0])),
              text("length", std::to_string(a.i64("length"))),
              text("num_carry", std::to_string(a.i64("num_carry"))),
              text("num_consts", std::to_string(a.i64("num_consts"))),
              text("reverse", boolean(a.flag("reverse"))),
              text("unroll", std::to_string(a.i64_or("unroll", 1)))};
    if (op.def == &o::kIf || op.def == &o::kCase) {
      Param p;
      p.key = "branches";
      p.many = true;
      p.graphs.assign(op.regions.begin(), op.regions.end());
      if (op.def == &o::kIf) std::swap(p.graphs[0], p.graphs[1]);
      for (const GraphPtr& b : p.graphs) p.order.push_back(all_params(*b));
      r.push_back(std::move(p));
      return r;
    }
    if (op.def == &o::kWhile) {
      // JAX passes to each function what it reads: constants first, the carry behind.
      const std::size_t n = op.results.size();
      std::vector<std::string> all = std::move(operands);
      operands.clear();
      auto split = [&](const Graph& region, std::size_t& consts) {
        std::vector<std::size_t> order;
        for (std::size_t i = n; i < region.params.size(); ++i)
          if (reads(region, i)) order.push_back(i);
        consts = order.size();
        for (std::size_t i : order) operands.push_back(all[i]);
        for (std::size_t i = 0; i < n; ++i) order.push_back(i);
        return order;
      };
      std::size_t cond_consts = 0, body_consts = 0;
      std::vector<std::size_t> cond = split(*op.regions[0], cond_consts),
                               body = split(*op.regions[1], body_consts);
      operands.insert(operands.end(), all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n));
      return {graph("body_jaxpr", op.regions[1], body),
              text("body_nconsts", std::to_string(body_consts)),
              graph("cond_jaxpr", op.regions[0], cond),
              text("cond_nconsts", std::to_string(cond_consts))};
    }
    // Others: their attributes as they are.
    for (const auto& [key, value] : a.entries()) {
      if (key == "function" || key == "result_types" || key == "rule") continue;
      if (const Dims* d = value.get<Dims>())
        r.push_back(text(std::string(key), tuple_text(*d)));
      else if (const bool* b = value.get<bool>())
        r.push_back(text(std::string(key), boolean(*b)));
      else if (const std::string* s = value.get<std::string>())
        r.push_back(text(std::string(key), *s));
      else
        r.push_back(text(std::string(key), value.to_string()));
    }
    for (std::size_t i = 0; i < op.regions.size(); ++i)
      r.push_back(graph(op.regions.size() == 1 ? "jaxpr" : fmt::format("jaxpr{}", i), op.regions[i],
                        all_params(*op.regions[i])));
    return r;
  }

  std::size_t next_ = 0;
  std::unordered_map<const Graph*, int> uses_;
  std::unordered_map<const Graph*, std::string> hoisted_;
  std::unordered_map<std::string, int> taken_;
};

}  // namespace

std::string primitive_name(const ir::Op& op) { return primitive(op); }
std::string jax_type_text(const ir::Type& t) { return type_text(t); }

std::string jaxpr_text(const Staged& s) { return Printer().program(s); }

}  // namespace xylem::internal
