#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/base/host_array.h"
#include "xylem/ir/graph.h"
#include "xylem/ir/op_def.h"

namespace xylem::ir {

// The kernel form: the one representation between graphs and machine code. Fusions, generated
// products and user-written kernels are all made of it.
//
// A kernel runs its body once per point of a grid. `parallel` axes may run in any order and on any
// thread; `ordered` axes run in increasing order on one thread, inside each parallel point. Bodies
// read and write memory only through refs. The body is a graph whose
//
//   parameters = grid indices (i64[] each, one per axis), then one ref per entry of `params`, then
//                `num_scalars` i64[] values given at launch;
//   ops        = pointwise StableHLO/CHLO ops, constant, iota, reshape, broadcast_in_dim,
//                transpose, slice, reverse, pad, concatenate, bitcast_convert, reduce, dot_general
//                on small static tiles (tensors in registers), control flow (if, case, while with
//                closed regions that may take refs), and the kernel.* ops below;
//   results    = none.
//
// kernel.* ops (scalars are i64[] tensors; R is the rank of the ref):
//
//   kernel.load(ref, i_0 … i_{R-1} [, mask]) {dims = [d…], shape = [n…], masked}  -> tensor<shape>
//       element (j…) = ref[i + sum_k j_k * e(dims[k])]; dims name the ref dimensions that the tile
//       walks along, [] loads a scalar. With `masked`, the last operand is i1<shape>: lanes that
//       are false read nothing and are zero.
//   kernel.store(ref, value, i_0 … i_{R-1} [, mask]) {dims, masked, streaming}
//       `streaming`: a hint that the tile is not read again soon.
//   kernel.gather(ref, offsets [, mask]) {masked}          -> tensor of offsets' shape
//       offsets: i64 (or i32) flat row-major element numbers; the ref is a whole buffer.
//   kernel.scatter(ref, value, offsets [, mask]) {masked}  lanes in increasing order; later wins
//   kernel.for(lo, hi, carries…, captures…) {step, num_carries} region(iv, carries…, captures…)
//       -> carries; captures may be refs.
//   kernel.fma(a, b, c)   a*b + c rounded once, f32 or f64, pointwise.
//   kernel.ldexp(x, n)    x * 2^n rounded once (n i32), gradual underflow, floats f32/f64.
//   kernel.prefetch(ref, i_0 … i_{R-1})  a hint.
//
// Refs of i1 hold bytes 0/1. Types under 8 bits hold one element a byte.
struct Kernel {
  enum class AxisKind : std::uint8_t { kParallel, kOrdered };
  enum class Access : std::uint8_t { kRead, kWrite, kReadWrite };

  struct Axis {
    AxisKind kind = AxisKind::kParallel;
    std::int64_t size = 1;  // static size, or -1:
    int scalar = -1;        // index of the launch scalar that holds it
    friend bool operator==(const Axis&, const Axis&) = default;
  };

  // Which block of the buffer the body sees at a grid point. Empty `block`: the whole buffer.
  // Otherwise start_d = sum_a coef[d * num_axes + a] * grid_a + offset_d (elements), and the ref
  // has the shape `block`; parts outside of the buffer must not be touched by the body.
  struct BlockMap {
    Dims block;
    Dims coef;
    Dims offset;
    friend bool operator==(const BlockMap&, const BlockMap&) = default;
  };

  struct Param {
    DType dtype = DType::kF32;
    Dims dims;  // of the buffer
    Access access = Access::kRead;
    MemorySpace space = MemorySpace::kDevice;  // kScratch: not passed at launch, private per worker
    BlockMap map;
    // Index of the parameter that this one may share memory with element for element (in-place
    // update: a kWrite parameter whose every element is written after the last read of the same
    // element of the other), -1: none.
    int alias = -1;
    friend bool operator==(const Param&, const Param&) = default;
  };

  std::string name;  // for dumps and profiles; not part of the canonical form
  std::vector<Axis> grid;
  std::vector<Param> params;
  int num_scalars = 0;
  GraphPtr body;

  std::int64_t parallel_points(std::span<const std::int64_t> scalars = {}) const;
  std::string to_string() const;  // native text
};

namespace ops {
extern const OpDef kKernelLoad, kKernelStore, kKernelGather, kKernelScatter, kKernelFor, kKernelFma,
    kKernelLdexp, kKernelPrefetch;
}  // namespace ops

// Throws UserError naming the op and rule if the kernel is not well formed.
void verify_kernel(const Kernel& kernel);

Kernel parse_kernel(std::string_view text);

// Canonical bytes without names: equal kernels have equal bytes.
std::string encode_kernel(const Kernel& kernel);
Kernel decode_kernel(std::string_view bytes);

struct KernelRunOptions {
  // Visits the parallel points in a random order given by this seed; 0: in order.
  std::uint64_t shuffle_seed = 0;
  // Throws UserError on any access outside of a buffer. Off: such lanes are undefined behaviour.
  bool check_bounds = true;
};

// Interprets a kernel. `buffers`: one per non-scratch parameter, modified in place (kWrite,
// kReadWrite); dtype and dims must agree.
void run_kernel(const Kernel& kernel, std::span<HostArray> buffers,
                std::span<const std::int64_t> scalars = {}, const KernelRunOptions& options = {});

}  // namespace xylem::ir
