#pragma once

#include "xylem/core/numpy.h"
#include "xylem/core/random.h"

// The functions of jax.nn.
namespace xylem::nn {

Array relu(const ArrayArg& x);  // derivative 0 at 0
Array gelu(const ArrayArg& x, bool approximate = true);
Array silu(const ArrayArg& x);
Array sigmoid(const ArrayArg& x);
Array softplus(const ArrayArg& x);
Array log_sigmoid(const ArrayArg& x);
Array elu(const ArrayArg& x, double alpha = 1.0);
Array leaky_relu(const ArrayArg& x, double negative_slope = 0.01);
// exp(x - max) / sum along axis; the maximum takes no part in the derivative.
Array softmax(const ArrayArg& x, int axis = -1);
Array log_softmax(const ArrayArg& x, int axis = -1);
Array one_hot(const ArrayArg& x, std::int64_t num_classes, DType dtype = DType::kF32);

struct AttentionOptions {
  bool is_causal = false;
  Array mask;         // bool, broadcasts to [B, H, T, S]; true: may attend
  double scale = -1;  // 1/sqrt(K) if negative
};
// jax.nn.dot_product_attention: query [B, T, H, K], key and value [B, S, G, K] with G dividing H.
// Logits in f32 (f64 for f64), scaled after the product, -0.7 * the largest float where masked,
// softmax in f32.
Array dot_product_attention(const ArrayArg& query, const ArrayArg& key, const ArrayArg& value,
                            const AttentionOptions& options = {});

// Rotary positions, half-split: channel i of [..., T, H, K] turns with i + K/2 by
// position * max_timescale^(-2i/K). positions: i32[T] or i32[B, T].
Array apply_rotary(const ArrayArg& x, const ArrayArg& positions, double max_timescale = 10000);
// The same for positions 0 … T-1, whose sines are part of the program.
Array apply_rotary(const ArrayArg& x, double max_timescale = 10000);

}  // namespace xylem::nn
