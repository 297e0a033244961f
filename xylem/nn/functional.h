#pragma once

#include <optional>
#include <utility>

#include "xylem/core/numpy.h"
#include "xylem/core/random.h"

// The functions of jax.nn.
namespace xylem::nn {

Array relu(const ArrayArg& x);   // derivative 0 at 0
Array relu6(const ArrayArg& x);  // min(max(x, 0), 6), derivative 0 at both ends
Array gelu(const ArrayArg& x, bool approximate = true);
Array silu(const ArrayArg& x);   // x sigmoid(x)
Array swish(const ArrayArg& x);  // the same
Array mish(const ArrayArg& x);   // x tanh(softplus(x))
Array sigmoid(const ArrayArg& x);
Array hard_sigmoid(const ArrayArg& x);  // relu6(x + 3) / 6
Array hard_silu(const ArrayArg& x);     // x hard_sigmoid(x)
Array hard_swish(const ArrayArg& x);    // the same
Array hard_tanh(const ArrayArg& x);     // clipped to [-1, 1], derivative 1 at both ends
Array softplus(const ArrayArg& x);      // log(1 + e^x)
Array log_sigmoid(const ArrayArg& x);
Array soft_sign(const ArrayArg& x);                          // x / (|x| + 1)
Array squareplus(const ArrayArg& x, const ArrayArg& b = 4);  // (x + sqrt(x² + b)) / 2
Array sparse_plus(const ArrayArg& x);     // 0, (x + 1)² / 4, x: from below -1 to above 1
Array sparse_sigmoid(const ArrayArg& x);  // its derivative
Array elu(const ArrayArg& x, double alpha = 1.0);
Array celu(const ArrayArg& x, double alpha = 1.0);
Array selu(const ArrayArg& x);
Array leaky_relu(const ArrayArg& x, double negative_slope = 0.01);
// The first half along axis times the sigmoid of the second.
Array glu(const ArrayArg& x, int axis = -1);
Array log1mexp(const ArrayArg& x);  // log(1 - e^-x) for x > 0

// exp(x - max) / sum along axis; the maximum takes no part in the derivative. `mask` (bool): only
// where it holds; the others are 0 (of log_softmax -∞), as are all where it holds nowhere.
Array softmax(const ArrayArg& x, const AxisArg& axis = -1, const Array& mask = Array());
Array log_softmax(const ArrayArg& x, const AxisArg& axis = -1, const Array& mask = Array());

struct LogsumexpOptions {
  AxisArg axis = {};
  Array b = {};  // factors of the exponentials
  bool keepdims = false;
  Array mask = {};  // bool: which elements take part
};
// log Σ b e^x; NaN where the sum is negative. with_sign: log |Σ b e^x| and the sign.
Array logsumexp(const ArrayArg& x, const LogsumexpOptions& options);
std::pair<Array, Array> logsumexp_with_sign(const ArrayArg& x,
                                            const LogsumexpOptions& options = {});
// log of the mean of e^x.
Array logmeanexp(const ArrayArg& x, const AxisArg& axis = {}, const Array& mask = Array(),
                 bool keepdims = false);

struct StandardizeOptions {
  Array mean = {}, variance = {};  // computed along the axis if undefined
  double epsilon = 1e-5;
  Array mask = {};      // bool: what mean and variance are taken of
  bool stable = false;  // variance of x - mean, instead of the mean square less the squared mean
};
// (x - mean) / sqrt(variance + epsilon) along an axis.
Array standardize(const ArrayArg& x, const AxisArg& axis = -1,
                  const StandardizeOptions& options = {});

// Zero where x is no class. The classes' axis stands at `axis` of the result.
Array one_hot(const ArrayArg& x, std::int64_t num_classes, DType dtype = DType::kF32,
              int axis = -1);

struct AttentionOptions {
  bool is_causal = false;                      // position i sees keys 0 … i
  Array mask = {};                             // bool, broadcasts to [B, H, T, S]; true: may attend
  std::optional<double> scale = std::nullopt;  // 1/sqrt(K) if absent
  Array bias = {};                             // added to the logits, broadcasts to [B, H, T, S]
  Array query_seq_lengths = {};                // i32[B]: rows behind are 0
  Array key_value_seq_lengths = {};            // i32[B]: keys behind are not seen
  // How far to the left and right of its own position a query sees.
  std::optional<std::pair<std::int64_t, std::int64_t>> local_window_size = std::nullopt;
};
// jax.nn.dot_product_attention: query [B, T, H, K], key and value [B, S, G, K] with G dividing H,
// or all without B. Logits in f32 (f64 for f64), scaled after the product, -0.7 * the largest float
// where masked, softmax in f32. A row that sees nothing takes the mean of the values.
Array dot_product_attention(const ArrayArg& query, const ArrayArg& key, const ArrayArg& value,
                            const AttentionOptions& options = {});
// The same with the logsumexp of the logits, [B, T, H], without derivative.
std::pair<Array, Array> dot_product_attention_with_residual(const ArrayArg& query,
                                                            const ArrayArg& key,
                                                            const ArrayArg& value,
                                                            const AttentionOptions& options = {});

// Rotary positions, half-split: channel i of [..., T, H, K] turns with i + K/2 by
// position * max_timescale^(-2i/K). positions: i32[T] or i32[B, T].
Array apply_rotary(const ArrayArg& x, const ArrayArg& positions, double max_timescale = 10000);
// The same for positions 0 … T-1, whose sines are part of the program.
Array apply_rotary(const ArrayArg& x, double max_timescale = 10000);

}  // namespace xylem::nn
