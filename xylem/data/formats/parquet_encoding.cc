#include "xylem/data/formats/internal/parquet_encoding.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "xylem/base/bytes.h"
#include "xylem/data/formats/internal/riegeli.h"

namespace xylem::data::internal::parquet {
namespace {

[[noreturn]] void malformed(std::string reason) { throw Malformed{std::move(reason)}; }

// `width` bits from bit `at` on, lowest first; the data hold them.
std::uint64_t unpack(std::string_view data, std::uint64_t at, int width) {
  std::uint64_t v = 0;
  int have = 0;
  for (std::uint64_t byte = at / 8; have < width; ++byte) {
    const auto b = static_cast<std::uint64_t>(static_cast<unsigned char>(data[byte]));
    const int skip = have == 0 ? static_cast<int>(at % 8) : 0;
    v |= (b >> skip) << have;
    have += 8 - skip;
  }
  // More than 64 bits are never asked for, but the last byte may bring some.
  return width == 64 ? v : v & ((std::uint64_t{1} << width) - 1);
}

std::uint64_t varint(std::string_view& in) {
  std::uint64_t v = 0;
  if (!take_varint(in, v)) malformed("a length is malformed");
  return v;
}
std::int64_t zigzag(std::uint64_t v) {
  return static_cast<std::int64_t>(v >> 1) ^ -static_cast<std::int64_t>(v & 1);
}

std::size_t fixed_size(Type t, std::int32_t type_length) {
  switch (t) {
    case Type::kInt32:
    case Type::kFloat: return 4;
    case Type::kInt64:
    case Type::kDouble: return 8;
    case Type::kInt96: return 12;
    case Type::kFixed: return static_cast<std::size_t>(type_length);
    default: return 0;
  }
}

bool is_number(Type t) {
  return t == Type::kInt32 || t == Type::kInt64 || t == Type::kFloat || t == Type::kDouble;
}

class PlainDecoder final : public ValueDecoder {
 public:
  PlainDecoder(Type type, std::int32_t type_length, std::string_view data)
      : type_(type), size_(fixed_size(type, type_length)), data_(data) {}
  Physical next() override {
    Physical p;
    if (type_ == Type::kBoolean) {
      if (bit_ / 8 >= data_.size()) malformed("the page has too few values");
      p.bits = unpack(data_, bit_++, 1);
      return p;
    }
    std::size_t n = size_;
    if (type_ == Type::kByteArray) {
      std::uint32_t length = 0;
      if (data_.size() < 4) malformed("the page has too few values");
      std::memcpy(&length, data_.data(), 4);
      data_.remove_prefix(4);
      n = length;
    }
    if (n > data_.size()) malformed("the page has too few values, or a length is too large");
    p.bytes = data_.substr(0, n);
    if (is_number(type_)) std::memcpy(&p.bits, data_.data(), n);
    data_.remove_prefix(n);
    return p;
  }

 private:
  Type type_;
  std::size_t size_;
  std::string_view data_;
  std::uint64_t bit_ = 0;
};

class DictionaryDecoder final : public ValueDecoder {
 public:
  DictionaryDecoder(std::string_view data, const Dictionary& d) : dictionary_(d) {
    if (data.empty()) return;
    const int width = static_cast<unsigned char>(data[0]);
    if (width > 32) malformed("the width of dictionary indices is larger than 32");
    indices_ = HybridDecoder(data.substr(1), width);
  }
  Physical next() override {
    const std::uint32_t i = indices_.next();
    if (i >= dictionary_.values.size())
      malformed(fmt::format("the index {} is outside of the dictionary of {}", i,
                            dictionary_.values.size()));
    return dictionary_.values[i];
  }

 private:
  const Dictionary& dictionary_;
  HybridDecoder indices_;
};

class BooleanRleDecoder final : public ValueDecoder {
 public:
  explicit BooleanRleDecoder(std::string_view data) {
    std::uint32_t n = 0;
    if (data.size() < 4) malformed("the run lengths are cut");
    std::memcpy(&n, data.data(), 4);
    if (n > data.size() - 4) malformed("the run lengths are cut");
    values_ = HybridDecoder(data.substr(4, n), 1);
  }
  Physical next() override { return {values_.next(), {}}; }

 private:
  HybridDecoder values_;
};

class DeltaNumbers final : public ValueDecoder {
 public:
  DeltaNumbers(std::string_view data, std::uint64_t most) : values_(data, most) {}
  Physical next() override { return {static_cast<std::uint64_t>(values_.next()), {}}; }

 private:
  DeltaDecoder values_;
};

std::string_view after_delta(std::string_view data, std::uint64_t most) {
  return DeltaDecoder(data, most).rest();
}

class DeltaLengths final : public ValueDecoder {
 public:
  DeltaLengths(std::string_view data, std::uint64_t most)
      : lengths_(data, most), bytes_(after_delta(data, most)) {}
  Physical next() override {
    const std::int64_t n = lengths_.next();
    if (n < 0 || static_cast<std::uint64_t>(n) > bytes_.size()) malformed("a length is too large");
    Physical p{0, bytes_.substr(0, static_cast<std::size_t>(n))};
    bytes_.remove_prefix(static_cast<std::size_t>(n));
    return p;
  }

 private:
  DeltaDecoder lengths_;
  std::string_view bytes_;
};

class DeltaStrings final : public ValueDecoder {
 public:
  DeltaStrings(std::string_view data, std::uint64_t most)
      : prefixes_(data, most), suffixes_(after_delta(data, most), most) {}
  Physical next() override {
    const std::int64_t prefix = prefixes_.next();
    const std::string_view suffix = suffixes_.next().bytes;
    if (prefix < 0 || static_cast<std::uint64_t>(prefix) > value_.size())
      malformed("a prefix is longer than the value before");
    value_.resize(static_cast<std::size_t>(prefix));
    value_ += suffix;
    return {0, value_};
  }

 private:
  DeltaDecoder prefixes_;
  DeltaLengths suffixes_;
  std::string value_;
};

class SplitDecoder final : public ValueDecoder {
 public:
  SplitDecoder(Type type, std::int32_t type_length, std::string_view data)
      : data_(data), size_(fixed_size(type, type_length)), number_(is_number(type)) {
    if (size_ == 0 || data_.size() % size_ != 0)
      malformed("the streams of bytes have different lengths");
    count_ = data_.size() / size_;
    value_.resize(size_);
  }
  Physical next() override {
    if (at_ == count_) malformed("the page has too few values");
    for (std::size_t k = 0; k < size_; ++k) value_[k] = data_[k * count_ + at_];
    ++at_;
    Physical p{0, value_};
    if (number_) std::memcpy(&p.bits, value_.data(), size_);
    return p;
  }

 private:
  std::string_view data_;
  std::size_t size_, count_ = 0, at_ = 0;
  bool number_;
  std::string value_;
};

}  // namespace

void HybridDecoder::next_run() {
  const std::uint64_t head = varint(data_);
  if ((head & 1) == 0) {
    run_ = head >> 1;
    const auto n = static_cast<std::size_t>((width_ + 7) / 8);
    if (data_.size() < n) malformed("a run is cut");
    value_ = 0;
    std::memcpy(&value_, data_.data(), n);
    if (width_ < 32 && value_ >> width_ != 0) malformed("a run's value is too large");
    data_.remove_prefix(n);
  } else {
    const std::uint64_t groups = head >> 1;
    const auto w = static_cast<std::uint64_t>(width_);
    if (w > 0 && groups > data_.size() / w + 1) malformed("bit-packed groups are cut");
    if (groups > UINT32_MAX) malformed("too many bit-packed groups");
    packed_ = groups * 8;
    bit_ = 0;
    // The last group may be cut where no values follow.
    if (groups * w > data_.size()) packed_ = w == 0 ? packed_ : data_.size() * 8 / w;
    if (packed_ == 0 && groups > 0) malformed("bit-packed groups are cut");
  }
}

std::uint32_t HybridDecoder::next() {
  if (width_ == 0 && data_.empty() && run_ == 0 && packed_ == 0) return 0;
  int empty = 0;
  while (run_ == 0 && packed_ == 0) {
    if (++empty > 1000) malformed("runs without values");
    next_run();
  }
  if (run_ > 0) {
    --run_;
    return value_;
  }
  const std::uint64_t v = width_ == 0 ? 0 : unpack(data_, bit_, width_);
  bit_ += static_cast<std::uint64_t>(width_);
  if (--packed_ == 0)
    data_.remove_prefix(
        std::min<std::size_t>(data_.size(), static_cast<std::size_t>((bit_ + 7) / 8)));
  return static_cast<std::uint32_t>(v);
}

DeltaDecoder::DeltaDecoder(std::string_view data, std::uint64_t most) : data_(data) {
  block_size_ = varint(data_);
  miniblocks_ = varint(data_);
  total_ = varint(data_);
  value_ = static_cast<std::uint64_t>(zigzag(varint(data_)));
  if (block_size_ == 0 || block_size_ % 128 != 0 || block_size_ > (1u << 24) || miniblocks_ == 0 ||
      block_size_ % miniblocks_ != 0 || (block_size_ / miniblocks_) % 32 != 0)
    malformed(fmt::format("blocks of {} values in {} miniblocks", block_size_, miniblocks_));
  if (total_ > most) malformed(fmt::format("{} values in a page of {}", total_, most));
  per_miniblock_ = block_size_ / miniblocks_;
  miniblock_ = miniblocks_;
}

void DeltaDecoder::next_miniblock() {
  if (miniblock_ == miniblocks_) {
    min_delta_ = static_cast<std::uint64_t>(zigzag(varint(data_)));
    if (data_.size() < miniblocks_) malformed("a block of differences is cut");
    widths_ = data_.substr(0, miniblocks_);
    data_.remove_prefix(miniblocks_);
    miniblock_ = 0;
  }
  width_ = static_cast<unsigned char>(widths_[miniblock_++]);
  if (width_ > 64) malformed("differences of more than 64 bits");
  const std::uint64_t bytes = per_miniblock_ * static_cast<std::uint64_t>(width_) / 8;
  const std::uint64_t needed = std::min(per_miniblock_, total_ - given_);
  if ((needed * static_cast<std::uint64_t>(width_) + 7) / 8 > data_.size())
    malformed("a block of differences is cut");
  packed_ = data_.substr(0, std::min<std::uint64_t>(bytes, data_.size()));
  data_.remove_prefix(packed_.size());
  left_ = per_miniblock_;
  bit_ = 0;
}

std::int64_t DeltaDecoder::next() {
  if (given_ == total_) malformed("the page has too few values");
  if (given_ > 0) {
    if (left_ == 0) next_miniblock();
    value_ += min_delta_ + (width_ == 0 ? 0 : unpack(packed_, bit_, width_));
    bit_ += static_cast<std::uint64_t>(width_);
    --left_;
  }
  ++given_;
  return static_cast<std::int64_t>(value_);
}

std::string_view DeltaDecoder::rest() {
  // Whole miniblocks are passed over.
  while (given_ < total_) {
    if (given_ == 0 || left_ == 0) {
      if (given_ == 0) {
        ++given_;
        continue;
      }
      next_miniblock();
    }
    const std::uint64_t step = std::min(left_, total_ - given_);
    given_ += step;
    left_ -= step;
  }
  return data_;
}

std::unique_ptr<ValueDecoder> make_decoder(Encoding encoding, Type type, std::int32_t type_length,
                                           std::string_view data, std::uint64_t most,
                                           const Dictionary* dictionary) {
  const bool bytes = type == Type::kByteArray || type == Type::kFixed;
  switch (encoding) {
    case Encoding::kPlain: return std::make_unique<PlainDecoder>(type, type_length, data);
    case Encoding::kPlainDictionary:
    case Encoding::kRleDictionary:
      if (dictionary == nullptr) malformed("the page needs a dictionary, and there is none");
      return std::make_unique<DictionaryDecoder>(data, *dictionary);
    case Encoding::kRle:
      if (type == Type::kBoolean) return std::make_unique<BooleanRleDecoder>(data);
      break;
    case Encoding::kDeltaBinaryPacked:
      if (type == Type::kInt32 || type == Type::kInt64)
        return std::make_unique<DeltaNumbers>(data, most);
      break;
    case Encoding::kDeltaLengthByteArray:
      if (type == Type::kByteArray) return std::make_unique<DeltaLengths>(data, most);
      break;
    case Encoding::kDeltaByteArray:
      if (bytes) return std::make_unique<DeltaStrings>(data, most);
      break;
    case Encoding::kByteStreamSplit:
      if (is_number(type) || type == Type::kFixed)
        return std::make_unique<SplitDecoder>(type, type_length, data);
      break;
    default: break;
  }
  malformed(fmt::format("the encoding {} is not one of {} columns", static_cast<int>(encoding),
                        type_name(type)));
}

void fill_dictionary(Dictionary& d, Type type, std::int32_t type_length, std::uint64_t count) {
  if (type == Type::kBoolean) malformed("a dictionary of truth values");
  PlainDecoder plain(type, type_length, d.page);
  // Each value takes four bytes of the page at least, or one, so memory is bounded by its size.
  for (std::uint64_t i = 0; i < count; ++i) d.values.push_back(plain.next());
}

int bit_width(std::uint64_t max) { return std::bit_width(max); }

// ---- encoding

namespace {

class BitWriter {
 public:
  void write(std::uint64_t v, int width) {
    for (int done = 0; done < width;) {
      if (used_ == 0) out_ += '\0';
      const int n = std::min(8 - used_, width - done);
      out_.back() = static_cast<char>(static_cast<unsigned char>(out_.back()) |
                                      (v >> done & ((1u << n) - 1)) << used_);
      used_ = (used_ + n) % 8;
      done += n;
    }
  }
  std::string take() {
    used_ = 0;
    return std::move(out_);
  }

 private:
  std::string out_;
  int used_ = 0;
};

}  // namespace

std::string encode_hybrid(const std::vector<std::uint32_t>& values, int width) {
  ByteWriter out;
  std::size_t packed_begin = 0, i = 0;
  const auto flush_packed = [&](std::size_t end) {
    if (packed_begin == end) return;
    const std::size_t groups = (end - packed_begin + 7) / 8;
    out.write_varint(groups << 1 | 1);
    BitWriter bits;
    for (std::size_t k = 0; k < groups * 8; ++k)
      bits.write(packed_begin + k < end ? values[packed_begin + k] : 0, width);
    out.write_string(bits.take());
  };
  while (i < values.size()) {
    std::size_t run = 1;
    while (i + run < values.size() && values[i + run] == values[i]) ++run;
    // Only whole groups may stand before a run.
    const std::size_t fill = (8 - (i - packed_begin) % 8) % 8;
    if (run >= fill + 16) {
      i += fill;
      run -= fill;
      flush_packed(i);
      out.write_varint(run << 1);
      out.write_string(std::string_view(reinterpret_cast<const char*>(&values[i]),
                                        static_cast<std::size_t>((width + 7) / 8)));
      i += run;
      packed_begin = i;
    } else {
      i += run;
    }
  }
  flush_packed(values.size());
  return out.take();
}

std::string encode_delta(const std::vector<std::int64_t>& values) {
  constexpr std::size_t kBlock = 128, kMini = 32;
  ByteWriter out;
  out.write_varint(kBlock);
  out.write_varint(kBlock / kMini);
  out.write_varint(values.size());
  out.write_signed_varint(values.empty() ? 0 : values[0]);
  for (std::size_t begin = 1; begin < values.size(); begin += kBlock) {
    const std::size_t n = std::min(kBlock, values.size() - begin);
    std::vector<std::int64_t> deltas;
    for (std::size_t k = 0; k < n; ++k)
      deltas.push_back(
          static_cast<std::int64_t>(static_cast<std::uint64_t>(values[begin + k]) -
                                    static_cast<std::uint64_t>(values[begin + k - 1])));
    const std::int64_t least = *std::min_element(deltas.begin(), deltas.end());
    out.write_signed_varint(least);
    std::string widths, packed;
    for (std::size_t m = 0; m < kBlock; m += kMini) {
      std::uint64_t most = 0;
      const auto over = [&](std::size_t k) {
        return k < n ? static_cast<std::uint64_t>(deltas[k]) - static_cast<std::uint64_t>(least)
                     : std::uint64_t{0};
      };
      for (std::size_t k = m; k < m + kMini; ++k) most = std::max(most, over(k));
      const int width = bit_width(most);
      widths += static_cast<char>(width);
      if (m >= n) continue;
      BitWriter bits;
      for (std::size_t k = m; k < m + kMini; ++k) bits.write(over(k), width);
      packed += bits.take();
    }
    out.write_string(widths);
    out.write_string(packed);
  }
  return out.take();
}

}  // namespace xylem::data::internal::parquet
