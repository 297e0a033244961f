#pragma once

#include "xylem/core/random.h"

// jax.nn.initializers: values are drawn with the same keys and formulas.
namespace xylem::nn::initializers {

enum class Mode : std::uint8_t { kFanIn, kFanOut, kFanAvg };
enum class Distribution : std::uint8_t { kTruncatedNormal, kNormal, kUniform };

// A rule that makes an array of a shape from a key.
struct Initializer {
  enum class Kind : std::uint8_t { kConstant, kNormal, kUniform, kVarianceScaling };
  Kind kind = Kind::kConstant;
  double scale = 0;
  Mode mode = Mode::kFanIn;
  Distribution distribution = Distribution::kTruncatedNormal;
  int in_axis = -2, out_axis = -1;

  Array operator()(const random::Key& key, Dims shape, DType dtype = DType::kF32) const;
};

Initializer zeros();
Initializer ones();
Initializer constant(double value);
Initializer normal(double stddev = 0.01);
Initializer uniform(double scale = 0.01);
// Variance scale / fan; the truncated normal is cut at two deviations and rescaled.
Initializer variance_scaling(double scale, Mode mode, Distribution distribution, int in_axis = -2,
                             int out_axis = -1);
Initializer lecun_normal();
Initializer lecun_uniform();
Initializer glorot_normal();
Initializer glorot_uniform();
Initializer he_normal();
Initializer he_uniform();

}  // namespace xylem::nn::initializers
