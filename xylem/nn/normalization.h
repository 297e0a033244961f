#pragma once

#include <cstdint>

#include "xylem/core/array.h"
#include "xylem/nn/rngs.h"

namespace xylem::nn {

struct NormOptions {
  double epsilon = 1e-6;
  bool use_scale = true;
  bool use_bias = true;           // LayerNorm only
  bool use_fast_variance = true;  // E[x^2] - E[x]^2 instead of two passes
  DType param_dtype = DType::kF32;
};

// y = (x - mean) * (rsqrt(var + epsilon) * scale) + bias over the last axis, in f32 at least; the
// result has the dtype to which x and the parameters promote.
struct LayerNorm {
  Array scale, bias;
  double epsilon = 1e-6;
  bool use_fast_variance = true;

  static LayerNorm make(std::int64_t num_features, Rngs& rngs, const NormOptions& options = {});
  Array operator()(const ArrayArg& x) const;
};

// y = x * (rsqrt(mean(x^2) + epsilon) * scale) over the last axis, likewise.
struct RMSNorm {
  Array scale;
  double epsilon = 1e-6;

  static RMSNorm make(std::int64_t num_features, Rngs& rngs, const NormOptions& options = {});
  Array operator()(const ArrayArg& x) const;
};

}  // namespace xylem::nn
