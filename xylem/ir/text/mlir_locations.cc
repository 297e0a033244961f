#include <fmt/format.h>

#include "xylem/ir/text/mlir_reader.h"

// Locations of MLIR text. What is kept: file and line of the innermost known place, and the name.

namespace xylem::ir::text {
namespace {

bool known(const Location& l) { return l.source.known() || !l.path.empty(); }

int small(std::int64_t v) { return v < 0 || v > INT32_MAX ? 0 : static_cast<int>(v); }

}  // namespace

bool MlirReader::accept_location(Location& loc) {
  if (!c_.looking_at_word("loc")) return false;
  c_.accept_word("loc");
  c_.expect('(', "location");
  Location l = read_location_body();
  c_.expect(')', "location");
  if (known(l)) loc = l;
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

Location MlirReader::read_location_body() {
  Cursor::Depth depth(c_);
  if (c_.peek() == '#') return read_location_alias();
  if (c_.accept_word("unknown")) return {};
  if (c_.accept_word("callsite")) {
    c_.expect('(', "location");
    Location callee = read_location_body();
    c_.expect_word("at", "location");
    Location caller = read_location_body();
    c_.expect(')', "location");
    return known(callee) ? callee : caller;
  }
  if (c_.accept_word("fused")) {
    if (c_.accept('<')) c_.balanced('<', '>', "location");
    c_.expect('[', "location");
    Location l;
    bool first = true;
    while (!c_.accept(']')) {
      if (!first) c_.expect(',', "location");
      first = false;
      Location part = read_location_body();
      if (!l.source.known()) l.source = part.source;
      if (l.path.empty()) l.path = part.path;
    }
    return l;
  }
  if (c_.peek() != '"')
    c_.fail_here("location", "expected a file, a name, callsite, fused, unknown or an alias",
                 "Write one of them");
  std::string text = c_.string("location");
  Location l;
  if (c_.accept(':')) {  // "file":line:column [to [line]:column]
    l.source.line = small(c_.integer("location"));
    if (c_.accept(':')) l.source.column = small(c_.integer("location"));
    if (c_.accept_word("to")) {
      if (c_.peek() != ':') c_.integer("location");
      if (c_.accept(':')) c_.integer("location");
    }
    l.source.file = intern_c_string(std::move(text));
    l.source.function = "";
    return l;
  }
  if (c_.accept('(')) {
    l = read_location_body();
    c_.expect(')', "location");
  }
  l.path = intern(text);
  return l;
}

}  // namespace xylem::ir::text
