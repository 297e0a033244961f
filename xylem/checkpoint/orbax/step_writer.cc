#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "xylem/base/bytes.h"
#include "xylem/base/error.h"
#include "xylem/base/json.h"
#include "xylem/checkpoint/orbax/metadata.h"
#include "xylem/checkpoint/orbax/writer.h"
#include "xylem/checkpoint/storage/kv_store.h"

namespace xylem::checkpoint::orbax {
namespace {

constexpr std::string_view kTreeV0 =
    "orbax.checkpoint._src.handlers.standard_checkpoint_handler.StandardCheckpointHandler";
constexpr std::string_view kJsonV0 =
    "orbax.checkpoint._src.handlers.json_checkpoint_handler.JsonCheckpointHandler";
constexpr std::string_view kTreeV1 =
    "orbax.checkpoint.experimental.v1._src.handlers.pytree_handler.PyTreeHandler";
constexpr std::string_view kJsonV1 =
    "orbax.checkpoint.experimental.v1._src.handlers.json_handler.JsonHandler";
constexpr std::string_view kMetricsV1 =
    "orbax.checkpoint.experimental.v1._src.handlers.json_handler.MetricsHandler";
constexpr std::string_view kIterator = "grain._src.python.checkpoint.handler.CheckpointHandler";

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string commit_text(const std::string& path) {
  return "Checkpoint commit was successful to " + path;
}

std::string json_name(const StepItem& item, const StepOptions& options) {
  switch (item.kind) {
    case StepItem::Kind::kMetrics: return "metrics";
    case StepItem::Kind::kIterator:
      return fmt::format("process_{}-of-{}.json", options.process, options.num_processes);
    default: return options.layout == Layout::kV0 ? "metadata" : "data.json";
  }
}

// Every file but the databases' data, which have checksums of their own.
void collect(const FileSystem& fs, const std::string& directory, const std::string& below,
             JsonWriter& w) {
  for (const DirectoryEntry& e : fs.list(join_path(directory, below))) {
    const std::string name = below.empty() ? e.name : below + "/" + e.name;
    if (e.is_directory) {
      // A tree in the step's directory itself.
      const bool data = below.empty() && (e.name == "d" || e.name.starts_with("ocdbt.process_")) &&
                        fs.is_file(join_path(directory, "manifest.ocdbt"));
      const bool metadata = !data && below.find('/') == std::string::npos &&
                            (below.empty() || e.name == "array_metadatas");
      if (metadata) collect(fs, directory, name, w);
      continue;
    }
    if (name == kChecksumFile) continue;
    const std::string data = fs.read_file(join_path(directory, name));
    w.key(name);
    w.begin_object();
    w.field("size", data.size());
    w.field("crc32c", fmt::format("{:08x}", crc32c(data)));
    w.end_object();
  }
}

}  // namespace

void write_step(const FileSystem& fs, const std::string& directory, const std::string& final_path,
                const std::map<std::string, StepItem>& items, const StepOptions& options) {
  write_step_part(fs, directory, final_path, items, options);
  finish_step(fs, directory, final_path, items, options);
}

void write_step_part(const FileSystem& fs, const std::string& directory,
                     const std::string& final_path, const std::map<std::string, StepItem>& items,
                     const StepOptions& options) {
  if (items.empty())
    throw_user_error({fmt::format("save {}", final_path), "at least one item", "none",
                      "Give it something to save"});
  for (const auto& [name, item] : items) {
    if (!is_safe_relative_path(name) || name.find('/') != std::string::npos ||
        name.find(kTemporarySuffix) != std::string::npos)
      throw_user_error({fmt::format("save {}", final_path), "item names that are folder names",
                        fmt::format("\"{}\"", name), "Rename the item"});
    const std::string folder = join_path(directory, name);
    fs.make_directories(folder);
    if (item.kind == StepItem::Kind::kTree) {
      WriteOptions o = options;
      if (!o.previous.empty()) o.previous = join_path(o.previous, name);
      try {
        write_tree_part(fs, folder, item.tree, o);
      } catch (Error& e) {
        e.add_context(fmt::format("while saving item {}", name));
        throw;
      }
    } else if (options.process == 0 || item.kind == StepItem::Kind::kIterator) {
      if (!nlohmann::json::accept(item.json))
        throw_user_error({fmt::format("save {}: item {}", final_path, name), "JSON",
                          fmt::format("\"{}\"", item.json.substr(0, 60)), "Give it JSON text"});
      fs.write_file(join_path(folder, json_name(item, options)), item.json);
    }
  }
}

void finish_step(const FileSystem& fs, const std::string& directory, const std::string& final_path,
                 const std::map<std::string, StepItem>& items, const StepOptions& options) {
  StepMetadata m;
  m.init_ns = options.init_ns.value_or(now_ns());
  m.custom = options.step_custom;
  for (const auto& [name, item] : items) {
    const std::string folder = join_path(directory, name);
    m.item_handlers[name] = default_handler(item.kind, options.layout);
    if (item.kind == StepItem::Kind::kTree) finish_tree(fs, folder, item.tree, options);
    if (options.layout == Layout::kV0)
      fs.write_file(join_path(folder, kCommitFile), commit_text(join_path(final_path, name)));
  }
  m.commit_ns = now_ns();
  fs.write_file(join_path(directory, kStepMetadata), format_step_metadata(m));
  if (options.layout == Layout::kV1) fs.write_file(join_path(directory, kV1Marker), "");
  write_checksums(fs, directory);
}

void write_checksums(const FileSystem& fs, const std::string& step) {
  JsonWriter w(1);
  w.begin_object();
  w.key("files");
  w.begin_object();
  collect(fs, step, "", w);
  w.end_object();
  w.end_object();
  fs.write_file(join_path(step, kChecksumFile), w.take() + "\n");
}

std::string default_handler(StepItem::Kind kind, Layout layout) {
  switch (kind) {
    case StepItem::Kind::kTree: return std::string(layout == Layout::kV0 ? kTreeV0 : kTreeV1);
    case StepItem::Kind::kJson: return std::string(layout == Layout::kV0 ? kJsonV0 : kJsonV1);
    case StepItem::Kind::kMetrics: return std::string(layout == Layout::kV0 ? kJsonV0 : kMetricsV1);
    case StepItem::Kind::kIterator: return std::string(kIterator);
  }
  return {};
}

void write_commit_file(const FileSystem& fs, const std::string& directory,
                       const std::string& final_path) {
  fs.write_file(join_path(directory, kCommitFile), commit_text(final_path));
}

void check_checksums(const FileSystem& fs, const std::string& step,
                     const std::function<void(std::string_view, std::string_view)>& f) {
  const std::string path = join_path(step, kChecksumFile);
  if (!fs.is_file(path)) return;
  const auto j = nlohmann::json::parse(fs.read_file(path, std::uint64_t{1} << 30), nullptr, false);
  if (!j.is_object() || !j.contains("files") || !j["files"].is_object()) {
    f(kChecksumFile, "is not an object of files");
    return;
  }
  for (const auto& [name, entry] : j["files"].items()) {
    if (!is_safe_relative_path(name) || !entry.is_object()) {
      f(kChecksumFile, "names a file outside the step");
      continue;
    }
    try {
      const std::string data = fs.read_file(join_path(step, name), std::uint64_t{4} << 30);
      const std::string crc = fmt::format("{:08x}", crc32c(data));
      if (entry.value("size", nlohmann::json()) != data.size())
        f(name, fmt::format("has {} bytes where it was saved with {}", data.size(),
                            entry.value("size", nlohmann::json()).dump()));
      else if (entry.value("crc32c", nlohmann::json()) != crc)
        f(name, fmt::format("has CRC-32C {} where it was saved with {}", crc,
                            entry.value("crc32c", nlohmann::json()).dump()));
    } catch (const Error& e) {
      f(name, e.message());
    }
  }
}

}  // namespace xylem::checkpoint::orbax
