#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/ir/text/element_text.h"
#include "xylem/ir/text/stablehlo_attrs.h"
#include "xylem/ir/text/stablehlo_parser.h"

// The pretty forms of convolution, of calls, and of the check and interpreter dialects.

namespace xylem::ir::text {

// convolution(%x, %k) dim_numbers = […]x[…]->[…], window = {stride = […], pad = [[a, b], …],
//   lhs_dilate = […], rhs_dilate = […], reverse = […]} {…} : (T, U) -> V
void StablehloParser::read_convolution(Scope& scope, ParsedOp& op) {
  c_.expect('(', op.name);
  read_operands(scope, op);
  c_.expect(')', op.name);
  c_.expect_word("dim_numbers", op.name);
  c_.expect('=', op.name);
  op.attrs.set("dimension_numbers", Attr(r_.read_conv_dims()));
  c_.expect(',', op.name);
  c_.expect_word("window", op.name);
  c_.expect('=', op.name);
  c_.expect('{', op.name);
  bool first = true;
  while (!c_.accept('}')) {
    if (!first) c_.expect(',', op.name);
    first = false;
    std::size_t at = c_.token_pos();
    std::string_view key = c_.identifier(op.name);
    c_.expect('=', op.name);
    std::string_view attr = key == "stride"       ? "window_strides"
                            : key == "lhs_dilate" ? "lhs_dilation"
                            : key == "rhs_dilate" ? "rhs_dilation"
                            : key == "reverse"    ? "window_reversal"
                            : key == "pad"        ? "padding"
                                                  : "";
    if (attr.empty() || op.attrs.has(attr))
      c_.fail(at, op.name, "the window has stride, pad, lhs_dilate, rhs_dilate, reverse, each once",
              fmt::format("found '{}'", key), "Use one of them");
    if (key == "pad") {
      std::vector<std::int64_t> values;
      c_.expect('[', op.name);
      while (!c_.accept(']')) {
        if (!values.empty()) c_.expect(',', op.name);
        std::size_t pair_at = c_.token_pos();
        Dims pair = r_.read_int_list();
        if (pair.size() != 2)
          c_.fail(pair_at, op.name, "a padding is [low, high]",
                  fmt::format("it has {} entries", pair.size()), "Write two numbers");
        values.push_back(pair[0]);
        values.push_back(pair[1]);
      }
      auto n = static_cast<std::int64_t>(values.size() / 2);
      op.attrs.set(attr, HostArray::from(values, {n, 2}));
    } else if (key == "reverse") {
      Dims flags;
      c_.expect('[', op.name);
      while (!c_.accept(']')) {
        if (!flags.empty()) c_.expect(',', op.name);
        if (c_.accept_word("true")) {
          flags.push_back(1);
        } else if (c_.accept_word("false")) {
          flags.push_back(0);
        } else {
          flags.push_back(c_.integer(op.name) != 0);
        }
      }
      op.attrs.set(attr, std::move(flags));
    } else {
      op.attrs.set(attr, r_.read_int_list());
    }
  }
  read_optional_attrs(op);
  read_function_type(op);
}

// custom_call @target(%a) {…} : (T) -> U
void StablehloParser::read_custom_call(Scope& scope, ParsedOp& op) {
  op.attrs.set("call_target_name", r_.read_symbol());
  c_.expect('(', op.name);
  read_operands(scope, op);
  c_.expect(')', op.name);
  read_optional_attrs(op);
  read_types(scope, op);
}

// composite "dialect.name" %a, %b ({ … }) {…} : (T, U) -> V
void StablehloParser::read_composite(Scope& scope, ParsedOp& op) {
  op.attrs.set("name", c_.string(op.name));
  read_operands(scope, op);
  if (c_.accept('(')) {
    do op.regions.push_back(read_region(scope));
    while (c_.accept(','));
    c_.expect(')', op.name);
  }
  read_optional_attrs(op);
  read_types(scope, op);
}

// get_tuple_element %t[1] : (tuple<T, U>) -> U
void StablehloParser::read_get_tuple_element(Scope& scope, ParsedOp& op) {
  read_operand(scope, op);
  c_.expect('[', op.name);
  op.attrs.set("index", c_.integer(op.name));
  c_.expect(']', op.name);
  read_optional_attrs(op);
  read_types(scope, op);
}

// chlo.scan(%x) inits(%c) dimension=0 attributes {…} { ^bb0(…): … } : (T, U) -> (V, U)
void StablehloParser::read_scan(Scope& scope, ParsedOp& op) {
  c_.expect('(', op.name);
  read_operands(scope, op);
  c_.expect(')', op.name);
  auto inputs = static_cast<std::int64_t>(op.operands.size());
  c_.expect_word("inits", op.name);
  c_.expect('(', op.name);
  read_operands(scope, op);
  c_.expect(')', op.name);
  auto carries = static_cast<std::int64_t>(op.operands.size()) - inputs;
  c_.expect_word("dimension", op.name);
  c_.expect('=', op.name);
  op.attrs.set("dimension", c_.integer(op.name));
  if (c_.accept_word("attributes")) read_optional_attrs(op);
  op.regions.push_back(read_region(scope));
  read_function_type(op);
  op.attrs.set("operandSegmentSizes", Dims{inputs, carries});
  op.attrs.set("resultSegmentSizes",
               Dims{static_cast<std::int64_t>(op.result_types.size()) - carries, carries});
}

// check.expect_close %a, %b, max_ulp_difference = 3 : T, T
// check.expect_eq_const %a, dense<…> : T
// interpreter.probe %a, probe_id = "p" : T
void StablehloParser::read_check(Scope& scope, ParsedOp& op) {
  std::size_t name_at = c_.token_pos() + 1;
  read_operands(scope, op);
  if (op.name == "interpreter.print" && !op.operand_pos.empty()) {
    c_.seek(name_at);
    op.attrs.set("name", std::string(c_.suffix_name(op.name)));
  }
  auto clauses = [&] {
    while (c_.accept(',')) {
      if (c_.looking_at("dense<") || c_.looking_at("dense_resource<")) {
        HostArray value = r_.read_dense();
        op.operand_types = {Type::tensor(value.dtype(), value.dims())};
        op.attrs.set("value", std::move(value));
        continue;
      }
      std::size_t at = c_.token_pos();
      std::string_view key = c_.identifier(op.name);
      if (op.attrs.has(key))
        c_.fail(at, op.name, "every clause stands once", fmt::format("'{}' is repeated", key),
                "Remove one of them");
      c_.expect('=', op.name);
      if (key.ends_with("ulp_difference")) {
        // Unsigned: the greatest distance does not fit a signed number.
        std::size_t number_at = c_.token_pos();
        std::uint64_t value = 0;
        if (parse_element(c_.number(op.name), DType::kU64, reinterpret_cast<std::byte*>(&value)) !=
            NumberError::kNone)
          c_.fail(number_at, op.name, "the bound is a number of 64 bits", c_.found(number_at),
                  "Write one");
        op.attrs.set(key, static_cast<std::int64_t>(value));
      } else {
        // By hand: what follows a value's colon is the operands' type.
        std::size_t value_at = c_.token_pos();
        double real = 0;
        if (c_.peek() == '"') {
          op.attrs.set(key, c_.string(op.name));
        } else if (key == "tolerance") {
          if (parse_double(c_.number(op.name), real) != NumberError::kNone)
            c_.fail(value_at, op.name, "the tolerance is a number", c_.found(value_at),
                    "Write one");
          op.attrs.set(key, real);
        } else {
          op.attrs.set(key, c_.integer(op.name));
        }
      }
    }
  };
  clauses();
  read_optional_attrs(op);
  if (op.operand_types.empty()) {
    c_.expect(':', op.name);
    std::size_t at = c_.token_pos();
    std::vector<Type> types = r_.read_type_list();
    if (types.size() == 1) {
      op.operand_types.assign(op.operands.size(), types[0]);
    } else if (types.size() == op.operands.size()) {
      op.operand_types = types;
    } else {
      c_.fail(at, op.name, "there is one type, or one for each operand",
              fmt::format("found {}", types.size()), "Write them");
    }
    if (op.name == "interpreter.probe") op.result_types = {types[0]};
  }
  clauses();
  if (c_.peek() == '{') read_optional_attrs(op);
}

}  // namespace xylem::ir::text
