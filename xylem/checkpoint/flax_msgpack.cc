#include "xylem/checkpoint/flax_msgpack.h"

#include <fmt/format.h>

#include <bit>
#include <complex>
#include <cstring>
#include <map>

#include "xylem/base/bytes.h"
#include "xylem/base/error.h"

namespace xylem::checkpoint {
namespace {

constexpr int kMaxDepth = 200;
constexpr std::string_view kChunked = "__msgpack_chunked_array__";

enum class Kind { kNil, kBool, kInt, kFloat, kText, kBytes, kList, kMap, kArray };

struct Value {
  Kind kind = Kind::kNil;
  bool is_unsigned = false;
  std::int64_t integer = 0;
  double number = 0;
  std::string_view text;
  std::vector<Value> list;                         // items, or values of the map
  std::vector<std::pair<std::string, bool>> keys;  // of the map; whether it was a number
  HostArray array;
  bool scalar = false;
};

class Reader {
 public:
  Reader(std::string_view bytes, std::string_view name) : r_(bytes, name) {}

  Value value(int depth = 0) {
    if (depth > kMaxDepth) r_.fail("values nested at most 200 deep", "deeper");
    const auto b = r_.read<std::uint8_t>();
    if (b < 0x80) return integer(b);
    if (b >= 0xe0) return integer(static_cast<std::int8_t>(b));
    if (b < 0x90) return map(b & 15, depth);
    if (b < 0xa0) return list(b & 15, depth);
    if (b < 0xc0) return text(Kind::kText, b & 31);
    switch (b) {
      case 0xc0: return {};
      case 0xc2:
      case 0xc3: {
        Value v;
        v.kind = Kind::kBool;
        v.integer = b & 1;
        return v;
      }
      case 0xc4: return text(Kind::kBytes, big<std::uint8_t>());
      case 0xc5: return text(Kind::kBytes, big<std::uint16_t>());
      case 0xc6: return text(Kind::kBytes, big<std::uint32_t>());
      case 0xc7: return extension(big<std::uint8_t>(), depth);
      case 0xc8: return extension(big<std::uint16_t>(), depth);
      case 0xc9: return extension(big<std::uint32_t>(), depth);
      case 0xca: return number(static_cast<double>(std::bit_cast<float>(big<std::uint32_t>())));
      case 0xcb: return number(std::bit_cast<double>(big<std::uint64_t>()));
      case 0xcc: return integer(big<std::uint8_t>());
      case 0xcd: return integer(big<std::uint16_t>());
      case 0xce: return integer(big<std::uint32_t>());
      case 0xcf: {
        Value v = integer(static_cast<std::int64_t>(big<std::uint64_t>()));
        v.is_unsigned = true;
        return v;
      }
      case 0xd0: return integer(static_cast<std::int8_t>(big<std::uint8_t>()));
      case 0xd1: return integer(static_cast<std::int16_t>(big<std::uint16_t>()));
      case 0xd2: return integer(static_cast<std::int32_t>(big<std::uint32_t>()));
      case 0xd3: return integer(static_cast<std::int64_t>(big<std::uint64_t>()));
      case 0xd4:
      case 0xd5:
      case 0xd6:
      case 0xd7:
      case 0xd8: return extension(1u << (b - 0xd4), depth);
      case 0xd9: return text(Kind::kText, big<std::uint8_t>());
      case 0xda: return text(Kind::kText, big<std::uint16_t>());
      case 0xdb: return text(Kind::kText, big<std::uint32_t>());
      case 0xdc: return list(big<std::uint16_t>(), depth);
      case 0xdd: return list(big<std::uint32_t>(), depth);
      case 0xde: return map(big<std::uint16_t>(), depth);
      case 0xdf: return map(big<std::uint32_t>(), depth);
      default: r_.fail("a msgpack value", fmt::format("byte {:#x}", b));
    }
  }
  void require_done() {
    if (!r_.done()) r_.fail("the end", fmt::format("{} more bytes", r_.remaining()));
  }

 private:
  template <class T>
  T big() {
    T v = r_.read<T>();
    if constexpr (sizeof(T) == 2) v = __builtin_bswap16(v);
    if constexpr (sizeof(T) == 4) v = __builtin_bswap32(v);
    if constexpr (sizeof(T) == 8) v = __builtin_bswap64(v);
    return v;
  }
  static Value integer(std::int64_t n) {
    Value v;
    v.kind = Kind::kInt;
    v.integer = n;
    return v;
  }
  static Value number(double n) {
    Value v;
    v.kind = Kind::kFloat;
    v.number = n;
    return v;
  }
  Value text(Kind kind, std::uint64_t n) {
    Value v;
    v.kind = kind;
    v.text = r_.read_string(n);
    return v;
  }
  Value list(std::uint64_t n, int depth) {
    if (n > r_.remaining()) r_.fail(fmt::format("{} values", n), "fewer bytes");
    Value v;
    v.kind = Kind::kList;
    for (std::uint64_t i = 0; i < n; ++i) v.list.push_back(value(depth + 1));
    return v;
  }
  Value map(std::uint64_t n, int depth) {
    if (n > r_.remaining() / 2) r_.fail(fmt::format("{} pairs", n), "fewer bytes");
    Value v;
    v.kind = Kind::kMap;
    for (std::uint64_t i = 0; i < n; ++i) {
      const Value key = value(depth + 1);
      if (key.kind == Kind::kText || key.kind == Kind::kBytes)
        v.keys.emplace_back(std::string(key.text), false);
      else if (key.kind == Kind::kInt)
        v.keys.emplace_back(fmt::format("{}", key.integer), true);
      else
        r_.fail("keys that are text or integers", "another kind");
      v.list.push_back(value(depth + 1));
    }
    return v;
  }

  Value extension(std::uint64_t size, int depth) {
    const auto type = r_.read<std::int8_t>();
    const std::string_view payload = r_.read_string(size);
    Reader inner(payload, r_.name());
    Value v = inner.value(depth + 1);
    inner.require_done();
    if (v.kind != Kind::kList) r_.fail("an extension that holds a list", "another kind");
    if (type == 4) return v;
    if (type == 2) {
      if (v.list.size() != 2) r_.fail("a real and an imaginary part", "another number");
      Value out;
      out.kind = Kind::kArray;
      out.scalar = true;
      const auto part = [](const Value& p) {
        return p.kind == Kind::kInt ? static_cast<double>(p.integer) : p.number;
      };
      out.array = HostArray::scalar(std::complex<double>(part(v.list[0]), part(v.list[1])));
      return out;
    }
    if (type != 1 && type != 3) r_.fail("extension type 1, 2, 3 or 4", fmt::format("{}", type));
    if (v.list.size() != 3 || v.list[0].kind != Kind::kList ||
        (v.list[1].kind != Kind::kText && v.list[1].kind != Kind::kBytes) ||
        v.list[2].kind != Kind::kBytes)
      r_.fail("an array as shape, dtype and bytes", "something else");
    const auto dtype = parse_dtype(v.list[1].text);
    if (!dtype || *dtype == DType::kFloat0)
      r_.fail("a dtype that is known", fmt::format("\"{}\"", v.list[1].text));
    Value out;
    out.kind = Kind::kArray;
    out.scalar = type == 3;
    Dims dims;
    std::uint64_t bytes = static_cast<std::uint64_t>(dtype_bytes(*dtype));
    for (const Value& d : v.list[0].list) {
      if (d.kind != Kind::kInt || d.integer < 0 ||
          __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(d.integer), &bytes) ||
          dims.size() >= 64)
        r_.fail("a shape", "sizes out of range");
      dims.push_back(d.integer);
    }
    if (bytes != v.list[2].text.size())
      r_.fail(fmt::format("an array of {} bytes", bytes),
              fmt::format("{} bytes", v.list[2].text.size()));
    out.array = HostArray::from_bytes(*dtype, dims, as_byte_span(v.list[2].text));
    return out;
  }

  ByteReader r_;
};

const Value* member(const Value& map, std::string_view key) {
  for (std::size_t i = 0; i < map.keys.size(); ++i)
    if (map.keys[i].first == key) return &map.list[i];
  return nullptr;
}

[[noreturn]] void bad_pieces(std::string_view name) {
  throw_user_error({fmt::format("read {}", name), "an array in pieces: shape and chunks",
                    "something else", "The file is damaged: restore it from a copy"});
}

// flax splits arrays over 2^30 bytes.
HostArray join_pieces(const Value& v, std::string_view name) {
  const Value* shape = member(v, "shape");
  const Value* chunks = member(v, "chunks");
  if (shape == nullptr || chunks == nullptr || chunks->list.empty()) bad_pieces(name);
  Dims dims;
  for (std::size_t i = 0; i < shape->list.size(); ++i) {
    const Value* d =
        shape->kind == Kind::kMap ? member(*shape, fmt::format("{}", i)) : &shape->list[i];
    if (d == nullptr || d->kind != Kind::kInt || d->integer < 0 || dims.size() >= 64)
      bad_pieces(name);
    dims.push_back(d->integer);
  }
  std::string bytes;
  std::optional<DType> dtype;
  for (std::size_t i = 0; i < chunks->list.size(); ++i) {
    const Value* c =
        chunks->kind == Kind::kMap ? member(*chunks, fmt::format("{}", i)) : &chunks->list[i];
    if (c == nullptr || c->kind != Kind::kArray || (dtype && *dtype != c->array.dtype()))
      bad_pieces(name);
    dtype = c->array.dtype();
    bytes.append(reinterpret_cast<const char*>(c->array.data()), c->array.nbytes());
  }
  std::uint64_t expected = static_cast<std::uint64_t>(dtype_bytes(*dtype));
  for (const std::int64_t d : dims)
    if (__builtin_mul_overflow(expected, static_cast<std::uint64_t>(d), &expected))
      bad_pieces(name);
  if (expected != bytes.size()) bad_pieces(name);
  return HostArray::from_bytes(*dtype, dims, as_byte_span(bytes));
}

void flatten(const Value& v, KeyPath& path, std::string_view name, LeafTree& out) {
  switch (v.kind) {
    case Kind::kNil: out.push_back(empty_leaf(path, LeafKind::kNone)); return;
    case Kind::kBool:
      out.push_back(array_leaf(path, HostArray::scalar(v.integer != 0), LeafKind::kScalar));
      return;
    case Kind::kInt:
      out.push_back(array_leaf(path,
                               v.is_unsigned && v.integer < 0
                                   ? HostArray::scalar(static_cast<std::uint64_t>(v.integer))
                                   : HostArray::scalar(v.integer),
                               LeafKind::kScalar));
      return;
    case Kind::kFloat:
      out.push_back(array_leaf(path, HostArray::scalar(v.number), LeafKind::kScalar));
      return;
    case Kind::kText:
    case Kind::kBytes: out.push_back(string_leaf(path, std::string(v.text))); return;
    case Kind::kArray:
      out.push_back(array_leaf(path, v.array, v.scalar ? LeafKind::kScalar : LeafKind::kNumpy));
      return;
    case Kind::kList:
      if (v.list.empty()) out.push_back(empty_leaf(path, LeafKind::kEmptyList));
      for (std::size_t i = 0; i < v.list.size(); ++i) {
        path.push_back({fmt::format("{}", i), true});
        flatten(v.list[i], path, name, out);
        path.pop_back();
      }
      return;
    case Kind::kMap:
      if (member(v, kChunked) != nullptr) {
        out.push_back(array_leaf(path, join_pieces(v, name)));
        return;
      }
      if (v.list.empty()) out.push_back(empty_leaf(path, LeafKind::kEmptyDict));
      for (std::size_t i = 0; i < v.list.size(); ++i) {
        path.push_back({v.keys[i].first, false});
        flatten(v.list[i], path, name, out);
        path.pop_back();
      }
      return;
  }
}

}  // namespace

bool looks_like_msgpack(std::string_view head) {
  if (head.empty()) return false;
  const auto b = static_cast<unsigned char>(head[0]);
  return (b >= 0x80 && b < 0x90) || b == 0xde || b == 0xdf || (b >= 0xc7 && b <= 0xc9) ||
         (b >= 0xd4 && b <= 0xd8);
}

LeafTree read_flax_msgpack(std::string_view bytes, std::string_view name) {
  Reader r(bytes, name);
  const Value v = r.value();
  r.require_done();
  LeafTree out;
  KeyPath path;
  flatten(v, path, name, out);
  return out;
}

}  // namespace xylem::checkpoint
