#pragma once

#include <string>

#include "xylem/base/host_array.h"

namespace xylem::internal {

// Text of a contiguous array as NumPy's str() prints it with default options.
std::string print_array(const HostArray& a);

}  // namespace xylem::internal
