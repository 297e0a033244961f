#include <fmt/format.h>

#include "xylem/ir/text/mlir_reader.h"

// Locations of MLIR text. Kept are file and line of the innermost known place, the name, and the
// whole as text with its aliases replaced.

namespace xylem::ir::text {
namespace {

// Beyond this the text of a location is dropped: chains of aliases grow exponentially.
constexpr std::size_t kMaxLocationText = 1 << 14;

bool known(const Location& l) { return l.source.known() || !l.path.empty(); }

int small(std::int64_t v) { return v < 0 || v > INT32_MAX ? 0 : static_cast<int>(v); }

}  // namespace

bool MlirReader::accept_location(Location& loc) {
  if (!c_.looking_at_word("loc")) return false;
  c_.accept_word("loc");
  c_.expect('(', "location");
  std::string text;
  Location l = c_.peek() == '#' ? read_location_alias() : read_location_body(text);
  c_.expect(')', "location");
  if (!text.empty() && text.size() <= kMaxLocationText) l.mlir = intern(text);
  if (known(l)) {
    loc = l;
  } else {
    loc.mlir = l.mlir;  // "unknown": the place in the text is still of use
  }
  return true;
}

Location MlirReader::read_location_alias() {
  std::size_t start = c_.token_pos();
  c_.step();
  std::string_view name = c_.suffix_name("location");
  if (name.find('.') != std::string_view::npos || c_.raw() == '<') {  // #dialect.loc<…>
    if (c_.raw() == '<') {
      c_.step();
      c_.balanced('<', '>', "location");
    }
    return {};
  }
  Alias& a = alias(c_.text().substr(start, name.size() + 1), start);
  if (a.has_location) return a.location;
  // Chains of call sites may be longer than what we descend into; their far end is not followed.
  if (c_.depth() > kMaxDepth / 2) return {};
  std::size_t back = c_.pos();
  c_.seek(a.pos);
  a.busy = true;
  Location l;
  // An alias of something else names no place.
  if (c_.looking_at_word("loc")) accept_location(l);
  a.busy = false;
  a.has_location = true;
  a.location = l;
  c_.seek(back);
  return l;
}

// Appends the location's text to `out`, or makes that too long to be kept.
Location MlirReader::read_location_body(std::string& out) {
  Cursor::Depth depth(c_);
  if (c_.peek() == '#') {
    Location l = read_location_alias();
    if (l.mlir.empty() || out.size() > kMaxLocationText) {
      out.resize(kMaxLocationText + 1);
    } else {
      out += l.mlir;
    }
    return l;
  }
  if (c_.accept_word("unknown")) {
    out += "unknown";
    return {};
  }
  if (c_.accept_word("callsite")) {
    c_.expect('(', "location");
    out += "callsite(";
    Location callee = read_location_body(out);
    c_.expect_word("at", "location");
    out += " at ";
    Location caller = read_location_body(out);
    c_.expect(')', "location");
    out += ')';
    return known(callee) ? callee : caller;
  }
  if (c_.accept_word("fused")) {
    out += "fused";
    std::size_t meta = c_.token_pos();
    if (c_.accept('<')) {
      c_.balanced('<', '>', "location");
      std::string_view metadata = c_.text().substr(meta, c_.pos() - meta);
      out += metadata;
      // It may name aliases, which would be unknown elsewhere.
      if (metadata.find('#') != std::string_view::npos) out.resize(kMaxLocationText + 1);
    }
    c_.expect('[', "location");
    out += '[';
    Location l;
    bool first = true;
    while (!c_.accept(']')) {
      if (!first) {
        c_.expect(',', "location");
        out += ", ";
      }
      first = false;
      Location part = read_location_body(out);
      if (!l.source.known()) l.source = part.source;
      if (l.path.empty()) l.path = part.path;
    }
    out += ']';
    return l;
  }
  if (c_.peek() != '"')
    c_.fail_here("location", "expected a file, a name, callsite, fused, unknown or an alias",
                 "Write one of them");
  std::size_t start = c_.token_pos();
  std::string text = c_.string("location");
  out += c_.text().substr(start, c_.pos() - start);
  Location l;
  if (c_.peek() == ':') {  // "file":line:column [to [line]:column]
    start = c_.pos();
    c_.step();
    l.source.line = small(c_.integer("location"));
    if (c_.accept(':')) l.source.column = small(c_.integer("location"));
    out += c_.text().substr(start, c_.pos() - start);
    if (c_.accept_word("to")) {
      out += " to ";
      start = c_.token_pos();
      if (c_.peek() != ':') c_.integer("location");
      if (c_.accept(':')) c_.integer("location");
      out += c_.text().substr(start, c_.pos() - start);
    }
    l.source.file = intern_c_string(std::move(text));
    l.source.function = "";
    return l;
  }
  if (c_.accept('(')) {
    out += '(';
    l = read_location_body(out);
    c_.expect(')', "location");
    out += ')';
  }
  l.path = intern(text);
  return l;
}

}  // namespace xylem::ir::text
