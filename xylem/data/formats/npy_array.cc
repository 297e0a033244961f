#include "xylem/data/formats/internal/npy_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "xylem/base/bytes.h"
#include "xylem/base/error.h"
#include "xylem/base/npy.h"

namespace xylem::data::internal {
namespace {

[[noreturn]] void malformed(std::string_view name, std::string_view given) {
  throw_user_error({name, "a header as NumPy writes it", given,
                    "The file is damaged or was not written by NumPy"});
}

// The part of Python's literals that headers use: dictionaries, tuples, lists, strings, integers,
// True, False, None.
class LiteralParser {
 public:
  LiteralParser(std::string_view text, std::string_view name) : text_(text), name_(name) {}
  Value parse() {
    Value v = value(0);
    skip();
    if (at_ != text_.size()) malformed(name_, "text follows the dictionary");
    return v;
  }

 private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t'))
      ++at_;
  }
  bool accept(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  Value value(int depth) {
    if (depth > 30) malformed(name_, "it nests too deep");
    skip();
    if (at_ == text_.size()) malformed(name_, "it ends early");
    const char c = text_[at_];
    if (c == '{') {
      ++at_;
      Fields fields;
      while (!accept('}')) {
        Value key = value(depth + 1);
        const auto* k = key.get_if<std::string>();
        if (k == nullptr || !accept(':')) malformed(name_, "a key is no string");
        if (find_field(fields, *k) != nullptr) malformed(name_, fmt::format("{} stands twice", *k));
        fields.emplace_back(*k, value(depth + 1));
        if (!accept(',') && !accept('}'))
          malformed(name_, "a comma or brace is missing");
        else if (text_[at_ - 1] == '}')
          break;
      }
      return fields;
    }
    if (c == '(' || c == '[') {
      const char close = c == '(' ? ')' : ']';
      ++at_;
      List list;
      while (!accept(close)) {
        list.push_back(value(depth + 1));
        if (accept(',')) continue;
        if (!accept(close)) malformed(name_, "a comma or bracket is missing");
        break;
      }
      return list;
    }
    if (c == '\'' || c == '"') {
      const std::size_t end = text_.find(c, at_ + 1);
      if (end == text_.npos) malformed(name_, "a string does not end");
      std::string s(text_.substr(at_ + 1, end - at_ - 1));
      if (s.find('\\') != s.npos) malformed(name_, "a string holds escapes");
      at_ = end + 1;
      return s;
    }
    for (const auto& [word, v] : {std::pair<std::string_view, Value>{"True", Value(true)},
                                  {"False", Value(false)},
                                  {"None", Value()}})
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return v;
      }
    std::int64_t i = 0;
    const auto r = std::from_chars(text_.data() + at_, text_.data() + text_.size(), i);
    if (r.ec != std::errc()) malformed(name_, fmt::format("character {} fits no value", at_));
    at_ = static_cast<std::size_t>(r.ptr - text_.data());
    accept('L');  // Python 2 wrote long integers so
    return i;
  }

  std::string_view text_, name_;
  std::size_t at_ = 0;
};

std::vector<std::int64_t> parse_dims(const Value& v, std::string_view name) {
  std::vector<std::int64_t> dims;
  if (const auto* i = v.get_if<std::int64_t>(); i != nullptr && *i >= 0) return {*i};
  const auto* list = v.get_if<List>();
  if (list == nullptr || list->size() > 64) malformed(name, "the shape is no tuple");
  for (const Value& d : *list) {
    const auto* i = d.get_if<std::int64_t>();
    if (i == nullptr || *i < 0) malformed(name, "a dimension is no number");
    dims.push_back(*i);
  }
  return dims;
}

// Product, or -1 if it does not fit.
std::int64_t product(const std::vector<std::int64_t>& dims, std::size_t from, std::int64_t start) {
  std::int64_t n = start;
  for (std::size_t i = from; i < dims.size(); ++i)
    if (__builtin_mul_overflow(n, dims[i], &n)) return -1;
  return n;
}

NpyType parse_type(const Value& v, std::string_view name) {
  NpyType t;
  if (const auto* list = v.get_if<List>()) {
    t.kind = NpyType::Kind::kFields;
    for (const Value& item : *list) {
      const auto* f = item.get_if<List>();
      if (f == nullptr || f->size() < 2 || f->size() > 3) malformed(name, "a field is malformed");
      // A field may have a title beside its name.
      const auto* titled = (*f)[0].get_if<List>();
      const auto* field_name = titled != nullptr && titled->size() == 2
                                   ? (*titled)[1].get_if<std::string>()
                                   : (*f)[0].get_if<std::string>();
      if (field_name == nullptr) malformed(name, "a field has no name");
      NpyType type = parse_type((*f)[1], name);
      if (f->size() == 3) type.dims = parse_dims((*f)[2], name);
      const std::int64_t bytes = product(type.dims, 0, static_cast<std::int64_t>(type.size));
      if (bytes < 0 || bytes > INT32_MAX || t.size > INT32_MAX)
        malformed(name, "a field is too large");
      t.size += static_cast<std::size_t>(bytes);
      t.fields.push_back({*field_name, std::move(type)});
    }
    return t;
  }
  const auto* s = v.get_if<std::string>();
  if (s == nullptr || s->size() < 2) malformed(name, "the type is malformed");
  const bool ordered = std::string_view("<>|=").find((*s)[0]) != std::string_view::npos;
  const char letter = (*s)[ordered ? 1 : 0];
  t.swap = (*s)[0] == '>';
  std::size_t n = 0;
  const char* digits = s->data() + (ordered ? 2 : 1);
  const auto r = std::from_chars(digits, s->data() + s->size(), n);
  const bool whole = r.ec == std::errc() && r.ptr == s->data() + s->size();
  if (letter == 'O')
    throw_user_error({name, "numbers, text, bytes, times or structures",
                      "the array holds Python objects (a pickle)",
                      "Save it as another type; pickles are never read, they can run code"});
  if ((letter == 'M' || letter == 'm') && r.ec == std::errc() && n == 8) {
    t.kind = NpyType::Kind::kTime;
    t.size = 8;
  } else if (whole && n <= (1u << 28) && letter == 'U') {
    t.kind = NpyType::Kind::kText;
    t.size = 4 * n;
  } else if (whole && n <= (1u << 28) && (letter == 'S' || (letter == 'V' && n != 2))) {
    t.kind = NpyType::Kind::kBytes;
    t.size = n;
    t.numpy = letter;
  } else {
    t.numpy = *s;
    // The library's parser knows which numbers there are.
    t.size = static_cast<std::size_t>(
        dtype_bytes(npy_value(t, {0}, {}, name).get_if<HostArray>()->dtype()));
  }
  return t;
}

template <class T>
T load(const char* p, bool swap) {
  T v;
  std::memcpy(&v, p, sizeof v);
  if (swap) std::reverse(reinterpret_cast<char*>(&v), reinterpret_cast<char*>(&v) + sizeof v);
  return v;
}

void append_utf8(std::string& out, std::uint32_t c, std::string_view name) {
  if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) malformed(name, "text holds no Unicode");
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

Value element(const NpyType& t, std::string_view data, std::string_view name) {
  switch (t.kind) {
    case NpyType::Kind::kNumber: {
      const HostArray a = *npy_value(t, {}, data, name).get_if<HostArray>();
      return a;
    }
    case NpyType::Kind::kText: {
      // NumPy pads with zeros and drops them again.
      std::size_t n = t.size / 4;
      while (n > 0 && load<std::uint32_t>(data.data() + 4 * (n - 1), false) == 0) --n;
      std::string s;
      for (std::size_t i = 0; i < n; ++i)
        append_utf8(s, load<std::uint32_t>(data.data() + 4 * i, t.swap), name);
      return s;
    }
    case NpyType::Kind::kBytes: {
      std::string_view s = data;
      if (t.numpy == "S")
        while (s.ends_with('\0')) s.remove_suffix(1);
      return Bytes{std::string(s)};
    }
    case NpyType::Kind::kTime: return load<std::int64_t>(data.data(), t.swap);
    case NpyType::Kind::kFields: {
      Fields fields;
      for (const auto& [field, type] : t.fields) {
        const auto n =
            static_cast<std::size_t>(product(type.dims, 0, static_cast<std::int64_t>(type.size)));
        // Gaps between fields have no name.
        if (!field.empty())
          fields.emplace_back(field, npy_value(type, type.dims, data.substr(0, n), name));
        data.remove_prefix(n);
      }
      return fields;
    }
  }
  return {};
}

Value lists(const NpyType& t, const std::vector<std::int64_t>& dims, std::size_t axis,
            std::string_view& data, std::string_view name) {
  if (axis == dims.size()) {
    const std::string_view own = data.substr(0, t.size);
    data.remove_prefix(t.size);
    return element(t, own, name);
  }
  List list;
  for (std::int64_t i = 0; i < dims[axis]; ++i)
    list.push_back(lists(t, dims, axis + 1, data, name));
  return list;
}

}  // namespace

std::uint64_t NpyHeader::elements(std::size_t from) const {
  return static_cast<std::uint64_t>(product(dims, from, 1));
}

NpyHeader parse_npy_header(std::string_view head, std::string_view name) {
  if (head.size() < 12 || !head.starts_with("\x93NUMPY")) malformed(name, "it has no magic");
  const int major = head[6];
  if (major < 1 || major > 3 || head[7] != 0) malformed(name, "the version is unknown");
  std::uint32_t length = 0;
  std::memcpy(&length, head.data() + 8, major == 1 ? 2 : 4);
  const std::size_t before = major == 1 ? 10 : 12;
  if (length > head.size() - before) malformed(name, "the header does not end");
  const Value v = LiteralParser(head.substr(before, length), name).parse();
  const auto* fields = v.get_if<Fields>();
  if (fields == nullptr || fields->size() != 3)
    malformed(name, "it is no dictionary of three keys");
  const Value* descr = find_field(*fields, "descr");
  const Value* order = find_field(*fields, "fortran_order");
  const Value* shape = find_field(*fields, "shape");
  if (descr == nullptr || order == nullptr || shape == nullptr || order->get_if<bool>() == nullptr)
    malformed(name, "descr, fortran_order or shape is missing");
  NpyHeader h;
  h.data_begin = before + length;
  h.dims = parse_dims(*shape, name);
  h.fortran = *order->get_if<bool>() && h.dims.size() > 1;
  h.type = parse_type(*descr, name);
  // Dimensions of 0 must not hide others that no array can have.
  std::int64_t n = std::max<std::int64_t>(1, static_cast<std::int64_t>(h.type.size));
  for (const std::int64_t d : h.dims)
    if (__builtin_mul_overflow(n, std::max<std::int64_t>(d, 1), &n))
      malformed(name, "the array is larger than any file");
  // Nothing in the file bounds the number of empty elements and rows.
  if (h.elements(0) * h.type.size == 0 &&
      n > std::max<std::int64_t>(static_cast<std::int64_t>(h.type.size), 1) << 24)
    malformed(name, "empty elements without end");
  return h;
}

Value npy_value(const NpyType& type, const std::vector<std::int64_t>& dims, std::string_view data,
                std::string_view name) {
  if (type.kind == NpyType::Kind::kNumber) {
    std::string shape;
    for (const std::int64_t d : dims) shape += fmt::format("{},", d);
    const std::string header =
        fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({})}}", type.numpy, shape);
    ByteWriter w;
    w.write_string("\x93NUMPY");
    w.write<std::uint8_t>(2);
    w.write<std::uint8_t>(0);
    w.write(static_cast<std::uint32_t>(header.size()));
    w.write_string(header);
    w.write_string(data);
    return parse_npy(as_byte_span(w.str()), name);
  }
  return lists(type, dims, 0, data, name);
}

std::string npy_type_text(const NpyHeader& h) {
  std::string text;
  switch (h.type.kind) {
    case NpyType::Kind::kNumber: text = h.type.numpy; break;
    case NpyType::Kind::kText: text = "text"; break;
    case NpyType::Kind::kBytes: text = "bytes"; break;
    case NpyType::Kind::kTime: text = "time"; break;
    case NpyType::Kind::kFields:
      text = "{";
      for (const auto& [name, type] : h.type.fields)
        text += fmt::format("{}{}", text.size() > 1 ? ", " : "", name);
      text += "}";
  }
  std::string dims;
  for (const std::int64_t d : h.dims) dims += fmt::format("{}{}", dims.empty() ? "" : ",", d);
  return fmt::format("{}[{}]", text, dims);
}

}  // namespace xylem::data::internal
