#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/base/host_array.h"
#include "xylem/ir/interpreter.h"

// What ops with effects reach while the interpreter runs them.

namespace xylem::ir {

// What all processes of a run share: probes and printing.
class Session {
 public:
  explicit Session(const RunOptions& options) : options_(options) {}

  // Writes "probeN.npy" and its line of "index.csv".
  void probe(const std::string& id, const Type& type, const HostArray& value);
  // The iteration-th value that was probed under this id, in the order of "index.csv". UserError if
  // there is none or its type is another.
  HostArray probed(const std::string& id, std::int64_t iteration, const Type& type);
  void print(std::string_view text);

 private:
  const RunOptions& options_;
  std::mutex mutex_;
  int probes_ = 0;
};

using Values = std::vector<HostArray>;

// Processes that run at once and meet. All members are thread safe.
class Grid {
 public:
  Grid(int num_replicas, int num_partitions);

  int num_replicas() const { return num_replicas_; }
  int num_partitions() const { return num_partitions_; }
  int size() const { return num_replicas_ * num_partitions_; }

  // Waits until `members` processes have called with this key, and gives what each brought, in the
  // order of their places 0 … members - 1. Throws UserError if it would wait for ever.
  std::vector<Values> meet(const std::string& key, int members, int place, Values brought);
  // A first-in-first-out queue; `receive` waits for a value.
  void send(const std::string& channel, Values values);
  Values receive(const std::string& channel);

  // The n-th call gives what the n-th `feed` brought. UserError if there is nothing left.
  void feed(Values values);
  Values infeed();
  void outfeed(Values values);
  std::vector<Values> take_outfeed();

  // A process ended, with an error if `failed`: then waits of the others end with an error too.
  void leave(bool failed);

 private:
  struct Round {
    std::vector<Values> brought;
    std::vector<bool> present;
    int missing = 0;
  };
  using Lock = std::unique_lock<std::mutex>;
  // Waits for `done`; the caller's wait counts as blocked until `release` takes it back.
  template <class Done>
  void wait(Lock& lock, const std::string& what, const Done& done);
  void release(int n);

  const int num_replicas_, num_partitions_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int alive_, blocked_ = 0;
  bool failed_ = false, stuck_ = false;
  std::map<std::string, std::shared_ptr<Round>> rounds_;
  struct Channel {
    std::deque<Values> values;
    int waiting = 0;
  };
  std::map<std::string, Channel> channels_;
  std::deque<Values> infeed_;
  std::vector<Values> outfeed_;
};

// One process of a run. The grid is null where the program does not run as a grid.
class Process {
 public:
  Process(Session& session, Grid* grid = nullptr, int replica = 0, int partition = 0)
      : session_(session), grid_(grid), replica_(replica), partition_(partition) {}

  Session& session() { return session_; }
  Grid* grid() { return grid_; }
  int replica() const { return replica_; }
  int partition() const { return partition_; }

 private:
  Session& session_;
  Grid* grid_;
  int replica_, partition_;
};

// Runs programs[replica][partition] as the processes of `grid`, one thread each.
std::vector<Values> run_grid(const std::vector<std::vector<GraphPtr>>& programs,
                             std::span<const Values> args, Session& session, Grid& grid);

}  // namespace xylem::ir
