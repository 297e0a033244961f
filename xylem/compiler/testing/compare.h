#pragma once

#include <string>
#include <vector>

#include "xylem/base/host_array.h"
#include "xylem/compiler/compile.h"
#include "xylem/ir/graph.h"

namespace xylem::compiler::testing {

// Runs a program on copies of the arguments; donated ones give their memory to the results.
std::vector<HostArray> run_program(const Program& program, const std::vector<HostArray>& args,
                                   bool donate = false);

// Deterministic arguments for a graph: small numbers of either sign, small non-negative integers.
std::vector<HostArray> make_args(const ir::Graph& graph, std::uint64_t seed);

struct Tolerance {
  double relative = 0;  // of the larger magnitude; 0 and 0: bit equal but for NaN payloads
  double absolute = 0;
};
// "" if equal, else what differs first.
std::string difference(const HostArray& want, const HostArray& got, const Tolerance& tolerance);

// Compiles and interprets the graph and compares. "" if all results agree.
std::string compare(const ir::GraphPtr& graph, const std::vector<HostArray>& args,
                    const Tolerance& tolerance, const Options& options = {});

// Draws the random program of this seed (xylem/ir/testing/random_program.h), compiles it (tier and
// donation follow from the seed) and compares. "" if it agrees, else what differs and the few ops
// of the program that it takes.
std::string random_failure(bool exact, std::uint64_t seed);

}  // namespace xylem::compiler::testing
