#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>

#include "xylem/base/bytes.h"
#include "xylem/base/file.h"
#include "xylem/data/formats/image.h"
#include "xylem/data/formats/internal/checks.h"
#include "xylem/data/formats/internal/codec.h"
#include "xylem/data/formats/internal/formats.h"
#include "xylem/data/formats/transform.h"

// Folders of TensorFlow Datasets: dataset_info.json names splits and shards, features.json says
// what the tf.train.Examples in them mean (github.com/tensorflow/datasets, core/features).

namespace xylem::data::internal {
namespace {

[[noreturn]] void bad_description(std::string_view name, std::string_view reason) {
  throw_user_error({name, "a description as TensorFlow Datasets writes it", reason,
                    "The file is damaged, or of a version that is not known"});
}

const Fields& object(const Value& v, std::string_view name) {
  const auto* f = v.get_if<Fields>();
  if (f == nullptr) bad_description(name, "an object is missing");
  return *f;
}
std::string text_or(const Fields& f, std::string_view key, std::string_view otherwise) {
  const Value* v = find_field(f, key);
  const auto* s = v == nullptr ? nullptr : v->get_if<std::string>();
  return s == nullptr ? std::string(otherwise) : *s;
}
// 64-bit integers are text in protobuf's JSON.
std::int64_t integer(const Value& v, std::string_view name) {
  if (const auto* i = v.get_if<std::int64_t>()) return *i;
  std::int64_t i = 0;
  const auto* s = v.get_if<std::string>();
  if (s == nullptr) bad_description(name, "a number is missing");
  const auto r = std::from_chars(s->data(), s->data() + s->size(), i);
  if (r.ec != std::errc() || r.ptr != s->data() + s->size())
    bad_description(name, fmt::format("\"{}\" is no number", *s));
  return i;
}

// ---- features

enum class FeatureKind { kDict, kTensor, kText, kImage, kRaw };
struct Feature {
  struct Item;
  FeatureKind kind = FeatureKind::kRaw;
  std::vector<Item> items;         // kDict
  std::optional<DType> dtype;      // kTensor; nothing: text
  std::string encoding;            // kTensor: "bytes", "zlib"
  std::vector<std::int64_t> dims;  // -1: unknown; sequences come first
};
struct Feature::Item {
  std::string name;
  Feature feature;
};

std::optional<DType> dtype_of_name(const std::string& s, std::string_view name) {
  if (s == "string" || s == "object" || s == "str" || s == "bytes") return std::nullopt;
  const auto t = parse_dtype(s);
  if (!t || is_complex(*t)) bad_description(name, fmt::format("the dtype \"{}\"", s));
  return t;
}

std::vector<std::int64_t> dims_of(const Fields& f, std::string_view name) {
  std::vector<std::int64_t> dims;
  const Value* shape = find_field(f, "shape");
  if (shape == nullptr || shape->is_null()) return dims;
  const Value* list = find_field(object(*shape, name), "dimensions");
  if (list == nullptr) return dims;
  const auto* l = list->get_if<List>();
  if (l == nullptr || l->size() > 32) bad_description(name, "a shape is no list");
  for (const Value& d : *l) dims.push_back(std::max<std::int64_t>(-1, integer(d, name)));
  return dims;
}

// Older files give the class and its description as text inside of the JSON.
Value modernise(const Fields& f, std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kClasses[] = {
      {"FeaturesDict", "featuresDict"},
      {"Tensor", "tensor"},
      {"TensorFeature", "tensor"},
      {"Image", "image"},
      {"ImageFeature", "image"},
      {"ClassLabel", "classLabel"},
      {"Text", "text"},
      {"TextFeature", "text"},
      {"Sequence", "sequence"},
      {"BBoxFeature", "boundingBox"},
      {"Scalar", "tensor"},
      {"Dataset", "sequence"},
      {"BoundingBoxFeature", "boundingBox"}};
  const std::string content = text_or(f, "content", "");
  if (content.empty()) return {};
  for (const std::string_view key : {"proto_cls", "type"}) {
    const std::string full = text_or(f, key, "");
    const std::string_view last = std::string_view(full).substr(full.rfind('.') + 1);
    for (const auto& [cls, member] : kClasses)
      if (last == cls) {
        Fields out;
        out.emplace_back(std::string(member), parse_json(content, name));
        return out;
      }
  }
  return {};
}

Feature parse_feature(const Value& v, std::string_view name, int depth) {
  if (depth > 32) bad_description(name, "features nest too deep");
  const Fields& f = object(v, name);
  Feature out;
  if (find_field(f, "content") != nullptr) {
    const Value modern = modernise(f, name);
    if (!modern.is_null()) return parse_feature(modern, name, depth + 1);
  }
  for (const auto& [member, content] : f) {
    if (content.get_if<Fields>() == nullptr) continue;
    const Fields& c = *content.get_if<Fields>();
    if (member == "featuresDict" || member == "translation") {
      out.kind = FeatureKind::kDict;
      if (const Value* features = find_field(c, "features"))
        for (const auto& [item, node] : object(*features, name))
          out.items.push_back({item, parse_feature(node, name, depth + 1)});
      return out;
    }
    if (member == "text") {
      out.kind = FeatureKind::kText;
      return out;
    }
    if (member == "classLabel") {
      out.kind = FeatureKind::kTensor;
      out.dtype = DType::kI64;
      return out;
    }
    if (member == "image") {
      out.kind = FeatureKind::kImage;
      return out;
    }
    if (member == "sequence" || member == "dataset") {
      const Value* inner = find_field(c, "feature");
      if (inner == nullptr) bad_description(name, "a sequence has no feature");
      out = parse_feature(*inner, name, depth + 1);
      std::int64_t length = -1;
      if (const Value* l = find_field(c, "length"))
        length = std::max<std::int64_t>(-1, integer(*l, name));
      // A sequence of a dictionary is a dictionary of sequences.
      const std::function<void(Feature&)> prepend = [&](Feature& x) {
        if (x.kind == FeatureKind::kDict)
          for (auto& item : x.items) prepend(item.feature);
        else
          x.dims.insert(x.dims.begin(), length);
      };
      prepend(out);
      return out;
    }
    if (member == "tensor" || member == "boundingBox" || member == "audio" ||
        member == "labeledImage") {
      if (member == "labeledImage") {
        out.kind = FeatureKind::kImage;
        return out;
      }
      out.kind = FeatureKind::kTensor;
      out.dtype = dtype_of_name(text_or(c, "dtype", member == "audio" ? "int64" : "float32"), name);
      out.dims = dims_of(c, name);
      if (member == "boundingBox" && out.dims.empty()) out.dims = {4};
      out.encoding = text_or(c, "encoding", "none");
      return out;
    }
    if (member == "video") {
      out.kind = FeatureKind::kImage;
      out.dims = {-1};
      return out;
    }
  }
  return out;
}

class ExampleDecoder {
 public:
  ExampleDecoder(Feature root, ReadOptions options)
      : root_(std::move(root)), options_(std::move(options)) {}
  Fields decode(std::string_view bytes) const {
    const Fields example = decode_example(bytes);
    Fields out;
    for (const auto& [name, f] : root_.items)
      if (options_.columns.empty() || std::find(options_.columns.begin(), options_.columns.end(),
                                                name) != options_.columns.end())
        out.emplace_back(name, value(f, name, example));
    return out;
  }

 private:
  [[noreturn]] static void fail(const std::string& path, std::string_view reason) {
    throw_user_error({fmt::format("feature \"{}\"", path), "data as features.json says", reason,
                      "features.json belongs to other data, or the record is damaged"});
  }
  static const List& list_at(const Fields& example, const std::string& path) {
    static const List kNone;
    const Value* v = find_field(example, path);
    return v == nullptr ? kNone : *v->get_if<List>();
  }

  Value value(const Feature& f, const std::string& path, const Fields& example) const {
    if (f.kind == FeatureKind::kDict) {
      Fields out;
      for (const auto& [name, item] : f.items)
        out.emplace_back(name, value(item, path + "/" + name, example));
      return out;
    }
    if (f.kind == FeatureKind::kRaw) return list_at(example, path);
    const auto unknown = std::count(f.dims.begin(), f.dims.end(), -1);
    if (find_field(example, path + "/ragged_flat_values") != nullptr ||
        find_field(example, path + "/ragged_row_lengths_0") != nullptr)
      return ragged(f, path, example);
    std::vector<std::int64_t> dims = f.dims;
    std::string key = path;
    if (const Value* shape = find_field(example, path + "/shape");
        shape != nullptr && unknown > 0) {
      // Shapes that the number of values does not tell.
      const List& given = *shape->get_if<List>();
      if (given.size() != dims.size()) fail(path, "the stored shape has another rank");
      for (std::size_t i = 0; i < dims.size(); ++i) {
        const auto* d = given[i].get_if<std::int64_t>();
        if (d == nullptr || *d < 0) fail(path, "the stored shape is malformed");
        dims[i] = *d;
      }
      key = path + "/value";
    } else if (unknown > 1) {
      const List& values = list_at(example, path);
      if (!values.empty()) fail(path, "several dimensions are unknown");
      std::replace(dims.begin(), dims.end(), std::int64_t{-1}, std::int64_t{0});
    }
    return shaped(f, path, list_at(example, key), dims);
  }

  // Dimensions with the unknown one found from the number of values.
  static std::vector<std::int64_t> solve(std::vector<std::int64_t> dims, std::size_t n,
                                         const std::string& path) {
    std::int64_t known = 1;
    std::int64_t* open = nullptr;
    for (std::int64_t& d : dims) {
      if (d < 0)
        open = &d;
      else if (__builtin_mul_overflow(known, d, &known))
        fail(path, "the shape is too large");
    }
    const auto have = static_cast<std::int64_t>(n);
    if (open != nullptr) *open = known == 0 ? 0 : have / known;
    if (open != nullptr ? (known == 0 ? have != 0 : have % known != 0) : have != known)
      fail(path, fmt::format("{} values do not fit the shape", n));
    return dims;
  }

  Value item(const Feature& f, const std::string& path, const Value& v) const {
    const auto* b = v.get_if<Bytes>();
    if (b == nullptr) fail(path, "numbers where bytes are due");
    if (f.kind == FeatureKind::kImage) {
      if (!options_.decode_images) return *b;
      return decode_image(b->data, path, options_.max_record_bytes);
    }
    if (is_utf8(b->data)) return b->data;
    return *b;
  }

  Value nested(const Feature& f, const std::string& path, const List& values,
               const std::vector<std::int64_t>& dims, std::size_t axis, std::size_t& at) const {
    if (axis == dims.size()) return item(f, path, values[at++]);
    List out;
    for (std::int64_t i = 0; i < dims[axis]; ++i)
      out.push_back(nested(f, path, values, dims, axis + 1, at));
    return out;
  }

  Value shaped(const Feature& f, const std::string& path, const List& values,
               const std::vector<std::int64_t>& dims) const {
    if (f.kind == FeatureKind::kTensor && f.dtype &&
        (f.encoding == "bytes" || f.encoding == "zlib"))
      return packed(f, path, values, dims);
    const std::vector<std::int64_t> solved = solve(dims, values.size(), path);
    if (f.kind != FeatureKind::kTensor || !f.dtype) {
      std::size_t at = 0;
      // Empty dimensions cost nothing in the file and must cost little here.
      std::int64_t outer = 1;
      for (const std::int64_t d : solved) outer *= std::max<std::int64_t>(d, 1);
      if (outer > (1 << 24)) fail(path, "the shape is too large");
      return nested(f, path, values, solved, 0, at);
    }
    return numbers(*f.dtype, path, values, 0, values.size(), solved);
  }

  static HostArray numbers(DType t, const std::string& path, const List& values, std::size_t from,
                           std::size_t to, const std::vector<std::int64_t>& dims) {
    const bool floats = is_float(t);
    std::vector<double> d;
    std::vector<std::int64_t> i;
    for (std::size_t k = from; k < to; ++k) {
      if (const auto* x = values[k].get_if<double>(); x != nullptr && floats)
        d.push_back(*x);
      else if (const auto* n = values[k].get_if<std::int64_t>(); n != nullptr && !floats)
        i.push_back(*n);
      else
        fail(path, fmt::format("values that are not {}", dtype_name(t)));
    }
    Dims shape;
    for (const std::int64_t x : dims) shape.push_back(x);
    return floats ? HostArray::from(d, shape).astype(t) : HostArray::from(i, shape).astype(t);
  }

  Value packed(const Feature& f, const std::string& path, const List& values,
               const std::vector<std::int64_t>& dims) const {
    if (values.size() != 1 || values[0].get_if<Bytes>() == nullptr)
      fail(path, "encoded tensors are one value of bytes");
    std::string data = values[0].get_if<Bytes>()->data;
    const auto unit = static_cast<std::size_t>(dtype_bytes(*f.dtype));
    if (f.encoding == "zlib") {
      std::string out, why;
      bool known = true;
      std::uint64_t size = unit;
      for (const std::int64_t d : dims) {
        known = known && d >= 0;
        if (known && __builtin_mul_overflow(size, static_cast<std::uint64_t>(d), &size))
          known = false;
      }
      if (!known || size > options_.max_record_bytes) fail(path, "the shape must be known");
      if (!decompress(Codec::kZlib, data, size, out, why)) fail(path, why);
      data = std::move(out);
    }
    if (data.size() % unit != 0) fail(path, "the bytes are no whole numbers");
    Dims shape;
    for (const std::int64_t d : solve(dims, data.size() / unit, path)) shape.push_back(d);
    return HostArray::from_bytes(*f.dtype, shape, as_byte_span(data));
  }

  Value ragged(const Feature& f, const std::string& path, const Fields& example) const {
    const List& flat = list_at(example, path + "/ragged_flat_values");
    std::vector<const List*> lengths;
    while (const Value* v =
               find_field(example, fmt::format("{}/ragged_row_lengths_{}", path, lengths.size())))
      lengths.push_back(v->get_if<List>());
    const std::vector<std::int64_t> inner(
        f.dims.begin() + static_cast<std::ptrdiff_t>(std::min(f.dims.size(), lengths.size() + 1)),
        f.dims.end());
    std::int64_t per_item = 1;
    for (const std::int64_t d : inner)
      if (d < 0 || __builtin_mul_overflow(per_item, d, &per_item))
        fail(path, "an inner dimension is unknown");
    // From the inside: items, then lists of them by each level's lengths.
    List items;
    if (per_item == 0 || flat.size() % static_cast<std::size_t>(per_item) != 0)
      fail(path, "the values do not fit the shape");
    for (std::size_t k = 0; k < flat.size(); k += static_cast<std::size_t>(per_item)) {
      if (f.kind == FeatureKind::kTensor && f.dtype)
        items.emplace_back(
            numbers(*f.dtype, path, flat, k, k + static_cast<std::size_t>(per_item), inner));
      else
        items.push_back(item(f, path, flat[k]));
    }
    for (std::size_t level = lengths.size(); level-- > 0;) {
      List rows;
      std::size_t at = 0;
      for (const Value& n : *lengths[level]) {
        const auto* i = n.get_if<std::int64_t>();
        if (i == nullptr || *i < 0 || static_cast<std::uint64_t>(*i) > items.size() - at)
          fail(path, "row lengths do not add up");
        rows.emplace_back(List(items.begin() + static_cast<std::ptrdiff_t>(at),
                               items.begin() + static_cast<std::ptrdiff_t>(at) + *i));
        at += static_cast<std::size_t>(*i);
      }
      if (at != items.size()) fail(path, "row lengths do not add up");
      items = std::move(rows);
    }
    return items;
  }

  Feature root_;
  ReadOptions options_;
};

// ---- splits

struct Shard {
  std::string path;
  std::uint64_t count = 0;
};
struct Split {
  std::string name;
  std::vector<Shard> shards;
  std::uint64_t count = 0;
};

std::string expand(std::string_view pattern, const std::string& dataset, const std::string& split,
                   const std::string& format, std::size_t k, std::size_t n) {
  std::string out;
  while (!pattern.empty()) {
    const std::size_t open = pattern.find('{');
    out += pattern.substr(0, open);
    if (open == pattern.npos) break;
    const std::size_t close = pattern.find('}', open);
    const std::string_view key = pattern.substr(open + 1, close - open - 1);
    if (key == "DATASET")
      out += dataset;
    else if (key == "SPLIT")
      out += split;
    else if (key == "FILEFORMAT")
      out += format;
    else if (key == "SHARD_INDEX")
      out += fmt::format("{:05}", k);
    else if (key == "NUM_SHARDS")
      out += fmt::format("{:05}", n);
    else if (key == "SHARD_X_OF_Y")
      out += fmt::format("{:05}-of-{:05}", k, n);
    else
      bad_description("filepathTemplate", fmt::format("the variable \"{}\"", key));
    pattern.remove_prefix(close == pattern.npos ? pattern.size() : close + 1);
  }
  return out;
}

struct Range {
  std::size_t split;
  std::uint64_t begin, end;
};

// "train", "train[10%:20%]", "train[:-100]", "test[1shard:]", and sums of them with "+".
class SplitText {
 public:
  SplitText(std::string_view text, const std::vector<Split>& splits) : splits_(splits) {
    while (true) {
      const std::size_t plus = text.find('+');
      one(text.substr(0, plus));
      if (plus == text.npos) break;
      text.remove_prefix(plus + 1);
    }
  }
  std::vector<Range> ranges;

 private:
  [[noreturn]] static void fail(std::string_view text, std::string_view expected) {
    throw_user_error({"split", expected, fmt::format("\"{}\"", text),
                      "Write train, train[10%:20%], train[:100], train[2shard], or a sum with +"});
  }
  void one(std::string_view text) {
    const auto trim = [](std::string_view s) {
      while (s.starts_with(' ')) s.remove_prefix(1);
      while (s.ends_with(' ')) s.remove_suffix(1);
      return s;
    };
    text = trim(text);
    const std::string_view name = text.substr(0, text.find('['));
    std::size_t which = 0;
    std::string names;
    for (; which < splits_.size() && splits_[which].name != name; ++which)
      names += (names.empty() ? "" : ", ") + splits_[which].name;
    if (which == splits_.size()) fail(name, "one of the splits " + names);
    const Split& s = splits_[which];
    if (name.size() == text.size()) {
      ranges.push_back({which, 0, s.count});
      return;
    }
    std::string_view slice = text.substr(name.size() + 1);
    if (!slice.ends_with(']')) fail(text, "a closing bracket");
    slice.remove_suffix(1);
    const std::size_t colon = slice.find(':');
    if (colon == slice.npos) {
      // One shard, or one percent, by its number.
      if (!slice.ends_with("shard") && !slice.ends_with("%"))
        fail(text, "a range, or a number of a shard");
      const std::uint64_t begin = bound(slice, s, 0, text);
      const std::string_view unit = slice.ends_with("%") ? "%" : "shard";
      const std::string after =
          fmt::format("{}{}", number(slice.substr(0, slice.size() - unit.size()), text) + 1, unit);
      ranges.push_back(
          {which, begin, after.starts_with("0") ? s.count : bound(after, s, s.count, text)});
      return;
    }
    const std::uint64_t begin = bound(trim(slice.substr(0, colon)), s, 0, text);
    const std::uint64_t end = bound(trim(slice.substr(colon + 1)), s, s.count, text);
    ranges.push_back({which, begin, std::max(begin, end)});
  }
  static std::int64_t number(std::string_view s, std::string_view text) {
    std::int64_t v = 0;
    const auto r = std::from_chars(s.data(), s.data() + s.size(), v);
    if (r.ec != std::errc() || r.ptr != s.data() + s.size() ||
        std::abs(v) > (std::int64_t{1} << 53))
      fail(text, "numbers");
    return v;
  }
  static std::uint64_t bound(std::string_view s, const Split& split, std::uint64_t otherwise,
                             std::string_view text) {
    if (s.empty()) return otherwise;
    const auto n = static_cast<std::int64_t>(split.count);
    std::int64_t v;
    if (s.ends_with('%')) {
      v = number(s.substr(0, s.size() - 1), text);
      if (v < -100 || v > 100) fail(text, "percentages from -100 to 100");
      if (v < 0) v += 100;
      // The nearest record, halves to the even one.
      v = static_cast<std::int64_t>(
          std::nearbyint(static_cast<double>(v) * static_cast<double>(n) / 100.0));
    } else if (s.ends_with("shard")) {
      const auto shards = static_cast<std::int64_t>(split.shards.size());
      v = number(s.substr(0, s.size() - 5), text);
      if (v < 0) v += shards;
      if (v < 0 || v > shards) fail(text, fmt::format("shards from 0 to {}", shards));
      std::uint64_t sum = 0;
      for (std::int64_t k = 0; k < v; ++k) sum += split.shards[static_cast<std::size_t>(k)].count;
      v = static_cast<std::int64_t>(sum);
    } else {
      v = number(s, text);
      if (v < 0) v += n;
    }
    return static_cast<std::uint64_t>(std::clamp<std::int64_t>(v, 0, n));
  }
  const std::vector<Split>& splits_;
};

class TfdsReader final : public RecordReader, public std::enable_shared_from_this<TfdsReader> {
 public:
  TfdsReader(const std::string& folder, const ReadOptions& options)
      : folder_(folder), options_(options) {
    const std::string info_path = join_path(folder, "dataset_info.json");
    const Value info = parse_json(read_file(info_path), info_path);
    const Fields& f = object(info, info_path);
    dataset_ = text_or(f, "name", base_name(parent_path(folder)));
    version_ = text_or(f, "version", "");
    file_format_ = text_or(f, "fileFormat", "tfrecord");
    const Value* splits = find_field(f, "splits");
    const auto* list = splits == nullptr ? nullptr : splits->get_if<List>();
    if (list == nullptr) bad_description(info_path, "there are no splits");
    for (const Value& v : *list) parse_split(object(v, info_path), info_path);
    const std::string features_path = join_path(folder, "features.json");
    Feature root =
        parse_feature(parse_json(read_file(features_path), features_path), features_path, 0);
    if (root.kind != FeatureKind::kDict)
      bad_description(features_path, "the root is no dictionary");
    decoder_ = std::make_unique<ExampleDecoder>(std::move(root), options_);
    std::string text = options_.split;
    if (text.empty())
      for (const Split& s : splits_) text += (text.empty() ? "" : "+") + s.name;
    if (!splits_.empty()) ranges_ = SplitText(text, splits_).ranges;
    first_.push_back(0);
    for (const Range& r : ranges_) first_.push_back(first_.back() + (r.end - r.begin));
  }
  std::string_view format() const override { return "tfds"; }
  bool structured() const override { return true; }
  std::uint64_t count() const override { return first_.back(); }
  Record read(std::uint64_t i) const override {
    const auto [shard, k] = place(i);
    Record r = open(*shard)->read(k);
    decode(*shard, k, r);
    return r;
  }
  std::unique_ptr<RecordCursor> scan(std::uint64_t begin) const override {
    return make_indexed_cursor(shared_from_this(), begin);
  }
  void verify(const DamageSink& sink) const override {
    for (const Split& s : splits_)
      for (const Shard& shard : s.shards) {
        try {
          const ReaderPtr reader = open(shard);
          reader->verify(sink);
          const auto cursor = reader->scan();
          Record r;
          std::uint64_t k = 0;
          for (; cursor->next(r); ++k) {
            try {
              decode(shard, k, r);
            } catch (const DamageError& e) {
              sink(e);
            }
          }
          if (k != shard.count)
            throw DamageError(shard.path, 0, file_size(shard.path),
                              fmt::format("the shard holds {} records, dataset_info.json says {}",
                                          k, shard.count));
        } catch (const DamageError& e) {
          sink(e);
        }
      }
  }
  Facts info() const override {
    Facts facts{{"dataset", Value(dataset_)},
                {"version", Value(version_)},
                {"file_format", Value(file_format_)}};
    for (const Split& s : splits_)
      facts.emplace_back("split " + s.name,
                         Value(fmt::format("{} records in {} shards", s.count, s.shards.size())));
    return facts;
  }
  std::pair<std::string, std::uint64_t> locate(std::uint64_t i) const override {
    if (i >= count()) return {folder_, i};
    const auto [shard, k] = place(i);
    return {shard->path, k};
  }

 private:
  void parse_split(const Fields& f, std::string_view name) {
    Split s;
    s.name = text_or(f, "name", "");
    const std::string pattern =
        text_or(f, "filepathTemplate", "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}");
    if (const Value* lengths = find_field(f, "shardLengths")) {
      const auto* list = lengths->get_if<List>();
      if (list == nullptr) bad_description(name, "\"shardLengths\" is no list");
      for (std::size_t k = 0; k < list->size(); ++k) {
        const std::int64_t n = integer((*list)[k], name);
        if (n < 0 || __builtin_add_overflow(s.count, static_cast<std::uint64_t>(n), &s.count) ||
            s.count > INT64_MAX)
          bad_description(name, "a shard's length is out of range");
        const std::string file = expand(pattern, dataset_, s.name, file_format_, k, list->size());
        if (file.find("..") != file.npos || file.starts_with('/'))
          bad_description(name, fmt::format("the shard \"{}\" lies outside of the folder", file));
        s.shards.push_back({join_path(folder_, file), static_cast<std::uint64_t>(n)});
      }
    }
    splits_.push_back(std::move(s));
  }
  std::pair<const Shard*, std::uint64_t> place(std::uint64_t i) const {
    check_index(folder_, i, count());
    const auto r = static_cast<std::size_t>(std::upper_bound(first_.begin(), first_.end(), i) -
                                            first_.begin() - 1);
    std::uint64_t k = ranges_[r].begin + (i - first_[r]);
    for (const Shard& s : splits_[ranges_[r].split].shards) {
      if (k < s.count) return {&s, k};
      k -= s.count;
    }
    throw_internal_error("shards", "the counts add up", SourceLoc::current());
  }
  ReaderPtr open(const Shard& shard) const {
    const std::lock_guard lock(mutex_);
    if (open_path_ == shard.path) return open_reader_;
    ReadOptions o = options_;
    o.format = file_format_;
    o.columns.clear();
    open_reader_ = open_records(shard.path, o);
    open_path_ = shard.path;
    return open_reader_;
  }
  void decode(const Shard& shard, std::uint64_t k, Record& r) const {
    if (file_format_ == "parquet") return;  // its columns are the features already
    try {
      r.fields = decoder_->decode(r.bytes);
    } catch (const UserError& e) {
      throw DamageError(shard.path, 0, file_size(shard.path),
                        fmt::format("record {}: {}", k, e.message()));
    }
    r.bytes.clear();
  }

  std::string folder_;
  ReadOptions options_;
  std::string dataset_, version_, file_format_;
  std::vector<Split> splits_;
  std::unique_ptr<ExampleDecoder> decoder_;
  std::vector<Range> ranges_;
  std::vector<std::uint64_t> first_;
  mutable std::mutex mutex_;
  mutable std::string open_path_;
  mutable ReaderPtr open_reader_;
};

}  // namespace

ReaderPtr make_tfds_reader(const std::string& folder, const ReadOptions& options) {
  return std::make_shared<TfdsReader>(folder, options);
}

}  // namespace xylem::data::internal
