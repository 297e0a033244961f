#include "xylem/checkpoint/repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "xylem/base/error.h"
#include "xylem/checkpoint/checkpoint.h"
#include "xylem/checkpoint/internal/rescue.h"
#include "xylem/checkpoint/orbax/metadata.h"
#include "xylem/checkpoint/orbax/tree_item.h"
#include "xylem/checkpoint/verify.h"

namespace xylem::checkpoint {
namespace {

using internal::rescue_tree;
using internal::RescuedTree;
using Kind = RepairAction::Kind;

constexpr const char* kBackup = ".xylem-backup";
constexpr const char* kUnfinished = ".xylem-repair";
constexpr const char* kQuarantine = "xylem-quarantine";
constexpr std::uint64_t kMaxJson = std::uint64_t{256} << 20;

std::string below(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return std::string(a.empty() ? b : a);
  return fmt::format("{}/{}", a, b);
}

// `path`, or with a number, so that nothing is there.
std::string free_path(const FileSystem& fs, const std::string& path) {
  std::string out = path;
  for (int i = 1; fs.exists(out); ++i) out = fmt::format("{}-{}", path, i);
  return out;
}

bool is_step_file(std::string_view name) {
  return name == orbax::kStepMetadata || name == orbax::kCommitFile ||
         name == orbax::kChecksumFile || name == orbax::kV1Marker;
}

// What becomes of one folder of a step.
struct ItemPlan {
  enum class How { kCopy, kTree, kLost } how = How::kCopy;
  std::optional<RescuedTree> tree;
  bool json = false;
};

class StepRepair {
 public:
  // `where` opens paths in the actions: the step's name in a root.
  StepRepair(const FileSystem& fs, std::string step, std::string where, RepairReport& report)
      : fs_(fs), step_(std::move(step)), where_(std::move(where)), report_(report) {}

  // Looks at everything; whether something is to do. Throws if nothing can be restored.
  bool plan() {
    const std::size_t before = report_.actions.size();
    plan_metadata();
    if (orbax::is_tree_directory(fs_, step_)) {
      bare_ = true;
      plan_item("", step_);
    } else {
      for (const DirectoryEntry& e : fs_.list(step_)) {
        const std::string path = join_path(step_, e.name);
        if (e.is_directory && is_temporary_name(e.name))
          act(Kind::kDropped, e.name, "left by a save that did not end");
        else if (e.is_directory && is_step_file(e.name))
          act(Kind::kDropped, e.name, "a directory where a file belongs");
        else if (e.is_directory)
          plan_item(e.name, path);
        else if (!is_step_file(e.name))
          others_.push_back(e.name);
      }
    }
    const bool any = std::any_of(items_.begin(), items_.end(), [](const auto& i) {
      return i.second.how != ItemPlan::How::kLost;
    });
    if (!any) {
      report_.actions.resize(before);
      throw_user_error({fmt::format("repair {}", step_), "at least one item that can be restored",
                        items_.empty() ? "no item's folder is there" : "all are damaged",
                        "Restore the step from a copy, or remove it"});
    }
    for (const auto& [name, handler] : metadata_.item_handlers)
      if (!items_.contains(name) && !bare_)
        act(Kind::kQuarantined, name, "the item's folder is absent");
    check_step_files();
    return report_.actions.size() != before;
  }

  // Writes the repaired step to `directory`, all flushed but names.
  void write(const std::string& directory, const std::string& final_path) {
    fs_.make_directories(directory);
    orbax::StepMetadata m = metadata_;
    if (!bare_) m.item_handlers.clear();
    for (auto& [name, plan] : items_) {
      if (plan.how == ItemPlan::How::kLost) continue;
      const std::string from = bare_ ? step_ : join_path(step_, name);
      const std::string to = bare_ ? directory : join_path(directory, name);
      if (plan.how == ItemPlan::How::kTree) {
        fs_.make_directories(to);
        orbax::WriteOptions o;
        o.use_ocdbt = plan.tree->use_ocdbt;
        o.use_zarr3 = plan.tree->use_zarr3;
        o.custom = plan.tree->custom;
        orbax::write_tree(fs_, to, plan.tree->tree, o);
      } else {
        copy(from, to);
      }
      if (!bare_ && fs_.exists(join_path(from, orbax::kCommitFile)))
        fs_.write_file(join_path(to, orbax::kCommitFile), commit_text(final_path, name));
      if (!bare_) m.item_handlers[name] = handler(name, plan);
    }
    for (const std::string& name : others_)
      fs_.copy_tree(join_path(step_, name), join_path(directory, name), true);
    fs_.write_file(join_path(directory, orbax::kStepMetadata), orbax::format_step_metadata(m));
    if (fs_.is_file(join_path(step_, orbax::kV1Marker)))
      fs_.write_file(join_path(directory, orbax::kV1Marker), "");
    orbax::write_checksums(fs_, directory);
    orbax::write_commit_file(fs_, directory, final_path);
  }

 private:
  void act(Kind kind, std::string_view name, std::string_view detail) {
    report_.actions.push_back({kind, below(where_, name), std::string(detail)});
  }
  static std::string commit_text(const std::string& step, std::string_view item) {
    return "Checkpoint commit was successful to " + (item.empty() ? step : join_path(step, item));
  }

  void plan_metadata() {
    const std::string path = join_path(step_, orbax::kStepMetadata);
    std::string problem = "there is none";
    try {
      if (fs_.is_file(path)) {
        const std::string text = fs_.read_file(path, kMaxJson);
        problem = "it is no JSON";
        if (nlohmann::json::accept(text)) {
          metadata_ = orbax::parse_step_metadata(text, path);
          return;
        }
      }
    } catch (const Error& e) {
      problem = e.message();
    }
    metadata_.commit_ns = fs_.status(step_).modified_ns;
    act(Kind::kRebuilt, orbax::kStepMetadata,
        problem + "; made from the items' folders, without custom metadata");
  }

  void plan_item(const std::string& name, const std::string& path) {
    ItemPlan plan;
    if (orbax::is_tree_directory(fs_, path) || fs_.is_directory(join_path(path, "d"))) {
      auto tree = rescue_tree(fs_, path, below(where_, name));
      if (!tree) {
        plan.how = ItemPlan::How::kLost;
        act(Kind::kQuarantined, name, "no leaf of it can be restored");
      } else if (!tree->actions.empty()) {
        plan.how = ItemPlan::How::kTree;
        report_.actions.insert(report_.actions.end(), tree->actions.begin(), tree->actions.end());
        plan.tree = std::move(tree);
      } else if (const std::string defect = first_defect(path); !defect.empty()) {
        plan.how = ItemPlan::How::kTree;
        act(Kind::kRebuilt, name, defect + "; written anew from its leaves");
        plan.tree = std::move(tree);
      }
    } else {
      bool any = false;
      for (const DirectoryEntry& e : fs_.list(path)) {
        any = any || e.name != orbax::kCommitFile;
        if (e.is_directory && (e.name == "metadata" || e.name == "data.json")) {
          plan.how = ItemPlan::How::kLost;
          act(Kind::kQuarantined, below(name, e.name), "a directory where a file belongs");
        }
        const bool json = e.name == "metadata" || e.name == "data.json" || e.name == "metrics" ||
                          (e.name.starts_with("process_") && e.name.ends_with(".json"));
        if (e.is_directory || !json) continue;
        plan.json = true;
        try {
          const std::string text =
              orbax::standard_json(fs_.read_file(join_path(path, e.name), kMaxJson));
          if (nlohmann::json::accept(text)) continue;
          act(Kind::kQuarantined, below(name, e.name), "it is no JSON");
        } catch (const Error& error) {
          act(Kind::kQuarantined, below(name, e.name), error.message());
        }
        plan.how = ItemPlan::How::kLost;
      }
      if (!any) {
        plan.how = ItemPlan::How::kLost;
        act(Kind::kQuarantined, name, "its folder is empty");
      }
    }
    const std::string commit = join_path(path, orbax::kCommitFile);
    if (!bare_ && plan.how != ItemPlan::How::kLost && fs_.exists(commit) && !is_commit(commit))
      act(Kind::kRebuilt, below(name, orbax::kCommitFile), "it is not what a save writes");
    items_[name] = std::move(plan);
  }

  bool is_commit(const std::string& path) const {
    return fs_.is_file(path) && fs_.read_file(path, 1 << 20).starts_with(commit_text("", ""));
  }

  std::string first_defect(const std::string& folder) const {
    std::string out;
    const auto tree = orbax::open_tree(fs_, folder);
    tree->check([&](std::string_view where, std::string_view reason) {
      if (out.empty()) out = fmt::format("{}: {}", where, reason);
    });
    return out;
  }

  // Files whose checksums say that they are not as they were saved, though they can be read.
  void check_step_files() {
    const std::string commit = join_path(step_, orbax::kCommitFile);
    if (!fs_.is_file(commit))
      act(Kind::kRebuilt, orbax::kCommitFile, "there is none");
    else if (!is_commit(commit))
      act(Kind::kRebuilt, orbax::kCommitFile, "it is not what a save writes");
    if (!fs_.is_file(join_path(step_, orbax::kChecksumFile))) return;
    const auto covered = [&](std::string_view file) {
      return std::any_of(report_.actions.begin(), report_.actions.end(), [&](const auto& a) {
        return a.where == below(where_, file) ||
               (a.kind == Kind::kQuarantined && below(where_, file).starts_with(a.where + "/"));
      });
    };
    std::vector<std::pair<std::string, std::string>> defects;
    try {
      orbax::check_checksums(fs_, step_, [&](std::string_view file, std::string_view reason) {
        defects.emplace_back(file, reason);
      });
    } catch (const Error& e) {
      defects.emplace_back(orbax::kChecksumFile, e.message());
    }
    for (const auto& [file, reason] : defects) {
      const auto item = items_.find(file.substr(0, file.find('/')));
      const bool remade = item != items_.end() && item->second.how != ItemPlan::How::kCopy;
      if (!covered(file) && (!remade || fs_.is_file(join_path(step_, file))))
        act(Kind::kRebuilt, file, reason + "; what can be read of it was kept: look at it");
    }
  }

  std::string handler(const std::string& name, const ItemPlan& plan) const {
    const auto it = metadata_.item_handlers.find(name);
    if (it != metadata_.item_handlers.end() && !it->second.empty()) return it->second;
    const bool v1 = fs_.is_file(join_path(step_, orbax::kV1Marker));
    return orbax::default_handler(
        plan.json ? orbax::StepItem::Kind::kJson : orbax::StepItem::Kind::kTree,
        v1 ? orbax::Layout::kV1 : orbax::Layout::kV0);
  }

  // Whole items get second names: their files never change.
  void copy(const std::string& from, const std::string& to) {
    fs_.make_directories(to);
    for (const DirectoryEntry& e : fs_.list(from)) {
      if (e.name == orbax::kCommitFile) continue;
      if (bare_ && (is_step_file(e.name) || is_temporary_name(e.name))) continue;
      fs_.copy_tree(join_path(from, e.name), join_path(to, e.name), true);
    }
  }

  const FileSystem& fs_;
  std::string step_, where_;
  RepairReport& report_;
  orbax::StepMetadata metadata_;
  bool bare_ = false;  // the tree lies in the step's directory itself
  std::map<std::string, ItemPlan> items_;
  std::vector<std::string> others_;
};

class Repair {
 public:
  Repair(const FileSystem& fs, const std::string& path, const RepairOptions& options)
      : fs_(fs), path_(path), options_(options) {
    while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
    if (!options_.to.empty() && fs_.exists(options_.to))
      throw_user_error({fmt::format("repair {}", path_), "a path where nothing is for the result",
                        options_.to + " is there", "Remove it, or name another path"});
  }

  RepairReport run() {
    if (!fs_.exists(path_)) refuse("nothing is there");
    if (!fs_.is_directory(path_)) {
      repair_file();
    } else if (is_root()) {
      repair_root();
    } else {
      switch (classify_path(fs_, path_)) {
        case PathKind::kItem: refuse("an item's folder");
        case PathKind::kSafetensors: refuse("a folder of safetensors files");
        default: break;
      }
      const std::string parent = parent_path(path_);
      if (!orbax::is_tree_directory(fs_, path_) || !is_item_of(parent))
        repair_step(path_, "", options_.to);
      else
        refuse("an item's folder");
    }
    return std::move(report_);
  }

 private:
  [[noreturn]] void refuse(std::string_view given) const {
    throw_user_error({fmt::format("repair {}", path_),
                      "a root of steps, a step, a .safetensors or an .npz file", given,
                      "Name one of these"});
  }

  bool is_item_of(const std::string& parent) const {
    return fs_.is_file(join_path(parent, orbax::kStepMetadata)) ||
           fs_.is_file(join_path(parent, orbax::kCommitFile)) ||
           fs_.is_file(join_path(parent, orbax::kV1Marker));
  }

  // A directory with step folders, finished or not, which is no step itself.
  bool is_root() const {
    if (is_item_of(path_) || orbax::is_tree_directory(fs_, path_)) return false;
    const auto entries = fs_.list(path_);
    return std::any_of(entries.begin(), entries.end(), [](const DirectoryEntry& e) {
      return e.is_directory && (parse_step_name(e.name) || is_temporary_name(e.name));
    });
  }

  // Verifies the result, and lets it take its place.
  void commit(const std::string& temporary, const std::string& path, const std::string& to) {
    std::string first;
    fs_.sync_directories(temporary);
    const std::uint64_t defects =
        verify(fs_, temporary, [&](std::string_view where, std::string_view reason) {
          if (first.empty()) first = fmt::format("{}: {}", where, reason);
        });
    if (defects > 0) {
      fs_.remove_tree(temporary);
      throw_user_error({fmt::format("repair {}", path), "a result without defects", first,
                        "Restore it from a copy; nothing was changed"});
    }
    if (to.empty()) {
      const std::string backup = free_path(fs_, path + kBackup);
      fs_.rename(path, backup);
      fs_.sync_directory(parent_path(path));
      report_.backups.push_back(backup);
    }
    fs_.rename(temporary, to.empty() ? path : to);
    fs_.sync_directory(parent_path(to.empty() ? path : to));
  }

  void repair_step(const std::string& step, const std::string& where, const std::string& to) {
    if (fs_.is_file(join_path(step, "state.json")))
      throw_user_error({fmt::format("repair {}", step), "a step in Orbax's layout",
                        "one of safetensors files with state.json",
                        "Repair its .safetensors files one by one"});
    StepRepair r(fs_, step, where, report_);
    const bool wanted = r.plan();
    if (options_.dry_run) return;
    const std::string final_path = to.empty() ? step : to;
    const std::string temporary = final_path + kUnfinished;
    if (wanted) {
      fs_.remove_tree(temporary);
      r.write(temporary, final_path);
      commit(temporary, step, to);
    } else if (!to.empty()) {
      fs_.remove_tree(temporary);
      fs_.copy_tree(step, temporary);
      commit(temporary, step, to);
    }
  }

  void repair_root() {
    if (!options_.to.empty() && !options_.dry_run) fs_.make_directories(options_.to, true);
    std::uint64_t done = 0;
    const auto entries = fs_.list(path_);
    for (const DirectoryEntry& e : entries) {
      if (options_.progress) options_.progress(done++, entries.size());
      const std::string from = join_path(path_, e.name);
      if (e.is_directory && e.name.ends_with(kUnfinished)) {
        if (!options_.dry_run && options_.to.empty()) fs_.remove_tree(from);
        continue;
      }
      const bool temporary = e.name.find(orbax::kTemporarySuffix) != std::string::npos ||
                             e.name.find(".xylem-checkpoint-tmp") != std::string::npos;
      if (!e.is_directory || (!temporary && !parse_step_name(e.name))) continue;
      if (temporary) {
        quarantine(e.name, "left by a save that did not end");
        continue;
      }
      try {
        repair_step(from, e.name, options_.to.empty() ? "" : join_path(options_.to, e.name));
      } catch (const UserError& error) {
        quarantine(e.name, error.message());
      }
    }
  }

  void quarantine(const std::string& name, std::string_view reason) {
    report_.actions.push_back({Kind::kQuarantined, name, std::string(reason)});
    if (options_.dry_run || !options_.to.empty()) return;
    const std::string folder = join_path(path_, kQuarantine);
    fs_.make_directories(folder, true);
    const std::string to = free_path(fs_, join_path(folder, name));
    fs_.rename(join_path(path_, name), to);
    fs_.sync_directory(folder);
    fs_.sync_directory(path_);
    report_.backups.push_back(to);
  }

  void repair_file() {
    const bool npz = path_.ends_with(".npz");
    if (!npz && !path_.ends_with(".safetensors")) refuse("a file of another kind");
    const std::string result = options_.dry_run      ? ""
                               : options_.to.empty() ? path_ + kUnfinished
                                                     : options_.to;
    report_.actions = npz ? internal::rescue_npz(fs_, path_, result)
                          : internal::rescue_safetensors(fs_, path_, result);
    if (options_.dry_run) return;
    if (report_.actions.empty()) {
      if (!options_.to.empty()) {
        fs_.copy_tree(path_, options_.to);
        fs_.sync_directory(parent_path(options_.to));
      }
      return;
    }
    if (!options_.to.empty()) return;
    const std::string backup = free_path(fs_, path_ + kBackup);
    if (!fs_.link(path_, backup)) fs_.copy_tree(path_, backup);
    fs_.sync_directory(parent_path(path_));
    report_.backups.push_back(backup);
    fs_.rename(result, path_, /*replace=*/true);
    fs_.sync_directory(parent_path(path_));
  }

  const FileSystem& fs_;
  std::string path_;
  const RepairOptions& options_;
  RepairReport report_;
};

}  // namespace

bool RepairReport::lost() const {
  return std::any_of(actions.begin(), actions.end(),
                     [](const RepairAction& a) { return a.kind == Kind::kQuarantined; });
}

RepairReport repair(const FileSystem& fs, const std::string& path, const RepairOptions& options) {
  return Repair(fs, path, options).run();
}

}  // namespace xylem::checkpoint
