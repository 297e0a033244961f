#include "xylem/data/node.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <set>

#include "xylem/data/random.h"

namespace xylem::data {

PipelineOptions PipelineOptions::or_else(const PipelineOptions& other) const {
  PipelineOptions o = *this;
  if (!o.filter_warn_threshold) o.filter_warn_threshold = other.filter_warn_threshold;
  if (!o.filter_raise_threshold) o.filter_raise_threshold = other.filter_raise_threshold;
  if (!o.on_error) o.on_error = other.on_error;
  if (!o.timing) o.timing = other.timing;
  if (!o.debug) o.debug = other.debug;
  if (!o.debug_sink) o.debug_sink = other.debug_sink;
  return o;
}

EvalContext IteratorContext::eval() const {
  EvalContext c;
  c.timing = options.timing.value_or(false);
  c.debug = options.debug.value_or(false);
  if (c.debug && options.debug_sink)
    c.sink = std::make_shared<const std::function<void(const std::string&)>>(options.debug_sink);
  return c;
}

bool Node::sparse() const {
  return std::ranges::any_of(parents_, [](const auto& p) { return p->sparse(); });
}

std::string Node::origin(std::int64_t index) const {
  return parents_.empty() ? fmt::format("element {}", index) : parents_[0]->origin(index);
}

std::string Node::title() const {
  std::string s(kind());
  if (!name_.empty()) s += ":" + name_;
  if (const std::string a = arguments(); !a.empty()) s += "(" + a + ")";
  return s;
}

std::string Node::path() const {
  const Node* n = this;
  std::vector<std::string> parts;
  while (true) {
    if (!n->is_mark()) parts.push_back(n->title());
    if (n->parents_.empty()) break;
    n = n->parents_[0].get();
  }
  std::ranges::reverse(parts);
  return fmt::format("{}", fmt::join(parts, " > "));
}

void Node::set_parents(std::vector<std::shared_ptr<const Node>> parents) {
  parents_ = std::move(parents);
  for (const auto& p : parents_)
    if (p->compat() == Compat::grain) compat_ = Compat::grain;
}

std::uint64_t Node::resolve_seed(std::optional<std::int64_t> given, bool bits32) const {
  if (given) {
    if (*given < 0 || (bits32 && *given > 0xffffffff))
      throw_user_error({fmt::format("{}: seed", kind()),
                        bits32 ? "an integer from 0 to 2^32 - 1" : "an integer from 0 on",
                        fmt::format("{}", *given), "Give another seed"});
    return static_cast<std::uint64_t>(*given);
  }
  std::vector<std::uint64_t> entropy;
  std::deque<std::pair<const Node*, std::uint64_t>> queue;
  for (const auto& p : parents_) queue.emplace_back(p.get(), 1);
  while (!queue.empty()) {
    const auto [n, depth] = queue.front();
    queue.pop_front();
    if (const auto seed = n->seed_mark()) {
      entropy.push_back(*seed);
      entropy.push_back(depth);
      continue;
    }
    // A mark stands for the node that it marks.
    if (n->is_mark())
      queue.emplace_front(n->parents_[0].get(), depth);
    else if (!n->hides_seeds())
      for (const auto& p : n->parents_) queue.emplace_back(p.get(), depth + 1);
  }
  if (entropy.empty())
    throw_user_error({fmt::format("{}: seed", kind()), "a seed of its own or one from above",
                      "neither", "Give `seed`, or call .seed(...) on the data set before"});
  return derive_seed(entropy);
}

namespace internal {

std::int64_t now_ns() {
  timespec t;
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

namespace {
thread_local std::int64_t g_children_ns = 0;
}

SelfTimer::SelfTimer(const Node& node)
    : node_(node), start_(now_ns()), outer_children_(g_children_ns) {
  g_children_ns = 0;
}

SelfTimer::~SelfTimer() {
  const std::int64_t elapsed = now_ns() - start_;
  NodeStats& s = node_.stats();
  s.self_ns.fetch_add(elapsed - g_children_ns, std::memory_order_relaxed);
  s.elements.fetch_add(elements_, std::memory_order_relaxed);
  s.bytes.fetch_add(bytes_, std::memory_order_relaxed);
  g_children_ns = outer_children_ + elapsed;
}

void record_next(const Node& node, std::int64_t begin_ns, std::int64_t end_ns) {
  NodeStats& s = node.stats();
  std::int64_t none = 0;
  s.first_ns.compare_exchange_strong(none, begin_ns);
  s.next_ns += end_ns - begin_ns;
  s.last_ns = end_ns;
}

void debug_report(const EvalContext& c, const Node& node, std::int64_t index,
                  const std::string& spec, const std::string& preview) {
  const std::string line = fmt::format("{} [{}]: {}{}{}", node.path(), index, spec,
                                       preview.empty() ? "" : " = ", preview);
  if (c.sink != nullptr)
    (*c.sink)(line);
  else
    fmt::print(stderr, "{}\n", line);
}

void rethrow_with_place(const Node& node, std::int64_t index, const std::string& origin) {
  std::string place = fmt::format("in {}", node.path());
  if (index >= 0) place += fmt::format(", element {}", index);
  if (!origin.empty()) place += fmt::format(" ({})", origin);
  try {
    throw;
  } catch (Error& e) {
    e.add_context(place);
    throw;
  } catch (const std::exception& e) {
    UserError error(ErrorParts{"data pipeline", "a function that returns", e.what(),
                               "Correct the function or the record, or set on_error to skip"});
    error.add_context(place);
    throw error;
  }
}

std::shared_ptr<const Node> cut_for_worker(const std::shared_ptr<const Node>& node,
                                           std::int64_t index, std::int64_t count,
                                           bool sequential) {
  if (std::shared_ptr<Node> part = node->worker_part(index, count, sequential)) return part;
  if (node->parents().empty())
    throw_user_error({fmt::format("prefetch by {} workers", count),
                      "a source that can be cut into parts",
                      fmt::format("{}, which gives its elements in order only", node->title()),
                      "Use one worker, or interleave several sources"});
  std::shared_ptr<Node> copy = node->clone();
  std::vector<std::shared_ptr<const Node>> parents;
  for (const auto& p : node->parents())
    parents.push_back(cut_for_worker(p, index, count, sequential));
  copy->set_parents(std::move(parents));
  return copy;
}

PipelineOptions collect_options(const Node& node) {
  PipelineOptions options;
  std::deque<const Node*> queue{&node};
  std::set<const Node*> seen;
  while (!queue.empty()) {
    const Node* n = queue.front();
    queue.pop_front();
    if (!seen.insert(n).second) continue;
    if (n->options() != nullptr) options = options.or_else(*n->options());
    for (const auto& p : n->parents()) queue.push_back(p.get());
  }
  return options;
}

FilterWatch::FilterWatch(const Node& node, const PipelineOptions& options)
    : node_(node),
      warn_(options.filter_warn_threshold.value_or(0.9)),
      raise_(options.filter_raise_threshold.value_or(2)) {}

void FilterWatch::window_full() {
  const double rejected = 1.0 - static_cast<double>(passed_) / seen_;
  seen_ = passed_ = 0;
  if (rejected >= raise_)
    throw_user_error({fmt::format("filter in {}", node_.path()),
                      fmt::format("at most {:.2f} % of 1,000 elements rejected", raise_ * 100),
                      fmt::format("{:.2f} %", rejected * 100),
                      "Filter the data beforehand, or set filter_raise_threshold higher"});
  if (rejected < warn_) return;
  static std::atomic<std::int64_t> last{INT64_MIN / 2};
  const std::int64_t now = now_ns();
  std::int64_t before = last.load();
  if (now - before < 60'000'000'000 || !last.compare_exchange_strong(before, now)) return;
  fmt::print(
      stderr,
      "warning: {} rejected {:.2f} % of the last 1,000 elements; filter the data beforehand, "
      "or set filter_warn_threshold\n",
      node_.path(), rejected * 100);
}

}  // namespace internal
}  // namespace xylem::data
