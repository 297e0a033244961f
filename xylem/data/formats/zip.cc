#include "xylem/data/formats/internal/zip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "xylem/base/bytes.h"
#include "xylem/data/formats/internal/checks.h"
#include "xylem/data/formats/internal/codec.h"

namespace xylem::data::internal {
namespace {

constexpr std::uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                        kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr std::uint64_t kEndSize = 22;

std::uint32_t crc_of(std::string_view data) {
  return static_cast<std::uint32_t>(
      ::crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size()));
}

// The ZIP64 extra field replaces sizes and offset that are all ones.
void apply_zip64(std::string_view extra, ZipMember& m, std::string_view name) {
  ByteReader r(extra, name);
  while (r.remaining() >= 4) {
    const auto id = r.read<std::uint16_t>();
    const auto size = r.read<std::uint16_t>();
    ByteReader field(r.read_string(size), name);
    if (id != 1) continue;
    if (m.size == UINT32_MAX) m.size = field.read<std::uint64_t>();
    if (m.compressed_size == UINT32_MAX) m.compressed_size = field.read<std::uint64_t>();
    if (m.header_begin == UINT32_MAX) m.header_begin = field.read<std::uint64_t>();
  }
}

}  // namespace

std::vector<ZipMember> read_zip_directory(const ByteSource& file) {
  const std::string& name = file.name();
  const std::uint64_t tail_size = std::min<std::uint64_t>(file.size(), kEndSize + 65535 + 20);
  const std::uint64_t tail_begin = file.size() - tail_size;
  const std::string tail = file.read(tail_begin, tail_size);
  std::size_t at = std::string::npos;
  for (std::size_t i = tail.size() >= kEndSize ? tail.size() - kEndSize + 1 : 0; i-- > 0;) {
    if (tail.compare(i, 4, "PK\5\6") != 0) continue;
    // The comment must reach to the end of the file.
    const auto length =
        static_cast<unsigned char>(tail[i + 20]) + 256u * static_cast<unsigned char>(tail[i + 21]);
    if (i + kEndSize + length == tail.size()) {
      at = i;
      break;
    }
  }
  if (at == std::string::npos)
    throw DamageError(name, tail_begin, file.size(),
                      "the zip file has no end of its directory; it is cut or was not closed");
  try {
    ByteReader end(std::string_view(tail).substr(at + 8), name);
    end.skip(2);
    std::uint64_t count = end.read<std::uint16_t>();
    std::uint64_t size = end.read<std::uint32_t>();
    std::uint64_t begin = end.read<std::uint32_t>();
    const std::uint64_t end_begin = tail_begin + at;
    std::uint64_t directory_limit = end_begin;
    if (at >= 20 && tail.compare(at - 20, 4, "PK\6\7") == 0) {
      ByteReader locator(std::string_view(tail).substr(at - 20 + 8), name);
      const auto end64 = locator.read<std::uint64_t>();
      const std::string record = file.read(end64, 56);
      ByteReader r(record, name);
      if (r.read<std::uint32_t>() != kEnd64)
        throw DamageError(name, end_begin - 20, end_begin, "the ZIP64 locator points nowhere");
      r.skip(20);
      r.skip(8);
      count = r.read<std::uint64_t>();
      size = r.read<std::uint64_t>();
      begin = r.read<std::uint64_t>();
      directory_limit = end64;
    }
    if (begin > directory_limit || size > directory_limit - begin || count > size / 46)
      throw DamageError(name, end_begin, file.size(),
                        fmt::format("the directory says {} members in {} bytes at {}, the file has "
                                    "{} bytes",
                                    count, size, begin, file.size()));
    const std::string directory = file.read(begin, size);
    ByteReader r(directory, name);
    std::vector<ZipMember> members;
    std::vector<std::string> names;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t entry = begin + r.position();
      const auto fail = [&](std::string_view reason) {
        throw DamageError(name, entry, begin + size, fmt::format("zip member {}: {}", i, reason));
      };
      if (r.read<std::uint32_t>() != kCentral) fail("its directory entry is malformed");
      ZipMember m;
      r.skip(4);
      const auto flags = r.read<std::uint16_t>();
      m.method = r.read<std::uint16_t>();
      r.skip(4);
      m.crc = r.read<std::uint32_t>();
      m.compressed_size = r.read<std::uint32_t>();
      m.size = r.read<std::uint32_t>();
      const auto name_size = r.read<std::uint16_t>();
      const auto extra_size = r.read<std::uint16_t>();
      const auto comment_size = r.read<std::uint16_t>();
      r.skip(8);
      m.header_begin = r.read<std::uint32_t>();
      m.name = r.read_string(name_size);
      apply_zip64(r.read_string(extra_size), m, name);
      r.skip(comment_size);
      if ((flags & 1) != 0) fail("it is encrypted");
      if (m.method != 0 && m.method != 8)
        fail(fmt::format("its compression method {} is neither stored nor deflated", m.method));
      if (m.header_begin > begin || m.compressed_size > begin - m.header_begin)
        fail("it lies outside of the file");
      if (m.method == 0 && m.size != m.compressed_size) fail("its two sizes differ");
      names.push_back(m.name);
      members.push_back(std::move(m));
    }
    std::sort(names.begin(), names.end());
    if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
      throw DamageError(name, begin, begin + size,
                        fmt::format("two members are named \"{}\"", *twice));
    return members;
  } catch (const DamageError&) {
    throw;
  } catch (const Error& e) {
    throw DamageError(name, tail_begin, file.size(),
                      fmt::format("the zip directory is malformed: {}", e.message()));
  }
}

std::string read_zip_member(const ByteSource& file, const ZipMember& m,
                            const ReadOptions& options) {
  const std::uint64_t end_guess = m.header_begin + m.compressed_size;
  const auto fail = [&](std::uint64_t end, std::string_view reason) {
    throw DamageError(file.name(), m.header_begin, end,
                      fmt::format("zip member {}: {}", m.name, reason));
  };
  check_limit(file.name(), m.header_begin, end_guess, m.size, options);
  const std::string header = file.read(m.header_begin, 30);
  if (header.size() < 30 || header.compare(0, 4, "PK\3\4") != 0)
    fail(m.header_begin + 30, "its header is malformed");
  ByteReader r(std::string_view(header).substr(26), file.name());
  const std::uint64_t name_size = r.read<std::uint16_t>();
  const std::uint64_t begin = m.header_begin + 30 + name_size + r.read<std::uint16_t>();
  if (begin > file.size() || m.compressed_size > file.size() - begin)
    fail(file.size(), "it reaches beyond the file");
  if (file.read(m.header_begin + 30, name_size) != m.name)
    fail(m.header_begin + 30 + name_size, "its header has another name than the directory");
  const std::string in = file.read(begin, m.compressed_size);
  std::string out, why;
  if (!decompress(m.method == 8 ? Codec::kDeflate : Codec::kNone, in, m.size, out, why))
    fail(begin + in.size(), why);
  if (crc_of(out) != m.crc) fail(begin + in.size(), "its contents do not match their CRC-32");
  return out;
}

void ZipWriter::add(std::string_view name, std::string_view data, bool deflate) {
  ZipMember m;
  m.name = name;
  m.method = deflate ? 8 : 0;
  m.crc = crc_of(data);
  m.size = data.size();
  m.header_begin = sink_.size();
  const std::string packed = deflate ? compress(Codec::kDeflate, data) : std::string();
  const std::string_view out = deflate ? std::string_view(packed) : data;
  m.compressed_size = out.size();
  ByteWriter w;
  w.write(kLocal);
  w.write<std::uint16_t>(45);
  w.write<std::uint16_t>(0x800);  // names are UTF-8
  w.write(m.method);
  w.write<std::uint32_t>(0x00210000);  // 1 January 1980, the earliest time there is
  w.write(m.crc);
  w.write<std::uint32_t>(UINT32_MAX);
  w.write<std::uint32_t>(UINT32_MAX);
  w.write(static_cast<std::uint16_t>(name.size()));
  w.write<std::uint16_t>(20);
  w.write_string(name);
  w.write<std::uint16_t>(1);
  w.write<std::uint16_t>(16);
  w.write(m.size);
  w.write(m.compressed_size);
  sink_.write(w.str());
  sink_.write(out);
  members_.push_back(std::move(m));
}

void ZipWriter::finish() {
  const std::uint64_t begin = sink_.size();
  for (const ZipMember& m : members_) {
    ByteWriter w;
    w.write(kCentral);
    w.write<std::uint16_t>(45);
    w.write<std::uint16_t>(45);
    w.write<std::uint16_t>(0x800);
    w.write(m.method);
    w.write<std::uint32_t>(0x00210000);
    w.write(m.crc);
    w.write<std::uint32_t>(UINT32_MAX);
    w.write<std::uint32_t>(UINT32_MAX);
    w.write(static_cast<std::uint16_t>(m.name.size()));
    w.write<std::uint16_t>(28);
    w.write<std::uint16_t>(0);
    w.write<std::uint32_t>(0);
    w.write<std::uint32_t>(0);
    w.write<std::uint32_t>(UINT32_MAX);
    w.write_string(m.name);
    w.write<std::uint16_t>(1);
    w.write<std::uint16_t>(24);
    w.write(m.size);
    w.write(m.compressed_size);
    w.write(m.header_begin);
    sink_.write(w.str());
  }
  const std::uint64_t end = sink_.size();
  const auto count = static_cast<std::uint64_t>(members_.size());
  ByteWriter w;
  w.write(kEnd64);
  w.write<std::uint64_t>(44);
  w.write<std::uint16_t>(45);
  w.write<std::uint16_t>(45);
  w.write<std::uint32_t>(0);
  w.write<std::uint32_t>(0);
  w.write(count);
  w.write(count);
  w.write(end - begin);
  w.write(begin);
  w.write(kLocator64);
  w.write<std::uint32_t>(0);
  w.write(end);
  w.write<std::uint32_t>(1);
  w.write(kEnd);
  w.write<std::uint32_t>(0);
  w.write(static_cast<std::uint16_t>(std::min<std::uint64_t>(count, UINT16_MAX)));
  w.write(static_cast<std::uint16_t>(std::min<std::uint64_t>(count, UINT16_MAX)));
  w.write(static_cast<std::uint32_t>(std::min<std::uint64_t>(end - begin, UINT32_MAX)));
  w.write(static_cast<std::uint32_t>(std::min<std::uint64_t>(begin, UINT32_MAX)));
  w.write<std::uint16_t>(0);
  sink_.write(w.str());
}

}  // namespace xylem::data::internal
