// checkpoint_tree FOLDER REPEATS: saves and restores a tree of 150 f32 arrays of 496 MB in all, one
// of 10,000 arrays, 100,000 leaves, and prints seconds as JSON. benchmarks/checkpoint.py runs it
// beside the peers.

#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "xylem/checkpoint/checkpoint.h"
#include "xylem/checkpoint/manager.h"
#include "xylem/checkpoint/orbax/tree_item.h"
#include "xylem/checkpoint/orbax/writer.h"
#include "xylem/checkpoint/verify.h"

namespace {

using namespace xylem;
using namespace xylem::checkpoint;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

LeafTree large_tree() {
  constexpr int kArrays = 150;
  constexpr std::int64_t kElements = (std::int64_t{500} << 20) / kArrays / 4 / 256 * 256;
  std::mt19937 random(0);
  std::normal_distribution<float> normal;
  std::vector<float> base(static_cast<std::size_t>(kElements));
  for (float& v : base) v = normal(random);
  LeafTree out;
  for (int i = 0; i < kArrays; ++i) {
    HostArray a(DType::kF32, {kElements / 256, 256});
    for (std::int64_t k = 0; k < kElements; ++k)
      a.as<float>()[k] = base[static_cast<std::size_t>((k + i) % kElements)];
    out.push_back(
        array_leaf({{fmt::format("layer{}", i / 6), false}, {fmt::format("w{}", i % 6), false}},
                   std::move(a)));
  }
  return out;
}

LeafTree small_leaves(int n) {
  LeafTree out;
  for (int i = 0; i < n; ++i)
    out.push_back(
        array_leaf({{fmt::format("group{}", i / 100), false}, {fmt::format("leaf{}", i), false}},
                   HostArray::from(std::vector<float>(4, static_cast<float>(i)), {4})));
  return out;
}

void save(const FileSystem& fs, const std::string& path, const LeafTree& tree,
          const orbax::StepOptions& options) {
  std::map<std::string, orbax::StepItem> items;
  items["default"].tree = tree;
  const std::string temporary = path + ".orbax-checkpoint-tmp";
  fs.make_directories(temporary);
  orbax::write_step(fs, temporary, path, items, options);
  orbax::write_commit_file(fs, temporary, path);
  fs.commit_directory(temporary, path);
}

double peak_megabytes() {
  rusage u;
  ::getrusage(RUSAGE_SELF, &u);
  return static_cast<double>(u.ru_maxrss) / 1024;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string folder = argv[1];
  const int repeats = std::atoi(argv[2]);
  const FileSystem fs;
  const auto emit = [](const char* name, double value) {
    std::printf("{\"name\": \"%s\", \"value\": %.6g}\n", name, value);
    std::fflush(stdout);
  };
  const LeafTree tree = large_tree();
  const double before = peak_megabytes();
  for (int r = 0; r < repeats; ++r) {
    for (const bool ocdbt : {true, false}) {
      const std::string path = fmt::format("{}/{}{}", folder, ocdbt ? "o" : "f", r);
      orbax::StepOptions o;
      o.use_ocdbt = ocdbt;
      Clock::time_point t = Clock::now();
      save(fs, path, tree, o);
      emit(ocdbt ? "save" : "save without ocdbt", seconds_since(t));
      if (ocdbt && r == 0) emit("peak extra MB of a save", peak_megabytes() - before);
      t = Clock::now();
      {
        const Checkpoint c = open_checkpoint(fs, path);
        const LeafTree back = read_tree(c.item());
        emit(ocdbt ? "restore" : "restore without ocdbt", seconds_since(t));
      }
      if (ocdbt) {
        t = Clock::now();
        if (verify(fs, path, [](std::string_view, std::string_view) {}) != 0) return 1;
        emit("verify", seconds_since(t));
      }
      fs.remove_tree(path);
    }
    const std::string root = fmt::format("{}/async{}", folder, r);
    {
      CheckpointManager m(root, {.async = true});
      m.prepare();
      StepContents c;
      c.items["params"] = tree;
      const Clock::time_point t = Clock::now();
      m.save(1, std::move(c));
      emit("async stall", seconds_since(t));
      m.wait();
      emit("async total", seconds_since(t));
    }
    fs.remove_tree(root);
  }
  const std::string many = folder + "/many";
  save(fs, many, small_leaves(10'000), {});
  for (int r = 0; r < repeats; ++r) {
    const Clock::time_point t = Clock::now();
    const auto item = orbax::open_tree(fs, many + "/default");
    if (item->read_named("group77.leaf7777").at(0) != 7777) return 1;
    emit("one array of 10,000", seconds_since(t));
  }
  fs.remove_tree(many);
  const LeafTree leaves = small_leaves(100'000);
  for (int r = 0; r < repeats; ++r) {
    Clock::time_point t = Clock::now();
    save(fs, many, leaves, {});
    emit("save 100,000 leaves", seconds_since(t));
    t = Clock::now();
    const Checkpoint c = open_checkpoint(fs, many);
    if (read_tree(c.item()).size() != leaves.size()) return 1;
    emit("restore 100,000 leaves", seconds_since(t));
    fs.remove_tree(many);
  }
  return 0;
}
