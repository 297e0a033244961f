#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xylem/ir/attr.h"

namespace xylem::ir::bytecode {

// The text of a structure attribute taken apart: "#stablehlo.axis_ref<name = \"x\">" has the
// mnemonic "axis_ref" and one field. Values are texts. Empty mnemonic if it has another form.
struct StructureText {
  std::string mnemonic;
  std::vector<std::pair<std::string, std::string>> fields;

  const std::string* find(std::string_view field) const;
};
StructureText take_apart(std::string_view text);

// "[a, b]" as its items; nothing if it is no list.
std::vector<std::string> list_items(std::string_view text);

// An attribute's text as the op's own attribute of that text would be read: structures become
// dictionaries, members of enumerations EnumAttr. Kept as text if that fails.
Attr parse_inherent(const std::string& text);

}  // namespace xylem::ir::bytecode
