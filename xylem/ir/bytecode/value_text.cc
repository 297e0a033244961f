#include <fmt/format.h>

#include "xylem/ir/bytecode/value_reader.h"
#include "xylem/ir/text/cursor.h"
#include "xylem/ir/text/stablehlo_attrs.h"

// Attributes that are kept as text: Shardy's, and StableHLO's of meshes. The texts are the ones
// that their printers give.

namespace xylem::ir::bytecode {
namespace {

constexpr const char* kDamaged = "The file is damaged: write it again";
constexpr std::size_t kMaxText = 1 << 20;

std::string quoted(std::string_view s) {
  std::string out;
  text::append_quoted(out, s);
  return out;
}

std::string integers(const Dims& d) {
  std::string s;
  for (std::size_t i = 0; i < d.size(); ++i) s += fmt::format("{}{}", i ? ", " : "", d[i]);
  return s;
}

// "i" to "z", then "z_1", "z_2", …
std::string factor_name(std::int64_t i) {
  if (i >= 0 && i < 18) return std::string(1, static_cast<char>('i' + i));
  return fmt::format("z_{}", i - 17);
}

}  // namespace

std::string ValueReader::symbol_text(std::size_t index) {
  const Attr& a = attr(index, Mode::kForeign);
  std::string s;
  if (const std::string* name = a.get<std::string>()) {  // VHLO's form of a symbol
    text::append_symbol(s, *name);
  } else {
    text::append_mlir_attr(s, a);
  }
  return s;
}

// A list of attributes between brackets.
std::string ValueReader::sdy_parts(ByteCursor& c, const char* open, const char* close) {
  std::string s = open;
  std::size_t n = c.count("list");
  for (std::size_t i = 0; i < n; ++i) {
    if (i) s += ", ";
    s += sdy_text(attr_ref(c), true);
    // Parts that refer to one another may multiply.
    if (s.size() > kMaxText)
      c.fail("attribute", fmt::format("its text has at most {} characters", kMaxText),
             "this one is longer", kDamaged);
  }
  return s + close;
}

// ([i, k], [k, j])
std::string ValueReader::sdy_mappings(ByteCursor& c) {
  std::string s = "(";
  std::size_t n = c.count("mappings");
  for (std::size_t i = 0; i < n; ++i) {
    if (i) s += ", ";
    s += sdy_text(attr_ref(c), true);
    if (s.size() > kMaxText)
      c.fail("attribute", fmt::format("its text has at most {} characters", kMaxText),
             "this one is longer", kDamaged);
  }
  return s + ")";
}

// ([i, k], [k, j])->([i, j]) {i=8, j=16, k=8} reduction={k}, custom
std::string ValueReader::sdy_rule(ByteCursor& c) {
  Dims sizes = read_dims(c);
  std::string s = sdy_mappings(c);
  s += "->" + sdy_mappings(c) + " {";
  for (std::size_t i = 0; i < sizes.size(); ++i)
    s += fmt::format("{}{}={}", i ? ", " : "", factor_name(static_cast<std::int64_t>(i)), sizes[i]);
  s += '}';
  for (const char* key : {"reduction", "need_replication", "permutation", "blocked_propagation"}) {
    Dims factors = read_dims(c);
    if (factors.empty()) continue;
    s += fmt::format(" {}={{", key);
    for (std::size_t i = 0; i < factors.size(); ++i) s += (i ? ", " : "") + factor_name(factors[i]);
    s += '}';
  }
  if (c.byte("sharding rule") != 0) s += ", custom";
  return s;
}

std::string ValueReader::sdy_text(std::size_t index, bool nested) {
  const Entry& e = frame_.attrs[index];
  std::size_t at = e.part.begin;
  ByteCursor c(source_, at, e.part.end);
  Nesting nesting(*this, at);
  if (e.dialect != Dialect::kSdy || !e.custom) return symbol_text(index);
  auto named = [&](const char* name, const std::string& body) {
    return nested ? body : fmt::format("#sdy.{}{}", name, body);
  };
  // Attributes whose text has no angle brackets of its own.
  auto wrapped = [&](const char* name, const std::string& body) {
    return nested ? body : fmt::format("#sdy<{}{}>", name, body);
  };
  std::uint64_t code = c.varint("attribute");
  switch (code) {
    case 0: {
      std::string s = "{";
      std::size_t n = c.count("axes");
      for (std::size_t i = 0; i < n; ++i) (s += i ? ", " : "") += quoted(string_attr(c));
      s += '}';
      return nested ? s : fmt::format("#sdy<manual_axes{}>", s);
    }
    case 1: {
      std::string s = quoted(string(c));
      return named("mesh_axis", fmt::format("{}={}", s, c.signed_varint("axis size")));
    }
    case 2: {
      std::string s = sdy_parts(c, "<[", "]");
      Dims devices = read_dims(c);
      if (!devices.empty()) s += fmt::format(", device_ids=[{}]", integers(devices));
      return named("mesh", s + ">");
    }
    case 3: {
      std::int64_t before = c.signed_varint("sub-axis");
      return fmt::format("({}){}", before, c.signed_varint("sub-axis"));
    }
    case 4: {
      std::string s = quoted(string(c));
      std::uint64_t sub = c.varint("sub-axis");
      if (sub) {
        if (!(sub & 1) || sub >> 1 >= num_attrs())
          source_.fail(at, "axis", "an attribute", fmt::format("number {}", sub), kDamaged);
        s += ":" + sdy_text(static_cast<std::size_t>(sub >> 1), true);
      }
      return s;
    }
    case 5: {
      std::string s = sdy_parts(c, "{", "");
      bool closed = c.byte("dimension sharding") != 0;
      std::uint64_t priority = c.varint("priority");
      if (!closed) s += s.size() > 1 ? ", ?" : "?";
      s += '}';
      if (priority & 1) s += fmt::format("p{}", priority >> 1);
      return s;
    }
    case 6:
    case 15:
    case 17: {
      std::string s = "<" + sdy_text(attr_ref(c), true);
      s += sdy_parts(c, ", [", "]");
      std::string replicated = sdy_parts(c, "{", "}");
      if (replicated != "{}") s += ", replicated=" + replicated;
      std::string unreduced = code == 6 ? "{}" : sdy_parts(c, "{", "}");
      std::int64_t reduction = code == 17 ? c.signed_varint("reduction") : 0;
      static constexpr const char* kReductions[] = {"", "max", "min"};
      const char* kind = "";
      if (reduction != 0) {
        if (reduction < 0 || reduction > 2)
          source_.fail(at, "sharding", "a reduction that Shardy knows",
                       fmt::format("number {}", reduction), kDamaged);
        kind = kReductions[reduction];
      }
      if (unreduced != "{}") s += fmt::format(", unreduced={}{}", kind, unreduced);
      return named("sharding", s + ">");
    }
    case 7:
    case 16: return named("sharding_per_value", sdy_parts(c, "<[", "]>"));
    case 8: {
      Dims factors = read_dims(c);
      std::string s;
      for (std::int64_t f : factors) s += factor_name(f);
      return s;
    }
    case 9: return sdy_parts(c, "[", "]");
    case 10: return named("op_sharding_rule", "<" + sdy_rule(c) + ">");
    case 11: return wrapped("axis_ref_list", sdy_parts(c, "{", "}"));
    case 12: return wrapped("list_of_axis_ref_lists", sdy_parts(c, "[", "]"));
    case 13: {
      std::string s = sdy_parts(c, "{", "}");
      std::int64_t from = c.signed_varint("dimension");
      return named("all_to_all_param",
                   fmt::format("{}: {}->{}", s, from, c.signed_varint("dimension")));
    }
    case 14: return wrapped("all_to_all_param_list", sdy_parts(c, "[", "]"));
    default: break;
  }
  source_.fail(at, "attribute", "a code of Shardy's attributes", fmt::format("code {}", code),
               kDamaged);
}

// Attributes of meshes and bounds, in VHLO's or StableHLO's encoding.
std::string ValueReader::mesh_text(std::size_t index) {
  const Entry& e = frame_.attrs[index];
  std::size_t at = e.part.begin;
  Nesting nesting(*this, at);
  ByteCursor c(source_, at, e.part.end);
  bool vhlo = e.custom && e.dialect == Dialect::kVhlo;
  if (!vhlo && !(e.custom && e.dialect == Dialect::kStablehlo)) return symbol_text(index);
  auto name = [&] { return quoted(vhlo ? std::string_view(string_attr(c)) : string(c)); };
  auto parts = [&](ByteCursor& list) {
    std::string s = "[";
    std::size_t n = list.count("list");
    for (std::size_t i = 0; i < n; ++i) {
      if (i) s += ", ";
      s += mesh_text(attr_ref(list));
      if (s.size() > kMaxText)
        list.fail("attribute", fmt::format("its text has at most {} characters", kMaxText),
                  "this one is longer", kDamaged);
    }
    return s + "]";
  };
  // VHLO has its lists as attributes of their own.
  auto list = [&] {
    if (!vhlo) return parts(c);
    const Entry& array = frame_.attrs[attr_ref(c)];
    ByteCursor a(source_, array.part.begin, array.part.end);
    if (array.dialect != Dialect::kVhlo || !array.custom || a.varint("attribute") != 1)
      source_.fail(at, "attribute", "a list", "another attribute", kDamaged);
    return parts(a);
  };
  std::uint64_t code = c.varint("attribute");
  // StableHLO's codes in VHLO's numbers.
  if (!vhlo)
    code = code == 13 ? 18 : code == 18 ? 23 : code >= 19 && code <= 20 ? code + 2 : code + 3;
  switch (code) {
    case 18: {
      std::string s = "#stablehlo.bounds<";
      Dims bounds = read_dims(c);
      for (std::size_t i = 0; i < bounds.size(); ++i) {
        if (i) s += ", ";
        s += bounds[i] == kDynamic ? "?" : fmt::format("{}", bounds[i]);
      }
      return s + ">";
    }
    case 21: {
      std::int64_t before = c.signed_varint("sub-axis");
      return fmt::format("({}){}", before, c.signed_varint("sub-axis"));
    }
    case 22: {
      std::string s = fmt::format("#stablehlo.axis_ref<name = {}", name());
      bool has_sub = vhlo ? c.varint("sub-axis") != 0 : c.byte("sub-axis") != 0;
      if (has_sub) s += fmt::format(", sub_axis_info = {}", mesh_text(attr_ref(c)));
      return s + ">";
    }
    case 23: {
      std::string mesh = mesh_text(attr_ref(c));
      return fmt::format("#stablehlo.replica_group_mesh_axes<mesh = {}, axes = {}>", mesh, list());
    }
    case 24: {
      std::string s = name();
      return fmt::format("#stablehlo.mesh_axis<name = {}, size = {}>", s,
                         c.signed_varint("axis size"));
    }
    case 25: {
      std::string s = fmt::format("#stablehlo.mesh<axes = {}", list());
      std::uint64_t devices = c.varint("devices");
      if (devices) {
        if (!(devices & 1) || devices >> 1 >= num_attrs())
          source_.fail(at, "mesh", "an attribute", fmt::format("number {}", devices), kDamaged);
        s += ", device_ids = ";
        text::append_mlir_attr(s, attr(static_cast<std::size_t>(devices >> 1), Mode::kForeign));
      }
      return s + ">";
    }
    default: break;
  }
  return symbol_text(index);
}

}  // namespace xylem::ir::bytecode
