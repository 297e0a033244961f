#pragma once

#include "xylem/core/array.h"

namespace xylem {

// An array whose contents are part of the program: a constant of the compiled code where it is used
// in a trace, instead of a hidden input. For small tables.
Array literal(const HostArray& contents);

}  // namespace xylem
