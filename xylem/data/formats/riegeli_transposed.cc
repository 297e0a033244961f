#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "xylem/data/formats/internal/riegeli.h"

// Transposed chunks: columns of protobuf fields in buffers, and a state machine that replays the
// records, from the last byte to the first.

namespace xylem::data::internal {
namespace {

// Output that grows to the front.
class BackwardBuffer {
 public:
  explicit BackwardBuffer(std::uint64_t limit) : limit_(limit) {}
  std::uint64_t size() const { return buffer_.size() - begin_; }
  // False if the limit would be passed.
  bool prepend(std::string_view s) {
    if (s.size() > limit_ - size()) return false;
    if (s.size() > begin_) grow(s.size());
    begin_ -= s.size();
    if (!s.empty()) std::memcpy(buffer_.data() + begin_, s.data(), s.size());
    return true;
  }
  std::string take() {
    buffer_.erase(0, begin_);
    return std::move(buffer_);
  }

 private:
  void grow(std::size_t more) {
    const std::uint64_t have = size();
    const auto capacity = static_cast<std::size_t>(
        std::min<std::uint64_t>(limit_, std::max<std::uint64_t>({have * 2, have + more, 4096})));
    std::string wider(capacity, '\0');
    std::memcpy(wider.data() + capacity - have, buffer_.data() + begin_, have);
    buffer_ = std::move(wider);
    begin_ = capacity - have;
  }
  std::uint64_t limit_;
  std::string buffer_;
  std::size_t begin_ = 0;
};

enum class Act : std::uint8_t {
  kNothing,
  kNonMessage,
  kSubmessageStart,
  kMessageStart,
  kVarint,
  kInline,
  kFixed,
  kString,
  kTag,
  kSubmessageEnd
};

struct State {
  Act act = Act::kNothing;
  std::uint8_t size = 0;  // kVarint, kFixed: bytes; kInline: the byte
  std::uint8_t tag_size = 0;
  char tag[5] = {};
  std::uint32_t next = 0;
  bool implicit = false;
  std::string_view* buffer = nullptr;
};

int encode_varint32(std::uint32_t v, char* out) {
  int n = 0;
  for (; v >= 0x80; v >>= 7) out[n++] = static_cast<char>(v | 0x80);
  out[n++] = static_cast<char>(v);
  return n;
}

std::string_view take(std::string_view& in, std::size_t n) {
  const std::string_view s = in.substr(0, n);
  in.remove_prefix(n);
  return s;
}

class Decoder {
 public:
  Decoder(std::uint64_t num_records, std::uint64_t decoded_size, std::uint64_t max_bytes,
          std::string& why)
      : num_records_(num_records),
        decoded_size_(decoded_size),
        max_bytes_(max_bytes),
        why_(why),
        out_(decoded_size) {}

  bool parse(std::string_view payload) {
    if (payload.empty()) return fail("the payload is empty");
    const char compression = take(payload, 1)[0];
    std::uint64_t header_length = 0;
    if (!take_varint(payload, header_length) || header_length > payload.size())
      return fail("the length of the header is malformed");
    if (!decode_sized_block(compression, take(payload, header_length), max_bytes_, header_, why_))
      return false;
    std::string_view h = header_;
    std::uint64_t num_buckets = 0, num_buffers = 0, num_states = 0;
    // Every bucket, buffer and state takes a byte of the header at least.
    if (!take_varint(h, num_buckets) || num_buckets > h.size() || !take_varint(h, num_buffers) ||
        num_buffers > h.size())
      return fail("the number of buckets or buffers is malformed");
    std::uint64_t budget = max_bytes_;
    for (std::uint64_t i = 0; i < num_buckets; ++i) {
      std::uint64_t length = 0;
      if (!take_varint(h, length) || length > payload.size())
        return fail(fmt::format("the length of bucket {} is malformed", i));
      if (!decode_sized_block(compression, take(payload, length), budget, buckets_.emplace_back(),
                              why_))
        return false;
      if (buckets_.back().size() > budget) return fail("the buckets are too large");
      budget -= buckets_.back().size();
    }
    if (!parse_buffers(h, num_buffers)) return false;
    if (!take_varint(h, num_states) || num_states > h.size())
      return fail("the number of states is malformed");
    if (!parse_states(h, num_states)) return false;
    return decode_sized_block(compression, payload, max_bytes_, transitions_, why_);
  }

  bool run() {
    if (states_.empty()) {
      if (!transitions_.empty()) return fail("transitions without states");
      return finish();
    }
    std::string_view moves = transitions_;
    std::uint32_t node = first_;
    unsigned pending = states_[node].implicit ? 1 : 0;
    // Moves since the last that took something from the transitions: more than there are states is
    // a loop. The total is bounded as well, so that long chains of implicit moves cannot stall.
    std::uint64_t free_moves = 0, total = 0;
    const std::uint64_t most =
        64 * (transitions_.size() + decoded_size_ + num_records_ + states_.size() + 16);
    while (true) {
      if (!act(states_[node], node)) return false;
      node = states_[node].next;
      if (++free_moves > states_.size() + 1 || ++total > most)
        return fail("the state machine does not end");
      if (pending == 0) {
        if (moves.empty()) break;
        const auto x = static_cast<unsigned char>(take(moves, 1)[0]);
        node += x >> 2;
        if (node >= states_.size()) return fail("a transition leaves the states");
        pending = x & 3;
        if (states_[node].implicit) ++pending;
        free_moves = 0;
      } else if (!states_[node].implicit) {
        --pending;
        free_moves = 0;
      }
    }
    return finish();
  }

  bool result(ChunkRecords& records) {
    records.ends.reserve(limits_.size());
    const std::uint64_t total = out_.size();
    // Limit k was noted when all bytes behind the record's begin were written.
    for (std::size_t k = limits_.size(); k-- > 0;)
      records.ends.push_back(k == 0 ? total : total - limits_[k - 1]);
    if (!limits_.empty() && limits_.back() != total) return fail("bytes before the first record");
    if (limits_.empty() && total != 0) {
      if (num_records_ != 0) return fail("bytes without records");
    }
    records.values = out_.take();
    return true;
  }

 private:
  bool fail(std::string_view reason) {
    why_ = reason;
    return false;
  }

  bool parse_buffers(std::string_view& h, std::uint64_t num_buffers) {
    std::size_t bucket = 0, used = 0;
    buffers_.reserve(num_buffers);
    for (std::uint64_t i = 0; i < num_buffers; ++i) {
      std::uint64_t length = 0;
      if (!take_varint(h, length))
        return fail(fmt::format("the length of buffer {} is malformed", i));
      if (length == 0) {
        buffers_.emplace_back();
        continue;
      }
      while (bucket < buckets_.size() && used == buckets_[bucket].size()) {
        ++bucket;
        used = 0;
      }
      if (bucket == buckets_.size() || length > buckets_[bucket].size() - used)
        return fail(fmt::format("buffer {} of {} bytes does not fit its bucket", i, length));
      buffers_.push_back(std::string_view(buckets_[bucket]).substr(used, length));
      used += length;
    }
    while (bucket < buckets_.size() && used == buckets_[bucket].size()) {
      ++bucket;
      used = 0;
    }
    if (bucket != buckets_.size()) return fail("bucket bytes belong to no buffer");
    return true;
  }

  bool parse_states(std::string_view& h, std::uint64_t n) {
    std::vector<std::uint32_t> tags(n);
    states_.resize(n);
    for (std::uint32_t& tag : tags) {
      std::uint64_t v = 0;
      if (!take_varint(h, v) || v > UINT32_MAX) return fail("a tag is malformed");
      tag = static_cast<std::uint32_t>(v);
    }
    for (State& s : states_) {
      std::uint64_t v = 0;
      if (!take_varint(h, v) || v >= 2 * n) return fail("a next state is malformed");
      s.implicit = v >= n;
      s.next = static_cast<std::uint32_t>(s.implicit ? v - n : v);
    }
    for (std::uint64_t i = 0; i < n; ++i) {
      State& s = states_[i];
      std::uint32_t tag = tags[i];
      switch (tag) {
        case 0: s.act = Act::kNothing; continue;
        case 1: s.act = Act::kNonMessage; continue;
        case 2: s.act = Act::kSubmessageStart; continue;
        case 3: s.act = Act::kMessageStart; continue;
        default: break;
      }
      if (tag < 8) return fail(fmt::format("the tag {} is unknown", tag));
      switch (tag & 7) {
        case 0: {
          if (h.empty()) return fail("subtypes are missing");
          const auto subtype = static_cast<unsigned char>(take(h, 1)[0]);
          if (subtype >= 10) {
            if (subtype - 10 >= 0x80) return fail("an inline number is malformed");
            s.act = Act::kInline;
            s.size = static_cast<std::uint8_t>(subtype - 10);
          } else {
            s.act = Act::kVarint;
            s.size = static_cast<std::uint8_t>(subtype + 1);
          }
          break;
        }
        case 1: s.act = Act::kFixed, s.size = 8; break;
        case 5: s.act = Act::kFixed, s.size = 4; break;
        case 2: s.act = Act::kString; break;
        case 3:
        case 4: s.act = Act::kTag; break;
        case 6:
          s.act = Act::kSubmessageEnd;
          tag -= 4;
          break;
        default: return fail(fmt::format("the tag {} is unknown", tag));
      }
      s.tag_size = static_cast<std::uint8_t>(encode_varint32(tag, s.tag));
    }
    bool non_message = false;
    for (State& s : states_) {
      if (s.act != Act::kNonMessage && s.act != Act::kVarint && s.act != Act::kFixed &&
          s.act != Act::kString)
        continue;
      std::uint64_t b = 0;
      if (!take_varint(h, b) || b >= buffers_.size()) return fail("a buffer's number is malformed");
      s.buffer = &buffers_[b];
      non_message = non_message || s.act == Act::kNonMessage;
    }
    if (non_message) lengths_ = &buffers_.back();
    if (n > 0) {
      std::uint64_t first = 0;
      if (!take_varint(h, first) || first >= n) return fail("the first state is malformed");
      first_ = static_cast<std::uint32_t>(first);
    }
    if (!h.empty()) return fail("bytes follow the header");
    return true;
  }

  bool put(std::string_view s) {
    return out_.prepend(s) || fail("the records are larger than announced");
  }
  bool put_tag(const State& s) { return put(std::string_view(s.tag, s.tag_size)); }
  bool note_limit() {
    if (limits_.size() == num_records_) return fail("there are more records than announced");
    limits_.push_back(out_.size());
    return true;
  }

  bool act(const State& s, std::uint32_t node) {
    char scratch[12];
    switch (s.act) {
      case Act::kNothing: return true;
      case Act::kNonMessage: {
        std::uint64_t n = 0;
        if (!take_varint(*lengths_, n) || n > s.buffer->size())
          return fail("the length of a record that is no message is malformed");
        return put(take(*s.buffer, n)) && note_limit();
      }
      case Act::kSubmessageStart: {
        if (stack_.empty()) return fail("a submessage starts that does not end");
        const auto [before, at] = stack_.back();
        stack_.pop_back();
        const std::uint64_t size = out_.size() - before;
        if (size > UINT32_MAX) return fail("a submessage is too large");
        const int n = encode_varint32(static_cast<std::uint32_t>(size), scratch);
        return put(std::string_view(scratch, static_cast<std::size_t>(n))) && put_tag(states_[at]);
      }
      case Act::kMessageStart: return note_limit();
      case Act::kVarint: {
        if (s.buffer->size() < s.size) return fail("a buffer of numbers is used up");
        std::memcpy(scratch, take(*s.buffer, s.size).data(), s.size);
        for (int i = 0; i + 1 < s.size; ++i) scratch[i] = static_cast<char>(scratch[i] | 0x80);
        return put(std::string_view(scratch, s.size)) && put_tag(s);
      }
      case Act::kInline: {
        const char c = static_cast<char>(s.size);
        return put(std::string_view(&c, 1)) && put_tag(s);
      }
      case Act::kFixed:
        if (s.buffer->size() < s.size) return fail("a buffer of numbers is used up");
        return put(take(*s.buffer, s.size)) && put_tag(s);
      case Act::kString: {
        std::string_view rest = *s.buffer;
        std::uint64_t n = 0;
        if (!take_varint(rest, n) || n > rest.size()) return fail("a string's length is malformed");
        const std::size_t prefix = s.buffer->size() - rest.size();
        const std::string_view whole = take(*s.buffer, prefix + n);
        return put(whole) && put_tag(s);
      }
      case Act::kTag: return put_tag(s);
      case Act::kSubmessageEnd:
        if (stack_.size() > std::min<std::uint64_t>(decoded_size_ / 2 + 1, 100000))
          return fail("submessages nest too deep");
        stack_.emplace_back(out_.size(), node);
        return true;
    }
    return true;
  }

  bool finish() {
    if (!stack_.empty()) return fail("a submessage does not start");
    for (const std::string_view b : buffers_)
      if (!b.empty()) return fail("a buffer was not used up");
    if (out_.size() != decoded_size_)
      return fail(
          fmt::format("the records have {} bytes, the header says {}", out_.size(), decoded_size_));
    if (limits_.size() != num_records_)
      return fail(
          fmt::format("there are {} records, the header says {}", limits_.size(), num_records_));
    return true;
  }

  std::uint64_t num_records_, decoded_size_, max_bytes_;
  std::string& why_;
  BackwardBuffer out_;
  std::string header_, transitions_;
  std::vector<std::string> buckets_;
  std::vector<std::string_view> buffers_;
  std::string_view* lengths_ = nullptr;
  std::vector<State> states_;
  std::uint32_t first_ = 0;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> stack_;
  std::vector<std::uint64_t> limits_;
};

}  // namespace

bool decode_transposed(std::string_view payload, std::uint64_t num_records,
                       std::uint64_t decoded_size, std::uint64_t max_bytes, ChunkRecords& out,
                       std::string& why) {
  if (decoded_size > max_bytes) {
    why = fmt::format("{} decoded bytes are more than the limit of {}", decoded_size, max_bytes);
    return false;
  }
  Decoder decoder(num_records, decoded_size, max_bytes, why);
  return decoder.parse(payload) && decoder.run() && decoder.result(out);
}

}  // namespace xylem::data::internal
