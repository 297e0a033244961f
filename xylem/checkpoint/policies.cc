#include "xylem/checkpoint/policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "xylem/base/error.h"
#include "xylem/base/signal.h"

namespace xylem::checkpoint {
namespace {

void require_positive(const char* what, std::int64_t n, std::int64_t least = 1) {
  if (n < least)
    throw_user_error({what, fmt::format("a number of at least {}", least), fmt::format("{}", n),
                      "Give it another one"});
}

void keep_newest(std::vector<bool>& keep, const std::optional<std::int64_t>& n) {
  if (!n) return;
  std::int64_t kept = 0;
  for (std::size_t i = keep.size(); i-- > 0;)
    if (keep[i] && ++kept > *n) keep[i] = false;
}

double seconds_between(std::int64_t a, std::int64_t b) { return static_cast<double>(b - a) * 1e-9; }

}  // namespace

SaveDecision save_every_n_steps(std::int64_t n) {
  require_positive("save_every_n_steps", n);
  return [n](const SaveContext& c) { return c.step % n == 0; };
}

SaveDecision save_on_steps(std::vector<std::int64_t> steps) {
  return [steps](const SaveContext& c) {
    return std::find(steps.begin(), steps.end(), c.step) != steps.end();
  };
}

SaveDecision save_first() {
  return [](const SaveContext& c) { return !c.latest_step; };
}

SaveDecision save_on_preemption() {
  return [](const SaveContext&) { return stop_requested(); };
}

SaveDecision save_continuously(double min_seconds) {
  return [min_seconds](const SaveContext& c) {
    return !c.is_saving &&
           (!c.latest_time_ns || seconds_between(*c.latest_time_ns, c.now_ns) >= min_seconds);
  };
}

SaveDecision save_if_any(std::vector<SaveDecision> policies) {
  return [policies](const SaveContext& c) {
    return std::any_of(policies.begin(), policies.end(), [&](const auto& p) { return p(c); });
  };
}

Preservation keep_all() {
  return [](const std::vector<CheckpointInfo>& all, std::int64_t) {
    return std::vector<bool>(all.size(), true);
  };
}

Preservation keep_latest(std::int64_t n) {
  require_positive("keep_latest", n, 0);
  return [n](const std::vector<CheckpointInfo>& all, std::int64_t) {
    std::vector<bool> keep(all.size(), true);
    keep_newest(keep, n);
    return keep;
  };
}

Preservation keep_every_n_seconds(double seconds) {
  return [seconds](const std::vector<CheckpointInfo>& all, std::int64_t) {
    std::vector<bool> keep;
    std::int64_t last = 0;
    for (const CheckpointInfo& c : all) {
      keep.push_back(keep.empty() || seconds_between(last, c.time_ns) >= seconds);
      if (keep.back()) last = c.time_ns;
    }
    return keep;
  };
}

Preservation keep_every_n_steps(std::int64_t n, bool exact,
                                std::optional<std::int64_t> max_to_keep) {
  require_positive("keep_every_n_steps", n);
  return [=](const std::vector<CheckpointInfo>& all, std::int64_t) {
    std::vector<bool> keep;
    std::int64_t last = 0;
    for (const CheckpointInfo& c : all) {
      keep.push_back(exact ? c.step % n == 0 : keep.empty() || c.step - last >= n);
      if (keep.back()) last = c.step;
    }
    keep_newest(keep, max_to_keep);
    return keep;
  };
}

Preservation keep_closest_to_n_steps(std::int64_t n, std::optional<std::int64_t> max_to_keep) {
  require_positive("keep_closest_to_n_steps", n);
  return [=](const std::vector<CheckpointInfo>& all, std::int64_t) {
    struct Best {
      std::size_t index;
      double distance;
    };
    std::map<double, Best> best;
    for (std::size_t i = 0; i < all.size(); ++i) {
      // Halves to the even multiple, as Python rounds.
      const auto size = static_cast<double>(n), step = static_cast<double>(all[i].step);
      const double k = std::nearbyint(step / size);
      const double distance = std::abs(step - k * size);
      const auto it = best.find(k);
      if (it == best.end() || distance <= it->second.distance) best[k] = {i, distance};
    }
    std::vector<bool> keep(all.size(), false);
    for (const auto& [k, b] : best) keep[b.index] = true;
    if (!keep.empty()) keep.back() = true;
    keep_newest(keep, max_to_keep);
    return keep;
  };
}

Preservation keep_steps(std::vector<std::int64_t> steps) {
  return [steps](const std::vector<CheckpointInfo>& all, std::int64_t) {
    std::vector<bool> keep;
    for (const CheckpointInfo& c : all)
      keep.push_back(std::find(steps.begin(), steps.end(), c.step) != steps.end());
    return keep;
  };
}

Preservation keep_best(std::int64_t n, bool least, bool keep_without_metric) {
  require_positive("keep_best", n, 0);
  return [=](const std::vector<CheckpointInfo>& all, std::int64_t) {
    if (static_cast<std::int64_t>(all.size()) <= n) return std::vector<bool>(all.size(), true);
    std::vector<bool> keep(all.size(), false);
    if (n == 0) return keep;
    std::vector<std::size_t> ranked;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].metric)
        ranked.push_back(i);
      else
        keep[i] = keep_without_metric;
    }
    std::stable_sort(ranked.begin(), ranked.end(), [&](std::size_t a, std::size_t b) {
      return least ? *all[a].metric > *all[b].metric : *all[a].metric < *all[b].metric;
    });
    for (std::size_t i = 0; i < ranked.size() && static_cast<std::int64_t>(i) < n; ++i)
      keep[ranked[ranked.size() - 1 - i]] = true;
    return keep;
  };
}

Preservation keep_for(double seconds) {
  return [seconds](const std::vector<CheckpointInfo>& all, std::int64_t now_ns) {
    std::vector<bool> keep;
    bool young = false;
    for (const CheckpointInfo& c : all) {
      young = young || seconds_between(c.time_ns, now_ns) <= seconds;
      keep.push_back(young);
    }
    return keep;
  };
}

Preservation keep_if_any(std::vector<Preservation> policies) {
  return [policies](const std::vector<CheckpointInfo>& all, std::int64_t now_ns) {
    std::vector<bool> keep(all.size(), false);
    for (const Preservation& p : policies) {
      const std::vector<bool> more = p(all, now_ns);
      for (std::size_t i = 0; i < keep.size(); ++i) keep[i] = keep[i] || more[i];
    }
    return keep;
  };
}

}  // namespace xylem::checkpoint
