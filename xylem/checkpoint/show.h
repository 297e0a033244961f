#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "xylem/checkpoint/checkpoint.h"

namespace xylem::checkpoint {

using Sink = std::function<void(std::string_view)>;

// {"format", "step", "items": {NAME: {"leaves": [...]} or {"json": ...}}}; see the guide of the
// `xylem checkpoint` command for the members. With `values`, arrays with their contents. Piece by
// piece, so that no more than one array is held.
void show_json(const Checkpoint& c, bool values, const Sink& out);
// One line a leaf, for people: path, type, bytes; with `statistics` least, greatest, mean and how
// many are not finite, or why the array cannot be read. `progress`: bytes read, bytes in all.
void show_text(const Checkpoint& c, bool statistics, const Sink& out,
               const std::function<void(std::uint64_t, std::uint64_t)>& progress = nullptr);

// The elements as a JSON list, flat, C order: the shortest decimals that read back to the same bits
// of the array's type, NaN and infinities as strings, complex as pairs, booleans as true and false.
std::string values_json(const HostArray& a);

}  // namespace xylem::checkpoint
