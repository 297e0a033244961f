#pragma once

#include <string>

#include "xylem/data/testing/spec.h"

namespace xylem::data::testing {

// Runs the pipeline and restores every state it gave: on a fresh iterator, on the one that has
// come to its end, twice in a row, and from the state that the restored iterator itself gives.
// Empty, or what went wrong.
std::string check_restores(const std::string& spec);

// Compares the pipeline with the same one without threads, and restores its states without them.
std::string check_threads(const std::string& spec);

// Restores states of the pipeline in which numbers, keys and structure were changed at random, and
// takes a few elements: they must be refused by UserError or give something, and afterwards a good
// state must still restore. Empty, or what went wrong.
std::string check_hostile_states(const std::string& spec, std::uint64_t seed);

}  // namespace xylem::data::testing
