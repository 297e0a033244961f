#pragma once

#include <memory>

#include "xylem/ir/ops/elementwise_binary.h"
#include "xylem/ir/ops/internal/eval_util.h"
#include "xylem/ir/ops/internal/scalar_ops.h"
#include "xylem/ir/ops/reduction.h"

// Folding elements into accumulators, as reduce and reduce_window do.

namespace xylem::ir::ops {

// A plan visits (result element, operand element) pairs in the order of evaluation:
// plan(fn) calls fn(std::int64_t result, std::int64_t operand).
//
// One-op bodies are computed directly. With `wide`, sums and products of floats accumulate in
// double (of f64 and complex: the wider type of elementary functions) and are rounded once: the
// oracle for code that sums many elements in another order. Without it every step rounds to the
// dtype.
template <class F, class A, class Plan>
void fold_as(const HostArray& x, const HostArray& init, HostArray& out, bool each_step,
             const Plan& plan) {
  auto values = std::make_unique<A[]>(static_cast<std::size_t>(x.size()));
  load(x, 0, x.size(), values.get());
  auto acc = std::make_unique<A[]>(static_cast<std::size_t>(out.size()));
  A start;
  load(init, 0, 1, &start);
  std::fill_n(acc.get(), out.size(), start);
  F f;
  if (!each_step) {
    plan([&](std::int64_t to, std::int64_t from) { acc[to] = f(acc[to], values[from]); });
  } else {
    plan([&](std::int64_t to, std::int64_t from) {
      A next = f(acc[to], values[from]);
      store(out, to, 1, &next);
      load(out, to, 1, &acc[to]);
    });
  }
  store(out, 0, out.size(), acc.get());
}

template <class F, unsigned Set, class Plan>
HostArray fold_native(const HostArray& x, const HostArray& init, const Type& result, bool wide,
                      const Plan& plan) {
  HostArray out(result.dtype(), result.dims());
  const DType t = result.dtype();
  if constexpr ((Set & (kElFloat | kElComplex)) != 0) {
    if (!wide && is_inexact(t)) {
      const bool narrow = is_float(t) && dtype_bits(t) < 32;
      with_accumulator(t, [&](auto c) { fold_as<F, decltype(c)>(x, init, out, narrow, plan); });
      return out;
    }
  }
  with_compute_type<Set, true>(t,
                               [&](auto c) { fold_as<F, decltype(c)>(x, init, out, false, plan); });
  return out;
}

template <class Plan>
std::vector<HostArray> fold_region(const EvalCall& call, const Plan& plan) {
  std::size_t n = call.result_types.size();
  std::vector<HostArray> out;
  std::vector<HostArray> inputs;
  for (std::size_t i = 0; i < n; ++i) {
    const Type& t = call.result_types[i];
    inputs.push_back(call.operands[i].astype(t.dtype()));
    HostArray init = call.operands[n + i].astype(t.dtype());
    out.emplace_back(t.dtype(), t.dims());
    for (std::int64_t k = 0; k < t.size(); ++k) set_element(out.back(), k, init);
  }
  std::vector<HostArray> args(call.operands.begin(), call.operands.end());
  plan([&](std::int64_t to, std::int64_t from) {
    for (std::size_t i = 0; i < n; ++i) {
      args[i] = element(out[i], to);
      args[n + i] = element(inputs[i], from);
    }
    std::vector<HostArray> next = call.regions.run(*call.op.regions[0], args);
    for (std::size_t i = 0; i < n; ++i) set_element(out[i], to, next[i]);
  });
  return out;
}

template <class Plan>
std::vector<HostArray> fold(const EvalCall& call, bool wide, const Plan& plan) {
  DefaultFpEnvironment fp;
  const OpDef* op = single_op_reducer(*call.op.regions[0]);
  const HostArray& x = call.operands[0];
  if (op == nullptr) return fold_region(call, plan);
  const HostArray& init = call.operands[1];
  const Type& t = call.result_types[0];
  constexpr unsigned kBits = kElBool | kElInt;
  if (op == &kAdd) return {fold_native<Add, kElAny>(x, init, t, wide, plan)};
  if (op == &kMultiply) return {fold_native<Multiply, kElAny>(x, init, t, wide, plan)};
  if (op == &kMaximum) return {fold_native<Maximum, kElAny>(x, init, t, wide, plan)};
  if (op == &kMinimum) return {fold_native<Minimum, kElAny>(x, init, t, wide, plan)};
  if (op == &kAnd) return {fold_native<And, kBits>(x, init, t, wide, plan)};
  if (op == &kOr) return {fold_native<Or, kBits>(x, init, t, wide, plan)};
  if (op == &kXor) return {fold_native<Xor, kBits>(x, init, t, wide, plan)};
  return fold_region(call, plan);
}

}  // namespace xylem::ir::ops
