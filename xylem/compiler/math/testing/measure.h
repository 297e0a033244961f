#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "xylem/base/host_array.h"
#include "xylem/ir/kernel.h"
#include "xylem/ir/op_def.h"

// Measures the error of compiled elementary functions. For tests and the tool that writes
// docs/accuracy.md.

namespace xylem::compiler::testing {

// One pointwise op on arrays of n elements (a multiple of 32), expanded and compiled.
class CompiledOp {
 public:
  CompiledOp(const ir::OpDef& def, DType dtype, std::int64_t n);
  ~CompiledOp();
  CompiledOp(const CompiledOp&) = delete;
  CompiledOp& operator=(const CompiledOp&) = delete;

  // arrays: the operands, then the result, which is overwritten.
  void run(std::span<HostArray> arrays) const;
  const ir::Kernel& kernel() const;
  // Ops of the expansion without constants; those in regions count.
  int num_ops() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

int num_operands(const ir::OpDef& def);

struct Error {
  double max_ulp = 0;            // infinity: a NaN, an infinity or the sign of a zero is wrong
  double x = 0, y = 0, got = 0;  // where
  std::int64_t points = 0;
  void merge(const Error& other);
  std::string to_string() const;
};

// Against MPFR: special values and their neighbours, random bits, and numbers of moderate size;
// `count` of them, the same for equal seeds.
Error measure_random(const ir::OpDef& def, DType dtype, std::int64_t count, std::uint64_t seed);

// One operand of 16 bits: every value, against MPFR.
Error measure_all_16_bit(const ir::OpDef& def, DType dtype);

// f32, one operand: every stride-th bit pattern from `first` on, against the C library's double
// function, whose error is below 1e-8 ulp of f32.
Error measure_f32_scan(const ir::OpDef& def, std::uint64_t first, std::uint64_t stride);

// The ops that have it: all of one operand but erf_inv, which narrow types define by a formula that
// is not accurate near 1.
std::vector<const ir::OpDef*> ops_with_f32_scan();

}  // namespace xylem::compiler::testing
