// save_tool ROOT COORDINATION PROCESS PROCESSES FIRST COUNT [KILL_AT]
//
// One of several processes that save a run together: steps FIRST, FIRST + 1, ... of a tree that
// follows from the step (but for one array), in Orbax's layout, as SAVE_TOOL_ZARR3 and
// SAVE_TOOL_DEDUPLICATE in the environment say. Prints "committed K" after each. With KILL_AT the
// process kills itself (SIGKILL) at that call of the file system; at the end it prints "calls N".

#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/checkpoint/manager.h"

namespace {

using namespace xylem;
using namespace xylem::checkpoint;

// The system's files, with a process that dies at the n-th call.
class DyingCalls final : public SystemCalls {
 public:
  explicit DyingCalls(std::int64_t kill_at) : kill_at_(kill_at) {}
  std::int64_t count() const { return count_; }

  int open(const std::string& path, OpenMode mode) override { return next().open(path, mode); }
  int close(int file) override { return next().close(file); }
  std::int64_t read(int file, std::span<const MutablePiece> pieces, std::uint64_t at) override {
    return next().read(file, pieces, at);
  }
  std::int64_t write(int file, std::span<const ConstPiece> pieces, std::uint64_t at) override {
    return next().write(file, pieces, at);
  }
  int sync(int file) override { return next().sync(file); }
  int sync_directory(const std::string& path) override { return next().sync_directory(path); }
  int status(int file, FileStatus& out) override { return next().status(file, out); }
  int status(const std::string& path, bool follow, FileStatus& out) override {
    return next().status(path, follow, out);
  }
  int make_directory(const std::string& path) override { return next().make_directory(path); }
  int remove_file(const std::string& path) override { return next().remove_file(path); }
  int remove_directory(const std::string& path) override { return next().remove_directory(path); }
  int rename(const std::string& from, const std::string& to, bool replace) override {
    return next().rename(from, to, replace);
  }
  int link(const std::string& from, const std::string& to) override {
    return next().link(from, to);
  }
  int list(const std::string& path, std::vector<DirectoryEntry>& out) override {
    return next().list(path, out);
  }

 private:
  SystemCalls& next() {
    if (count_++ == kill_at_) std::raise(SIGKILL);
    return *calls_;
  }
  std::shared_ptr<SystemCalls> calls_ = posix_calls();
  std::int64_t kill_at_;
  std::atomic<std::int64_t> count_{0};
};

// Element i of a leaf is step * 1000 + i.
HostArray values(std::int64_t step, const Dims& shape) {
  HostArray a(DType::kF32, shape);
  for (std::int64_t i = 0; i < a.size(); ++i)
    a.as<float>()[i] = static_cast<float>(step * 1000 + i);
  return a;
}

// A leaf of which this process has the shard at `start` of the whole.
Leaf shard(const char* name, const HostArray& whole, const Dims& start, const Dims& shape,
           int replica, int replicas, std::string sharding) {
  Leaf l;
  l.path = parse_path_text(name);
  l.kind = LeafKind::kArray;
  l.dtype = whole.dtype();
  l.dtype_name = dtype_info(whole.dtype()).numpy_name;
  l.shape = whole.dims();
  l.shard = shape;
  l.sharding = std::move(sharding);
  l.replicas = replicas;
  Dims cut = shape;
  for (int i = 0; i < cut.ssize(); ++i) cut[i] = std::min(cut[i], whole.dims()[i] - start[i]);
  std::ptrdiff_t offset = 0;
  for (int i = 0; i < cut.ssize(); ++i) offset += start[i] * whole.byte_strides()[i];
  l.parts.push_back(
      {start,
       HostArray(whole.dtype(), cut,
                 std::shared_ptr<std::byte>(whole.owner(), whole.owner().get() + offset),
                 whole.byte_strides())
           .clone(),
       replica});
  return l;
}

StepContents contents(std::int64_t step, int p, int n) {
  const auto sharding = [&](const char* spec) {
    return fmt::format(R"({{"sharding_type": "NamedSharding", "shape": [{}], "axis_names": ["x"], )"
                       R"("axis_types": ["AxisType.Auto"], "partition_spec": {}}})",
                       n, spec);
  };
  LeafTree t;
  t.push_back(shard("rows", values(step, {4 * n, 6}), {4 * p, 0}, {4, 6}, 0, 1,
                    sharding(R"(["x", null])")));
  t.push_back(shard("columns", values(step, {5, 3 * n}), {0, 3 * p}, {5, 3}, 0, 1,
                    sharding(R"([null, "x"])")));
  // Every process has all of these: the first shares the writing, the second cannot.
  t.push_back(
      shard("copies.even", values(step, {3, 2 * n}), {0, 0}, {3, 2 * n}, p, n, sharding("[]")));
  t.push_back(shard("copies.odd", values(step, {1}), {0}, {1}, p, n, sharding("[]")));
  t.push_back(array_leaf(parse_path_text("frozen"), values(0, {600})));
  t.push_back(array_leaf(parse_path_text("numpy"), values(step, {7})));
  t.push_back(array_leaf(parse_path_text("count"), HostArray::scalar(step), LeafKind::kScalar));
  t.push_back(string_leaf(parse_path_text("name"), fmt::format("step {}", step)));
  StepContents c;
  c.items["params"] = std::move(t);
  c.state = fmt::format("{{\"step\": {}}}", step);
  return c;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7) return 2;
  const int p = std::atoi(argv[3]), n = std::atoi(argv[4]);
  const std::int64_t first = std::atoll(argv[5]), count = std::atoll(argv[6]);
  const auto calls = std::make_shared<DyingCalls>(argc > 7 ? std::atoll(argv[7]) : -1);
  try {
    ManagerOptions o;
    o.max_to_keep = 3;
    o.fs = FileSystem(calls);
    o.coordinator = file_coordinator({argv[2], p, n, 60});
    const bool zarr3 = std::getenv("SAVE_TOOL_ZARR3") != nullptr;
    orbax::StepOptions options;
    options.use_zarr3 = zarr3;
    options.link_bytes = 1;
    const bool deduplicate = std::getenv("SAVE_TOOL_DEDUPLICATE") != nullptr;
    CheckpointManager m(argv[1], o, make_orbax_format(options, deduplicate));
    m.prepare();
    for (std::int64_t step = first; step < first + count; ++step) {
      m.save(step, contents(step, p, n));
      std::printf("committed %lld\n", static_cast<long long>(step));
      std::fflush(stdout);
    }
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.message().c_str());
    return 1;
  }
  std::printf("calls %lld\n", static_cast<long long>(calls->count()));
  return 0;
}
