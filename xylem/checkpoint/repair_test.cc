#include "xylem/checkpoint/repair.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/checkpoint/checkpoint.h"
#include "xylem/checkpoint/manager.h"
#include "xylem/checkpoint/npz.h"
#include "xylem/checkpoint/safetensors.h"
#include "xylem/checkpoint/verify.h"

namespace xylem::checkpoint {
namespace {

using Kind = RepairAction::Kind;

StepContents contents() {
  StepContents c;
  std::vector<float> big(5000);
  for (std::size_t i = 0; i < big.size(); ++i) big[i] = static_cast<float>(i);
  c.items["params"] = {
      array_leaf(parse_path_text("big"), HostArray::from(big, {50, 100}), LeafKind::kArray),
      array_leaf(parse_path_text("layers[0].w"), HostArray::from(big, {5000})),
      array_leaf(parse_path_text("layers[1].w"), HostArray::scalar(2.5)),
      string_leaf(parse_path_text("name"), "text")};
  c.state = "{\"step\": 3}";
  return c;
}

void save(const FileSystem& fs, std::int64_t step) {
  ManagerOptions o;
  o.fs = fs;
  CheckpointManager m("/run", o);
  m.prepare();
  m.save(step, contents());
}

std::string listing(const RepairReport& r) {
  std::string out;
  for (const RepairAction& a : r.actions)
    out += (a.kind == Kind::kRebuilt   ? "rebuilt "
            : a.kind == Kind::kDropped ? "dropped "
                                       : "quarantined ") +
           a.where + "\n";
  return out;
}

std::string defects(const FileSystem& fs, const std::string& path) {
  std::string out;
  verify(fs, path, [&](std::string_view where, std::string_view reason) {
    (out += where) += ": ";
    (out += reason) += "\n";
  });
  return out;
}

void flip(const FileSystem& fs, const std::string& path, std::size_t at) {
  std::string data = fs.read_file(path);
  data.at(at) = static_cast<char>(data[at] ^ 0x10);
  fs.write_file(path, data);
}

// The file below d/ that is the largest, or the least.
std::string data_file(const FileSystem& fs, const std::string& item, bool largest) {
  std::string out;
  for (const DirectoryEntry& e : fs.list(item + "/d")) {
    const std::string path = item + "/d/" + e.name;
    if (out.empty() || (fs.status(path).size > fs.status(out).size) == largest) out = path;
  }
  return out;
}

// Damages step 3 and repairs it; the result must verify, and the backup be the damaged step.
std::string repair_after(const std::function<void(const FileSystem&)>& damage,
                         std::vector<std::string> gone = {}) {
  const FileSystem fs = FileSystem::memory();
  save(fs, 3);
  damage(fs);
  const std::string before = defects(fs, "/run/3");
  RepairOptions dry;
  dry.dry_run = true;
  const std::string planned = listing(repair(fs, "/run/3", dry));
  EXPECT_EQ(defects(fs, "/run/3"), before);
  const RepairReport r = repair(fs, "/run/3");
  EXPECT_EQ(listing(r), planned);
  EXPECT_EQ(defects(fs, "/run/3"), "") << planned;
  if (!r.actions.empty()) {
    EXPECT_EQ(r.backups, std::vector<std::string>{"/run/3.xylem-backup"});
    EXPECT_EQ(r.lost(), !gone.empty());
  }
  const Checkpoint c = open_checkpoint(fs, "/run/3");
  EXPECT_EQ(c.step, 3);
  const StepContents saved = contents();
  for (const Leaf& l : saved.items.at("params")) {
    const std::string name = path_text(l.path);
    if (std::find(gone.begin(), gone.end(), name) != gone.end()) continue;
    if (l.kind == LeafKind::kString) {
      bool found = false;
      for (const LeafInfo& i : c.item("params").leaves()) found = found || i.text == l.text;
      EXPECT_TRUE(found) << name;
    } else {
      EXPECT_TRUE(c.item("params").read_named(param_name(l.path)).bit_equal(l.value)) << name;
    }
  }
  // Nothing is left to do, and the manager goes on from there.
  EXPECT_TRUE(repair(fs, "/run/3").actions.empty());
  ManagerOptions o;
  o.fs = fs;
  CheckpointManager m("/run", o);
  m.prepare();
  EXPECT_EQ(m.latest_step(), 3);
  m.save(4, contents());
  return listing(r);
}

TEST(Repair, LeavesWholeStepsAlone) {
  EXPECT_EQ(repair_after([](const FileSystem&) {}), "");
}

TEST(Repair, MakesAManifestFromTheNodes) {
  const auto cut = [](const FileSystem& fs) { fs.write_file("/run/3/params/manifest.ocdbt", "x"); };
  EXPECT_EQ(repair_after(cut), "rebuilt params/manifest.ocdbt\n");
  EXPECT_EQ(
      repair_after([](const FileSystem& fs) { fs.remove_tree("/run/3/params/manifest.ocdbt"); }),
      "rebuilt params/manifest.ocdbt\n");
}

TEST(Repair, MakesMetadataFromWhatItDescribes) {
  EXPECT_EQ(repair_after([](const FileSystem& fs) { fs.remove_tree("/run/3/params/_METADATA"); }),
            "rebuilt params/_METADATA\n");
  EXPECT_EQ(repair_after([](const FileSystem& fs) {
              fs.write_file("/run/3/params/array_metadatas/process_0", "{");
            }),
            "rebuilt params/array_metadatas/process_0\n");
  EXPECT_EQ(repair_after([](const FileSystem& fs) {
              fs.write_file("/run/3/_CHECKPOINT_METADATA", "");
              fs.write_file("/run/3/params/_sharding", "[]");
              fs.remove_tree("/run/3/commit_success.txt");
            }),
            "rebuilt _CHECKPOINT_METADATA\nrebuilt params/_sharding\nrebuilt commit_success.txt\n");
}

TEST(Repair, DropsWhatBelongsToNothing) {
  EXPECT_EQ(repair_after([](const FileSystem& fs) {
              fs.write_file("/run/3/params/d/00000000000000000000000000000000", "left over");
              fs.write_file("/run/3/params/manifest.ocdbt.__lock", "");
            }),
            "dropped params/manifest.ocdbt.__lock\n"
            "dropped params/d/00000000000000000000000000000000\n");
}

TEST(Repair, LeavesOutWhatCannotBeRebuilt) {
  // Of two large arrays in one file the first is hit.
  const std::string done = repair_after(
      [](const FileSystem& fs) { flip(fs, data_file(fs, "/run/3/params", true), 1000); },
      {"big", "layers[0].w"});
  EXPECT_EQ(done.find("quarantined params/"), 0u) << done;
  EXPECT_EQ(std::count(done.begin(), done.end(), '\n'), 1) << done;
  EXPECT_EQ(
      repair_after([](const FileSystem& fs) { fs.remove_tree("/run/3/params/_strings.json"); },
                   {"name"}),
      "quarantined params/name\n");
  EXPECT_EQ(repair_after([](const FileSystem& fs) { fs.write_file("/run/3/state/metadata", "{"); },
                         {"state"}),
            "quarantined state/metadata\n");
}

TEST(Repair, WritesElsewhereOnDemand) {
  const FileSystem fs = FileSystem::memory();
  save(fs, 3);
  fs.write_file("/run/3/params/manifest.ocdbt", "x");
  RepairOptions o;
  o.to = "/good";
  const RepairReport r = repair(fs, "/run/3", o);
  EXPECT_EQ(r.backups.size(), 0u);
  EXPECT_EQ(defects(fs, "/good"), "");
  EXPECT_NE(defects(fs, "/run/3"), "");
  try {
    repair(fs, "/run/3", o);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(e.message().find("a path where nothing is"), std::string::npos) << e.message();
  }
}

TEST(Repair, TidiesARoot) {
  const FileSystem fs = FileSystem::memory();
  save(fs, 3);
  save(fs, 4);
  save(fs, 5);
  fs.make_directories("/run/6.orbax-checkpoint-tmp/params");
  fs.remove_tree("/run/4/params/manifest.ocdbt");
  for (const std::string_view item : {"params", "state"})
    fs.remove_tree("/run/5/" + std::string(item));
  const RepairReport r = repair(fs, "/run");
  EXPECT_EQ(listing(r),
            "rebuilt 4/params/manifest.ocdbt\nquarantined 5\nquarantined "
            "6.orbax-checkpoint-tmp\n");
  EXPECT_EQ(defects(fs, "/run"), "");
  std::vector<std::int64_t> steps;
  for (const StepEntry& e : list_steps(fs, "/run")) steps.push_back(e.step);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{3, 4}));
  EXPECT_TRUE(fs.is_directory("/run/xylem-quarantine/5"));
  EXPECT_TRUE(fs.is_directory("/run/xylem-quarantine/6.orbax-checkpoint-tmp"));
}

TEST(Repair, SavesTheArraysOfFilesThatAreWhole) {
  const std::string dir = make_temporary_directory("repair-test");
  const FileSystem fs;
  const NamedArrays arrays{{"a", HostArray::from(std::vector<float>(100, 1), {100})},
                           {"b", HostArray::from(std::vector<float>(100, 2), {100})}};
  for (const bool npz : {true, false}) {
    const std::string path = join_path(dir, npz ? "x.npz" : "x.safetensors");
    if (npz)
      write_npz(fs, path, arrays);
    else
      write_safetensors(path, arrays);
    EXPECT_TRUE(repair(fs, path).actions.empty());
    // The second array loses its end.
    const std::string whole = fs.read_file(path);
    const std::string cut = whole.substr(0, npz ? 900 : whole.size() - 10);
    fs.write_file(path, cut);
    EXPECT_NE(defects(fs, path), "");
    const RepairReport r = repair(fs, path);
    EXPECT_TRUE(r.lost());
    EXPECT_EQ(defects(fs, path), "");
    EXPECT_EQ(r.backups, std::vector<std::string>{path + ".xylem-backup"});
    EXPECT_EQ(fs.read_file(path + ".xylem-backup"), cut);
    const Checkpoint c = open_checkpoint(fs, path);
    EXPECT_EQ(c.item().leaves().size(), 1u);
    EXPECT_TRUE(c.item().read_named("a").bit_equal(arrays[0].value));
    // Noise holds nothing.
    fs.write_file(path, std::string(100, 'n'));
    EXPECT_THROW(repair(fs, path), UserError);
    EXPECT_EQ(fs.read_file(path), std::string(100, 'n'));
  }
  remove_tree(dir);
}

TEST(Repair, RefusesOtherPaths) {
  const FileSystem fs = FileSystem::memory();
  save(fs, 3);
  EXPECT_THROW(repair(fs, "/run/3/params"), UserError);
  EXPECT_THROW(repair(fs, "/nothing"), UserError);
  fs.write_file("/file.txt", "x");
  EXPECT_THROW(repair(fs, "/file.txt"), UserError);
  fs.make_directories("/empty");
  EXPECT_THROW(repair(fs, "/empty"), UserError);
}

}  // namespace
}  // namespace xylem::checkpoint
