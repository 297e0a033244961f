#include "xylem/data/testing/property.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace xylem::data::testing {
namespace {

struct Recorded {
  std::vector<std::string> elements, states;  // one state more: that before the first
  bool ends = true;
};

constexpr std::size_t kMost = 400;

Recorded record(DatasetIterator<Value>& it, std::size_t most = kMost) {
  Recorded r;
  r.states.push_back(it.get_state());
  while (r.elements.size() < most) {
    const auto e = it.next();
    if (!e) return r;
    r.elements.push_back(plain(*e));
    r.states.push_back(it.get_state());
  }
  r.ends = false;
  return r;
}

std::string compare(const Recorded& all, std::size_t k, const Recorded& rest, const char* what) {
  for (std::size_t i = 0; i < rest.elements.size() || i + k < all.elements.size(); ++i) {
    if (i >= rest.elements.size() || i + k >= all.elements.size() ||
        rest.elements[i] != all.elements[i + k])
      return fmt::format("{}: state {} after {} elements: element {} is {}, not {}", what,
                         all.states[k], k, i,
                         i < rest.elements.size() ? rest.elements[i] : "missing",
                         i + k < all.elements.size() ? all.elements[i + k] : "the end");
  }
  return "";
}

nlohmann::json without_threads(nlohmann::json j) {
  if (j.is_object()) {
    if (j.value("op", "") == "to_iter") j["threads"] = j["buffer"] = 0;
    if (j.value("op", "") == "prefetch") j["buffer"] = 0;
  }
  if (j.is_structured())
    for (auto& x : j) x = without_threads(x);
  return j;
}

}  // namespace

std::string check_restores(const std::string& spec) {
  const IterDataset<Value> ds = build_spec(spec).to_iter();
  auto used = ds.iterator();
  const Recorded all = record(used);
  const std::size_t step = 1 + all.states.size() / 40;
  for (std::size_t k = 0; k < all.states.size(); k += step) {
    const std::size_t most = all.ends ? kMost : all.elements.size() - k;
    auto fresh = ds.iterator();
    fresh.set_state(all.states[k]);
    std::string problem = compare(all, k, record(fresh, most), "fresh iterator");
    if (problem.empty()) {
      used.set_state(all.states[k]);
      used.set_state(all.states[k]);
      problem = compare(all, k, record(used, most), "used iterator, twice");
    }
    if (problem.empty()) {
      used.set_state(all.states[k]);
      fresh.set_state(used.get_state());
      problem = compare(all, k, record(fresh, most), "state of the restored iterator");
    }
    if (!problem.empty()) return problem + "\n" + spec;
  }
  return "";
}

std::string check_threads(const std::string& spec) {
  const IterDataset<Value> with = build_spec(spec).to_iter();
  const IterDataset<Value> without =
      build_spec(without_threads(nlohmann::json::parse(spec)).dump()).to_iter();
  auto a = with.iterator(), b = without.iterator();
  a.start_prefetch();
  const Recorded all = record(a), plain_run = record(b);
  std::string problem = compare(plain_run, 0, all, "with threads");
  // Prefetching reports the place behind the last element, what filters passed over included or
  // not.
  const std::size_t step = 1 + all.states.size() / 8;
  for (std::size_t k = 0; problem.empty() && k < all.states.size(); k += step) {
    b.set_state(all.states[k]);
    problem = compare(all, k, record(b, all.ends ? kMost : all.elements.size() - k),
                      "restored without threads");
    if (!problem.empty()) break;
    a.set_state(plain_run.states[k]);
    problem = compare(all, k, record(a, all.ends ? kMost : all.elements.size() - k),
                      "restored with threads");
  }
  return problem.empty() ? "" : problem + "\n" + spec;
}

namespace {

// One value somewhere in the state replaced, or a member dropped.
nlohmann::json changed(const nlohmann::json& j, Generator& g) {
  if (j.is_structured() && !j.empty() && g.random() < 0.9) {
    nlohmann::json out = j;
    auto at = out.begin();
    std::advance(at, g.integers(static_cast<std::int64_t>(out.size())));
    if (g.random() < 0.1)
      out.erase(at);
    else
      *at = changed(*at, g);
    return out;
  }
  const std::int64_t numbers[] = {
      0, 1, -1, 2, 7, 1000, INT64_MAX, INT64_MIN, std::int64_t{1} << 60};
  switch (g.integers(7)) {
    case 0: return nullptr;
    case 1: return nlohmann::json::array();
    case 2: return nlohmann::json::object();
    case 3: return true;
    default: return numbers[g.integers(9)];
  }
}

}  // namespace

std::string check_hostile_states(const std::string& spec, std::uint64_t seed) {
  Generator g(Philox(Philox::key_of_seed(seed), {0, 0, 0, 1}));
  const IterDataset<Value> ds = build_spec(spec).to_iter();
  auto it = ds.iterator();
  const Recorded all = record(it, 20);
  for (int k = 0; k < 20; ++k) {
    const auto& state = all.states[static_cast<std::size_t>(
        g.integers(static_cast<std::int64_t>(all.states.size())))];
    const std::string hostile = changed(nlohmann::json::parse(state), g).dump();
    try {
      it.set_state(hostile);
      for (int i = 0; i < 5 && it.next(); ++i) {
      }
      it.get_state();
    } catch (const UserError&) {
    } catch (const std::exception& e) {
      return fmt::format("{} from {}\n{}", e.what(), hostile, spec);
    }
    const std::size_t at = all.states.size() / 2;
    it.set_state(all.states[at]);
    const std::string problem =
        compare(all, at, record(it, all.elements.size() - at), "after a hostile state");
    if (!problem.empty()) return problem + "\n" + hostile + "\n" + spec;
  }
  return "";
}

}  // namespace xylem::data::testing
