#include "xylem/checkpoint/orbax/tree_item.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "xylem/base/error.h"
#include "xylem/base/thread_pool.h"
#include "xylem/checkpoint/flax_msgpack.h"
#include "xylem/checkpoint/ocdbt/database.h"
#include "xylem/checkpoint/orbax/metadata.h"

namespace xylem::checkpoint::orbax {
namespace {

using zarr::ZarrArray;

// Of JSON files; 100,000 leaves take some 30 MB.
constexpr std::uint64_t kMaxJson = std::uint64_t{2} << 30;

class TreeItem final : public Item {
 public:
  TreeItem(const FileSystem& fs, std::string directory, const TreeOptions& options)
      : fs_(fs), directory_(std::move(directory)), options_(options) {
    if (ocdbt::Database::exists(fs_, directory_)) {
      database_ = std::make_shared<const ocdbt::Database>(fs_, directory_);
      store_ = database_;
    } else {
      store_ = open_directory_store(fs_, directory_);
    }
  }

  const std::vector<LeafInfo>& leaves() const override {
    std::call_once(loaded_, [&] { load(); });
    return leaves_;
  }

  HostArray read(std::size_t i, const std::optional<Box>& box) const override {
    const LeafInfo& l = leaves().at(i);
    if (!arrays_.at(i))
      throw_user_error({fmt::format("read {} of {}", path_text(l.path), directory_),
                        "a leaf with an array", fmt::format("a {}", value_type(l.kind)),
                        "Look at leaves() first"});
    return box ? arrays_[i]->read(*box, read_options()) : arrays_[i]->read(read_options());
  }

  HostArray read_named(std::string_view name, const std::optional<Box>& box) const override {
    // Straight to the array; the tree's metadata need not be read for that.
    const auto a = ZarrArray::open(store_, std::string(name));
    if (!a) return Item::read_named(name, box);
    zarr::ReadOptions o;
    o.memory_limit = options_.memory_limit;
    o.missing_is_error = true;
    return box ? a->read(*box, o) : a->read(o);
  }

  std::string read_text(std::size_t i) const override {
    const LeafInfo& l = leaves().at(i);
    if (!arrays_.at(i) || l.dtype || l.shape.size() != 0) return Item::read_text(i);
    std::string out = arrays_[i]->read_raw_chunk({});
    while (!out.empty() && out.back() == '\0') out.pop_back();
    return out;
  }

  void check(const Report& f, const Progress& progress) const override;

 private:
  zarr::ReadOptions read_options() const {
    return {.missing_is_error = missing_is_error_, .memory_limit = options_.memory_limit};
  }
  std::string file(std::string_view name) const { return join_path(directory_, name); }

  bool has_process_databases() const;
  void check_names(const std::set<std::string>& names, const Report& f) const;
  void check_array_metadatas(const std::set<std::string>& names, const Report& f) const;
  void load() const;
  void load_strings() const;
  void load_arrays() const;
  void load_legacy() const;

  FileSystem fs_;
  std::string directory_;
  TreeOptions options_;
  std::shared_ptr<const ocdbt::Database> database_;
  std::shared_ptr<const KvStore> store_;

  mutable std::once_flag loaded_;
  mutable std::vector<LeafInfo> leaves_;
  mutable std::vector<std::optional<ZarrArray>> arrays_;
  mutable bool missing_is_error_ = false;
  mutable TreeMetadata metadata_;
};

// The PRNG implementations that the first of the array_metadatas files names.
std::map<std::string, std::string> read_prng(const FileSystem& fs, const std::string& directory) {
  std::map<std::string, std::string> out;
  const std::string folder = join_path(directory, "array_metadatas");
  if (!fs.is_directory(folder)) return out;
  for (const DirectoryEntry& e : fs.list(folder)) {
    if (e.is_directory || !e.name.starts_with("process_")) continue;
    const std::string path = join_path(folder, e.name);
    for (const ArrayMetadata& a : parse_array_metadatas(fs.read_file(path, kMaxJson), path))
      if (!a.prng.empty()) out.emplace(a.param_name, a.prng);
  }
  return out;
}

void TreeItem::load() const {
  if (!fs_.is_file(file(kTreeMetadata))) return load_legacy();
  const std::string path = file(kTreeMetadata);
  metadata_ = parse_tree_metadata(fs_.read_file(path, kMaxJson), path);
  if (metadata_.use_ocdbt.value_or(false) && !database_)
    throw_user_error({fmt::format("read {}", directory_), "manifest.ocdbt, as _METADATA says",
                      "there is none",
                      "The checkpoint is damaged: restore it from a copy, or use another step"});
  missing_is_error_ = metadata_.stores_fill_values;
  leaves_ = metadata_.leaves;
  load_strings();
  load_arrays();
  const auto prng = read_prng(fs_, directory_);
  std::map<std::string, std::string> shardings;
  if (fs_.is_file(file(kShardingFile)))
    shardings = parse_shardings(fs_.read_file(file(kShardingFile), kMaxJson), file(kShardingFile));
  for (LeafInfo& l : leaves_) {
    if (l.kind != LeafKind::kArray) continue;
    const std::string name = param_name(l.path);
    if (const auto it = prng.find(name); it != prng.end()) l.prng = it->second;
    if (const auto it = shardings.find(name); it != shardings.end()) l.sharding = it->second;
  }
}

void TreeItem::load_strings() const {
  std::optional<Strings> strings;
  for (LeafInfo& l : leaves_) {
    if (l.kind != LeafKind::kString) continue;
    if (!strings)
      strings = Strings::parse(fs_.read_file(file(kStringsFile), kMaxJson), file(kStringsFile));
    const auto text = strings->find(param_name(l.path));
    if (!text)
      throw_user_error({fmt::format("read {}", file(kStringsFile)),
                        fmt::format("the string of leaf {}", path_text(l.path)), "there is none",
                        "The checkpoint is damaged: restore it from a copy, or use another step"});
    l.text = *text;
  }
}

void TreeItem::load_arrays() const {
  arrays_.resize(leaves_.size());
  const int format = metadata_.use_zarr3 ? 3 : 2;
  ThreadPool::global().parallel_for(
      static_cast<std::int64_t>(leaves_.size()), 64, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t k = begin; k < end; ++k) {
          const auto i = static_cast<std::size_t>(k);
          LeafInfo& l = leaves_[i];
          if (!has_array(l.kind)) continue;
          const std::string name = param_name(l.path);
          // TensorStore's file store takes a backslash for a slash.
          std::string key = name;
          if (!database_) std::replace(key.begin(), key.end(), '\\', '/');
          arrays_[i] = ZarrArray::open(store_, key, format);
          if (!arrays_[i] && key != name) arrays_[i] = ZarrArray::open(store_, name, format);
          // Older versions did not say which one they used.
          if (!arrays_[i]) arrays_[i] = ZarrArray::open(store_, name);
          if (!arrays_[i])
            throw_user_error(
                {fmt::format("read {}", directory_),
                 fmt::format("the array of leaf {} ({})", path_text(l.path),
                             zarr::child_key(name, zarr::metadata_name(format))),
                 "there is none",
                 "The checkpoint is damaged: restore it from a copy, or use another step"});
          const zarr::Metadata& m = arrays_[i]->metadata();
          l.dtype = m.dtype;
          l.dtype_name = m.type_name;
          l.shape = m.shape;
        }
      });
}

// Before _METADATA: the arrays' names are the tree, but for a msgpack file with the structure.
void TreeItem::load_legacy() const {
  if (fs_.is_file(file("checkpoint"))) {
    for (Leaf& l :
         read_flax_msgpack(fs_.read_file(file("checkpoint"), kMaxJson), file("checkpoint"))) {
      constexpr std::string_view kElsewhere = "PLACEHOLDER://";
      if (l.kind == LeafKind::kString && l.text.starts_with(kElsewhere)) {
        auto a = ZarrArray::open(store_, l.text.substr(kElsewhere.size()));
        if (!a)
          throw_user_error({fmt::format("read {}", file("checkpoint")),
                            fmt::format("the array \"{}\" beside it", l.text), "there is none",
                            "The checkpoint is damaged: restore it from a copy"});
        l.kind = LeafKind::kArray;
        l.text.clear();
        l.dtype = a->metadata().dtype;
        l.dtype_name = a->metadata().type_name;
        l.shape = a->metadata().shape;
        arrays_.push_back(std::move(a));
      } else {
        arrays_.emplace_back();
      }
      leaves_.push_back(std::move(l));
    }
    return;
  }
  std::vector<LeafInfo> found;
  store_->for_each("", [&](std::string_view key) {
    for (const int format : {2, 3}) {
      const std::string name = "/" + std::string(zarr::metadata_name(format));
      if (!key.ends_with(name)) continue;
      LeafInfo l;
      l.kind = LeafKind::kArray;
      std::string_view rest = key.substr(0, key.size() - name.size());
      while (true) {
        const std::size_t dot = rest.find('.');
        l.path.push_back({std::string(rest.substr(0, dot)), false});
        if (dot == std::string_view::npos) break;
        rest.remove_prefix(dot + 1);
      }
      found.push_back(std::move(l));
    }
  });
  if (found.empty())
    throw_user_error({fmt::format("read {}", directory_), "a tree that Orbax saved",
                      "neither _METADATA nor arrays are in it",
                      "Name a checkpoint's root, step or item folder"});
  leaves_ = std::move(found);
  load_arrays();
}

void TreeItem::check(const Report& f, const Progress& progress) const {
  if (database_) database_->check([&](std::string_view defect) { f("manifest.ocdbt", defect); });
  // The databases of processes are parts of the merged one; each must be whole on its own, too.
  for (const DirectoryEntry& e : fs_.list(directory_)) {
    if (!e.is_directory || !e.name.starts_with("ocdbt.process_")) continue;
    try {
      const std::string folder = join_path(directory_, e.name);
      const ocdbt::Database part(fs_, folder);
      part.check([&](std::string_view defect) { f(e.name, defect); });
      part.generations();
    } catch (const Error& error) {
      f(e.name, error.message());
    }
  }
  if (database_ && !fs_.is_file(file(kTreeMetadata)) && !fs_.is_file(file("checkpoint"))) {
    // A database that holds no arrays is one of keys and values only.
    bool arrays = false;
    database_->for_each("", [&](std::string_view key) {
      arrays = arrays || key.ends_with(".zarray") || key.ends_with("zarr.json");
    });
    if (!arrays) return;
  }
  leaves();
  std::set<std::string> names;
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    if (progress) progress(i, leaves_.size());
    if (!arrays_.at(i)) continue;
    names.insert(param_name(leaves_[i].path));
    arrays_[i]->check(read_options(),
                      [&](std::string_view defect) { f(path_text(leaves_[i].path), defect); });
  }
  check_names(names, f);
  check_array_metadatas(names, f);
  // Trees older than this file have none of what Orbax writes beside it.
  if (!fs_.is_file(file(kTreeMetadata)) &&
      (fs_.is_directory(file("array_metadatas")) || fs_.is_file(file(kStepMetadata)) ||
       fs_.is_file(file(kShardingFile)) || has_process_databases()))
    f(kTreeMetadata, "it is absent");
  if (fs_.exists(file(kShardingFile)) && !fs_.is_file(file(kShardingFile)))
    f(kShardingFile, "it is no file");
  for (const LeafInfo& l : leaves_)
    if (!l.sharding.empty())
      if (const std::string defect = sharding_defect(l.sharding); !defect.empty())
        f(kShardingFile, fmt::format("the sharding of {}: {}", path_text(l.path), defect));
}

bool TreeItem::has_process_databases() const {
  for (const DirectoryEntry& e : fs_.list(directory_))
    if (e.is_directory && e.name.starts_with("ocdbt.process_")) return true;
  return false;
}

// Every array in the store belongs to a leaf.
void TreeItem::check_names(const std::set<std::string>& names, const Report& f) const {
  const std::string suffix = "/" + std::string(zarr::metadata_name(metadata_.use_zarr3 ? 3 : 2));
  if (!database_) return;
  database_->for_each("", [&](std::string_view key) {
    if (!key.ends_with(suffix)) return;
    const std::string name(key.substr(0, key.size() - suffix.size()));
    if (!names.contains(name)) f(name, "an array that is no leaf of _METADATA");
  });
}

// All processes say the same of the arrays as the arrays themselves.
void TreeItem::check_array_metadatas(const std::set<std::string>& names, const Report& f) const {
  const std::string folder = file("array_metadatas");
  if (!fs_.is_directory(folder)) return;
  std::map<std::string, std::size_t> by_name;
  for (std::size_t i = 0; i < leaves_.size(); ++i)
    if (arrays_.at(i)) by_name[param_name(leaves_[i].path)] = i;
  std::size_t files = 0;
  for (const DirectoryEntry& e : fs_.list(folder)) {
    const std::string path = join_path(folder, e.name), where = "array_metadatas/" + e.name;
    ++files;
    try {
      for (const ArrayMetadata& a : parse_array_metadatas(fs_.read_file(path, kMaxJson), path)) {
        if (!names.contains(a.param_name)) {
          f(where, fmt::format("{} is no leaf of _METADATA", a.param_name));
          continue;
        }
        const std::size_t i = by_name.at(a.param_name);
        const Dims& chunk = arrays_[i]->metadata().chunk;
        if (a.chunk_shape.size() != 0 && a.chunk_shape != chunk)
          f(where, fmt::format("{} has chunks {}, the array {}", a.param_name,
                               to_string(a.chunk_shape), to_string(chunk)));
        if (leaves_[i].shard.size() != 0 && a.write_shape != leaves_[i].shard)
          f(where, fmt::format("{} has the write shape {}, in _METADATA {}", a.param_name,
                               to_string(a.write_shape), to_string(leaves_[i].shard)));
      }
    } catch (const Error& error) {
      f(where, error.message());
    }
  }
  if (files == 0) f("array_metadatas", "it is empty");
}

}  // namespace

bool is_tree_directory(const FileSystem& fs, const std::string& directory) {
  if (fs.is_file(join_path(directory, kTreeMetadata))) return true;
  if (ocdbt::Database::exists(fs, directory)) return true;
  if (!fs.is_directory(directory)) return false;
  // Very old ones: a directory an array.
  for (const DirectoryEntry& e : fs.list(directory))
    if (e.is_directory && (fs.is_file(join_path(join_path(directory, e.name), ".zarray"))))
      return true;
  return false;
}

std::unique_ptr<Item> open_tree(const FileSystem& fs, std::string directory,
                                const TreeOptions& options) {
  return std::make_unique<TreeItem>(fs, std::move(directory), options);
}

}  // namespace xylem::checkpoint::orbax
