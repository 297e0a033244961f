#include "xylem/checkpoint/npz.h"

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>

#include "xylem/base/bytes.h"
#include "xylem/base/error.h"
#include "xylem/base/npy.h"

namespace xylem::checkpoint {
namespace {

constexpr std::uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                        kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr std::uint64_t kMaxDirectory = std::uint64_t{1} << 30;

struct Member {
  std::string name, file_name;  // without and with ".npy"
  int method = 0;
  std::uint32_t crc = 0;
  std::uint64_t compressed = 0, size = 0, header = 0;
};

[[noreturn]] void refuse(std::string_view name, std::string_view expected, std::string_view given) {
  throw_user_error({fmt::format("read {}", name), expected, given,
                    "The file is damaged or not an npz file: get it again"});
}

std::string read_part(const InputFile& f, std::uint64_t at, std::uint64_t n) {
  if (at > f.size() || n > f.size() - at)
    refuse(f.path(), fmt::format("{} bytes at {}", n, at), fmt::format("{} bytes", f.size()));
  std::string out(static_cast<std::size_t>(n), '\0');
  f.read(at, std::as_writable_bytes(std::span<char>(out)));
  return out;
}

std::vector<Member> read_directory(const InputFile& f) {
  // The end record is in the last 64 KiB: a comment may follow it.
  const std::uint64_t tail = std::min<std::uint64_t>(f.size(), 65557);
  const std::string end = read_part(f, f.size() - tail, tail);
  std::size_t at = end.size();
  while (true) {
    at = at == 0 ? std::string::npos : end.rfind("PK\5\6", at - 1);
    if (at == std::string::npos || end.size() - at >= 22) break;
  }
  if (at == std::string::npos) refuse(f.path(), "a zip archive's directory", "there is none");
  ByteReader r(std::string_view(end).substr(at), f.path());
  r.skip(10);
  std::uint64_t count = r.read<std::uint16_t>();
  std::uint64_t size = r.read<std::uint32_t>(), offset = r.read<std::uint32_t>();
  if (at >= 20 && std::string_view(end).substr(at - 20, 4) == "PK\6\7") {
    ByteReader l(std::string_view(end).substr(at - 20, 20), f.path());
    l.skip(8);
    const std::string record = read_part(f, l.read<std::uint64_t>(), 56);
    ByteReader e(record, f.path());
    if (e.read<std::uint32_t>() != kEnd64) refuse(f.path(), "a zip64 end record", "another");
    e.skip(28);
    count = e.read<std::uint64_t>();
    size = e.read<std::uint64_t>();
    offset = e.read<std::uint64_t>();
  }
  if (size > kMaxDirectory)
    refuse(f.path(), "a directory of at most 1 GiB", fmt::format("{}", size));
  const std::string bytes = read_part(f, offset, size);
  ByteReader d(bytes, f.path());
  std::vector<Member> out;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (d.read<std::uint32_t>() != kCentral) refuse(f.path(), "a directory entry", "other bytes");
    Member m;
    d.skip(4);
    const auto flags = d.read<std::uint16_t>();
    m.method = d.read<std::uint16_t>();
    d.skip(4);
    m.crc = d.read<std::uint32_t>();
    m.compressed = d.read<std::uint32_t>();
    m.size = d.read<std::uint32_t>();
    const auto name = d.read<std::uint16_t>(), extra = d.read<std::uint16_t>(),
               comment = d.read<std::uint16_t>();
    d.skip(8);
    m.header = d.read<std::uint32_t>();
    m.name = d.read_string(name);
    ByteReader x(d.read_string(extra), f.path());
    while (x.remaining() >= 4) {
      const auto id = x.read<std::uint16_t>(), length = x.read<std::uint16_t>();
      ByteReader field(x.read_string(length), f.path());
      if (id != 1) continue;
      for (std::uint64_t* v : {&m.size, &m.compressed, &m.header})
        if (*v == 0xffffffff && field.remaining() >= 8) *v = field.read<std::uint64_t>();
    }
    d.skip(comment);
    if ((flags & 1) != 0) refuse(f.path(), "members without encryption", m.name);
    if (m.method != 0 && m.method != 8)
      refuse(f.path(), "members stored or deflated",
             fmt::format("{}: method {}", m.name, m.method));
    m.file_name = m.name;
    if (m.name.ends_with(".npy")) m.name.resize(m.name.size() - 4);
    out.push_back(std::move(m));
  }
  return out;
}

}  // namespace

std::string internal::inflate_member(std::string_view in, std::uint64_t size,
                                     const std::string& name) {
  // Deflate expands at most some 1032 times.
  if (size / 1100 > in.size() + 64)
    refuse(name, fmt::format("data that can hold {} bytes", size), fmt::format("{}", in.size()));
  std::string out(static_cast<std::size_t>(size), '\0');
  z_stream s{};
  if (inflateInit2(&s, -15) != Z_OK) refuse(name, "memory for the decompressor", "none");
  int r = Z_OK;
  std::size_t from = 0, to = 0;
  while (r == Z_OK) {
    const std::size_t n = std::min<std::size_t>(in.size() - from, 1u << 30);
    const std::size_t room = std::min<std::size_t>(out.size() - to, 1u << 30);
    s.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data())) + from;
    s.avail_in = static_cast<uInt>(n);
    s.next_out = reinterpret_cast<Bytef*>(out.data()) + to;
    s.avail_out = static_cast<uInt>(room);
    r = inflate(&s, Z_NO_FLUSH);
    from += n - s.avail_in;
    to += room - s.avail_out;
    if (r == Z_BUF_ERROR) break;
  }
  inflateEnd(&s);
  if (r != Z_STREAM_END || to != out.size())
    refuse(name, fmt::format("deflated data of {} bytes", size), fmt::format("{} bytes", to));
  return out;
}

namespace {

// The descr and shape of a .npy header whose type parse_npy refuses, read without a full parser.
struct NpyHeader {
  std::string descr;
  Dims shape;
};
std::optional<NpyHeader> read_npy_header(std::string_view bytes) {
  if (bytes.size() < 12 || !bytes.starts_with("\x93NUMPY")) return std::nullopt;
  const bool wide = bytes[6] > 1;
  std::size_t length = static_cast<unsigned char>(bytes[8]) | static_cast<unsigned char>(bytes[9])
                                                                  << 8;
  if (wide) {
    std::uint32_t n;
    std::memcpy(&n, bytes.data() + 8, 4);
    length = n;
  }
  const std::string_view header = bytes.substr(wide ? 12 : 10, length);
  NpyHeader out;
  std::size_t at = header.find("'descr':");
  if (at == std::string_view::npos) return std::nullopt;
  at = header.find_first_not_of(' ', at + 8);
  if (at == std::string_view::npos) return std::nullopt;
  if (header[at] == '\'') {
    out.descr = header.substr(at + 1, header.find('\'', at + 1) - at - 1);
  } else {
    const std::size_t end = header.find("'fortran_order'");
    if (end == std::string_view::npos || end < at) return std::nullopt;
    out.descr = header.substr(at, end - at);
    while (!out.descr.empty() && (out.descr.back() == ' ' || out.descr.back() == ','))
      out.descr.pop_back();
  }
  at = header.find("'shape':");
  if (at == std::string_view::npos || (at = header.find('(', at)) == std::string_view::npos)
    return std::nullopt;
  const std::size_t end = std::min(header.find(')', at), header.size());
  const char* p = header.data() + at + 1;
  const char* last = header.data() + end;
  while (p < last) {
    std::int64_t d = 0;
    const auto [next, error] = std::from_chars(p, last, d);
    if (error == std::errc()) {
      out.shape.push_back(d);
      p = next;
    } else {
      ++p;
    }
  }
  return out;
}

class NpzItem final : public Item {
 public:
  NpzItem(const FileSystem& fs, const std::string& path) : file_(fs.open(path)) {
    std::vector<LeafInfo> infos;
    std::set<std::string> names;
    for (Member& m : read_directory(*file_)) {
      if (!names.insert(m.name).second) refuse(path, "every member once", m.name);
      members_.push_back(std::move(m));
    }
    for (const Member& m : members_) {
      LeafInfo l;
      l.path = {{m.name, false}};
      const std::string bytes = contents(m);
      try {
        const HostArray a = parse_npy(as_byte_span(bytes), name_of(m));
        l.dtype = a.dtype();
        l.dtype_name = dtype_info(a.dtype()).numpy_name;
        l.shape = a.dims();
      } catch (const UserError&) {
        const auto header = read_npy_header(bytes);
        if (!header) throw;
        l.dtype_name = header->descr;
        l.shape = header->shape;
        // Numbers that were refused are damaged, not foreign.
        const bool foreign = l.dtype_name.find_first_of("VUSOMm[") != std::string::npos;
        if (!foreign) throw;
      }
      leaves_.push_back(std::move(l));
    }
  }

  const std::vector<LeafInfo>& leaves() const override { return leaves_; }
  HostArray read(std::size_t i, const std::optional<Box>& box) const override {
    const Member& m = members_.at(i);
    const HostArray a = parse_npy(as_byte_span(contents(m)), name_of(m));
    return box ? cut_box(a, *box, m.name) : a;
  }
  std::uint64_t stored_bytes(std::size_t i) const override { return members_.at(i).compressed; }
  void check(const Report& f, const Progress& progress) const override {
    std::uint64_t done = 0;
    for (const Member& m : members_) {
      if (progress) progress(done++, members_.size());
      try {
        contents(m);
      } catch (const Error& e) {
        f(m.name, e.message());
      }
    }
  }

 private:
  std::string name_of(const Member& m) const {
    return fmt::format("{}: {}", file_->path(), m.name);
  }

  std::string contents(const Member& m) const {
    const std::string local = read_part(*file_, m.header, 30);
    ByteReader r(local, file_->path());
    if (r.read<std::uint32_t>() != kLocal) refuse(name_of(m), "a member's header", "other bytes");
    r.skip(22);
    const auto name_size = r.read<std::uint16_t>(), extra_size = r.read<std::uint16_t>();
    const std::string name = read_part(*file_, m.header + 30, name_size);
    if (name != m.file_name)
      refuse(name_of(m), "the same name in its header", fmt::format("\"{}\"", name));
    const std::uint64_t skip = std::uint64_t{30} + name_size + extra_size;
    std::string bytes = read_part(*file_, m.header + skip, m.compressed);
    if (m.method == 8)
      bytes = internal::inflate_member(bytes, m.size, name_of(m));
    else if (m.size != m.compressed)
      refuse(name_of(m), fmt::format("{} bytes", m.size), fmt::format("{}", m.compressed));
    uLong crc = 0;
    for (std::size_t at = 0; at < bytes.size(); at += 1u << 30)
      crc = crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()) + at,
                  static_cast<uInt>(std::min<std::size_t>(bytes.size() - at, 1u << 30)));
    if (crc != m.crc)
      refuse(name_of(m), fmt::format("contents with CRC-32 {:08x}", m.crc),
             fmt::format("{:08x}", crc));
    return bytes;
  }

  std::shared_ptr<const InputFile> file_;
  std::vector<Member> members_;
  std::vector<LeafInfo> leaves_;
};

}  // namespace

std::unique_ptr<Item> open_npz(const FileSystem& fs, const std::string& path) {
  return std::make_unique<NpzItem>(fs, path);
}

void write_npz(const FileSystem& fs, const std::string& path, const NamedArrays& arrays) {
  const std::string temporary = fmt::format("{}.tmp-{}", path, ::getpid());
  std::set<std::string_view> names;
  ByteWriter directory;
  try {
    const auto out = fs.create(temporary);
    for (const NamedArray& a : arrays) {
      if (!names.insert(a.name).second)
        throw_user_error({fmt::format("write {}", path), "every name once",
                          fmt::format("\"{}\" twice", a.name), "Rename one of them"});
      const std::string npy = format_npy(a.value), name = a.name + ".npy";
      if (name.size() > 65535)
        throw_user_error({fmt::format("write {}", path), "names of at most 65535 bytes",
                          fmt::format("{} bytes", name.size()), "Rename it"});
      uLong crc = 0;
      for (std::size_t at = 0; at < npy.size(); at += 1u << 30)
        crc = crc32(crc, reinterpret_cast<const Bytef*>(npy.data()) + at,
                    static_cast<uInt>(std::min<std::size_t>(npy.size() - at, 1u << 30)));
      const std::uint64_t header = out->size(), size = npy.size();
      // Sizes always in the zip64 field, as NumPy does.
      const auto fields = [&](ByteWriter& w, bool central) {
        w.write(std::uint16_t{45});
        w.write(std::uint16_t{0x800});  // names in UTF-8
        w.write(std::uint16_t{0});
        w.write(std::uint16_t{0});
        w.write(std::uint16_t{0x21});  // 1 January 1980
        w.write(static_cast<std::uint32_t>(crc));
        w.write(std::uint32_t{0xffffffff});
        w.write(std::uint32_t{0xffffffff});
        w.write(static_cast<std::uint16_t>(name.size()));
        w.write(static_cast<std::uint16_t>(central ? 28 : 20));
      };
      const auto extra = [&](ByteWriter& w, bool central) {
        w.write(std::uint16_t{1});
        w.write(static_cast<std::uint16_t>(central ? 24 : 16));
        w.write(size);
        w.write(size);
        if (central) w.write(header);
      };
      ByteWriter local;
      local.write(kLocal);
      fields(local, false);
      local.write_string(name);
      extra(local, false);
      out->write(local.str());
      out->write(npy);
      directory.write(kCentral);
      directory.write(std::uint16_t{45});
      fields(directory, true);
      directory.write(std::uint16_t{0});  // comment
      directory.write(std::uint16_t{0});  // disk
      directory.write(std::uint16_t{0});
      directory.write(std::uint32_t{0});
      directory.write(std::uint32_t{0xffffffff});
      directory.write_string(name);
      extra(directory, true);
    }
    const std::uint64_t at = out->size(), size = directory.size(), count = arrays.size();
    out->write(directory.str());
    ByteWriter end;
    end.write(kEnd64);
    end.write(std::uint64_t{44});
    end.write(std::uint16_t{45});
    end.write(std::uint16_t{45});
    end.write(std::uint32_t{0});
    end.write(std::uint32_t{0});
    end.write(count);
    end.write(count);
    end.write(size);
    end.write(at);
    end.write(kLocator64);
    end.write(std::uint32_t{0});
    end.write(at + size);
    end.write(std::uint32_t{1});
    end.write(kEnd);
    end.write(std::uint16_t{0});
    end.write(std::uint16_t{0});
    end.write(std::uint16_t{0xffff});
    end.write(std::uint16_t{0xffff});
    end.write(std::uint32_t{0xffffffff});
    end.write(std::uint32_t{0xffffffff});
    end.write(std::uint16_t{0});
    out->write(end.str());
    out->close();
    fs.rename(temporary, path, /*replace=*/true);
    fs.sync_directory(parent_path(path));
  } catch (...) {
    fs.calls()->remove_file(temporary);
    throw;
  }
}

}  // namespace xylem::checkpoint
