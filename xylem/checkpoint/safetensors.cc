#include "xylem/checkpoint/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "xylem/base/bytes.h"
#include "xylem/base/error.h"
#include "xylem/checkpoint/internal/json_scan.h"

namespace xylem::checkpoint {
namespace {

constexpr std::uint64_t kMaxHeader = 100'000'000;

struct NamedType {
  std::string_view name;
  DType dtype;
};
// In the library's order, by which files are sorted.
constexpr NamedType kTypes[] = {
    {"BOOL", DType::kBool},
    {"F4", DType::kF4E2M1FN},
    {"F6_E2M3", DType::kF6E2M3FN},
    {"F6_E3M2", DType::kF6E3M2FN},
    {"U8", DType::kU8},
    {"I8", DType::kI8},
    {"F8_E5M2", DType::kF8E5M2},
    {"F8_E4M3", DType::kF8E4M3FN},
    {"F8_E8M0", DType::kF8E8M0FNU},
    {"F8_E4M3FNUZ", DType::kF8E4M3FNUZ},
    {"F8_E5M2FNUZ", DType::kF8E5M2FNUZ},
    {"I16", DType::kI16},
    {"U16", DType::kU16},
    {"F16", DType::kF16},
    {"BF16", DType::kBF16},
    {"I32", DType::kI32},
    {"U32", DType::kU32},
    {"F32", DType::kF32},
    {"C64", DType::kC64},
    {"F64", DType::kF64},
    {"I64", DType::kI64},
    {"U64", DType::kU64},
};

int type_rank(DType t) {
  for (std::size_t i = 0; i < std::size(kTypes); ++i)
    if (kTypes[i].dtype == t) return static_cast<int>(i);
  return -1;
}

// Bits of one element in the file.
std::uint64_t file_bits(DType t) {
  return is_bool(t) ? 8 : static_cast<std::uint64_t>(dtype_bits(t));
}

[[noreturn]] void refuse(std::string_view name, std::string_view expected, std::string_view given) {
  throw_user_error(
      {fmt::format("read {}", name), expected, given,
       "The file is damaged or not a safetensors file: get it again, or name another"});
}

// As serde_json writes strings: other than control characters, quotes and backslashes nothing is
// escaped.
std::string quote(std::string_view s) {
  std::string out = "\"";
  for (const char c : s) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20)
          out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
        else
          out += c;
    }
  }
  return out + "\"";
}

// The header as JSON, with every object free of repeated keys.
nlohmann::json parse_strict(std::string_view text, std::string_view name) {
  internal::JsonScan scan(200);
  const bool good = scan.run(text);
  const std::string& repeated = scan.repeated();
  nlohmann::json json =
      good ? nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false) : nlohmann::json();
  if (json.is_discarded() || !json.is_object())
    refuse(name, "a header that is one JSON object in UTF-8",
           fmt::format("{} bytes that are not", text.size()));
  if (!repeated.empty())
    refuse(name, "every name once", fmt::format("the header has \"{}\" twice", repeated));
  return json;
}

TensorInfo parse_tensor(const std::string& tensor, const nlohmann::json& value,
                        std::string_view name) {
  const auto bad = [&](std::string_view expected) {
    refuse(name, fmt::format("tensor \"{}\" with {}", tensor, expected),
           value.dump(-1, ' ', true).substr(0, 200));
  };
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") ||
      !value.contains("shape") || !value.contains("data_offsets"))
    bad("the members dtype, shape and data_offsets alone");
  TensorInfo info;
  info.name = tensor;
  if (!value["dtype"].is_string()) bad("a string as dtype");
  const auto dtype = parse_safetensors_dtype(value["dtype"].get_ref<const std::string&>());
  if (!dtype) bad("a known dtype");
  info.dtype = *dtype;

  const nlohmann::json& shape = value["shape"];
  const nlohmann::json& offsets = value["data_offsets"];
  const auto unsigned_number = [](const nlohmann::json& n) { return n.is_number_unsigned(); };
  if (!shape.is_array() || !std::all_of(shape.begin(), shape.end(), unsigned_number))
    bad("a shape of numbers that are not negative");
  if (!offsets.is_array() || offsets.size() != 2 ||
      !std::all_of(offsets.begin(), offsets.end(), unsigned_number))
    bad("two offsets that are not negative");
  info.begin = offsets[0].get<std::uint64_t>();
  info.end = offsets[1].get<std::uint64_t>();

  std::uint64_t bits = file_bits(info.dtype);
  for (const nlohmann::json& n : shape) {
    const std::uint64_t d = n.get<std::uint64_t>();
    if (d > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) ||
        __builtin_mul_overflow(bits, d, &bits))
      bad("a size that fits 64 bits");
    info.dims.push_back(static_cast<std::int64_t>(d));
  }
  if (bits % 8 != 0) bad("a whole number of bytes");
  if (info.end < info.begin || info.end - info.begin != bits / 8)
    bad(fmt::format("offsets that span its {} bytes", bits / 8));
  return info;
}

// Between one byte an element and `bits` bits an element.
std::string pack(const HostArray& a, int bits) {
  std::string out(static_cast<std::size_t>((a.size() * bits + 7) / 8), '\0');
  std::size_t at = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const auto code = static_cast<unsigned>(a.data()[i]);
    for (int b = 0; b < bits; ++b, ++at)
      if (code >> b & 1u) out[at / 8] = static_cast<char>(out[at / 8] | 1 << (at % 8));
  }
  return out;
}

void unpack(std::string_view packed, int bits, HostArray& a) {
  std::size_t at = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    unsigned code = 0;
    for (int b = 0; b < bits; ++b, ++at)
      code |= (static_cast<unsigned char>(packed[at / 8]) >> (at % 8) & 1u) << b;
    a.data()[i] = static_cast<std::byte>(code);
  }
}

}  // namespace

std::optional<std::string_view> safetensors_dtype(DType t) {
  const int r = type_rank(t);
  if (r < 0) return std::nullopt;
  return kTypes[r].name;
}

std::optional<DType> parse_safetensors_dtype(std::string_view name) {
  for (const NamedType& t : kTypes)
    if (t.name == name) return t.dtype;
  return std::nullopt;
}

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> head, std::uint64_t file_size,
                                           std::string_view name) {
  if (file_size < 8 || head.size() < 8)
    refuse(name, "at least the 8 bytes of the header's length", fmt::format("{} bytes", file_size));
  std::uint64_t length;
  std::memcpy(&length, head.data(), 8);
  if (length > kMaxHeader)
    refuse(name, fmt::format("a header of at most {} bytes", kMaxHeader),
           fmt::format("it states {}", length));
  if (length > file_size - 8 || length > head.size() - 8)
    refuse(name, fmt::format("a header of {} bytes as it states", length),
           fmt::format("the file has {} bytes", file_size));
  const std::string_view text = as_string_view(head.subspan(8, length));
  if (text.empty() || text[0] != '{')
    refuse(name, "a header that begins with {", fmt::format("\"{}\"", text.substr(0, 8)));
  const nlohmann::json json = parse_strict(text, name);

  SafetensorsHeader header;
  header.data_begin = 8 + length;
  for (const auto& [key, value] : json.items()) {
    if (key == "__metadata__") {
      if (!value.is_object()) refuse(name, "__metadata__ that is an object", value.type_name());
      for (const auto& [k, v] : value.items()) {
        if (!v.is_string())
          refuse(name, "metadata of strings", fmt::format("\"{}\" is a {}", k, v.type_name()));
        header.metadata[k] = v.get<std::string>();
      }
      continue;
    }
    header.tensors.push_back(parse_tensor(key, value, name));
  }
  std::sort(header.tensors.begin(), header.tensors.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::uint64_t at = 0;
  for (const TensorInfo& t : header.tensors) {
    if (t.begin != at)
      refuse(name, fmt::format("tensor \"{}\" at byte {}, where the one before ends", t.name, at),
             fmt::format("it begins at {}", t.begin));
    at = t.end;
  }
  if (at != file_size - header.data_begin)
    refuse(name, fmt::format("{} bytes of tensors as the header states", at),
           fmt::format("the file holds {}", file_size - header.data_begin));
  return header;
}

SafetensorsFile::SafetensorsFile(const std::string& path, const FileSystem& fs)
    : file_(fs.open(path)) {
  std::uint64_t length = 0;
  if (file_->size() >= 8) {
    std::byte first[8];
    file_->read(0, first);
    std::memcpy(&length, first, 8);
  }
  // A hostile length is refused by the parser; until then no more than the file's size is read.
  const std::uint64_t head =
      length > kMaxHeader ? 8 : std::min<std::uint64_t>(file_->size(), 8 + length);
  const std::string bytes = read_string(0, std::min(head, file_->size()));
  header_ = parse_safetensors_header(as_byte_span(bytes), file_->size(), path);
}

std::string SafetensorsFile::read_string(std::uint64_t offset, std::uint64_t size) const {
  std::string out(static_cast<std::size_t>(size), '\0');
  file_->read(offset, std::as_writable_bytes(std::span<char>(out)));
  return out;
}

const TensorInfo* SafetensorsFile::find(std::string_view name) const {
  for (const TensorInfo& t : header_.tensors)
    if (t.name == name) return &t;
  return nullptr;
}

HostArray SafetensorsFile::read(const TensorInfo& t) const {
  if (t.dims.size() > 0) return read_rows(t, 0, t.dims[0]);
  TensorInfo row = t;
  row.dims = {1};
  return read_rows(row, 0, 1).reshape({});
}

HostArray SafetensorsFile::read_rows(const TensorInfo& t, std::int64_t begin,
                                     std::int64_t end) const {
  Dims dims = t.dims;
  dims[0] = end - begin;
  if (file_bits(t.dtype) < 8) {
    HostArray whole(t.dtype, t.dims);
    unpack(read_string(header_.data_begin + t.begin, t.end - t.begin), dtype_bits(t.dtype), whole);
    const auto row = t.dims[0] == 0 ? 0 : whole.nbytes() / static_cast<std::size_t>(t.dims[0]);
    return HostArray::from_bytes(t.dtype, dims,
                                 {whole.data() + static_cast<std::size_t>(begin) * row,
                                  static_cast<std::size_t>(end - begin) * row});
  }
  HostArray a(t.dtype, dims);
  const std::uint64_t row =
      t.dims[0] == 0 ? 0 : (t.end - t.begin) / static_cast<std::uint64_t>(t.dims[0]);
  file_->read(header_.data_begin + t.begin + row * static_cast<std::uint64_t>(begin),
              std::span<std::byte>(a.data(), a.nbytes()));
  if (is_bool(t.dtype))
    for (std::int64_t i = 0; i < a.size(); ++i)
      if (static_cast<unsigned>(a.data()[i]) > 1)
        refuse(file_->path(), fmt::format("tensor \"{}\" of bytes 0 and 1", t.name),
               fmt::format("byte {} is {}", i, static_cast<unsigned>(a.data()[i])));
  return a;
}

NamedArrays SafetensorsFile::read_all() const {
  NamedArrays out;
  for (const TensorInfo& t : header_.tensors) out.push_back({t.name, read(t)});
  return out;
}

NamedArrays read_safetensors(const std::string& path) { return SafetensorsFile(path).read_all(); }

void write_safetensors(const std::string& path, const NamedArrays& arrays,
                       const std::map<std::string, std::string>& metadata) {
  const auto fail = [&](std::string_view expected, std::string_view given,
                        std::string_view advice) {
    throw_user_error({fmt::format("write {}", path), expected, given, advice});
  };
  std::vector<const NamedArray*> order;
  std::set<std::string_view> names;
  for (const NamedArray& a : arrays) {
    if (type_rank(a.value.dtype()) < 0)
      fail("types that safetensors has", fmt::format("\"{}\" is {}", a.name, a.value.type_string()),
           "Convert it with astype");
    if (a.name == "__metadata__" || !names.insert(a.name).second)
      fail("unique names other than __metadata__", fmt::format("\"{}\"", a.name), "Rename it");
    if (file_bits(a.value.dtype()) * static_cast<std::uint64_t>(a.value.size()) % 8 != 0)
      fail("tensors of whole bytes", fmt::format("\"{}\" is {}", a.name, a.value.type_string()),
           "Pad it to a multiple of eight bits");
    order.push_back(&a);
  }
  std::sort(order.begin(), order.end(), [](const NamedArray* a, const NamedArray* b) {
    const int x = type_rank(a->value.dtype()), y = type_rank(b->value.dtype());
    return x != y ? x > y : a->name < b->name;
  });

  std::string header = "{";
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    for (const auto& [k, v] : metadata)
      header += fmt::format("{}{}:{}", header.back() == '{' ? "" : ",", quote(k), quote(v));
    header += "}";
  }
  std::uint64_t at = 0;
  for (const NamedArray* a : order) {
    const std::uint64_t size =
        file_bits(a->value.dtype()) * static_cast<std::uint64_t>(a->value.size()) / 8;
    std::string shape;
    for (const std::int64_t d : a->value.dims())
      shape += fmt::format("{}{}", shape.empty() ? "" : ",", d);
    header += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                          header.size() == 1 ? "" : ",", quote(a->name),
                          *safetensors_dtype(a->value.dtype()), shape, at, at + size);
    at += size;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');

  AtomicFile file(path);
  ByteWriter length;
  length.write(static_cast<std::uint64_t>(header.size()));
  file.write(length.str());
  file.write(header);
  for (const NamedArray* a : order) {
    const HostArray value = a->value.to_contiguous();
    if (file_bits(value.dtype()) < 8)
      file.write(pack(value, dtype_bits(value.dtype())));
    else
      file.write(value.data(), value.nbytes());
  }
  file.commit();
}

}  // namespace xylem::checkpoint
