#pragma once

#include <string>
#include <vector>

// Seeds of the fuzzers' corpora, made by the project's own writers.

namespace xylem::fuzz {

// If the first argument that is no option names an empty folder, each seed is written there, so
// that a fuzzer makes its corpus where it starts for the first time.
void fill_corpus(int argc, char** argv, const std::vector<std::string>& seeds);

std::vector<std::string> stablehlo_texts();  // pretty and generic, with locations and Shardy
std::vector<std::string> native_texts();
std::vector<std::string> artifacts();  // of several versions, plain bytecode, a jax.export
std::vector<std::string> npy_files();  // every dtype, several ranks and versions

}  // namespace xylem::fuzz
