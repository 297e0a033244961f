#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace xylem::cli {

inline constexpr int kDone = 0, kFailed = 1, kUsage = 2, kStopped = 3;

struct ConfigArguments {
  std::string config;                  // a YAML file or a run folder
  std::vector<std::string> overrides;  // key=value
};

struct GenerateArguments {
  std::string run, prompt;
  double temperature = 1.0, top_p = 1.0;
  std::int64_t top_k = 0, max_tokens = 200;
  std::uint64_t seed = 0;
  bool json = false;
};

// Each returns the exit status and throws Error.
int train_command(const ConfigArguments& arguments);
int init_command(const ConfigArguments& arguments, const std::string& out);
int data_batches_command(const ConfigArguments& arguments, std::int64_t steps,
                         const std::string& out);
int generate_command(const GenerateArguments& arguments);

}  // namespace xylem::cli
