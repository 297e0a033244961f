#include "xylem/ir/ops/internal/strided.h"

#include <cstring>
#include <vector>

namespace xylem::ir::ops {

HostArray strided_view(const HostArray& a, std::int64_t byte_offset, Dims dims, Dims strides) {
  if (num_elements(dims) == 0) return HostArray(a.dtype(), std::move(dims));
  std::shared_ptr<std::byte> bytes(a.owner(), a.owner().get() + byte_offset);
  return HostArray(a.dtype(), std::move(dims), std::move(bytes), std::move(strides));
}

void write_strided(HostArray& out, std::int64_t byte_offset, const Dims& strides,
                   const HostArray& src) {
  if (src.size() == 0) return;
  auto element = static_cast<std::size_t>(dtype_bytes(src.dtype()));
  const std::byte* from = src.data();
  std::byte* to = out.data() + byte_offset;
  std::size_t rank = src.dims().size();
  // Rows that lie densely on both sides go in one piece.
  std::int64_t row = 1;
  std::size_t outer = rank;
  if (rank > 0 && strides.back() == static_cast<std::int64_t>(element)) {
    row = src.dims().back();
    --outer;
  }
  std::vector<std::int64_t> index(outer, 0);
  for (std::int64_t n = src.size() / row; n > 0; --n) {
    std::memcpy(to, from, element * static_cast<std::size_t>(row));
    from += element * static_cast<std::size_t>(row);
    for (std::size_t d = outer; d-- > 0;) {
      to += strides[d];
      if (++index[d] < src.dims()[d]) break;
      to -= strides[d] * index[d];
      index[d] = 0;
    }
  }
}

}  // namespace xylem::ir::ops
