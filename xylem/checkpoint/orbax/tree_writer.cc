#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <set>
#include <thread>

#include "xylem/base/bytes.h"
#include "xylem/base/error.h"
#include "xylem/base/thread_pool.h"
#include "xylem/checkpoint/ocdbt/writer.h"
#include "xylem/checkpoint/orbax/metadata.h"
#include "xylem/checkpoint/orbax/writer.h"
#include "xylem/checkpoint/storage/budget.h"
#include "xylem/checkpoint/storage/kv_store.h"
#include "xylem/checkpoint/zarr/array.h"

namespace xylem::checkpoint::orbax {
namespace {

[[noreturn]] void refuse(std::string_view expected, std::string_view given,
                         std::string_view advice) {
  throw_user_error({"save a tree", expected, given, advice});
}

bool is_utf8_text(std::string_view s) {
  std::size_t i = 0;
  while (i < s.size()) {
    const auto c = static_cast<unsigned char>(s[i]);
    const std::size_t n = c < 0x80   ? 1
                          : c < 0xc2 ? 0
                          : c < 0xe0 ? 2
                          : c < 0xf0 ? 3
                          : c < 0xf5 ? 4
                                     : 0;
    if (n == 0 || n > s.size() - i) return false;
    for (std::size_t k = 1; k < n; ++k)
      if ((static_cast<unsigned char>(s[i + k]) & 0xc0) != 0x80) return false;
    i += n;
  }
  return true;
}

// Arrays that are not split over devices: chunks that are contiguous parts, along the first axes.
Dims contiguous_chunk(const Dims& shape, std::uint64_t element, std::uint64_t limit) {
  Dims chunk;
  for (const std::int64_t d : shape) chunk.push_back(std::max<std::int64_t>(d, 1));
  std::uint64_t bytes = element;
  for (const std::int64_t d : chunk) bytes *= static_cast<std::uint64_t>(d);
  if (limit == 0 || bytes <= limit) return chunk;
  for (int i = 0; i < chunk.ssize() && bytes > limit; ++i) {
    const std::int64_t n = chunk[i];
    const std::uint64_t row = bytes / static_cast<std::uint64_t>(n);
    const auto most = static_cast<std::int64_t>(std::max<std::uint64_t>(limit / row, 1));
    std::int64_t take = most;
    while (n % take != 0) --take;
    // A size without divisors gets a last chunk that is not full.
    if (take * 4 < most) take = most;
    chunk[i] = take;
    bytes = row * static_cast<std::uint64_t>(take);
  }
  return chunk;
}

struct ArrayPlan {
  const Leaf* leaf = nullptr;
  std::string name, key;  // of the leaf; in the store
  zarr::Metadata metadata;
  std::int64_t num_chunks = 1;
};

struct Unit {
  std::size_t array = 0;
  std::int64_t chunk = 0;
};

class TreeWriter {
 public:
  TreeWriter(const FileSystem& fs, const std::string& directory, const LeafTree& tree,
             const WriteOptions& options)
      : fs_(fs),
        directory_(directory),
        tree_(tree),
        options_(options),
        budget_(options.memory_limit) {
    plan();
  }

  void write() {
    write_arrays();
    write_json();
  }

 private:
  void plan();
  void write_arrays();
  void write_json();
  void work(std::size_t worker);
  void write_chunk(const ArrayPlan& a, std::int64_t chunk, ocdbt::DataFileWriter* file,
                   std::vector<ocdbt::KeyValue>& keys);
  void put(const std::string& key, std::string_view value, ocdbt::DataFileWriter* file,
           std::vector<ocdbt::KeyValue>& keys);

  const FileSystem& fs_;
  std::string directory_;
  const LeafTree& tree_;
  WriteOptions options_;
  Budget budget_;
  std::vector<ArrayPlan> arrays_;
  std::vector<Unit> units_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::vector<std::vector<ocdbt::KeyValue>> keys_;  // of each worker
  std::vector<std::exception_ptr> errors_;
  ocdbt::Config config_ = ocdbt::default_config();
};

void TreeWriter::plan() {
  if (tree_.empty()) refuse("at least one leaf", "an empty tree", "Put something into it");
  std::set<std::string> names;
  std::vector<LeafInfo> infos(tree_.begin(), tree_.end());
  in_tree_order(std::move(infos), "save a tree");
  for (const Leaf& l : tree_) {
    const std::string name = param_name(l.path);
    for (const PathKey& k : l.path)
      if (!is_utf8_text(k.text))
        refuse("names in UTF-8", fmt::format("the name {}", to_hex(k.text)), "Rename it");
    if (l.kind == LeafKind::kString && !is_utf8_text(l.text))
      refuse("strings in UTF-8", fmt::format("the leaf {} is not", path_text(l.path)),
             "Save bytes as an array of uint8");
    if (has_array(l.kind) || l.kind == LeafKind::kString)
      if (!names.insert(name).second)
        refuse("names that differ when their parts are joined with \".\"",
               fmt::format("\"{}\" twice", name), "Rename one of them");
    if (!has_array(l.kind)) continue;
    if (!l.value.defined())
      refuse(fmt::format("an array for leaf {}", path_text(l.path)), "none", "Give it one");
    std::string key = name;
    // TensorStore's file store takes a backslash for a slash.
    if (!options_.use_ocdbt) std::replace(key.begin(), key.end(), '\\', '/');
    if (!options_.use_ocdbt && !name.empty() && !is_safe_relative_path(key))
      refuse("names that are paths below the directory", fmt::format("\"{}\"", name),
             "Rename it, or save with use_ocdbt");
    ArrayPlan a;
    a.leaf = &l;
    a.name = name;
    a.key = key;
    const HostArray& v = l.value;
    const auto element = static_cast<std::uint64_t>(dtype_bytes(v.dtype()));
    if (!l.shard.empty() && l.shard.size() != v.dims().size())
      refuse(fmt::format("a shard of rank {} for leaf {}", v.rank(), path_text(l.path)),
             to_string(l.shard), "Give it the array's rank");
    const Dims chunk = l.shard.empty() || l.shard == v.dims()
                           ? contiguous_chunk(v.dims(), element, options_.chunk_bytes)
                           : zarr::choose_chunk(v.dims(), l.shard, element, options_.chunk_bytes);
    try {
      a.metadata = zarr::make_metadata(options_.use_zarr3 ? 3 : 2, v.dtype(), v.dims(), chunk,
                                       options_.codec);
    } catch (Error& e) {
      e.add_context(fmt::format("while saving leaf {}", path_text(l.path)));
      throw;
    }
    for (const std::int64_t d : a.metadata.grid()) a.num_chunks *= d;
    for (std::int64_t c = 0; c < a.num_chunks; ++c) units_.push_back({arrays_.size(), c});
    arrays_.push_back(std::move(a));
  }
  // The largest first, so that no thread is left alone with one at the end.
  std::stable_sort(units_.begin(), units_.end(), [&](const Unit& x, const Unit& y) {
    return arrays_[x.array].metadata.chunk_bytes() > arrays_[y.array].metadata.chunk_bytes();
  });
}

void TreeWriter::put(const std::string& key, std::string_view value, ocdbt::DataFileWriter* file,
                     std::vector<ocdbt::KeyValue>& keys) {
  if (file == nullptr) {
    const std::string path = join_path(directory_, key);
    fs_.make_directories(parent_path(path));
    fs_.write_file(path, value);
    return;
  }
  ocdbt::KeyValue k;
  k.key = key;
  k.inlined = value.size() <= config_.max_inline_value_bytes;
  if (k.inlined)
    k.value = value;
  else
    k.reference = file->append(value);
  keys.push_back(std::move(k));
}

void TreeWriter::write_chunk(const ArrayPlan& a, std::int64_t flat, ocdbt::DataFileWriter* file,
                             std::vector<ocdbt::KeyValue>& keys) {
  const zarr::Metadata& m = a.metadata;
  const HostArray& v = a.leaf->value;
  const Dims grid = m.grid();
  Dims index = grid;
  for (int i = grid.ssize() - 1; i >= 0; --i) {
    index[i] = flat % grid[i];
    flat /= grid[i];
  }
  const std::string key = zarr::child_key(a.key, m.chunk_key(index));
  const std::uint64_t bytes = m.chunk_bytes();
  const bool stored = options_.codec && options_.codec->kind == CodecKind::kZstd &&
                      options_.codec->level == kStoredLevel;

  // A chunk that is a contiguous part of a contiguous array needs no copy.
  HostArray chunk;
  bool whole = v.contiguous(), below_full = false;
  std::uint64_t offset = 0;
  for (int i = 0; whole && i < v.rank(); ++i) {
    const std::int64_t begin = index[i] * m.chunk[i];
    if (begin + m.chunk[i] > v.dims()[i]) whole = false;
    if (below_full && m.chunk[i] != v.dims()[i]) whole = false;
    if (m.chunk[i] != 1) below_full = true;
    offset += static_cast<std::uint64_t>(begin * v.byte_strides()[i]);
  }
  const Held held(budget_, (whole ? 0 : bytes) + (stored || !options_.codec ? 0 : bytes));
  std::span<const std::byte> data;
  if (whole) {
    data = {v.data() + offset, static_cast<std::size_t>(bytes)};
  } else {
    chunk = zarr::cut_chunk(m, v, index);
    data = {chunk.data(), chunk.nbytes()};
  }
  const auto tail = [](std::uint64_t size) {
    ByteWriter w;
    w.write(std::uint64_t{0});
    w.write(size);
    w.write(crc32c(w.str()));
    return w.take();
  };
  const bool zarr3 = m.codecs.sharding != nullptr;
  if (file != nullptr && stored && bytes > config_.max_inline_value_bytes) {
    ocdbt::KeyValue k;
    k.key = key;
    k.inlined = false;
    k.reference = zarr3 ? file->append_stored(data, tail) : file->append_stored(data);
    keys.push_back(std::move(k));
    return;
  }
  std::vector<Codec> codecs;
  if (options_.codec) codecs.push_back(*options_.codec);
  if (codecs.empty() && !zarr3) return put(key, as_string_view(data), file, keys);
  std::string encoded = encode(codecs, data);
  if (zarr3) encoded += tail(encoded.size());
  put(key, encoded, file, keys);
}

void TreeWriter::work(std::size_t worker) {
  try {
    std::optional<ocdbt::DataFileWriter> file;
    if (options_.use_ocdbt) file.emplace(fs_, directory_, options_.data_file_bytes);
    ocdbt::DataFileWriter* f = file ? &*file : nullptr;
    while (!failed_.load(std::memory_order_relaxed)) {
      const std::size_t i = next_.fetch_add(1);
      if (i >= units_.size()) break;
      write_chunk(arrays_[units_[i].array], units_[i].chunk, f, keys_[worker]);
    }
    if (f != nullptr) f->close();
  } catch (...) {
    errors_[worker] = std::current_exception();
    failed_.store(true);
  }
}

void TreeWriter::write_arrays() {
  if (options_.use_ocdbt) fs_.make_directories(join_path(directory_, "d"));
  std::uint64_t total = 0;
  for (const ArrayPlan& a : arrays_) total += a.leaf->value.nbytes();
  int threads =
      options_.threads > 0 ? options_.threads : std::min(ThreadPool::default_num_threads(), 4);
  if (total < (std::uint64_t{4} << 20)) threads = 1;
  threads = static_cast<int>(
      std::clamp<std::size_t>(units_.size(), 1, static_cast<std::size_t>(threads)));
  keys_.resize(static_cast<std::size_t>(threads));
  errors_.resize(keys_.size());
  {
    std::vector<std::thread> others;
    for (std::size_t i = 1; i < keys_.size(); ++i) {
      // A system that gives no more threads gets by with those there are.
      try {
        others.emplace_back([this, i] { work(i); });
      } catch (const std::system_error&) {
        break;
      }
    }
    work(0);
    for (std::thread& t : others) t.join();
  }
  for (const std::exception_ptr& e : errors_)
    if (e) std::rethrow_exception(e);

  std::vector<ocdbt::KeyValue> all;
  std::optional<ocdbt::DataFileWriter> file;
  if (options_.use_ocdbt) file.emplace(fs_, directory_);
  for (const ArrayPlan& a : arrays_) {
    const std::string key = zarr::child_key(a.key, zarr::metadata_name(a.metadata.format));
    put(key, a.metadata.format == 2 ? zarr::format_v2(a.metadata) : zarr::format_v3(a.metadata),
        file ? &*file : nullptr, all);
  }
  if (!options_.use_ocdbt) return;
  file->close();
  for (auto& keys : keys_)
    for (auto& k : keys) all.push_back(std::move(k));
  ocdbt::write_database(fs_, directory_, std::move(all), config_, /*durable=*/false);
}

void TreeWriter::write_json() {
  TreeMetadata m;
  m.leaves.assign(tree_.begin(), tree_.end());
  m.use_ocdbt = options_.use_ocdbt;
  m.use_zarr3 = options_.use_zarr3;
  m.stores_fill_values = true;
  m.custom = options_.custom;
  std::map<std::string, std::string> shardings;
  std::vector<ArrayMetadata> metadatas;
  std::vector<std::pair<std::string, std::string>> strings;
  for (const Leaf& l : tree_) {
    if (l.kind == LeafKind::kString) strings.emplace_back(param_name(l.path), l.text);
  }
  for (const ArrayPlan& a : arrays_) {
    const Leaf& l = *a.leaf;
    if (l.kind != LeafKind::kArray) continue;
    shardings[a.name] = l.sharding.empty() ? single_device_sharding() : l.sharding;
    metadatas.push_back(
        {a.name, l.shard.empty() ? l.value.dims() : l.shard, a.metadata.chunk, l.prng});
  }
  if (!shardings.empty()) {
    fs_.write_file(join_path(directory_, kShardingFile), format_shardings(shardings));
    const std::string folder = join_path(directory_, "array_metadatas");
    fs_.make_directories(folder);
    fs_.write_file(join_path(folder, "process_0"), format_array_metadatas(metadatas));
  }
  if (!strings.empty())
    fs_.write_file(join_path(directory_, kStringsFile), format_strings(strings));
  fs_.write_file(join_path(directory_, kTreeMetadata), format_tree_metadata(m));
}

}  // namespace

void write_tree(const FileSystem& fs, const std::string& directory, const LeafTree& tree,
                const WriteOptions& options) {
  TreeWriter(fs, directory, tree, options).write();
}

}  // namespace xylem::checkpoint::orbax
