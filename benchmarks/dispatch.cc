// Speed of core's front: calls of small compiled functions, ops outside jit, tracing and compiling
// against the number of ops, memory of grad(scan). Prints one JSON object; benchmarks/dispatch.py
// sets it beside JAX.
//
//   dispatch [--quick]

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/core/core.h"

namespace {

using namespace xylem;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Seconds per call: the least of several batches, because other work on the machine only adds.
template <class F>
double seconds_per_call(F&& f, double budget) {
  f();
  f();
  double from = now();
  f();
  double once = std::max(now() - from, 1e-7);
  int batch = static_cast<int>(std::clamp(budget / 20 / once, 1.0, 100000.0));
  double best = 1e9;
  for (double end = now() + budget; now() < end;) {
    double start = now();
    for (int i = 0; i < batch; ++i) f();
    best = std::min(best, (now() - start) / batch);
  }
  return best;
}

std::string row(std::string_view name, const std::vector<std::pair<std::string, double>>& values) {
  std::string out = fmt::format("\"{}\": {{", name);
  for (std::size_t i = 0; i < values.size(); ++i)
    out += fmt::format("{}\"{}\": {:.6g}", i ? ", " : "", values[i].first, values[i].second);
  return out + "}";
}

using Leaves = std::vector<Array>;

Leaves scalars(int n) {
  Leaves x;
  for (int i = 0; i < n; ++i) x.push_back(Array(HostArray::scalar(static_cast<float>(i))));
  return x;
}

// One result from n leaves, and n results from n leaves.
std::vector<std::pair<std::string, double>> calls(bool many_results, double budget) {
  std::vector<std::pair<std::string, double>> out;
  for (int n : {1, 10, 100, 1000}) {
    Leaves x = scalars(n);
    double t;
    if (many_results) {
      auto f = jit([](const Leaves& v) {
        Leaves r;
        for (const Array& a : v) r.push_back(a + 1);
        return r;
      });
      t = seconds_per_call([&] { return f(x); }, budget);
    } else {
      auto f = jit([](const Leaves& v) {
        Array s = v[0] + 1;
        for (std::size_t i = 1; i < v.size(); ++i) s = s + v[i];
        return s;
      });
      t = seconds_per_call([&] { return f(x); }, budget);
    }
    out.emplace_back(std::to_string(n), t);
  }
  return out;
}

std::vector<std::pair<std::string, double>> eager(double budget) {
  Array a(HostArray::scalar(1.5f)), b(HostArray::scalar(0.25f));
  Array v = ones({8});
  Array m = ones({8, 8});
  return {
      {"add_scalars", seconds_per_call([&] { return a + b; }, budget)},
      {"add_literal", seconds_per_call([&] { return a + 1.0; }, budget)},
      {"exp", seconds_per_call([&] { return exp(a); }, budget)},
      {"add_vectors", seconds_per_call([&] { return v + v; }, budget)},
      {"sum", seconds_per_call([&] { return sum(v); }, budget)},
      {"matmul", seconds_per_call([&] { return matmul(m, m); }, budget)},
  };
}

// An unrolled chain of n ops, none of which folds into another.
Array chain(Array x, int n) {
  for (int i = 0; i < n / 2; ++i) x = sin(x) * 1.01;
  return x;
}

void compile_times(const std::vector<int>& counts, std::vector<std::string>& rows) {
  std::vector<std::pair<std::string, double>> trace, total;
  for (int n : counts) {
    Array x = ones({16}) * 0.5;
    double best_trace = 1e9, best = 1e9;
    for (int round = 0; round < (n <= 1000 ? 3 : 1); ++round) {
      // A size of its own for each round: equal programs are compiled once.
      int ops = n + 2 * round;
      double from = now();
      eval_shape([&](const Array& v) { return chain(v, ops); }, x);
      best_trace = std::min(best_trace, now() - from);
      auto f = jit([&](const Array& v) { return chain(v, ops); });
      from = now();
      f(x).block_until_ready();
      best = std::min(best, now() - from);
    }
    trace.emplace_back(std::to_string(n), best_trace);
    total.emplace_back(std::to_string(n), best);
  }
  rows.push_back(row("trace", trace));
  rows.push_back(row("trace_and_compile", total));
}

std::int64_t resident_bytes() {
  std::FILE* f = std::fopen("/proc/self/statm", "r");
  long total = 0, resident = 0;
  if (!f || std::fscanf(f, "%ld %ld", &total, &resident) != 2) resident = 0;
  if (f) std::fclose(f);
  return resident * sysconf(_SC_PAGESIZE);
}

// grad of a scan keeps one array a step: by how much the peak of resident memory grows, over
// 4 bytes × length × width. Lengths ascend, because the peak of the process never falls.
std::vector<std::pair<std::string, double>> scan_memory() {
  std::vector<std::pair<std::string, double>> out;
  for (std::int64_t length : {1024, 4096, 16384}) {
    constexpr std::int64_t width = 4096;
    auto loss = [&](const Array& x) {
      auto step = [](const Array& c, const Array&) { return std::pair{sin(c), Array()}; };
      return sum(scan(step, x, zeros({length})).first);
    };
    Array x = ones({width});
    std::int64_t before = resident_bytes();
    jit(grad(loss))(x).block_until_ready();
    rusage after{};
    getrusage(RUSAGE_SELF, &after);
    double grown = static_cast<double>(after.ru_maxrss * 1024 - before);
    out.emplace_back(std::to_string(length), grown / (4.0 * static_cast<double>(length * width)));
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  bool quick = argc > 1 && std::string_view(argv[1]) == "--quick";
  double budget = quick ? 0.05 : 0.4;
  std::vector<std::string> rows;
  rows.push_back(row("call_one_result", calls(false, budget)));
  rows.push_back(row("call_all_results", calls(true, budget)));
  rows.push_back(row("eager", eager(budget)));
  compile_times(quick ? std::vector<int>{100, 1000} : std::vector<int>{100, 1000, 10000, 100000},
                rows);
  rows.push_back(row("grad_scan_memory", scan_memory()));
  std::string out = "{";
  for (std::size_t i = 0; i < rows.size(); ++i) out += (i ? ",\n " : "") + rows[i];
  fmt::print("{}}}\n", out);
}
