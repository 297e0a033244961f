#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/corpus.h"

// Seeds of the fuzzers' corpora, made by the project's own writers.

namespace xylem::fuzz {

std::vector<std::string> stablehlo_texts();  // pretty and generic, with locations and Shardy
std::vector<std::string> native_texts();
std::vector<std::string> artifacts();  // of several versions, plain bytecode, a jax.export
std::vector<std::string> npy_files();  // every dtype, several ranks and versions

}  // namespace xylem::fuzz
