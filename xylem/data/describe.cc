#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "xylem/base/error.h"
#include "xylem/data/dataset.h"

namespace xylem::data {
namespace {

struct Row {
  const Node* node;
  int depth;
};

// Nodes that hand everything through, those with options too.
bool is_hidden(const Node& n) { return n.is_mark() || n.kind() == "mark"; }

void collect(const Node& n, int depth, std::vector<Row>& rows) {
  if (!is_hidden(n)) rows.push_back({&n, depth++});
  constexpr std::size_t kMaxShown = 16;
  for (std::size_t i = 0; i < std::min(n.parents().size(), kMaxShown); ++i)
    collect(*n.parents()[i], depth, rows);
}

// Without the namespaces that everything shares.
std::string short_type(std::string_view type) {
  std::string s(type);
  for (const std::string_view ns : {"xylem::data::", "xylem::", "std::"})
    for (std::size_t at; (at = s.find(ns)) != std::string::npos;) s.erase(at, ns.size());
  if (s.size() > 80) s = s.substr(0, 77) + "...";
  return s;
}

std::string length_text(const Node& n) {
  if (!n.is_map_style()) return "";
  return n.length() >= kInfinite ? ", endless" : fmt::format(", {} elements", n.length());
}

std::string human_bytes(double b) {
  const char* units[] = {"B", "KB", "MB", "GB", "TB"};
  int u = 0;
  for (; b >= 1000 && u < 4; ++u) b /= 1000;
  return fmt::format("{:.3g} {}", b, units[u]);
}

struct Measured {
  std::int64_t elements = 0, self_ns = 0, bytes = 0;
  double share = 0;  // of the self time of all nodes
};

std::map<const Node*, Measured> measure(const std::vector<Row>& rows) {
  std::map<const Node*, Measured> out;
  double total = 0;
  for (const Row& r : rows) {
    const NodeStats& s = r.node->stats();
    if (out.contains(r.node)) continue;
    Measured m{s.elements, s.self_ns - s.wait_ns, s.bytes, 0};
    m.self_ns = std::max<std::int64_t>(m.self_ns, 0);
    total += static_cast<double>(m.self_ns);
    out[r.node] = m;
  }
  for (auto& [node, m] : out) m.share = total > 0 ? static_cast<double>(m.self_ns) / total : 0;
  return out;
}

std::string stats_text(const Node& n, const Measured& m) {
  const NodeStats& s = n.stats();
  std::string text;
  if (m.elements > 0) {
    text = fmt::format("{} elements, {:.0f} ns each, {:.0f} % of the time", m.elements,
                       static_cast<double>(m.self_ns) / static_cast<double>(m.elements),
                       m.share * 100);
    if (m.self_ns > 0)
      text += fmt::format(", {:.3g} elements/s",
                          1e9 * static_cast<double>(m.elements) / static_cast<double>(m.self_ns));
    if (m.bytes > 0) text += ", " + human_bytes(static_cast<double>(m.bytes));
  }
  if (s.capacity > 0)
    text += fmt::format("{}buffer {} of {}, waited {:.1f} ms", text.empty() ? "" : ", ",
                        s.buffered.load(), s.capacity.load(), static_cast<double>(s.wait_ns) / 1e6);
  if (s.skipped > 0)
    text += fmt::format("{}{} skipped", text.empty() ? "" : ", ", s.skipped.load());
  return text;
}

std::string escape(std::string_view s, bool html) {
  std::string out;
  for (const char c : s) {
    if (html && c == '<')
      out += "&lt;";
    else if (html && c == '>')
      out += "&gt;";
    else if (html && c == '&')
      out += "&amp;";
    else if (!html && (c == '"' || c == '\\'))
      out += std::string("\\") + c;
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string DatasetBase::describe(const DescribeOptions& o) const {
  std::vector<Row> rows;
  collect(*node_, 0, rows);
  // Read before elements are computed here.
  const auto measured = measure(rows);
  std::string out;
  for (const Row& r : rows) {
    const Node& n = *r.node;
    std::string spec;
    if (o.elements) {
      try {
        spec = n.first_element_spec();
      } catch (const Error& e) {
        spec = "fails: " + e.message().substr(0, 120);
      }
    }
    out += fmt::format("{}{}: {}{}{}", std::string(static_cast<std::size_t>(r.depth) * 2, ' '),
                       n.title(), short_type(n.element_type()), spec.empty() ? "" : " = " + spec,
                       length_text(n));
    if (const std::string s = stats_text(n, measured.at(&n)); !s.empty()) out += " [" + s + "]";
    out += '\n';
  }
  return out;
}

std::string DatasetBase::dot() const {
  std::vector<Row> rows;
  collect(*node_, 0, rows);
  const auto measured = measure(rows);
  std::map<const Node*, std::size_t> ids;
  for (const Row& r : rows) ids.emplace(r.node, ids.size());
  std::string out = "digraph pipeline {\n  rankdir=BT;\n  node [shape=box, fontname=\"sans\"];\n";
  for (const auto& [node, id] : ids) {
    const Measured& m = measured.at(node);
    const std::string stats = stats_text(*node, m);
    out += fmt::format(
        "  n{} [label=\"{}\\n{}{}\", style=filled, fillcolor=\"0.08 {:.2f} 1.0\"];\n", id,
        escape(node->title(), false), escape(short_type(node->element_type()), false),
        stats.empty() ? "" : "\\n" + escape(stats, false), m.share);
  }
  for (const auto& [node, id] : ids)
    for (const auto& parent : node->parents()) {
      const Node* p = parent.get();
      while (is_hidden(*p)) p = p->parents()[0].get();
      if (const auto i = ids.find(p); i != ids.end())
        out += fmt::format("  n{} -> n{};\n", i->second, id);
    }
  return out + "}\n";
}

std::string DatasetBase::html(int refresh_seconds) const {
  std::vector<Row> rows;
  collect(*node_, 0, rows);
  const auto measured = measure(rows);
  std::string out = "<!doctype html><meta charset=\"utf-8\"><title>data pipeline</title>";
  if (refresh_seconds > 0)
    out += fmt::format("<meta http-equiv=\"refresh\" content=\"{}\">", refresh_seconds);
  out +=
      "<style>"
      "body{font:14px sans-serif;margin:2em}td,th{padding:3px 10px;text-align:left}"
      "tr:nth-child(even){background:#f4f4f4}.bar{background:#e07b39;height:10px}"
      ".node{border:1px solid #999;border-radius:4px;padding:4px 8px;display:inline-block;"
      "margin:2px 0}</style><h1>Data pipeline</h1>\n";
  out += fmt::format("<p>{}</p>\n<div>", escape(verdict(), true));
  for (const Row& r : rows)
    out += fmt::format(
        "<div style=\"margin-left:{}em\"><span class=\"node\" style=\"background:rgba(224,123,57,"
        "{:.2f})\">{}</span></div>\n",
        r.depth * 2, measured.at(r.node).share, escape(r.node->title(), true));
  out +=
      "</div>\n<table><tr><th>node</th><th>element</th><th>elements</th><th>elements/s</"
      "th><th>self "
      "time</th><th>share</th><th></th><th>bytes</th><th>buffer</th><th>waited</th>"
      "<th>skipped</th></tr>\n";
  std::set<const Node*> seen;
  for (const Row& r : rows) {
    if (!seen.insert(r.node).second) continue;
    const Measured& m = measured.at(r.node);
    const NodeStats& s = r.node->stats();
    out += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{:.3g}</td><td>{:.1f} ms</td><td>{:.0f} "
        "%</td><td><div class=\"bar\" style=\"width:{:.0f}px\"></div></td><td>{}</td><td>{}</td>"
        "<td>{:.1f} ms</td><td>{}</td></tr>\n",
        escape(r.node->title(), true), escape(short_type(r.node->element_type()), true), m.elements,
        m.self_ns > 0 ? 1e9 * static_cast<double>(m.elements) / static_cast<double>(m.self_ns)
                      : 0.0,
        static_cast<double>(m.self_ns) / 1e6, m.share * 100, m.share * 100,
        human_bytes(static_cast<double>(m.bytes)),
        s.capacity > 0 ? fmt::format("{} of {}", s.buffered.load(), s.capacity.load()) : "",
        static_cast<double>(s.wait_ns) / 1e6, s.skipped.load());
  }
  return out + "</table>\n";
}

std::string DatasetBase::verdict() const {
  std::vector<Row> rows;
  collect(*node_, 0, rows);
  const auto measured = measure(rows);
  const NodeStats& out = node_->stats();
  const double wall = static_cast<double>(out.last_ns - out.first_ns);
  if (out.first_ns == 0 || wall <= 0) return "not measured: set PipelineOptions::timing";
  const double wait = static_cast<double>(out.next_ns) / wall;
  const auto most = std::max_element(
      measured.begin(), measured.end(),
      [](const auto& a, const auto& b) { return a.second.share < b.second.share; });
  const std::string where =
      fmt::format("`{}` takes {:.0f} %", most->first->title(), most->second.share * 100);
  if (wait < 0.05)
    return fmt::format(
        "not input-bound: the consumer waits {:.1f} % of the time; of the input's own "
        "time {}",
        wait * 100, where);
  bool threads = false;
  for (const Row& r : rows) threads |= r.node->prefetches();
  const int more = static_cast<int>(std::clamp(2 * wait + 0.5, 2.0, 16.0));
  std::string advice =
      threads
          ? "make it faster, or give the reading more threads"
          : fmt::format("give it {} threads (to_iter_dataset({{.num_threads = {}}}))", more, more);
  if (!threads && !most->first->is_map_style() && most->first->kind() != "to_iter_dataset")
    advice = "move it before to_iter_dataset, or add thread_prefetch(4) behind it";
  return fmt::format("input-bound: the consumer waits {:.0f} % of the time; {}, {}", wait * 100,
                     where, advice);
}

}  // namespace xylem::data
