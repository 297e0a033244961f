#include <fmt/format.h>

#include <charconv>

#include "xylem/base/error.h"
#include "xylem/ir/bytecode.h"
#include "xylem/ir/bytecode/frame.h"
#include "xylem/ir/bytecode/program_reader.h"

namespace xylem::ir {

std::optional<Version> Version::parse(std::string_view text) {
  Version v;
  int* parts[] = {&v.major, &v.minor, &v.patch};
  for (int i = 0; i < 3; ++i) {
    const char* end = text.data() + text.size();
    // No signs, no blanks.
    if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
    auto [stop, error] = std::from_chars(text.data(), end, *parts[i]);
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
    if (i == 2) return text.empty() ? std::optional(v) : std::nullopt;
    if (text.empty() || text[0] != '.') return std::nullopt;
    text.remove_prefix(1);
  }
  return std::nullopt;
}

std::string Version::to_string() const { return fmt::format("{}.{}.{}", major, minor, patch); }

bool is_bytecode(std::string_view bytes) { return bytes.starts_with(bytecode::kMagic); }

BytecodeHeader read_bytecode_header(std::string_view bytes, std::string_view name) {
  bytecode::Source source{bytes, name};
  bytecode::ByteCursor c(source, 0, bytes.size());
  if (!is_bytecode(bytes))
    source.fail(0, "bytecode", "the file starts with the bytes 4d 4c ef 52", "it does not",
                "Give MLIR bytecode or a portable artifact");
  c.bytes("magic", bytecode::kMagic.size());
  BytecodeHeader h;
  std::uint64_t format = c.varint("bytecode version");
  h.format = format > INT32_MAX ? INT32_MAX : static_cast<int>(format);
  h.producer = c.c_string("producer");
  constexpr std::string_view kPrefix = "StableHLO_v";
  if (h.producer.starts_with(kPrefix))
    h.version = Version::parse(std::string_view(h.producer).substr(kPrefix.size()));
  return h;
}

Module read_bytecode(std::string_view bytes, std::string_view name,
                     const BytecodeOptions& options) {
  if (is_jax_export(bytes)) bytes = jax_export_module(bytes, name);
  bytecode::Source source{bytes, name};
  bytecode::Frame frame = bytecode::read_frame(source);
  return bytecode::ProgramReader(source, frame, options).read();
}

}  // namespace xylem::ir
