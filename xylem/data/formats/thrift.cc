#include "xylem/data/formats/internal/thrift.h"

#include <fmt/format.h>

namespace xylem::data::internal {

void ThriftReader::fail(std::string_view what) const {
  in_.fail("metadata in Thrift's compact protocol", what);
}

void ThriftReader::begin_struct() {
  if (last_.size() > 64) fail("structs that nest too deep");
  last_.push_back(0);
}

bool ThriftReader::next_field(std::int16_t& id, ThriftType& type) {
  const auto head = in_.read<std::uint8_t>();
  if (head == 0) {
    last_.pop_back();
    return false;
  }
  if ((head & 15) > 12) fail("an unknown type");
  type = static_cast<ThriftType>(head & 15);
  const int delta = head >> 4;
  std::int64_t next = last_.back() + delta;
  if (delta == 0) next = in_.read_signed_varint();
  if (next < INT16_MIN || next > INT16_MAX) fail("a field's number out of range");
  id = last_.back() = static_cast<std::int16_t>(next);
  return true;
}

std::int64_t ThriftReader::read_integer(ThriftType type) {
  if (type == ThriftType::kByte) return in_.read<std::int8_t>();
  if (type != ThriftType::kI16 && type != ThriftType::kI32 && type != ThriftType::kI64)
    fail("no number where one is due");
  return in_.read_signed_varint();
}

bool ThriftReader::read_bool(ThriftType type) const {
  if (type != ThriftType::kTrue && type != ThriftType::kFalse)
    fail("no truth value where one is due");
  return type == ThriftType::kTrue;
}

std::string_view ThriftReader::read_binary(ThriftType type) {
  if (type != ThriftType::kBinary) fail("no text where it is due");
  return in_.read_string(in_.read_varint());
}

std::uint32_t ThriftReader::read_list(ThriftType type, ThriftType& element) {
  if (type != ThriftType::kList && type != ThriftType::kSet) fail("no list where one is due");
  const auto head = in_.read<std::uint8_t>();
  if ((head & 15) > 12) fail("an unknown type");
  element = static_cast<ThriftType>(head & 15);
  std::uint64_t size = head >> 4;
  if (size == 15) size = in_.read_varint();
  if (size > in_.remaining()) fail("a list that is longer than the data");
  return static_cast<std::uint32_t>(size);
}

void ThriftReader::skip(ThriftType type, int depth) {
  if (depth > 32) fail("values that nest too deep");
  switch (type) {
    case ThriftType::kStop:
    case ThriftType::kTrue:
    case ThriftType::kFalse: return;
    case ThriftType::kByte: in_.skip(1); return;
    case ThriftType::kI16:
    case ThriftType::kI32:
    case ThriftType::kI64: in_.read_varint(); return;
    case ThriftType::kDouble: in_.skip(8); return;
    case ThriftType::kBinary: in_.skip(in_.read_varint()); return;
    case ThriftType::kList:
    case ThriftType::kSet: {
      ThriftType element;
      const std::uint32_t n = read_list(type, element);
      for (std::uint32_t i = 0; i < n; ++i) {
        // In lists a truth value takes a byte.
        if (element == ThriftType::kTrue || element == ThriftType::kFalse)
          in_.skip(1);
        else
          skip(element, depth + 1);
      }
      return;
    }
    case ThriftType::kMap: {
      const std::uint64_t n = in_.read_varint();
      if (n == 0) return;
      if (n > in_.remaining()) fail("a map that is longer than the data");
      const auto types = in_.read<std::uint8_t>();
      if ((types & 15) > 12 || types >> 4 > 12) fail("an unknown type");
      for (std::uint64_t i = 0; i < n; ++i) {
        skip(static_cast<ThriftType>(types >> 4), depth + 1);
        skip(static_cast<ThriftType>(types & 15), depth + 1);
      }
      return;
    }
    case ThriftType::kStruct: {
      begin_struct();
      std::int16_t id;
      ThriftType field;
      while (next_field(id, field)) skip(field, depth + 1);
      return;
    }
  }
}

void ThriftWriter::end_struct() {
  out_.write<std::uint8_t>(0);
  last_.pop_back();
}

void ThriftWriter::field(std::int16_t id, ThriftType type) {
  const int delta = id - last_.back();
  if (delta > 0 && delta < 16) {
    out_.write(static_cast<std::uint8_t>(delta << 4 | static_cast<int>(type)));
  } else {
    out_.write(static_cast<std::uint8_t>(type));
    out_.write_signed_varint(id);
  }
  last_.back() = id;
}
void ThriftWriter::put_i32(std::int16_t id, std::int64_t v) {
  field(id, ThriftType::kI32);
  out_.write_signed_varint(v);
}
void ThriftWriter::put_i64(std::int16_t id, std::int64_t v) {
  field(id, ThriftType::kI64);
  out_.write_signed_varint(v);
}
void ThriftWriter::put_binary(std::int16_t id, std::string_view v) {
  field(id, ThriftType::kBinary);
  binary(v);
}
void ThriftWriter::binary(std::string_view v) {
  out_.write_varint(v.size());
  out_.write_string(v);
}
void ThriftWriter::begin_struct_field(std::int16_t id) {
  field(id, ThriftType::kStruct);
  begin_struct();
}
void ThriftWriter::begin_list(std::int16_t id, ThriftType element, std::size_t size) {
  field(id, ThriftType::kList);
  if (size < 15) {
    out_.write(static_cast<std::uint8_t>(size << 4 | static_cast<std::size_t>(element)));
  } else {
    out_.write(static_cast<std::uint8_t>(0xf0 | static_cast<int>(element)));
    out_.write_varint(size);
  }
}

}  // namespace xylem::data::internal
