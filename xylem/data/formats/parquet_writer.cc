#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_map>

#include "xylem/data/formats/internal/checks.h"
#include "xylem/data/formats/internal/codec.h"
#include "xylem/data/formats/internal/formats.h"
#include "xylem/data/formats/internal/parquet_encoding.h"
#include "xylem/data/formats/internal/thrift.h"

// Writes records as Parquet. The schema is that of the first row group's records; everything is
// optional.

namespace xylem::data::internal {
namespace parquet {
namespace {

enum class Kind { kNull, kBool, kInt, kUnsigned, kDouble, kText, kBytes, kArray, kList, kStruct };

// What values of a field are, merged over records.
struct Shape {
  struct Field;
  Kind kind = Kind::kNull;
  DType dtype = DType::kF32;  // of kArray: 0-d arrays, as leaves
  bool map = false;           // kList: of structs {key, value}, as a Parquet map
  std::vector<Shape> items;   // kList: one
  std::vector<Field> fields;
};
struct Shape::Field {
  std::string name;
  Shape shape;
};

const char* kind_name(Kind k) {
  static constexpr const char* kNames[] = {"null",    "a truth value", "an integer", "an integer",
                                           "a float", "text",          "bytes",      "an array",
                                           "a list",  "named fields"};
  return kNames[static_cast<int>(k)];
}

Shape leaf_of(DType t) {
  if (t == DType::kBool) return {Kind::kBool, t, false, {}, {}};
  if (is_complex(t) || (is_float(t) && dtype_bits(t) < 16))
    throw_user_error({"write parquet", "arrays of numbers that Parquet has", dtype_name(t),
                      "Convert them to f32 first"});
  return {Kind::kArray, t == DType::kBF16 ? DType::kF32 : t, false, {}, {}};
}

Shape shape_of(const Value& v) {
  Shape s;
  if (v.get_if<bool>()) s.kind = Kind::kBool;
  if (v.get_if<std::int64_t>()) s.kind = Kind::kInt;
  if (v.get_if<std::uint64_t>()) s.kind = Kind::kUnsigned;
  if (v.get_if<double>()) s.kind = Kind::kDouble;
  if (v.get_if<std::string>()) s.kind = Kind::kText;
  if (v.get_if<Bytes>()) s.kind = Kind::kBytes;
  if (const auto* a = v.get_if<HostArray>()) {
    s = leaf_of(a->dtype());
    for (int i = 0; i < a->rank(); ++i) {
      Shape list;
      list.kind = Kind::kList;
      list.items.push_back(std::move(s));
      s = std::move(list);
    }
  }
  return s;
}

void merge(Shape& into, const Value& v, const std::string& path);

void merge_shape(Shape& into, const Shape& s, const std::string& path) {
  if (s.kind == Kind::kNull) return;
  if (into.kind == Kind::kNull) {
    into = s;
    return;
  }
  const auto number = [](Kind k) {
    return k == Kind::kInt || k == Kind::kUnsigned || k == Kind::kDouble;
  };
  if (number(into.kind) && number(s.kind) && into.kind != s.kind) {
    into.kind =
        into.kind == Kind::kDouble || s.kind == Kind::kDouble ? Kind::kDouble : Kind::kUnsigned;
    return;
  }
  if (into.kind != s.kind || (s.kind == Kind::kArray && s.dtype != into.dtype))
    throw_user_error({fmt::format("write parquet: field \"{}\"", path),
                      fmt::format("{} as in earlier records", kind_name(into.kind)),
                      kind_name(s.kind), "Convert the records first, or write jsonl"});
  if (s.kind == Kind::kList) {
    if (s.items.empty()) return;
    if (into.items.empty()) into.items.emplace_back();
    merge_shape(into.items[0], s.items[0], path);
  }
}

void merge_fields(Shape& into, const Fields& fields, const std::string& path) {
  for (const auto& [name, value] : fields) {
    const auto old = std::find_if(into.fields.begin(), into.fields.end(),
                                  [&](const auto& f) { return f.name == name; });
    Shape* field = nullptr;
    if (old != into.fields.end()) {
      field = &old->shape;
    } else {
      into.fields.push_back({name, Shape{}});
      field = &into.fields.back().shape;
    }
    merge(*field, value, path.empty() ? name : path + "." + name);
  }
}

void merge(Shape& into, const Value& v, const std::string& path) {
  if (const auto* list = v.get_if<List>()) {
    Shape own;
    own.kind = Kind::kList;
    merge_shape(into, own, path);
    if (into.items.empty()) into.items.emplace_back();
    for (const Value& item : *list) merge(into.items[0], item, path);
  } else if (const auto* fields = v.get_if<Fields>()) {
    Shape own;
    own.kind = Kind::kStruct;
    merge_shape(into, own, path);
    merge_fields(into, *fields, path);
  } else {
    merge_shape(into, shape_of(v), path);
  }
}

// ---- columns

struct LeafType {
  Type type = Type::kInt32;
  std::int32_t length = 0;
  int converted = -1;
  // Writes the logical type's struct; nothing for plain types.
  void (*logical)(ThriftWriter&) = nullptr;
};

LeafType leaf_type(const Shape& s) {
  const auto text = [](ThriftWriter& w) {
    w.begin_struct_field(1);
    w.end_struct();
  };
  const auto null = [](ThriftWriter& w) {
    w.begin_struct_field(11);
    w.end_struct();
  };
  const auto half = [](ThriftWriter& w) {
    w.begin_struct_field(15);
    w.end_struct();
  };
  switch (s.kind) {
    case Kind::kBool: return {Type::kBoolean};
    case Kind::kInt: return {Type::kInt64};
    case Kind::kUnsigned: return {Type::kInt64, 0, 14, nullptr};
    case Kind::kDouble: return {Type::kDouble};
    case Kind::kText: return {Type::kByteArray, 0, 0, text};
    case Kind::kBytes: return {Type::kByteArray};
    case Kind::kArray:
      switch (s.dtype) {
        case DType::kF16: return {Type::kFixed, 2, -1, half};
        case DType::kF32: return {Type::kFloat};
        case DType::kF64: return {Type::kDouble};
        case DType::kU8: return {Type::kInt32, 0, 11, nullptr};
        case DType::kU16: return {Type::kInt32, 0, 12, nullptr};
        case DType::kU32: return {Type::kInt32, 0, 13, nullptr};
        case DType::kU64: return {Type::kInt64, 0, 14, nullptr};
        case DType::kI8:
        case DType::kI4:
        case DType::kI2: return {Type::kInt32, 0, 15, nullptr};
        case DType::kU4:
        case DType::kU2: return {Type::kInt32, 0, 11, nullptr};
        case DType::kI16: return {Type::kInt32, 0, 16, nullptr};
        case DType::kI32: return {Type::kInt32};
        default: return {Type::kInt64};
      }
    default: return {Type::kInt32, 0, -1, null};
  }
}

// Entries of a leaf in one row group.
struct Column {
  std::vector<std::string> path;
  LeafType leaf;
  int def = 0, rep = 0;
  std::vector<std::uint32_t> defs, reps;
  std::vector<std::uint64_t> numbers;  // of number types, by their bits
  std::vector<std::string> texts;      // of byte arrays
  std::size_t bytes = 0;

  bool is_text() const { return leaf.type == Type::kByteArray || leaf.type == Type::kFixed; }
  std::size_t num_values() const { return is_text() ? texts.size() : numbers.size(); }
  void clear() {
    defs.clear();
    reps.clear();
    numbers.clear();
    texts.clear();
    bytes = 0;
  }
};

std::uint64_t bits_of(double d) {
  std::uint64_t b;
  std::memcpy(&b, &d, 8);
  return b;
}
std::uint64_t bits_of(float f) {
  std::uint32_t b;
  std::memcpy(&b, &f, 4);
  return b;
}

struct WriterOptions {
  Codec codec = Codec::kZstd;
  int codec_id = 6;
  CompressOptions level;
  bool dictionary = true, delta = false, v2 = false, crc = true;
  std::size_t row_group_rows = 0, page_rows = 20000;
};

class ParquetWriter final : public RecordWriter {
 public:
  ParquetWriter(std::unique_ptr<ByteSink> sink, std::string_view options) : sink_(std::move(sink)) {
    OptionsText text("parquet", options);
    std::string value;
    static constexpr std::pair<const char*, std::pair<Codec, int>> kCodecs[] = {
        {"none", {Codec::kNone, 0}}, {"snappy", {Codec::kSnappy, 1}},
        {"gzip", {Codec::kGzip, 2}}, {"brotli", {Codec::kBrotli, 4}},
        {"zstd", {Codec::kZstd, 6}}, {"lz4_raw", {Codec::kLz4Raw, 7}}};
    int given = 0;
    for (const auto& [name, codec] : kCodecs)
      if (text.take(name, value)) {
        ++given;
        options_.codec = codec.first;
        options_.codec_id = codec.second;
        if (!value.empty())
          options_.level.level =
              static_cast<int>(text.take_int(name, 0, 0,
                                             codec.first == Codec::kZstd     ? 22
                                             : codec.first == Codec::kBrotli ? 11
                                                                             : 9));
      }
    if (given > 1)
      throw_user_error({"parquet options", "one codec", "several", "Keep the one that is meant"});
    options_.dictionary = text.take_bool("dictionary", true);
    options_.delta = text.take_bool("delta", false);
    options_.crc = text.take_bool("page_crc", true);
    options_.v2 = text.take_int("data_page", 1, 1, 2) == 2;
    options_.row_group_rows =
        static_cast<std::size_t>(text.take_int("row_group_rows", 1 << 20, 1, INT32_MAX));
    options_.page_rows = static_cast<std::size_t>(text.take_int("page_rows", 20000, 1, INT32_MAX));
    if (text.take("maps", value))
      for (std::size_t at = 0; at <= value.size();) {
        const std::size_t end = std::min(value.find('+', at), value.size());
        maps_.push_back(value.substr(at, end - at));
        at = end + 1;
      }
    text.finish();
    sink_->write("PAR1");
  }
  bool structured() const override { return true; }

  void write(const Record& r) override {
    pending_.push_back(r.fields);
    for (auto& [name, v] : pending_.back())
      if (is_map(name)) name_pairs(name, v);
    pending_bytes_ += size_of(Value(r.fields));
    if (pending_.size() >= options_.row_group_rows || pending_bytes_ >= (std::size_t{64} << 20))
      flush();
  }

  void close() override {
    if (!pending_.empty() || !has_schema_) flush();
    ThriftWriter w;
    w.begin_struct();
    w.put_i32(1, options_.v2 ? 2 : 1);
    write_schema(w);
    w.put_i64(3, rows_);
    w.begin_list(4, ThriftType::kStruct, groups_.size());
    for (const Group& g : groups_) write_group(w, g);
    w.put_binary(6, "xylem version " XYLEM_VERSION);
    // The order in which minima and maxima were taken: the types' own.
    w.begin_list(7, ThriftType::kStruct, columns_.size());
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      w.begin_struct();
      w.begin_struct_field(1);
      w.end_struct();
      w.end_struct();
    }
    w.end_struct();
    const std::string footer = w.take();
    sink_->write(footer);
    ByteWriter tail;
    tail.write(static_cast<std::uint32_t>(footer.size()));
    tail.write_string("PAR1");
    sink_->write(tail.str());
    sink_->commit();
  }

 private:
  struct ChunkFacts {
    std::int64_t values = 0, compressed = 0, uncompressed = 0, data_offset = 0,
                 dictionary_offset = 0, nulls = 0;
    std::vector<int> encodings;
    std::optional<std::string> min, max;
  };
  struct Group {
    std::vector<ChunkFacts> columns;
    std::int64_t rows = 0;
  };

  static std::size_t size_of(const Value& v) {
    std::size_t n = 32;
    if (const auto* s = v.get_if<std::string>()) n += s->size();
    if (const auto* b = v.get_if<Bytes>()) n += b->data.size();
    if (const auto* a = v.get_if<HostArray>()) n += a->nbytes();
    if (const auto* l = v.get_if<List>())
      for (const Value& x : *l) n += size_of(x);
    if (const auto* f = v.get_if<Fields>())
      for (const auto& [k, x] : *f) n += size_of(x);
    return n;
  }

  // ---- maps: lists of pairs in records, lists of structs on the way to the file

  bool is_map(const std::string& name) const {
    return std::find(maps_.begin(), maps_.end(), name) != maps_.end();
  }

  static void name_pairs(const std::string& name, Value& v) {
    const auto refuse = [&] {
      throw_user_error({fmt::format("write parquet: map \"{}\"", name),
                        "a list of pairs [key, value], whose keys are not null",
                        fmt::format("{:.100}", to_json(v)), "Leave it out of maps"});
    };
    if (v.is_null()) return;
    const auto* pairs = v.get_if<List>();
    if (pairs == nullptr) refuse();
    List named;
    for (const Value& pair : *pairs) {
      const auto* two = pair.get_if<List>();
      if (two == nullptr || two->size() != 2 || (*two)[0].is_null() || (*two)[0].get_if<List>() ||
          (*two)[0].get_if<Fields>() || (*two)[0].get_if<HostArray>())
        refuse();
      named.push_back(Value(Fields{{"key", (*two)[0]}, {"value", (*two)[1]}}));
    }
    v = Value(std::move(named));
  }

  void mark_maps() {
    for (auto& [name, s] : schema_.fields) {
      if (!is_map(name)) continue;
      s.kind = Kind::kList;
      s.map = true;
      if (!s.items.empty() && s.items[0].kind == Kind::kStruct) continue;
      // No entry tells of what kind keys are.
      Shape entry, key;
      entry.kind = Kind::kStruct;
      key.kind = Kind::kText;
      entry.fields = {{"key", key}, {"value", Shape{}}};
      s.items.assign(1, entry);
    }
  }

  // ---- schema

  void add_columns(const Shape& s, std::vector<std::string> path, int def, int rep) {
    if (s.map) {
      path.push_back("key_value");
      path.push_back("key");
      // A key is there where its entry is, so it has no level of its own.
      add_columns(s.items[0].fields[0].shape, path, def + 1, rep + 1);
      path.back() = "value";
      add_columns(s.items[0].fields[1].shape, path, def + 2, rep + 1);
    } else if (s.kind == Kind::kList) {
      path.push_back("list");
      path.push_back("element");
      static const Shape kNothing;
      add_columns(s.items.empty() ? kNothing : s.items[0], path, def + 2, rep + 1);
    } else if (s.kind == Kind::kStruct) {
      if (s.fields.empty())
        throw_user_error({fmt::format("write parquet: field \"{}\"", path.back()),
                          "objects with fields", "only empty ones",
                          "Leave the field out with --columns"});
      for (const auto& [name, field] : s.fields) {
        path.push_back(name);
        add_columns(field, path, def + 1, rep);
        path.pop_back();
      }
    } else {
      Column c;
      c.path = path;
      c.leaf = leaf_type(s);
      c.def = def;
      c.rep = rep;
      columns_.push_back(std::move(c));
    }
  }

  static void count_nodes(const Shape& s, std::size_t& n) {
    ++n;
    if (s.kind == Kind::kList) {
      if (!s.map) ++n;  // of a map, the repeated group is the entry itself
      static const Shape kNothing;
      count_nodes(s.items.empty() ? kNothing : s.items[0], n);
    }
    for (const auto& [name, f] : s.fields) count_nodes(f, n);
  }

  void write_schema(ThriftWriter& w) const {
    std::size_t n = 1;
    for (const auto& [name, f] : schema_.fields) count_nodes(f, n);
    w.begin_list(2, ThriftType::kStruct, n);
    w.begin_struct();
    w.put_binary(4, "schema");
    w.put_i32(5, static_cast<std::int64_t>(schema_.fields.size()));
    w.end_struct();
    for (const auto& [name, f] : schema_.fields) write_node(w, name, f);
  }

  static void write_node(ThriftWriter& w, const std::string& name, const Shape& s,
                         bool required = false) {
    w.begin_struct();
    if (s.map) {
      w.put_i32(3, 1);
      w.put_binary(4, name);
      w.put_i32(5, 1);
      w.put_i32(6, 1);
      w.begin_struct_field(10);
      w.begin_struct_field(2);
      w.end_struct();
      w.end_struct();
      w.end_struct();
      w.begin_struct();
      w.put_i32(3, 2);
      w.put_binary(4, "key_value");
      w.put_i32(5, 2);
      w.end_struct();
      write_node(w, "key", s.items[0].fields[0].shape, true);
      write_node(w, "value", s.items[0].fields[1].shape);
    } else if (s.kind == Kind::kList) {
      w.put_i32(3, 1);
      w.put_binary(4, name);
      w.put_i32(5, 1);
      w.put_i32(6, 3);
      w.begin_struct_field(10);
      w.begin_struct_field(3);
      w.end_struct();
      w.end_struct();
      w.end_struct();
      w.begin_struct();
      w.put_i32(3, 2);
      w.put_binary(4, "list");
      w.put_i32(5, 1);
      w.end_struct();
      static const Shape kNothing;
      write_node(w, "element", s.items.empty() ? kNothing : s.items[0]);
    } else if (s.kind == Kind::kStruct) {
      w.put_i32(3, 1);
      w.put_binary(4, name);
      w.put_i32(5, static_cast<std::int64_t>(s.fields.size()));
      w.end_struct();
      for (const auto& [field, shape] : s.fields) write_node(w, field, shape);
    } else {
      const LeafType leaf = leaf_type(s);
      w.put_i32(1, static_cast<int>(leaf.type));
      if (leaf.type == Type::kFixed) w.put_i32(2, leaf.length);
      w.put_i32(3, required ? 0 : 1);
      w.put_binary(4, name);
      if (leaf.converted >= 0) w.put_i32(6, leaf.converted);
      if (leaf.logical != nullptr) {
        w.begin_struct_field(10);
        leaf.logical(w);
        w.end_struct();
      }
      w.end_struct();
    }
  }

  // ---- taking records apart

  // Nothing at `s`: one entry in each column below.
  void put_null(const Shape& s, std::size_t& column, int rep, int def) {
    if (s.kind == Kind::kList) {
      static const Shape kNothing;
      put_null(s.items.empty() ? kNothing : s.items[0], column, rep, def);
    } else if (s.kind == Kind::kStruct) {
      for (const auto& [name, f] : s.fields) put_null(f, column, rep, def);
    } else {
      Column& c = columns_[column++];
      c.reps.push_back(static_cast<std::uint32_t>(rep));
      c.defs.push_back(static_cast<std::uint32_t>(def));
    }
  }

  static std::size_t num_leaves(const Shape& s) {
    if (s.kind == Kind::kList) return s.items.empty() ? 1 : num_leaves(s.items[0]);
    if (s.kind != Kind::kStruct) return 1;
    std::size_t n = 0;
    for (const auto& [name, f] : s.fields) n += num_leaves(f);
    return n;
  }

  // `def` and `rep`: the levels that are already reached; `list_rep`: that of the innermost list.
  void put(const Shape& s, const Value& v, std::size_t& column, int rep, int def, int list_rep) {
    if (v.is_null()) {
      put_null(s, column, rep, def);
      return;
    }
    if (s.kind == Kind::kStruct) {
      const Fields& fields = *v.get_if<Fields>();
      for (const auto& [name, f] : s.fields) {
        const Value* field = find_field(fields, name);
        static const Value kNull;
        put(f, field == nullptr ? kNull : *field, column, rep, def + 1, list_rep);
      }
      return;
    }
    if (s.kind == Kind::kList) {
      static const Shape kNothing;
      const Shape& item = s.items.empty() ? kNothing : s.items[0];
      const auto* array = v.get_if<HostArray>();
      const List* list = v.get_if<List>();
      const std::size_t n =
          array != nullptr ? static_cast<std::size_t>(array->dims()[0]) : list->size();
      if (n == 0) {
        put_null(item, column, rep, def + 1);
        return;
      }
      const std::size_t first = column;
      for (std::size_t i = 0; i < n; ++i) {
        column = first;
        if (s.map) {
          const Fields& entry = *(*list)[i].get_if<Fields>();
          const int entry_rep = i == 0 ? rep : list_rep + 1;
          Column& key = columns_[column++];
          key.reps.push_back(static_cast<std::uint32_t>(entry_rep));
          key.defs.push_back(static_cast<std::uint32_t>(def + 2));
          put_leaf(key, item.fields[0].shape, entry[0].second);
          put(item.fields[1].shape, entry[1].second, column, entry_rep, def + 2, list_rep + 1);
          continue;
        }
        put(item, array != nullptr ? row_of(*array, i) : (*list)[i], column,
            i == 0 ? rep : list_rep + 1, def + 2, list_rep + 1);
      }
      return;
    }
    Column& c = columns_[column++];
    c.reps.push_back(static_cast<std::uint32_t>(rep));
    c.defs.push_back(static_cast<std::uint32_t>(def + 1));
    put_leaf(c, s, v);
  }

  static Value row_of(const HostArray& a, std::size_t i) {
    Dims dims, strides;
    for (std::size_t k = 1; k < a.dims().size(); ++k) {
      dims.push_back(a.dims()[k]);
      strides.push_back(a.byte_strides()[k]);
    }
    auto bytes = std::shared_ptr<std::byte>(
        a.owner(), a.owner().get() + static_cast<std::int64_t>(i) * a.byte_strides()[0]);
    return HostArray(a.dtype(), dims, std::move(bytes), strides);
  }

  static void put_leaf(Column& c, const Shape& s, const Value& v) {
    switch (s.kind) {
      case Kind::kText:
        c.texts.push_back(*v.get_if<std::string>());
        c.bytes += c.texts.back().size();
        return;
      case Kind::kBytes:
        c.texts.push_back(v.get_if<Bytes>()->data);
        c.bytes += c.texts.back().size();
        return;
      case Kind::kDouble: {
        double d = 0;
        if (const auto* x = v.get_if<double>()) d = *x;
        if (const auto* i = v.get_if<std::int64_t>()) d = static_cast<double>(*i);
        if (const auto* u = v.get_if<std::uint64_t>()) d = static_cast<double>(*u);
        c.numbers.push_back(bits_of(d));
        return;
      }
      case Kind::kUnsigned:
        if (const auto* i = v.get_if<std::int64_t>()) {
          if (*i < 0)
            throw_user_error({fmt::format("write parquet: field \"{}\"", c.path[0]),
                              "integers of 64 bits, all with a sign or all without",
                              fmt::format("{} beside ones above 2^63", *i),
                              "Convert the records first"});
          c.numbers.push_back(static_cast<std::uint64_t>(*i));
        } else {
          c.numbers.push_back(*v.get_if<std::uint64_t>());
        }
        return;
      case Kind::kInt:
        c.numbers.push_back(static_cast<std::uint64_t>(*v.get_if<std::int64_t>()));
        return;
      case Kind::kBool:
        if (const auto* b = v.get_if<bool>())
          c.numbers.push_back(*b);
        else
          c.numbers.push_back(v.get_if<HostArray>()->at(0) != 0);
        return;
      case Kind::kArray: {
        const HostArray a = v.get_if<HostArray>()->to_contiguous();
        if (s.dtype == DType::kF16) {
          c.texts.emplace_back(reinterpret_cast<const char*>(a.data()), 2);
        } else if (s.dtype == DType::kF32) {
          c.numbers.push_back(bits_of(*a.astype(DType::kF32).as<float>()));
        } else if (s.dtype == DType::kF64) {
          c.numbers.push_back(bits_of(*a.as<double>()));
        } else if (s.dtype == DType::kU64) {
          c.numbers.push_back(*a.as<std::uint64_t>());
        } else {
          c.numbers.push_back(
              static_cast<std::uint64_t>(*a.astype(DType::kI64).as<std::int64_t>()));
        }
        return;
      }
      default: return;
    }
  }

  // ---- pages

  void flush() {
    Shape merged = schema_;
    merged.kind = Kind::kStruct;
    for (const Fields& f : pending_) merge_fields(merged, f, "");
    if (!has_schema_) {
      schema_ = merged;
      mark_maps();
      for (const auto& [name, f] : schema_.fields) add_columns(f, {name}, 0, 0);
      for (Column& c : columns_) c.def += 1;
      has_schema_ = true;
    } else {
      check_same(schema_, merged, "");
    }
    for (const Fields& f : pending_) {
      std::size_t column = 0;
      for (const auto& [name, shape] : schema_.fields) {
        const Value* v = find_field(f, name);
        static const Value kNull;
        put(shape, v == nullptr ? kNull : *v, column, 0, 0, 0);
      }
    }
    if (!pending_.empty()) {
      Group g;
      g.rows = static_cast<std::int64_t>(pending_.size());
      rows_ += g.rows;
      for (Column& c : columns_) {
        g.columns.push_back(write_chunk(c));
        c.clear();
      }
      groups_.push_back(std::move(g));
    }
    pending_.clear();
    pending_bytes_ = 0;
  }

  // Later row groups must fit what the first fixed.
  static void check_same(const Shape& a, const Shape& b, const std::string& path) {
    const auto fail = [&](std::string_view given) {
      throw_user_error({fmt::format("write parquet: field \"{}\"", path),
                        "the fields and kinds of the first row group", given,
                        "Begin with a record that has all fields, or make row groups larger "
                        "(row_group_rows)"});
    };
    if (a.kind != b.kind && !(a.kind == Kind::kDouble && b.kind == Kind::kInt))
      fail(kind_name(b.kind));
    if (a.fields.size() != b.fields.size()) fail("a field that is new");
    if (a.items.size() != b.items.size()) fail("items where all lists were empty");
    for (std::size_t i = 0; i < a.items.size(); ++i) check_same(a.items[i], b.items[i], path);
    for (std::size_t i = 0; i < a.fields.size(); ++i)
      check_same(a.fields[i].shape, b.fields[i].shape,
                 path.empty() ? a.fields[i].name : path + "." + a.fields[i].name);
  }

  static void append_plain(std::string& out, const Column& c, std::size_t i) {
    switch (c.leaf.type) {
      case Type::kByteArray: {
        const auto n = static_cast<std::uint32_t>(c.texts[i].size());
        out.append(reinterpret_cast<const char*>(&n), 4);
        out += c.texts[i];
        break;
      }
      case Type::kFixed: out += c.texts[i]; break;
      case Type::kInt32:
      case Type::kFloat: out.append(reinterpret_cast<const char*>(&c.numbers[i]), 4); break;
      default: out.append(reinterpret_cast<const char*>(&c.numbers[i]), 8);
    }
  }

  // Index of each value among the distinct ones; empty if a dictionary would not help.
  static std::vector<std::uint32_t> find_dictionary(const Column& c, std::string& page,
                                                    std::size_t& distinct) {
    std::vector<std::uint32_t> indices;
    const std::size_t n = c.num_values();
    std::unordered_map<std::string_view, std::uint32_t> texts;
    std::unordered_map<std::uint64_t, std::uint32_t> numbers;
    distinct = 0;
    page.clear();
    for (std::size_t i = 0; i < n; ++i) {
      const auto next = static_cast<std::uint32_t>(distinct);
      const auto [index, fresh] = [&]() -> std::pair<std::uint32_t, bool> {
        if (c.is_text()) {
          const auto r = texts.try_emplace(c.texts[i], next);
          return {r.first->second, r.second};
        }
        const auto r = numbers.try_emplace(c.numbers[i], next);
        return {r.first->second, r.second};
      }();
      if (fresh) {
        append_plain(page, c, i);
        ++distinct;
        if (page.size() > (1u << 20) || (distinct > 64 && distinct > n / 2)) return {};
      }
      indices.push_back(index);
    }
    return indices;
  }

  std::string encode_values(const Column& c, std::size_t from, std::size_t to,
                            const std::vector<std::uint32_t>& indices, std::size_t distinct,
                            Encoding encoding) const {
    std::string out;
    if (encoding == Encoding::kRleDictionary) {
      const int width = std::max(1, bit_width(distinct - 1));
      out += static_cast<char>(width);
      return out + encode_hybrid({indices.begin() + static_cast<std::ptrdiff_t>(from),
                                  indices.begin() + static_cast<std::ptrdiff_t>(to)},
                                 width);
    }
    if (encoding == Encoding::kDeltaBinaryPacked) {
      std::vector<std::int64_t> v;
      for (std::size_t i = from; i < to; ++i)
        v.push_back(c.leaf.type == Type::kInt32 ? static_cast<std::int32_t>(c.numbers[i])
                                                : static_cast<std::int64_t>(c.numbers[i]));
      return encode_delta(v);
    }
    if (encoding == Encoding::kDeltaLengthByteArray) {
      std::vector<std::int64_t> lengths;
      for (std::size_t i = from; i < to; ++i)
        lengths.push_back(static_cast<std::int64_t>(c.texts[i].size()));
      out = encode_delta(lengths);
      for (std::size_t i = from; i < to; ++i) out += c.texts[i];
      return out;
    }
    if (encoding == Encoding::kByteStreamSplit) {
      const std::size_t size = c.leaf.type == Type::kFloat ? 4 : 8;
      for (std::size_t k = 0; k < size; ++k)
        for (std::size_t i = from; i < to; ++i) out += static_cast<char>(c.numbers[i] >> (8 * k));
      return out;
    }
    if (c.leaf.type == Type::kBoolean) {
      out.resize((to - from + 7) / 8);
      for (std::size_t i = from; i < to; ++i)
        out[(i - from) / 8] = static_cast<char>(static_cast<unsigned char>(out[(i - from) / 8]) |
                                                (c.numbers[i] & 1) << ((i - from) % 8));
      return out;
    }
    for (std::size_t i = from; i < to; ++i) append_plain(out, c, i);
    return out;
  }

  Encoding choose(const Column& c) const {
    if (!options_.delta) return Encoding::kPlain;
    switch (c.leaf.type) {
      case Type::kInt32:
      case Type::kInt64: return Encoding::kDeltaBinaryPacked;
      case Type::kByteArray: return Encoding::kDeltaLengthByteArray;
      case Type::kFloat:
      case Type::kDouble: return Encoding::kByteStreamSplit;
      default: return Encoding::kPlain;
    }
  }

  void put_page(const std::string& header, const std::string& body) {
    sink_->write(header);
    sink_->write(body);
  }

  ChunkFacts write_chunk(const Column& c) {
    ChunkFacts facts;
    facts.values = static_cast<std::int64_t>(c.defs.size());
    facts.nulls = facts.values - static_cast<std::int64_t>(c.num_values());
    std::string dictionary_page;
    std::size_t distinct = 0;
    std::vector<std::uint32_t> indices;
    if (options_.dictionary && c.leaf.type != Type::kBoolean && c.num_values() > 0)
      indices = find_dictionary(c, dictionary_page, distinct);
    const Encoding encoding = indices.empty() ? choose(c) : Encoding::kRleDictionary;
    facts.encodings = {static_cast<int>(Encoding::kRle), static_cast<int>(encoding)};
    const std::uint64_t begin = sink_->size();
    if (!indices.empty()) {
      facts.encodings.push_back(static_cast<int>(Encoding::kPlain));
      facts.dictionary_offset = static_cast<std::int64_t>(begin);
      const std::string body = compress(options_.codec, dictionary_page, options_.level);
      ThriftWriter w;
      page_start(w, 2, dictionary_page.size(), body);
      w.begin_struct_field(7);
      w.put_i32(1, static_cast<std::int64_t>(distinct));
      w.put_i32(2, 0);
      w.end_struct();
      w.end_struct();
      const std::string header = w.take();
      facts.uncompressed += static_cast<std::int64_t>(header.size() + dictionary_page.size());
      put_page(header, body);
    }
    facts.data_offset = static_cast<std::int64_t>(sink_->size());
    std::size_t entry = 0, value = 0;
    do {
      // Pages end between rows, and neither in many rows nor in many bytes.
      std::size_t end = entry, last = value, rows = 0, nulls = 0, bytes = 0;
      while (end < c.defs.size()) {
        if (c.reps[end] == 0 && (rows == options_.page_rows || bytes > (1u << 20))) break;
        rows += c.reps[end] == 0;
        if (static_cast<int>(c.defs[end]) == c.def) {
          bytes += c.is_text() ? c.texts[last].size() + 4 : 8;
          ++last;
        } else {
          ++nulls;
        }
        ++end;
      }
      write_data_page(c, facts, entry, end, rows, nulls,
                      encode_values(c, value, last, indices, distinct, encoding), encoding);
      entry = end;
      value = last;
    } while (entry < c.defs.size());
    facts.compressed = static_cast<std::int64_t>(sink_->size() - begin);
    find_bounds(c, facts);
    return facts;
  }

  void page_start(ThriftWriter& w, int kind, std::size_t uncompressed,
                  const std::string& body) const {
    w.begin_struct();
    w.put_i32(1, kind);
    w.put_i32(2, static_cast<std::int64_t>(uncompressed));
    w.put_i32(3, static_cast<std::int64_t>(body.size()));
    if (options_.crc)
      w.put_i32(4, static_cast<std::int32_t>(
                       ::crc32_z(0, reinterpret_cast<const Bytef*>(body.data()), body.size())));
  }

  void write_data_page(const Column& c, ChunkFacts& facts, std::size_t from, std::size_t to,
                       std::size_t rows, std::size_t nulls, const std::string& values,
                       Encoding encoding) {
    const auto part = [&](const std::vector<std::uint32_t>& v, int max) {
      if (max == 0) return std::string();
      return encode_hybrid({v.begin() + static_cast<std::ptrdiff_t>(from),
                            v.begin() + static_cast<std::ptrdiff_t>(to)},
                           bit_width(static_cast<std::uint64_t>(max)));
    };
    const std::string reps = part(c.reps, c.rep), defs = part(c.defs, c.def);
    ThriftWriter w;
    std::string body;
    std::size_t plain_size = 0;
    if (options_.v2) {
      body = reps + defs;
      plain_size = body.size() + values.size();
      if (!values.empty()) body += compress(options_.codec, values, options_.level);
      page_start(w, 3, plain_size, body);
      w.begin_struct_field(8);
      w.put_i32(1, static_cast<std::int64_t>(to - from));
      w.put_i32(2, static_cast<std::int64_t>(nulls));
      w.put_i32(3, static_cast<std::int64_t>(rows));
      w.put_i32(4, static_cast<int>(encoding));
      w.put_i32(5, static_cast<std::int64_t>(defs.size()));
      w.put_i32(6, static_cast<std::int64_t>(reps.size()));
      w.put_bool(7, options_.codec != Codec::kNone && !values.empty());
      w.end_struct();
    } else {
      ByteWriter page;
      for (const auto& [levels, max] : {std::pair(&reps, c.rep), std::pair(&defs, c.def)}) {
        if (max == 0) continue;
        page.write(static_cast<std::uint32_t>(levels->size()));
        page.write_string(*levels);
      }
      page.write_string(values);
      plain_size = page.size();
      body = compress(options_.codec, page.str(), options_.level);
      page_start(w, 0, plain_size, body);
      w.begin_struct_field(5);
      w.put_i32(1, static_cast<std::int64_t>(to - from));
      w.put_i32(2, static_cast<int>(encoding));
      w.put_i32(3, static_cast<int>(Encoding::kRle));
      w.put_i32(4, static_cast<int>(Encoding::kRle));
      w.end_struct();
    }
    w.end_struct();
    const std::string header = w.take();
    if (plain_size > INT32_MAX || body.size() > INT32_MAX)
      throw_user_error({"write parquet", "rows below 2 GiB",
                        fmt::format("{} bytes in column {}", plain_size, c.path[0]),
                        "Split the record"});
    facts.uncompressed += static_cast<std::int64_t>(header.size() + plain_size);
    put_page(header, body);
  }

  static void find_bounds(const Column& c, ChunkFacts& facts) {
    const std::size_t n = c.num_values();
    if (n == 0 || c.leaf.type == Type::kFixed) return;
    if (c.is_text()) {
      const auto [min, max] = std::minmax_element(c.texts.begin(), c.texts.end());
      if (min->size() > 256 || max->size() > 256) return;
      facts.min = *min;
      facts.max = *max;
      return;
    }
    const bool wide = c.leaf.type == Type::kInt64 || c.leaf.type == Type::kDouble;
    const bool floats = c.leaf.type == Type::kFloat || c.leaf.type == Type::kDouble;
    const bool is_unsigned = c.leaf.converted >= 11 && c.leaf.converted <= 14;
    const auto as_double = [&](std::uint64_t b) {
      if (wide) {
        double d;
        std::memcpy(&d, &b, 8);
        return d;
      }
      float f;
      const auto narrow = static_cast<std::uint32_t>(b);
      std::memcpy(&f, &narrow, 4);
      return static_cast<double>(f);
    };
    if (floats)
      for (const std::uint64_t b : c.numbers) {
        const double d = as_double(b);
        // NaN has no place in the order; zeros would need the right signs.
        if (d != d || d == 0) return;
      }
    const auto less = [&](std::uint64_t a, std::uint64_t b) {
      if (floats) return as_double(a) < as_double(b);
      if (is_unsigned) return a < b;
      return static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b);
    };
    const auto [min, max] = std::minmax_element(c.numbers.begin(), c.numbers.end(), less);
    const std::size_t size = c.leaf.type == Type::kBoolean ? 1 : wide ? 8 : 4;
    facts.min = std::string(reinterpret_cast<const char*>(&*min), size);
    facts.max = std::string(reinterpret_cast<const char*>(&*max), size);
  }

  void write_group(ThriftWriter& w, const Group& g) const {
    w.begin_struct();
    w.begin_list(1, ThriftType::kStruct, g.columns.size());
    std::int64_t total = 0;
    for (std::size_t i = 0; i < g.columns.size(); ++i) {
      const ChunkFacts& f = g.columns[i];
      const Column& c = columns_[i];
      total += f.uncompressed;
      w.begin_struct();
      w.put_i64(2, f.dictionary_offset != 0 ? f.dictionary_offset : f.data_offset);
      w.begin_struct_field(3);
      w.put_i32(1, static_cast<int>(c.leaf.type));
      w.begin_list(2, ThriftType::kI32, f.encodings.size());
      for (const int e : f.encodings) w.integer(e);
      w.begin_list(3, ThriftType::kBinary, c.path.size());
      for (const std::string& p : c.path) w.binary(p);
      w.put_i32(4, options_.codec_id);
      w.put_i64(5, f.values);
      w.put_i64(6, f.uncompressed);
      w.put_i64(7, f.compressed);
      w.put_i64(9, f.data_offset);
      if (f.dictionary_offset != 0) w.put_i64(11, f.dictionary_offset);
      w.begin_struct_field(12);
      w.put_i64(3, f.nulls);
      if (f.max) w.put_binary(5, *f.max);
      if (f.min) w.put_binary(6, *f.min);
      w.end_struct();
      w.end_struct();
      w.end_struct();
    }
    w.put_i64(2, total);
    w.put_i64(3, g.rows);
    w.end_struct();
  }

  std::unique_ptr<ByteSink> sink_;
  WriterOptions options_;
  Shape schema_{Kind::kStruct, DType::kF32, false, {}, {}};
  std::vector<std::string> maps_;  // fields that are written as maps
  bool has_schema_ = false;
  std::vector<Column> columns_;
  std::vector<Fields> pending_;
  std::size_t pending_bytes_ = 0;
  std::vector<Group> groups_;
  std::int64_t rows_ = 0;
};

}  // namespace
}  // namespace parquet

std::unique_ptr<RecordWriter> make_parquet_writer(std::unique_ptr<ByteSink> sink,
                                                  std::string_view options) {
  return std::make_unique<parquet::ParquetWriter>(std::move(sink), options);
}

}  // namespace xylem::data::internal
