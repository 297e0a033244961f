#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>

#include "xylem/base/error.h"
#include "xylem/core/transforms.h"
#include "xylem/nn/functional.h"

namespace xylem::nn {
namespace {

// B batch, T query positions, S key positions, H query heads, G key heads, K channels.
struct Sizes {
  std::int64_t B, T, S, H, G, K;
};

[[noreturn]] void fail(const char* argument, std::string expected, std::string given,
                       const char* advice, SourceLoc where) {
  throw UserError(
      ErrorParts{std::string("dot_product_attention") + argument, expected, given, advice}, where);
}

Array four(const Array& x) {
  Array r = x;
  while (r.defined() && r.ndim() < 4) r = expand_dims(r, 0);
  return r;
}

void check_broadcasts(const char* name, const Array& x, const Sizes& n, SourceLoc where) {
  if (!x.defined()) return;
  std::int64_t want[4] = {n.B, n.H, n.T, n.S};
  bool fits = x.ndim() == 4;
  for (int d = 0; fits && d < 4; ++d) fits = x.dim(d) == 1 || x.dim(d) == want[d];
  if (!fits)
    fail(name, fmt::format("broadcasts to [B, H, T, S] = [{}, {}, {}, {}]", n.B, n.H, n.T, n.S),
         x.type_string(), "Add axes of size 1 where it does not depend on them", where);
}

void check_lengths(const char* name, const Array& x, const Sizes& n, SourceLoc where) {
  if (x.defined() && (!is_integer(x.dtype()) || x.shape() != Dims{n.B}))
    fail(name, fmt::format("integers [{}]", n.B), x.type_string(),
         "Give the length of each example", where);
}

// i32[size] along axis `axis` of four.
Array positions(std::int64_t size, int axis) {
  Dims shape{1, 1, 1, 1};
  shape[axis] = size;
  return arange(size).reshape(shape);
}

Array lengths(const Array& x) { return x.astype(DType::kI32).reshape({-1, 1, 1, 1}); }

std::pair<Array, Array> attend(const ArrayArg& query, const ArrayArg& key, const ArrayArg& value,
                               const AttentionOptions& o, bool residual) {
  Array q = four(query.array), k = four(key.array), v = four(value.array);
  if (q.ndim() != 4 || k.ndim() != 4 || v.ndim() != 4 || query.array.ndim() < 3 ||
      k.shape() != v.shape() || q.dim(0) != k.dim(0) || q.dim(3) != k.dim(3) || k.dim(2) == 0 ||
      q.dim(2) % k.dim(2) != 0)
    fail("", "query [B, T, H, K], key and value [B, S, G, K] with G dividing H are needed",
         fmt::format("query {}, key {}, value {}", query.array.type_string(),
                     key.array.type_string(), value.array.type_string()),
         "Reshape the heads into axis 2", query.where);
  if (q.dtype() != k.dtype() || k.dtype() != v.dtype())
    fail("", "query, key and value of one dtype",
         fmt::format("{}, {} and {}", dtype_name(q.dtype()), dtype_name(k.dtype()),
                     dtype_name(v.dtype())),
         "Convert them with astype", query.where);
  Sizes n{q.dim(0), q.dim(1), k.dim(1), q.dim(2), k.dim(2), q.dim(3)};
  Array mask = four(o.mask), bias = four(o.bias);
  if (mask.defined() && mask.dtype() != DType::kBool)
    fail(": mask", "bools", mask.type_string(), "Compare it with 0, or pass it as bias",
         query.where);
  check_broadcasts(": mask", mask, n, query.where);
  check_broadcasts(": bias", bias, n, query.where);
  check_lengths(": query_seq_lengths", o.query_seq_lengths, n, query.where);
  check_lengths(": key_value_seq_lengths", o.key_value_seq_lengths, n, query.where);

  DType wide = q.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  double scale = o.scale.value_or(1.0 / std::sqrt(static_cast<double>(n.K)));
  bool grouped = n.G != n.H;
  Array logits;
  if (grouped) {
    // Query head h belongs to key head h / (H/G).
    Array heads = q.reshape({n.B, n.T, n.G, n.H / n.G, n.K});
    logits = einsum("btgrk,bsgk->bgrts", {heads.astype(wide), k.astype(wide)})
                 .reshape({n.B, n.H, n.T, n.S});
  } else {
    logits = einsum("bthk,bshk->bhts", {q.astype(wide), k.astype(wide)});
  }
  logits = logits * scale;
  if (bias.defined()) logits = (logits + bias).astype(wide);

  Array may;
  auto require = [&](const Array& m) { may = may.defined() ? may & m : m; };
  if (mask.defined()) require(mask);
  if (o.is_causal) require(positions(n.T, 2) >= positions(n.S, 3));
  if (o.local_window_size) {
    auto [left, right] = *o.local_window_size;
    require(positions(n.T, 2) <= positions(n.S, 3) + left);
    require(positions(n.T, 2) >= positions(n.S, 3) - right);
  }
  if (o.query_seq_lengths.defined()) require(positions(n.T, 2) < lengths(o.query_seq_lengths));
  if (o.key_value_seq_lengths.defined())
    require(positions(n.S, 3) < lengths(o.key_value_seq_lengths));
  // Finite, so that a row that sees nothing is no NaN; within f32 for all.
  double masked = -0.7 * static_cast<double>(std::numeric_limits<float>::max());
  if (may.defined()) logits = where(may, logits, masked);

  Array p = softmax(logits, -1).astype(k.dtype());
  Array y;
  if (grouped) {
    Array heads = p.reshape({n.B, n.G, n.H / n.G, n.T, n.S});
    y = einsum("bgrts,bsgk->btgrk", {heads, v}).reshape({n.B, n.T, n.H, n.K});
  } else {
    y = einsum("bhts,bshk->bthk", {p, v});
  }
  y = y.astype(q.dtype());
  if (o.query_seq_lengths.defined()) {
    Array row = positions(n.T, 1) < lengths(o.query_seq_lengths);
    y = y * row.astype(y.dtype());
  }
  y = y.reshape(query.array.shape());
  if (!residual) return {y, Array()};
  Dims shape = query.array.shape();
  shape.erase(shape.size() - 1);
  Array lse = transpose(xylem::logsumexp(logits, -1).astype(k.dtype()), {0, 2, 1});
  return {y, stop_gradient(lse.reshape(shape))};
}

}  // namespace

Array dot_product_attention(const ArrayArg& query, const ArrayArg& key, const ArrayArg& value,
                            const AttentionOptions& options) {
  return attend(query, key, value, options, false).first;
}

std::pair<Array, Array> dot_product_attention_with_residual(const ArrayArg& query,
                                                            const ArrayArg& key,
                                                            const ArrayArg& value,
                                                            const AttentionOptions& options) {
  return attend(query, key, value, options, true);
}

}  // namespace xylem::nn
