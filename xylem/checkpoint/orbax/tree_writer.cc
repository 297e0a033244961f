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
#include "xylem/checkpoint/ocdbt/database.h"
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
  Dims write_shape;  // what one process writes at once
};

// A chunk to write: its place in the grid, and what is there of it.
struct Unit {
  std::size_t array = 0;
  Dims index;
  HostArray data;  // a view; undefined: the leaf's source has it
};

// A box of an array, sharing its memory.
HostArray view_box(const HostArray& a, const Dims& start, const Dims& shape) {
  std::ptrdiff_t offset = 0;
  for (int i = 0; i < a.rank(); ++i) offset += start[i] * a.byte_strides()[i];
  return HostArray(a.dtype(), shape,
                   std::shared_ptr<std::byte>(a.owner(), a.owner().get() + offset),
                   a.byte_strides());
}

// In C order without holes; the strides of sizes of 1 do not matter.
bool is_dense(const HostArray& a) {
  auto stride = static_cast<std::int64_t>(dtype_bytes(a.dtype()));
  for (int i = a.rank() - 1; i >= 0; --i) {
    if (a.dims()[i] != 1 && a.byte_strides()[i] != stride) return false;
    stride *= a.dims()[i];
  }
  return true;
}

// The axis along which `replicas` copies of a box of this shape share the writing; -1: the first
// copy writes it all. All processes must come to the same, so it depends on nothing else.
int replica_axis(const Dims& shape, int replicas) {
  if (replicas <= 1) return -1;
  for (int i = 0; i < shape.ssize(); ++i)
    if (shape[i] > 0 && shape[i] % replicas == 0) return i;
  return -1;
}

class TreeWriter {
 public:
  TreeWriter(const FileSystem& fs, const std::string& directory, const LeafTree& tree,
             const WriteOptions& options)
      : fs_(fs),
        directory_(directory),
        own_(options.num_processes > 1 && options.use_ocdbt
                 ? join_path(directory, fmt::format("ocdbt.process_{}", options.process))
                 : directory),
        tree_(tree),
        options_(options),
        budget_(options.memory_limit) {
    plan();
    open_previous();
  }

  void write_part() {
    write_arrays();
    write_array_metadata();
  }
  void finish() {
    if (options_.use_ocdbt && options_.num_processes > 1) merge();
    write_json();
  }

 private:
  void open_previous();
  void plan();
  void plan_chunks(std::size_t array, const Dims& begin, const Dims& end, const HostArray& data);
  void plan_parts(std::size_t array);
  void write_arrays();
  void write_array_metadata();
  void merge();
  void write_json();
  void work(std::size_t worker);
  void write_chunk(const Unit& unit, ocdbt::DataFileWriter* file,
                   std::vector<ocdbt::KeyValue>& keys);
  void put(const std::string& key, std::string_view value, ocdbt::DataFileWriter* file,
           std::vector<ocdbt::KeyValue>& keys);
  bool link_unchanged(const std::string& key, std::span<const std::byte> data, std::uint64_t size,
                      const std::function<std::string()>& encoded,
                      std::vector<ocdbt::KeyValue>& keys);

  const FileSystem& fs_;
  std::string directory_;  // of the item
  std::string own_;        // of this process's database
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
  std::shared_ptr<const KvStore> previous_;
  std::shared_ptr<const ocdbt::Database> previous_database_;
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
    const bool described = l.dtype && (l.source || !l.parts.empty() || options_.num_processes > 1);
    if (!l.value.defined() && !described)
      refuse(fmt::format("an array for leaf {}", path_text(l.path)), "none", "Give it one");
    const DType dtype = l.value.defined() ? l.value.dtype() : *l.dtype;
    const Dims shape = l.value.defined() ? l.value.dims() : l.shape;
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
    const auto element = static_cast<std::uint64_t>(dtype_bytes(dtype));
    if (!l.shard.empty() && l.shard.size() != shape.size())
      refuse(fmt::format("a shard of rank {} for leaf {}", shape.size(), path_text(l.path)),
             to_string(l.shard), "Give it the array's rank");
    const bool split = !l.value.defined() && !l.source;
    a.write_shape = l.shard.empty() ? shape : l.shard;
    if (split)
      if (const int axis = replica_axis(a.write_shape, l.replicas); axis >= 0)
        a.write_shape[axis] /= l.replicas;
    const Dims chunk =
        a.write_shape == shape
            ? contiguous_chunk(shape, element, options_.chunk_bytes)
            : zarr::choose_chunk(shape, a.write_shape, element, options_.chunk_bytes);
    try {
      a.metadata =
          zarr::make_metadata(options_.use_zarr3 ? 3 : 2, dtype, shape, chunk, options_.codec);
    } catch (Error& e) {
      e.add_context(fmt::format("while saving leaf {}", path_text(l.path)));
      throw;
    }
    arrays_.push_back(std::move(a));
    if (split)
      plan_parts(arrays_.size() - 1);
    else if (options_.process == 0)
      plan_chunks(arrays_.size() - 1, Dims(shape.size(), 0), shape, l.value);
  }
  // The largest first, so that no thread is left alone with one at the end.
  std::stable_sort(units_.begin(), units_.end(), [&](const Unit& x, const Unit& y) {
    return arrays_[x.array].metadata.chunk_bytes() > arrays_[y.array].metadata.chunk_bytes();
  });
}

// Units for the chunks between two corners, of which `data` has the elements.
void TreeWriter::plan_chunks(std::size_t array, const Dims& begin, const Dims& end,
                             const HostArray& data) {
  const zarr::Metadata& m = arrays_[array].metadata;
  const int rank = m.shape.ssize();
  Dims at, first, last;
  for (int i = 0; i < rank; ++i) {
    if (begin[i] >= end[i]) return;
    first.push_back(begin[i] / m.chunk[i]);
    last.push_back((end[i] - 1) / m.chunk[i]);
    at.push_back(first[i]);
  }
  while (true) {
    Unit u{array, at, {}};
    if (data.defined()) {
      Dims start, shape;
      for (int i = 0; i < rank; ++i) {
        start.push_back(at[i] * m.chunk[i] - begin[i]);
        shape.push_back(std::min(end[i] - begin[i] - start[i], m.chunk[i]));
      }
      u.data = view_box(data, start, shape);
    }
    units_.push_back(std::move(u));
    int axis = rank - 1;
    for (; axis >= 0; --axis) {
      if (++at[axis] <= last[axis]) break;
      at[axis] = first[axis];
    }
    if (axis < 0) return;
  }
}

void TreeWriter::plan_parts(std::size_t array) {
  const ArrayPlan& a = arrays_[array];
  const Leaf& l = *a.leaf;
  const Dims& shape = a.metadata.shape;
  const Dims shard = l.shard.empty() ? shape : l.shard;
  const int axis = replica_axis(shard, l.replicas);
  for (const Part& p : l.parts) {
    bool fits = p.start.size() == shape.size() && p.value.defined() &&
                p.value.dtype() == *l.dtype && p.replica >= 0 && p.replica < l.replicas;
    Dims begin = p.start, end = p.start;
    for (int i = 0; fits && i < shape.ssize(); ++i) {
      end[i] = std::min(p.start[i] + shard[i], shape[i]);
      fits = p.start[i] >= 0 && p.start[i] < std::max<std::int64_t>(shape[i], 1) &&
             (shard[i] == 0 || p.start[i] % shard[i] == 0) &&
             p.value.dims()[i] == end[i] - begin[i];
    }
    if (!fits)
      refuse(fmt::format("parts of leaf {} that are boxes of {} at multiples of that",
                         path_text(l.path), to_string(shard)),
             p.value.defined() ? fmt::format("{} at {}", p.value.type_string(), to_string(p.start))
                               : "one without an array",
             "Give each process the shards that it holds");
    if (axis < 0 && p.replica != 0) continue;
    HostArray data = p.value;
    // Only shards that are whole are cut: one at the array's edge may not divide.
    if (axis >= 0) {
      const std::int64_t n = shard[axis] / l.replicas;
      const std::int64_t from = std::min(begin[axis] + p.replica * n, end[axis]);
      const std::int64_t to = std::min(from + n, end[axis]);
      if (from >= to) continue;
      Dims start(shape.size(), 0), part = data.dims();
      start[axis] = from - begin[axis];
      part[axis] = to - from;
      data = view_box(data, start, part);
      begin[axis] = from;
      end[axis] = to;
    }
    plan_chunks(array, begin, end, data);
  }
}

void TreeWriter::open_previous() {
  if (options_.previous.empty() || !fs_.is_directory(options_.previous)) return;
  // Sharing is only a saving: whatever is wrong with the earlier step, this one is written whole.
  try {
    if (options_.use_ocdbt && ocdbt::Database::exists(fs_, options_.previous)) {
      previous_database_ = std::make_shared<const ocdbt::Database>(fs_, options_.previous);
      previous_ = previous_database_;
    } else if (!options_.use_ocdbt) {
      previous_ = open_directory_store(fs_, options_.previous);
    }
  } catch (const Error&) {
  }
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

// Whether the chunk is as it was in the earlier step, and now has a name in this one too. `encoded`
// makes what would be written, `size` bytes; `data` is what a stored frame would hold, if it is
// one.
bool TreeWriter::link_unchanged(const std::string& key, std::span<const std::byte> data,
                                std::uint64_t size, const std::function<std::string()>& encoded,
                                std::vector<ocdbt::KeyValue>& keys) {
  if (!previous_) return false;
  try {
    const auto old = previous_->find(key);
    if (!old || old->size() != size) return false;
    std::string from = join_path(options_.previous, key), to = join_path(own_, key);
    ocdbt::KeyValue k;
    if (previous_database_) {
      const auto value = previous_database_->find_range(key);
      if (!value) return false;
      from = join_path(options_.previous, value->file);
      // A file with other values would keep them alive.
      if (value->offset != 0 || fs_.status(from).size != size) return false;
      k.key = key;
      k.inlined = false;
      k.reference = {{"", "d/" + ocdbt::random_file_name()}, 0, size};
      to = join_path(own_, k.reference.file.path);
    }
    if (!data.empty()) {
      // Nearly every change shows in the frame's checksum.
      std::uint32_t check = 0;
      old->read(stored_frame_size(data.size()) - 4, std::as_writable_bytes(std::span(&check, 1)));
      if (check != static_cast<std::uint32_t>(hash64(data))) return false;
    }
    const Held held(budget_, data.size() + size);
    const std::string now = encoded();
    if (now.size() != size || old->read_all() != now) return false;
    fs_.make_directories(parent_path(to));
    if (!fs_.link(from, to)) return false;
    if (previous_database_) keys.push_back(std::move(k));
    return true;
  } catch (const Error&) {
    return false;
  }
}

void TreeWriter::write_chunk(const Unit& unit, ocdbt::DataFileWriter* file,
                             std::vector<ocdbt::KeyValue>& keys) {
  const ArrayPlan& a = arrays_[unit.array];
  const zarr::Metadata& m = a.metadata;
  const std::string key = zarr::child_key(a.key, m.chunk_key(unit.index));
  const std::uint64_t bytes = m.chunk_bytes();
  const bool stored = options_.codec && options_.codec->kind == CodecKind::kZstd &&
                      options_.codec->level == kStoredLevel;
  // A chunk that lies in memory as it will be written needs no copy.
  const bool whole = unit.data.defined() && unit.data.dims() == m.chunk && is_dense(unit.data);
  const Held held(budget_, (whole ? 0 : bytes) + (stored || !options_.codec ? 0 : bytes));
  HostArray chunk = unit.data;
  if (!chunk.defined()) {
    Dims start, shape;
    for (int i = 0; i < m.shape.ssize(); ++i) {
      start.push_back(unit.index[i] * m.chunk[i]);
      shape.push_back(std::min(m.chunk[i], m.shape[i] - start[i]));
    }
    chunk = a.leaf->source(start, shape);
  }
  if (chunk.dims() != m.chunk || !is_dense(chunk)) {
    zarr::Metadata alone = m;
    alone.shape = chunk.dims();
    chunk = zarr::cut_chunk(alone, chunk, Dims(m.chunk.size(), 0));
  }
  const std::span<const std::byte> data(chunk.data(), static_cast<std::size_t>(bytes));
  const auto tail = [](std::uint64_t size) {
    ByteWriter w;
    w.write(std::uint64_t{0});
    w.write(size);
    w.write(crc32c(w.str()));
    return w.take();
  };
  const bool zarr3 = m.codecs.sharding != nullptr;
  const bool alone = !options_.previous.empty() && bytes >= options_.link_bytes;
  std::optional<ocdbt::DataFileWriter> own_file;
  if (file != nullptr && alone) {
    own_file.emplace(fs_, own_, 1);
    file = &*own_file;
  }
  if (file != nullptr && stored && bytes > config_.max_inline_value_bytes) {
    const std::uint64_t frame = stored_frame_size(bytes);
    if (alone && link_unchanged(
                     key, data, frame + (zarr3 ? tail(frame).size() : 0),
                     [&] {
                       std::string s = encode({&*options_.codec, 1}, data);
                       return zarr3 ? s + tail(s.size()) : s;
                     },
                     keys))
      return;
    ocdbt::KeyValue k;
    k.key = key;
    k.inlined = false;
    k.reference = zarr3 ? file->append_stored(data, tail) : file->append_stored(data);
    if (own_file) own_file->close();
    keys.push_back(std::move(k));
    return;
  }
  std::string encoded;
  std::string_view value = as_string_view(data);
  if (options_.codec || zarr3) {
    encoded = options_.codec ? encode({&*options_.codec, 1}, data) : std::string(value);
    if (zarr3) encoded += tail(encoded.size());
    value = encoded;
  }
  if (alone && link_unchanged(
                   key, {}, value.size(), [&] { return std::string(value); }, keys))
    return;
  put(key, value, file, keys);
  if (own_file) own_file->close();
}

void TreeWriter::work(std::size_t worker) {
  try {
    std::optional<ocdbt::DataFileWriter> file;
    if (options_.use_ocdbt) file.emplace(fs_, own_, options_.data_file_bytes);
    ocdbt::DataFileWriter* f = file ? &*file : nullptr;
    while (!failed_.load(std::memory_order_relaxed)) {
      const std::size_t i = next_.fetch_add(1);
      if (i >= units_.size()) break;
      write_chunk(units_[i], f, keys_[worker]);
    }
    if (f != nullptr) f->close();
  } catch (...) {
    errors_[worker] = std::current_exception();
    failed_.store(true);
  }
}

void TreeWriter::write_arrays() {
  if (options_.use_ocdbt) fs_.make_directories(join_path(own_, "d"));
  std::uint64_t total = 0;
  for (const Unit& u : units_) total += arrays_[u.array].metadata.chunk_bytes();
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
  if (options_.use_ocdbt) file.emplace(fs_, own_);
  for (const ArrayPlan& a : arrays_) {
    if (options_.process != 0) break;
    const std::string key = zarr::child_key(a.key, zarr::metadata_name(a.metadata.format));
    put(key, a.metadata.format == 2 ? zarr::format_v2(a.metadata) : zarr::format_v3(a.metadata),
        file ? &*file : nullptr, all);
  }
  if (!options_.use_ocdbt) return;
  file->close();
  for (auto& keys : keys_)
    for (auto& k : keys) all.push_back(std::move(k));
  ocdbt::write_database(fs_, own_, std::move(all), config_, /*durable=*/false);
}

void TreeWriter::write_array_metadata() {
  std::vector<ArrayMetadata> metadatas;
  for (const ArrayPlan& a : arrays_)
    if (a.leaf->kind == LeafKind::kArray)
      metadatas.push_back({a.name, a.write_shape, a.metadata.chunk, a.leaf->prng});
  if (metadatas.empty()) return;
  const std::string folder = join_path(directory_, "array_metadatas");
  fs_.make_directories(folder);
  fs_.write_file(join_path(folder, fmt::format("process_{}", options_.process)),
                 format_array_metadatas(metadatas));
}

void TreeWriter::merge() {
  std::vector<std::string> children;
  for (int p = 0; p < options_.num_processes; ++p)
    children.push_back(fmt::format("ocdbt.process_{}/", p));
  ocdbt::merge_databases(fs_, directory_, children, config_);
  // A part that nobody gave would else be found at the restore.
  const ocdbt::Database merged(fs_, directory_);
  for (const ArrayPlan& a : arrays_) {
    std::uint64_t wanted = 1, found = 0;
    for (const std::int64_t d : a.metadata.grid()) wanted *= static_cast<std::uint64_t>(d);
    const std::string prefix = zarr::child_key(a.key, "");
    const std::string own = zarr::child_key(a.key, zarr::metadata_name(a.metadata.format));
    merged.for_each(prefix, [&](std::string_view key) {
      const std::string_view rest = key.substr(prefix.size());
      const bool nested = rest.find('/') != std::string_view::npos && a.metadata.format == 2;
      if (key != own && !nested) ++found;
    });
    if (found < wanted)
      refuse(fmt::format("all {} chunks of leaf {} from the {} processes", wanted,
                         path_text(a.leaf->path), options_.num_processes),
             fmt::format("{}", found), "Give each process the shards that it holds");
  }
}

void TreeWriter::write_json() {
  TreeMetadata m;
  m.leaves.assign(tree_.begin(), tree_.end());
  m.use_ocdbt = options_.use_ocdbt;
  m.use_zarr3 = options_.use_zarr3;
  m.stores_fill_values = true;
  m.custom = options_.custom;
  std::map<std::string, std::string> shardings;
  std::vector<std::pair<std::string, std::string>> strings;
  std::size_t next = 0;
  for (LeafInfo& l : m.leaves) {
    if (l.kind == LeafKind::kString) strings.emplace_back(param_name(l.path), l.text);
    if (has_array(l.kind)) l.shard = arrays_[next++].write_shape;
  }
  for (const ArrayPlan& a : arrays_) {
    const Leaf& l = *a.leaf;
    if (l.kind != LeafKind::kArray) continue;
    shardings[a.name] = l.sharding.empty() ? single_device_sharding() : l.sharding;
  }
  if (!shardings.empty())
    fs_.write_file(join_path(directory_, kShardingFile), format_shardings(shardings));
  if (!strings.empty())
    fs_.write_file(join_path(directory_, kStringsFile), format_strings(strings));
  fs_.write_file(join_path(directory_, kTreeMetadata), format_tree_metadata(m));
}

}  // namespace

void write_tree(const FileSystem& fs, const std::string& directory, const LeafTree& tree,
                const WriteOptions& options) {
  write_tree_part(fs, directory, tree, options);
  finish_tree(fs, directory, tree, options);
}
void write_tree_part(const FileSystem& fs, const std::string& directory, const LeafTree& tree,
                     const WriteOptions& options) {
  TreeWriter(fs, directory, tree, options).write_part();
}
void finish_tree(const FileSystem& fs, const std::string& directory, const LeafTree& tree,
                 const WriteOptions& options) {
  TreeWriter(fs, directory, tree, options).finish();
}

}  // namespace xylem::checkpoint::orbax
