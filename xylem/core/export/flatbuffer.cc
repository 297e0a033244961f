#include "xylem/core/export/flatbuffer.h"

#include "xylem/base/error.h"

namespace xylem::flatbuffer {
namespace {

[[noreturn]] void damaged() {
  throw_user_error({"import_", "a serialization of jax.export",
                    "it is cut off or damaged: an offset points outside of it",
                    "Serialize the program again"});
}

}  // namespace

std::string_view Table::read(std::uint64_t at, std::uint64_t size) const {
  if (at > bytes_.size() || bytes_.size() - at < size) damaged();
  return bytes_.substr(static_cast<std::size_t>(at), static_cast<std::size_t>(size));
}

std::uint64_t Table::follow(std::uint64_t at) const {
  std::uint32_t offset;
  std::memcpy(&offset, read(at, 4).data(), 4);
  if (offset == 0) damaged();
  return at + offset;
}

Table::Table(std::string_view bytes) : Table(bytes, 0) {}

Table::Table(std::string_view bytes, std::uint64_t at) : bytes_(bytes) {
  at_ = follow(at);
  std::int32_t back;
  std::memcpy(&back, read(at_, 4).data(), 4);
  const std::int64_t offsets = static_cast<std::int64_t>(at_) - back;
  if (offsets < 0) damaged();
  offsets_ = static_cast<std::uint64_t>(offsets);
  std::memcpy(&offsets_size_, read(offsets_, 2).data(), 2);
  if (offsets_size_ < 4) damaged();
  read(offsets_, offsets_size_);
}

std::uint64_t Table::place(int field) const {
  const auto entry = static_cast<std::uint64_t>(4 + 2 * field);
  if (entry + 2 > offsets_size_) return 0;
  std::uint16_t offset;
  std::memcpy(&offset, read(offsets_ + entry, 2).data(), 2);
  return offset == 0 ? 0 : at_ + offset;
}

std::pair<std::uint64_t, std::size_t> Table::vector(int field, std::size_t element) const {
  const std::uint64_t at = place(field);
  if (at == 0) return {0, 0};
  const std::uint64_t begin = follow(at);
  std::uint32_t n;
  std::memcpy(&n, read(begin, 4).data(), 4);
  read(begin + 4, std::uint64_t{n} * element);
  return {begin + 4, n};
}

std::string_view Table::string(int field) const {
  auto [at, n] = vector(field, 1);
  return n ? read(at, n) : std::string_view();
}

std::optional<Table> Table::table(int field) const {
  const std::uint64_t at = place(field);
  if (at == 0) return std::nullopt;
  return Table(bytes_, at);
}

std::vector<Table> Table::tables(int field) const {
  auto [at, n] = vector(field, 4);
  std::vector<Table> out;
  for (std::size_t i = 0; i < n; ++i) out.push_back(Table(bytes_, at + 4 * i));
  return out;
}

std::vector<std::string_view> Table::strings(int field) const {
  auto [at, n] = vector(field, 4);
  std::vector<std::string_view> out;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t begin = follow(at + 4 * i);
    std::uint32_t size;
    std::memcpy(&size, read(begin, 4).data(), 4);
    out.push_back(read(begin + 4, size));
  }
  return out;
}

Value Value::data(std::string_view s) {
  Value r;
  r.kind = Kind::kBytes;
  r.bytes = s;
  return r;
}

Value Value::string(std::string_view s) {
  Value r = data(s);
  r.terminated = true;
  return r;
}

Value Value::list(std::vector<Value> items) {
  Value r;
  r.kind = Kind::kVector;
  r.items = std::move(items);
  return r;
}

Value Value::strings(const std::vector<std::string>& v) {
  std::vector<Value> items;
  for (const std::string& s : v) items.push_back(string(s));
  return list(std::move(items));
}

Value Value::table(std::vector<std::pair<int, Value>> fields) {
  Value r;
  for (auto& [field, value] : fields) {
    r.fields.push_back(field);
    r.items.push_back(std::move(value));
  }
  return r;
}

namespace {

// Writes forward: what is referred to comes behind what refers to it.
class Writer {
 public:
  std::string out;

  void align(std::size_t n) { out.resize((out.size() + n - 1) / n * n, '\0'); }
  template <class T>
  void put(T v) {
    out.append(reinterpret_cast<const char*>(&v), sizeof(T));
  }
  template <class T>
  void patch(std::size_t at, T v) {
    std::memcpy(out.data() + at, &v, sizeof(T));
  }

  // Returns where the value stands.
  std::size_t value(const Value& v) {
    switch (v.kind) {
      case Value::Kind::kTable: return table(v);
      case Value::Kind::kVector: return vector(v);
      default: break;
    }
    align(4);
    const std::size_t at = out.size();
    put(static_cast<std::uint32_t>(v.bytes.size() / v.element));
    out += v.bytes;
    if (v.terminated) out += '\0';
    return at;
  }

 private:
  std::size_t vector(const Value& v) {
    align(4);
    const std::size_t at = out.size();
    put(static_cast<std::uint32_t>(v.items.size()));
    out.resize(out.size() + 4 * v.items.size(), '\0');
    for (std::size_t i = 0; i < v.items.size(); ++i) refer(at + 4 + 4 * i, value(v.items[i]));
    return at;
  }

  std::size_t table(const Value& v) {
    int most = -1;
    for (int field : v.fields) most = std::max(most, field);
    std::vector<std::uint16_t> offsets(static_cast<std::size_t>(most + 1), 0);
    std::size_t size = 4;
    for (std::size_t i = 0; i < v.fields.size(); ++i) {
      const Value& f = v.items[i];
      const std::size_t n = f.kind == Value::Kind::kScalar ? f.element : 4;
      size = (size + n - 1) / n * n;
      offsets[static_cast<std::size_t>(v.fields[i])] = static_cast<std::uint16_t>(size);
      size += n;
    }
    align(4);
    const std::size_t list = out.size();
    put(static_cast<std::uint16_t>(4 + 2 * offsets.size()));
    put(static_cast<std::uint16_t>(size));
    for (std::uint16_t o : offsets) put(o);
    align(4);
    const std::size_t at = out.size();
    put(static_cast<std::int32_t>(at - list));
    out.resize(at + size, '\0');
    for (std::size_t i = 0; i < v.fields.size(); ++i) {
      const Value& f = v.items[i];
      const std::size_t place = at + offsets[static_cast<std::size_t>(v.fields[i])];
      if (f.kind == Value::Kind::kScalar)
        std::memcpy(out.data() + place, f.bytes.data(), f.bytes.size());
      else
        refer(place, value(f));
    }
    return at;
  }

  void refer(std::size_t from, std::size_t to) {
    patch(from, static_cast<std::uint32_t>(to - from));
  }
};

}  // namespace

std::string write(const Value& root) {
  Writer w;
  w.put(std::uint32_t{0});
  w.patch(0, static_cast<std::uint32_t>(w.value(root)));
  return std::move(w.out);
}

}  // namespace xylem::flatbuffer
