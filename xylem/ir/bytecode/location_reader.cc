#include <fmt/format.h>

#include "xylem/ir/bytecode/value_reader.h"
#include "xylem/ir/text/cursor.h"
#include "xylem/ir/text/stablehlo_attrs.h"

// Locations. Kept are file and line of the innermost known place, the name, and the whole as MLIR
// text.

namespace xylem::ir::bytecode {
namespace {

constexpr const char* kDamaged = "The file is damaged: write it again";
// Beyond this the text of a location is dropped: shared parts multiply.
constexpr std::size_t kMaxText = 1 << 14;

bool known(const Location& l) { return l.source.known() || !l.path.empty(); }

int small(std::uint64_t v) { return v > INT32_MAX ? 0 : static_cast<int>(v); }

constexpr std::uint64_t kPlaceCode = 11;

std::string place_text(std::string_view file, std::uint64_t line, std::uint64_t column) {
  std::string s;
  text::append_quoted(s, file);
  return s + fmt::format(":{}:{}", line, column);
}

// `to` and what stands behind it of "file":line:column to [line]:column.
std::string range(const std::uint64_t* v, std::size_t n) {
  if (n == 3) return fmt::format(" to :{}", v[2]);
  if (n == 4) return fmt::format(" to {}:{}", v[2], v[3]);
  return {};
}

}  // namespace

bool ValueReader::is_place(std::size_t index) const {
  const Entry& e = frame_.attrs[index];
  return e.custom && e.dialect == Dialect::kBuiltin && e.part.begin < e.part.end &&
         static_cast<unsigned char>(source_.bytes[e.part.begin]) == (kPlaceCode << 1 | 1);
}

Location ValueReader::location(std::size_t index) {
  State& state = location_states_[index];
  const Part& part = frame_.attrs[index].part;
  if (state == State::kRead) return locations_[index];
  if (state == State::kBusy)
    source_.fail(part.begin, "location", "locations do not contain themselves",
                 fmt::format("attribute {} does", index), kDamaged);
  // Chains of call sites may be longer than what we descend into; their far end is not followed.
  if (depth_ >= text::kMaxDepth - 4) return {};
  Nesting nesting(*this, part.begin);
  state = State::kBusy;
  Location l = read_location(index);
  bool place = is_place(index);
  state = place ? State::kUnread : State::kRead;
  if (!place) locations_[index] = l;
  return l;
}

std::string ValueReader::location_text(std::size_t index) {
  Location l = location(index);
  if (!l.mlir.empty() || !is_place(index)) return std::string(l.mlir);
  return place_text(l.source.file, static_cast<std::uint64_t>(l.source.line),
                    static_cast<std::uint64_t>(l.source.column));
}

Location ValueReader::read_location_part(ByteCursor& c, std::string& out) {
  std::size_t index = attr_ref(c);
  std::string text = location_text(index);
  // A part without text makes the whole too long to be kept.
  if (text.empty() || out.size() > kMaxText) {
    out.resize(kMaxText + 1);
  } else {
    out += text;
  }
  return location(index);
}

Location ValueReader::read_place(ByteCursor& c) {
  const std::string& file = string_attr(c);
  std::uint64_t line = c.varint("location"), column = c.varint("location");
  Location l;
  l.source.file = text::intern_c_string(file);
  l.source.function = "";
  l.source.line = small(line);
  l.source.column = small(column);
  bool same = l.source.known() && column <= INT32_MAX && file.find('\0') == std::string::npos;
  if (!same) l.mlir = intern(place_text(file, line, column));
  return l;
}

Location ValueReader::read_location(std::size_t index) {
  const Entry& e = frame_.attrs[index];
  std::size_t at = e.part.begin;
  ByteCursor c(source_, at, e.part.end);
  Location l;
  std::string text;
  // Locations of other dialects name no place.
  if (!e.custom || e.dialect != Dialect::kBuiltin) return l;
  std::uint64_t code = c.varint("location");
  switch (code) {
    case 10: {
      text = "callsite(";
      Location callee = read_location_part(c, text);
      text += " at ";
      Location caller = read_location_part(c, text);
      text += ')';
      l = known(callee) ? callee : caller;
      break;
    }
    case kPlaceCode: return read_place(c);
    case 22: {
      const std::string& file = string_attr(c);
      std::uint64_t v[4] = {0, 0, 0, 0};
      std::size_t n = c.count("location");
      if (n > 4) source_.fail(at, "location", "at most 4 numbers", fmt::format("{}", n), kDamaged);
      for (std::size_t i = 0; i < n; ++i) v[i] = c.varint("location");
      l.source.file = text::intern_c_string(file);
      l.source.function = "";
      l.source.line = small(v[0]);
      l.source.column = small(v[1]);
      text = place_text(file, v[0], v[1]) + range(v, n);
      break;
    }
    case 12:
    case 13: {
      std::size_t n = c.count("locations");
      std::string parts;
      for (std::size_t i = 0; i < n; ++i) {
        if (i) parts += ", ";
        Location part = read_location_part(c, parts);
        if (!l.source.known()) l.source = part.source;
        if (l.path.empty()) l.path = part.path;
      }
      text = "fused";
      if (code == 13) {
        text += '<';
        std::string metadata;
        text::append_mlir_attr(metadata, attr(attr_ref(c), Mode::kForeign));
        text += metadata + '>';
      }
      text += '[' + parts + ']';
      break;
    }
    case 14: {
      const std::string name = string_attr(c);
      text::append_quoted(text, name);
      std::string child;
      l = read_location_part(c, child);
      if (child != "unknown") text += '(' + child + ')';
      l.path = intern(name);
      break;
    }
    case 15: text = "unknown"; break;
    default:
      source_.fail(at, "location", "a location", fmt::format("attribute code {}", code), kDamaged);
  }
  l.mlir = text.size() <= kMaxText ? intern(text) : std::string_view();
  return l;
}

}  // namespace xylem::ir::bytecode
