#include <cstring>
#include <optional>

#include "xylem/base/error.h"
#include "xylem/ir/bytecode.h"
#include "xylem/ir/bytecode/byte_cursor.h"
#include "xylem/ir/bytecode/frame.h"

// The envelope of jax.export: a FlatBuffer whose root table holds the module's bytes. Only that
// vector is looked at. Source: jax/_src/export/serialization.fbs, FlatBuffers' binary format.

namespace xylem::ir {
namespace {

template <class T>
std::optional<T> load(std::string_view bytes, std::uint64_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) return std::nullopt;
  T v;
  std::memcpy(&v, bytes.data() + at, sizeof(T));
  return v;
}

// Places of fields in the table's list of offsets.
constexpr std::uint64_t kVersionField = 4;
constexpr std::uint64_t kModuleField = 30;

// Where a field of the root table stands; 0 if the table lacks it, nothing if this is no table.
std::optional<std::uint64_t> find_field(std::string_view bytes, std::uint64_t field) {
  auto root = load<std::uint32_t>(bytes, 0);
  if (!root || *root < 4) return std::nullopt;
  auto back = load<std::int32_t>(bytes, *root);
  if (!back) return std::nullopt;
  std::int64_t offsets = static_cast<std::int64_t>(*root) - *back;
  if (offsets < 0) return std::nullopt;
  auto at = static_cast<std::uint64_t>(offsets);
  auto size = load<std::uint16_t>(bytes, at);
  if (!size || *size < 4 || *size % 2) return std::nullopt;
  if (field + 2 > *size) return 0;
  auto entry = load<std::uint16_t>(bytes, at + field);
  if (!entry) return std::nullopt;
  return *entry == 0 ? 0 : *root + std::uint64_t{*entry};
}

// The bytes of the module, if the envelope is whole.
std::optional<std::string_view> find_module(std::string_view bytes) {
  auto field = find_field(bytes, kModuleField);
  if (!field || *field == 0) return std::nullopt;
  auto offset = load<std::uint32_t>(bytes, *field);
  if (!offset) return std::nullopt;
  auto size = load<std::uint32_t>(bytes, *field + *offset);
  if (!size) return std::nullopt;
  std::uint64_t begin = *field + *offset + 4;
  if (begin > bytes.size() || bytes.size() - begin < *size) return std::nullopt;
  return bytes.substr(static_cast<std::size_t>(begin), *size);
}

}  // namespace

bool is_jax_export(std::string_view bytes) {
  if (is_bytecode(bytes)) return false;
  // A text has no table at the offset that its first characters spell.
  auto version = find_field(bytes, kVersionField);
  auto module = find_field(bytes, kModuleField);
  if (!version || !module || *version == 0 || *module == 0) return false;
  auto number = load<std::uint16_t>(bytes, *version);
  return number && *number > 0 && *number < 1000;
}

std::string_view jax_export_module(std::string_view bytes, std::string_view name) {
  auto module = find_module(bytes);
  if (!module || !is_bytecode(*module)) {
    bytecode::Source source{bytes, name};
    source.fail(0, "jax.export", "a serialization that holds MLIR bytecode",
                module ? "the bytes of its module are something else" : "it is cut off or damaged",
                "Serialize the program again");
  }
  return *module;
}

}  // namespace xylem::ir
