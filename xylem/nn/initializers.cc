#include "xylem/nn/initializers.h"

#include <fmt/format.h>

#include <cmath>

#include "xylem/base/error.h"
#include "xylem/core/numpy.h"

namespace xylem::nn::initializers {
namespace {

// Fans of a kernel: the in and out axes times the size of the other (receptive field) axes.
double fan(const Initializer& init, const Dims& shape) {
  int n = shape.ssize();
  if (n < 2)
    throw_user_error({"initializer", "variance scaling needs a shape of two or more axes",
                      to_string(shape), "Use normal, uniform or zeros for vectors"});
  std::int64_t in = shape[init.in_axis < 0 ? init.in_axis + n : init.in_axis];
  std::int64_t out = shape[init.out_axis < 0 ? init.out_axis + n : init.out_axis];
  double field =
      static_cast<double>(num_elements(shape)) / static_cast<double>(in) / static_cast<double>(out);
  double fan_in = static_cast<double>(in) * field, fan_out = static_cast<double>(out) * field;
  switch (init.mode) {
    case Mode::kFanIn: return fan_in;
    case Mode::kFanOut: return fan_out;
    case Mode::kFanAvg: break;
  }
  return (fan_in + fan_out) / 2;
}

// Deviation of the standard normal cut at -2 and 2.
constexpr double kTruncatedDeviation = 0.87962566103423978;

Array scalar(DType dtype, double v) { return full({}, v, dtype); }

}  // namespace

Array Initializer::operator()(const random::Key& key, Dims shape, DType dtype) const {
  switch (kind) {
    case Kind::kConstant: return full(shape, scale, dtype);
    case Kind::kNormal: return multiply(random::normal(key, shape, dtype), scalar(dtype, scale));
    case Kind::kUniform: return multiply(random::uniform(key, shape, dtype), scalar(dtype, scale));
    case Kind::kVarianceScaling: break;
  }
  // The variance is a number of the array's dtype, as in the original.
  Array variance = divide(scalar(dtype, scale), scalar(dtype, std::max(1.0, fan(*this, shape))));
  switch (distribution) {
    case Distribution::kNormal: return multiply(random::normal(key, shape, dtype), sqrt(variance));
    case Distribution::kUniform:
      return multiply(random::uniform(key, shape, dtype, -1.0, 1.0), sqrt(multiply(3.0, variance)));
    case Distribution::kTruncatedNormal: break;
  }
  Array stddev = divide(sqrt(variance), scalar(dtype, kTruncatedDeviation));
  return multiply(random::truncated_normal(key, -2.0, 2.0, shape, dtype), stddev);
}

Initializer zeros() { return {}; }
Initializer ones() { return constant(1); }
Initializer constant(double value) {
  return {.kind = Initializer::Kind::kConstant, .scale = value};
}
Initializer normal(double stddev) { return {.kind = Initializer::Kind::kNormal, .scale = stddev}; }
Initializer uniform(double scale) { return {.kind = Initializer::Kind::kUniform, .scale = scale}; }

Initializer variance_scaling(double scale, Mode mode, Distribution distribution, int in_axis,
                             int out_axis) {
  return {.kind = Initializer::Kind::kVarianceScaling,
          .scale = scale,
          .mode = mode,
          .distribution = distribution,
          .in_axis = in_axis,
          .out_axis = out_axis};
}
Initializer lecun_normal() {
  return variance_scaling(1, Mode::kFanIn, Distribution::kTruncatedNormal);
}
Initializer lecun_uniform() { return variance_scaling(1, Mode::kFanIn, Distribution::kUniform); }
Initializer glorot_normal() {
  return variance_scaling(1, Mode::kFanAvg, Distribution::kTruncatedNormal);
}
Initializer glorot_uniform() { return variance_scaling(1, Mode::kFanAvg, Distribution::kUniform); }
Initializer he_normal() {
  return variance_scaling(2, Mode::kFanIn, Distribution::kTruncatedNormal);
}
Initializer he_uniform() { return variance_scaling(2, Mode::kFanIn, Distribution::kUniform); }

}  // namespace xylem::nn::initializers
