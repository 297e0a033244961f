#include "xylem/data/formats/value.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "xylem/base/dtype_cast.h"
#include "xylem/base/error.h"
#include "xylem/base/json.h"

namespace xylem::data {
namespace {

template <class T>
void append_number(std::string& out, T v) {
  char buffer[40];
  const auto r = std::to_chars(buffer, buffer + sizeof buffer, v);
  out.append(buffer, r.ptr);
}

void append_double(std::string& out, double d) {
  if (std::isnan(d)) {
    out += "\"NaN\"";
  } else if (std::isinf(d)) {
    out += d < 0 ? "\"-Infinity\"" : "\"Infinity\"";
  } else {
    const std::size_t begin = out.size();
    append_number(out, d);
    // A reader that tells integers from floats must see which this is.
    if (out.find_first_of(".e", begin) == std::string::npos) out += ".0";
  }
}

void append_text(std::string& out, std::string_view s) {
  if (is_utf8(s)) {
    out += json_quote(s);
  } else {
    out += "{\"hex\": \"";
    append_hex(out, s);
    out += "\"}";
  }
}

template <class T>
T load(const std::byte* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

void append_element(std::string& out, const HostArray& a, const std::byte* p, std::int64_t flat) {
  switch (a.dtype()) {
    case DType::kBool: out += *p != std::byte{0} ? "true" : "false"; break;
    case DType::kI8: append_number(out, static_cast<int>(load<std::int8_t>(p))); break;
    case DType::kI16: append_number(out, load<std::int16_t>(p)); break;
    case DType::kI32: append_number(out, load<std::int32_t>(p)); break;
    case DType::kI64: append_number(out, load<std::int64_t>(p)); break;
    case DType::kU8: append_number(out, static_cast<unsigned>(load<std::uint8_t>(p))); break;
    case DType::kU16: append_number(out, load<std::uint16_t>(p)); break;
    case DType::kU32: append_number(out, load<std::uint32_t>(p)); break;
    case DType::kU64: append_number(out, load<std::uint64_t>(p)); break;
    case DType::kF32: append_double(out, load<float>(p)); break;
    case DType::kF64: append_double(out, load<double>(p)); break;
    case DType::kC64:
    case DType::kC128: {
      const bool wide = a.dtype() == DType::kC128;
      out += '[';
      append_double(out, wide ? load<double>(p) : load<float>(p));
      out += ", ";
      append_double(out, wide ? load<double>(p + 8) : load<float>(p + 4));
      out += ']';
      break;
    }
    default:
      if (is_integer(a.dtype()))
        append_number(out, static_cast<std::int64_t>(a.at(flat)));
      else
        append_double(out, a.at(flat));
  }
}

void append_array(std::string& out, const HostArray& a, int axis, std::int64_t& flat) {
  if (axis == a.rank()) {
    append_element(out, a, a.data() + flat * dtype_bytes(a.dtype()), flat);
    ++flat;
    return;
  }
  out += '[';
  for (std::int64_t i = 0; i < a.dims()[static_cast<std::size_t>(axis)]; ++i) {
    if (i > 0) out += ", ";
    append_array(out, a, axis + 1, flat);
  }
  out += ']';
}

// Builds values from the parser's events.
class ValueBuilder {
 public:
  Value root;
  std::string problem;

  bool null() { return add(Value()); }
  bool boolean(bool b) { return add(Value(b)); }
  bool number_integer(std::int64_t i) { return add(Value(i)); }
  bool number_unsigned(std::uint64_t u) {
    if (u <= INT64_MAX) return add(Value(static_cast<std::int64_t>(u)));
    return add(Value(u));
  }
  bool number_float(double d, const std::string&) { return add(Value(d)); }
  bool string(std::string& s) { return add(Value(std::move(s))); }
  bool binary(nlohmann::json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Value(Fields{})); }
  bool end_object() { return close(); }
  bool start_array(std::size_t) { return open(Value(List{})); }
  bool end_array() { return close(); }
  bool key(std::string& k) {
    key_ = std::move(k);
    return true;
  }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception& e) {
    // The library's text opens with its own tag.
    std::string_view what = e.what();
    if (const std::size_t end = what.find("] "); end != std::string_view::npos)
      what.remove_prefix(end + 2);
    problem = fmt::format("{} (at byte {})", what, at);
    return false;
  }

 private:
  bool add(Value v) {
    place(std::move(v));
    return true;
  }
  Value* place(Value v) {
    if (stack_.empty()) {
      root = std::move(v);
      return &root;
    }
    if (auto* list = std::get_if<List>(&stack_.back()->v)) {
      list->push_back(std::move(v));
      return &list->back();
    }
    auto& fields = std::get<Fields>(stack_.back()->v);
    fields.emplace_back(std::move(key_), std::move(v));
    return &fields.back().second;
  }
  bool open(Value v) {
    if (stack_.size() >= static_cast<std::size_t>(kMaxDepth)) {
      problem = fmt::format("it nests deeper than {} levels", kMaxDepth);
      return false;
    }
    // Only the innermost container grows, so the pointers on the stack stay good.
    stack_.push_back(place(std::move(v)));
    return true;
  }
  bool close() {
    stack_.pop_back();
    return true;
  }

  std::vector<Value*> stack_;
  std::string key_;
};

}  // namespace

bool operator==(const Value& a, const Value& b) {
  if (a.v.index() != b.v.index()) return false;
  if (const auto* x = a.get_if<HostArray>()) {
    const auto& y = *b.get_if<HostArray>();
    return x->dtype() == y.dtype() && x->dims() == y.dims() && x->bit_equal(y);
  }
  if (const auto* x = a.get_if<List>()) return *x == *b.get_if<List>();
  if (const auto* x = a.get_if<Fields>()) return *x == *b.get_if<Fields>();
  if (const auto* x = a.get_if<double>()) return std::memcmp(x, b.get_if<double>(), sizeof *x) == 0;
  if (const auto* x = a.get_if<std::string>()) return *x == *b.get_if<std::string>();
  if (const auto* x = a.get_if<Bytes>()) return *x == *b.get_if<Bytes>();
  if (const auto* x = a.get_if<bool>()) return *x == *b.get_if<bool>();
  if (const auto* x = a.get_if<std::int64_t>()) return *x == *b.get_if<std::int64_t>();
  if (const auto* x = a.get_if<std::uint64_t>()) return *x == *b.get_if<std::uint64_t>();
  return true;
}

const Value* find_field(const Fields& fields, std::string_view name) {
  for (const auto& [k, v] : fields)
    if (k == name) return &v;
  return nullptr;
}

void append_hex(std::string& out, std::string_view data) {
  static constexpr char kDigits[] = "0123456789abcdef";
  const std::size_t begin = out.size();
  out.resize(begin + 2 * data.size());
  char* p = out.data() + begin;
  for (const char c : data) {
    const auto b = static_cast<unsigned char>(c);
    *p++ = kDigits[b >> 4];
    *p++ = kDigits[b & 15];
  }
}

void append_json(std::string& out, const Value& value) {
  std::visit(
      [&](const auto& v) {
        using T = std::remove_cvref_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          out += "null";
        } else if constexpr (std::is_same_v<T, bool>) {
          out += v ? "true" : "false";
        } else if constexpr (std::is_integral_v<T>) {
          append_number(out, v);
        } else if constexpr (std::is_same_v<T, double>) {
          append_double(out, v);
        } else if constexpr (std::is_same_v<T, std::string>) {
          append_text(out, v);
        } else if constexpr (std::is_same_v<T, Bytes>) {
          out += "{\"hex\": \"";
          append_hex(out, v.data);
          out += "\"}";
        } else if constexpr (std::is_same_v<T, HostArray>) {
          std::int64_t flat = 0;
          append_array(out, v.to_contiguous(), 0, flat);
        } else if constexpr (std::is_same_v<T, List>) {
          out += '[';
          for (std::size_t i = 0; i < v.size(); ++i) {
            if (i > 0) out += ", ";
            append_json(out, v[i]);
          }
          out += ']';
        } else {
          out += '{';
          for (std::size_t i = 0; i < v.size(); ++i) {
            if (i > 0) out += ", ";
            out += json_quote(v[i].first);
            out += ": ";
            append_json(out, v[i].second);
          }
          out += '}';
        }
      },
      value.v);
}

std::string to_json(const Value& value) {
  std::string out;
  append_json(out, value);
  return out;
}

Value parse_json(std::string_view text, std::string_view name) {
  ValueBuilder builder;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder))
    throw_user_error({name, "one JSON value",
                      builder.problem.empty() ? "it is not JSON" : builder.problem,
                      "Correct the text, or read it as another format"});
  return std::move(builder.root);
}

bool is_utf8(std::string_view s) {
  const auto* p = reinterpret_cast<const unsigned char*>(s.data());
  const auto* end = p + s.size();
  while (p < end) {
    if (end - p >= 8) {
      std::uint64_t w;
      std::memcpy(&w, p, 8);
      if ((w & 0x8080808080808080u) == 0) {
        p += 8;
        continue;
      }
    }
    const unsigned c = *p;
    int more;
    std::uint32_t code, least;
    if (c < 0x80) {
      ++p;
      continue;
    } else if (c >= 0xc2 && c < 0xe0) {
      more = 1, code = c & 0x1f, least = 0x80;
    } else if ((c & 0xf0) == 0xe0) {
      more = 2, code = c & 0x0f, least = 0x800;
    } else if (c >= 0xf0 && c < 0xf5) {
      more = 3, code = c & 0x07, least = 0x10000;
    } else {
      return false;
    }
    if (end - p <= more) return false;
    for (int i = 1; i <= more; ++i) {
      if ((p[i] & 0xc0) != 0x80) return false;
      code = code << 6 | (p[i] & 0x3fu);
    }
    if (code < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
    p += more + 1;
  }
  return true;
}

}  // namespace xylem::data
