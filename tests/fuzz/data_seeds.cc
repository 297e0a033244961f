#include "tests/fuzz/data_seeds.h"

#include <algorithm>

#include "xylem/base/bytes.h"
#include "xylem/base/error.h"
#include "xylem/data/formats/internal/riegeli.h"
#include "xylem/data/formats/testing/samples.h"

namespace xylem::fuzz {

std::vector<std::string> record_files(std::string_view format) {
  std::vector<std::string> out;
  for (const data::testing::Sample& s : data::testing::samples())
    if (s.format == format) out.push_back(s.bytes);
  if (format == "mds")
    for (const data::testing::FolderSample& folder : data::testing::folder_samples())
      for (const auto& [name, bytes] : folder.files)
        if (name.ends_with(".mds")) out.push_back(bytes);
  return out;
}

void read_records(const std::uint8_t* data, std::size_t size, const std::string& format) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  data::testing::exercise(bytes, "fuzz", format);
}

std::vector<std::string> chunk_lists(std::string_view format) {
  using namespace data::internal;
  std::vector<std::string> out;
  for (const data::testing::Sample& s : data::testing::samples()) {
    if (s.format != format) continue;
    const data::SourcePtr file = data::memory_source(s.bytes);
    ByteWriter w;
    for (std::uint64_t at = 64; at < file->size();) {
      const Chunk c = read_chunk(*file, at, {});
      at = c.end;
      // Padding and what follows the footer is written anew.
      if (c.header.type == 'p') break;
      w.write(c.header.type);
      w.write(static_cast<std::uint16_t>(c.header.num_records));
      w.write(static_cast<std::uint16_t>(c.header.decoded_size));
      w.write(static_cast<std::uint16_t>(c.data.size()));
      w.write_string(c.data);
    }
    out.push_back(w.take());
  }
  return out;
}

std::string chunk_file(const std::uint8_t* data, std::size_t size, bool footer) {
  using namespace data::internal;
  struct Part {
    char type;
    std::uint16_t records, decoded;
    std::string_view data;
  };
  std::vector<Part> parts;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const auto u16 = [&](std::size_t at) {
    return static_cast<std::uint16_t>(static_cast<unsigned char>(rest[at]) |
                                      static_cast<unsigned char>(rest[at + 1]) << 8);
  };
  while (rest.size() >= 7) {
    Part p{rest[0], u16(1), u16(3), rest.substr(7, u16(5))};
    rest.remove_prefix(7 + p.data.size());
    parts.push_back(p);
  }
  std::string out;
  const auto sink = data::string_sink(out);
  ChunkWriter chunks(*sink);
  std::uint64_t last = chunks.position();
  for (const Part& p : parts) last = chunks.write(p.type, p.data, p.records, p.decoded);
  if (!footer) return out;
  chunks.pad(kBlock);
  ByteWriter postscript;
  postscript.write_varint(1 << 3);
  postscript.write_varint(last);
  postscript.write_varint(2 << 3);
  postscript.write_varint(0x71930e704fdae05eu);
  ChunkRecords records;
  for (int i = 0; i < 3; ++i) {
    records.values += postscript.str();
    records.ends.push_back(records.values.size());
  }
  chunks.write('r', encode_simple({data::internal::Codec::kNone, {}}, records), 3,
               records.values.size());
  chunks.pad(kBlock);
  return out;
}

std::string join_files(const std::vector<std::string>& contents) {
  ByteWriter w;
  for (const std::string& c : contents) {
    w.write(static_cast<std::uint16_t>(std::min<std::size_t>(c.size(), UINT16_MAX)));
    w.write_string(std::string_view(c).substr(0, UINT16_MAX));
  }
  return w.take();
}

std::vector<std::string> split_files(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> out;
  std::size_t at = 0;
  while (at + 2 <= size) {
    const std::size_t n = std::min<std::size_t>(data[at] | data[at + 1] << 8, size - at - 2);
    out.emplace_back(reinterpret_cast<const char*>(data) + at + 2, n);
    at += 2 + n;
  }
  return out;
}

}  // namespace xylem::fuzz
