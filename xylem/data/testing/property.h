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

}  // namespace xylem::data::testing
