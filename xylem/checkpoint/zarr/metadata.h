#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/base/dims.h"
#include "xylem/base/dtype.h"
#include "xylem/checkpoint/storage/codec.h"

namespace xylem::checkpoint::zarr {

struct Sharding;

// How a chunk becomes bytes.
struct ChunkCodecs {
  Dims order;  // stored axis i is array axis order[i]; empty: C order
  bool big_endian = false;
  std::vector<Codec> bytes;
  std::shared_ptr<const Sharding> sharding;  // zarr 3: the chunk is made of inner chunks
};

struct Sharding {
  Dims chunk;  // of an inner chunk, in array axes as `order` puts them
  ChunkCodecs inner;
  bool index_at_end = true;
  bool index_big_endian = false;
  int index_checksums = 1;  // crc32c codecs
};

// What .zarray (format 2) or zarr.json (format 3) says of an array.
struct Metadata {
  int format = 2;
  Dims shape, chunk;
  std::string type_name;            // as the file has it; NumPy's name for known types
  std::optional<DType> dtype;       // nothing: raw, text or structured elements
  std::uint64_t element_bytes = 0;  // as stored
  ChunkCodecs codecs;
  std::string separator = ".";
  bool c_prefix = false;  // zarr 3's default chunk keys: "c/0/1"
  std::string fill;       // one element; empty: zeros

  // Stored bytes of a chunk before its codecs.
  std::uint64_t chunk_bytes() const;
  // Key of a chunk below the array's.
  std::string chunk_key(const Dims& index) const;
  Dims grid() const;  // number of chunks along each axis
};

// UserError, opened by `name`, for anything that is not understood: unknown codecs and types
// included, but a raw or structured dtype, which gives metadata without dtype.
Metadata parse_v2(std::string_view json, std::string_view name);
Metadata parse_v3(std::string_view json, std::string_view name);

// The text that TensorStore would write.
std::string format_v2(const Metadata& m);
std::string format_v3(const Metadata& m);

// Of an array to write: zarr 2 or 3, zstd or no codec. UserError for a type that zarr lacks (uint4,
// uint2, float8_e4m3, the f6 types), or that TensorStore cannot read.
Metadata make_metadata(int format, DType dtype, const Dims& shape, const Dims& chunk,
                       std::optional<Codec> codec);

// Name of the metadata's key: ".zarray" or "zarr.json".
std::string_view metadata_name(int format);
// "p" and "q" give "p/q", nothing and "q" give "q".
std::string child_key(std::string_view array, std::string_view key);

}  // namespace xylem::checkpoint::zarr
