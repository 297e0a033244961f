#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/data/formats/internal/parquet_metadata.h"

// Parquet's encodings (github.com/apache/parquet-format, Encodings.md). Decoders give one value at
// a time, so that memory does not grow with what a page claims to hold.

namespace xylem::data::internal::parquet {

// Thrown inside; callers turn it into DamageError with the page's place.
struct Malformed {
  std::string reason;
};

// Runs and bit-packed groups of numbers of a fixed width (the RLE/bit-packing hybrid).
class HybridDecoder {
 public:
  HybridDecoder() = default;
  HybridDecoder(std::string_view data, int width) : data_(data), width_(width) {}
  std::uint32_t next();

 private:
  void next_run();
  std::string_view data_;
  int width_ = 0;
  std::uint64_t run_ = 0;  // values left of a run
  std::uint32_t value_ = 0;
  std::uint64_t packed_ = 0;  // values left of bit-packed groups
  std::uint64_t bit_ = 0;     // the next one's place in data_
};

// Numbers by their differences (DELTA_BINARY_PACKED).
class DeltaDecoder {
 public:
  // `most`: values that there may be.
  DeltaDecoder(std::string_view data, std::uint64_t most);
  std::uint64_t count() const { return total_; }
  std::int64_t next();
  // What follows the encoded numbers; walks over all that are left.
  std::string_view rest();

 private:
  void next_miniblock();
  std::string_view data_;
  std::uint64_t block_size_ = 0, miniblocks_ = 0, per_miniblock_ = 0, total_ = 0, given_ = 0;
  std::uint64_t value_ = 0;  // arithmetic wraps around
  std::uint64_t min_delta_ = 0;
  std::string_view widths_;
  std::size_t miniblock_ = 0;
  std::uint64_t left_ = 0, bit_ = 0;  // of the current miniblock
  std::string_view packed_;
  int width_ = 0;
};

// One physical value: numbers by their bits, others by their bytes.
struct Physical {
  std::uint64_t bits = 0;
  std::string_view bytes;  // good until the next value
};

class ValueDecoder {
 public:
  virtual ~ValueDecoder() = default;
  virtual Physical next() = 0;
};

struct Dictionary {
  std::string page;  // owns the bytes
  std::vector<Physical> values;
};

// `most`: the page's number of values. Throws Malformed for encodings that the type does not have.
std::unique_ptr<ValueDecoder> make_decoder(Encoding encoding, Type type, std::int32_t type_length,
                                           std::string_view data, std::uint64_t most,
                                           const Dictionary* dictionary);
void fill_dictionary(Dictionary& d, Type type, std::int32_t type_length, std::uint64_t count);

// Bits that numbers up to `max` need.
int bit_width(std::uint64_t max);

// ---- encoding

std::string encode_hybrid(const std::vector<std::uint32_t>& values, int width);
std::string encode_delta(const std::vector<std::int64_t>& values);

}  // namespace xylem::data::internal::parquet
