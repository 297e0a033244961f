#include "xylem/checkpoint/zarr/metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "xylem/base/bytes.h"
#include "xylem/base/dtype_cast.h"
#include "xylem/base/error.h"
#include "xylem/base/json.h"

namespace xylem::checkpoint::zarr {
namespace {

using Json = nlohmann::json;

constexpr int kMaxRank = 32;
constexpr std::uint64_t kMaxMetadata = std::uint64_t{16} << 20;

[[noreturn]] void refuse(std::string_view name, std::string_view expected, std::string_view given) {
  throw_user_error({fmt::format("read {}", name), expected, given,
                    "The array is damaged, or of a kind that cannot be read: write it anew"});
}

std::string brief(const Json& j) {
  return j.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 200);
}

Json parse(std::string_view text, std::string_view name) {
  if (text.size() > kMaxMetadata)
    refuse(name, "metadata of at most 16 MiB", fmt::format("{}", text.size()));
  Json j = Json::parse(text, nullptr, false);
  if (!j.is_object()) refuse(name, "a JSON object", fmt::format("\"{}\"", text.substr(0, 40)));
  return j;
}

const Json& member(const Json& j, const char* key, std::string_view name) {
  const auto it = j.find(key);
  if (it == j.end()) refuse(name, fmt::format("a member \"{}\"", key), brief(j));
  return *it;
}

Dims parse_dims(const Json& j, const char* what, bool positive, std::string_view name) {
  if (!j.is_array() || j.size() > kMaxRank)
    refuse(name, fmt::format("{}: a list of at most {} sizes", what, kMaxRank), brief(j));
  Dims out;
  for (const Json& n : j) {
    if (!n.is_number_integer() || n < (positive ? 1 : 0) ||
        n > std::numeric_limits<std::int64_t>::max())
      refuse(name,
             fmt::format("{}: sizes that are {}", what, positive ? "positive" : "not negative"),
             brief(j));
    out.push_back(n.get<std::int64_t>());
  }
  return out;
}

std::uint64_t product(const Dims& d, std::uint64_t bytes, std::string_view name) {
  std::uint64_t n = bytes;
  for (const std::int64_t v : d)
    if (__builtin_mul_overflow(n, static_cast<std::uint64_t>(v), &n) || n > (1ull << 62))
      refuse(name, "sizes whose product is in range", to_string(d));
  return n;
}

int get_int(const Json& j, const char* key, int otherwise, std::string_view name) {
  const auto it = j.find(key);
  if (it == j.end() || it->is_null()) return otherwise;
  if (!it->is_number_integer()) refuse(name, fmt::format("{}: an integer", key), brief(*it));
  return static_cast<int>(std::clamp<std::int64_t>(it->get<std::int64_t>(), -1000, 1000));
}

// TensorStore's types without a NumPy code, and zarr 3's names.
bool is_bare_type(DType t) {
  switch (t) {
    case DType::kBF16:
    case DType::kF8E4M3FN:
    case DType::kF8E4M3FNUZ:
    case DType::kF8E4M3B11FNUZ:
    case DType::kF8E5M2:
    case DType::kF8E5M2FNUZ:
    case DType::kF8E3M4:
    case DType::kF8E8M0FNU:
    case DType::kF4E2M1FN:
    case DType::kI4:
    case DType::kI2: return true;
    default: return false;
  }
}

std::optional<DType> bare_type(std::string_view name) {
  const auto t = parse_dtype(name);
  if (!t || dtype_info(*t).numpy_name != name) return std::nullopt;
  // Others have files with these, too.
  if (is_bare_type(*t) || *t == DType::kU4 || *t == DType::kU2 || *t == DType::kF8E4M3 ||
      *t == DType::kF6E2M3FN || *t == DType::kF6E3M2FN)
    return t;
  return std::nullopt;
}

std::optional<DType> number_type(char kind, int bytes) {
  switch (kind) {
    case 'b': return bytes == 1 ? std::optional(DType::kBool) : std::nullopt;
    case 'i':
      return bytes == 1   ? std::optional(DType::kI8)
             : bytes == 2 ? std::optional(DType::kI16)
             : bytes == 4 ? std::optional(DType::kI32)
             : bytes == 8 ? std::optional(DType::kI64)
                          : std::nullopt;
    case 'u':
      return bytes == 1   ? std::optional(DType::kU8)
             : bytes == 2 ? std::optional(DType::kU16)
             : bytes == 4 ? std::optional(DType::kU32)
             : bytes == 8 ? std::optional(DType::kU64)
                          : std::nullopt;
    case 'f':
      return bytes == 2   ? std::optional(DType::kF16)
             : bytes == 4 ? std::optional(DType::kF32)
             : bytes == 8 ? std::optional(DType::kF64)
                          : std::nullopt;
    case 'c':
      return bytes == 8    ? std::optional(DType::kC64)
             : bytes == 16 ? std::optional(DType::kC128)
                           : std::nullopt;
    default: return std::nullopt;
  }
}

void set_known_type(Metadata& m, DType t) {
  m.dtype = t;
  m.type_name = dtype_info(t).numpy_name;
  m.element_bytes = static_cast<std::uint64_t>(dtype_bytes(t));
}

// Bytes of one element of a NumPy type string, and what it is.
std::uint64_t parse_numpy_type(Metadata& m, const std::string& s, std::string_view name) {
  if (const auto t = bare_type(s)) {
    set_known_type(m, *t);
    return m.element_bytes;
  }
  std::uint64_t n = 0;
  const char* end = s.data() + s.size();
  if (s.size() < 3 || (s[0] != '<' && s[0] != '>' && s[0] != '|') ||
      std::from_chars(s.data() + 2, end, n).ptr != end || n > (1u << 30))
    refuse(name, "a dtype such as \"<f4\"", fmt::format("\"{}\"", s));
  m.codecs.big_endian = s[0] == '>';
  if (const auto t = number_type(s[1], static_cast<int>(n))) {
    set_known_type(m, *t);
  } else if (s[1] == 'S' || s[1] == 'V' || s[1] == 'U') {
    m.type_name = s;
    m.element_bytes = s[1] == 'U' ? n * 4 : n;
  } else {
    refuse(name, "a dtype that is known", fmt::format("\"{}\"", s));
  }
  return m.element_bytes;
}

void parse_v2_type(Metadata& m, const Json& j, std::string_view name) {
  if (j.is_string()) {
    parse_numpy_type(m, j.get<std::string>(), name);
    return;
  }
  // A list of [name, type, shape?] is a structured element.
  if (!j.is_array() || j.empty() || j.size() > 1000)
    refuse(name, "dtype: a string or a list of fields", brief(j));
  std::uint64_t total = 0;
  for (const Json& field : j) {
    if (!field.is_array() || field.size() < 2 || field.size() > 3 || !field[1].is_string())
      refuse(name, "fields of the form [name, dtype, shape]", brief(field));
    Metadata scratch;
    std::uint64_t bytes = parse_numpy_type(scratch, field[1].get<std::string>(), name);
    if (field.size() == 3) bytes = product(parse_dims(field[2], "shape", false, name), bytes, name);
    total += bytes;
    if (total > (1u << 30)) refuse(name, "elements of at most 1 GiB", brief(j));
  }
  m.dtype.reset();
  m.type_name = j.dump(-1, ' ', true);
  m.element_bytes = total;
}

// One element from JSON's fill value.
std::string parse_fill(DType t, const Json& j, std::string_view name) {
  std::string out(static_cast<std::size_t>(dtype_bytes(t)), '\0');
  if (is_complex(t)) {
    if (j.is_array() && j.size() == 2) {
      const DType part = real_dtype(t);
      return parse_fill(part, j[0], name) + parse_fill(part, j[1], name);
    }
    if (j.is_number()) {
      double_to_element(j.get<double>(), t, out.data());
      return out;
    }
    refuse(name, "fill_value: a pair of numbers", brief(j));
  }
  if (is_bool(t)) {
    if (j.is_boolean() ? j.get<bool>() : j.is_number() && j != 0) out[0] = 1;
    return out;
  }
  if (j.is_number_integer() && is_integer(t)) {
    const auto v = j.is_number_unsigned() ? j.get<std::uint64_t>()
                                          : static_cast<std::uint64_t>(j.get<std::int64_t>());
    std::memcpy(out.data(), &v, out.size());
    if (dtype_bits(t) < 8) out[0] = static_cast<char>(out[0] & ((1 << dtype_bits(t)) - 1));
    return out;
  }
  double v = 0;
  if (j.is_number() || j.is_boolean()) {
    v = j.is_boolean() ? (j.get<bool>() ? 1 : 0) : j.get<double>();
  } else if (j.is_string() && is_float(t)) {
    const std::string s = j.get<std::string>();
    if (s == "NaN") {
      v = std::numeric_limits<double>::quiet_NaN();
    } else if (s == "Infinity") {
      v = std::numeric_limits<double>::infinity();
    } else if (s == "-Infinity") {
      v = -std::numeric_limits<double>::infinity();
    } else {
      std::uint64_t bits = 0;
      const char* end = s.data() + s.size();
      if (!s.starts_with("0x") || s.size() > 18 ||
          std::from_chars(s.data() + 2, end, bits, 16).ptr != end)
        refuse(name, "fill_value: a number", brief(j));
      std::memcpy(out.data(), &bits, out.size());
      return out;
    }
  } else {
    refuse(name, "fill_value: a number", brief(j));
  }
  double_to_element(v, t, out.data());
  return out;
}

Codec parse_v2_compressor(const Json& j, std::string_view name) {
  if (!j.is_object() || !j.contains("id") || !j["id"].is_string())
    refuse(name, "compressor: null or an object with an id", brief(j));
  const std::string id = j["id"].get<std::string>();
  Codec c;
  c.level = get_int(j, "level", 1, name);
  c.checksum = false;
  if (id == "zstd")
    c.kind = CodecKind::kZstd;
  else if (id == "zlib")
    c.kind = CodecKind::kZlib;
  else if (id == "gzip")
    c.kind = CodecKind::kGzip;
  else if (id == "bz2")
    c.kind = CodecKind::kBz2;
  else if (id == "blosc")
    c.kind = CodecKind::kBlosc;
  else
    refuse(name, "a compressor among zstd, zlib, gzip, bz2 and blosc", fmt::format("\"{}\"", id));
  return c;
}

// ---- zarr 3

struct NamedObject {
  std::string name;
  Json configuration = Json::object();
};

NamedObject parse_named(const Json& j, std::string_view what, std::string_view name) {
  NamedObject out;
  if (j.is_string()) {
    out.name = j.get<std::string>();
    return out;
  }
  if (!j.is_object() || !j.contains("name") || !j["name"].is_string())
    refuse(name, fmt::format("{}: an object with a name", what), brief(j));
  out.name = j["name"].get<std::string>();
  if (j.contains("configuration")) {
    if (!j["configuration"].is_object())
      refuse(name, fmt::format("{}: a configuration that is an object", what), brief(j));
    out.configuration = j["configuration"];
  }
  return out;
}

bool parse_endian(const Json& configuration, std::string_view name) {
  const Json endian = configuration.value("endian", Json("little"));
  if (endian == "little") return false;
  if (endian == "big") return true;
  refuse(name, "endian: little or big", brief(endian));
}

ChunkCodecs parse_codecs(const Json& j, const Dims& chunk, std::uint64_t element_bytes, int depth,
                         std::string_view name);

std::shared_ptr<const Sharding> parse_sharding(const Json& c, const Dims& chunk,
                                               std::uint64_t element_bytes, int depth,
                                               std::string_view name) {
  auto s = std::make_shared<Sharding>();
  s->chunk = parse_dims(member(c, "chunk_shape", name), "chunk_shape", true, name);
  if (s->chunk.size() != chunk.size())
    refuse(name, fmt::format("inner chunks of rank {}", chunk.size()), to_string(s->chunk));
  for (int i = 0; i < chunk.ssize(); ++i)
    if (chunk[i] % s->chunk[i] != 0)
      refuse(name, fmt::format("inner chunks that divide {}", to_string(chunk)),
             to_string(s->chunk));
  s->inner = parse_codecs(member(c, "codecs", name), s->chunk, element_bytes, depth + 1, name);
  const Json location = c.value("index_location", Json("end"));
  if (location != "end" && location != "start")
    refuse(name, "index_location: start or end", brief(location));
  s->index_at_end = location == "end";
  const Json index =
      c.value("index_codecs", Json::array({Json{{"name", "bytes"}}, Json{{"name", "crc32c"}}}));
  if (!index.is_array()) refuse(name, "index_codecs: a list", brief(index));
  s->index_checksums = 0;
  bool bytes = false;
  for (const Json& j : index) {
    const NamedObject o = parse_named(j, "index_codecs", name);
    if (o.name == "bytes" && !bytes) {
      s->index_big_endian = parse_endian(o.configuration, name);
      bytes = true;
    } else if (o.name == "crc32c" && bytes) {
      ++s->index_checksums;
    } else {
      refuse(name, "index_codecs of fixed size: bytes, then crc32c", brief(index));
    }
  }
  if (!bytes || s->index_checksums > 4) refuse(name, "index_codecs: bytes, crc32c", brief(index));
  return s;
}

ChunkCodecs parse_codecs(const Json& j, const Dims& chunk, std::uint64_t element_bytes, int depth,
                         std::string_view name) {
  if (depth > 8) refuse(name, "shards nested at most 8 deep", "more");
  if (!j.is_array() || j.size() > 32) refuse(name, "codecs: a list", brief(j));
  ChunkCodecs out;
  bool to_bytes = false;
  Dims stored = chunk;
  for (const Json& c : j) {
    const NamedObject o = parse_named(c, "codecs", name);
    const Json& p = o.configuration;
    if (o.name == "transpose" && !to_bytes) {
      Dims order;
      const Json& spec = member(p, "order", name);
      if (spec == "C" || spec == "F") {
        for (int i = 0; i < chunk.ssize(); ++i)
          order.push_back(spec == "C" ? i : chunk.ssize() - 1 - i);
      } else {
        order = parse_dims(spec, "order", false, name);
      }
      std::vector<bool> seen(chunk.size());
      if (order.size() != chunk.size()) refuse(name, "order: a permutation of axes", brief(spec));
      for (const std::int64_t a : order) {
        if (a >= chunk.ssize() || seen[static_cast<std::size_t>(a)])
          refuse(name, "order: a permutation of axes", brief(spec));
        seen[static_cast<std::size_t>(a)] = true;
      }
      // Transposes follow one another.
      Dims total, next;
      for (const std::int64_t a : order) {
        total.push_back(out.order.empty() ? a : out.order[a]);
        next.push_back(stored[a]);
      }
      out.order = total;
      stored = next;
    } else if (o.name == "bytes" && !to_bytes) {
      out.big_endian = parse_endian(p, name);
      to_bytes = true;
    } else if (o.name == "sharding_indexed" && !to_bytes) {
      out.sharding = parse_sharding(p, stored, element_bytes, depth, name);
      to_bytes = true;
    } else if (to_bytes && o.name == "zstd") {
      out.bytes.push_back({CodecKind::kZstd, get_int(p, "level", 3, name),
                           p.value("checksum", Json(false)) == true});
    } else if (to_bytes && o.name == "gzip") {
      out.bytes.push_back({CodecKind::kGzip, get_int(p, "level", 6, name), false});
    } else if (to_bytes && o.name == "blosc") {
      out.bytes.push_back({CodecKind::kBlosc, get_int(p, "clevel", 5, name), false});
    } else if (to_bytes && o.name == "crc32c") {
      out.bytes.push_back({CodecKind::kCrc32c, 0, true});
    } else {
      refuse(name,
             "codecs among transpose, bytes, sharding_indexed, zstd, gzip, blosc, crc32c, in "
             "their order",
             brief(c));
    }
  }
  // TensorStore takes a missing one for little endian.
  if (!to_bytes && !out.bytes.empty()) refuse(name, "a codec from array to bytes", brief(j));
  return out;
}

void write_codecs(JsonWriter& w, const ChunkCodecs& c, const Metadata& m) {
  w.begin_array();
  const auto named = [&](const char* codec, auto&& configuration) {
    w.begin_object();
    w.key("configuration");
    w.begin_object();
    configuration();
    w.end_object();
    w.field("name", codec);
    w.end_object();
  };
  if (c.sharding) {
    const Sharding& s = *c.sharding;
    named("sharding_indexed", [&] {
      w.array("chunk_shape", s.chunk);
      w.key("codecs");
      write_codecs(w, s.inner, m);
      w.key("index_codecs");
      w.raw(R"([{"configuration":{"endian":"little"},"name":"bytes"},{"name":"crc32c"}])");
    });
  } else if (m.element_bytes > 1) {
    named("bytes", [&] { w.field("endian", "little"); });
  } else {
    w.raw(R"({"name":"bytes"})");
  }
  for (const Codec& b : c.bytes) {
    if (b.kind == CodecKind::kZstd)
      named("zstd", [&] {
        w.field("checksum", b.checksum);
        w.field("level", b.level == kStoredLevel ? 1 : b.level);
      });
    else if (b.kind == CodecKind::kGzip)
      named("gzip", [&] { w.field("level", b.level); });
    else if (b.kind == CodecKind::kCrc32c)
      w.raw(R"({"name":"crc32c"})");
  }
  w.end_array();
}

std::string numpy_code(DType t) {
  if (is_bare_type(t)) return dtype_info(t).numpy_name;
  const int bytes = dtype_bytes(t);
  const char kind = is_bool(t)           ? 'b'
                    : is_signed_int(t)   ? 'i'
                    : is_unsigned_int(t) ? 'u'
                    : is_complex(t)      ? 'c'
                                         : 'f';
  return fmt::format("{}{}{}", bytes == 1 ? '|' : '<', kind, bytes);
}

}  // namespace

std::string_view metadata_name(int format) { return format == 2 ? ".zarray" : "zarr.json"; }

std::string child_key(std::string_view array, std::string_view key) {
  return array.empty() ? std::string(key) : fmt::format("{}/{}", array, key);
}

std::uint64_t Metadata::chunk_bytes() const {
  std::uint64_t n = element_bytes;
  for (const std::int64_t d : chunk) n *= static_cast<std::uint64_t>(d);
  return n;
}

std::string Metadata::chunk_key(const Dims& index) const {
  std::string out;
  if (c_prefix) out = "c";
  for (const std::int64_t i : index) {
    if (!out.empty()) out += separator;
    out += fmt::format("{}", i);
  }
  if (out.empty()) out = "0";
  return out;
}

Dims Metadata::grid() const {
  Dims out;
  for (int i = 0; i < shape.ssize(); ++i)
    out.push_back(shape[i] == 0 ? 0 : (shape[i] - 1) / chunk[i] + 1);
  return out;
}

Metadata parse_v2(std::string_view text, std::string_view name) {
  const Json j = parse(text, name);
  if (member(j, "zarr_format", name) != 2) refuse(name, "zarr_format 2", brief(j["zarr_format"]));
  Metadata m;
  m.format = 2;
  m.shape = parse_dims(member(j, "shape", name), "shape", false, name);
  m.chunk = parse_dims(member(j, "chunks", name), "chunks", true, name);
  if (m.chunk.size() != m.shape.size())
    refuse(name, fmt::format("chunks of rank {}", m.shape.size()), to_string(m.chunk));
  parse_v2_type(m, member(j, "dtype", name), name);
  product(m.shape, m.element_bytes, name);
  product(m.chunk, m.element_bytes, name);
  const Json order = j.value("order", Json("C"));
  if (order != "C" && order != "F") refuse(name, "order: C or F", brief(order));
  if (order == "F")
    for (int i = m.shape.ssize() - 1; i >= 0; --i) m.codecs.order.push_back(i);
  const Json filters = j.value("filters", Json());
  if (!filters.is_null() && !(filters.is_array() && filters.empty()))
    refuse(name, "no filters", brief(filters));
  const Json compressor = j.value("compressor", Json());
  if (!compressor.is_null()) m.codecs.bytes.push_back(parse_v2_compressor(compressor, name));
  const Json separator = j.value("dimension_separator", Json("."));
  if (separator != "." && separator != "/")
    refuse(name, "dimension_separator: \".\" or \"/\"", brief(separator));
  m.separator = separator.get<std::string>();
  const Json fill = j.value("fill_value", Json());
  if (!fill.is_null() && m.dtype) m.fill = parse_fill(*m.dtype, fill, name);
  return m;
}

Metadata parse_v3(std::string_view text, std::string_view name) {
  const Json j = parse(text, name);
  if (member(j, "zarr_format", name) != 3) refuse(name, "zarr_format 3", brief(j["zarr_format"]));
  if (member(j, "node_type", name) != "array")
    refuse(name, "node_type \"array\"", brief(j["node_type"]));
  for (const auto& [key, value] : j.items()) {
    static constexpr std::string_view kKnown[] = {
        "zarr_format",       "node_type", "data_type",  "shape",           "chunk_grid",
        "fill_value",        "codecs",    "attributes", "dimension_names", "storage_transformers",
        "chunk_key_encoding"};
    if (std::find(std::begin(kKnown), std::end(kKnown), key) != std::end(kKnown)) continue;
    if (!value.is_object() || value.value("must_understand", Json(true)) != false)
      refuse(name, "members that are understood", fmt::format("\"{}\"", key));
  }
  if (j.contains("storage_transformers") && !j["storage_transformers"].empty())
    refuse(name, "no storage_transformers", brief(j["storage_transformers"]));
  Metadata m;
  m.format = 3;
  m.shape = parse_dims(member(j, "shape", name), "shape", false, name);
  const NamedObject grid = parse_named(member(j, "chunk_grid", name), "chunk_grid", name);
  if (grid.name != "regular") refuse(name, "chunk_grid \"regular\"", grid.name);
  m.chunk = parse_dims(member(grid.configuration, "chunk_shape", name), "chunk_shape", true, name);
  if (m.chunk.size() != m.shape.size())
    refuse(name, fmt::format("chunks of rank {}", m.shape.size()), to_string(m.chunk));

  const NamedObject type = parse_named(member(j, "data_type", name), "data_type", name);
  const auto t = parse_dtype(type.name);
  if (t && dtype_info(*t).numpy_name == type.name && *t != DType::kFloat0) {
    set_known_type(m, *t);
  } else if (std::uint64_t bits = 0;
             type.name.starts_with("r") && type.name.size() < 12 &&
             std::from_chars(type.name.data() + 1, type.name.data() + type.name.size(), bits).ptr ==
                 type.name.data() + type.name.size() &&
             bits % 8 == 0 && bits > 0) {
    m.type_name = type.name;
    m.element_bytes = bits / 8;
  } else {
    refuse(name, "a data_type that is known", fmt::format("\"{}\"", type.name));
  }
  product(m.shape, m.element_bytes, name);
  product(m.chunk, m.element_bytes, name);
  m.codecs = parse_codecs(member(j, "codecs", name), m.chunk, m.element_bytes, 0, name);

  m.c_prefix = true;
  m.separator = "/";
  if (j.contains("chunk_key_encoding")) {
    const NamedObject e = parse_named(j["chunk_key_encoding"], "chunk_key_encoding", name);
    m.c_prefix = e.name == "default";
    if (e.name != "default" && e.name != "v2")
      refuse(name, "chunk_key_encoding default or v2", e.name);
    const Json separator = e.configuration.value("separator", Json(m.c_prefix ? "/" : "."));
    if (separator != "." && separator != "/")
      refuse(name, "separator: \".\" or \"/\"", brief(separator));
    m.separator = separator.get<std::string>();
  }
  const Json& fill = member(j, "fill_value", name);
  if (m.dtype) m.fill = parse_fill(*m.dtype, fill, name);
  return m;
}

std::string format_v2(const Metadata& m) {
  JsonWriter w;
  w.begin_object();
  w.array("chunks", m.chunk);
  w.key("compressor");
  if (m.codecs.bytes.empty()) {
    w.null();
  } else {
    w.begin_object();
    w.field("id", m.codecs.bytes[0].kind == CodecKind::kZstd ? "zstd" : "gzip");
    w.field("level", m.codecs.bytes[0].level == kStoredLevel ? 1 : m.codecs.bytes[0].level);
    w.end_object();
  }
  w.field("dimension_separator", m.separator);
  w.field("dtype", numpy_code(*m.dtype));
  w.key("fill_value");
  w.null();
  w.key("filters");
  w.null();
  w.field("order", "C");
  w.array("shape", m.shape);
  w.field("zarr_format", 2);
  w.end_object();
  return w.take();
}

std::string format_v3(const Metadata& m) {
  JsonWriter w;
  w.begin_object();
  w.key("chunk_grid");
  w.begin_object();
  w.key("configuration");
  w.begin_object();
  w.array("chunk_shape", m.chunk);
  w.end_object();
  w.field("name", "regular");
  w.end_object();
  w.key("chunk_key_encoding");
  w.raw(R"({"name":"default"})");
  w.key("codecs");
  write_codecs(w, m.codecs, m);
  w.field("data_type", dtype_info(*m.dtype).numpy_name);
  w.key("fill_value");
  w.raw(is_bool(*m.dtype)      ? "false"
        : is_complex(*m.dtype) ? "[0.0,0.0]"
        : is_float(*m.dtype)   ? "0.0"
                               : "0");
  w.field("node_type", "array");
  w.array("shape", m.shape);
  w.field("zarr_format", 3);
  w.end_object();
  return w.take();
}

Metadata make_metadata(int format, DType dtype, const Dims& shape, const Dims& chunk,
                       std::optional<Codec> codec) {
  if (!is_bare_type(dtype) && !number_type(numpy_code(dtype)[1], dtype_bytes(dtype)))
    throw_user_error({"write a zarr array", "a type that TensorStore has",
                      dtype_info(dtype).numpy_name, "Convert it with astype"});
  if (dtype_bits(dtype) < 8 && !is_bare_type(dtype) && !is_bool(dtype))
    throw_user_error({"write a zarr array", "a type that TensorStore has",
                      dtype_info(dtype).numpy_name, "Convert it with astype"});
  if (!is_bare_type(dtype) && is_float(dtype) && dtype_bits(dtype) <= 8)
    throw_user_error({"write a zarr array", "a type that TensorStore has",
                      dtype_info(dtype).numpy_name, "Convert it with astype"});
  Metadata m;
  m.format = format;
  set_known_type(m, dtype);
  m.shape = shape;
  for (const std::int64_t d : chunk) m.chunk.push_back(std::max<std::int64_t>(d, 1));
  ChunkCodecs inner;
  if (codec) inner.bytes.push_back(*codec);
  if (format == 2) {
    m.codecs = std::move(inner);
    return m;
  }
  auto s = std::make_shared<Sharding>();
  s->chunk = m.chunk;
  s->inner = std::move(inner);
  m.codecs.sharding = std::move(s);
  m.c_prefix = true;
  m.separator = "/";
  return m;
}

}  // namespace xylem::checkpoint::zarr
