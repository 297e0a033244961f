#include "xylem/optim/transform.h"

#include <limits>

#include "xylem/core/numpy.h"

namespace xylem::optim {

bool is_matrix(const std::string&, const Array& param) { return param.ndim() >= 2; }

Array global_norm(const std::vector<Array>& leaves) {
  Array total;
  for (const Array& g : leaves) {
    if (!g.defined()) continue;
    Array s = sum(is_complex(g.dtype()) ? real(g * conj(g)) : square(g));
    total = total.defined() ? total + s : s;
  }
  return total.defined() ? sqrt(total) : zeros({});
}

namespace internal {

std::vector<Array> clip_by_global_norm(std::vector<Array> updates, double max_norm) {
  Array norm = global_norm(updates);
  Array inside = norm < max_norm;
  for (Array& g : updates)
    if (g.defined()) g = where(inside, g, (g / norm.astype(g.dtype())) * max_norm);
  return updates;
}

Array zero_count() { return zeros({}, DType::kI32); }

// Stays at the largest value instead of wrapping.
Array safe_increment(const Array& count) {
  int top = std::numeric_limits<std::int32_t>::max();
  return where(count < top, count + 1, top);
}

std::vector<Array> zeros_like_floats(const std::vector<Array>& params) {
  std::vector<Array> r;
  for (const Array& p : params)
    r.push_back(p.defined() && is_inexact(p.dtype()) ? zeros_like(p) : Array());
  return r;
}

AdamLeaves scale_by_adam(const std::vector<Array>& g, const std::vector<Array>& mu,
                         const std::vector<Array>& nu, const Array& count, double b1, double b2,
                         double eps, double eps_root) {
  AdamLeaves r;
  r.count = safe_increment(count);
  // Corrections are formed once, in f32 at least.
  auto correction = [&](double decay, DType t) {
    DType wide = t == DType::kF64 ? t : DType::kF32;
    return (1.0 - power(full({}, decay, wide), r.count.astype(wide))).astype(t);
  };
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (!g[i].defined()) {
      r.updates.push_back(Array());
      r.mu.push_back(mu[i]);
      r.nu.push_back(nu[i]);
      continue;
    }
    Array m = (1 - b1) * g[i] + b1 * mu[i];
    Array v = (1 - b2) * square(g[i]) + b2 * nu[i];
    DType real_type = real_dtype(m.dtype());
    Array m_hat = m / correction(b1, real_type), v_hat = v / correction(b2, real_type);
    Array root = eps_root == 0 ? sqrt(v_hat) : sqrt(v_hat + eps_root);
    r.updates.push_back(m_hat / (root + eps));
    r.mu.push_back(m);
    r.nu.push_back(v);
  }
  return r;
}

std::vector<Array> add_decayed_weights(const std::vector<Array>& u,
                                       const std::vector<Array>& params,
                                       const std::vector<std::string>& paths, double weight_decay,
                                       const MaskFn& mask) {
  std::vector<Array> r = u;
  for (std::size_t i = 0; i < u.size(); ++i)
    if (u[i].defined() && (!mask || mask(paths[i], params[i])))
      r[i] = u[i] + weight_decay * params[i];
  return r;
}

std::vector<Array> descend(const std::vector<Array>& u, const Array& rate) {
  std::vector<Array> r;
  for (const Array& g : u) r.push_back(g.defined() ? -rate.astype(real_dtype(g.dtype())) * g : g);
  return r;
}

TraceLeaves trace(const std::vector<Array>& u, const std::vector<Array>& t, double decay,
                  bool nesterov) {
  TraceLeaves r;
  for (std::size_t i = 0; i < u.size(); ++i) {
    if (!u[i].defined()) {
      r.updates.push_back(u[i]);
      r.trace.push_back(t[i]);
      continue;
    }
    Array next = u[i] + decay * t[i];
    r.updates.push_back(nesterov ? u[i] + decay * next : next);
    r.trace.push_back(next);
  }
  return r;
}

std::vector<Array> apply_updates(const std::vector<Array>& params, const std::vector<Array>& u) {
  std::vector<Array> r;
  for (std::size_t i = 0; i < params.size(); ++i)
    r.push_back(u[i].defined() ? (params[i] + u[i]).astype(params[i].dtype()) : params[i]);
  return r;
}

}  // namespace internal
}  // namespace xylem::optim
