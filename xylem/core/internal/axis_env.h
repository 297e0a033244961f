#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "xylem/base/location.h"

namespace xylem::internal {

// The named axes around the code that is traced on this thread, innermost last.
class AxisScope {
 public:
  // No axis if the name is empty.
  AxisScope(const std::string& name, std::int64_t size);
  ~AxisScope();
  AxisScope(const AxisScope&) = delete;
  AxisScope& operator=(const AxisScope&) = delete;

 private:
  bool set_ = false;
};

bool any_axis_bound();
// UserError naming `what` if the name is not bound.
std::int64_t axis_size(std::string_view name, const char* what, SourceLoc where);

}  // namespace xylem::internal
