#include <fmt/format.h>
#include <unistd.h>

#include "xylem/base/npy.h"
#include "xylem/checkpoint/named_arrays.h"
#include "xylem/checkpoint/safetensors.h"
#include "xylem/cli/commands.h"
#include "xylem/train/dataset.h"
#include "xylem/train/train.h"

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
  const train::Dataset dataset = train::Dataset::load(run.config);
  auto batches = train::training_batches(run.config, dataset).iterator();
  write_npy(out, train::collect_batches(batches, steps));
  return kDone;
}

}  // namespace xylem::cli
