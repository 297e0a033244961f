#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "xylem/base/host_array.h"
#include "xylem/checkpoint/storage/kv_store.h"
#include "xylem/checkpoint/zarr/metadata.h"

namespace xylem::checkpoint::zarr {

// A part of an array: from `start` on, `shape` elements along each axis.
struct Box {
  Dims start, shape;
};

struct ReadOptions {
  // A chunk that is not stored is an error, not fill values.
  bool missing_is_error = false;
  // Encoded and decoded bytes of chunks held at a time, beside the result. One chunk is always
  // read, however large.
  std::uint64_t memory_limit = std::uint64_t{256} << 20;
};

// An array in a store, under a key: its metadata, and its chunks beside it.
class ZarrArray {
 public:
  // Nothing if the store has no metadata under this key. `format` 2 or 3; 0 tries 3, then 2.
  static std::optional<ZarrArray> open(std::shared_ptr<const KvStore> store, std::string key,
                                       int format = 0);

  const Metadata& metadata() const { return metadata_; }
  const std::string& key() const { return key_; }

  // The whole array, or a box of it, whatever the chunks are; chunks are read in parallel.
  // UserError if the element type has no HostArray, for a box outside the array, for damaged
  // chunks.
  HostArray read(const ReadOptions& options = {}) const;
  HostArray read(const Box& box, const ReadOptions& options = {}) const;
  // Elements as stored bytes (any type), C order of chunks; for raw and text elements.
  std::string read_raw_chunk(const Dims& index) const;

  // Reads and decodes every chunk; calls f for each defect.
  void check(const ReadOptions& options, const std::function<void(std::string_view)>& f) const;

 private:
  ZarrArray(std::shared_ptr<const KvStore> store, std::string key, Metadata metadata)
      : store_(std::move(store)), key_(std::move(key)), metadata_(std::move(metadata)) {}
  std::string chunk_name(const Dims& index) const;

  std::shared_ptr<const KvStore> store_;
  std::string key_;
  Metadata metadata_;
};

// The chunk of `index` as the store holds it. The array must be contiguous; what lies beyond its
// edge is zero.
std::string encode_chunk(const Metadata& m, const HostArray& array, const Dims& index);
// The bytes of the chunk of `index` in C order, padded, before the codecs.
HostArray cut_chunk(const Metadata& m, const HostArray& array, const Dims& index);

// Largest chunk of at most `chunk_bytes` whose sizes divide those of `write_shape`, by Orbax's
// rule: axes that `write_shape` splits already are split further, the longest first. 0: the write
// shape itself. UserError if an element is larger.
Dims choose_chunk(const Dims& shape, const Dims& write_shape, std::uint64_t element_bytes,
                  std::uint64_t chunk_bytes);

}  // namespace xylem::checkpoint::zarr
