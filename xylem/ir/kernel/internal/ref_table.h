#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/base/host_array.h"
#include "xylem/ir/op_def.h"

// How the kernel interpreter sees memory. In interpreted bodies a ref is an i64 scalar: the number
// of its view in the runner's table, so that it passes through every control-flow op unchanged.

namespace xylem::ir::internal {

// A parameter's block at one grid point.
struct RefView {
  int param = -1;
  std::byte* base = nullptr;  // first element of the buffer
  std::int64_t element_bytes = 1;
  Dims dims;     // of the ref: the block, or the whole buffer
  Dims start;    // of the block in the buffer
  Dims buffer;   // dims of the buffer
  Dims strides;  // of the buffer, in elements
};

// Called with an element's address and its number in the tile.
using ElementFn = std::function<void(std::byte* element, std::int64_t lane)>;

class RefTable {
 public:
  virtual ~RefTable() = default;

  const RefView& view(const HostArray& ref) const;
  // Visits the elements ref[at + sum_k j_k e(dims[k])] in row-major order of j, those with a true
  // mask lane only.
  void walk(const Op& op, const RefView& ref, const Dims& at, const Dims& dims, const Dims& shape,
            const HostArray* mask, const ElementFn& fn) const;
  // Visits the elements with these flat row-major numbers.
  void walk_offsets(const Op& op, const RefView& ref, const HostArray& offsets,
                    const HostArray* mask, const ElementFn& fn) const;

 protected:
  std::vector<RefView> views_;
  bool check_bounds_ = true;

 private:
  // Null if the element lies outside and bounds are not checked.
  std::byte* element(const Op& op, const RefView& ref, const Dims& index) const;
  [[noreturn]] void fail(const Op& op, const RefView& ref, const std::string& given) const;
};

// The table of the kernel interpreter that runs this op; UserError for any other runner.
RefTable& ref_table_of(RegionRunner& regions, std::string_view op_name);

}  // namespace xylem::ir::internal
