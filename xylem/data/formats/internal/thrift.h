#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "xylem/base/bytes.h"

namespace xylem::data::internal {

// Thrift's compact protocol (thrift-compact-protocol.md of apache/thrift), as far as Parquet needs
// it.
enum class ThriftType : std::uint8_t {
  kStop = 0,
  kTrue = 1,
  kFalse = 2,
  kByte = 3,
  kI16 = 4,
  kI32 = 5,
  kI64 = 6,
  kDouble = 7,
  kBinary = 8,
  kList = 9,
  kSet = 10,
  kMap = 11,
  kStruct = 12,
};

// Reads from front to back; UserError where the data end or are malformed.
class ThriftReader {
 public:
  explicit ThriftReader(std::string_view data, std::string_view name) : in_(data, name) {}

  // The next field of the current struct; false at its end. A boolean's value is its type.
  bool next_field(std::int16_t& id, ThriftType& type);
  void begin_struct();
  std::int64_t read_integer(ThriftType type);
  bool read_bool(ThriftType type) const;
  std::string_view read_binary(ThriftType type);
  // Size and element type of a list; at most as many elements as there are bytes.
  std::uint32_t read_list(ThriftType type, ThriftType& element);
  void skip(ThriftType type, int depth = 0);
  std::size_t position() const { return in_.position(); }
  [[noreturn]] void fail(std::string_view what) const;

 private:
  ByteReader in_;
  std::vector<std::int16_t> last_;  // ids of the structs that are open
};

class ThriftWriter {
 public:
  void begin_struct() { last_.push_back(0); }
  void end_struct();
  void field(std::int16_t id, ThriftType type);
  void put_bool(std::int16_t id, bool v) { field(id, v ? ThriftType::kTrue : ThriftType::kFalse); }
  void put_i32(std::int16_t id, std::int64_t v);
  void put_i64(std::int16_t id, std::int64_t v);
  void put_binary(std::int16_t id, std::string_view v);
  void begin_struct_field(std::int16_t id);
  void begin_list(std::int16_t id, ThriftType element, std::size_t size);
  // Elements of lists.
  void integer(std::int64_t v) { out_.write_signed_varint(v); }
  void binary(std::string_view v);
  std::string take() { return out_.take(); }

 private:
  ByteWriter out_;
  std::vector<std::int16_t> last_;
};

}  // namespace xylem::data::internal
