#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "xylem/cli/commands.h"
#include "xylem/cli/program_commands.h"

// The command lines of what works on programs.

namespace xylem::cli {

void add_program_commands(CLI::App& app, Command& command) {
  const auto run = std::make_shared<RunArguments>();
  CLI::App* c = app.add_subcommand("run", "Run a StableHLO program");
  c->add_option("FILE", run->file, "Text, portable artifact, MLIR bytecode or jax.export file")
      ->required();
  c->add_option("--backend", run->backend, "cpu: compiled; interpret: the reference interpreter")
      ->check(CLI::IsMember({"cpu", "interpret"}))
      ->capture_default_str();
  c->add_option("--entry", run->entry,
                "The function to run; default: main, or the only public one");
  c->add_option("--input", run->inputs, "A .npy file for each argument, in order")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  c->add_option("--output-dir", run->output_dir,
                "Write result k to DIR/k.npy instead of printing it");
  c->add_option("--probe-dir", run->probe_dir, "Where interpreter.probe writes its values");
  c->add_option("--time", run->time, "Time N runs after a warm-up")
      ->check(CLI::Range(1, 1'000'000'000));
  c->add_flag("--split", run->split,
              "Run the pieces between '// -----' lines apart: 'ok K NAME', 'FAILED K NAME: why' or "
              "'skipped K' for each");
  c->footer(
      "Exit status: 0 all checks held, 1 a check or the program failed, 2 wrong command line.");
  c->callback([&command, run] { command = [run] { return run_command(*run); }; });

  const auto verify = std::make_shared<VerifyArguments>();
  c = app.add_subcommand("verify", "Check programs; prints FILE:LINE:COL: error: … per finding");
  c->add_option("FILE", verify->files, "Programs")->required();
  c->add_flag("--split", verify->split, "Check the pieces between '// -----' lines apart");
  c->add_flag("--allow-unregistered", verify->allow_unregistered,
              "Accept ops of unknown dialects in generic form");
  c->callback([&command, verify] { command = [verify] { return verify_command(*verify); }; });

  const auto convert = std::make_shared<ConvertArguments>();
  c = app.add_subcommand("convert", "Convert a program between text and portable artifacts");
  c->add_option("IN", convert->in, "The program")->required();
  c->add_option("OUT", convert->out, "Text if the name ends in .mlir, else a portable artifact")
      ->required();
  c->add_option(
      "--target", convert->target,
      "Version of the artifact; default 1.17.0, or the lowest that can express the program");
  c->add_flag("--generic", convert->generic, "Write every op in its generic form");
  c->add_flag("--strip-debug", convert->strip_debug, "Leave locations out");
  c->callback([&command, convert] { command = [convert] { return convert_command(*convert); }; });

  const auto inspect = std::make_shared<InspectArguments>();
  c = app.add_subcommand("inspect", "Show what a program holds and costs");
  c->add_option("FILE", inspect->file, "The program")->required();
  CLI::Option* json = c->add_flag("--json", inspect->json, "Print one JSON object");
  CLI::Option* dot = c->add_flag("--dot", inspect->dot, "Print the graph for Graphviz");
  CLI::Option* html = c->add_option("--html", inspect->html, "Write a page that draws the graph");
  json->excludes(dot)->excludes(html);
  dot->excludes(html);
  c->callback([&command, inspect] { command = [inspect] { return inspect_command(*inspect); }; });
}

}  // namespace xylem::cli
