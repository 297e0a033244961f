#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "xylem/base/bytes.h"
#include "xylem/data/formats/internal/riegeli.h"

namespace xylem::data::internal {

// Walks over the fields of a protobuf message.
struct ProtoField {
  std::uint32_t number = 0;
  int type = 0;             // wire type: 0 varint, 1 fixed64, 2 bytes, 5 fixed32
  std::uint64_t value = 0;  // of types 0, 1, 5
  std::string_view bytes;   // of type 2
};

class ProtoReader {
 public:
  explicit ProtoReader(std::string_view message) : left_(message) {}
  // False at the end and at malformed data, which `failed` tells apart.
  bool next(ProtoField& f) {
    if (left_.empty() || failed_) return false;
    std::uint64_t tag = 0;
    if (!take_varint(left_, tag) || tag > UINT32_MAX || tag < 8) return fail();
    f.number = static_cast<std::uint32_t>(tag >> 3);
    f.type = static_cast<int>(tag & 7);
    f.bytes = {};
    switch (f.type) {
      case 0: return take_varint(left_, f.value) || fail();
      case 1:
      case 5: {
        const std::size_t n = f.type == 1 ? 8 : 4;
        if (left_.size() < n) return fail();
        f.value = 0;
        std::memcpy(&f.value, left_.data(), n);
        left_.remove_prefix(n);
        return true;
      }
      case 2: {
        std::uint64_t n = 0;
        if (!take_varint(left_, n) || n > left_.size()) return fail();
        f.bytes = left_.substr(0, n);
        left_.remove_prefix(n);
        return true;
      }
      default: return fail();  // groups are not used by the messages read here
    }
  }
  bool failed() const { return failed_; }

 private:
  bool fail() {
    failed_ = true;
    return false;
  }
  std::string_view left_;
  bool failed_ = false;
};

inline void put_proto_varint(ByteWriter& w, std::uint32_t number, std::uint64_t v) {
  w.write_varint(std::uint64_t{number} << 3);
  w.write_varint(v);
}
inline void put_proto_bytes(ByteWriter& w, std::uint32_t number, std::string_view bytes) {
  w.write_varint(std::uint64_t{number} << 3 | 2);
  w.write_varint(bytes.size());
  w.write_string(bytes);
}

}  // namespace xylem::data::internal
