#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "xylem/base/error.h"
#include "xylem/checkpoint/internal/rescue.h"
#include "xylem/checkpoint/ocdbt/database.h"
#include "xylem/checkpoint/ocdbt/recover.h"
#include "xylem/checkpoint/orbax/metadata.h"
#include "xylem/checkpoint/zarr/array.h"

namespace xylem::checkpoint::internal {
namespace {

using Kind = RepairAction::Kind;
using Store = std::shared_ptr<const KvStore>;
constexpr std::uint64_t kMaxJson = std::uint64_t{2} << 30;

// Several stores as one; the first that has a key counts.
class UnionStore final : public KvStore {
 public:
  UnionStore(std::string name, std::vector<Store> stores)
      : name_(std::move(name)), stores_(std::move(stores)) {}
  const std::string& name() const override { return name_; }
  std::optional<ByteSource> find(std::string_view key) const override {
    for (const Store& s : stores_)
      if (auto found = s->find(key)) return found;
    return std::nullopt;
  }
  void for_each(std::string_view prefix,
                const std::function<void(std::string_view)>& f) const override {
    std::set<std::string> keys;
    for (const Store& s : stores_)
      s->for_each(prefix, [&](std::string_view key) { keys.emplace(key); });
    for (const std::string& k : keys) f(k);
  }

 private:
  std::string name_;
  std::vector<Store> stores_;
};

// "a.0.b" as a path of keys; positions are told from keys by mark_positions.
KeyPath split_name(std::string_view name) {
  KeyPath out;
  while (true) {
    const std::size_t dot = name.find('.');
    out.push_back({std::string(name.substr(0, dot)), false});
    if (dot == std::string_view::npos) return out;
    name.remove_prefix(dot + 1);
  }
}

// Nodes whose children are "0" to "n-1" are taken for sequences.
void mark_positions(LeafTree& tree) {
  std::map<std::string, std::set<std::string>> children;
  const auto prefix = [](const KeyPath& p, std::size_t n) {
    std::string s;
    for (std::size_t i = 0; i < n; ++i) (s += p[i].text) += '\0';
    return s;
  };
  for (const Leaf& l : tree)
    for (std::size_t i = 0; i < l.path.size(); ++i)
      children[prefix(l.path, i)].insert(l.path[i].text);
  for (Leaf& l : tree)
    for (std::size_t i = 0; i < l.path.size(); ++i) {
      const std::set<std::string>& names = children[prefix(l.path, i)];
      bool all = true;
      for (std::size_t k = 0; all && k < names.size(); ++k)
        all = names.contains(fmt::format("{}", k));
      l.path[i].index = all;
    }
}

class TreeRescue {
 public:
  TreeRescue(const FileSystem& fs, const std::string& directory, const std::string& where)
      : fs_(fs), directory_(directory), where_(where) {}

  std::optional<RescuedTree> run() {
    read_metadata();
    read_array_metadatas();
    open_store();
    if (!known_) name_leaves();
    read_strings();
    read_shardings();
    std::size_t saved = 0;
    LeafTree kept;
    for (Leaf& l : out_.tree) {
      if (is_empty_node(l.kind) || l.kind == LeafKind::kNone) {
        kept.push_back(std::move(l));
        continue;
      }
      const std::string lost = l.kind == LeafKind::kString ? rescue_string(l) : rescue_array(l);
      if (lost.empty()) {
        ++saved;
        kept.push_back(std::move(l));
        continue;
      }
      const bool in_sequence =
          std::any_of(l.path.begin(), l.path.end(), [](const PathKey& k) { return k.index; });
      act(Kind::kQuarantined, path_text(l.path),
          in_sequence ? lost + "; None stands in its place" : lost);
      // A sequence must have no gap.
      if (in_sequence) kept.push_back(empty_leaf(l.path, LeafKind::kNone));
    }
    out_.tree = std::move(kept);
    if (saved == 0) return std::nullopt;
    find_unreferenced();
    return std::move(out_);
  }

 private:
  std::string path(std::string_view name) const { return join_path(directory_, name); }
  void act(Kind kind, std::string_view name, std::string_view detail) {
    std::string at = where_;
    if (!at.empty() && !name.empty()) at += '/';
    at += name;
    out_.actions.push_back({kind, at.empty() ? "(tree)" : at, std::string(detail)});
  }

  void read_metadata() {
    try {
      orbax::TreeMetadata m = orbax::parse_tree_metadata(
          fs_.read_file(path(orbax::kTreeMetadata), kMaxJson), path(orbax::kTreeMetadata));
      out_.use_zarr3 = m.use_zarr3;
      out_.use_ocdbt = m.use_ocdbt.value_or(ocdbt::Database::exists(fs_, directory_));
      out_.custom = m.custom;
      for (const LeafInfo& info : m.leaves) {
        Leaf l;
        static_cast<LeafInfo&>(l) = info;
        out_.tree.push_back(std::move(l));
      }
      known_ = true;
    } catch (const Error& e) {
      metadata_error_ = e.message();
    }
  }

  void read_array_metadatas() {
    const std::string folder = path("array_metadatas");
    if (!fs_.is_directory(folder)) return;
    for (const DirectoryEntry& e : fs_.list(folder)) {
      try {
        const std::string file = join_path(folder, e.name);
        for (orbax::ArrayMetadata& a :
             orbax::parse_array_metadatas(fs_.read_file(file, kMaxJson), file))
          arrays_.emplace(a.param_name, std::move(a));
      } catch (const Error& error) {
        act(Kind::kRebuilt, "array_metadatas/" + e.name,
            fmt::format("{}; made from the arrays, without the kinds of PRNG keys",
                        error.message()));
      }
    }
  }

  // Points for a key of a recovered database: it names an array that is wanted.
  std::uint64_t score(std::string_view key) const {
    for (const char* name : {".zarray", "zarr.json"}) {
      if (key == name) return 1;
      if (!key.ends_with(name) || key[key.size() - std::string_view(name).size() - 1] != '/')
        continue;
      const std::string param(key.substr(0, key.size() - std::string_view(name).size() - 1));
      return wanted_.empty() || wanted_.contains(param) ? 1 : 0;
    }
    return 0;
  }

  // A database that is whole, from its own manifest or from its nodes; null if there is none.
  Store open_database(const std::string& directory, const std::string& name) {
    std::string problem;
    Store damaged;
    try {
      if (ocdbt::Database::exists(fs_, directory)) {
        auto db = std::make_shared<const ocdbt::Database>(fs_, directory);
        db->check([&](std::string_view defect) {
          if (problem.empty()) problem = defect;
        });
        if (problem.empty()) return db;
        damaged = std::move(db);
      } else {
        problem = "there is no manifest";
      }
    } catch (const Error& e) {
      problem = e.message();
    }
    std::shared_ptr<const ocdbt::Database> found =
        ocdbt::recover_database(fs_, directory, [&](std::string_view key) { return score(key); });
    if (found) {
      act(Kind::kRebuilt, join_path(name, "manifest.ocdbt"),
          fmt::format("{}; made from the nodes in d/", problem));
      return found;
    }
    return damaged;
  }

  void open_store() {
    for (const Leaf& l : out_.tree)
      if (has_array(l.kind)) wanted_.insert(param_name(l.path));
    std::vector<std::string> processes;
    bool has_nodes = ocdbt::Database::exists(fs_, directory_);
    for (const DirectoryEntry& e : fs_.list(directory_)) {
      if (!e.is_directory) continue;
      if (e.name.starts_with("ocdbt.process_")) processes.push_back(e.name);
      has_nodes = has_nodes || (e.name == "d" && out_.use_ocdbt);
    }
    if (!has_nodes && processes.empty()) {
      out_.use_ocdbt = false;
      store_ = open_directory_store(fs_, directory_);
      return;
    }
    out_.use_ocdbt = true;
    // The merged database holds all; where it is damaged, those of the processes do together.
    std::string problem;
    try {
      auto db = std::make_shared<const ocdbt::Database>(fs_, directory_);
      db->check([&](std::string_view defect) {
        if (problem.empty()) problem = defect;
      });
      merged_ = db;
      if (problem.empty()) {
        store_ = db;
        for (const std::string& p : processes) check_part(p);
        return;
      }
    } catch (const Error& e) {
      problem = e.message();
    }
    std::vector<Store> parts;
    for (const std::string& p : processes)
      if (Store s = open_database(path(p), p)) parts.push_back(std::move(s));
    if (!parts.empty()) {
      act(Kind::kRebuilt, "manifest.ocdbt",
          fmt::format("{}; made from the databases of {} processes", problem, parts.size()));
      if (merged_) parts.push_back(merged_);
      store_ = std::make_shared<UnionStore>(directory_, std::move(parts));
      return;
    }
    store_ = open_database(directory_, "");
    if (!store_) act(Kind::kQuarantined, "manifest.ocdbt", problem);
  }

  // A process's own database is not needed where the merged one is whole.
  void check_part(const std::string& name) {
    try {
      const ocdbt::Database part(fs_, path(name));
      part.check([&](std::string_view defect) {
        act(Kind::kDropped, join_path(name, "manifest.ocdbt"),
            fmt::format("{}; the merged database has all of it", defect));
      });
    } catch (const Error& e) {
      if (ocdbt::Database::exists(fs_, path(name)))
        act(Kind::kDropped, join_path(name, "manifest.ocdbt"),
            fmt::format("{}; the merged database has all of it", e.message()));
    }
  }

  // The tree from the arrays' names, where _METADATA is lost.
  void name_leaves() {
    std::set<std::string> names;
    if (store_) {
      try {
        store_->for_each("", [&](std::string_view key) {
          for (const std::string_view file :
               {std::string_view("/.zarray"), std::string_view("/zarr.json")}) {
            if (!key.ends_with(file)) continue;
            names.emplace(key.substr(0, key.size() - file.size()));
            out_.use_zarr3 = file == "/zarr.json";
          }
        });
      } catch (const Error&) {
        // A damaged database gives what it can.
      }
    }
    for (const std::string& name : names) {
      Leaf l;
      l.path = split_name(name);
      l.kind = arrays_.contains(name) ? LeafKind::kArray : LeafKind::kNumpy;
      out_.tree.push_back(std::move(l));
    }
    try {
      const auto j =
          nlohmann::json::parse(fs_.read_file(path(orbax::kStringsFile), kMaxJson), nullptr, false);
      if (j.is_object())
        for (const auto& [name, text] : j.items())
          if (text.is_string()) out_.tree.push_back(string_leaf(split_name(name), ""));
    } catch (const Error&) {
    }
    mark_positions(out_.tree);
    act(Kind::kRebuilt, orbax::kTreeMetadata,
        fmt::format("{}; made from the names of {} arrays, so tuples, scalars and empty nodes are "
                    "not told apart",
                    metadata_error_, names.size()));
  }

  void read_strings() {
    if (!fs_.is_file(path(orbax::kStringsFile))) return;
    try {
      strings_ = orbax::Strings::parse(fs_.read_file(path(orbax::kStringsFile), kMaxJson),
                                       path(orbax::kStringsFile));
    } catch (const Error& e) {
      strings_error_ = e.message();
    }
  }

  void read_shardings() {
    if (fs_.exists(path(orbax::kShardingFile)) && !fs_.is_file(path(orbax::kShardingFile)))
      act(Kind::kDropped, orbax::kShardingFile, "a directory where a file belongs");
    if (!fs_.is_file(path(orbax::kShardingFile))) return;
    try {
      shardings_ = orbax::parse_shardings(fs_.read_file(path(orbax::kShardingFile), kMaxJson),
                                          path(orbax::kShardingFile));
    } catch (const Error& e) {
      act(Kind::kRebuilt, orbax::kShardingFile,
          fmt::format("{}; arrays lie on one device now", e.message()));
    }
  }

  // Each gives what is wrong with a leaf that cannot be saved.
  std::string rescue_string(Leaf& l) {
    const auto text = strings_ ? strings_->find(param_name(l.path)) : std::nullopt;
    if (text) {
      l.text = *text;
      return {};
    }
    return strings_error_.empty() ? "its text is in no file" : strings_error_;
  }

  std::string rescue_array(Leaf& l) {
    const std::string name = param_name(l.path);
    if (!store_) return "no database has it";
    try {
      auto array = zarr::ZarrArray::open(store_, name, out_.use_zarr3 ? 3 : 2);
      if (!array) array = zarr::ZarrArray::open(store_, name);
      if (!array) return "no database has it";
      std::string defect;
      array->check({.missing_is_error = true}, [&](std::string_view d) {
        if (defect.empty()) defect = d;
      });
      if (!defect.empty()) return defect;
      const zarr::Metadata& m = array->metadata();
      l.dtype = m.dtype;
      l.dtype_name = m.type_name;
      l.shape = m.shape;
      if (!l.dtype) {
        if (l.shape.size() != 0)
          return fmt::format("elements of type {} cannot be written anew", m.type_name);
        l.text = array->read_raw_chunk({});
        while (!l.text.empty() && l.text.back() == '\0') l.text.pop_back();
        l.kind = LeafKind::kString;
        return {};
      }
      if (const auto it = arrays_.find(name); it != arrays_.end()) {
        l.prng = it->second.prng;
        if (l.shard.empty()) l.shard = it->second.write_shape;
      }
      if (l.shard.size() != l.shape.size()) l.shard = {};
      for (const std::int64_t d : l.shard)
        if (d < 1) l.shard = {};
      if (const auto it = shardings_.find(name); it != shardings_.end()) {
        const std::string problem = orbax::sharding_defect(it->second);
        if (problem.empty())
          l.sharding = it->second;
        else
          act(Kind::kRebuilt, orbax::kShardingFile,
              fmt::format("{}: {}; it lies on one device now", path_text(l.path), problem));
      }
      l.source = [a = *array](const Dims& start, const Dims& shape) {
        return a.read(zarr::Box{start, shape}, {.missing_is_error = true});
      };
      return {};
    } catch (const Error& e) {
      return e.message();
    }
  }

  // Files that nothing refers to: left by saves that failed, or by copies.
  void find_unreferenced() {
    std::set<std::string> used;
    // Without a manifest of its own it is not known what a database refers to.
    const auto collect = [&](const std::string& folder) {
      try {
        const ocdbt::Database db(fs_, path(folder));
        db.for_each_range([&](const std::string& file, std::uint64_t, std::uint64_t) {
          used.insert(folder.empty() ? file : join_path(folder, file));
        });
        return true;
      } catch (const Error&) {
        return false;
      }
    };
    std::vector<std::string> folders{""};
    for (const DirectoryEntry& e : fs_.list(directory_)) {
      if (e.is_directory && e.name.starts_with("ocdbt.process_")) folders.push_back(e.name);
      if (!e.is_directory && e.name.ends_with(".__lock"))
        act(Kind::kDropped, e.name, "a lock file that was left behind");
      if (!e.is_directory && e.name.find(".tmp-") != std::string::npos)
        act(Kind::kDropped, e.name, "a file whose writing did not end");
    }
    std::erase_if(folders, [&](const std::string& f) { return !collect(f); });
    for (const std::string& f : folders) {
      const std::string data = f.empty() ? "d" : f + "/d";
      if (!out_.use_ocdbt || !fs_.is_directory(path(data))) continue;
      for (const DirectoryEntry& e : fs_.list(path(data))) {
        const std::string file = data + "/" + e.name;
        if (!used.contains(file))
          act(Kind::kDropped, file,
              fmt::format("{} bytes that nothing refers to", fs_.bytes_below(path(file))));
      }
    }
  }

  const FileSystem& fs_;
  const std::string& directory_;
  const std::string& where_;
  RescuedTree out_;
  bool known_ = false;
  std::string metadata_error_, strings_error_;
  std::map<std::string, orbax::ArrayMetadata> arrays_;
  std::map<std::string, std::string> shardings_;
  std::set<std::string> wanted_;
  std::optional<orbax::Strings> strings_;
  Store store_;
  std::shared_ptr<const ocdbt::Database> merged_;
};

}  // namespace

std::optional<RescuedTree> rescue_tree(const FileSystem& fs, const std::string& directory,
                                       const std::string& where) {
  return TreeRescue(fs, directory, where).run();
}

}  // namespace xylem::checkpoint::internal
