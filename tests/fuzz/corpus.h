#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace xylem::fuzz {

// If the first argument that is no option names an empty folder, each seed is written there, so
// that a fuzzer makes its corpus where it starts for the first time.
inline void fill_corpus(int argc, char** argv, const std::vector<std::string>& seeds) {
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] == '-') continue;
    std::error_code error;
    if (!std::filesystem::is_directory(argv[i], error) ||
        !std::filesystem::is_empty(argv[i], error))
      return;
    for (std::size_t k = 0; k < seeds.size(); ++k)
      std::ofstream(std::string(argv[i]) + "/seed" + std::to_string(k), std::ios::binary)
          << seeds[k];
    return;
  }
}

}  // namespace xylem::fuzz
