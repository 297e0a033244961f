#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "xylem/base/tree.h"
#include "xylem/core/array.h"
#include "xylem/optim/schedule.h"

// Gradient transformations, as Optax's. A transformation has
//   init(params) -> state                       a tree; `T` is the type of params
//   update(updates, state, params) -> pair(updates, state)
// and no state of its own. Undefined leaves (gradients of integers) are passed over.
namespace xylem::optim {

struct EmptyState {};

// True for the leaves that a transformation applies to, by path and parameter. Empty: all.
using MaskFn = std::function<bool(const std::string& path, const Array& param)>;
// Matrices and higher: what weight decay is usually applied to.
bool is_matrix(const std::string& path, const Array& param);

namespace internal {

// The rules on leaves, implemented once.
std::vector<Array> clip_by_global_norm(std::vector<Array> updates, double max_norm);
struct AdamLeaves {
  std::vector<Array> updates, mu, nu;
  Array count;
};
AdamLeaves scale_by_adam(const std::vector<Array>& g, const std::vector<Array>& mu,
                         const std::vector<Array>& nu, const Array& count, double b1, double b2,
                         double eps, double eps_root);
std::vector<Array> add_decayed_weights(const std::vector<Array>& u,
                                       const std::vector<Array>& params,
                                       const std::vector<std::string>& paths, double weight_decay,
                                       const MaskFn& mask);
// -rate * u, the rate rounded to each leaf's own dtype first.
std::vector<Array> descend(const std::vector<Array>& u, const Array& rate);
struct TraceLeaves {
  std::vector<Array> updates, trace;
};
TraceLeaves trace(const std::vector<Array>& u, const std::vector<Array>& t, double decay,
                  bool nesterov);
Array safe_increment(const Array& count);
std::vector<Array> zeros_like_floats(const std::vector<Array>& params);
std::vector<Array> apply_updates(const std::vector<Array>& params, const std::vector<Array>& u);
Array zero_count();

template <class T>
T with_leaves(const T& like, const std::vector<Array>& leaves) {
  return tree::unflatten<Array>(like, std::span<const Array>(leaves));
}

}  // namespace internal

// Scales all updates so that their global norm is at most max_norm.
struct ClipByGlobalNorm {
  double max_norm;

  template <class T>
  EmptyState init(const T&) const {
    return {};
  }
  template <class T>
  std::pair<T, EmptyState> update(const T& u, const EmptyState&, const T&) const {
    return {
        internal::with_leaves(u, internal::clip_by_global_norm(tree::leaves<Array>(u), max_norm)),
        {}};
  }
};
inline ClipByGlobalNorm clip_by_global_norm(double max_norm) { return {max_norm}; }

template <class T>
struct ScaleByAdamState {
  Array count;
  T mu, nu;
};

// mu = b1 mu + (1 - b1) g; nu = b2 nu + (1 - b2) g^2; update = mu^ / (sqrt(nu^ + eps_root) + eps)
// with bias-corrected moments. Kingma and Ba, "Adam" (2014).
struct ScaleByAdam {
  double b1 = 0.9, b2 = 0.999, eps = 1e-8, eps_root = 0;

  template <class T>
  ScaleByAdamState<T> init(const T& params) const {
    // Of each moment its own memory, so that both can be donated.
    auto zeros = [&] {
      return internal::with_leaves(params,
                                   internal::zeros_like_floats(tree::leaves<Array>(params)));
    };
    return {internal::zero_count(), zeros(), zeros()};
  }
  template <class T>
  std::pair<T, ScaleByAdamState<T>> update(const T& u, const ScaleByAdamState<T>& s,
                                           const T&) const {
    internal::AdamLeaves r =
        internal::scale_by_adam(tree::leaves<Array>(u), tree::leaves<Array>(s.mu),
                                tree::leaves<Array>(s.nu), s.count, b1, b2, eps, eps_root);
    return {internal::with_leaves(u, r.updates),
            {r.count, internal::with_leaves(s.mu, r.mu), internal::with_leaves(s.nu, r.nu)}};
  }
};
inline ScaleByAdam scale_by_adam(double b1 = 0.9, double b2 = 0.999, double eps = 1e-8,
                                 double eps_root = 0) {
  return {b1, b2, eps, eps_root};
}

// update + weight_decay * param where the mask holds.
struct AddDecayedWeights {
  double weight_decay;
  MaskFn mask;

  template <class T>
  EmptyState init(const T&) const {
    return {};
  }
  template <class T>
  std::pair<T, EmptyState> update(const T& u, const EmptyState&, const T& params) const {
    return {internal::with_leaves(u, internal::add_decayed_weights(
                                         tree::leaves<Array>(u), tree::leaves<Array>(params),
                                         tree::paths<Array>(params), weight_decay, mask)),
            {}};
  }
};
inline AddDecayedWeights add_decayed_weights(double weight_decay, MaskFn mask = nullptr) {
  return {weight_decay, std::move(mask)};
}

struct ScaleByScheduleState {
  Array count;
};

// -learning_rate(count) * update.
struct ScaleByLearningRate {
  Schedule learning_rate;

  template <class T>
  ScaleByScheduleState init(const T&) const {
    return {internal::zero_count()};
  }
  template <class T>
  std::pair<T, ScaleByScheduleState> update(const T& u, const ScaleByScheduleState& s,
                                            const T&) const {
    return {
        internal::with_leaves(u, internal::descend(tree::leaves<Array>(u), learning_rate(s.count))),
        {internal::safe_increment(s.count)}};
  }
};
inline ScaleByLearningRate scale_by_learning_rate(Schedule learning_rate) {
  return {std::move(learning_rate)};
}

template <class T>
struct TraceState {
  T trace;
};

// Momentum: trace = g + decay * trace.
struct Trace {
  double decay;
  bool nesterov = false;

  template <class T>
  TraceState<T> init(const T& params) const {
    return {
        internal::with_leaves(params, internal::zeros_like_floats(tree::leaves<Array>(params)))};
  }
  template <class T>
  std::pair<T, TraceState<T>> update(const T& u, const TraceState<T>& s, const T&) const {
    internal::TraceLeaves r =
        internal::trace(tree::leaves<Array>(u), tree::leaves<Array>(s.trace), decay, nesterov);
    return {internal::with_leaves(u, r.updates), {internal::with_leaves(s.trace, r.trace)}};
  }
};
inline Trace trace(double decay, bool nesterov = false) { return {decay, nesterov}; }

// Transformations one after the other; the state is the tuple of theirs.
template <class... Tx>
struct Chain {
  std::tuple<Tx...> parts;

  template <class T>
  auto init(const T& params) const {
    return std::apply([&](const Tx&... tx) { return std::tuple{tx.init(params)...}; }, parts);
  }
  template <class T, class State>
  std::pair<T, State> update(T u, State s, const T& params) const {
    step<0>(u, s, params);
    return {std::move(u), std::move(s)};
  }

 private:
  template <std::size_t I, class T, class State>
  void step(T& u, State& s, const T& params) const {
    if constexpr (I < sizeof...(Tx)) {
      auto [next, state] = std::get<I>(parts).update(u, std::get<I>(s), params);
      u = std::move(next);
      std::get<I>(s) = std::move(state);
      step<I + 1>(u, s, params);
    }
  }
};
template <class... Tx>
Chain<Tx...> chain(Tx... tx) {
  return {std::tuple<Tx...>(std::move(tx)...)};
}

struct AdamwOptions {
  double b1 = 0.9, b2 = 0.999, eps = 1e-8, eps_root = 0, weight_decay = 1e-4;
  MaskFn mask = nullptr;
};
// Adam with decoupled weight decay. Loshchilov and Hutter (2019).
inline auto adamw(Schedule learning_rate, const AdamwOptions& o = {}) {
  return chain(scale_by_adam(o.b1, o.b2, o.eps, o.eps_root),
               add_decayed_weights(o.weight_decay, o.mask),
               scale_by_learning_rate(std::move(learning_rate)));
}
inline auto adam(Schedule learning_rate, double b1 = 0.9, double b2 = 0.999, double eps = 1e-8) {
  return chain(scale_by_adam(b1, b2, eps), scale_by_learning_rate(std::move(learning_rate)));
}
inline auto sgd(Schedule learning_rate) {
  return chain(scale_by_learning_rate(std::move(learning_rate)));
}
inline auto sgd(Schedule learning_rate, double momentum, bool nesterov = false) {
  return chain(trace(momentum, nesterov), scale_by_learning_rate(std::move(learning_rate)));
}

// params + updates, in the parameters' dtypes; parameters without an update stay.
template <class T>
T apply_updates(const T& params, const T& updates) {
  return internal::with_leaves(
      params, internal::apply_updates(tree::leaves<Array>(params), tree::leaves<Array>(updates)));
}

// sqrt of the sum of squares of all leaves.
Array global_norm(const std::vector<Array>& leaves);
template <class T>
Array global_norm(const T& t) {
  return global_norm(tree::leaves<Array>(t));
}

}  // namespace xylem::optim
