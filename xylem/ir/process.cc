#include "xylem/ir/process.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <thread>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/base/npy.h"

namespace xylem::ir {
namespace {

// Thrown by processes whose partners are gone; the partner's own error is the one to tell.
class Abandoned : public UserError {
 public:
  using UserError::UserError;
};

}  // namespace

// Session ----------------------------------------------------------------------------------------

void Session::probe(const std::string& id, const Type& type, const HostArray& value) {
  if (options_.probe_dir.empty())
    throw_user_error({"interpreter.probe", "a probe directory is given", "there is none",
                      "Name one (--probe-dir)"});
  std::lock_guard lock(mutex_);
  std::string path = fmt::format("{}/probe{}.npy", options_.probe_dir, ++probes_);
  write_npy(path, value);
  std::string index = options_.probe_dir + "/index.csv";
  std::FILE* f = std::fopen(index.c_str(), "a");
  bool ok = f != nullptr;
  if (f) {
    fmt::print(f, "{},{},{}\n", id, type.to_mlir(), path);
    ok = std::ferror(f) == 0;
    ok = std::fclose(f) == 0 && ok;
  }
  if (!ok)
    throw EnvironmentError(
        {"interpreter.probe", "the index can be written", index, "Check the probe directory"});
}

HostArray Session::probed(const std::string& id, std::int64_t iteration, const Type& type) {
  auto bad = [&](std::string_view expected, std::string given) {
    throw_user_error({fmt::format("check.expect_serialized_eq \"{}\"", id), expected, given,
                      "Probe the value before it is checked"});
  };
  if (options_.probe_dir.empty()) bad("a probe directory is given", "there is none");
  std::string text;
  {
    std::lock_guard lock(mutex_);
    text = read_file(options_.probe_dir + "/index.csv");
  }
  std::string_view rest = text;
  std::int64_t seen = 0;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    // The id may hold commas, and so do types; the id is known, and a path of ours follows the
    // type.
    if (!line.starts_with(id) || line.size() <= id.size() || line[id.size()] != ',') continue;
    std::string_view more = line.substr(id.size() + 1);
    std::string want = type.to_mlir();
    bool same_type =
        more.starts_with(want) && more.size() > want.size() && more[want.size()] == ',';
    if (seen++ != iteration) continue;
    if (!same_type) bad(fmt::format("the probed value is {}", want), std::string(more));
    return read_npy(std::string(more.substr(want.size() + 1)), type.dtype());
  }
  bad(fmt::format("iteration {} was probed", iteration), fmt::format("{} values were", seen));
  return {};
}

void Session::print(std::string_view text) {
  std::lock_guard lock(mutex_);
  if (options_.print) return options_.print(text);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

// Grid -------------------------------------------------------------------------------------------

Grid::Grid(int num_replicas, int num_partitions)
    : num_replicas_(num_replicas),
      num_partitions_(num_partitions),
      alive_(num_replicas * num_partitions) {}

template <class Done>
void Grid::wait(Lock& lock, const std::string& what, const Done& done) {
  if (done()) return;
  if (++blocked_ == alive_) {
    stuck_ = true;
    changed_.notify_all();
  }
  changed_.wait(lock, [&] { return done() || failed_ || stuck_; });
  if (done()) return;
  std::string given = failed_ ? "another process failed" : "every process waits or has ended";
  throw Abandoned(ErrorParts{what, "the other processes come to the same operation", given,
                             "Let all processes of the group run it"});
}

void Grid::release(int n) {
  blocked_ -= n;
  changed_.notify_all();
}

std::vector<Values> Grid::meet(const std::string& key, int members, int place, Values brought) {
  Lock lock(mutex_);
  std::shared_ptr<Round>& open = rounds_[key];
  if (!open) {
    open = std::make_shared<Round>();
    open->brought.resize(static_cast<std::size_t>(members));
    open->present.resize(static_cast<std::size_t>(members));
    open->missing = members;
  }
  std::shared_ptr<Round> round = open;
  auto at = static_cast<std::size_t>(place);
  if (at >= round->present.size() || round->present[at])
    throw_user_error({key, "the processes of a group name the same group",
                      "two of them claim one place", "Give them the same replica_groups"});
  round->brought[at] = std::move(brought);
  round->present[at] = true;
  if (--round->missing == 0) {
    rounds_.erase(key);
    release(members - 1);
  } else {
    wait(lock, key, [&] { return round->missing == 0; });
  }
  return round->brought;
}

void Grid::send(const std::string& channel, Values values) {
  Lock lock(mutex_);
  Channel& c = channels_[channel];
  c.values.push_back(std::move(values));
  if (c.waiting > 0) {
    --c.waiting;
    release(1);
  }
}

Values Grid::receive(const std::string& channel) {
  Lock lock(mutex_);
  Channel& c = channels_[channel];
  if (c.values.empty()) ++c.waiting;
  wait(lock, channel, [&] { return !c.values.empty(); });
  Values v = std::move(c.values.front());
  c.values.pop_front();
  return v;
}

void Grid::feed(Values values) {
  Lock lock(mutex_);
  infeed_.push_back(std::move(values));
}

Values Grid::infeed() {
  Lock lock(mutex_);
  if (infeed_.empty())
    throw_user_error({"stablehlo.infeed", "there is a value for every infeed", "the queue is empty",
                      "Feed as many values as infeeds run"});
  Values v = std::move(infeed_.front());
  infeed_.pop_front();
  return v;
}

void Grid::outfeed(Values values) {
  Lock lock(mutex_);
  outfeed_.push_back(std::move(values));
}

std::vector<Values> Grid::take_outfeed() {
  Lock lock(mutex_);
  return std::move(outfeed_);
}

void Grid::leave(bool failed) {
  Lock lock(mutex_);
  --alive_;
  failed_ = failed_ || failed;
  stuck_ = stuck_ || (alive_ > 0 && blocked_ == alive_);
  changed_.notify_all();
}

std::vector<Values> run_grid(const std::vector<std::vector<GraphPtr>>& programs,
                             std::span<const Values> args, Session& session, Grid& grid) {
  std::vector<Values> results(static_cast<std::size_t>(grid.size()));
  std::vector<std::exception_ptr> errors(results.size());
  std::vector<std::thread> threads;
  auto work = [&](int replica, int partition) {
    auto at = static_cast<std::size_t>(replica * grid.num_partitions() + partition);
    Process process(session, &grid, replica, partition);
    const Graph& g =
        *programs[static_cast<std::size_t>(replica)][static_cast<std::size_t>(partition)];
    try {
      results[at] = evaluate_in(g, args[at], &process);
    } catch (...) {
      errors[at] = std::current_exception();
    }
    grid.leave(errors[at] != nullptr);
  };
  for (int r = 0; r < grid.num_replicas(); ++r)
    for (int p = 0; p < grid.num_partitions(); ++p) {
      if (grid.size() == 1) {
        work(r, p);
      } else {
        threads.emplace_back(work, r, p);
      }
    }
  for (std::thread& t : threads) t.join();
  std::exception_ptr first;
  for (const std::exception_ptr& e : errors) {
    if (!e) continue;
    if (!first) first = e;
    try {
      std::rethrow_exception(e);
    } catch (const Abandoned&) {
    } catch (...) {
      std::rethrow_exception(e);
    }
  }
  if (first) std::rethrow_exception(first);
  return results;
}

}  // namespace xylem::ir
