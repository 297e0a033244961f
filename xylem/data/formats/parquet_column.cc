#include "xylem/data/formats/internal/parquet_column.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "xylem/base/float_types.h"
#include "xylem/data/formats/internal/checks.h"
#include "xylem/data/formats/internal/codec.h"

namespace xylem::data::internal::parquet {
namespace {

// Days since 1970-01-01 as year, month and day (Howard Hinnant's algorithm, "chrono-compatible
// low-level date algorithms").
std::string date_text(std::int64_t days) {
  days += 719468;
  const std::int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  const std::int64_t doe = days - era * 146097;
  const std::int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
  const std::int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
  const std::int64_t mp = (5 * doy + 2) / 153;
  const std::int64_t d = doy - (153 * mp + 2) / 5 + 1;
  const std::int64_t m = mp < 10 ? mp + 3 : mp - 9;
  const std::int64_t y = yoe + era * 400 + (m <= 2);
  if (y < 0) return fmt::format("-{:04}-{:02}-{:02}", -y, m, d);
  return fmt::format("{:04}-{:02}-{:02}", y, m, d);
}

// A time of day; the fraction as Python writes it: none, six digits, or nine if they are needed.
std::string time_text(std::int64_t ns_of_day) {
  const std::int64_t seconds = ns_of_day / 1000000000, ns = ns_of_day % 1000000000;
  std::string s = fmt::format("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
  if (ns % 1000 != 0)
    s += fmt::format(".{:09}", ns);
  else if (ns != 0)
    s += fmt::format(".{:06}", ns / 1000);
  return s;
}

std::int64_t unit_ns(int digits) { return digits == 3 ? 1000000 : digits == 6 ? 1000 : 1; }

std::string timestamp_text(std::int64_t v, int digits, bool utc) {
  const std::int64_t per_day = 86400000000000 / unit_ns(digits);
  const std::int64_t days = v >= 0 ? v / per_day : -((-(v + 1)) / per_day) - 1;
  return date_text(days) + "T" + time_text((v - days * per_day) * unit_ns(digits)) +
         (utc ? "+00:00" : "");
}

// A two's complement number, highest byte first, with `scale` digits behind the point.
std::string decimal_text(std::string_view big_endian, std::int32_t scale) {
  std::string magnitude(big_endian);
  const bool negative = !magnitude.empty() && (magnitude[0] & 0x80) != 0;
  if (negative) {
    int carry = 1;
    for (std::size_t i = magnitude.size(); i-- > 0;) {
      carry += static_cast<unsigned char>(~magnitude[i]);
      magnitude[i] = static_cast<char>(carry);
      carry >>= 8;
    }
  }
  std::string digits;
  bool any = true;
  while (any) {
    any = false;
    unsigned remainder = 0;
    for (char& c : magnitude) {
      const unsigned v = remainder * 256 + static_cast<unsigned char>(c);
      c = static_cast<char>(v / 10);
      remainder = v % 10;
      any = any || c != 0;
    }
    digits += static_cast<char>('0' + remainder);
  }
  std::reverse(digits.begin(), digits.end());
  if (scale > 0) {
    const auto s = static_cast<std::size_t>(scale);
    if (digits.size() <= s) digits.insert(0, s + 1 - digits.size(), '0');
    digits.insert(digits.size() - s, ".");
  } else if (scale < 0 && digits != "0") {
    digits.append(static_cast<std::size_t>(-scale), '0');
  }
  return negative ? "-" + digits : digits;
}

std::string big_endian(std::uint64_t bits, int bytes) {
  std::string s;
  for (int i = bytes - 1; i >= 0; --i) s += static_cast<char>(bits >> (8 * i));
  return s;
}

Codec block_codec(Compression c) {
  switch (c) {
    case Compression::kSnappy: return Codec::kSnappy;
    case Compression::kGzip: return Codec::kGzip;
    case Compression::kBrotli: return Codec::kBrotli;
    case Compression::kZstd: return Codec::kZstd;
    case Compression::kLz4Raw: return Codec::kLz4Raw;
    default: return Codec::kNone;
  }
}

// The deprecated LZ4 of Hadoop: blocks with both sizes, highest byte first; some writers left the
// frames out.
bool decompress_hadoop_lz4(std::string_view in, std::uint64_t size, std::string& out,
                           std::string& why) {
  const auto be32 = [](std::string_view s) {
    std::uint32_t v = 0;
    for (int i = 0; i < 4; ++i)
      v = v << 8 | static_cast<unsigned char>(s[static_cast<std::size_t>(i)]);
    return v;
  };
  std::string_view left = in;
  std::string whole, piece;
  bool framed = true;
  while (framed && !left.empty()) {
    if (left.size() < 8) {
      framed = false;
      break;
    }
    const std::uint64_t plain = be32(left), packed = be32(left.substr(4));
    framed = packed <= left.size() - 8 && plain <= size - whole.size() &&
             decompress(Codec::kLz4Raw, left.substr(8, packed), plain, piece, why);
    if (!framed) break;
    whole += piece;
    left.remove_prefix(8 + packed);
  }
  if (framed && whole.size() == size) {
    out = std::move(whole);
    return true;
  }
  return decompress(Codec::kLz4Raw, in, size, out, why);
}

}  // namespace

Value convert_value(const Node& leaf, const Physical& p) {
  switch (*leaf.type) {
    case Type::kBoolean: return p.bits != 0;
    case Type::kInt32: {
      const auto v = static_cast<std::int32_t>(p.bits);
      switch (leaf.meaning) {
        case Meaning::kUnsigned: return std::int64_t{static_cast<std::uint32_t>(p.bits)};
        case Meaning::kDecimal:
          return decimal_text(big_endian(static_cast<std::uint32_t>(p.bits), 4), leaf.scale);
        case Meaning::kDate: return date_text(v);
        case Meaning::kTime:
          if (v >= 0 && v < 86400000) return time_text(v * std::int64_t{1000000});
          return std::int64_t{v};
        default: return std::int64_t{v};
      }
    }
    case Type::kInt64: {
      const auto v = static_cast<std::int64_t>(p.bits);
      switch (leaf.meaning) {
        case Meaning::kUnsigned:
          if (v < 0) return p.bits;
          return v;
        case Meaning::kDecimal: return decimal_text(big_endian(p.bits, 8), leaf.scale);
        case Meaning::kTimestamp: return timestamp_text(v, leaf.unit, leaf.utc);
        case Meaning::kTime:
          if (v >= 0 && v < 86400000000000 / unit_ns(leaf.unit))
            return time_text(v * unit_ns(leaf.unit));
          return v;
        default: return v;
      }
    }
    case Type::kInt96: {
      // Nanoseconds of the day, then the Julian day.
      std::int64_t ns;
      std::int32_t day;
      std::memcpy(&ns, p.bytes.data(), 8);
      std::memcpy(&day, p.bytes.data() + 8, 4);
      if (ns < 0 || ns >= 86400000000000) return Bytes{std::string(p.bytes)};
      return date_text(std::int64_t{day} - 2440588) + "T" + time_text(ns);
    }
    case Type::kFloat: {
      float f;
      const auto bits = static_cast<std::uint32_t>(p.bits);
      std::memcpy(&f, &bits, 4);
      return static_cast<double>(f);
    }
    case Type::kDouble: {
      double d;
      std::memcpy(&d, &p.bits, 8);
      return d;
    }
    case Type::kByteArray:
    case Type::kFixed:
      if (leaf.meaning == Meaning::kText && is_utf8(p.bytes)) return std::string(p.bytes);
      if (leaf.meaning == Meaning::kDecimal && p.bytes.size() <= 64)
        return decimal_text(p.bytes, leaf.scale);
      if (leaf.meaning == Meaning::kUuid && p.bytes.size() == 16) {
        std::string hex;
        append_hex(hex, p.bytes);
        for (const std::size_t at : {20, 16, 12, 8}) hex.insert(at, "-");
        return hex;
      }
      if (leaf.meaning == Meaning::kFloat16 && p.bytes.size() == 2)
        return HostArray::from_bytes(DType::kF16, {},
                                     std::as_bytes(std::span(p.bytes.data(), p.bytes.size())))
            .at(0);
      return Bytes{std::string(p.bytes)};
  }
  return {};
}

ColumnCursor::ColumnCursor(SourcePtr file, const ReadOptions& options, const Node& leaf,
                           const ColumnChunk& chunk)
    : file_(std::move(file)), options_(options), leaf_(leaf), codec_(chunk.codec) {
  const std::int64_t first =
      chunk.dictionary_offset > 0 && chunk.dictionary_offset < chunk.data_offset
          ? chunk.dictionary_offset
          : chunk.data_offset;
  at_ = page_begin_ = static_cast<std::uint64_t>(first);
  end_ = at_ + static_cast<std::uint64_t>(chunk.compressed_size);
  num_values_ = static_cast<std::uint64_t>(chunk.num_values);
}

void ColumnCursor::fail(std::string_view reason) const {
  throw DamageError(file_->name(), page_begin_, std::max(at_, page_begin_ + 1),
                    fmt::format("column {}: {}", leaf_.name, reason));
}

bool ColumnCursor::next_page() {
  while (entries_ < num_values_) {
    page_begin_ = at_;
    if (at_ >= end_)
      fail(fmt::format("the pages hold {} values, the footer says {}", entries_, num_values_));
    std::optional<PageHeader> header;
    for (std::uint64_t window = 4096; !header; window *= 16) {
      const std::string head = file_->read(at_, std::min(window, end_ - at_));
      try {
        header = parse_page_header(head, file_->name());
      } catch (const UserError& e) {
        // It may only have been cut.
        if (head.size() == end_ - at_ || window > (1u << 24)) fail(e.message());
      }
    }
    const PageHeader& h = *header;
    const std::uint64_t body = at_ + h.header_size;
    const auto compressed = static_cast<std::uint64_t>(h.compressed_size);
    const auto uncompressed = static_cast<std::uint64_t>(h.uncompressed_size);
    if (compressed > end_ - body)
      fail(fmt::format("a page says {} bytes, the column has {} left", compressed, end_ - body));
    check_limit(file_->name(), page_begin_, body + compressed, std::max(compressed, uncompressed),
                options_);
    at_ = body + compressed;
    if (h.kind == PageKind::kIndex) continue;
    std::string raw = file_->read(body, compressed);
    if (h.crc) {
      const auto crc = static_cast<std::uint32_t>(
          ::crc32_z(0, reinterpret_cast<const Bytef*>(raw.data()), raw.size()));
      if (crc != *h.crc)
        fail(fmt::format("a page's CRC-32 is {:08x}, {:08x} is stored", crc, *h.crc));
    }
    const auto unpack = [&](std::string_view in, std::uint64_t size) {
      std::string out, why;
      bool good;
      if (codec_ == Compression::kLzo) fail("the codec LZO is not supported");
      if (codec_ == Compression::kLz4)
        good = decompress_hadoop_lz4(in, size, out, why);
      else
        good = decompress(block_codec(codec_), in, size, out, why);
      if (!good) fail(why);
      return out;
    };
    try {
      if (h.kind == PageKind::kDictionary) {
        if (has_dictionary_) fail("there is a second dictionary");
        if (h.encoding != Encoding::kPlain && h.encoding != Encoding::kPlainDictionary)
          fail("the dictionary is not encoded plainly");
        dictionary_.page = unpack(raw, uncompressed);
        fill_dictionary(dictionary_, *leaf_.type, leaf_.type_length,
                        static_cast<std::uint64_t>(h.num_values));
        has_dictionary_ = true;
        continue;
      }
      if (h.num_values == 0) continue;
      std::string_view data;
      if (h.kind == PageKind::kData) {
        page_ = unpack(raw, uncompressed);
        data = page_;
        const auto levels = [&](int max, Encoding encoding) {
          if (max == 0) return HybridDecoder();
          if (encoding != Encoding::kRle) fail("levels are packed in the deprecated way");
          std::uint32_t n = 0;
          if (data.size() < 4) fail("the levels are cut");
          std::memcpy(&n, data.data(), 4);
          if (n > data.size() - 4) fail("the levels are cut");
          const HybridDecoder d(data.substr(4, n), bit_width(static_cast<std::uint64_t>(max)));
          data.remove_prefix(4 + n);
          return d;
        };
        rep_levels_ = levels(leaf_.rep, h.rep_encoding);
        def_levels_ = levels(leaf_.def, h.def_encoding);
      } else {
        // Levels stand before the values, never compressed.
        const auto rep = static_cast<std::uint64_t>(h.rep_bytes);
        const auto def = static_cast<std::uint64_t>(h.def_bytes);
        if (rep + def > raw.size() || rep + def > uncompressed) fail("the levels are cut");
        const std::string_view values = std::string_view(raw).substr(rep + def);
        std::string plain = raw.substr(0, rep + def);
        // A page of nothing but nulls may hold no compressed data at all.
        if (h.compressed && codec_ != Compression::kNone && !values.empty())
          plain += unpack(values, uncompressed - rep - def);
        else
          plain += values;
        page_ = std::move(plain);
        data = page_;
        rep_levels_ = leaf_.rep == 0
                          ? HybridDecoder()
                          : HybridDecoder(data.substr(0, rep),
                                          bit_width(static_cast<std::uint64_t>(leaf_.rep)));
        def_levels_ = leaf_.def == 0
                          ? HybridDecoder()
                          : HybridDecoder(data.substr(rep, def),
                                          bit_width(static_cast<std::uint64_t>(leaf_.def)));
        data.remove_prefix(rep + def);
      }
      values_.reset();
      page_left_ = static_cast<std::uint64_t>(h.num_values);
      // Pages of nulls only have no values to decode.
      if (!data.empty() || leaf_.def == 0)
        values_ = make_decoder(h.encoding, *leaf_.type, leaf_.type_length, data, page_left_,
                               has_dictionary_ ? &dictionary_ : nullptr);
    } catch (const Malformed& m) {
      fail(m.reason);
    }
    if (page_left_ > num_values_ - entries_)
      fail(fmt::format("the pages hold more values than the {} of the footer", num_values_));
    return true;
  }
  return false;
}

void ColumnCursor::load() {
  if (loaded_) return;
  if (page_left_ == 0 && !next_page()) return;
  try {
    rep_ = leaf_.rep == 0 ? 0 : static_cast<int>(rep_levels_.next());
    def_ = leaf_.def == 0 ? 0 : static_cast<int>(def_levels_.next());
  } catch (const Malformed& m) {
    fail(m.reason);
  }
  if (rep_ > leaf_.rep || def_ > leaf_.def) fail("a level is too large");
  if (entries_ == 0 && rep_ != 0) fail("the first value does not begin a row");
  --page_left_;
  ++entries_;
  loaded_ = true;
}

bool ColumnCursor::done() {
  load();
  return !loaded_;
}
int ColumnCursor::rep() {
  load();
  return loaded_ ? rep_ : 0;
}
int ColumnCursor::def() {
  load();
  if (!loaded_) fail("there are fewer values than rows");
  return def_;
}

Value ColumnCursor::take() {
  if (def() < leaf_.def) {
    drop();
    return {};
  }
  loaded_ = false;
  ++taken_;
  if (values_ == nullptr) fail("a page has no values");
  try {
    return convert_value(leaf_, values_->next());
  } catch (const Malformed& m) {
    fail(m.reason);
  }
}

void ColumnCursor::drop() {
  const bool full = def() == leaf_.def;
  loaded_ = false;
  ++taken_;
  if (!full) return;
  if (values_ == nullptr) fail("a page has no values");
  try {
    values_->next();
  } catch (const Malformed& m) {
    fail(m.reason);
  }
}

void ColumnCursor::finish() {
  if (!done()) fail("there are more values than rows");
}

}  // namespace xylem::data::internal::parquet
