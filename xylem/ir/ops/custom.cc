#include "xylem/ir/ops/custom.h"

#include <fmt/format.h>

#include <algorithm>

#include "xylem/ir/builder.h"
#include "xylem/ir/interpreter.h"
#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/internal/call_util.h"
#include "xylem/ir/ops/internal/custom_targets.h"
#include "xylem/ir/quant.h"

namespace xylem::ir::ops {
namespace {

using Types = std::vector<Type>;

// custom_call ------------------------------------------------------------------------------------

std::string path_text(const Dims& d) { return list(d); }

// The part of the types that an alias names; null if it is out of bounds.
const Type* alias_part(std::span<const Type> types, const Dims& path) {
  const Type* t = nullptr;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (i > 0 && !t->is_tuple()) return nullptr;
    std::span<const Type> level = i == 0 ? types : std::span<const Type>(t->elements());
    if (path[i] < 0 || path[i] >= static_cast<std::int64_t>(level.size())) return nullptr;
    t = &level[static_cast<std::size_t>(path[i])];
  }
  return t;
}

void check_layouts(const OpCall& call, std::string_view name, std::span<const Type> types,
                   std::string_view word) {
  const AttrList& layouts = *call.attrs.at(name).list();
  if (layouts.size() != types.size())
    fail(call, "layouts", fmt::format("{} has an entry for each {}", name, word),
         fmt::format("{} entries for {}", layouts.size(), types.size()),
         "Give one layout for each");
  for (std::size_t i = 0; i < types.size(); ++i) {
    const Type& t = types[i];
    if (t.is_tuple())
      fail(call, "layouts", "tuples have no layouts",
           fmt::format("{} {} is {}", word, i, t.to_mlir()), "Pass its elements");
    const HostArray* a = layouts[i].get<HostArray>();
    Dims order;
    if (a && a->rank() == 1 && is_integer(a->dtype())) {
      HostArray wide = a->astype(DType::kI64);
      order = Dims(wide.span<std::int64_t>());
    } else if (const Dims* d = layouts[i].get<Dims>()) {
      order = *d;
    } else {
      fail(call, "layouts", "a layout is a list of dimensions", layouts[i].to_string(),
           "Write it like dense<[1, 0]> : tensor<2xindex>");
    }
    if (!t.is_tensor()) {
      if (!order.empty())
        fail(call, "layouts", "only tensors have layouts",
             fmt::format("{} {} is {}", word, i, t.to_mlir()), "Leave its layout empty");
      continue;
    }
    Dims sorted = order;
    std::sort(sorted.begin(), sorted.end());
    bool permutation = sorted.ssize() == t.rank();
    for (int d = 0; permutation && d < t.rank(); ++d) permutation = sorted[d] == d;
    if (!permutation)
      fail(call, "layouts", fmt::format("a layout is a permutation of [0, {})", t.rank()),
           fmt::format("{} for {}", list(order), t.to_mlir()), "Name every dimension once");
  }
}

void check_aliases(const OpCall& call, const Types& results) {
  const Attr* attr = call.attrs.find("output_operand_aliases");
  const AttrList* aliases = attr ? attr->list() : nullptr;
  auto bad = [&](std::string_view expected, std::string given) {
    fail(call, "aliases", std::string(expected), given, "Correct output_operand_aliases");
  };
  std::vector<std::string> used_operands, used_outputs;
  // An output that is not in a list of results has no index in front.
  bool bare = results.size() == 1 && !results[0].is_tuple();
  for (const Attr& a : aliases ? *aliases : AttrList{}) {
    const Attrs* alias = a.dict();
    if (!alias) bad("an alias is #stablehlo.output_operand_alias<…>", a.to_string());
    const Attr* index = alias->find("operand_index");
    if (index && !index->get<std::int64_t>()) bad("operand_index is an integer", a.to_string());
    for (std::string_view name : {"output_tuple_indices", "operand_tuple_indices"}) {
      const Attr* indices = alias->find(name);
      if (indices && !indices->get<Dims>())
        bad(fmt::format("{} is a list of integers", name), a.to_string());
    }
    Dims output = alias->dims_or("output_tuple_indices", {});
    Dims operand_path = alias->dims_or("operand_tuple_indices", {});
    std::int64_t operand = alias->i64_or("operand_index", 0);
    auto n = static_cast<std::int64_t>(call.operands.size());
    if (operand < 0 || operand >= n)
      bad(fmt::format("operand_index lies in [0, {})", n), fmt::format("it is {}", operand));
    Dims full{operand};
    for (std::int64_t i : operand_path) full.push_back(i);
    const Type* from = alias_part(call.operands, full);
    if (!from) bad("operand_tuple_indices names a part of the operand", path_text(operand_path));
    Dims path = output;
    bool inside = results.size() == 1 && results[0].is_tuple();
    if (bare || inside) path.insert(0, 0);
    const Type* to = path.empty() ? nullptr : alias_part(results, path);
    if (!to) bad("output_tuple_indices names a part of the results", path_text(output));
    if (!(*from == *to) && !(from->is_tensor() && to->is_tensor() && types_compatible(*to, *from)))
      bad("both sides of an alias have one type",
          fmt::format("{} and {}", from->to_mlir(), to->to_mlir()));
    if (!from->is_ref()) continue;
    std::string operand_key = fmt::format("{}{}", operand, path_text(operand_path));
    std::string output_key = path_text(output);
    for (auto [keys, key] :
         {std::pair(&used_operands, &operand_key), std::pair(&used_outputs, &output_key)}) {
      if (std::find(keys->begin(), keys->end(), *key) != keys->end())
        bad("a buffer is aliased once", *key + " is used again");
      keys->push_back(*key);
    }
  }
  std::string_view target =
      call.attrs.str_or("call_target_name", "") == "CreateBuffer" ? "free" : "";
  if (call.attrs.str_or("call_target_name", "") == "Pin") target = "free";
  if (!target.empty()) return;
  // Every buffer that comes out went in.
  auto walk = [&](auto&& self, const Type& t, Dims path) -> void {
    if (t.is_tuple()) {
      for (std::size_t i = 0; i < t.elements().size(); ++i) {
        Dims inner = path;
        inner.push_back(static_cast<std::int64_t>(i));
        self(self, t.elements()[i], inner);
      }
    } else if (t.is_ref() && std::find(used_outputs.begin(), used_outputs.end(), path_text(path)) ==
                                 used_outputs.end()) {
      bad("every buffer of the results is aliased to an operand", path_text(path) + " is not");
    }
  };
  for (std::size_t i = 0; i < results.size(); ++i)
    walk(walk, results[i], results.size() == 1 ? Dims{} : Dims{static_cast<std::int64_t>(i)});
}

void check_buffers(const OpCall& call, const Types& results) {
  std::string target = call.attrs.str_or("call_target_name", "");
  auto bad = [&](std::string_view expected, std::string given) {
    fail(call, "buffers", fmt::format("{} {}", target, expected), given, "Correct the call");
  };
  auto texts = [&] {
    return fmt::format("{} to {}", types_text(call.operands), types_text(results));
  };
  auto same = [](const Type& a, const Type& b) {
    return a.dtype() == b.dtype() && a.dims() == b.dims();
  };
  if (target == "CreateBuffer") {
    if (!call.operands.empty()) bad("takes nothing", texts());
    if (results.size() != 1 || !results[0].is_ref()) bad("gives a memref", texts());
  } else if (target == "Pin") {
    if (call.operands.size() != 1 || !call.operands[0].is_tensor()) bad("takes a tensor", texts());
    if (results.size() != 1 || !results[0].is_ref()) bad("gives a memref", texts());
    if (!same(call.operands[0], results[0])) bad("keeps element type and shape", texts());
  } else if (target == "Unpin") {
    if (call.operands.size() != 1 || !call.operands[0].is_ref()) bad("takes a memref", texts());
    if (results.size() != 1 || !results[0].is_tensor()) bad("gives a tensor", texts());
    if (!same(call.operands[0], results[0])) bad("keeps element type and shape", texts());
  }
}

Types custom_call_shape_rule(const OpCall& call) {
  Types results = written_results(call);
  bool operand_layouts = call.attrs.has("operand_layouts");
  if (operand_layouts != call.attrs.has("result_layouts"))
    fail(call, "layouts", "layouts stand for both operands and results, or for none",
         operand_layouts ? "result_layouts is absent" : "operand_layouts is absent",
         "Add the other");
  if (operand_layouts) {
    check_layouts(call, "operand_layouts", call.operands, "operand");
    bool one_tuple = results.size() == 1 && results[0].is_tuple();
    check_layouts(call, "result_layouts", one_tuple ? results[0].elements() : results, "result");
  }
  std::int64_t version = call.attrs.i64_or("api_version", 1);
  if (version < 0 || version > 4)
    fail(call, "i5", "api_version must lie in [0, 4]", fmt::format("it is {}", version),
         "Use 4 for typed calls");
  if (const Attr* config = call.attrs.find("backend_config")) {
    bool dict = config->dict() != nullptr;
    if (dict != (version == 4))
      if (dict || !config->get<std::string>() || !config->get<std::string>()->empty())
        fail(call, "i4",
             version == 4
                 ? "backend_config must be a dictionary for api_version 4"
                 : fmt::format("backend_config must be a string for api_version {}", version),
             config->to_string().substr(0, 60), "Change backend_config or api_version");
  }
  check_buffers(call, results);
  check_aliases(call, results);
  for (const Type& t : call.operands)
    if (t.quant() && t.quant()->axis >= t.rank() && t.is_tensor())
      fail(call, "i1", "quantisation dimensions exist", t.to_mlir(), "Correct the type");
  return results;
}

std::vector<HostArray> custom_call_eval(const EvalCall& call) { return evaluate_custom_call(call); }

DimMap opaque_dims(const OpCall& call, std::span<const Type> results) {
  DimMap m;
  auto add = [&](const Type& t) {
    return t.is_tensor() ? add_factors(m, t.dims(), DimMap::FactorKind::kOpaque) : Dims{};
  };
  for (const Type& t : call.operands) m.operands.push_back(add(t));
  for (const Type& t : results) m.results.push_back(add(t));
  return m;
}

// composite --------------------------------------------------------------------------------------

bool is_word(std::string_view s) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  auto other = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '$'; };
  return !s.empty() && std::all_of(s.begin(), s.end(), other);
}

// "dialect.name", perhaps with more parts: a letter first, then letters, digits, '_', '$'.
bool is_namespaced(std::string_view name) {
  std::size_t dot = name.find('.');
  if (dot == std::string_view::npos || dot == 0) return false;
  char first = name[0];
  if (!((first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z'))) return false;
  for (;;) {
    if (!is_word(name.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    name.remove_prefix(dot + 1);
    dot = name.find('.');
  }
}

Types composite_shape_rule(const OpCall& call) {
  std::string name = call.attrs.str_or("name", "");
  if (!is_namespaced(name))
    fail(call, "c1", "the name must be a namespaced op name (\"dialect.op\")",
         fmt::format("it is \"{}\"", name), "Put a namespace in front");
  const SymbolAttr* symbol = call.attrs.at("decomposition").get<SymbolAttr>();
  if (call.regions.empty() || !call.regions[0])
    fail(call, "c2", "the decomposition must be a function of the module",
         fmt::format("@{} is none", symbol ? symbol->name : ""), "Define it");
  Types params = call.regions[0]->param_types();
  Types given(call.operands.begin(), call.operands.end());
  if (params != given)
    fail(call, "c3",
         fmt::format("the operands must be those of the decomposition, {}", types_text(params)),
         fmt::format("they are {}", types_text(given)), "Make them agree");
  Types results = call.regions[0]->result_types();
  if (results != written_results(call))
    fail(call, "c4",
         fmt::format("the results must be those of the decomposition, {}", types_text(results)),
         fmt::format("they are {}", types_text(written_results(call))), "Make them agree");
  return results;
}

std::vector<HostArray> composite_eval(const EvalCall& call) {
  return call.regions.run(*call.op.regions[0], call.operands);
}

std::vector<ValueId> expand_composite(Builder& b, const Op& op, std::span<const ValueId> operands) {
  return b.inline_graph(*op.regions[0], operands);
}

// tuples -----------------------------------------------------------------------------------------

Types tuple_shape_rule(const OpCall& call) {
  return {Type::tuple(Types(call.operands.begin(), call.operands.end()))};
}

// Operands and results stand as their leaves.
std::vector<HostArray> tuple_eval(const EvalCall& call) {
  return {call.operands.begin(), call.operands.end()};
}

Types get_tuple_element_shape_rule(const OpCall& call) {
  const Type& t = call.operands[0];
  if (!t.is_tuple())
    fail(call, "i1", "the operand must be a tuple", "it is " + t.to_string(), "Pass a tuple");
  std::int64_t i = call.attrs.i64("index");
  auto n = static_cast<std::int64_t>(t.elements().size());
  if (i < 0 || i >= n)
    fail(call, "c1", fmt::format("index must lie in [0, {})", n), fmt::format("it is {}", i),
         "Name an element");
  return {t.elements()[static_cast<std::size_t>(i)]};
}

std::vector<HostArray> get_tuple_element_eval(const EvalCall& call) {
  const std::vector<Type>& elements = call.operand_types[0].elements();
  std::size_t first = 0;
  auto i = static_cast<std::size_t>(call.op.attrs.i64("index"));
  for (std::size_t k = 0; k < i; ++k) first += num_leaves(elements[k]);
  auto part = call.operands.subspan(first, num_leaves(elements[i]));
  return {part.begin(), part.end()};
}

}  // namespace

const OpDef kCustomCall = {
    .name = "stablehlo.custom_call",
    .traits = kEffect,
    .max_operands = -1,
    .num_regions = -1,
    .attrs = {{"call_target_name", AttrKind::kString},
              {"has_side_effect", AttrKind::kBool, false},
              {"backend_config", AttrKind::kAny, false},
              {"api_version", AttrKind::kInt, false},
              {"called_computations", AttrKind::kList, false},
              {"operand_layouts", AttrKind::kList, false},
              {"result_layouts", AttrKind::kList, false},
              {"output_operand_aliases", AttrKind::kList, false},
              {"result_types", AttrKind::kList}},
    .shape = custom_call_shape_rule,
    .eval = custom_call_eval,
    .dims = opaque_dims,
    .labels =
        "custom_call_layouts custom_call_aliases custom_call_buffers custom_call_i4 "
        "custom_call_i5 custom_call_result_types"};
const OpDef kComposite = {.name = "stablehlo.composite",
                          .traits = kControlFlow,
                          .max_operands = -1,
                          .num_regions = -1,
                          .attrs = {{"name", AttrKind::kString},
                                    {"composite_attributes", AttrKind::kDict, false},
                                    {"decomposition", AttrKind::kSymbol},
                                    {"version", AttrKind::kInt, false},
                                    {"result_types", AttrKind::kList}},
                          .shape = composite_shape_rule,
                          .eval = composite_eval,
                          .dims = opaque_dims,
                          .labels = "composite_c1 composite_c2 composite_c3 composite_c4",
                          .expand = expand_composite,
                          .result_labels = "c4"};
const OpDef kTuple = {.name = "stablehlo.tuple",
                      .traits = kExact,
                      .max_operands = -1,
                      .shape = tuple_shape_rule,
                      .eval = tuple_eval,
                      .dims = opaque_dims,
                      .labels = "",
                      .result_labels = "c1"};
const OpDef kGetTupleElement = {.name = "stablehlo.get_tuple_element",
                                .traits = kExact,
                                .min_operands = 1,
                                .max_operands = 1,
                                .attrs = {{"index", AttrKind::kInt}},
                                .shape = get_tuple_element_shape_rule,
                                .eval = get_tuple_element_eval,
                                .dims = opaque_dims,
                                .labels = "get_tuple_element_i1 get_tuple_element_c1",
                                .result_labels = "c2"};
Family custom_family() {
  static const OpDef* const kOps[] = {&kCustomCall, &kComposite, &kTuple, &kGetTupleElement};
  return kOps;
}

}  // namespace xylem::ir::ops
