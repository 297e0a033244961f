#include <fmt/format.h>

#include <variant>

#include "xylem/ir/bytecode/enums.h"
#include "xylem/ir/bytecode/value_reader.h"
#include "xylem/ir/text/stablehlo_attrs.h"

// Structures of StableHLO ("#stablehlo.gather<…>"): as VHLO and as StableHLO's own bytecode have
// them.

namespace xylem::ir::bytecode {
namespace {

constexpr const char* kDamaged = "The file is damaged: write it again";

std::string list_text(const Dims& d) {
  std::string s = "[";
  for (std::size_t i = 0; i < d.size(); ++i) s += fmt::format("{}{}", i ? ", " : "", d[i]);
  return s + "]";
}

// A double as MLIR prints it in a structure.
std::string double_text(double v) {
  std::string s;
  text::append_mlir_attr(s, Attr(v));
  return s.substr(0, s.find(' '));
}

struct Field {
  std::string_view name;
  bool list = false;
};

struct Layout {
  std::uint64_t code;
  std::string_view mnemonic;
  bool keeps_zeros;  // fields of value 0 are written
  std::vector<Field> fields;
};

// Signed varints and lists of them, in the order of StableHLO's bytecode.
const std::vector<Layout>& layouts() {
  static const auto* kLayouts = new std::vector<Layout>{
      {1, "channel_handle", true, {{"handle"}, {"type"}}},
      {4,
       "conv",
       true,
       {{"input_batch_dimension"},
        {"input_feature_dimension"},
        {"input_spatial_dimensions", true},
        {"kernel_input_feature_dimension"},
        {"kernel_output_feature_dimension"},
        {"kernel_spatial_dimensions", true},
        {"output_batch_dimension"},
        {"output_feature_dimension"},
        {"output_spatial_dimensions", true}}},
      {5,
       "dot",
       false,
       {{"lhs_batching_dimensions", true},
        {"rhs_batching_dimensions", true},
        {"lhs_contracting_dimensions", true},
        {"rhs_contracting_dimensions", true}}},
      {7,
       "gather",
       false,
       {{"offset_dims", true},
        {"collapsed_slice_dims", true},
        {"operand_batching_dims", true},
        {"start_indices_batching_dims", true},
        {"start_index_map", true},
        {"index_vector_dim"}}},
      {11,
       "scatter",
       false,
       {{"update_window_dims", true},
        {"inserted_window_dims", true},
        {"input_batching_dims", true},
        {"scatter_indices_batching_dims", true},
        {"scatter_dims_to_operand_dims", true},
        {"index_vector_dim"}}},
  };
  return *kLayouts;
}

}  // namespace

Attr ValueReader::read_alias(ByteCursor& c, Mode mode) {
  std::size_t at = c.pos();
  Dims output = read_dims(c);
  std::int64_t operand = c.signed_varint("operand index");
  return from_text(fmt::format("#stablehlo.output_operand_alias<output_tuple_indices = {}, "
                               "operand_index = {}, operand_tuple_indices = {}>",
                               list_text(output), operand, list_text(read_dims(c))),
                   mode, at);
}

Attr ValueReader::read_accuracy(ByteCursor& c, Mode mode) {
  std::size_t at = c.pos();
  double atol = read_double(c), rtol = read_double(c);
  std::int64_t ulps = c.signed_varint("ulps");
  std::size_t mode_at = c.pos();
  const EnumAttr* m = attr(attr_ref(c), Mode::kInherent).get<EnumAttr>();
  if (!m) source_.fail(mode_at, "result_accuracy", "a mode", "another attribute", kDamaged);
  std::string s = "#stablehlo.result_accuracy<";
  if (atol != 0) s += fmt::format("atol = {}, ", double_text(atol));
  if (rtol != 0) s += fmt::format("rtol = {}, ", double_text(rtol));
  if (ulps != 0) s += fmt::format("ulps = {}, ", ulps);
  s += fmt::format("mode = #stablehlo.result_accuracy_mode<{}>>", m->value);
  return from_text(s, mode, at);
}

Attr ValueReader::read_stablehlo(std::size_t index, ByteCursor& c, Mode mode) {
  std::size_t at = c.pos();
  std::uint64_t code = c.varint("attribute");
  if (const Enumeration* e = enumeration_of_stablehlo(code)) return read_enum(c, *e, mode);
  for (const Layout& layout : layouts()) {
    if (layout.code != code) continue;
    Attrs fields;
    std::string s;
    for (const Field& f : layout.fields) {
      std::int64_t number = 0;
      Dims list;
      if (f.list) {
        list = read_dims(c);
        fields.set(f.name, list);
      } else {
        number = c.signed_varint("field");
        fields.set(f.name, number);
      }
      if (!layout.keeps_zeros && number == 0 && list.empty()) continue;
      s += fmt::format("{}{} = {}", s.empty() ? "" : ", ", f.name,
                       f.list ? list_text(list) : fmt::format("{}", number));
    }
    if (mode == Mode::kInherent) return fields;
    return OpaqueAttr{fmt::format("#stablehlo.{}<{}{}>", layout.mnemonic,
                                  layout.mnemonic == "conv" ? "raw " : "", s)};
  }
  switch (code) {
    case 14: return read_alias(c, mode);
    case 15: {
      std::string types[3];
      for (std::string& t : types) text::append_mlir_attr(t, type_attr(file_type(type_ref(c))));
      std::int64_t counts[3];
      for (std::int64_t& n : counts) n = c.signed_varint("dot algorithm");
      bool imprecise = c.byte("dot algorithm") != 0;
      return from_text(
          fmt::format("#stablehlo.dot_algorithm<lhs_precision_type = {}, rhs_precision_type = {}, "
                      "accumulation_type = {}, lhs_component_count = {}, rhs_component_count = {}, "
                      "num_primitive_operations = {}, allow_imprecise_accumulation = {}>",
                      types[0], types[1], types[2], counts[0], counts[1], counts[2], imprecise),
          Mode::kForeign, at);
    }
    case 17: return read_accuracy(c, mode);
    case 13:
    case 18:
    case 19:
    case 20:
    case 21:
    case 22: {
      c.bytes("attribute", c.remaining());
      return from_text(mesh_text(index), mode, at);
    }
    default: break;
  }
  source_.fail(at, "attribute", "a code of StableHLO's attributes", fmt::format("code {}", code),
               "The file is newer than StableHLO 1.20, or damaged");
}

}  // namespace xylem::ir::bytecode
