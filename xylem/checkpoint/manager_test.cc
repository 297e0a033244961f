#include "xylem/checkpoint/manager.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/checkpoint/named_arrays.h"
#include "xylem/checkpoint/struct_tree.h"
#include "xylem/core/core.h"
#include "xylem/core/transforms.h"

namespace xylem::checkpoint {
namespace {

StepContents contents_of(std::int64_t step, std::int64_t n = 100) {
  StepContents c;
  c.items["params"] = {array_leaf(
      parse_path_text("w"),
      HostArray::from(std::vector<float>(static_cast<std::size_t>(n), static_cast<float>(step)),
                      {n}))};
  c.items["optimizer"] = {
      array_leaf(parse_path_text("[0].count"), HostArray::scalar(static_cast<std::int32_t>(step)))};
  c.state = "{\"step\": " + std::to_string(step) + "}";
  return c;
}

class ManagerTest : public testing::Test {
 protected:
  void SetUp() override { dir_ = make_temporary_directory("manager-test"); }
  void TearDown() override { remove_tree(dir_); }
  std::string at(std::string_view name) const { return join_path(dir_, name); }
  std::string dir_;
};

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.message();
  }
  return "none";
}

TEST_F(ManagerTest, AStepComesBackWhole) {
  CheckpointManager m(at("checkpoints"));
  EXPECT_EQ(m.latest_step(), std::nullopt);
  m.prepare();
  m.save(7, contents_of(7));
  EXPECT_EQ(m.latest_step(), 7);
  const StepContents c = m.restore(7);
  EXPECT_EQ(c.items.size(), 2u);
  EXPECT_TRUE(c.items.at("params")[0].value.bit_equal(contents_of(7).items["params"][0].value));
  EXPECT_EQ(path_text(c.items.at("optimizer")[0].path), "[0].count");
  EXPECT_EQ(c.state, "{\"step\": 7}");
  EXPECT_EQ(m.restore(7, {"params"}).items.size(), 1u);
  EXPECT_NE(error_of([&] { m.restore(7, {"ema"}); }).find("ema"), std::string::npos);
}

TEST_F(ManagerTest, KeepsTheNewestSteps) {
  CheckpointManager m(dir_, {.max_to_keep = 2});
  m.prepare();
  for (const std::int64_t s : {5, 10, 15, 100}) m.save(s, contents_of(s));
  EXPECT_EQ(m.steps(), (std::vector<std::int64_t>{15, 100}));
  EXPECT_EQ(list_directory(dir_).size(), 2u);
  EXPECT_THROW(CheckpointManager(dir_, {.max_to_keep = 0}), UserError);
}

TEST_F(ManagerTest, AStepThatIsNotAboveTheLatestIsAnError) {
  CheckpointManager m(dir_);
  m.prepare();
  m.save(5, contents_of(5));
  EXPECT_NE(error_of([&] { m.save(5, contents_of(6)); }).find("saved already"), std::string::npos);
  EXPECT_NE(error_of([&] { m.save(3, contents_of(3)); }).find("above the latest, 5"),
            std::string::npos);
  EXPECT_FALSE(m.should_save(5));
  EXPECT_TRUE(m.should_save(6));
  EXPECT_EQ(m.steps(), (std::vector<std::int64_t>{5}));
  EXPECT_EQ(m.restore(5).state, "{\"step\": 5}");
  m.remove(5);
  m.save(3, contents_of(3));
  EXPECT_EQ(m.latest_step(), 3);
}

TEST_F(ManagerTest, LatestNamesNoStepThatCannotBeRestored) {
  CheckpointManager m(dir_, {.max_to_keep = 9});
  m.prepare();
  for (const std::int64_t s : {1, 2, 3, 4}) m.save(s, contents_of(s));
  write_file(at("4/params/manifest.ocdbt"), "x");
  remove_tree(at("3/optimizer/_METADATA"));
  EXPECT_EQ(m.steps(), (std::vector<std::int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(m.latest_step(), 2);
  EXPECT_NE(error_of([&] { m.check_step(4); }).find("manifest.ocdbt"), std::string::npos);
}

TEST_F(ManagerTest, MetricsRankStepsAndTheBestAreKept) {
  CheckpointManager m(dir_, {.preserve = keep_if_any({keep_best(1, true), keep_latest(1)}),
                             .metric = "loss",
                             .least_is_best = true});
  m.prepare();
  for (const auto& [step, loss] : {std::pair{1, "3.5"}, {2, "1.5"}, {3, "2.5"}}) {
    StepContents c = contents_of(step);
    c.metrics = std::string("{\"loss\": ") + loss + "}";
    m.save(step, std::move(c));
  }
  EXPECT_EQ(m.steps(), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(m.best_step(), 2);
  EXPECT_EQ(m.restore(2).metrics, "{\"loss\": 1.5}");
}

TEST_F(ManagerTest, NamesOfStepsHavePrefixAndLength) {
  CheckpointManager m(dir_, {.step_prefix = "ckpt", .step_digits = 6});
  m.prepare();
  m.save(42, contents_of(42));
  make_directories(at("43"));
  EXPECT_TRUE(path_exists(at("ckpt_000042/_CHECKPOINT_METADATA")));
  EXPECT_EQ(m.steps(), (std::vector<std::int64_t>{42}));
}

TEST_F(ManagerTest, TheCommitFileDecidesWhereNothingIsRenamed) {
  CheckpointManager m(dir_, {.max_to_keep = 2, .commit = Commit::kFile});
  m.prepare();
  for (const std::int64_t s : {1, 2, 3}) m.save(s, contents_of(s));
  EXPECT_EQ(m.steps(), (std::vector<std::int64_t>{2, 3}));
  remove_tree(at("3/commit_success.txt"));
  EXPECT_EQ(m.latest_step(), 2);
  m.save(3, contents_of(3));
  EXPECT_EQ(m.latest_step(), 3);
  remove_tree(at("3/commit_success.txt"));
  m.prepare();
  EXPECT_FALSE(path_exists(at("3")));
}

TEST_F(ManagerTest, StepsOfTheOldLayoutAreReadAndFollowed) {
  {
    CheckpointManager old(dir_, {}, make_safetensors_format());
    old.prepare();
    old.save(1, contents_of(1));
  }
  CheckpointManager m(dir_);
  m.prepare();
  EXPECT_EQ(m.latest_step(), 1);
  const StepContents c = m.restore(1, {"params"});
  EXPECT_TRUE(c.items.at("params")[0].value.bit_equal(contents_of(1).items["params"][0].value));
  m.save(2, contents_of(2));
  EXPECT_EQ(m.steps(), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(m.restore(2).items.size(), 2u);
}

TEST_F(ManagerTest, DonatingOrDroppingArraysAfterSaveChangesNothing) {
  CheckpointManager m(dir_, {.async = true});
  m.prepare();
  const HostArray saved = HostArray::from(std::vector<float>(1 << 20, 3.0f), {1 << 20});
  {
    StepContents c;
    Array a(saved.clone());
    c.items["params"] = to_leaf_tree(a);
    m.save(1, std::move(c));
    // The only handle of the caller goes to a function that may reuse its memory.
    auto twice = jit([](const Array& x) { return x * 2.0f; });
    for (int i = 0; i < 8; ++i) a = twice(std::move(a));
    EXPECT_EQ(a.to_vector<float>()[0], 768.0f);
  }
  m.wait();
  EXPECT_TRUE(m.restore(1).items.at("params")[0].value.bit_equal(saved));
}

TEST_F(ManagerTest, CleansWhatDeadWritersLeftAndNothingElse) {
  for (const char* name : {"12.xylem-checkpoint-tmp/params", "13.orbax-checkpoint-tmp/params",
                           "notes", "x.xylem-checkpoint-tmp", "012", "7"})
    make_directories(at(name));
  write_file(at("12.xylem-checkpoint-tmp/state.json"), "{}");
  write_file(at("99"), "a file");
  CheckpointManager m(dir_);
  EXPECT_EQ(m.latest_step(), std::nullopt);
  m.prepare();
  EXPECT_FALSE(path_exists(at("12.xylem-checkpoint-tmp")));
  EXPECT_FALSE(path_exists(at("13.orbax-checkpoint-tmp")));
  for (const char* name : {"notes", "x.xylem-checkpoint-tmp", "012", "7", "99"})
    EXPECT_TRUE(path_exists(at(name))) << name;
  EXPECT_EQ(m.latest_step(), std::nullopt);
}

TEST_F(ManagerTest, AsyncSavesRunBehindTheCallersBack) {
  CheckpointManager m(dir_, {.max_to_keep = 3, .async = true});
  m.prepare();
  for (std::int64_t s = 1; s <= 5; ++s) m.save(s, contents_of(s, 10000));
  m.wait();
  EXPECT_EQ(m.steps(), (std::vector<std::int64_t>{3, 4, 5}));
}

TEST_F(ManagerTest, AsyncFailuresReachTheNextCall) {
  CheckpointManager m(at("gone"), {.max_to_keep = 3, .async = true});
  write_file(at("gone"), "a file where the directory should be");
  m.save(1, contents_of(1));
  EXPECT_NE(error_of([&] { m.wait(); }).find("step 1"), std::string::npos);
  EXPECT_EQ(error_of([&] { m.wait(); }), "none");
  m.save(2, contents_of(2));
  std::string polled = "none";
  while (polled == "none") polled = error_of([&] { m.poll(); });
  EXPECT_NE(polled.find("step 2"), std::string::npos);
}

TEST_F(ManagerTest, DamageOfTheOldLayoutIsNamed) {
  CheckpointManager m(dir_, {}, make_safetensors_format());
  m.prepare();
  m.save(1, contents_of(1));
  const std::string file = at("1/params.safetensors"), state = at("1/state.json");
  const std::string good = read_file(file), good_state = read_file(state);
  const auto refused = [&](std::string_view what) {
    const std::string e = error_of([&] { m.restore(1); });
    EXPECT_NE(e.find(what), std::string::npos) << e;
    EXPECT_NE(e.find(at("1")), std::string::npos) << e;
  };
  write_file(file, good.substr(0, good.size() - 1));
  refused("params.safetensors");
  std::string flipped = good;
  flipped.back() = static_cast<char>(flipped.back() ^ 1);
  write_file(file, flipped);
  refused("CRC-32C");
  remove_tree(file);
  refused("params.safetensors");
  write_file(file, good);
  for (const char* text : {"", "{}", "[1", "{\"format\": \"other\"}",
                           "{\"format\": \"xylem-safetensors\", \"version\": 2}",
                           "{\"format\": \"xylem-safetensors\", \"version\": 1}",
                           "{\"format\":\"xylem-safetensors\",\"version\":1,\"state\":{},\"items\":"
                           "{\"../x\":{\"file\":\"../x.safetensors\"}}}"}) {
    write_file(state, text);
    refused("state.json");
  }
  write_file(state, good_state);
  EXPECT_EQ(error_of([&] { m.restore(1); }), "none");
}

TEST_F(ManagerTest, EveryCutOfTheOldLayoutIsRefused) {
  CheckpointManager m(dir_, {}, make_safetensors_format());
  m.prepare();
  m.save(1, contents_of(1, 3));
  for (const char* name : {"1/params.safetensors", "1/optimizer.safetensors", "1/state.json"}) {
    const std::string good = read_file(at(name));
    // The last byte of state.json is a line end.
    for (std::size_t n = 0; n + 1 < good.size(); ++n) {
      write_file(at(name), good.substr(0, n));
      EXPECT_NE(error_of([&] { m.restore(1); }), "none") << name << " " << n;
    }
    write_file(at(name), good);
  }
}

void list_files(const std::string& directory, std::vector<std::string>& out) {
  for (const DirectoryEntry& e : list_directory(directory)) {
    const std::string path = join_path(directory, e.name);
    if (e.is_directory)
      list_files(path, out);
    else
      out.push_back(path);
  }
}

TEST_F(ManagerTest, EveryCutAndEveryFlippedBitIsRefused) {
  CheckpointManager m(dir_);
  m.prepare();
  m.save(1, contents_of(1, 300));
  std::vector<std::string> files;
  list_files(at("1"), files);
  EXPECT_GE(files.size(), 9u);
  for (const std::string& f : files) {
    // The step's own commit file says nothing beyond its existence.
    if (f == at("1/commit_success.txt")) continue;
    const std::string good = read_file(f);
    const std::size_t stride = good.size() / 25 + 1;
    for (std::size_t n = 0; n + 1 < good.size(); n += stride) {
      write_file(f, good.substr(0, n));
      EXPECT_NE(error_of([&] { m.restore(1); }), "none") << f << " cut at " << n;
      std::string flipped = good;
      flipped[n] = static_cast<char>(flipped[n] ^ 4);
      write_file(f, flipped);
      // In the list of checksums a bit may turn a space into another one that means the same.
      if (f.ends_with("xylem_checksums.json")) continue;
      EXPECT_NE(error_of([&] { m.restore(1); }), "none") << f << " bit of byte " << n;
    }
    write_file(f, good);
  }
  EXPECT_EQ(error_of([&] { m.restore(1); }), "none");
}

// A full disk, as a limit of file size in a process of its own.
TEST_F(ManagerTest, AFailedSaveLeavesEarlierStepsAlone) {
  CheckpointManager m(dir_);
  m.prepare();
  m.save(1, contents_of(1));
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::string e = error_of([&] { m.save(2, contents_of(2, 100000)); });
    ::_exit(e.find("while saving the checkpoint of step 2") != std::string::npos &&
                    list_directory(dir_).size() == 1
                ? 0
                : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(m.steps(), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(m.restore(1).state, "{\"step\": 1}");
}

struct Layer {
  Array kernel, bias;
};
struct Model {
  std::vector<Layer> layers;
};

Array zeros_of(Dims dims) { return Array(HostArray::zeros(DType::kF32, std::move(dims))); }

TEST(NamedArrays, NameLeavesByPathAndLeaveOutEmptyOnes) {
  const Model m{{{zeros_of({2, 3}), Array()}, {zeros_of({3}), zeros_of({3})}}};
  const NamedArrays named = to_named_arrays(m);
  ASSERT_EQ(named.size(), 3u);
  EXPECT_EQ(named[0].name, "layers[0].kernel");
  EXPECT_EQ(named[2].name, "layers[1].bias");
  EXPECT_EQ(to_named_arrays(zeros_of({1}))[0].name, "value");
  const Model back = from_named_arrays(m, named, "checkpoint");
  EXPECT_FALSE(back.layers[0].bias.defined());
  EXPECT_EQ(back.layers[0].kernel.shape(), (Dims{2, 3}));
}

TEST(NamedArrays, RefuseNamesTheFirstLeafThatDiffers) {
  const Model m{{{zeros_of({2, 3}), Array()}, {zeros_of({3}), zeros_of({3})}}};
  NamedArrays shape = to_named_arrays(m), type = shape, missing = shape, extra = shape;
  shape[1].value = HostArray::zeros(DType::kF32, {4});
  type[0].value = HostArray::zeros(DType::kF64, {2, 3});
  missing.erase(missing.begin());
  extra.push_back({"layers[2].kernel", HostArray::scalar(1.0f)});
  const auto refused = [&](const NamedArrays& saved) {
    return error_of([&] { from_named_arrays(m, saved, "checkpoint c/5"); });
  };
  EXPECT_NE(refused(shape).find("layers[1].kernel must be f32[3]"), std::string::npos);
  EXPECT_NE(refused(shape).find("f32[4]"), std::string::npos);
  EXPECT_NE(refused(type).find("layers[0].kernel"), std::string::npos);
  EXPECT_NE(refused(missing).find("no such leaf"), std::string::npos);
  EXPECT_NE(refused(extra).find("layers[2].kernel"), std::string::npos);
  EXPECT_NE(refused(extra).find("checkpoint c/5"), std::string::npos);
}

TEST_F(ManagerTest, ACheckpointCopiedElsewhereIsTheSame) {
  CheckpointManager m(at("first"), {.commit = Commit::kFile});
  m.prepare();
  m.save(7, contents_of(7));
  const FileSystem fs;
  fs.make_directories(at("other/deep"));
  fs.copy_tree(at("first/7"), at("other/deep/12"));
  remove_tree(at("first"));
  for (const Commit commit : {Commit::kRename, Commit::kFile}) {
    CheckpointManager moved(at("other/deep"), {.commit = commit});
    moved.prepare();
    EXPECT_EQ(moved.latest_step(), 12);
    EXPECT_TRUE(moved.restore(12).items.at("params")[0].value.bit_equal(
        contents_of(7).items["params"][0].value));
  }
}

// One manager a thread, as if each were a process.
TEST_F(ManagerTest, ASaveThatFailsInOneProcessFailsInAll) {
  std::vector<std::string> errors(3);
  std::vector<std::thread> threads;
  for (int p = 0; p < 3; ++p)
    threads.emplace_back([&, p] {
      errors[static_cast<std::size_t>(p)] = error_of([&] {
        ManagerOptions o;
        o.coordinator = file_coordinator({at("coordination"), p, 3, 60});
        CheckpointManager m(at("checkpoints"), o);
        m.prepare();
        m.save(1, contents_of(1));
        StepContents c = contents_of(2);
        // Numbers that zarr lacks, in the tree of the process that writes them.
        if (p == 0)
          c.items["params"].push_back(
              array_leaf(parse_path_text("u"), HostArray::zeros(DType::kU4, {2})));
        m.save(2, c);
      });
    });
  for (std::thread& t : threads) t.join();
  for (std::size_t p = 0; p < 3; ++p) {
    EXPECT_NE(errors[p].find("while saving the checkpoint of step 2"), std::string::npos)
        << errors[p];
    EXPECT_NE(errors[p].find("uint4"), std::string::npos) << errors[p];
    EXPECT_EQ(errors[p].find("process 0: ") != std::string::npos, p != 0) << errors[p];
  }
  CheckpointManager m(at("checkpoints"));
  EXPECT_EQ(m.steps(), std::vector<std::int64_t>{1});
  EXPECT_FALSE(path_exists(at("checkpoints/2.orbax-checkpoint-tmp")));
  // Directories of coordination are for one run.
  EXPECT_NE(error_of([&] {
              file_coordinator({at("coordination"), 0, 3, 60});
            }).find("a new directory"),
            std::string::npos);
}

TEST_F(ManagerTest, PartsMustMakeUpTheWholeArray) {
  const auto leaf = [](std::int64_t start, std::int64_t rows) {
    Leaf l;
    l.path = parse_path_text("w");
    l.kind = LeafKind::kArray;
    l.dtype = DType::kF32;
    l.shape = {6, 2};
    l.shard = {2, 2};
    if (rows > 0) l.parts.push_back({{start, 0}, HostArray::zeros(DType::kF32, {rows, 2}), 0});
    return l;
  };
  const auto save = [&](const Leaf& l) {
    orbax::WriteOptions o;
    o.num_processes = 2;
    const FileSystem fs = FileSystem::memory();
    return error_of([&] {
      orbax::write_tree_part(fs, "/t", {l}, o);
      o.process = 1;
      orbax::write_tree_part(fs, "/t", {leaf(2, 2)}, o);
      orbax::finish_tree(fs, "/t", {l}, o);
    });
  };
  EXPECT_NE(save(leaf(0, 2)).find("all 3 chunks of leaf w from the 2 processes; 2"),
            std::string::npos)
      << save(leaf(0, 2));
  EXPECT_NE(save(leaf(1, 2)).find("at multiples of that"), std::string::npos);
  EXPECT_NE(save(leaf(4, 1)).find("at multiples of that"), std::string::npos);
}

// Steps that share unchanged chunks: less is written, and each stands alone.
TEST_F(ManagerTest, UnchangedChunksAreSharedBetweenSteps) {
  const auto contents = [](std::int64_t step) {
    StepContents c = contents_of(step);
    c.items["params"].push_back(array_leaf(
        parse_path_text("frozen"), HostArray::from(std::vector<float>(200'000, 1.5f), {200'000})));
    c.items["params"].push_back(array_leaf(
        parse_path_text("changed"),
        HostArray::from(std::vector<float>(100'000, static_cast<float>(step)), {100'000})));
    return c;
  };
  for (const bool ocdbt : {true, false})
    for (const bool zarr3 : {false, true}) {
      const std::string dir = at("d" + std::to_string(ocdbt) + std::to_string(zarr3));
      orbax::StepOptions options;
      options.use_ocdbt = ocdbt;
      options.use_zarr3 = zarr3;
      CheckpointManager m(dir, {.max_to_keep = 2}, make_orbax_format(options, true));
      m.prepare();
      for (const std::int64_t step : {1, 2, 3}) m.save(step, contents(step));
      // Files with two names: the frozen array's in steps 2 and 3.
      int shared = 0;
      const std::function<void(const std::string&)> count = [&](const std::string& path) {
        for (const DirectoryEntry& e : list_directory(path)) {
          const std::string file = join_path(path, e.name);
          struct stat s;
          if (e.is_directory)
            count(file);
          else if (::stat(file.c_str(), &s) == 0 && s.st_nlink == 2)
            shared += s.st_size > 800'000 ? 1 : 100;
        }
      };
      count(dir);
      EXPECT_EQ(shared, 2);
      m.remove(2);
      const StepContents got = m.restore(3), want = contents(3);
      for (std::size_t i = 0; i < want.items.at("params").size(); ++i)
        EXPECT_TRUE(got.items.at("params")[i].value.bit_equal(want.items.at("params")[i].value));
    }
}

}  // namespace
}  // namespace xylem::checkpoint
