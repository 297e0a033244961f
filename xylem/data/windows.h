#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "xylem/base/host_array.h"

namespace xylem::data {

// The windows of T + 1 tokens of a text, one byte a token: the first T are read, the last T
// predicted. Windows start at multiples of T, so neighbours share one byte and every byte but the
// first is predicted once; what is left at the end is dropped. Refers to the text, which must
// outlive it. Immutable.
class Windows {
 public:
  // T >= 1. `what` ("training text") opens the UserError of a text that is too short for a window.
  Windows(std::string_view text, std::int64_t length, std::string_view what);

  std::int64_t size() const { return count_; }
  std::int64_t length() const { return length_; }
  // Window i as i32[T + 1]: windows are a source of pipelines.
  HostArray get(std::int64_t i) const;
  // Writes the T + 1 tokens of window i to `out`.
  void copy(std::int64_t i, std::span<std::int32_t> out) const;
  // Windows first … first + n - 1 as i32[n, T + 1]; those past the end repeat the last one.
  HostArray range(std::int64_t first, std::int64_t n) const;

 private:
  std::string_view text_;
  std::int64_t length_;
  std::int64_t count_;
};

}  // namespace xylem::data
