#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/base/host_array.h"
#include "xylem/ir/graph.h"

namespace xylem::ir {

class Process;

// Evaluates a graph with the reference evaluations of the op table: slow, obvious, the reference
// for compiled code. Values are freed after their last use. Arguments must have the types of the
// parameters (UserError otherwise): tuples are given as their elements one after the other,
// quantised tensors as arrays of their storage type, tokens as any array; results likewise. Errors
// of the program (a failed check, an op that needs a process grid) are UserErrors. Thread safe.
std::vector<HostArray> evaluate(const Graph& graph, std::span<const HostArray> args);

// What a program can reach beyond its arguments.
struct RunOptions {
  // Where interpreter.probe writes "probeN.npy" and the lines "id,type,path" of "index.csv", and
  // check.expect_serialized_eq reads. Empty: both are errors.
  std::string probe_dir;
  // Takes what interpreter.print writes, one call a value. Null: standard output.
  std::function<void(std::string_view)> print;
  // What the n-th infeed takes: one array for each of its tensor results. An infeed beyond them
  // is an error.
  std::vector<std::vector<HostArray>> infeed;
  // Size of the process grid.
  int num_replicas = 1;
  int num_partitions = 1;
};

// What a run leaves behind besides its results.
struct RunEffects {
  std::vector<std::vector<HostArray>> outfeed;  // the operands of each outfeed, in order
};

// `evaluate` with queues and probes. Infeed, outfeed, send, recv and collectives work: the program
// runs as the processes of a grid (of one process by default), each with the same arguments. The
// results are those of process (0, 0).
std::vector<HostArray> run(const Graph& graph, std::span<const HostArray> args,
                           const RunOptions& options, RunEffects* effects = nullptr);
// Runs programs[replica][partition] at once, one thread each; process (r, p) takes
// args[r * partitions + p]; results in the same order. `num_replicas` and `num_partitions` of the
// options are not read. The first error of a process ends all; a wait that no process can end is
// an error.
std::vector<std::vector<HostArray>> run_parallel(const std::vector<std::vector<GraphPtr>>& programs,
                                                 std::span<const std::vector<HostArray>> args,
                                                 const RunOptions& options,
                                                 RunEffects* effects = nullptr);

// How many arrays stand for a value of this type: the elements of tuples, else one.
std::size_t num_leaves(const Type& t);
// The types of those arrays' values.
void append_leaves(const Type& t, std::vector<Type>& out);
// `evaluate` as a process of a grid (process.h), for ops that start programs.
std::vector<HostArray> evaluate_in(const Graph& graph, std::span<const HostArray> args,
                                   Process* process);

}  // namespace xylem::ir
