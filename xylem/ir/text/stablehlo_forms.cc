#include "xylem/ir/text/stablehlo_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "xylem/base/error.h"
#include "xylem/ir/text/stablehlo_attrs.h"
#include "xylem/ir/text/stablehlo_parser.h"

// The pretty forms of ops without regions.

namespace xylem::ir::text {
namespace {

using Kind = Clause::Kind;

constexpr Clause kIota[] = {{"dim", "iota_dimension", Kind::kInt}};
constexpr Clause kBroadcast[] = {{"dims", "broadcast_dimensions", Kind::kDims}};
constexpr Clause kLeading[] = {{"sizes", "broadcast_sizes", Kind::kDims}};
constexpr Clause kTranspose[] = {{"dims", "permutation", Kind::kDims}};
constexpr Clause kReverse[] = {{"dims", "dimensions", Kind::kDims}};
constexpr Clause kDimension[] = {{"dim", "dimension", Kind::kInt}};
constexpr Clause kSizes[] = {{"sizes", "slice_sizes", Kind::kDims}};
constexpr Clause kPad[] = {{"low", "edge_padding_low", Kind::kDims},
                           {"high", "edge_padding_high", Kind::kDims},
                           {"interior", "interior_padding", Kind::kDims}};
constexpr Clause kRngBits[] = {{"algorithm", "rng_algorithm", Kind::kEnum}};
constexpr Clause kRng[] = {{"distribution", "rng_distribution", Kind::kEnum}};
constexpr Clause kCholesky[] = {{"lower", "lower", Kind::kBool}};
constexpr Clause kFft[] = {{"type", "fft_type", Kind::kEnum},
                           {"length", "fft_length", Kind::kDims}};
constexpr Clause kEinsum[] = {{"config", "einsum_config", Kind::kString}};
constexpr Clause kTopK[] = {{"k", "k", Kind::kInt}};

constexpr Form kForms[] = {
    {"stablehlo.iota", kIota},
    {"stablehlo.dynamic_iota", kIota},
    {"stablehlo.broadcast_in_dim", kBroadcast},
    {"stablehlo.dynamic_broadcast_in_dim", kBroadcast},
    {"stablehlo.broadcast", kLeading},
    {"stablehlo.transpose", kTranspose},
    {"stablehlo.reverse", kReverse},
    {"stablehlo.concatenate", kDimension},
    {"stablehlo.get_dimension_size", kDimension},
    {"stablehlo.set_dimension_size", kDimension},
    {"stablehlo.dynamic_slice", kSizes},
    {"stablehlo.pad", kPad},
    {"stablehlo.rng_bit_generator", kRngBits},
    {"stablehlo.rng", kRng},
    {"stablehlo.cholesky", kCholesky},
    {"stablehlo.fft", kFft},
    {"stablehlo.einsum", kEinsum},
    {"stablehlo.unary_einsum", kEinsum},
    {"chlo.top_k", kTopK, true},
};

constexpr std::string_view kGenericOnly[] = {
    "interpreter.run_parallel",
    "stablehlo.all_gather",
    "stablehlo.all_reduce",
    "stablehlo.all_to_all",
    "stablehlo.batch_norm_grad",
    "stablehlo.batch_norm_inference",
    "stablehlo.batch_norm_training",
    "stablehlo.case",
    "stablehlo.collective_broadcast",
    "stablehlo.collective_permute",
    "stablehlo.collective_reduce",
    "stablehlo.async_start",
    "stablehlo.async_done",
    "stablehlo.cross-replica-sum",
    "stablehlo.torch_index_select",
    "stablehlo.dynamic_conv",
    "stablehlo.dynamic_gather",
    "stablehlo.gather",
    "stablehlo.if",
    "stablehlo.infeed",
    "stablehlo.map",
    "stablehlo.outfeed",
    "stablehlo.recv",
    "stablehlo.reduce_scatter",
    "stablehlo.reduce_window",
    "stablehlo.scatter",
    "stablehlo.select_and_scatter",
    "stablehlo.send",
    "stablehlo.sort",
    "stablehlo.triangular_solve",
    "chlo.ragged_dot",
    "chlo.constant_like",
};

// How the pretty form of an op is read: one look-up instead of a row of comparisons.
enum class Reader {
  kPlain,
  kGenericOnly,
  kConstant,
  kCall,
  kCompare,
  kSlice,
  kDotGeneral,
  kReduce,
  kWhile,
  kReducePrecision,
  kConvolution,
  kCustomCall,
  kComposite,
  kGetTupleElement,
  kCheck,
  kScan,
};

struct Entry {
  Reader reader = Reader::kPlain;
  const Form* form = nullptr;
};

const std::unordered_map<std::string_view, Entry>& entries() {
  static const auto* kEntries = [] {
    auto* e = new std::unordered_map<std::string_view, Entry>{
        {"stablehlo.constant", {Reader::kConstant}},
        {"chlo.constant", {Reader::kConstant}},
        {"func.call", {Reader::kCall}},
        {"stablehlo.compare", {Reader::kCompare}},
        {"stablehlo.slice", {Reader::kSlice}},
        {"stablehlo.dot_general", {Reader::kDotGeneral}},
        {"stablehlo.dot", {Reader::kDotGeneral}},
        {"stablehlo.reduce", {Reader::kReduce}},
        {"stablehlo.while", {Reader::kWhile}},
        {"stablehlo.reduce_precision", {Reader::kReducePrecision}},
        {"stablehlo.convolution", {Reader::kConvolution}},
        {"stablehlo.custom_call", {Reader::kCustomCall}},
        {"stablehlo.composite", {Reader::kComposite}},
        {"stablehlo.get_tuple_element", {Reader::kGetTupleElement}},
        {"chlo.scan", {Reader::kScan}},
        {"check.expect_eq", {Reader::kCheck}},
        {"check.expect_eq_const", {Reader::kCheck}},
        {"check.expect_almost_eq", {Reader::kCheck}},
        {"check.expect_almost_eq_const", {Reader::kCheck}},
        {"check.expect_close", {Reader::kCheck}},
        {"check.expect_serialized_eq", {Reader::kCheck}},
        {"interpreter.probe", {Reader::kCheck}},
        {"interpreter.print", {Reader::kCheck}},
    };
    for (std::string_view op : kGenericOnly) (*e)[op].reader = Reader::kGenericOnly;
    for (const Form& f : kForms) (*e)[f.op].form = &f;
    return e;
  }();
  return *kEntries;
}

Entry entry_of(std::string_view op) {
  auto it = entries().find(op);
  return it == entries().end() ? Entry{} : it->second;
}

// Ops whose pretty form has no shorthand for types.
bool has_functional_type_only(std::string_view op) {
  static constexpr std::string_view kOps[] = {
      "stablehlo.bitcast_convert",
      "stablehlo.broadcast",
      "stablehlo.broadcast_in_dim",
      "stablehlo.concatenate",
      "stablehlo.dot",
      "stablehlo.dot_general",
      "stablehlo.dynamic_broadcast_in_dim",
      "stablehlo.dynamic_iota",
      "stablehlo.dynamic_pad",
      "stablehlo.dynamic_reshape",
      "stablehlo.dynamic_slice",
      "stablehlo.dynamic_update_slice",
      "stablehlo.einsum",
      "stablehlo.fft",
      "stablehlo.get_dimension_size",
      "stablehlo.is_finite",
      "stablehlo.pad",
      "stablehlo.real_dynamic_slice",
      "stablehlo.reshape",
      "stablehlo.rng",
      "stablehlo.rng_bit_generator",
      "stablehlo.set_dimension_size",
      "stablehlo.slice",
      "stablehlo.transpose",
      "stablehlo.unary_einsum",
  };
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

}  // namespace

const Form* find_form(std::string_view op) { return entry_of(op).form; }

bool is_generic_only(std::string_view op) { return entry_of(op).reader == Reader::kGenericOnly; }

void StablehloParser::read_pretty(Scope& scope, ParsedOp& op) {
  std::string_view n = op.name;
  const Entry entry = entry_of(n);
  switch (entry.reader) {
    case Reader::kConstant: return read_constant(op);
    case Reader::kCall: return read_call(scope, op);
    case Reader::kCompare: return read_compare(scope, op);
    case Reader::kSlice: return read_slice(scope, op);
    case Reader::kDotGeneral: return read_dot_general(scope, op);
    case Reader::kReduce: return read_reduce(scope, op);
    case Reader::kWhile: return read_while(scope, op);
    case Reader::kReducePrecision: return read_reduce_precision(scope, op);
    case Reader::kConvolution: return read_convolution(scope, op);
    case Reader::kCustomCall: return read_custom_call(scope, op);
    case Reader::kComposite: return read_composite(scope, op);
    case Reader::kGetTupleElement: return read_get_tuple_element(scope, op);
    case Reader::kCheck: return read_check(scope, op);
    case Reader::kScan: return read_scan(scope, op);
    case Reader::kGenericOnly:
      c_.fail_here(n, "this op has the generic form only",
                   fmt::format("Write \"{}\"(…) <{{…}}>", n));
    case Reader::kPlain: break;
  }
  if (n == "sdy.constant") return read_constant(op);
  if (op.def && n.starts_with("sdy.") && read_sdy(scope, op)) return;
  if (!op.def && n != "stablehlo.create_token" && n != "stablehlo.broadcast")
    c_.fail(op.pos, n, "ops are those of StableHLO and CHLO that the op table knows",
            "this one is not in it", "Legalise the program to such ops");
  const Form* form = entry.form;
  bool parentheses = (form && form->parentheses) || c_.peek() == '(';
  if (parentheses) c_.expect('(', n);
  read_operands(scope, op);
  if (form) {
    bool first = op.operands.empty();
    for (const Clause& clause : form->clauses) {
      bool last = &clause == &form->clauses.back();
      if (first) {
        first = false;
      } else if (clause.kind == Kind::kBool && c_.peek() != ',') {
        continue;  // left out when false
      } else {
        c_.expect(',', n);
      }
      read_clause(op, clause);
      if (last && form->parentheses && c_.accept(',')) {  // newer: is_stable = false
        std::string_view key = c_.identifier(n);
        c_.expect('=', n);
        op.attrs.set(key, r_.read_attr(MlirReader::Mode::kInherent));
      }
    }
  }
  if (parentheses) c_.expect(')', n);
  read_optional_attrs(op);
  // optimization_barrier() of nothing has no types.
  if (parentheses && op.operands.empty() && c_.peek() != ':') return;
  read_types(scope, op);
}

void StablehloParser::read_clause(ParsedOp& op, const Clause& clause) {
  c_.expect_word(clause.key, op.name);
  c_.expect('=', op.name);
  switch (clause.kind) {
    case Kind::kDims: op.attrs.set(clause.attr, r_.read_int_list()); break;
    case Kind::kInt: op.attrs.set(clause.attr, c_.integer(op.name)); break;
    case Kind::kEnum: op.attrs.set(clause.attr, EnumAttr(c_.identifier(op.name))); break;
    case Kind::kBool: op.attrs.set(clause.attr, r_.read_attr(MlirReader::Mode::kInherent)); break;
    case Kind::kString: op.attrs.set(clause.attr, c_.string(op.name)); break;
  }
}

// ": (T, U) -> V".
void StablehloParser::read_function_type(ParsedOp& op) {
  c_.expect(':', op.name);
  c_.expect('(', op.name);
  if (!c_.accept(')')) {
    op.operand_types = r_.read_type_list();
    c_.expect(')', op.name);
  }
  c_.expect("->", op.name);
  op.result_types = r_.read_result_types();
}

// The types of a pretty form: functional, "T, U -> V", or a shorthand.
void StablehloParser::read_types(Scope& scope, ParsedOp& op) {
  std::size_t at = c_.token_pos();
  c_.expect(':', op.name);
  if (c_.peek() == '(') {
    c_.seek(at);
    return read_function_type(op);
  }
  if (has_functional_type_only(op.name)) c_.expect('(', op.name);
  std::vector<Type> types = r_.read_type_list();
  if (!op.name.starts_with("stablehlo.") && c_.accept("->")) {
    op.operand_types = std::move(types);
    op.result_types = r_.read_result_types();
    return;
  }
  auto actual = [&] {
    std::vector<Type> t;
    for (ValueId v : op.operands) t.push_back(scope.graph->type(v));
    return t;
  };
  if (op.name == "stablehlo.optimization_barrier") {
    op.operand_types = types;
    op.result_types = std::move(types);
  } else if (op.name == "stablehlo.select" && types.size() == 2) {
    op.operand_types = {types[0], types[1], types[1]};
    op.result_types = {types[1]};
  } else if (types.size() == 1) {
    // One type for all, or of the result where the operands' follow from it.
    if (op.name == "stablehlo.complex" && types[0].is_tensor()) {
      Type part = types[0].with_dtype(real_dtype(types[0].dtype()));
      op.operand_types.assign(op.operands.size(), part);
    } else if (op.name == "stablehlo.tuple") {
      op.operand_types = actual();
    } else {
      op.operand_types.assign(op.operands.size(), types[0]);
    }
    op.result_types = std::move(types);
  } else {
    c_.fail(at, op.name, "types are one for all, or (operands) -> results",
            fmt::format("found a list of {}", types.size()), "Write the functional type");
  }
}

// constant {…} dense<…> : T, or constant() <{value = …}> : () -> T.
void StablehloParser::read_constant(ParsedOp& op) {
  if (c_.accept('(')) {
    c_.expect(')', op.name);
    if (c_.accept("<{")) {
      op.attrs = r_.read_entries(op.def, "}");
      c_.expect('>', op.name);
    }
    read_optional_attrs(op);
    return read_function_type(op);
  }
  read_optional_attrs(op);
  auto [value, type] = r_.read_constant();
  op.result_types = {std::move(type)};
  op.attrs.set("value", std::move(value));
}

void StablehloParser::read_call(Scope& scope, ParsedOp& op) {
  op.callee = r_.read_symbol();
  c_.expect('(', "call");
  read_operands(scope, op);
  c_.expect(')', "call");
  read_optional_attrs(op);
  read_function_type(op);
}

// compare LT, %a, %b, FLOAT : (T, T) -> U
void StablehloParser::read_compare(Scope& scope, ParsedOp& op) {
  op.attrs.set("comparison_direction", EnumAttr(c_.identifier(op.name)));
  c_.expect(',', op.name);
  read_operands(scope, op);
  if (c_.accept(',')) op.attrs.set("compare_type", EnumAttr(c_.identifier(op.name)));
  read_optional_attrs(op);
  read_function_type(op);
}

// slice %x [0:2, 1:8:2] : (T) -> U
void StablehloParser::read_slice(Scope& scope, ParsedOp& op) {
  read_operand(scope, op);
  Dims start, limit, strides;
  c_.expect('[', op.name);
  while (!c_.accept(']')) {
    if (!start.empty()) c_.expect(',', op.name);
    start.push_back(c_.integer(op.name));
    c_.expect(':', op.name);
    limit.push_back(c_.integer(op.name));
    strides.push_back(c_.accept(':') ? c_.integer(op.name) : 1);
  }
  op.attrs.set("start_indices", std::move(start));
  op.attrs.set("limit_indices", std::move(limit));
  op.attrs.set("strides", std::move(strides));
  read_optional_attrs(op);
  read_types(scope, op);
}

// dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1],
//   precision = [DEFAULT, DEFAULT], algorithm = <…> : (T, U) -> V
void StablehloParser::read_dot_general(Scope& scope, ParsedOp& op) {
  read_operands(scope, op);
  while (c_.accept(',')) {
    std::size_t at = c_.token_pos();
    std::string_view key = c_.identifier(op.name);
    c_.expect('=', op.name);
    if (key == "batching_dims" || key == "contracting_dims") {
      std::string_view kind = key == "batching_dims" ? "batching" : "contracting";
      op.attrs.set(fmt::format("lhs_{}_dimensions", kind), r_.read_int_list());
      c_.expect_word("x", op.name);
      op.attrs.set(fmt::format("rhs_{}_dimensions", kind), r_.read_int_list());
    } else if (key == "precision") {
      AttrList list;
      c_.expect('[', op.name);
      while (!c_.accept(']')) {
        if (!list.empty()) c_.expect(',', op.name);
        std::size_t member_at = c_.token_pos();
        std::string_view member = c_.identifier(op.name);
        if (member != "DEFAULT" && member != "HIGH" && member != "HIGHEST")
          c_.fail(member_at, op.name, "precisions are DEFAULT, HIGH and HIGHEST",
                  fmt::format("found {}", member), "Use one of them");
        list.push_back(EnumAttr(member));
      }
      if (!precision_.list() || *precision_.list() != list) precision_ = Attr(std::move(list));
      op.attrs.set("precision_config", precision_);
    } else if (key == "algorithm") {
      std::size_t start = c_.token_pos();
      r_.check_structure("dot_algorithm", start);
      op.attrs.set("algorithm", OpaqueAttr{fmt::format("#stablehlo.dot_algorithm{}",
                                                       c_.text().substr(start, c_.pos() - start))});
    } else {
      c_.fail(at, op.name, "clauses are batching_dims, contracting_dims, precision and algorithm",
              fmt::format("found '{}'", key), "Use one of them");
    }
  }
  read_optional_attrs(op);
  read_types(scope, op);
}

// reduce_precision %x, format = e5m10 : T
void StablehloParser::read_reduce_precision(Scope& scope, ParsedOp& op) {
  read_operand(scope, op);
  c_.expect(',', op.name);
  c_.expect_word("format", op.name);
  c_.expect('=', op.name);
  std::size_t at = c_.token_pos();
  std::string_view format = c_.identifier(op.name);
  std::size_t m = format.find('m');
  std::int64_t bits[2] = {0, 0};
  bool good = format[0] == 'e' && m != std::string_view::npos && m > 1 && m + 1 < format.size();
  std::string_view parts[2];
  if (good) {
    parts[0] = format.substr(1, m - 1);
    parts[1] = format.substr(m + 1);
    for (int i = 0; i < 2; ++i) {
      good = good && parts[i].size() < 10;
      for (char ch : parts[i]) {
        good = good && ch >= '0' && ch <= '9';
        bits[i] = bits[i] * 10 + (ch - '0');
      }
    }
  }
  if (!good)
    c_.fail(at, op.name, "the format is e and m with their numbers of bits",
            fmt::format("found '{}'", format), "Write it like e5m10");
  op.attrs.set("exponent_bits", bits[0]);
  op.attrs.set("mantissa_bits", bits[1]);
  read_optional_attrs(op);
  read_types(scope, op);
}

}  // namespace xylem::ir::text
