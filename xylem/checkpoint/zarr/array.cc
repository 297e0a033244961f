#include "xylem/checkpoint/zarr/array.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "xylem/base/bytes.h"
#include "xylem/base/error.h"
#include "xylem/base/thread_pool.h"
#include "xylem/checkpoint/storage/budget.h"

namespace xylem::checkpoint::zarr {
namespace {

constexpr std::uint64_t kNone = ~std::uint64_t{0};
// Metadata in a directory store is a file of its own; no more of it is read.
constexpr std::uint64_t kMaxMetadataBytes = std::uint64_t{16} << 20;

[[noreturn]] void damaged(std::string_view what, std::string_view expected,
                          std::string_view given) {
  throw_user_error({what, expected, given,
                    "The data is damaged: restore it from a copy, or use another checkpoint"});
}

// Strides in bytes of a C-ordered block.
Dims block_strides(const Dims& shape, std::int64_t element) {
  Dims out = shape;
  for (int i = shape.ssize() - 1; i >= 0; --i) {
    out[i] = element;
    element *= shape[i];
  }
  return out;
}

// Copies a box between strided blocks; runs of contiguous elements at once.
void copy_strided(const Dims& shape, std::size_t element, const std::byte* from,
                  const Dims& from_strides, std::byte* to, const Dims& to_strides) {
  for (const std::int64_t d : shape)
    if (d == 0) return;
  int rank = shape.ssize();
  std::size_t run = element;
  while (rank > 0 && from_strides[rank - 1] == static_cast<std::int64_t>(run) &&
         to_strides[rank - 1] == static_cast<std::int64_t>(run)) {
    run *= static_cast<std::size_t>(shape[rank - 1]);
    --rank;
  }
  if (rank == 0) {
    std::memcpy(to, from, run);
    return;
  }
  Dims at(static_cast<std::size_t>(rank), 0);
  const std::int64_t n = shape[rank - 1], fs = from_strides[rank - 1], ts = to_strides[rank - 1];
  while (true) {
    const std::byte* f = from;
    std::byte* t = to;
    switch (run) {
      case 1:
        for (std::int64_t i = 0; i < n; ++i, f += fs, t += ts) *t = *f;
        break;
      case 2:
        for (std::int64_t i = 0; i < n; ++i, f += fs, t += ts) std::memcpy(t, f, 2);
        break;
      case 4:
        for (std::int64_t i = 0; i < n; ++i, f += fs, t += ts) std::memcpy(t, f, 4);
        break;
      case 8:
        for (std::int64_t i = 0; i < n; ++i, f += fs, t += ts) std::memcpy(t, f, 8);
        break;
      default:
        for (std::int64_t i = 0; i < n; ++i, f += fs, t += ts) std::memcpy(t, f, run);
    }
    int axis = rank - 2;
    for (; axis >= 0; --axis) {
      from += from_strides[axis];
      to += to_strides[axis];
      if (++at[axis] < shape[axis]) break;
      from -= from_strides[axis] * shape[axis];
      to -= to_strides[axis] * shape[axis];
      at[axis] = 0;
    }
    if (axis < 0) return;
  }
}

// Complex numbers are two numbers of half the size.
void swap_bytes(std::span<std::byte> data, std::size_t size) {
  for (std::size_t i = 0; i + size <= data.size(); i += size)
    std::reverse(data.begin() + static_cast<std::ptrdiff_t>(i),
                 data.begin() + static_cast<std::ptrdiff_t>(i + size));
}

std::size_t swapped_size(const Metadata& m) {
  if (!m.dtype) return 1;
  return static_cast<std::size_t>(is_complex(*m.dtype) ? m.element_bytes / 2 : m.element_bytes);
}

// Types under eight bits: only their own bits count. Booleans are 0 or 1.
void normalise(DType t, std::span<std::byte> data) {
  if (is_bool(t)) {
    for (std::byte& b : data) b = b == std::byte{0} ? std::byte{0} : std::byte{1};
  } else if (dtype_bits(t) < 8) {
    const auto mask = static_cast<std::byte>((1 << dtype_bits(t)) - 1);
    for (std::byte& b : data) b &= mask;
  }
}

// Where elements go: the box of the chunk, and a strided block for it.
struct Target {
  Dims start, shape;  // in the chunk
  std::byte* data;
  Dims strides;
};

class ChunkReader {
 public:
  ChunkReader(const Metadata& m, Budget& budget) : m_(m), budget_(budget) {}

  // Decodes the parts of a chunk that the target needs.
  void read(const ByteSource& source, const ChunkCodecs& codecs, const Dims& chunk,
            const Target& target, const std::string& name) const {
    if (codecs.sharding) return read_shard(source, codecs, chunk, target, name);
    std::uint64_t bytes = m_.element_bytes;
    for (const std::int64_t d : chunk) bytes *= static_cast<std::uint64_t>(d);
    check_size(source, codecs, bytes, name);
    const Dims stored = stored_strides(codecs, chunk);
    // Taken once: a thread that waited while it held a part could wait for ever.
    const bool direct = fits_directly(codecs, chunk, target);
    const Held held(budget_, (direct ? 0 : bytes) + (codecs.bytes.empty() ? 0 : source.size()));
    if (direct) {
      const std::span<std::byte> out(target.data, bytes);
      decode_source(source, codecs, out, name);
      finish(codecs, out);
      return;
    }
    std::vector<std::byte> buffer(static_cast<std::size_t>(bytes));
    decode_source(source, codecs, buffer, name);
    finish(codecs, buffer);
    const std::byte* from = buffer.data();
    for (int i = 0; i < chunk.ssize(); ++i) from += stored[i] * target.start[i];
    copy_strided(target.shape, static_cast<std::size_t>(m_.element_bytes), from, stored,
                 target.data, target.strides);
  }

 private:
  // A hostile metadata file must not make a few bytes allocate terabytes: no codec expands beyond
  // some factor.
  void check_size(const ByteSource& source, const ChunkCodecs& codecs, std::uint64_t bytes,
                  const std::string& name) const {
    if (codecs.bytes.empty() && source.size() != bytes)
      damaged(name, fmt::format("{} bytes", bytes), fmt::format("{}", source.size()));
    if (bytes / 131072 > source.size() + 1)
      damaged(name, fmt::format("data that can hold {} bytes", bytes),
              fmt::format("{} bytes", source.size()));
  }

  Dims stored_strides(const ChunkCodecs& codecs, const Dims& chunk) const {
    const auto element = static_cast<std::int64_t>(m_.element_bytes);
    if (codecs.order.empty()) return block_strides(chunk, element);
    Dims shape, out = chunk;
    for (const std::int64_t a : codecs.order) shape.push_back(chunk[a]);
    const Dims strides = block_strides(shape, element);
    for (int i = 0; i < chunk.ssize(); ++i) out[codecs.order[i]] = strides[i];
    return out;
  }

  bool fits_directly(const ChunkCodecs& codecs, const Dims& chunk, const Target& t) const {
    if (t.shape != chunk) return false;
    const Dims stored = stored_strides(codecs, chunk);
    for (int i = 0; i < chunk.ssize(); ++i)
      if (chunk[i] != 1 && t.strides[i] != stored[i]) return false;
    return true;
  }

  void decode_source(const ByteSource& source, const ChunkCodecs& codecs, std::span<std::byte> out,
                     const std::string& name) const {
    if (codecs.bytes.empty()) {
      source.read(0, out);
      return;
    }
    if (codecs.bytes.size() == 1 && codecs.bytes[0].kind == CodecKind::kZstd &&
        read_stored_frame(
            source.size(), out,
            [&](std::uint64_t at, std::vector<MutablePiece> p) { source.read(at, std::move(p)); },
            name))
      return;
    const std::string encoded = source.read_all();
    decode(codecs.bytes, as_byte_span(encoded), out, name);
  }

  void finish(const ChunkCodecs& codecs, std::span<std::byte> data) const {
    if (codecs.big_endian) swap_bytes(data, swapped_size(m_));
    if (m_.dtype) normalise(*m_.dtype, data);
  }

  void read_shard(const ByteSource& outer, const ChunkCodecs& codecs, const Dims& chunk,
                  const Target& target, const std::string& name) const {
    const Sharding& s = *codecs.sharding;
    const int rank = chunk.ssize();
    // Sharding sees the axes as transposes before it have put them.
    Dims order = codecs.order;
    if (order.empty())
      for (int i = 0; i < rank; ++i) order.push_back(i);
    Dims shape, grid;
    Target t{{}, {}, target.data, {}};
    std::uint64_t count = 1;
    for (int i = 0; i < rank; ++i) {
      shape.push_back(chunk[order[i]]);
      grid.push_back(shape[i] / s.chunk[i]);
      t.start.push_back(target.start[order[i]]);
      t.shape.push_back(target.shape[order[i]]);
      t.strides.push_back(target.strides[order[i]]);
      count *= static_cast<std::uint64_t>(grid[i]);
    }
    ByteSource source = outer;
    if (!codecs.bytes.empty()) {
      std::uint64_t bytes = m_.element_bytes;
      for (const std::int64_t d : chunk) bytes *= static_cast<std::uint64_t>(d);
      const std::string encoded = outer.read_all();
      source = ByteSource(
          decode_unsized(codecs.bytes, as_byte_span(encoded), bytes * 2 + count * 16 + 65536, name),
          name);
    }
    const std::uint64_t index_bytes =
        count * 16 + static_cast<std::uint64_t>(s.index_checksums) * 4;
    if (count > (std::uint64_t{1} << 40) || index_bytes > source.size())
      damaged(name, fmt::format("a shard with an index of {} bytes", index_bytes),
              fmt::format("{} bytes", source.size()));
    const std::string raw =
        source.part(s.index_at_end ? source.size() - index_bytes : 0, index_bytes).read_all();
    std::vector<Codec> checks(static_cast<std::size_t>(s.index_checksums),
                              Codec{CodecKind::kCrc32c, 0, true});
    std::vector<std::uint64_t> index(static_cast<std::size_t>(count * 2));
    decode(checks, as_byte_span(raw), std::as_writable_bytes(std::span(index)), name + " (index)");
    if (s.index_big_endian)
      for (std::uint64_t& v : index) v = __builtin_bswap64(v);

    Dims first, last, at;
    for (int i = 0; i < rank; ++i) {
      if (t.shape[i] == 0) return;
      first.push_back(t.start[i] / s.chunk[i]);
      last.push_back((t.start[i] + t.shape[i] - 1) / s.chunk[i]);
      at.push_back(first[i]);
    }
    while (true) {
      std::uint64_t flat = 0;
      Target part{{}, {}, t.data, t.strides};
      for (int i = 0; i < rank; ++i) {
        flat = flat * static_cast<std::uint64_t>(grid[i]) + static_cast<std::uint64_t>(at[i]);
        const std::int64_t begin = std::max(t.start[i], at[i] * s.chunk[i]);
        const std::int64_t end = std::min(t.start[i] + t.shape[i], (at[i] + 1) * s.chunk[i]);
        part.start.push_back(begin - at[i] * s.chunk[i]);
        part.shape.push_back(end - begin);
        part.data += (begin - t.start[i]) * t.strides[i];
      }
      const std::uint64_t offset = index[flat * 2], length = index[flat * 2 + 1];
      if (offset == kNone && length == kNone)
        fill(part);
      else
        read(source.part(offset, length), s.inner, s.chunk, part,
             count == 1 ? name : fmt::format("{} (inner chunk {})", name, to_string(at)));
      int axis = rank - 1;
      for (; axis >= 0; --axis) {
        if (++at[axis] <= last[axis]) break;
        at[axis] = first[axis];
      }
      if (axis < 0) return;
    }
  }

 public:
  void fill(const Target& t) const {
    std::string element = m_.fill;
    if (element.empty()) element.assign(static_cast<std::size_t>(m_.element_bytes), '\0');
    Dims none(t.shape.size(), 0);
    copy_strided(t.shape, element.size(), reinterpret_cast<const std::byte*>(element.data()), none,
                 t.data, t.strides);
  }

 private:
  const Metadata& m_;
  Budget& budget_;
};

// Index of the flat-th cell of a grid.
Dims unravel(std::int64_t flat, const Dims& grid) {
  Dims out = grid;
  for (int i = grid.ssize() - 1; i >= 0; --i) {
    out[i] = flat % grid[i];
    flat /= grid[i];
  }
  return out;
}

}  // namespace

std::optional<ZarrArray> ZarrArray::open(std::shared_ptr<const KvStore> store, std::string key,
                                         int format) {
  for (const int f : {3, 2}) {
    if (format != 0 && format != f) continue;
    const std::string at = child_key(key, metadata_name(f));
    const auto found = store->find(at);
    if (!found) continue;
    const std::string name = fmt::format("{}: {}", store->name(), at);
    if (found->size() > kMaxMetadataBytes)
      damaged(name, "metadata of at most 16 MiB", fmt::format("{} bytes", found->size()));
    const std::string json = found->read_all();
    Metadata m = f == 3 ? parse_v3(json, name) : parse_v2(json, name);
    return ZarrArray(std::move(store), std::move(key), std::move(m));
  }
  return std::nullopt;
}

std::string ZarrArray::chunk_name(const Dims& index) const {
  return fmt::format("{}: {}", store_->name(), child_key(key_, metadata_.chunk_key(index)));
}

HostArray ZarrArray::read(const ReadOptions& options) const {
  return read(Box{Dims(metadata_.shape.size(), 0), metadata_.shape}, options);
}

HostArray ZarrArray::read(const Box& box, const ReadOptions& options) const {
  const Metadata& m = metadata_;
  const int rank = m.shape.ssize();
  if (!m.dtype)
    throw_user_error({fmt::format("read {}", key_), "elements that are numbers",
                      fmt::format("type {}", m.type_name), "Leave the array out"});
  bool inside = box.start.ssize() == rank && box.shape.ssize() == rank;
  for (int i = 0; inside && i < rank; ++i)
    inside = box.start[i] >= 0 && box.shape[i] >= 0 && box.start[i] <= m.shape[i] &&
             box.shape[i] <= m.shape[i] - box.start[i];
  if (!inside)
    throw_user_error({fmt::format("read {}", key_),
                      fmt::format("a box within the shape {}", to_string(m.shape)),
                      fmt::format("from {} of {}", to_string(box.start), to_string(box.shape)),
                      "Ask for a part that exists"});
  Dims first, grid;
  std::int64_t count = 1;
  std::uint64_t bytes = m.element_bytes, elements = 1;
  for (int i = 0; i < rank; ++i) {
    elements *= static_cast<std::uint64_t>(box.shape[i]);
    bytes *= static_cast<std::uint64_t>(box.shape[i]);
    const bool empty = box.shape[i] == 0;
    first.push_back(empty ? 0 : box.start[i] / m.chunk[i]);
    grid.push_back(empty ? 0 : (box.start[i] + box.shape[i] - 1) / m.chunk[i] - first[i] + 1);
    count *= grid[i];
  }
  if (elements == 0) return HostArray(*m.dtype, box.shape);
  // Memory is asked for only once a chunk is there that fills a part of it, unless fill values do.
  Dims index = first;
  if (options.missing_is_error || bytes > (std::uint64_t{1} << 30)) {
    const auto probe = store_->find(child_key(key_, m.chunk_key(index)));
    if (!probe && options.missing_is_error)
      damaged(chunk_name(index), "every chunk of the array", "this one is absent");
    if (!probe && bytes > (std::uint64_t{1} << 40))
      damaged(chunk_name(index), "an array that fits in memory", fmt::format("{} bytes", bytes));
    if (probe && probe->size() * static_cast<std::uint64_t>(count) < bytes / 131072)
      damaged(chunk_name(index), fmt::format("chunks that can hold {} bytes", bytes),
              fmt::format("{} bytes", probe->size()));
  }
  HostArray out(*m.dtype, box.shape);
  Budget budget(options.memory_limit);
  const ChunkReader reader(m, budget);
  const Dims strides = block_strides(box.shape, static_cast<std::int64_t>(m.element_bytes));
  const auto read_chunk = [&](std::int64_t flat) {
    const Dims cell = unravel(flat, grid);
    Dims at = cell;
    Target t{{}, {}, out.data(), strides};
    for (int i = 0; i < rank; ++i) {
      at[i] = first[i] + cell[i];
      const std::int64_t begin = std::max(box.start[i], at[i] * m.chunk[i]);
      const std::int64_t end =
          std::min(box.start[i] + box.shape[i], at[i] * m.chunk[i] + m.chunk[i]);
      t.start.push_back(begin - at[i] * m.chunk[i]);
      t.shape.push_back(end - begin);
      t.data += (begin - box.start[i]) * strides[i];
    }
    const auto source = store_->find(child_key(key_, m.chunk_key(at)));
    if (source)
      reader.read(*source, m.codecs, m.chunk, t, chunk_name(at));
    else if (options.missing_is_error)
      damaged(chunk_name(at), "every chunk of the array", "this one is absent");
    else
      reader.fill(t);
  };
  if (count == 1)
    read_chunk(0);
  else
    ThreadPool::global().parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) read_chunk(i);
    });
  return out;
}

std::string ZarrArray::read_raw_chunk(const Dims& index) const {
  const Metadata& m = metadata_;
  const auto source = store_->find(child_key(key_, m.chunk_key(index)));
  if (!source) damaged(chunk_name(index), "every chunk of the array", "this one is absent");
  if (m.chunk_bytes() / 131072 > source->size() + 1)
    damaged(chunk_name(index), fmt::format("data that can hold {} bytes", m.chunk_bytes()),
            fmt::format("{} bytes", source->size()));
  std::string out(static_cast<std::size_t>(m.chunk_bytes()), '\0');
  Budget budget(std::uint64_t{1} << 40);
  const Dims strides = block_strides(m.chunk, static_cast<std::int64_t>(m.element_bytes));
  Target t{Dims(m.chunk.size(), 0), m.chunk, reinterpret_cast<std::byte*>(out.data()), strides};
  ChunkReader(m, budget).read(*source, m.codecs, m.chunk, t, chunk_name(index));
  return out;
}

void ZarrArray::check(const ReadOptions& options,
                      const std::function<void(std::string_view)>& f) const {
  const Metadata& m = metadata_;
  const Dims grid = m.grid();
  std::int64_t count = 1;
  for (const std::int64_t d : grid)
    if (__builtin_mul_overflow(count, d, &count)) {
      f("more chunks than can be counted");
      return;
    }
  std::mutex mutex;
  std::vector<std::pair<std::int64_t, std::string>> defects;
  constexpr std::size_t kMaxDefects = 100;
  const auto check_chunk = [&](std::int64_t flat) {
    const Dims index = unravel(flat, grid);
    std::string defect;
    try {
      if (store_->find(child_key(key_, m.chunk_key(index))))
        read_raw_chunk(index);
      else if (options.missing_is_error)
        defect = fmt::format("chunk {} is absent", m.chunk_key(index));
    } catch (const Error& e) {
      defect = e.message();
    }
    if (defect.empty()) return;
    const std::lock_guard lock(mutex);
    if (defects.size() < kMaxDefects) defects.emplace_back(flat, std::move(defect));
  };
  ThreadPool::global().parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      {
        const std::lock_guard lock(mutex);
        if (defects.size() >= kMaxDefects) return;
      }
      check_chunk(i);
    }
  });
  std::sort(defects.begin(), defects.end());
  for (const auto& [flat, text] : defects) f(text);
}

HostArray cut_chunk(const Metadata& m, const HostArray& array, const Dims& index) {
  const int rank = m.shape.ssize();
  if (array.contiguous() && m.chunk == array.dims()) return array;
  HostArray out(array.dtype(), m.chunk);
  Dims shape;
  const std::byte* from = array.data();
  bool whole = true;
  for (int i = 0; i < rank; ++i) {
    const std::int64_t begin = index[i] * m.chunk[i];
    shape.push_back(std::min(m.chunk[i], m.shape[i] - begin));
    whole = whole && shape[i] == m.chunk[i];
    from += begin * array.byte_strides()[i];
  }
  if (!whole) std::memset(out.data(), 0, out.nbytes());
  copy_strided(shape, static_cast<std::size_t>(m.element_bytes), from, array.byte_strides(),
               out.data(), out.byte_strides());
  return out;
}

std::string encode_chunk(const Metadata& m, const HostArray& array, const Dims& index) {
  const HostArray chunk = cut_chunk(m, array, index);
  const std::span<const std::byte> bytes(chunk.data(), chunk.nbytes());
  if (!m.codecs.sharding) return encode(m.codecs.bytes, bytes);
  std::string out = encode(m.codecs.sharding->inner.bytes, bytes);
  ByteWriter w;
  w.write(std::uint64_t{0});
  w.write(static_cast<std::uint64_t>(out.size()));
  w.write(crc32c(w.str()));
  return out + w.str();
}

Dims choose_chunk(const Dims& shape, const Dims& write_shape, std::uint64_t element_bytes,
                  std::uint64_t chunk_bytes) {
  Dims chunk;
  for (const std::int64_t d : write_shape) chunk.push_back(std::max<std::int64_t>(d, 1));
  if (chunk_bytes == 0) return chunk;
  if (chunk_bytes < element_bytes)
    throw_user_error({"choose a chunk",
                      fmt::format("at least an element's {} bytes", element_bytes),
                      fmt::format("chunk_bytes={}", chunk_bytes), "Ask for larger chunks"});
  const std::uint64_t limit = chunk_bytes / element_bytes;
  std::vector<bool> split;
  for (int i = 0; i < chunk.ssize(); ++i)
    split.push_back(i < shape.ssize() && shape[i] != write_shape[i]);
  const auto elements = [&] {
    std::uint64_t n = 1;
    for (const std::int64_t d : chunk) n *= static_cast<std::uint64_t>(d);
    return n;
  };
  while (elements() > limit) {
    int longest = -1;
    for (int i = 0; i < chunk.ssize(); ++i)
      if (split[static_cast<std::size_t>(i)] && chunk[i] > 1 &&
          (longest < 0 || chunk[i] > chunk[longest]))
        longest = i;
    if (longest < 0) {
      if (std::find(split.begin(), split.end(), false) == split.end()) break;
      std::fill(split.begin(), split.end(), true);
      continue;
    }
    std::int64_t smaller = chunk[longest] / 2;
    while (chunk[longest] % smaller != 0) --smaller;
    chunk[longest] = smaller;
  }
  return chunk;
}

}  // namespace xylem::checkpoint::zarr
