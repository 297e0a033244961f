#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/core/callback.h"

namespace xylem::internal {

// A piece of a format: text, or the number of a value.
struct Piece {
  std::string text;
  int value = -1;
};

// UserError of `what` if fields and values do not fit.
std::vector<Piece> parse_format(std::string_view what, std::string_view format,
                                std::span<const DebugValue> values, SourceLoc where);
std::string fill_format(std::span<const Piece> pieces, std::span<const Array> values);

}  // namespace xylem::internal
