#include "xylem/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <mutex>
#include <nlohmann/json.hpp>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/base/json.h"
#include "xylem/checkpoint/flax_msgpack.h"
#include "xylem/checkpoint/npz.h"
#include "xylem/checkpoint/orbax/tree_item.h"
#include "xylem/checkpoint/safetensors_item.h"

namespace xylem::checkpoint {
namespace {

using orbax::kCommitFile;
using orbax::kStepMetadata;
using orbax::kV1Marker;

constexpr std::uint64_t kMaxJson = std::uint64_t{256} << 20;
constexpr std::uint64_t kMaxMsgpack = std::uint64_t{64} << 30;

[[noreturn]] void no_checkpoint(const std::string& path, std::string_view given) {
  throw_user_error({fmt::format("open checkpoint {}", path),
                    "a checkpoint: a root of steps, a step, an item's folder, or a file of "
                    "safetensors, npz or msgpack",
                    given, "Check the path"});
}

std::string read_json(const FileSystem& fs, const std::string& path) {
  const std::string text = orbax::standard_json(fs.read_file(path, kMaxJson));
  if (!nlohmann::json::accept(text))
    throw_user_error({fmt::format("read {}", path), "JSON",
                      fmt::format("\"{}\"", text.substr(0, 60)),
                      "The checkpoint is damaged: restore it from a copy, or use another step"});
  return text;
}

// A tree with the one key "checkpoint", which stands for the array itself.
class ArrayItem final : public Item {
 public:
  ArrayItem(std::unique_ptr<Item> inner, bool key) : inner_(std::move(inner)), key_(key) {}
  const std::vector<LeafInfo>& leaves() const override {
    std::call_once(once_, [&] {
      leaves_ = inner_->leaves();
      for (LeafInfo& l : leaves_) {
        if (l.path.size() == 1 && l.path[0].text == "checkpoint") l.path.clear();
        // The implementation is not stored; readers take the default one.
        if (key_) l.prng = "threefry2x32";
      }
    });
    return leaves_;
  }
  HostArray read(std::size_t i, const std::optional<Box>& box) const override {
    return inner_->read(i, box);
  }
  void check(const Report& f, const Progress& progress) const override {
    inner_->check(f, progress);
  }
  std::uint64_t stored_bytes(std::size_t i) const override { return inner_->stored_bytes(i); }

 private:
  std::unique_ptr<Item> inner_;
  bool key_;
  mutable std::once_flag once_;
  mutable std::vector<LeafInfo> leaves_;
};

// The state of data iterators, one file a process.
std::optional<std::string> read_iterator_states(const FileSystem& fs,
                                                const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const DirectoryEntry& e : fs.list(directory))
    if (!e.is_directory && e.name.starts_with("process_") && e.name.ends_with(".json") &&
        e.name.find("-of-") != std::string::npos)
      files[e.name] = read_json(fs, join_path(directory, e.name));
  if (files.empty()) return std::nullopt;
  if (files.size() == 1) return files.begin()->second;
  JsonWriter w;
  w.begin_object();
  for (const auto& [name, text] : files) {
    w.key(std::string_view(name).substr(0, name.size() - 5));
    w.raw(text);
  }
  w.end_object();
  return w.take();
}

// The item in a folder; null if there is nothing that is understood.
std::unique_ptr<Item> open_item(const FileSystem& fs, const std::string& directory,
                                std::string_view handler, const OpenOptions& options) {
  const auto in = [&](std::string_view name) { return join_path(directory, name); };
  const orbax::TreeOptions tree{options.memory_limit};
  if (orbax::is_tree_directory(fs, directory)) {
    auto item = orbax::open_tree(fs, directory, tree);
    if (handler.ends_with(".ArrayCheckpointHandler") || handler.ends_with(".ArrayHandler"))
      return std::make_unique<ArrayItem>(std::move(item), false);
    return item;
  }
  if (fs.is_directory(in("jax_random_key"))) {
    bool typed = false;
    const std::string info = join_path(in("jax_random_key_metadata"), "metadata");
    if (fs.is_file(info)) {
      const auto j = nlohmann::json::parse(fs.read_file(info, kMaxJson), nullptr, false);
      typed = j.is_object() && j.value("typed", nlohmann::json()) == true;
    }
    return std::make_unique<ArrayItem>(orbax::open_tree(fs, in("jax_random_key"), tree), typed);
  }
  if (fs.is_directory(in("np_random_key"))) return orbax::open_tree(fs, in("np_random_key"), tree);
  for (const std::string_view name : {"metadata", "data.json", "metrics"})
    if (fs.is_file(in(name))) return make_json_item(read_json(fs, in(name)));
  if (fs.is_file(in("proto.pbtxt")))
    return make_memory_item({string_leaf({}, fs.read_file(in("proto.pbtxt"), kMaxJson))});
  if (fs.is_file(in("checkpoint"))) return orbax::open_tree(fs, directory, tree);
  if (auto states = read_iterator_states(fs, directory)) return make_json_item(std::move(*states));
  return nullptr;
}

// Whether a folder holds an item, by the names in it only.
bool is_item_directory(const FileSystem& fs, const std::string& directory) {
  if (orbax::is_tree_directory(fs, directory)) return true;
  for (const DirectoryEntry& e : fs.list(directory)) {
    if (e.is_directory) {
      if (e.name == "jax_random_key" || e.name == "np_random_key") return true;
    } else if (e.name == "metadata" || e.name == "data.json" || e.name == "metrics" ||
               e.name == "proto.pbtxt" || e.name == "checkpoint" ||
               (e.name.starts_with("process_") && e.name.ends_with(".json"))) {
      return true;
    }
  }
  return false;
}

bool has_safetensors(const FileSystem& fs, const std::string& directory) {
  for (const DirectoryEntry& e : fs.list(directory))
    if (!e.is_directory && e.name.ends_with(".safetensors")) return true;
  return false;
}

bool is_step_directory(const FileSystem& fs, const std::string& directory) {
  for (const std::string_view name : {kV1Marker, kStepMetadata, kCommitFile})
    if (fs.is_file(join_path(directory, name))) return true;
  if (fs.is_file(join_path(directory, "state.json"))) return true;
  if (is_item_directory(fs, directory)) return true;
  for (const DirectoryEntry& e : fs.list(directory))
    if (e.is_directory && !is_temporary_name(e.name) &&
        is_item_directory(fs, join_path(directory, e.name)))
      return true;
  return false;
}

// "checkpoint_12", as flax.training.checkpoints names its files.
std::optional<std::int64_t> flax_file_step(const DirectoryEntry& e) {
  if (e.is_directory || !e.name.starts_with("checkpoint_")) return std::nullopt;
  return parse_step_name(e.name);
}

std::string format_of(const FileSystem& fs, const std::string& step) {
  return fs.is_file(join_path(step, kV1Marker)) ? "orbax-v1" : "orbax-v0";
}

Checkpoint open_file(const FileSystem& fs, const std::string& path, const OpenOptions&) {
  Checkpoint out;
  out.directory = path;
  std::string head;
  {
    const auto file = fs.open(path);
    head.resize(static_cast<std::size_t>(std::min<std::uint64_t>(file->size(), 16)));
    file->read(0, std::as_writable_bytes(std::span<char>(head)));
  }
  if (path.ends_with(".safetensors")) {
    out.format = "safetensors";
    out.items[""] = open_safetensors(fs, path);
  } else if (path.ends_with(".npz") || head.starts_with("PK\3\4")) {
    out.format = "npz";
    out.items[""] = open_npz(fs, path);
  } else if (looks_like_msgpack(head) && !path.ends_with(".json")) {
    out.format = "flax-msgpack";
    out.step = parse_step_name(base_name(path));
    out.items[""] = make_memory_item(read_flax_msgpack(fs.read_file(path, kMaxMsgpack), path));
  } else if (head.size() >= 9 && head[8] == '{') {
    out.format = "safetensors";
    out.items[""] = open_safetensors(fs, path);
  } else {
    no_checkpoint(path, "a file of another kind");
  }
  return out;
}

Checkpoint open_step(const FileSystem& fs, const std::string& directory,
                     const OpenOptions& options) {
  Checkpoint out;
  out.directory = directory;
  out.step = parse_step_name(base_name(directory));
  if (fs.is_file(join_path(directory, "state.json")) && has_safetensors(fs, directory)) {
    // The layout of xylem's own steps before it wrote Orbax's.
    out.format = "safetensors";
    for (const DirectoryEntry& e : fs.list(directory))
      if (e.name.ends_with(".safetensors"))
        out.items[e.name.substr(0, e.name.size() - 12)] =
            open_safetensors(fs, join_path(directory, e.name));
    out.items["state"] = make_json_item(read_json(fs, join_path(directory, "state.json")));
    return out;
  }
  out.format = format_of(fs, directory);
  const std::string metadata = join_path(directory, kStepMetadata);
  if (fs.is_file(metadata))
    out.metadata = orbax::parse_step_metadata(fs.read_file(metadata, kMaxJson), metadata);
  if (orbax::is_tree_directory(fs, directory)) {
    // Saved without a name, straight into the step's directory.
    out.items[""] = open_item(fs, directory, out.metadata.handler, options);
    return out;
  }
  for (const DirectoryEntry& e : fs.list(directory)) {
    if (!e.is_directory || is_temporary_name(e.name)) continue;
    const auto handler = out.metadata.item_handlers.find(e.name);
    auto item = open_item(
        fs, join_path(directory, e.name),
        handler == out.metadata.item_handlers.end() ? "" : std::string_view(handler->second),
        options);
    if (item) out.items[e.name] = std::move(item);
  }
  for (const auto& [name, handler] : out.metadata.item_handlers)
    if (!out.items.contains(name) && !fs.is_directory(join_path(directory, name)))
      throw_user_error({fmt::format("open checkpoint {}", directory),
                        fmt::format("the item \"{}\" that {} names", name, kStepMetadata),
                        "its folder is absent",
                        "The checkpoint is damaged: restore it from a copy, or use another step"});
  if (out.items.empty()) {
    if (auto item = open_item(fs, directory, out.metadata.handler, options)) {
      const bool flax = fs.is_file(join_path(directory, "checkpoint"));
      if (flax) out.format = "flax-msgpack";
      out.items[""] = std::move(item);
    } else {
      no_checkpoint(directory, "a step without any item");
    }
  }
  return out;
}

}  // namespace

std::optional<std::int64_t> parse_step_name(std::string_view name) {
  if (is_temporary_name(name)) return std::nullopt;
  const std::size_t underscore = name.rfind('_');
  const std::string_view digits =
      underscore == std::string_view::npos ? name : name.substr(underscore + 1);
  if (underscore == 0 || digits.empty() ||
      digits.find_first_not_of("0123456789") != std::string_view::npos)
    return std::nullopt;
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return step;
}

bool is_temporary_name(std::string_view name) {
  return name.find(orbax::kTemporarySuffix) != std::string_view::npos ||
         name.find(".xylem-checkpoint-tmp") != std::string_view::npos ||
         name.find(".partial_save") != std::string_view::npos;
}

std::vector<StepEntry> list_steps(const FileSystem& fs, const std::string& root) {
  std::vector<StepEntry> out;
  if (!fs.is_directory(root)) return out;
  for (const DirectoryEntry& e : fs.list(root)) {
    if (const auto step = flax_file_step(e)) out.push_back({*step, e.name});
    const auto step = parse_step_name(e.name);
    if (step && e.is_directory && is_step_directory(fs, join_path(root, e.name)))
      out.push_back({*step, e.name});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const StepEntry& a, const StepEntry& b) { return a.step < b.step; });
  return out;
}

const Item& Checkpoint::item(std::string_view name) const {
  if (const auto it = items.find(std::string(name)); it != items.end()) return *it->second;
  std::string known;
  const Item* only = nullptr;
  int trees = 0;
  for (const auto& [key, item] : items) {
    known += fmt::format("{}\"{}\"", known.empty() ? "" : ", ", key);
    if (item->json() != nullptr) continue;
    only = item.get();
    ++trees;
  }
  if (name.empty() && trees == 1) return *only;
  throw_user_error({fmt::format("open checkpoint {}", directory),
                    name.empty() ? std::string("the name of one of its items")
                                 : fmt::format("an item \"{}\"", name),
                    fmt::format("it has {}", known.empty() ? "none" : known), "Name one of them"});
}

PathKind classify_path(const FileSystem& fs, const std::string& path) {
  if (!fs.exists(path)) return PathKind::kMissing;
  if (!fs.is_directory(path)) return PathKind::kFile;
  const bool step_files = fs.is_file(join_path(path, kV1Marker)) ||
                          fs.is_file(join_path(path, kStepMetadata)) ||
                          fs.is_file(join_path(path, "state.json"));
  if (step_files) return PathKind::kStep;
  if (orbax::is_tree_directory(fs, path)) return PathKind::kTree;
  if (has_safetensors(fs, path)) return PathKind::kSafetensors;
  if (!list_steps(fs, path).empty()) return PathKind::kRoot;
  if (is_item_directory(fs, path)) return PathKind::kItem;
  if (is_step_directory(fs, path)) return PathKind::kStep;
  return PathKind::kUnknown;
}

Checkpoint open_checkpoint(const FileSystem& fs, const std::string& given,
                           const OpenOptions& options) {
  std::string path = given;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (is_temporary_name(base_name(path)))
    throw_user_error({fmt::format("open checkpoint {}", path), "a finished checkpoint",
                      "one whose saving has not ended, by its name",
                      "Wait for the save, or use an earlier step"});
  switch (classify_path(fs, path)) {
    case PathKind::kMissing: {
      FileStatus s;
      const int r = fs.calls()->status(path, true, s);
      if (r < 0 && r != -ENOENT) throw_file_error("open", path, -r);
      no_checkpoint(path, "nothing is there");
    }
    case PathKind::kFile: return open_file(fs, path, options);
    case PathKind::kStep: return open_step(fs, path, options);
    case PathKind::kSafetensors: {
      Checkpoint out;
      out.format = "safetensors";
      out.directory = path;
      out.step = parse_step_name(base_name(path));
      out.items[""] = open_safetensors_directory(fs, path);
      return out;
    }
    case PathKind::kRoot: {
      const StepEntry newest = list_steps(fs, path).back();
      Checkpoint out = open_checkpoint(fs, join_path(path, newest.name), options);
      out.step = newest.step;
      return out;
    }
    case PathKind::kTree:
    case PathKind::kItem: {
      const std::string parent = parent_path(path), name = base_name(path);
      Checkpoint out;
      out.directory = path;
      const bool in_step = fs.is_file(join_path(parent, kStepMetadata)) ||
                           fs.is_file(join_path(parent, kV1Marker)) ||
                           fs.is_file(join_path(parent, kCommitFile)) ||
                           parse_step_name(base_name(parent)).has_value();
      if (!in_step && parse_step_name(name)) return open_step(fs, path, options);
      out.format = in_step ? format_of(fs, parent) : "orbax-v0";
      if (in_step) out.step = parse_step_name(base_name(parent));
      std::string handler;
      const std::string metadata = join_path(parent, kStepMetadata);
      if (fs.is_file(metadata)) {
        out.metadata = orbax::parse_step_metadata(fs.read_file(metadata, kMaxJson), metadata);
        if (const auto it = out.metadata.item_handlers.find(name);
            it != out.metadata.item_handlers.end())
          handler = it->second;
      }
      out.items[in_step ? name : ""] = open_item(fs, path, handler, options);
      if (!in_step && fs.is_file(join_path(path, "checkpoint"))) out.format = "flax-msgpack";
      return out;
    }
    case PathKind::kUnknown: break;
  }
  no_checkpoint(path, "a directory with nothing that is known");
}

}  // namespace xylem::checkpoint
