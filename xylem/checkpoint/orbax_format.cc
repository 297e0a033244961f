#include <fmt/format.h>

#include <algorithm>

#include "xylem/base/error.h"
#include "xylem/checkpoint/checkpoint.h"
#include "xylem/checkpoint/format.h"
#include "xylem/checkpoint/ocdbt/database.h"
#include "xylem/checkpoint/orbax/metadata.h"

namespace xylem::checkpoint {
namespace {

constexpr const char* kStateItem = "state";
constexpr const char* kMetricsItem = "metrics";

[[noreturn]] void damaged(std::string_view path, std::string_view reason) {
  throw_user_error({fmt::format("checkpoint {}", path), "a whole step", reason,
                    "The checkpoint is damaged or of another kind: remove its step directory to "
                    "go on from the one before, or restore it from a copy"});
}

class OrbaxFormat final : public StepFormat {
 public:
  OrbaxFormat(orbax::StepOptions options, bool deduplicate)
      : options_(std::move(options)), deduplicate_(deduplicate) {}

  std::string_view name() const override { return "orbax"; }

  bool recognises(const FileSystem& fs, const std::string& directory) const override {
    return fs.is_file(join_path(directory, orbax::kStepMetadata)) ||
           fs.is_file(join_path(directory, orbax::kCommitFile)) ||
           fs.is_file(join_path(directory, orbax::kV1Marker));
  }

  void check(const FileSystem& fs, const std::string& directory) const override {
    orbax::check_checksums(fs, directory, [&](std::string_view file, std::string_view reason) {
      damaged(join_path(directory, file), reason);
    });
    const Checkpoint c = open_checkpoint(fs, directory);
    for (const auto& [item, reader] : c.items) {
      if (reader->json() != nullptr) continue;
      reader->leaves();
      const std::string folder = join_path(directory, item);
      if (ocdbt::Database::exists(fs, folder))
        ocdbt::Database(fs, folder).check([&](std::string_view defect) {
          damaged(folder, defect);
        });
    }
  }

  void write(const FileSystem& fs, const std::string& directory, const std::string& final_path,
             std::int64_t step, const StepContents& contents) const override {
    orbax::StepOptions o = options_;
    if (deduplicate_) o.previous = newest_before(fs, parent_path(final_path), step);
    const auto items = items_of(contents, final_path);
    orbax::write_step_part(fs, directory, final_path, items, o);
    if (options_.num_processes == 1) orbax::finish_step(fs, directory, final_path, items, options_);
  }

  bool set_process(int process, int num_processes) override {
    options_.process = process;
    options_.num_processes = num_processes;
    return true;
  }
  void finish(const FileSystem& fs, const std::string& directory, const std::string& final_path,
              const StepContents& contents) const override {
    if (options_.num_processes > 1)
      orbax::finish_step(fs, directory, final_path, items_of(contents, final_path), options_);
  }

  void mark(const FileSystem& fs, const std::string& directory,
            const std::string& final_path) const override {
    orbax::write_commit_file(fs, directory, final_path);
  }

  StepContents read(const FileSystem& fs, const std::string& directory,
                    const std::vector<std::string>& wanted) const override {
    orbax::check_checksums(fs, directory, [&](std::string_view file, std::string_view reason) {
      damaged(join_path(directory, file), reason);
    });
    const Checkpoint c = open_checkpoint(fs, directory);
    StepContents out;
    for (const std::string& name : wanted)
      if (!c.items.contains(name) || c.items.at(name)->json() != nullptr)
        damaged(directory, fmt::format("it has no item \"{}\"", name));
    for (const auto& [name, item] : c.items) {
      if (const std::string* json = item->json()) {
        if (name == kStateItem) out.state = *json;
        if (name == kMetricsItem) out.metrics = *json;
      } else if (wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end()) {
        out.items[name] = read_tree(*item);
      }
    }
    return out;
  }

 private:
  static std::map<std::string, orbax::StepItem> items_of(const StepContents& contents,
                                                         const std::string& final_path) {
    std::map<std::string, orbax::StepItem> items;
    for (const auto& [name, tree] : contents.items) {
      if (name == kStateItem || name == kMetricsItem)
        throw_user_error({fmt::format("save {}", final_path),
                          "items with names other than state and metrics", name, "Rename it"});
      items[name].tree = tree;
    }
    items[kStateItem].kind = orbax::StepItem::Kind::kJson;
    items[kStateItem].json = contents.state;
    if (!contents.metrics.empty()) {
      items[kMetricsItem].kind = orbax::StepItem::Kind::kMetrics;
      items[kMetricsItem].json = contents.metrics;
    }
    return items;
  }

  // The directory of the newest finished step below this one; empty if there is none.
  static std::string newest_before(const FileSystem& fs, const std::string& root,
                                   std::int64_t step) {
    std::string out;
    for (const StepEntry& e : list_steps(fs, root))
      if (e.step < step) out = join_path(root, e.name);
    return out;
  }

  orbax::StepOptions options_;
  bool deduplicate_;
};

}  // namespace

std::unique_ptr<StepFormat> make_orbax_format(orbax::StepOptions options, bool deduplicate) {
  return std::make_unique<OrbaxFormat>(std::move(options), deduplicate);
}

}  // namespace xylem::checkpoint
