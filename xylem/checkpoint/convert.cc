#include "xylem/checkpoint/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>

#include "xylem/base/bytes.h"
#include "xylem/base/dtype_cast.h"
#include "xylem/base/error.h"
#include "xylem/base/json.h"
#include "xylem/checkpoint/npz.h"
#include "xylem/checkpoint/safetensors.h"

namespace xylem::checkpoint {
namespace {

bool has_numbers(const LeafInfo& l) { return has_array(l.kind) && l.dtype; }

KeyPath split_name(const std::string& name) {
  KeyPath out;
  std::string_view rest = name;
  while (true) {
    const std::size_t dot = rest.find('.');
    out.push_back({std::string(rest.substr(0, dot)), false});
    if (dot == std::string_view::npos) return out;
    rest.remove_prefix(dot + 1);
  }
}

bool is_flat(const Checkpoint& c) { return c.format == "safetensors" || c.format == "npz"; }

void require_absent(const FileSystem& fs, const std::string& path) {
  if (fs.exists(path))
    throw_user_error({fmt::format("write {}", path), "a path where nothing is",
                      "something is there", "Remove it, or name another path"});
}

class Converter {
 public:
  Converter(const FileSystem& fs, const Checkpoint& from, const std::string& path,
            const ConvertOptions& options)
      : fs_(fs), from_(from), path_(path), options_(options) {}

  void run() {
    require_absent(fs_, path_);
    if (options_.format == "orbax-v0" || options_.format == "orbax-v1") return to_orbax();
    const Item& item = from_.item(options_.item);
    if (item.json() != nullptr)
      throw_user_error({fmt::format("convert item {}", options_.item), "a tree", "JSON",
                        "Name an item that is a tree"});
    if (options_.format == "safetensors") return to_safetensors(item);
    if (options_.format == "npz") return to_npz(item);
    throw_user_error({"convert", "a format among orbax-v0, orbax-v1, safetensors and npz",
                      fmt::format("\"{}\"", options_.format), "Choose one of them"});
  }

 private:
  void note(std::string_view text) const {
    if (options_.note) options_.note(text);
  }
  void step(std::uint64_t done, std::uint64_t all) const {
    if (options_.progress) options_.progress(done, all);
  }

  LeafTree read(const Item& item) const {
    LeafTree out;
    const auto& infos = item.leaves();
    for (std::size_t i = 0; i < infos.size(); ++i) {
      Leaf l;
      static_cast<LeafInfo&>(l) = infos[i];
      if (has_numbers(l)) {
        l.value = item.read(i);
      } else if (has_array(l.kind)) {
        if (l.shape.size() != 0 || l.kind != LeafKind::kScalar) {
          note(
              fmt::format("{}: elements of type {} are left out", path_text(l.path), l.dtype_name));
          continue;
        }
        l.text = item.read_text(i);
        l.kind = LeafKind::kString;
      }
      if (is_flat(from_) && options_.nest && l.path.size() == 1)
        l.path = split_name(l.path[0].text);
      out.push_back(std::move(l));
      step(i + 1, infos.size());
    }
    return out;
  }

  // For Orbax's layout, whose writer reads leaves as it comes to them.
  LeafTree lazy(const Item& item) const {
    LeafTree out = lazy_tree(item, [&](std::string_view leaf, std::string_view reason) {
      note(fmt::format("{}: {}", leaf, reason));
    });
    // What is written of all that is to be written.
    const auto done = std::make_shared<std::atomic<std::uint64_t>>(0);
    std::uint64_t all = 0;
    for (const Leaf& l : out)
      if (l.source) all += elements(l.shape);
    for (Leaf& l : out) {
      if (is_flat(from_) && options_.nest && l.path.size() == 1)
        l.path = split_name(l.path[0].text);
      if (!l.source || !options_.progress) continue;
      l.source = [this, done, all, read = std::move(l.source)](const Dims& start,
                                                               const Dims& shape) {
        HostArray a = read(start, shape);
        const std::uint64_t now = done->fetch_add(elements(shape)) + elements(shape);
        const std::lock_guard lock(progress_mutex_);
        step(now, all);
        return a;
      };
    }
    return out;
  }
  static std::uint64_t elements(const Dims& shape) {
    std::uint64_t n = 1;
    for (const std::int64_t d : shape) n *= static_cast<std::uint64_t>(d);
    return n;
  }

  void to_orbax() {
    std::map<std::string, orbax::StepItem> items;
    orbax::StepOptions o = options_.orbax;
    o.layout = options_.format == "orbax-v0" ? orbax::Layout::kV0 : orbax::Layout::kV1;
    const bool v1 = o.layout == orbax::Layout::kV1;
    o.step_custom = from_.metadata.custom;
    for (const auto& [name, item] : from_.items) {
      if (!options_.item.empty() && name != options_.item) continue;
      // The names that each interface takes when none is given.
      std::string to = name;
      const bool single = from_.items.size() == 1 || !options_.item.empty();
      if (name.empty() || (single && (name == "default" || name == "state")))
        to = v1 ? "state" : "default";
      orbax::StepItem& out = items[to];
      if (const std::string* json = item->json()) {
        out.kind = name == "metrics"   ? orbax::StepItem::Kind::kMetrics
                   : is_iterator(name) ? orbax::StepItem::Kind::kIterator
                                       : orbax::StepItem::Kind::kJson;
        out.json = *json;
      } else {
        out.tree = lazy(*item);
      }
    }
    const std::string temporary = path_ + std::string(orbax::kTemporarySuffix);
    fs_.remove_tree(temporary);
    fs_.make_directories(temporary);
    try {
      orbax::write_step(fs_, temporary, path_, items, o);
      orbax::write_commit_file(fs_, temporary, path_);
      fs_.commit_directory(temporary, path_);
    } catch (...) {
      fs_.remove_tree(temporary);
      throw;
    }
  }

  bool is_iterator(const std::string& name) const {
    const auto it = from_.metadata.item_handlers.find(name);
    return it != from_.metadata.item_handlers.end() && it->second.starts_with("grain.");
  }

  // Names and arrays of a tree for a file of tensors.
  NamedArrays tensors(const Item& item, std::map<std::string, std::string>& strings) const {
    NamedArrays out;
    std::set<std::string> names;
    for (Leaf& l : read(item)) {
      const std::string name = param_name(l.path);
      if (l.kind == LeafKind::kString) {
        strings[name] = l.text;
      } else if (!has_numbers(l)) {
        note(fmt::format("{}: {} is left out", path_text(l.path), value_type(l.kind)));
      } else if (!names.insert(name).second) {
        throw_user_error({fmt::format("write {}", path_),
                          "names that differ when joined with \".\"",
                          fmt::format("\"{}\" twice", name), "Rename one of the leaves"});
      } else {
        out.push_back({name, std::move(l.value)});
      }
    }
    return out;
  }

  void to_npz(const Item& item) const {
    std::map<std::string, std::string> strings;
    const NamedArrays arrays = tensors(item, strings);
    for (const auto& [name, text] : strings) note(fmt::format("{}: the string is left out", name));
    write_npz(fs_, path_, arrays);
  }

  void to_safetensors(const Item& item) const {
    std::map<std::string, std::string> metadata;
    NamedArrays arrays = tensors(item, metadata);
    metadata.emplace("format", "pt");
    std::uint64_t total = 0;
    for (const NamedArray& a : arrays) total += a.value.nbytes();
    const bool directory = !path_.ends_with(".safetensors");
    if (!directory || total <= options_.max_file_bytes) {
      std::string file = path_;
      if (directory) {
        fs_.make_directories(path_);
        file = join_path(path_, "model.safetensors");
      }
      write_safetensors(file, arrays, metadata);
      return;
    }
    // In order, a new file whenever the next tensor does not fit.
    std::vector<NamedArrays> files(1);
    std::uint64_t size = 0;
    for (NamedArray& a : arrays) {
      if (size > 0 && size + a.value.nbytes() > options_.max_file_bytes) {
        files.emplace_back();
        size = 0;
      }
      size += a.value.nbytes();
      files.back().push_back(std::move(a));
    }
    fs_.make_directories(path_);
    std::map<std::string, std::string> map;
    for (std::size_t i = 0; i < files.size(); ++i) {
      const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, files.size());
      write_safetensors(join_path(path_, name), files[i], metadata);
      for (const NamedArray& a : files[i]) map[a.name] = name;
    }
    JsonWriter w(2);
    w.begin_object();
    w.key("metadata");
    w.begin_object();
    w.field("total_size", total);
    w.end_object();
    w.key("weight_map");
    w.begin_object();
    for (const auto& [name, file] : map) w.field(name, file);
    w.end_object();
    w.end_object();
    // Last: with it the directory is complete.
    fs_.write_file_atomic(join_path(path_, "model.safetensors.index.json"), w.take() + "\n");
  }

  const FileSystem& fs_;
  const Checkpoint& from_;
  const std::string& path_;
  const ConvertOptions& options_;
  mutable std::mutex progress_mutex_;
};

// Distance in representable numbers: the bits of a float, ordered.
template <class U>
std::uint64_t ulp_distance(U a, U b) {
  constexpr U kSign = U{1} << (sizeof(U) * 8 - 1);
  const auto ordered = [](U v) { return (v & kSign) != 0 ? U(~v + U{1}) : U(v | kSign); };
  const U x = ordered(a), y = ordered(b);
  return x > y ? x - y : y - x;
}

template <class U>
std::uint64_t max_ulp(const HostArray& a, const HostArray& b) {
  std::uint64_t out = 0;
  for (std::size_t at = 0; at + sizeof(U) <= a.nbytes(); at += sizeof(U)) {
    U x, y;
    std::memcpy(&x, a.data() + at, sizeof(U));
    std::memcpy(&y, b.data() + at, sizeof(U));
    out = std::max(out, ulp_distance(x, y));
  }
  return out;
}

Difference compare(const HostArray& x, const HostArray& y) {
  Difference d;
  const HostArray a = x.to_contiguous(), b = y.to_contiguous();
  const DType t = a.dtype();
  // Parts of complex numbers are numbers of their own.
  const DType part = is_complex(t) ? real_dtype(t) : t;
  const auto bytes = static_cast<std::size_t>(dtype_bytes(part));
  std::int64_t nan = 0;
  for (std::size_t at = 0; at + bytes <= a.nbytes(); at += bytes) {
    const double u = element_to_double(part, a.data() + at),
                 v = element_to_double(part, b.data() + at);
    if (std::isnan(u) != std::isnan(v))
      ++nan;
    else if (!std::isnan(u) && u != v)
      d.max_abs = std::max(d.max_abs, std::abs(u - v));
  }
  if (is_float(part)) {
    if (bytes == 8) d.max_ulp = max_ulp<std::uint64_t>(a, b);
    if (bytes == 4) d.max_ulp = max_ulp<std::uint32_t>(a, b);
    if (bytes == 2) d.max_ulp = max_ulp<std::uint16_t>(a, b);
    if (bytes == 1) d.max_ulp = max_ulp<std::uint8_t>(a, b);
  }
  d.reason = fmt::format("max abs {:.6g}", d.max_abs);
  if (is_float(part)) d.reason += fmt::format(", max {} ulp", d.max_ulp);
  if (nan > 0) d.reason += fmt::format(", {} NaN on one side only", nan);
  return d;
}

std::string type_text(const LeafInfo& l) {
  if (!has_array(l.kind)) return std::string(value_type(l.kind));
  return fmt::format("{}[{}]", l.dtype_name, to_string(l.shape));
}

}  // namespace

void convert(const FileSystem& fs, const Checkpoint& from, const std::string& path,
             const ConvertOptions& options) {
  Converter(fs, from, path, options).run();
}

DiffSummary diff(const Checkpoint& a, const Checkpoint& b,
                 const std::function<void(const Difference&)>& f,
                 const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  DiffSummary s;
  const auto report = [&](std::string path, Difference d) {
    d.path = std::move(path);
    f(d);
  };
  std::map<std::string, std::pair<const Item*, const Item*>> items;
  const auto only_tree = [](const Checkpoint& c) { return c.items.size() == 1; };
  if (only_tree(a) && only_tree(b)) {
    items[a.items.begin()->first] = {a.items.begin()->second.get(), b.items.begin()->second.get()};
  } else {
    for (const auto& [name, item] : a.items) items[name].first = item.get();
    for (const auto& [name, item] : b.items) items[name].second = item.get();
  }
  for (const auto& [name, pair] : items) {
    const auto [x, y] = pair;
    const auto at = [&, item = name](const std::string& leaf) {
      return item.empty() ? leaf : fmt::format("{}/{}", item, leaf);
    };
    if (x == nullptr || y == nullptr) {
      ++(x == nullptr ? s.only_second : s.only_first);
      report(name, {"", x == nullptr ? "only in the second" : "only in the first"});
      continue;
    }
    if (x->json() != nullptr || y->json() != nullptr) {
      const bool equal = x->json() != nullptr && y->json() != nullptr && *x->json() == *y->json();
      ++(equal ? s.equal : s.different);
      if (!equal) report(name, {"", "the JSON differs"});
      continue;
    }
    std::map<std::string, std::size_t> second;
    for (std::size_t i = 0; i < y->leaves().size(); ++i)
      second[param_name(y->leaves()[i].path)] = i;
    for (std::size_t i = 0; i < x->leaves().size(); ++i) {
      const LeafInfo& l = x->leaves()[i];
      if (progress) progress(i, x->leaves().size());
      const auto it = second.find(param_name(l.path));
      if (it == second.end()) {
        ++s.only_first;
        report(at(path_text(l.path)), {"", "only in the first"});
        continue;
      }
      const std::size_t j = it->second;
      second.erase(it);
      const LeafInfo& r = y->leaves()[j];
      if (has_array(l.kind) != has_array(r.kind) || l.dtype_name != r.dtype_name ||
          l.shape != r.shape || l.prng != r.prng) {
        ++s.different;
        report(at(path_text(l.path)), {"", fmt::format("{} and {}", type_text(l), type_text(r))});
      } else if (has_numbers(l)) {
        const HostArray u = x->read(i), v = y->read(j);
        const bool equal = u.bit_equal(v);
        ++(equal ? s.equal : s.different);
        if (!equal) report(at(path_text(l.path)), compare(u, v));
      } else {
        const bool equal = l.text == r.text;
        ++(equal ? s.equal : s.different);
        if (!equal) report(at(path_text(l.path)), {"", "the strings differ"});
      }
    }
    for (const auto& [leaf, j] : second) {
      ++s.only_second;
      report(at(path_text(y->leaves()[j].path)), {"", "only in the second"});
    }
  }
  return s;
}

}  // namespace xylem::checkpoint
