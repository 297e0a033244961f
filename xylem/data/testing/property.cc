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

}  // namespace xylem::data::testing
