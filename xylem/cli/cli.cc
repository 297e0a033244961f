#include "xylem/cli/cli.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/cli/checkpoint_command.h"
#include "xylem/cli/commands.h"
#include "xylem/cli/data_commands.h"
#include "xylem/cli/output.h"
#include "xylem/train/config.h"

namespace xylem::cli {
namespace {

// One line, whatever the message holds.
int report(std::string message, int status) {
  for (char& c : message)
    if (c == '\n' || c == '\r') c = ' ';
  std::fprintf(stderr, "xylem: %s\n", message.c_str());
  return status;
}

// What the command line alone gets wrong is a usage error; it is found before any file is read.
void check_overrides(const ConfigArguments& a) {
  train::Config scratch;
  for (const std::string& o : a.overrides) train::apply_override(scratch, o);
}

void add_config(CLI::App& command, ConfigArguments& a) {
  command.add_option("CONFIG", a.config, "YAML file with configuration keys, or a run folder")
      ->required();
  command.add_option("key=value", a.overrides, "Keys that replace those of the file");
}

}  // namespace

int run(int argc, const char* const* argv) {
  CLI::App app("xylem: train, sample and inspect models.", "xylem");
  app.set_version_flag("--version", "xylem " XYLEM_VERSION);
  app.require_subcommand(1);
  Command command;

  ConfigArguments config;
  std::string out;
  std::int64_t steps = 0;
  GenerateArguments generate;
  const auto with_config = [&](Command f) { return [&command, f] { command = f; }; };

  CLI::App* train = app.add_subcommand("train", "Train a model, or go on with a run");
  add_config(*train, config);
  train->footer("Keys and their defaults:\n\n" + train::describe_keys() +
                "\nExit status: 0 finished, 1 failed, 2 wrong command line, 3 stopped by a signal "
                "after saving.");
  train->callback(with_config([&] { return train_command(config); }));

  CLI::App* text = app.add_subcommand("generate", "Continue a prompt with a trained model");
  text->add_option("--run", generate.run, "The run's folder")->required();
  text->add_option("--prompt", generate.prompt, "Text to continue")->required();
  text->add_option("--temperature", generate.temperature, "0: always the most probable token")
      ->capture_default_str();
  text->add_option("--top-k", generate.top_k, "Draw among so many tokens; 0: all")
      ->capture_default_str();
  text->add_option("--top-p", generate.top_p, "Draw among tokens of this total probability")
      ->capture_default_str();
  const auto no_sign = [](const std::string& s) {
    return std::string(s.starts_with('-') ? "a seed is 0 or more" : "");
  };
  text->add_option("--seed", generate.seed, "Seed of the draws")
      ->check(CLI::Validator(no_sign, ""))
      ->capture_default_str();
  text->add_option("--max-tokens", generate.max_tokens, "Tokens to write")->capture_default_str();
  text->add_flag("--json", generate.json, "Print {\"prompt\", \"text\", \"tokens\"}");
  text->callback(with_config([&] { return generate_command(generate); }));

  CLI::App* init = app.add_subcommand("init", "Write a model's initial parameters");
  add_config(*init, config);
  init->add_option("--out", out, "The safetensors file to write")->required();
  init->callback(with_config([&] { return init_command(config, out); }));

  CLI::App* data = app.add_subcommand("data", "Look at training data and record files");
  data->require_subcommand(1);
  CLI::App* batches =
      data->add_subcommand("batches", "Write the first batches that training takes");
  add_config(*batches, config);
  batches->add_option("--steps", steps, "Number of batches")->required();
  batches
      ->add_option("--out", out,
                   "The file to write: .npy, u8[steps, batch, length + 1]; .npz of rows for "
                   "dataset_type=grain")
      ->required();
  batches->callback(with_config([&] { return data_batches_command(config, steps, out); }));

  PipelineArguments pipeline;
  CLI::App* look = data->add_subcommand(
      "pipeline", "Run a training's input alone, and show where its time goes");
  add_config(*look, config);
  look->add_option("--steps", pipeline.steps, "Batches to take")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  look->add_option("--seconds", pipeline.seconds, "Stop after so many; 0: no limit")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  look->add_option("--dot", pipeline.dot, "Write the picture for Graphviz to this file");
  look->add_option("--html", pipeline.html,
                   "Write the picture as a page to this file, anew every second while it runs");
  look->add_flag("--debug", pipeline.debug,
                 "One thread; write every node's elements to standard error");
  look->callback(with_config([&] { return data_pipeline_command(config, pipeline); }));
  add_data_commands(*data, command);

  add_program_commands(app, command);

  add_checkpoint_command(app, command);

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    command = [&app] { return put(app.help()), kDone; };
  } catch (const CLI::CallForVersion& e) {
    command = [text = std::string(e.what()) + "\n"] { return put(text), kDone; };
  } catch (const CLI::ParseError& e) {
    return report(std::string(e.what()) + ". See xylem --help.", kUsage);
  }

  try {
    check_overrides(config);
  } catch (const Error& e) {
    return report(e.message(), kUsage);
  }
  try {
    const int status = command();
    flush();
    return status;
  } catch (const Error& e) {
    return report(e.message(), kFailed);
  } catch (const std::bad_alloc&) {
    return report(
        "memory: enough for the model and its activations; the system gave no more. Use a "
        "smaller model, batch or max_target_length.",
        kFailed);
  } catch (const std::exception& e) {
    return report(e.what(), kFailed);
  }
}

}  // namespace xylem::cli
