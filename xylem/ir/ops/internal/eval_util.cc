#include "xylem/ir/ops/internal/eval_util.h"

#include <cstring>

namespace xylem::ir::ops {

std::int64_t integer_scalar(const HostArray& a, std::int64_t at) {
  if (is_unsigned_int(a.dtype()) || is_bool(a.dtype())) {
    std::uint64_t v;
    load(a, at, 1, &v);
    return v > static_cast<std::uint64_t>(INT64_MAX) ? INT64_MAX : static_cast<std::int64_t>(v);
  }
  std::int64_t v;
  load(a, at, 1, &v);
  return v;
}

HostArray element(const HostArray& a, std::int64_t at) {
  HostArray out(a.dtype(), {});
  auto bytes = static_cast<std::size_t>(dtype_bytes(a.dtype()));
  std::memcpy(out.data(), a.data() + static_cast<std::size_t>(at) * bytes, bytes);
  return out;
}

void set_element(HostArray& a, std::int64_t at, const HostArray& scalar) {
  auto bytes = static_cast<std::size_t>(dtype_bytes(a.dtype()));
  std::memcpy(a.data() + static_cast<std::size_t>(at) * bytes, scalar.data(), bytes);
}

}  // namespace xylem::ir::ops
