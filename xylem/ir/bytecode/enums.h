#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace xylem::ir::bytecode {

// An enumeration of StableHLO: its number in VHLO's, StableHLO's and CHLO's attribute encodings
// (-1: none), its mnemonic in text ("#stablehlo<precision HIGH>"), its members in their order of
// numbers; an empty name is no member. In the file an enumeration is its attribute code, then the
// member's number.
struct Enumeration {
  std::string_view mnemonic;
  int vhlo_code;
  int stablehlo_code;
  int chlo_code;
  std::span<const std::string_view> members;

  // -1 if it is not a member.
  int number(std::string_view member) const;
};

std::span<const Enumeration> enumerations();
// Null if unknown.
const Enumeration* enumeration_of_mnemonic(std::string_view mnemonic);
const Enumeration* enumeration_of_vhlo(std::uint64_t code);
const Enumeration* enumeration_of_stablehlo(std::uint64_t code);
const Enumeration* enumeration_of_chlo(std::uint64_t code);

}  // namespace xylem::ir::bytecode
