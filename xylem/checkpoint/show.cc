#include "xylem/checkpoint/show.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>

#include "xylem/base/dtype_cast.h"
#include "xylem/base/error.h"
#include "xylem/base/json.h"

namespace xylem::checkpoint {
namespace {

std::string finish_number(std::string s) {
  // A decimal point keeps it a float, and the sign of zero.
  if (s.find_first_of(".en") == std::string::npos) s += ".0";
  return s;
}

std::string special(double v) {
  if (std::isnan(v)) return "\"NaN\"";
  return v > 0 ? "\"Infinity\"" : "\"-Infinity\"";
}

std::string number(float v) {
  return std::isfinite(v) ? finish_number(fmt::format("{}", v)) : special(v);
}
std::string number(double v) {
  return std::isfinite(v) ? finish_number(fmt::format("{}", v)) : special(v);
}

// Types of at most 16 bits: the first precision at which the digits come back as the same bits.
std::string narrow_number(DType t, unsigned bits) {
  unsigned char in[2] = {static_cast<unsigned char>(bits), static_cast<unsigned char>(bits >> 8)};
  const double v = element_to_double(t, in);
  if (!std::isfinite(v)) return special(v);
  for (int digits = 1; digits <= 17; ++digits) {
    const std::string s = fmt::format("{:.{}g}", v, digits);
    // Readers that go through f32, as NumPy's do for these types, must not round to another value.
    unsigned char back[2] = {0, 0}, twice[2] = {0, 0};
    double_to_element(std::stod(s), t, back);
    double_to_element(static_cast<double>(static_cast<float>(std::stod(s))), t, twice);
    const auto bytes = static_cast<std::size_t>(dtype_bytes(t));
    if (std::memcmp(in, back, bytes) == 0 && std::memcmp(in, twice, bytes) == 0)
      return finish_number(fmt::format("{}", std::stod(s)));
  }
  return finish_number(fmt::format("{}", v));
}

const std::string& narrow_text(DType t, unsigned bits) {
  struct Table {
    std::once_flag once;
    std::vector<std::string> texts;
  };
  static std::array<Table, kNumDTypes> tables;
  Table& table = tables[static_cast<std::size_t>(t)];
  std::call_once(table.once, [&] {
    const unsigned n = dtype_bytes(t) == 1 ? 256 : 65536;
    table.texts.resize(n);
    for (unsigned i = 0; i < n; ++i) table.texts[i] = narrow_number(t, i);
  });
  return table.texts[bits];
}

template <class T>
T load(const std::byte* p) {
  T v;
  std::memcpy(&v, p, sizeof(T));
  return v;
}

void append_element(std::string& out, DType t, const std::byte* p) {
  switch (t) {
    case DType::kBool: out += load<std::uint8_t>(p) != 0 ? "true" : "false"; return;
    case DType::kI8: fmt::format_to(std::back_inserter(out), "{}", load<std::int8_t>(p)); return;
    case DType::kI16: fmt::format_to(std::back_inserter(out), "{}", load<std::int16_t>(p)); return;
    case DType::kI32: fmt::format_to(std::back_inserter(out), "{}", load<std::int32_t>(p)); return;
    case DType::kI64: fmt::format_to(std::back_inserter(out), "{}", load<std::int64_t>(p)); return;
    case DType::kU8: fmt::format_to(std::back_inserter(out), "{}", load<std::uint8_t>(p)); return;
    case DType::kU16: fmt::format_to(std::back_inserter(out), "{}", load<std::uint16_t>(p)); return;
    case DType::kU32: fmt::format_to(std::back_inserter(out), "{}", load<std::uint32_t>(p)); return;
    case DType::kU64: fmt::format_to(std::back_inserter(out), "{}", load<std::uint64_t>(p)); return;
    case DType::kI2:
    case DType::kI4:
    case DType::kU2:
    case DType::kU4: {
      const int bits = dtype_bits(t);
      int v = load<std::uint8_t>(p) & ((1 << bits) - 1);
      if (is_signed_int(t) && v >= 1 << (bits - 1)) v -= 1 << bits;
      fmt::format_to(std::back_inserter(out), "{}", v);
      return;
    }
    case DType::kF32: out += number(load<float>(p)); return;
    case DType::kF64: out += number(load<double>(p)); return;
    case DType::kC64:
      out += fmt::format("[{}, {}]", number(load<float>(p)), number(load<float>(p + 4)));
      return;
    case DType::kC128:
      out += fmt::format("[{}, {}]", number(load<double>(p)), number(load<double>(p + 8)));
      return;
    case DType::kFloat0: out += "0"; return;
    default:
      out += narrow_text(t, dtype_bytes(t) == 1 ? load<std::uint8_t>(p) : load<std::uint16_t>(p));
  }
}

std::string path_json(const KeyPath& path) {
  std::string out = "[";
  for (const PathKey& k : path) {
    if (out.size() > 1) out += ", ";
    out += k.index ? k.text : json_quote(k.text);
  }
  return out + "]";
}

std::string shape_json(const Dims& d) {
  std::string out = "[";
  for (int i = 0; i < d.ssize(); ++i) out += fmt::format("{}{}", i > 0 ? ", " : "", d[i]);
  return out + "]";
}

std::string leaf_json(const Item& item, std::size_t i, bool values) {
  const LeafInfo& l = item.leaves()[i];
  std::string out = "{\"path\": " + path_json(l.path);
  switch (l.kind) {
    case LeafKind::kString: return out + ", \"value\": " + json_quote(l.text) + "}";
    case LeafKind::kScalar:
      if (l.shape.size() != 0) break;
      out += ", \"value\": ";
      if (l.dtype) {
        const HostArray a = item.read(i);
        append_element(out, a.dtype(), a.data());
      } else {
        out += json_quote(item.read_text(i));
      }
      return out + "}";
    case LeafKind::kArray:
    case LeafKind::kNumpy: break;
    default: return out + ", \"value\": null}";
  }
  out +=
      fmt::format(", \"dtype\": {}, \"shape\": {}", json_quote(l.dtype_name), shape_json(l.shape));
  if (!l.prng.empty()) out += fmt::format(", \"prng\": {}", json_quote(prng_tag(l.prng)));
  if (values && l.dtype) {
    out += ", \"values\": ";
    out += values_json(item.read(i));
  }
  return out + "}";
}

struct Summary {
  double least = std::numeric_limits<double>::infinity();
  double greatest = -std::numeric_limits<double>::infinity();
  double sum = 0;
  std::int64_t finite = 0, nan = 0, infinite = 0;
};

Summary summarise(const HostArray& a) {
  Summary s;
  std::vector<double> wide(4096);
  const auto bytes = static_cast<std::int64_t>(dtype_bytes(a.dtype()));
  for (std::int64_t at = 0; at < a.size(); at += 4096) {
    const std::int64_t n = std::min<std::int64_t>(4096, a.size() - at);
    convert_elements(a.dtype(), a.data() + at * bytes, DType::kF64, wide.data(), n);
    for (std::int64_t i = 0; i < n; ++i) {
      const double v = wide[static_cast<std::size_t>(i)];
      if (std::isnan(v)) {
        ++s.nan;
      } else if (std::isinf(v)) {
        ++s.infinite;
      } else {
        ++s.finite;
        s.sum += v;
        s.least = std::min(s.least, v);
        s.greatest = std::max(s.greatest, v);
      }
    }
  }
  return s;
}

// "  -1.5 to 2, mean 0.25, 3 NaN"; complex numbers by their real parts.
std::string statistics_text(const Item& item, std::size_t i) {
  try {
    const HostArray a = item.read(i).to_contiguous();
    const Summary s = summarise(a);
    std::string out = s.finite > 0 ? fmt::format("  {:.4g} to {:.4g}, mean {:.4g}", s.least,
                                                 s.greatest, s.sum / static_cast<double>(s.finite))
                                   : "  nothing finite";
    if (s.nan > 0) out += fmt::format(", {} NaN", s.nan);
    if (s.infinite > 0) out += fmt::format(", {} infinite", s.infinite);
    return out;
  } catch (const Error& e) {
    return fmt::format("  unreadable: {}", e.message());
  }
}

std::string bytes_text(std::uint64_t n) {
  if (n < 10'000) return fmt::format("{} B", n);
  if (n < 10'000'000) return fmt::format("{:.1f} kB", static_cast<double>(n) / 1e3);
  if (n < 10'000'000'000) return fmt::format("{:.1f} MB", static_cast<double>(n) / 1e6);
  return fmt::format("{:.2f} GB", static_cast<double>(n) / 1e9);
}

}  // namespace

std::string values_json(const HostArray& array) {
  const HostArray a = array.to_contiguous();
  std::string out = "[";
  const auto step = static_cast<std::ptrdiff_t>(dtype_bytes(a.dtype()));
  for (std::int64_t i = 0; i < a.size(); ++i) {
    if (i > 0) out += ", ";
    append_element(out, a.dtype(), a.data() + i * step);
  }
  return out + "]";
}

void show_json(const Checkpoint& c, bool values, const Sink& out) {
  // What is damaged is found before anything is printed.
  for (const auto& [name, item] : c.items) item->leaves();
  out(fmt::format("{{\"format\": {}, \"step\": {}, \"items\": {{", json_quote(c.format),
                  c.step ? fmt::format("{}", *c.step) : "null"));
  bool first = true;
  for (const auto& [name, item] : c.items) {
    out(fmt::format("{}{}: ", first ? "" : ", ", json_quote(name)));
    first = false;
    if (const std::string* json = item->json()) {
      out("{\"json\": ");
      out(*json);
      out("}");
      continue;
    }
    out("{\"leaves\": [");
    bool any = false;
    for (std::size_t i = 0; i < item->leaves().size(); ++i) {
      if (is_empty_node(item->leaves()[i].kind)) continue;
      out(any ? ",\n" : "\n");
      any = true;
      out(leaf_json(*item, i, values));
    }
    out("]}");
  }
  out("}}\n");
}

void show_text(const Checkpoint& c, bool statistics, const Sink& out,
               const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  out(fmt::format("{}: {}{}\n", c.directory, c.format,
                  c.step ? fmt::format(", step {}", *c.step) : ""));
  std::uint64_t done = 0, all = 0;
  const auto bytes_of = [](const LeafInfo& l) {
    std::uint64_t n = l.dtype ? static_cast<std::uint64_t>(dtype_bytes(*l.dtype)) : 0;
    for (const std::int64_t d : l.shape) n *= static_cast<std::uint64_t>(d);
    return n;
  };
  for (const auto& [name, item] : c.items)
    if (item->json() == nullptr)
      for (const LeafInfo& l : item->leaves())
        if (has_array(l.kind)) all += bytes_of(l);
  for (const auto& [name, item] : c.items) {
    if (const std::string* json = item->json()) {
      out(fmt::format("{}: JSON, {}\n", name, bytes_text(json->size())));
      continue;
    }
    std::uint64_t total = 0, elements = 0;
    std::string lines;
    for (std::size_t i = 0; i < item->leaves().size(); ++i) {
      const LeafInfo& l = item->leaves()[i];
      std::string line = "  " + path_text(l.path);
      if (line.size() < 48) line.resize(48, ' ');
      if (has_array(l.kind)) {
        std::uint64_t n = 1;
        for (const std::int64_t d : l.shape) n *= static_cast<std::uint64_t>(d);
        const std::uint64_t bytes = bytes_of(l);
        line += fmt::format(" {}{}  {}", l.dtype_name, shape_json(l.shape), bytes_text(bytes));
        if (!l.prng.empty()) line += fmt::format("  key<{}>", prng_tag(l.prng));
        total += bytes;
        elements += n;
        if (statistics && l.dtype && n > 0 && l.prng.empty()) line += statistics_text(*item, i);
        if (statistics && progress) progress(done += bytes, all);
      } else if (l.kind == LeafKind::kString) {
        line += fmt::format(" {}", json_quote(l.text.substr(0, 60)));
      } else {
        line += fmt::format(" {}", value_type(l.kind));
      }
      for (char& ch : line)
        if (ch == '\n' || ch == '\r') ch = ' ';
      lines += line + "\n";
    }
    out(fmt::format("{}: {} leaves, {} elements, {}\n", name.empty() ? "(tree)" : name,
                    item->leaves().size(), elements, bytes_text(total)));
    out(lines);
  }
}

}  // namespace xylem::checkpoint
