#include "xylem/compiler/reducer.h"

#include <cstring>
#include <limits>

#include "xylem/base/dtype_cast.h"
#include "xylem/base/error.h"
#include "xylem/ir/ops/all.h"

namespace xylem::compiler {

namespace o = ir::ops;

const ir::OpDef* known_reducer(const ir::Graph& region) {
  if (region.params.size() != 2) return nullptr;
  const ir::OpDef* op = o::single_op_reducer(region);
  if (!op) return nullptr;
  for (const ir::OpDef* known :
       {&o::kAdd, &o::kMultiply, &o::kMaximum, &o::kMinimum, &o::kAnd, &o::kOr, &o::kXor})
    if (op == known) return op;
  return nullptr;
}

namespace {

// The least (greatest) value: infinities where the type has them.
HostArray extreme(DType dtype, bool least) {
  HostArray a = HostArray::zeros(dtype, {});
  const DTypeInfo& info = dtype_info(dtype);
  if (info.kind == DTypeKind::kBool) {
    *a.data() = static_cast<std::byte>(least ? 0 : 1);
  } else if (info.kind == DTypeKind::kSigned || info.kind == DTypeKind::kUnsigned) {
    const bool is_signed = info.kind == DTypeKind::kSigned;
    const std::uint64_t ones = info.bits == 64 ? ~0ull : (1ull << info.bits) - 1;
    const std::uint64_t top = 1ull << (info.bits - 1);
    std::uint64_t v = least ? (is_signed ? top : 0) : (is_signed ? ones ^ top : ones);
    // Types under 8 bits are kept sign extended in their byte.
    if (is_signed && info.bits < 8 && least) v |= 0xFFull & ~ones;
    std::memcpy(a.data(), &v, info.bytes);
  } else {
    // Types without infinity saturate or give NaN; their largest finite value is found by halving.
    double v = std::numeric_limits<double>::infinity();
    double_to_element(least ? -v : v, dtype, a.data());
    const double back = element_to_double(dtype, a.data());
    if (back != v && back != -v) {
      for (double x = 1e6; x > 0; x -= 0.5) {
        double_to_element(x, dtype, a.data());
        if (element_to_double(dtype, a.data()) == x) {
          double_to_element(least ? -x : x, dtype, a.data());
          break;
        }
      }
    }
  }
  return a;
}

}  // namespace

HostArray reducer_identity(const ir::OpDef& op, DType dtype) {
  HostArray a = HostArray::zeros(dtype, {});
  if (&op == &o::kMaximum || &op == &o::kMinimum) {
    if (is_complex(dtype)) {
      const DType real = real_dtype(dtype);
      const HostArray e = extreme(real, &op == &o::kMaximum);
      const auto n = static_cast<std::size_t>(dtype_bytes(real));
      std::memcpy(a.data(), e.data(), n);
      std::memcpy(a.data() + n, e.data(), n);
      return a;
    }
    return extreme(dtype, &op == &o::kMaximum);
  }
  if (&op == &o::kMultiply) {
    if (is_bool(dtype))
      *a.data() = std::byte{1};
    else
      double_to_element(1, dtype, a.data());
  } else if (&op == &o::kAdd && is_inexact(dtype)) {
    double_to_element(-0.0, dtype, a.data());
    if (is_complex(dtype)) {
      const auto n = static_cast<std::size_t>(dtype_bytes(real_dtype(dtype)));
      std::memcpy(a.data() + n, a.data(), n);
    }
  } else if (&op == &o::kAnd) {
    if (is_bool(dtype))
      *a.data() = std::byte{1};
    else
      std::memset(a.data(), 0xFF, a.nbytes());
  } else {
    XYLEM_CHECK(&op == &o::kAdd || &op == &o::kOr || &op == &o::kXor, op.name);
  }
  return a;
}

}  // namespace xylem::compiler
