#include "xylem/compiler/program/assign.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>

#include "xylem/base/error.h"

namespace xylem::compiler {
namespace {

using ir::ValueId;

constexpr std::int64_t kAlign = 64;
std::int64_t aligned(std::int64_t n) {
  return std::max<std::int64_t>((n + kAlign - 1) / kAlign * kAlign, kAlign);
}

// Free gaps of the arena, best fit first.
class Arena {
 public:
  std::int64_t take(std::int64_t bytes) {
    auto best = gaps_.end();
    for (auto it = gaps_.begin(); it != gaps_.end(); ++it)
      if (it->second >= bytes && (best == gaps_.end() || it->second < best->second)) best = it;
    if (best == gaps_.end()) {
      // Extend the last gap if it touches the end.
      std::int64_t at = size_;
      if (!gaps_.empty() &&
          std::prev(gaps_.end())->first + std::prev(gaps_.end())->second == size_) {
        at = std::prev(gaps_.end())->first;
        gaps_.erase(std::prev(gaps_.end()));
      }
      size_ = at + bytes;
      return at;
    }
    const std::int64_t at = best->first, rest = best->second - bytes;
    gaps_.erase(best);
    if (rest > 0) gaps_[at + bytes] = rest;
    return at;
  }
  void give(std::int64_t at, std::int64_t bytes) {
    auto [it, added] = gaps_.emplace(at, bytes);
    if (auto next = std::next(it); next != gaps_.end() && at + bytes == next->first) {
      it->second += next->second;
      gaps_.erase(next);
    }
    if (it != gaps_.begin()) {
      auto before = std::prev(it);
      if (before->first + before->second == it->first) {
        before->second += it->second;
        gaps_.erase(it);
      }
    }
  }
  std::int64_t size() const { return size_; }

 private:
  std::map<std::int64_t, std::int64_t> gaps_;
  std::int64_t size_ = 0;
};

class Assigner {
 public:
  Assigner(const ir::Graph& g, const Plan& plan, const Options& options, const Lowered& lowered,
           ProgramImpl* program)
      : g_(g), plan_(plan), options_(options), program_(*program), steps_(lowered.steps) {
    const std::size_t n = g.values.size() + lowered.temp_bytes.size();
    buffers_.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      Buffer& b = buffers_[i];
      b.leader = static_cast<int>(i);
      if (i >= g.values.size()) {
        b.bytes = lowered.temp_bytes[i - g.values.size()];
        continue;
      }
      const ir::Value& v = g.values[i];
      if (v.type.is_tensor()) b.bytes = v.type.nbytes();
      if (v.def < 0) {
        b.kind = Kind::kParam;
        b.index = v.index;
      } else if (plan.roles[static_cast<std::size_t>(v.def)] == Role::kConstant) {
        b.kind = Kind::kConstant;
      }
    }
  }

  void run() {
    lay_out_constants();
    place_results();
    lifetimes();
    share();
    donate();
    allocate();
    write_steps();
  }

 private:
  enum class Kind { kInternal, kParam, kConstant };
  struct Buffer {
    Kind kind = Kind::kInternal;
    int index = -1;  // of a parameter
    std::int64_t bytes = 0;
    int result = -1;            // the result whose memory it is
    int first = -1, last = -1;  // steps
    int leader = -1;            // the buffer that stands for all that share its memory
    std::int64_t offset = -1;   // arena or constants
  };
  Buffer& at(int b) { return buffers_[static_cast<std::size_t>(b)]; }
  int leader(int b) {
    while (at(b).leader != b) b = at(b).leader;
    return b;
  }

  void lay_out_constants() {
    std::int64_t size = 0;
    std::vector<std::pair<int, const HostArray*>> all;
    for (std::size_t i = 0; i < g_.ops.size(); ++i) {
      if (plan_.roles[i] != Role::kConstant) continue;
      const ValueId v = g_.ops[i].results[0];
      at(v).offset = size;
      size += aligned(at(v).bytes);
      all.emplace_back(v, &g_.ops[i].attrs.array("value"));
    }
    if (size == 0) return;
    void* memory = std::aligned_alloc(kAlign, static_cast<std::size_t>(size));
    if (!memory)
      throw EnvironmentError(ErrorParts{"compile", "memory for the program's constants",
                                        "the system has none left", "Free memory."});
    program_.constants.reset(static_cast<std::byte*>(memory), [](std::byte* p) { std::free(p); });
    for (auto& [v, array] : all) {
      const HostArray dense = array->to_contiguous();
      std::memcpy(program_.constants.get() + at(v).offset, dense.data(), dense.nbytes());
    }
  }

  // A result is made where it is wanted; parameters, constants and repeated results are copied.
  void place_results() {
    for (std::size_t i = 0; i < g_.results.size(); ++i) {
      if (!g_.type(g_.results[i]).is_tensor()) continue;
      const int root = plan_.root(g_.results[i]);
      Buffer& b = at(root);
      if (b.kind == Kind::kInternal && b.result < 0) {
        b.result = static_cast<int>(i);
        continue;
      }
      Buffer copy;
      copy.bytes = b.bytes;
      copy.result = static_cast<int>(i);
      copy.leader = static_cast<int>(buffers_.size());
      LoweredStep step;
      step.action = make_copy(b.bytes);
      step.name = "copy";
      step.ns = static_cast<double>(b.bytes) / 20;
      step.uses = {{root, false, -1, false}, {copy.leader, true, 0, false}};
      buffers_.push_back(copy);
      steps_.push_back(std::move(step));
    }
  }

  void lifetimes() {
    for (std::size_t s = 0; s < steps_.size(); ++s)
      for (const Use& u : steps_[s].uses) {
        Buffer& b = at(u.buffer);
        if (b.first < 0) b.first = static_cast<int>(s);
        b.last = static_cast<int>(s);
      }
    for (Buffer& b : buffers_)
      if (b.result >= 0) b.last = static_cast<int>(steps_.size());
  }

  bool donated(const Buffer& b) const {
    return b.kind == Kind::kParam && std::find(options_.donated.begin(), options_.donated.end(),
                                               b.index) != options_.donated.end();
  }

  // Whether what `to` writes at step s may overwrite `from`.
  bool can_share(int s, const Use& to, const Use& from) {
    const Buffer& r = at(from.buffer);
    const Buffer& w = at(to.buffer);
    if (r.kind == Kind::kConstant || w.kind != Kind::kInternal || r.bytes != w.bytes ||
        r.last != s || w.first != s)
      return false;
    int reads = 0;
    for (const Use& u : steps_[static_cast<std::size_t>(s)].uses)
      reads += u.buffer == from.buffer ? 1 : 0;
    if (reads != 1) return false;
    const Buffer& head = at(leader(from.buffer));
    if (head.kind == Kind::kParam || r.kind == Kind::kParam)
      return donated(head) && w.result >= 0 && !param_taken(head.index);
    return head.result < 0;
  }
  bool param_taken(int p) const {
    for (const ResultPlacement& r : program_.placement)
      if (r.aliased_param == p) return true;
    return false;
  }

  void share() {
    program_.placement.assign(g_.results.size(), {});
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      LoweredStep& step = steps_[s];
      std::vector<bool> taken(step.uses.size(), false);
      for (Use& u : step.uses) {
        if (!u.write || u.alias < 0) continue;
        const Use& from = step.uses[static_cast<std::size_t>(u.alias)];
        if (!taken[static_cast<std::size_t>(u.alias)] && can_share(static_cast<int>(s), u, from)) {
          taken[static_cast<std::size_t>(u.alias)] = true;
          join(from.buffer, u.buffer);
          u.starts_as_alias = false;
        }
      }
    }
  }

  // `to` continues in the memory of `from`.
  void join(int from, int to) {
    const int head = leader(from);
    Buffer& h = at(head);
    at(to).leader = head;
    if (at(to).result >= 0) {
      h.result = at(to).result;
      if (h.kind == Kind::kParam)
        program_.placement[static_cast<std::size_t>(h.result)].aliased_param = h.index;
    }
    h.last = std::max(h.last, at(to).last);
  }

  // Results that found no parameter in place may still take one that is done with before.
  void donate() {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      Buffer& b = buffers_[i];
      if (b.leader != static_cast<int>(i) || b.kind != Kind::kInternal || b.result < 0) continue;
      ResultPlacement& place = program_.placement[static_cast<std::size_t>(b.result)];
      if (place.aliased_param >= 0) continue;
      for (std::size_t p = 0; p < g_.params.size(); ++p) {
        const Buffer& param = at(g_.params[p]);
        if (!donated(param) || param.bytes != b.bytes || param_taken(param.index) ||
            param.last >= b.first)
          continue;
        place.aliased_param = param.index;
        break;
      }
    }
  }

  void allocate() {
    const int n = static_cast<int>(steps_.size());
    std::vector<std::vector<int>> begin(static_cast<std::size_t>(n) + 1),
        end(static_cast<std::size_t>(n) + 1);
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const Buffer& b = buffers_[i];
      if (b.leader != static_cast<int>(i) || b.kind != Kind::kInternal || b.result >= 0 ||
          b.first < 0)
        continue;
      begin[static_cast<std::size_t>(b.first)].push_back(static_cast<int>(i));
      end[static_cast<std::size_t>(std::min(b.last, n))].push_back(static_cast<int>(i));
    }
    Arena arena;
    for (int s = 0; s <= n; ++s) {
      for (int b : begin[static_cast<std::size_t>(s)])
        at(b).offset = arena.take(aligned(at(b).bytes));
      for (int b : end[static_cast<std::size_t>(s)]) arena.give(at(b).offset, aligned(at(b).bytes));
    }
    program_.arena = arena.size();
  }

  Place place(int b) {
    const Buffer& head = at(leader(b));
    const auto params = static_cast<std::int32_t>(g_.params.size());
    if (head.kind == Kind::kConstant) return {1, head.offset};
    if (head.kind == Kind::kParam) return {2 + head.index, 0};
    if (head.result >= 0) return {2 + params + head.result, 0};
    return {0, head.offset};
  }

  void write_steps() {
    const auto emit = [&](const LoweredStep& from) {
      Step step;
      step.kernel = from.kernel;
      step.action = from.action;
      step.first = static_cast<std::uint32_t>(program_.places.size());
      step.points = from.points;
      step.ns = from.ns;
      step.name = from.name;
      const double per_point =
          from.ns / static_cast<double>(std::max<std::int64_t>(from.points, 1));
      if (from.kernel >= 0 && from.ns > 8000 && from.points > 1)
        step.grain = std::max<std::int64_t>(1, std::llround(std::ceil(4000 / per_point)));
      for (const Use& u : from.uses)
        if (!u.hidden) program_.places.push_back(place(u.buffer));
      step.count = static_cast<std::uint32_t>(program_.places.size()) - step.first;
      program_.most_operands = std::max(program_.most_operands, step.count);
      program_.ns += from.ns;
      program_.info.flops += from.flops;
      program_.info.bytes += from.bytes;
      program_.steps.push_back(std::move(step));
    };
    for (const LoweredStep& step : steps_) {
      for (const Use& u : step.uses) {
        if (!u.starts_as_alias) continue;
        LoweredStep copy;
        copy.action = make_copy(at(u.buffer).bytes);
        copy.name = "copy";
        copy.ns = static_cast<double>(at(u.buffer).bytes) / 20;
        copy.uses = {step.uses[static_cast<std::size_t>(u.alias)], u};
        for (Use& c : copy.uses) c.hidden = false;
        emit(copy);
      }
      emit(step);
    }
  }

  const ir::Graph& g_;
  const Plan& plan_;
  const Options& options_;
  ProgramImpl& program_;
  std::vector<LoweredStep> steps_;
  std::vector<Buffer> buffers_;
};

}  // namespace

void assign_buffers(const ir::Graph& graph, const Plan& plan, const Options& options,
                    const Lowered& lowered, ProgramImpl* program) {
  Assigner(graph, plan, options, lowered, program).run();
}

}  // namespace xylem::compiler
