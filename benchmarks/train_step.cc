// The demo's training step: how long it takes, how long it takes to compile, to start, and how much
// memory it needs. Prints one JSON object; benchmarks/train.py sets it beside the JAX twin.
//
//   train_step CONFIG [--steps N] [--batches FILE.npy]

#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/base/thread_pool.h"
#include "xylem/core/core.h"
#include "xylem/models/gpt.h"
#include "xylem/train/config.h"
#include "xylem/train/dataset.h"
#include "xylem/train/loss.h"
#include "xylem/train/optimizer.h"

namespace {

using namespace xylem;

double now() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// When the process was started, by the kernel's account (in hundredths of a second).
double process_start() {
  std::FILE* f = std::fopen("/proc/self/stat", "r");
  if (!f) return now();
  char text[2048] = {};
  std::size_t n = std::fread(text, 1, sizeof text - 1, f);
  std::fclose(f);
  text[n] = 0;
  const char* p = std::strrchr(text, ')');
  double ticks = 0, uptime = 0;
  for (int field = 2; p && field < 22; ++field) p = std::strchr(p + 1, ' ');
  if (p) ticks = std::atof(p);
  f = std::fopen("/proc/uptime", "r");
  if (!f || std::fscanf(f, "%lf", &uptime) != 1) uptime = 0;
  if (f) std::fclose(f);
  return now() - (uptime - ticks / static_cast<double>(sysconf(_SC_CLK_TCK)));
}

int run(int argc, char** argv) {
  double start = process_start();
  train::Config config;
  train::load_yaml(config, argv[1]);
  std::int64_t steps = 100;
  for (int i = 2; i + 1 < argc; i += 2)
    if (std::string(argv[i]) == "--steps") steps = std::atoll(argv[i + 1]);

  train::Dataset dataset = train::Dataset::load(config);
  auto batches = train::training_batches(config, dataset).iterator();
  nn::Rngs rngs(config.init_weights_seed);
  models::Gpt model = models::Gpt::make(train::model_config(config), rngs);
  auto tx = train::make_optimizer(config);
  auto state = tx.init(model);
  auto step = jit([&](models::Gpt m, auto s, const Array& tokens) {
    auto [loss, grads] = value_and_grad(train::next_token_loss)(m, tokens);
    Array norm = optim::global_norm(grads);
    auto [updates, next] = tx.update(grads, s, m);
    return std::tuple{optim::apply_updates(m, updates), next, loss, norm};
  });
  std::vector<double> seconds;
  double first_step = 0, compile = 0, last_loss = 0;
  for (std::int64_t i = 0; i <= steps; ++i) {
    Array tokens(batches.next().value());
    double from = now();
    Array loss, norm;
    std::tie(model, state, loss, norm) = step(std::move(model), std::move(state), tokens);
    last_loss = loss.item<double>();
    double took = now() - from;
    if (i == 0) {
      first_step = now() - start;
      compile = took;
    } else {
      seconds.push_back(took);
    }
  }
  std::sort(seconds.begin(), seconds.end());
  rusage use;
  getrusage(RUSAGE_SELF, &use);
  double median = seconds[seconds.size() / 2];
  std::printf(
      "{\"step_seconds_median\": %.6f, \"step_seconds_min\": %.6f, "
      "\"trace_to_executable_seconds\": %.6f, \"start_to_first_step_seconds\": %.6f, "
      "\"peak_rss_mb\": %.1f, \"threads\": %d, \"last_loss\": %.6f}\n",
      median, seconds[0], compile - median, first_step, static_cast<double>(use.ru_maxrss) / 1024,
      ThreadPool::global().num_threads(), last_loss);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: train_step CONFIG [--steps N]\n");
    return 2;
  }
  try {
    return run(argc, argv);
  } catch (const xylem::Error& e) {
    std::fprintf(stderr, "train_step: %s\n", e.what());
    return 1;
  }
}
