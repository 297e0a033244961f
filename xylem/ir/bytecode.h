#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "xylem/ir/graph.h"

namespace xylem::ir {

// A version of StableHLO. Features come with minor versions; the patch is text only.
struct Version {
  int major = 0;
  int minor = 0;
  int patch = 0;

  // "1.17.0"; nothing if the text has another form.
  static std::optional<Version> parse(std::string_view text);
  std::string to_string() const;
  friend auto operator<=>(const Version&, const Version&) = default;
};

inline constexpr Version kMinimumVersion{0, 9, 0};   // oldest that is read and written
inline constexpr Version kDefaultVersion{1, 17, 0};  // what jaxlib 0.10.2 reads
inline constexpr Version kCurrentVersion{1, 20, 0};  // newest that is read and written

// MLIR bytecode by its first bytes ("ML\xefR").
bool is_bytecode(std::string_view bytes);
// A serialization of jax.export (jax.export.Exported.serialize) by its first bytes.
bool is_jax_export(std::string_view bytes);
// The bytecode inside a serialization of jax.export. Throws UserError if it is damaged.
std::string_view jax_export_module(std::string_view bytes, std::string_view name = "<export>");

// Who wrote some bytecode.
struct BytecodeHeader {
  int format = 0;                  // MLIR's bytecode version
  std::string producer;            // "StableHLO_v1.17.0", "MLIR23.0.0git"
  std::optional<Version> version;  // of a portable artifact
};
BytecodeHeader read_bytecode_header(std::string_view bytes, std::string_view name = "<bytecode>");

// Reads a portable artifact (VHLO of every version from 0.9 to 1.20, with Shardy beside it), plain
// MLIR bytecode of the func, stablehlo, chlo and sdy dialects, or a serialization of jax.export.
// The program is the one that parse_stablehlo gives for its text: captures are explicit, defaults
// are left out, calls refer to graphs. Constants are copied once; `bytes` need not live on.
//
// Errors are UserErrors. Damage ends reading with one line "NAME:1:COL: error: …", COL counting
// bytes from 1; errors of meaning (constraints, types that disagree) are all told, one a line.
// Source: StableHLO docs/bytecode.md and docs/vhlo.md, MLIR docs/BytecodeFormat.md.
struct BytecodeOptions {
  // Ops keep their constraints, and result types are what the ops' rules give. Without, they are
  // taken as they stand, for programs that their writer did not check.
  bool check = true;
};
Module read_bytecode(std::string_view bytes, std::string_view name = "<bytecode>",
                     const BytecodeOptions& options = {});

struct ArtifactOptions {
  bool strip_debug = false;  // no locations
};

// A portable artifact for the target version (producer "StableHLO_vX.Y.Z"), in the bytecode format
// that belongs to it. xylem.* ops other than calls must be legalised before. CHLO ops become
// composites with their decomposition as a private function, as jaxlib writes them, or plain
// StableHLO where the target has no composites. Throws UserError that names op, place and version
// if the target cannot express the program, or if the target is not one of 0.9 to 1.20.
std::string write_artifact(const Module& module, Version target, ArtifactOptions options = {});

// The lowest version that can express a program, and what needs it.
struct VersionNeed {
  Version version = kMinimumVersion;
  std::string reason;  // "stablehlo.tan exists from 1.4.0", empty for the oldest
  Location loc;
};
VersionNeed minimum_version(const Module& module);

}  // namespace xylem::ir
