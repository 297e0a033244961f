#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/ir/bytecode/artifact_writer.h"
#include "xylem/ir/bytecode/byte_cursor.h"
#include "xylem/ir/text/cursor.h"

// Locations.

namespace xylem::ir::bytecode {
namespace {

std::string code(std::uint64_t v) {
  std::string s;
  append_varint(s, v);
  return s;
}

// Reads a location's text and makes its attributes.
class LocationText {
 public:
  LocationText(Pools& pools, std::string_view text, bool ranges)
      : pools_(pools), c_(text, "<location>", "location"), ranges_(ranges) {}

  std::size_t read() {
    text::Cursor::Depth depth(c_);
    if (c_.accept_word("unknown")) return add(code(15));
    if (c_.accept_word("callsite")) {
      c_.expect('(', "location");
      std::size_t callee = read();
      c_.expect_word("at", "location");
      std::size_t caller = read();
      c_.expect(')', "location");
      return add(code(10) + code(callee) + code(caller));
    }
    if (c_.accept_word("fused")) return fused();
    std::string name = c_.string("location");
    if (c_.accept(':')) return place(name);
    std::size_t child = 0;
    if (c_.accept('(')) {
      child = read();
      c_.expect(')', "location");
    } else {
      child = add(code(15));
    }
    return add(code(14) + code(string(name)) + code(child));
  }

 private:
  std::size_t add(std::string bytes) { return pools_.attr("builtin", std::move(bytes)); }
  std::size_t string(std::string_view s) { return add(code(2) + code(pools_.string(s))); }

  std::uint64_t number() {
    std::int64_t v = c_.integer("location");
    return v < 0 ? 0 : static_cast<std::uint64_t>(v);
  }

  // "file":line:column [to [line]:column], behind the first colon.
  std::size_t place(const std::string& file) {
    std::vector<std::uint64_t> v{number()};
    v.push_back(c_.accept(':') ? number() : 0);
    if (c_.accept_word("to")) {
      if (c_.peek() != ':') v.push_back(number());
      if (c_.accept(':')) v.push_back(number());
    }
    // Older readers know places, not ranges.
    if (v.size() == 2 || !ranges_)
      return add(code(11) + code(string(file)) + code(v[0]) + code(v[1]));
    std::string b = code(22) + code(string(file)) + code(v.size());
    for (std::uint64_t n : v) append_varint(b, n);
    return add(std::move(b));
  }

  std::size_t fused() {
    std::size_t metadata = 0;
    bool has_metadata = c_.accept('<');
    if (has_metadata) {
      std::string_view text = c_.balanced('<', '>', "location");
      std::string_view dialect = "builtin";
      if (text.starts_with('#')) dialect = text.substr(1, text.find_first_of(".<") - 1);
      if (text.starts_with('"')) {
        text::Cursor inside(text, "<location>", "location");
        metadata = string(inside.string("location"));
      } else {
        metadata = pools_.attr_text(dialect, text);
      }
    }
    c_.expect('[', "location");
    std::vector<std::size_t> parts;
    while (!c_.accept(']')) {
      if (!parts.empty()) c_.expect(',', "location");
      parts.push_back(read());
    }
    std::string b = code(has_metadata ? 13 : 12) + code(parts.size());
    for (std::size_t p : parts) append_varint(b, p);
    if (has_metadata) append_varint(b, metadata);
    return add(std::move(b));
  }

  Pools& pools_;
  text::Cursor c_;
  bool ranges_;
};

}  // namespace

std::size_t ArtifactWriter::unknown_location() { return pools_.attr("builtin", code(15)); }

std::size_t ArtifactWriter::location(const Location& loc) {
  if (options_.strip_debug) return unknown_location();
  auto string = [&](std::string_view s) { return builtin_string(s); };
  if (!loc.mlir.empty()) {
    // Texts of locations are interned: their address is their name.
    auto [it, added] = locations_.try_emplace(loc.mlir, 0);
    if (added) {
      bool ranges = target_ >= Version{1, 9, 0};
      try {
        it->second = LocationText(pools_, loc.mlir, ranges).read();
      } catch (const UserError&) {
        it->second = unknown_location();
      }
    }
    return it->second;
  }
  std::size_t l = unknown_location();
  if (loc.implied) return l;
  if (loc.source.known())
    l = pools_.attr("builtin",
                    code(11) + code(string(loc.source.file)) +
                        code(static_cast<std::uint64_t>(loc.source.line)) +
                        code(static_cast<std::uint64_t>(std::max(0, loc.source.column))));
  if (!loc.path.empty()) l = pools_.attr("builtin", code(14) + code(string(loc.path)) + code(l));
  return l;
}

}  // namespace xylem::ir::bytecode
