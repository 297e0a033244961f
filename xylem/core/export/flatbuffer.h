#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// FlatBuffers' binary format without a schema compiler: tables of numbered fields that are scalars,
// strings, vectors and tables. Source: FlatBuffers, "Internals".
namespace xylem::flatbuffer {

// A table of a buffer; refers to the bytes. Reading checks every offset and throws UserError if the
// buffer is damaged. Fields are numbered from 0.
class Table {
 public:
  // The root table.
  explicit Table(std::string_view bytes);

  template <class T>
  T scalar(int field, T otherwise) const {
    std::uint64_t at = place(field);
    if (at == 0) return otherwise;
    T v;
    std::memcpy(&v, read(at, sizeof(T)).data(), sizeof(T));
    return v;
  }
  bool has(int field) const { return place(field) != 0; }
  std::string_view string(int field) const;  // empty if absent; a vector of bytes, too
  std::optional<Table> table(int field) const;
  std::vector<Table> tables(int field) const;
  std::vector<std::string_view> strings(int field) const;
  template <class T>
  std::vector<T> scalars(int field) const {
    auto [at, n] = vector(field, sizeof(T));
    std::vector<T> out(n);
    if (n) std::memcpy(out.data(), read(at, n * sizeof(T)).data(), n * sizeof(T));
    return out;
  }

 private:
  Table(std::string_view bytes, std::uint64_t at);
  // Where the field stands, 0 if the table lacks it.
  std::uint64_t place(int field) const;
  std::string_view read(std::uint64_t at, std::uint64_t size) const;
  std::uint64_t follow(std::uint64_t at) const;
  // First element and number of elements.
  std::pair<std::uint64_t, std::size_t> vector(int field, std::size_t element) const;

  std::string_view bytes_;
  std::uint64_t at_ = 0, offsets_ = 0;
  std::uint16_t offsets_size_ = 0;
};

// A value to be written: what a field holds.
struct Value {
  enum class Kind : std::uint8_t { kScalar, kBytes, kVector, kTable } kind = Kind::kTable;
  std::string bytes;         // of a scalar; of a vector of scalars
  std::size_t element = 1;   // bytes of one element
  bool terminated = false;   // strings end in a zero byte
  std::vector<Value> items;  // of vectors of strings and tables; the fields' values of a table
  std::vector<int> fields;   // of tables: the items' field numbers, ascending

  template <class T>
  static Value scalar(T v) {
    Value r;
    r.kind = Kind::kScalar;
    r.bytes.assign(reinterpret_cast<const char*>(&v), sizeof(T));
    r.element = sizeof(T);
    return r;
  }
  template <class T>
  static Value scalars(const std::vector<T>& v) {
    Value r;
    r.kind = Kind::kBytes;
    r.bytes.assign(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(T));
    r.element = sizeof(T);
    return r;
  }
  static Value string(std::string_view s);
  static Value data(std::string_view s);
  static Value list(std::vector<Value> items);
  static Value strings(const std::vector<std::string>& v);
  static Value table(std::vector<std::pair<int, Value>> fields);
};

std::string write(const Value& root);

}  // namespace xylem::flatbuffer
