#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <utility>
#include <variant>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/base/npy.h"
#include "xylem/base/signal.h"
#include "xylem/checkpoint/named_arrays.h"
#include "xylem/checkpoint/safetensors.h"
#include "xylem/cli/commands.h"
#include "xylem/cli/output.h"
#include "xylem/data/formats/record.h"
#include "xylem/train/dataset.h"
#include "xylem/train/train.h"
#include "xylem/train/training_data.h"

namespace xylem::cli {

int train_command(const ConfigArguments& a) {
  const train::Run run = train::resolve_run(a.config, a.overrides);
  const train::TrainStatus status = train::train(run, {.terminal = ::isatty(1) != 0});
  return status == train::TrainStatus::kStopped ? kStopped : kDone;
}

int init_command(const ConfigArguments& a, const std::string& out) {
  const train::Run run = train::resolve_run(a.config, a.overrides);
  checkpoint::write_safetensors(out, checkpoint::to_named_arrays(train::initial_model(run.config)),
                                {{"format", "xylem"}});
  return kDone;
}

int data_batches_command(const ConfigArguments& a, std::int64_t steps, const std::string& out) {
  const train::Run run = train::resolve_run(a.config, a.overrides);
  if (run.config.dataset_type == "windows") {
    const train::Dataset dataset = train::Dataset::load(run.config);
    auto batches = train::training_batches(run.config, dataset).iterator();
    write_npy(out, train::collect_batches(batches, steps));
    return kDone;
  }
  if (steps < 1)
    throw_user_error({"data batches: steps", "at least 1", fmt::format("{}", steps),
                      "Give the number of batches to collect"});
  const auto input = train::TrainingData::open(run.config);
  const auto writer = data::create_records(out, {"npz", ""});
  for (std::int64_t s = 0; s < steps; ++s) {
    const auto rows = std::get<train::PackedRows>(input->next());
    data::Record r;
    for (const auto& [name, array] : {std::pair{"inputs", rows.inputs},
                                      {"targets", rows.targets},
                                      {"weights", rows.weights},
                                      {"segment_ids", rows.segment_ids},
                                      {"positions", rows.positions}})
      r.fields.emplace_back(name, array.to_host());
    writer->write(r);
  }
  writer->close();
  return kDone;
}

int data_pipeline_command(const ConfigArguments& a, const PipelineArguments& p) {
  const train::Run run = train::resolve_run(a.config, a.overrides);
  const auto input = train::TrainingData::open(run.config, {.timing = !p.debug, .debug = p.debug});
  const auto write_page = [&](int refresh_seconds) {
    if (!p.html.empty()) write_file_atomic(p.html, input->pipeline().html(refresh_seconds));
  };
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  Clock::time_point shown = begin;
  const StopSignals signals;
  for (std::int64_t s = 0; s < p.steps && !stop_requested(); ++s) {
    input->next();
    const Clock::time_point now = Clock::now();
    if (p.seconds > 0 && now - begin > std::chrono::duration<double>(p.seconds)) break;
    if (now - shown < std::chrono::seconds(1)) continue;
    shown = now;
    write_page(1);
  }
  // The tree shows what elements look like, which means to compute some: the pictures come before.
  write_page(0);
  if (!p.dot.empty()) write_file_atomic(p.dot, input->pipeline().dot());
  if (!p.debug) put(input->pipeline().describe() + input->pipeline().verdict() + "\n");
  return kDone;
}

}  // namespace xylem::cli
