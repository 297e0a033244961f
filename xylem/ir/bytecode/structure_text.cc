#include "xylem/ir/bytecode/structure_text.h"

#include "xylem/base/error.h"
#include "xylem/ir/text/cursor.h"
#include "xylem/ir/text/mlir_reader.h"

namespace xylem::ir::bytecode {
namespace {

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\n')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\n')) s.remove_suffix(1);
  return s;
}

// Splits at commas outside of brackets and strings.
std::vector<std::string_view> split(std::string_view s) {
  std::vector<std::string_view> parts;
  int depth = 0;
  bool string = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < s.size(); ++i) {
    char c = s[i];
    if (string) {
      if (c == '\\') ++i;
      if (c == '"') string = false;
    } else if (c == '"') {
      string = true;
    } else if (c == '<' || c == '[' || c == '(' || c == '{') {
      ++depth;
    } else if (c == '>' || c == ']' || c == ')' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      parts.push_back(trimmed(s.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  if (begin < s.size()) parts.push_back(trimmed(s.substr(begin)));
  return parts;
}

}  // namespace

const std::string* StructureText::find(std::string_view field) const {
  for (const auto& [name, value] : fields)
    if (name == field) return &value;
  return nullptr;
}

StructureText take_apart(std::string_view text) {
  StructureText s;
  text = trimmed(text);
  constexpr std::string_view kPrefix = "#stablehlo.";
  std::size_t open = text.find('<');
  if (!text.starts_with(kPrefix) || open == std::string_view::npos || text.back() != '>') return s;
  for (std::string_view part : split(text.substr(open + 1, text.size() - open - 2))) {
    std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      s.fields.emplace_back("", std::string(part));
    } else {
      s.fields.emplace_back(trimmed(part.substr(0, equals)), trimmed(part.substr(equals + 1)));
    }
  }
  s.mnemonic = text.substr(kPrefix.size(), open - kPrefix.size());
  return s;
}

std::vector<std::string> list_items(std::string_view text) {
  std::vector<std::string> items;
  text = trimmed(text);
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return items;
  for (std::string_view part : split(text.substr(1, text.size() - 2))) items.emplace_back(part);
  return items;
}

Attr parse_inherent(const std::string& text) {
  try {
    ParseOptions options;
    options.allow_unregistered = true;
    text::MlirReader reader(text, "<attribute>", options);
    Attr a = reader.read_attr(text::MlirReader::Mode::kInherent);
    if (reader.cursor().at_end()) return a;
  } catch (const UserError&) {
  }
  return OpaqueAttr{text};
}

}  // namespace xylem::ir::bytecode
