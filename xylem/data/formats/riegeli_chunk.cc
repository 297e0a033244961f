#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "xylem/base/bytes.h"
#include "xylem/data/formats/internal/checks.h"
#include "xylem/data/formats/internal/highway_hash.h"
#include "xylem/data/formats/internal/riegeli.h"

namespace xylem::data::internal {
namespace {

template <class T>
T load(const char* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// The first multiple of kBlock that is not below `at`.
std::uint64_t block_at_or_after(std::uint64_t at) { return (at + kBlock - 1) / kBlock * kBlock; }

// Bytes of the file from `begin` to `end`, without block headers. These are checked against the
// chunk's bounds where `chunk_end` is known (not 0).
std::string strip_block_headers(std::string_view file, std::string_view raw, std::uint64_t begin,
                                std::uint64_t chunk_end) {
  std::string out;
  out.reserve(raw.size());
  const std::uint64_t end = begin + raw.size();
  for (std::uint64_t at = begin; at < end;) {
    if (at % kBlock == 0) {
      const std::string_view header = raw.substr(at - begin, kBlockHeader);
      const std::uint64_t stop = at + header.size();
      if (header.size() < kBlockHeader ||
          riegeli_hash(header.substr(8)) != load<std::uint64_t>(header.data()))
        throw DamageError(file, at, stop, "the block header does not match its hash");
      if (chunk_end != 0 && (load<std::uint64_t>(header.data() + 8) != at - begin ||
                             load<std::uint64_t>(header.data() + 16) != chunk_end - at))
        throw DamageError(
            file, at, stop,
            fmt::format("the block header says that its chunk spans {}-{}, the chunk "
                        "spans {}-{}",
                        at - load<std::uint64_t>(header.data() + 8),
                        at + load<std::uint64_t>(header.data() + 16) - 1, begin, chunk_end - 1));
      at += kBlockHeader;
      continue;
    }
    const std::uint64_t stop = std::min(end, block_at_or_after(at));
    out += raw.substr(at - begin, stop - at);
    at = stop;
  }
  return out;
}

ChunkHeader parse_header(const ByteSource& file, std::uint64_t begin, std::string_view bytes) {
  const std::uint64_t end = chunk_data_end(begin, 0);
  if (end > file.size())
    throw DamageError(file.name(), begin, std::max(begin, file.size()),
                      fmt::format("a chunk header needs {} bytes, the file has {} left",
                                  end - begin, file.size() - std::min(begin, file.size())));
  std::string own;
  std::string_view raw = bytes.substr(0, end - begin);
  if (raw.size() < end - begin) raw = own = file.read(begin, end - begin);
  const std::string h = strip_block_headers(file.name(), raw, begin, 0);
  if (riegeli_hash(std::string_view(h).substr(8)) != load<std::uint64_t>(h.data()))
    throw DamageError(file.name(), begin, end, "the chunk header does not match its hash");
  ChunkHeader header;
  header.data_size = load<std::uint64_t>(h.data() + 8);
  header.data_hash = load<std::uint64_t>(h.data() + 16);
  header.type = static_cast<std::uint8_t>(h[24]);
  header.num_records = load<std::uint64_t>(h.data() + 24) >> 8;
  header.decoded_size = load<std::uint64_t>(h.data() + 32);
  // Sizes that the file cannot hold are refused before anything is computed from them.
  if (header.data_size > file.size() - begin || header.num_records > file.size() ||
      chunk_data_end(begin, header.data_size) > file.size())
    throw DamageError(file.name(), begin, file.size(),
                      fmt::format("the chunk says {} bytes and {} records, the file has {} bytes "
                                  "left",
                                  header.data_size, header.num_records, file.size() - begin));
  return header;
}

}  // namespace

std::uint64_t chunk_data_end(std::uint64_t begin, std::uint64_t data_size) {
  const std::uint64_t size = kChunkHeader + data_size;
  const std::uint64_t usable = kBlock - kBlockHeader;
  return begin + size + kBlockHeader * ((size + (begin + usable - 1) % kBlock) / usable);
}

std::uint64_t chunk_end(std::uint64_t begin, std::uint64_t data_size, std::uint64_t num_records) {
  std::uint64_t place = begin + num_records;
  const std::uint64_t to_block = block_at_or_after(place) - place;
  const std::uint64_t usable = kBlock - kBlockHeader;
  if (to_block > usable - 1) place += to_block - (usable - 1);
  return std::max(chunk_data_end(begin, data_size), place);
}

ChunkHeader read_chunk_header(const ByteSource& file, std::uint64_t begin, std::string_view bytes) {
  return parse_header(file, begin, bytes);
}

Chunk read_chunk(const ByteSource& file, std::uint64_t begin, const ReadOptions& options,
                 std::string_view bytes) {
  // Small chunks come with one read.
  std::string own;
  constexpr std::uint64_t kGuess = 4096;
  if (bytes.empty() && begin < file.size()) bytes = own = file.read(begin, kGuess);
  Chunk c;
  c.begin = begin;
  c.header = parse_header(file, begin, bytes);
  const std::uint64_t data_end = chunk_data_end(begin, c.header.data_size);
  c.end = chunk_end(begin, c.header.data_size, c.header.num_records);
  if (c.header.type != 'p') check_limit(file.name(), begin, data_end, c.header.data_size, options);
  if (bytes.size() < data_end - begin) {
    const std::size_t have = bytes.size();
    std::string whole(bytes);
    whole.resize(static_cast<std::size_t>(data_end - begin));
    file.read(begin + have,
              std::as_writable_bytes(std::span<char>(whole.data() + have, whole.size() - have)));
    own = std::move(whole);
    bytes = own;
  }
  c.data = strip_block_headers(file.name(), bytes.substr(0, data_end - begin), begin, c.end);
  c.data.erase(0, kChunkHeader);
  if (riegeli_hash(c.data) != c.header.data_hash)
    throw DamageError(file.name(), begin, data_end, "the chunk's data do not match their hash");
  return c;
}

bool take_varint(std::string_view& in, std::uint64_t& v) {
  v = 0;
  for (std::size_t i = 0; i < in.size() && i < 10; ++i) {
    const auto b = static_cast<unsigned char>(in[i]);
    if (i == 9 && b > 1) return false;
    v |= std::uint64_t{b & 0x7fu} << (7 * i);
    if (b < 0x80) {
      in.remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

bool decode_sized_block(char compression, std::string_view in, std::uint64_t max_bytes,
                        std::string& out, std::string& why) {
  Codec codec;
  switch (compression) {
    case 0: out.assign(in); return true;
    case 'b': codec = Codec::kBrotli; break;
    case 'z': codec = Codec::kZstd; break;
    case 's': codec = Codec::kSnappy; break;
    default:
      why = fmt::format("the compression type {:#04x} is unknown",
                        static_cast<unsigned char>(compression));
      return false;
  }
  std::uint64_t size = 0;
  if (!take_varint(in, size)) {
    why = "the decoded size is malformed";
    return false;
  }
  if (size > max_bytes) {
    why = fmt::format("{} decoded bytes are more than the {} that are due", size, max_bytes);
    return false;
  }
  return decompress(codec, in, size, out, why);
}

ChunkRecords decode_chunk(std::string_view file, const Chunk& chunk, const ReadOptions& options) {
  ChunkRecords out;
  const ChunkHeader& h = chunk.header;
  check_limit(file, chunk.begin, chunk.end, h.decoded_size, options);
  std::string why;
  const auto fail = [&](std::string_view reason) {
    throw DamageError(file, chunk.begin, chunk.end, reason);
  };
  if (h.type == 't' || h.type == 'm') {
    // A metadata chunk holds one message, which does not count as a record.
    const std::uint64_t n = h.type == 'm' ? 1 : h.num_records;
    if (!decode_transposed(chunk.data, n, h.decoded_size, options.max_record_bytes, out, why))
      fail(fmt::format("transposed chunk: {}", why));
    return out;
  }
  std::string_view in = chunk.data;
  if (in.empty()) fail("the chunk's payload is empty");
  const char compression = in[0];
  in.remove_prefix(1);
  std::uint64_t sizes_length = 0;
  if (!take_varint(in, sizes_length) || sizes_length > in.size())
    fail("the length of the record sizes is malformed");
  std::string sizes;
  if (!decode_sized_block(compression, in.substr(0, sizes_length), 10 * h.num_records, sizes, why))
    fail(fmt::format("record sizes: {}", why));
  in.remove_prefix(sizes_length);
  if (!decode_sized_block(compression, in, h.decoded_size, out.values, why))
    fail(fmt::format("records: {}", why));
  if (out.values.size() != h.decoded_size)
    fail(fmt::format("the records have {} bytes, the header says {}", out.values.size(),
                     h.decoded_size));
  out.ends.reserve(h.num_records);
  std::string_view left = sizes;
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < h.num_records; ++i) {
    std::uint64_t n = 0;
    if (!take_varint(left, n) || n > out.values.size() - at)
      fail(fmt::format("the size of record {} is malformed or too large", i));
    at += n;
    out.ends.push_back(at);
  }
  if (!left.empty() || at != out.values.size()) fail("the record sizes do not add up");
  return out;
}

std::optional<std::uint64_t> recover_chunk(const ByteSource& file, std::uint64_t at) {
  for (std::uint64_t b = (at / kBlock + 1) * kBlock; b + kBlockHeader <= file.size(); b += kBlock) {
    const std::string h = file.read(b, kBlockHeader);
    if (riegeli_hash(std::string_view(h).substr(8)) != load<std::uint64_t>(h.data())) continue;
    const auto previous = load<std::uint64_t>(h.data() + 8);
    const auto next = load<std::uint64_t>(h.data() + 16);
    // A chunk that begins before the damage is the damaged one, or is interrupted by it.
    if (previous == 0) return b;
    if (b - std::min(previous, b) > at) return b - previous;
    if (next >= kBlockHeader && next <= file.size() - b) {
      if (b + next == file.size()) return std::nullopt;
      return b + next;
    }
  }
  return std::nullopt;
}

// ---- writing

std::string encode_simple(const ChunkCodec& codec, const ChunkRecords& records) {
  ByteWriter sizes;
  std::uint64_t before = 0;
  for (const std::uint64_t end : records.ends) {
    sizes.write_varint(end - before);
    before = end;
  }
  const auto block = [&](std::string_view data) {
    if (codec.codec == Codec::kNone) return std::string(data);
    ByteWriter w;
    w.write_varint(data.size());
    w.write_string(compress(codec.codec, data, codec.options));
    return w.take();
  };
  const char type = codec.codec == Codec::kNone     ? '\0'
                    : codec.codec == Codec::kBrotli ? 'b'
                    : codec.codec == Codec::kSnappy ? 's'
                                                    : 'z';
  const std::string sizes_block = block(sizes.str());
  ByteWriter out;
  out.write_string(std::string_view(&type, 1));
  out.write_varint(sizes_block.size());
  out.write_string(sizes_block);
  out.write_string(block(records.values));
  return out.take();
}

ChunkWriter::ChunkWriter(ByteSink& sink) : sink_(sink) { write('s', {}, 0, 0); }

void ChunkWriter::put(std::string_view bytes, std::uint64_t begin, std::uint64_t end) {
  while (true) {
    if (position_ % kBlock == 0 && position_ < end) {
      ByteWriter rest, header;
      rest.write(position_ - begin);
      rest.write(end - position_);
      header.write(riegeli_hash(rest.str()));
      header.write_string(rest.str());
      sink_.write(header.str());
      position_ += kBlockHeader;
    }
    if (bytes.empty()) return;
    const std::uint64_t room = kBlock - position_ % kBlock;
    const std::string_view piece = bytes.substr(0, room);
    sink_.write(piece);
    position_ += piece.size();
    bytes.remove_prefix(piece.size());
    if (bytes.empty()) return;
  }
}

std::uint64_t ChunkWriter::write(char type, std::string_view data, std::uint64_t num_records,
                                 std::uint64_t decoded_size) {
  const std::uint64_t begin = position_;
  const std::uint64_t end = chunk_end(begin, data.size(), num_records);
  ByteWriter rest, header;
  rest.write(static_cast<std::uint64_t>(data.size()));
  rest.write(riegeli_hash(data));
  rest.write(num_records << 8 | static_cast<unsigned char>(type));
  rest.write(decoded_size);
  header.write(riegeli_hash(rest.str()));
  header.write_string(rest.str());
  put(header.str(), begin, end);
  put(data, begin, end);
  // Records' positions need room: zeros, with the block headers among them.
  while (position_ < end) {
    const std::uint64_t room = std::min(end - position_, kBlock - position_ % kBlock);
    if (position_ % kBlock == 0) {
      put({}, begin, end);
      continue;
    }
    sink_.write(std::string(static_cast<std::size_t>(room), '\0'));
    position_ += room;
  }
  return begin;
}

void ChunkWriter::pad(std::uint64_t unit) {
  std::uint64_t n = (unit - position_ % unit) % unit;
  if (n == 0) return;
  if (n < kChunkHeader) n += unit;
  // Block headers at the multiples of kBlock in [position, position + n).
  const std::uint64_t headers =
      (position_ + n - 1) / kBlock - (position_ == 0 ? 0 : (position_ - 1) / kBlock);
  const std::uint64_t zeros = n - kChunkHeader - kBlockHeader * headers;
  write('p', std::string(static_cast<std::size_t>(zeros), '\0'), 0, 0);
}

}  // namespace xylem::data::internal
