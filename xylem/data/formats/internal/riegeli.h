#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/data/formats/internal/codec.h"
#include "xylem/data/formats/record.h"

// The container of Riegeli and ArrayRecord files: chunks of records in blocks of 64 KiB
// (github.com/google/riegeli, doc/riegeli_records_file_format.md).

namespace xylem::data::internal {

inline constexpr std::uint64_t kBlock = 65536, kBlockHeader = 24, kChunkHeader = 40;

struct ChunkHeader {
  std::uint64_t data_size = 0, data_hash = 0;
  std::uint8_t type = 0;
  std::uint64_t num_records = 0, decoded_size = 0;
};

// End of a chunk: behind its bytes and the block headers among them, and such that each record has
// a file position of its own.
std::uint64_t chunk_data_end(std::uint64_t begin, std::uint64_t data_size);
std::uint64_t chunk_end(std::uint64_t begin, std::uint64_t data_size, std::uint64_t num_records);

struct Chunk {
  std::uint64_t begin = 0, end = 0;
  ChunkHeader header;
  std::string data;
};

// Reads the chunk at `begin` and checks its hashes and the block headers in it. `bytes`, if not
// empty, are what the file holds from `begin` on, so that nothing need be read again.
Chunk read_chunk(const ByteSource& file, std::uint64_t begin, const ReadOptions& options,
                 std::string_view bytes = {});
// The header alone.
ChunkHeader read_chunk_header(const ByteSource& file, std::uint64_t begin,
                              std::string_view bytes = {});

// Records of a chunk, one behind the other.
struct ChunkRecords {
  std::string values;
  std::vector<std::uint64_t> ends;
  std::string_view operator[](std::size_t i) const {
    const std::uint64_t begin = i == 0 ? 0 : ends[i - 1];
    return std::string_view(values).substr(begin, ends[i] - begin);
  }
};
// Decodes a chunk of type 'r', 't' or 'm'; DamageError naming the chunk if it is malformed.
ChunkRecords decode_chunk(std::string_view file, const Chunk& chunk, const ReadOptions& options);
// Payload of a transposed chunk. False with a reason if it is malformed.
bool decode_transposed(std::string_view payload, std::uint64_t num_records,
                       std::uint64_t decoded_size, std::uint64_t max_bytes, ChunkRecords& out,
                       std::string& why);
// A block that begins with its decoded size, unless uncompressed.
bool decode_sized_block(char compression, std::string_view in, std::uint64_t max_bytes,
                        std::string& out, std::string& why);
// Reads a varint from the front of `in`; false if it ends early or is too long.
bool take_varint(std::string_view& in, std::uint64_t& v);

// Where reading can go on behind damage at `at`: the chunk that the next intact block header points
// to; nothing if there is none.
std::optional<std::uint64_t> recover_chunk(const ByteSource& file, std::uint64_t at);

struct ChunkCodec {
  Codec codec = Codec::kZstd;
  CompressOptions options;
};
// Payload of a simple chunk.
std::string encode_simple(const ChunkCodec& codec, const ChunkRecords& records);

// Writes chunks and the block headers among them.
class ChunkWriter {
 public:
  // Begins with the file's signature.
  explicit ChunkWriter(ByteSink& sink);
  std::uint64_t position() const { return position_; }
  // Gives the chunk's begin.
  std::uint64_t write(char type, std::string_view data, std::uint64_t num_records,
                      std::uint64_t decoded_size);
  // A padding chunk up to a multiple of `unit`, if the position is not one.
  void pad(std::uint64_t unit);

 private:
  void put(std::string_view bytes, std::uint64_t begin, std::uint64_t end);
  ByteSink& sink_;
  std::uint64_t position_ = 0;
};

// Walks over chunks' records from `begin` on, until `end` of the file or of its data.
class ChunkCursor : public RecordCursor {
 public:
  ChunkCursor(SourcePtr file, ReadOptions options, std::uint64_t begin, std::uint64_t end);
  bool next(Record& out) override;
  bool recover() override;
  std::uint64_t skip(std::uint64_t n) override;

 protected:
  // Called with each chunk of records before they are handed out; false ends the walk.
  virtual bool accept(const Chunk&, const ChunkRecords&) { return true; }

  SourcePtr file_;
  ReadOptions options_;
  std::uint64_t at_, end_;

 private:
  bool advance();
  ChunkRecords records_;
  std::size_t next_ = 0;
  std::optional<std::uint64_t> resume_;  // where to go on after damage; nothing: search
  bool failed_ = false;
  std::string window_;
  std::uint64_t window_begin_ = 0;
};

ReaderPtr make_riegeli_reader(SourcePtr file, const ReadOptions& options);
ReaderPtr make_array_record_reader(SourcePtr file, const ReadOptions& options);
std::unique_ptr<RecordWriter> make_riegeli_writer(std::unique_ptr<ByteSink> sink,
                                                  std::string_view options);
std::unique_ptr<RecordWriter> make_array_record_writer(std::unique_ptr<ByteSink> sink,
                                                       std::string_view options);
// Whether the file begins as Riegeli files do; and whether it ends as ArrayRecord files do.
bool has_riegeli_signature(const ByteSource& file);
bool has_array_record_postscript(const ByteSource& file);
// Checks every chunk and block header of the whole file.
void verify_chunks(const ByteSource& file, const ReadOptions& options, const DamageSink& sink);

}  // namespace xylem::data::internal
