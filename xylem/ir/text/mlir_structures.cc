#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string>

#include "xylem/base/error.h"
#include "xylem/ir/text/element_text.h"
#include "xylem/ir/text/mlir_reader.h"

// StableHLO's structures and enumerations as attributes ("#stablehlo.gather<…>"), checked where
// they stand, whatever they belong to.

namespace xylem::ir::text {
namespace {

enum class Kind { kDims, kInt, kFloat, kBool, kType, kMode };

struct Field {
  std::string_view name;
  Kind kind = Kind::kDims;
};

struct Schema {
  std::string_view mnemonic;
  bool all = false;  // every field must be there
  std::array<Field, 7> fields = {};
};

constexpr Schema kSchemas[] = {
    {"gather",
     false,
     {{{"offset_dims"},
       {"collapsed_slice_dims"},
       {"operand_batching_dims"},
       {"start_indices_batching_dims"},
       {"start_index_map"},
       {"index_vector_dim", Kind::kInt}}}},
    {"scatter",
     false,
     {{{"update_window_dims"},
       {"inserted_window_dims"},
       {"input_batching_dims"},
       {"scatter_indices_batching_dims"},
       {"scatter_dims_to_operand_dims"},
       {"index_vector_dim", Kind::kInt}}}},
    {"dot",
     false,
     {{{"lhs_batching_dimensions"},
       {"rhs_batching_dimensions"},
       {"lhs_contracting_dimensions"},
       {"rhs_contracting_dimensions"}}}},
    {"channel_handle", true, {{{"handle", Kind::kInt}, {"type", Kind::kInt}}}},
    {"output_operand_alias",
     true,
     {{{"output_tuple_indices"}, {"operand_index", Kind::kInt}, {"operand_tuple_indices"}}}},
    {"dot_algorithm",
     true,
     {{{"lhs_precision_type", Kind::kType},
       {"rhs_precision_type", Kind::kType},
       {"accumulation_type", Kind::kType},
       {"lhs_component_count", Kind::kInt},
       {"rhs_component_count", Kind::kInt},
       {"num_primitive_operations", Kind::kInt},
       {"allow_imprecise_accumulation", Kind::kBool}}}},
    {"result_accuracy",
     false,
     {{{"atol", Kind::kFloat},
       {"rtol", Kind::kFloat},
       {"ulps", Kind::kInt},
       {"mode", Kind::kMode}}}},
};

struct Members {
  std::string_view mnemonic, values;
};
constexpr Members kEnumerations[] = {
    {"comparison_direction", "EQ NE GE GT LE LT"},
    {"comparison_type", "NOTYPE FLOAT TOTALORDER SIGNED UNSIGNED"},
    {"precision", "DEFAULT HIGH HIGHEST"},
    {"transpose", "TRANSPOSE_INVALID NO_TRANSPOSE TRANSPOSE ADJOINT"},
    {"fft_type", "FFT IFFT RFFT IRFFT"},
    {"rng_algorithm", "DEFAULT THREE_FRY PHILOX"},
    {"rng_distribution", "UNIFORM NORMAL"},
    {"result_accuracy_mode", "DEFAULT HIGHEST TOLERANCE"},
};

bool has_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    std::size_t blank = std::min(words.find(' '), words.size());
    if (words.substr(0, blank) == word) return true;
    words.remove_prefix(std::min(blank + 1, words.size()));
  }
  return false;
}

// What is read of a structure whose values are checked against each other.
struct Values {
  std::string_view types[3];
  std::int64_t counts[3] = {1, 1, 1};
  bool imprecise = false;
  double tolerances[2] = {0, 0};
  std::int64_t ulps = 0;
  std::string_view mode;
};

// Precisions that some hardware computes: one component a side, so many products.
bool is_known_algorithm(const Values& v) {
  struct Known {
    std::string_view types[3];
    std::int64_t products;
  };
  static constexpr Known kKnown[] = {
      {{"f16", "f16", "f16"}, 1},   {{"f16", "f16", "f32"}, 1},   {{"bf16", "bf16", "bf16"}, 1},
      {{"bf16", "bf16", "f32"}, 1}, {{"bf16", "bf16", "f32"}, 3}, {{"bf16", "bf16", "f32"}, 6},
      {{"bf16", "bf16", "f32"}, 9}, {{"tf32", "tf32", "f32"}, 1}, {{"tf32", "tf32", "f32"}, 3},
      {{"f32", "f32", "f32"}, 1},   {{"f64", "f64", "f64"}, 1},
  };
  constexpr std::string_view kF8 =
      "f8E3M4 f8E4M3 f8E4M3FN f8E5M2 f8E4M3FNUZ f8E4M3B11FNUZ f8E5M2FNUZ";
  if (v.counts[0] != 1 || v.counts[1] != 1) return false;
  if (has_word(kF8, v.types[0]) && has_word(kF8, v.types[1]) && v.types[2] == "f32" &&
      v.counts[2] == 1)
    return true;
  if (v.imprecise) return false;
  return std::any_of(std::begin(kKnown), std::end(kKnown), [&](const Known& k) {
    return std::equal(std::begin(k.types), std::end(k.types), std::begin(v.types)) &&
           k.products == v.counts[2];
  });
}

void check_algorithm(const Cursor& c, const Values& v, std::size_t at) {
  static constexpr std::string_view kCounts[][2] = {
      {"lhs_component_count", "dot_general_c22"},
      {"rhs_component_count", "dot_general_c23"},
      {"num_primitive_operations", "dot_general_c24"}};
  for (int i = 0; i < 3; ++i)
    if (v.counts[i] < 1)
      c.fail_labelled(kCounts[i][1], at, "dot_algorithm",
                      fmt::format("{} is positive", kCounts[i][0]),
                      fmt::format("it is {}", v.counts[i]), "Count from 1");
  if (!is_known_algorithm(v))
    c.fail_labelled("dot_general_i8", at, "dot_algorithm", "some hardware has the algorithm",
                    fmt::format("{} and {} with {} components, {} products in {}{}", v.types[0],
                                v.types[1], fmt::format("{} and {}", v.counts[0], v.counts[1]),
                                v.counts[2], v.types[2], v.imprecise ? ", imprecise" : ""),
                    "Use a known one, such as bf16, bf16 and f32 with 1, 3, 6 or 9 products");
}

void check_accuracy(const Cursor& c, const Values& v, std::size_t at) {
  if (v.tolerances[0] < 0 || v.tolerances[1] < 0 || v.ulps < 0)
    c.fail(at, "result_accuracy", "tolerances are not negative",
           fmt::format("atol {}, rtol {}, ulps {}", v.tolerances[0], v.tolerances[1], v.ulps),
           "Use 0 or more");
  bool zero = v.tolerances[0] == 0 && v.tolerances[1] == 0 && v.ulps == 0;
  if (!zero && (v.mode == "DEFAULT" || v.mode == "HIGHEST"))
    c.fail(at, "result_accuracy", fmt::format("mode {} has no tolerances", v.mode),
           fmt::format("atol {}, rtol {}, ulps {}", v.tolerances[0], v.tolerances[1], v.ulps),
           "Use mode TOLERANCE, or leave them out");
}

}  // namespace

void MlirReader::check_stablehlo_attr(std::size_t at, std::string_view name) {
  constexpr std::string_view kDialect = "stablehlo";
  if (!name.starts_with(kDialect) || c_.raw() != '<') return;
  const std::size_t back = c_.pos();
  std::string_view mnemonic = name.substr(kDialect.size());
  if (mnemonic.empty()) {  // "#stablehlo<precision HIGH>"
    c_.step();
    c_.skip();
    if (!is_identifier_start(c_.raw())) return c_.seek(back);
    mnemonic = c_.identifier("attribute");
  } else {
    mnemonic.remove_prefix(1);
    c_.step();
  }
  for (const Members& e : kEnumerations) {
    if (e.mnemonic != mnemonic) continue;
    std::size_t value_at = c_.token_pos();
    std::string_view value = c_.identifier(mnemonic);
    if (!has_word(e.values, value))
      c_.fail(value_at, mnemonic, fmt::format("its members are {}", e.values),
              fmt::format("found {}", value), "Use one of them");
    c_.expect('>', mnemonic);
  }
  if (mnemonic == "conv" && name.size() > kDialect.size()) {
    if (c_.accept_word("raw")) return c_.seek(back);
    read_conv_dims();
    c_.expect('>', mnemonic);
  } else if (name.size() > kDialect.size()) {
    c_.seek(back);
    check_structure(mnemonic, at);
  }
  c_.seek(back);
}

void MlirReader::check_structure(std::string_view mnemonic, std::size_t at) {
  const Schema* schema = std::find_if(std::begin(kSchemas), std::end(kSchemas),
                                      [&](const Schema& s) { return s.mnemonic == mnemonic; });
  c_.expect('<', mnemonic);
  if (schema == std::end(kSchemas)) {
    c_.balanced('<', '>', mnemonic);
    return;
  }
  Values values;
  bool seen[std::tuple_size_v<decltype(Schema::fields)>] = {};
  bool first = true;
  while (!c_.accept('>')) {
    if (!first) {
      c_.expect(',', mnemonic);
      if (c_.accept('>')) break;  // a comma may stand behind the last field, too
    }
    first = false;
    std::size_t field_at = c_.token_pos();
    std::string_view name = c_.identifier(mnemonic);
    std::size_t i = 0;
    while (i < schema->fields.size() && schema->fields[i].name != name) ++i;
    if (i == schema->fields.size()) {
      std::string known;
      for (const Field& f : schema->fields)
        if (!f.name.empty()) known += (known.empty() ? "" : ", ") + std::string(f.name);
      c_.fail(field_at, mnemonic, fmt::format("its fields are {}", known),
              fmt::format("found '{}'", name), "Use one of them");
    }
    if (seen[i])
      c_.fail(field_at, mnemonic, "every field stands once", fmt::format("'{}' is repeated", name),
              "Remove one of them");
    seen[i] = true;
    c_.expect('=', mnemonic);
    switch (schema->fields[i].kind) {
      case Kind::kDims: read_int_list(); break;
      case Kind::kInt: {
        std::int64_t v = c_.integer(mnemonic);
        if (mnemonic == "dot_algorithm") values.counts[i - 3] = v;
        if (mnemonic == "result_accuracy") values.ulps = v;
        break;
      }
      case Kind::kFloat: {
        std::string_view number = c_.number(mnemonic);
        if (number.find_first_of(".eEx") == std::string_view::npos ||
            parse_double(number, values.tolerances[i]) != NumberError::kNone)
          c_.fail(field_at, mnemonic, "tolerances are floats with a point",
                  fmt::format("found '{}'", number), "Write it like 1.0e-6");
        break;
      }
      case Kind::kBool:
        if (!(values.imprecise = c_.accept_word("true")) && !c_.accept_word("false"))
          c_.fail_here(mnemonic, "expected true or false", "Write one of them");
        break;
      case Kind::kType: values.types[i] = c_.identifier(mnemonic); break;
      case Kind::kMode: {
        std::size_t mode_at = c_.token_pos();
        if (c_.accept("#stablehlo.result_accuracy_mode<")) {
          values.mode = c_.identifier(mnemonic);
          c_.expect('>', mnemonic);
        } else if (c_.accept('<')) {
          values.mode = c_.identifier(mnemonic);
          c_.expect('>', mnemonic);
        } else if (c_.peek() == '#') {
          read_attr(Mode::kForeign);
        } else {
          values.mode = c_.identifier(mnemonic);
        }
        if (!values.mode.empty() && !has_word("DEFAULT HIGHEST TOLERANCE", values.mode))
          c_.fail(mode_at, mnemonic, "modes are DEFAULT, HIGHEST and TOLERANCE",
                  fmt::format("found {}", values.mode), "Use one of them");
        break;
      }
    }
  }
  for (std::size_t i = 0; schema->all && i < schema->fields.size(); ++i) {
    if (schema->fields[i].name.empty() || seen[i]) continue;
    std::string expected = fmt::format("field '{}' is required", schema->fields[i].name);
    if (mnemonic != "dot_algorithm") c_.fail(at, mnemonic, expected, "it is absent", "Add it");
    c_.fail_labelled(fmt::format("dot_general_i{}", 8 + i), at, mnemonic, expected, "it is absent",
                     "Add it");
  }
  if (mnemonic == "dot_algorithm") check_algorithm(c_, values, at);
  if (mnemonic == "result_accuracy") check_accuracy(c_, values, at);
}

}  // namespace xylem::ir::text
