#pragma once

#include <cstdint>

#include "xylem/core/array.h"
#include "xylem/core/numpy.h"
#include "xylem/nn/initializers.h"
#include "xylem/nn/rngs.h"

namespace xylem::nn {

struct LinearOptions {
  bool use_bias = true;
  initializers::Initializer kernel_init = initializers::lecun_normal();
  initializers::Initializer bias_init = initializers::zeros();
  DType param_dtype = DType::kF32;
};

// y = x W + b. kernel [in, out], bias [out] (undefined without).
struct Linear {
  Array kernel, bias;

  static Linear make(std::int64_t in_features, std::int64_t out_features, Rngs& rngs,
                     const LinearOptions& options = {});
  Array operator()(const ArrayArg& x) const;
};

// A table of vectors: embedding [num_embeddings, features].
struct Embed {
  Array embedding;

  static Embed make(std::int64_t num_embeddings, std::int64_t features, Rngs& rngs,
                    DType param_dtype = DType::kF32);
  // Rows of the table; an index out of range gives NaN (the only row of a table of one).
  Array operator()(const ArrayArg& indices) const;
  // Logits against every row: x E^T.
  Array attend(const ArrayArg& x) const;
};

// x where kept, over the keep probability; 0 elsewhere. Identity if deterministic or rate is 0.
struct Dropout {
  double rate = 0;

  Array operator()(const ArrayArg& x, const random::Key& key, bool deterministic = false) const;
};

}  // namespace xylem::nn
