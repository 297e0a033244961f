#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace xylem::cli {

// What the parsed command line asks for; set by the chosen subcommand.
using Command = std::function<int()>;

// Each adds its subcommands, which set `command` when they are chosen. The app and `command`
// outlive parsing.
void add_program_commands(CLI::App& app, Command& command);  // run, verify, convert, inspect

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

struct PipelineArguments {
  std::int64_t steps = 100;
  double seconds = 0;  // 0: no limit
  bool debug = false;
  std::string dot, html;
};

// Each returns the exit status and throws Error.
int train_command(const ConfigArguments& arguments);
int init_command(const ConfigArguments& arguments, const std::string& out);
int data_batches_command(const ConfigArguments& arguments, std::int64_t steps,
                         const std::string& out);
int data_pipeline_command(const ConfigArguments& arguments, const PipelineArguments& pipeline);
int generate_command(const GenerateArguments& arguments);

}  // namespace xylem::cli
