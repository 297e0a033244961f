#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/ir/text/stablehlo_parser.h"

// The pretty forms of ops with regions.

namespace xylem::ir::text {

// reduce(%x init: %c), (%y init: %d) applies stablehlo.add across dimensions = [1] : … -> …
// reduce(%x init: %c) across dimensions = [1] : … -> …
//  reducer(%a: T, %b: T) { … }
void StablehloParser::read_reduce(Scope& scope, ParsedOp& op) {
  std::vector<ValueId> inits;
  std::vector<std::size_t> init_pos;
  do {
    c_.expect('(', op.name);
    read_operand(scope, op);
    c_.expect_word("init", op.name);
    c_.expect(':', op.name);
    init_pos.push_back(c_.token_pos());
    inits.push_back(read_use(scope));
    c_.expect(')', op.name);
  } while (c_.accept(','));
  std::size_t inputs = op.operands.size();
  op.operands.insert(op.operands.end(), inits.begin(), inits.end());
  op.operand_pos.insert(op.operand_pos.end(), init_pos.begin(), init_pos.end());
  std::string_view applied;
  std::size_t applied_at = 0;
  if (c_.accept_word("applies")) {
    applied_at = c_.token_pos();
    applied = c_.identifier(op.name);
  }
  c_.expect_word("across", op.name);
  c_.expect_word("dimensions", op.name);
  c_.expect('=', op.name);
  op.attrs.set("dimensions", r_.read_int_list());
  read_optional_attrs(op);
  read_function_type(op);
  if (applied.empty()) {
    read_reducer(scope, op, inputs);
  } else {
    read_compact_reducer(scope, op, applied, applied_at);
  }
}

// reducer(%a: T, %e: T) (%b: U, %f: U) { … }: pairs of accumulator and element.
void StablehloParser::read_reducer(Scope& scope, ParsedOp& op, std::size_t inputs) {
  c_.expect_word("reducer", op.name);
  std::unique_ptr<Scope> region = new_region(scope);
  struct Arg {
    std::string_view name;
    std::size_t pos = 0;
    Type type;
    Location loc;
  };
  std::vector<Arg> args(2 * inputs);
  bool located = false;
  auto read = [&](Arg& arg) {
    arg.pos = c_.token_pos();
    c_.expect('%', op.name);
    arg.name = c_.suffix_name(op.name);
    c_.expect(':', op.name);
    arg.type = r_.read_type();
    located = r_.accept_location(arg.loc) || located;
  };
  for (std::size_t i = 0; i < inputs; ++i) {
    c_.expect('(', op.name);
    read(args[i]);
    c_.expect(',', op.name);
    read(args[inputs + i]);
    c_.expect(')', op.name);
  }
  // In the region all accumulators come first.
  for (Arg& arg : args)
    define(*region, arg.name, arg.pos, {region->add_param(std::move(arg.type)), 1});
  if (located)
    for (Arg& arg : args) region->locations().params.push_back(arg.loc);
  c_.expect('{', op.name);
  read_block(*region);
  c_.expect('}', op.name);
  op.regions.push_back(std::move(region));
}

void StablehloParser::read_compact_reducer(Scope& scope, ParsedOp& op, std::string_view name,
                                           std::size_t at) {
  std::unique_ptr<Scope> region = new_region(scope);
  ParsedOp body;
  body.pos = at;
  body.name = name;
  body.def = find_op(name);
  body.loc = op.loc;
  if (!body.def || !body.def->is(kCommutative) || body.def->max_operands != 2)
    c_.fail(at, op.name, "the applied op is commutative and takes two operands",
            fmt::format("'{}' does not", name), "Write the reducer as a region");
  if (op.operands.size() != 2)
    c_.fail(at, op.name, "the compact form has one input",
            fmt::format("found {}", op.operands.size() / 2), "Write the reducer as a region");
  Type t = Type::tensor(scope.graph->type(op.operands[0]).dtype());
  for (int i = 0; i < 2; ++i) body.operands.push_back(region->add_param(t));
  body.operand_pos = {at, at};
  body.operand_types = {t, t};
  body.result_types = {t};
  finish_op(*region, body, {});
  region->graph->results = {static_cast<ValueId>(region->graph->values.size() - 1)};
  op.regions.push_back(std::move(region));
}

// while(%a = %x, %b = %y) : T, U attributes {…} cond { … } do { … }
void StablehloParser::read_while(Scope& scope, ParsedOp& op) {
  struct Arg {
    std::string_view name;
    std::size_t pos;
  };
  std::vector<Arg> args;
  c_.expect('(', op.name);
  while (!c_.accept(')')) {
    if (!args.empty()) c_.expect(',', op.name);
    std::size_t at = c_.token_pos();
    c_.expect('%', op.name);
    args.push_back({c_.suffix_name(op.name), at});
    c_.expect('=', op.name);
    read_operand(scope, op);
  }
  if (c_.accept(':')) {
    op.operand_types = r_.read_type_list();
    op.result_types = op.operand_types;
  }
  if (op.operand_types.size() != args.size())
    c_.fail(op.pos, op.name, fmt::format("the {} carried values have types", args.size()),
            fmt::format("found {}", op.operand_types.size()), "Write one for each");
  if (c_.accept_word("attributes")) read_optional_attrs(op);
  for (const char* part : {"cond", "do"}) {
    c_.expect_word(part, op.name);
    c_.expect('{', op.name);
    std::unique_ptr<Scope> region = new_region(scope);
    for (std::size_t i = 0; i < args.size(); ++i)
      define(*region, args[i].name, args[i].pos, {region->add_param(op.operand_types[i]), 1});
    read_block(*region);
    c_.expect('}', op.name);
    op.regions.push_back(std::move(region));
  }
}

}  // namespace xylem::ir::text
