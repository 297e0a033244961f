#include "xylem/data/formats/internal/parquet_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "xylem/data/formats/internal/checks.h"
#include "xylem/data/formats/internal/thrift.h"

namespace xylem::data::internal::parquet {
namespace {

constexpr int kMaxSchemaDepth = 64;

// One element of the schema's list, before it becomes a node.
struct Element {
  std::optional<std::int64_t> type;
  std::int64_t type_length = 0, repetition = 0, children = 0, converted = -1, scale = 0;
  std::string name;
  Meaning meaning = Meaning::kPlain;
  int unit = 0;
  bool utc = false, logical = false;
};

void read_logical(ThriftReader& r, Element& e) {
  r.begin_struct();
  std::int16_t id;
  ThriftType t;
  while (r.next_field(id, t)) {
    e.logical = true;
    static constexpr Meaning kMeanings[] = {
        Meaning::kPlain,     Meaning::kText,    Meaning::kMap,   Meaning::kList,
        Meaning::kText,      Meaning::kDecimal, Meaning::kDate,  Meaning::kTime,
        Meaning::kTimestamp, Meaning::kPlain,   Meaning::kPlain, Meaning::kNull,
        Meaning::kText,      Meaning::kPlain,   Meaning::kUuid,  Meaning::kFloat16};
    e.meaning = id >= 1 && id <= 15 ? kMeanings[id] : Meaning::kPlain;
    if (t != ThriftType::kStruct) {
      r.skip(t);
      continue;
    }
    r.begin_struct();
    std::int16_t inner;
    ThriftType it;
    while (r.next_field(inner, it)) {
      if (id == 5 && inner == 1) {
        e.scale = r.read_integer(it);
      } else if ((id == 7 || id == 8) && inner == 1) {
        e.utc = r.read_bool(it);
      } else if ((id == 7 || id == 8) && inner == 2 && it == ThriftType::kStruct) {
        r.begin_struct();
        std::int16_t unit;
        ThriftType ut;
        while (r.next_field(unit, ut)) {
          e.unit = unit * 3;
          r.skip(ut);
        }
      } else if (id == 10 && inner == 2) {
        if (!r.read_bool(it)) e.meaning = Meaning::kUnsigned;
      } else {
        r.skip(it);
      }
    }
  }
}

void apply_converted(Element& e) {
  if (e.logical) return;
  switch (e.converted) {
    case 0:
    case 4:
    case 19: e.meaning = Meaning::kText; break;
    case 1:
    case 2: e.meaning = Meaning::kMap; break;
    case 3: e.meaning = Meaning::kList; break;
    case 5: e.meaning = Meaning::kDecimal; break;
    case 6: e.meaning = Meaning::kDate; break;
    case 7:
    case 8:
      e.meaning = Meaning::kTime;
      e.unit = e.converted == 7 ? 3 : 6;
      e.utc = true;
      break;
    case 9:
    case 10:
      e.meaning = Meaning::kTimestamp;
      e.unit = e.converted == 9 ? 3 : 6;
      e.utc = true;
      break;
    case 11:
    case 12:
    case 13:
    case 14: e.meaning = Meaning::kUnsigned; break;
    default: break;
  }
}

Element read_element(ThriftReader& r) {
  Element e;
  r.begin_struct();
  std::int16_t id;
  ThriftType t;
  while (r.next_field(id, t)) {
    switch (id) {
      case 1: e.type = r.read_integer(t); break;
      case 2: e.type_length = r.read_integer(t); break;
      case 3: e.repetition = r.read_integer(t); break;
      case 4: e.name = r.read_binary(t); break;
      case 5: e.children = r.read_integer(t); break;
      case 6: e.converted = r.read_integer(t); break;
      case 7: e.scale = r.read_integer(t); break;
      case 10:
        if (t != ThriftType::kStruct) r.fail("a logical type that is no struct");
        read_logical(r, e);
        break;
      default: r.skip(t);
    }
  }
  apply_converted(e);
  return e;
}

class SchemaBuilder {
 public:
  SchemaBuilder(const std::vector<Element>& elements, ThriftReader& r)
      : elements_(elements), r_(r) {}
  Node build() {
    if (elements_.empty()) r_.fail("a schema without a root");
    Node root = node(0, 0, 0);
    if (at_ != elements_.size()) r_.fail("a schema with elements that belong to nothing");
    return root;
  }

 private:
  Node node(int depth, int def, int rep) {
    if (at_ >= elements_.size()) r_.fail("a schema that lacks elements");
    if (depth > kMaxSchemaDepth) r_.fail("a schema that nests too deep");
    const Element& e = elements_[at_++];
    Node n;
    n.name = e.name;
    if (e.repetition < 0 || e.repetition > 2) r_.fail("an unknown repetition");
    n.repetition = depth == 0 ? Repetition::kRequired : static_cast<Repetition>(e.repetition);
    n.def = def + (n.repetition != Repetition::kRequired);
    n.rep = rep + (n.repetition == Repetition::kRepeated);
    n.meaning = e.meaning;
    n.unit = e.unit;
    n.utc = e.utc;
    if (e.scale < -1000 || e.scale > 1000) r_.fail("a decimal scale out of range");
    n.scale = static_cast<std::int32_t>(e.scale);
    n.first_leaf = leaves_;
    if (e.children < 0 || static_cast<std::size_t>(e.children) > elements_.size())
      r_.fail("a node with more children than the schema has elements");
    // A node is a leaf when it has a type; groups may have no children at the root only.
    if (e.type && depth > 0) {
      if (e.children != 0) r_.fail("a column with children");
      if (*e.type < 0 || *e.type > 7) r_.fail("an unknown physical type");
      n.type = static_cast<Type>(*e.type);
      if (*n.type == Type::kFixed && (e.type_length <= 0 || e.type_length > (1 << 28)))
        r_.fail("a fixed length out of range");
      n.type_length = static_cast<std::int32_t>(e.type_length);
      ++leaves_;
    } else {
      if (e.children == 0 && depth > 0) r_.fail("a group without children");
      for (std::int64_t i = 0; i < e.children; ++i)
        n.children.push_back(node(depth + 1, n.def, n.rep));
    }
    n.end_leaf = leaves_;
    return n;
  }
  const std::vector<Element>& elements_;
  ThriftReader& r_;
  std::size_t at_ = 0;
  int leaves_ = 0;
};

Statistics read_statistics(ThriftReader& r) {
  Statistics s;
  r.begin_struct();
  std::int16_t id;
  ThriftType t;
  while (r.next_field(id, t)) {
    switch (id) {
      case 3: s.nulls = r.read_integer(t); break;
      case 5: s.max = std::string(r.read_binary(t)); break;
      case 6: s.min = std::string(r.read_binary(t)); break;
      default: r.skip(t);  // the old fields 1 and 2 have no defined order
    }
  }
  return s;
}

void read_column_metadata(ThriftReader& r, ColumnChunk& c) {
  r.begin_struct();
  std::int16_t id;
  ThriftType t, element;
  while (r.next_field(id, t)) {
    switch (id) {
      case 1: {
        const std::int64_t type = r.read_integer(t);
        if (type < 0 || type > 7) r.fail("an unknown physical type");
        c.type = static_cast<Type>(type);
        break;
      }
      case 3: {
        const std::uint32_t n = r.read_list(t, element);
        for (std::uint32_t i = 0; i < n; ++i) c.path.emplace_back(r.read_binary(element));
        break;
      }
      case 4: {
        const std::int64_t codec = r.read_integer(t);
        if (codec < 0 || codec > 7) r.fail("an unknown compression codec");
        c.codec = static_cast<Compression>(codec);
        break;
      }
      case 5: c.num_values = r.read_integer(t); break;
      case 6: c.uncompressed_size = r.read_integer(t); break;
      case 7: c.compressed_size = r.read_integer(t); break;
      case 9: c.data_offset = r.read_integer(t); break;
      case 11: c.dictionary_offset = r.read_integer(t); break;
      case 12:
        if (t != ThriftType::kStruct) r.fail("statistics that are no struct");
        c.statistics = read_statistics(r);
        break;
      default: r.skip(t);
    }
  }
}

ColumnChunk read_column(ThriftReader& r) {
  ColumnChunk c;
  bool metadata = false;
  r.begin_struct();
  std::int16_t id;
  ThriftType t;
  while (r.next_field(id, t)) {
    if (id == 1) {
      c.file_path = r.read_binary(t);
    } else if (id == 3 && t == ThriftType::kStruct) {
      read_column_metadata(r, c);
      metadata = true;
    } else {
      c.encrypted = c.encrypted || id == 8 || id == 9;
      r.skip(t);
    }
  }
  if (!metadata && !c.encrypted) r.fail("a column without metadata");
  return c;
}

RowGroup read_row_group(ThriftReader& r) {
  RowGroup g;
  r.begin_struct();
  std::int16_t id;
  ThriftType t, element;
  while (r.next_field(id, t)) {
    if (id == 1) {
      const std::uint32_t n = r.read_list(t, element);
      if (n > 0 && element != ThriftType::kStruct) r.fail("columns that are no structs");
      for (std::uint32_t i = 0; i < n; ++i) g.columns.push_back(read_column(r));
    } else if (id == 2) {
      g.total_bytes = r.read_integer(t);
    } else if (id == 3) {
      g.num_rows = r.read_integer(t);
    } else {
      r.skip(t);
    }
  }
  return g;
}

void collect_leaves(const Node& n, std::vector<const Node*>& out) {
  if (n.is_leaf()) out.push_back(&n);
  for (const Node& c : n.children) collect_leaves(c, out);
}

std::unique_ptr<FileMetadata> parse_footer(std::string_view bytes, std::string_view name) {
  auto m = std::make_unique<FileMetadata>();
  ThriftReader r(bytes, name);
  r.begin_struct();
  std::int16_t id;
  ThriftType t, element;
  bool schema = false;
  while (r.next_field(id, t)) {
    if (id == 1) {
      m->version = static_cast<std::int32_t>(r.read_integer(t));
    } else if (id == 2) {
      const std::uint32_t n = r.read_list(t, element);
      if (element != ThriftType::kStruct) r.fail("a schema that is no list of structs");
      std::vector<Element> elements;
      for (std::uint32_t i = 0; i < n; ++i) elements.push_back(read_element(r));
      m->root = SchemaBuilder(elements, r).build();
      schema = true;
    } else if (id == 3) {
      m->num_rows = r.read_integer(t);
    } else if (id == 4) {
      const std::uint32_t n = r.read_list(t, element);
      if (n > 0 && element != ThriftType::kStruct) r.fail("row groups that are no structs");
      for (std::uint32_t i = 0; i < n; ++i) m->row_groups.push_back(read_row_group(r));
    } else if (id == 5) {
      const std::uint32_t n = r.read_list(t, element);
      for (std::uint32_t i = 0; i < n; ++i) {
        if (element != ThriftType::kStruct) r.fail("metadata that is no struct");
        r.begin_struct();
        std::pair<std::string, std::string> kv;
        std::int16_t inner;
        ThriftType it;
        while (r.next_field(inner, it)) {
          if (inner == 1)
            kv.first = r.read_binary(it);
          else if (inner == 2)
            kv.second = r.read_binary(it);
          else
            r.skip(it);
        }
        m->key_values.push_back(std::move(kv));
      }
    } else if (id == 6) {
      m->created_by = r.read_binary(t);
    } else {
      if (id == 8) r.fail("encryption, which is not supported");
      r.skip(t);
    }
  }
  if (!schema) r.fail("no schema");
  collect_leaves(m->root, m->leaves);
  return m;
}

}  // namespace

std::unique_ptr<const FileMetadata> read_metadata(const ByteSource& file,
                                                  const ReadOptions& options) {
  const std::uint64_t size = file.size();
  const auto fail = [&](std::uint64_t begin, std::uint64_t end, std::string_view reason) {
    throw DamageError(file.name(), begin, end, reason);
  };
  if (size < 12 || file.read(0, 4) != "PAR1") {
    if (size >= 4 && file.read(0, 4) == "PARE") fail(0, 4, "the footer is encrypted");
    fail(0, std::min<std::uint64_t>(4, size), "the file does not begin with PAR1");
  }
  const std::string tail = file.read(size - 8, 8);
  if (tail.substr(4) == "PARE") fail(size - 4, size, "the footer is encrypted");
  if (tail.substr(4) != "PAR1")
    fail(size - 4, size, "the file does not end with PAR1; it is cut or was not closed");
  std::uint32_t length = 0;
  std::memcpy(&length, tail.data(), 4);
  if (length > size - 12)
    fail(size - 8, size - 4,
         fmt::format("the footer says {} bytes, the file has {}", length, size));
  const std::uint64_t begin = size - 8 - length;
  check_limit(file.name(), begin, size - 8, length, options);
  std::unique_ptr<FileMetadata> m;
  try {
    m = parse_footer(file.read(begin, length), "footer");
  } catch (const UserError& e) {
    fail(begin, size - 8, e.message());
  }
  std::int64_t rows = 0;
  for (const RowGroup& g : m->row_groups) {
    if (g.columns.size() != m->leaves.size())
      fail(begin, size - 8,
           fmt::format("a row group has {} columns, the schema {}", g.columns.size(),
                       m->leaves.size()));
    if (g.num_rows < 0 || __builtin_add_overflow(rows, g.num_rows, &rows))
      fail(begin, size - 8, "a row group's number of rows is out of range");
    for (std::size_t k = 0; k < g.columns.size(); ++k) {
      const ColumnChunk& c = g.columns[k];
      if (c.encrypted) fail(begin, size - 8, "a column is encrypted");
      if (!c.file_path.empty())
        fail(begin, size - 8, fmt::format("a column lies in another file, {}", c.file_path));
      if (c.type != *m->leaves[k]->type)
        fail(
            begin, size - 8,
            fmt::format("the column {} has another type than the schema says", m->leaves[k]->name));
      if (c.num_values == 0 && g.num_rows == 0) continue;
      const std::int64_t first = c.dictionary_offset > 0 && c.dictionary_offset < c.data_offset
                                     ? c.dictionary_offset
                                     : c.data_offset;
      if (c.num_values < g.num_rows || c.compressed_size < 0 || first < 4 ||
          static_cast<std::uint64_t>(first) > begin ||
          static_cast<std::uint64_t>(c.compressed_size) > begin - static_cast<std::uint64_t>(first))
        fail(begin, size - 8,
             fmt::format("the column {} says {} values in {} bytes at {}, outside of the data",
                         m->leaves[k]->name, c.num_values, c.compressed_size, first));
    }
  }
  if (rows != m->num_rows)
    fail(begin, size - 8,
         fmt::format("the file says {} rows, its row groups hold {}", m->num_rows, rows));
  return m;
}

std::optional<PageHeader> parse_page_header(std::string_view data, std::string_view name) {
  PageHeader h;
  ThriftReader r(data, name);
  const auto encoding = [&](ThriftType t) {
    const std::int64_t e = r.read_integer(t);
    if (e < 0 || e > 9 || e == 1) r.fail(fmt::format("the unknown encoding {}", e));
    return static_cast<Encoding>(e);
  };
  const auto i32 = [&](ThriftType t) {
    const std::int64_t v = r.read_integer(t);
    if (v < 0 || v > INT32_MAX) r.fail("a number out of range");
    return static_cast<std::int32_t>(v);
  };
  bool sizes[2] = {}, body = false;
  r.begin_struct();
  std::int16_t id, inner;
  ThriftType t, it;
  while (r.next_field(id, t)) {
    if (id == 1) {
      const std::int64_t kind = r.read_integer(t);
      if (kind < 0 || kind > 3) r.fail("an unknown kind of page");
      h.kind = static_cast<PageKind>(kind);
    } else if (id == 2) {
      h.uncompressed_size = i32(t);
      sizes[0] = true;
    } else if (id == 3) {
      h.compressed_size = i32(t);
      sizes[1] = true;
    } else if (id == 4) {
      h.crc = static_cast<std::uint32_t>(r.read_integer(t));
    } else if ((id == 5 || id == 7 || id == 8) && t == ThriftType::kStruct) {
      body = true;
      r.begin_struct();
      while (r.next_field(inner, it)) {
        if (inner == 1)
          h.num_values = i32(it);
        else if (id != 8 && inner == 2)
          h.encoding = encoding(it);
        else if (id == 5 && inner == 3)
          h.def_encoding = encoding(it);
        else if (id == 5 && inner == 4)
          h.rep_encoding = encoding(it);
        else if (id == 8 && inner == 2)
          h.num_nulls = i32(it);
        else if (id == 8 && inner == 3)
          h.num_rows = i32(it);
        else if (id == 8 && inner == 4)
          h.encoding = encoding(it);
        else if (id == 8 && inner == 5)
          h.def_bytes = i32(it);
        else if (id == 8 && inner == 6)
          h.rep_bytes = i32(it);
        else if (id == 8 && inner == 7)
          h.compressed = r.read_bool(it);
        else
          r.skip(it);
      }
    } else {
      r.skip(t);
    }
  }
  if (!sizes[0] || !sizes[1] || (!body && h.kind != PageKind::kIndex))
    r.fail("a page header without its sizes or its body");
  h.header_size = r.position();
  return h;
}

const char* type_name(Type t) {
  static constexpr const char* kNames[] = {"boolean", "int32",  "int64",      "int96",
                                           "float",   "double", "byte_array", "fixed"};
  return kNames[static_cast<int>(t)];
}
const char* codec_name(Compression c) {
  static constexpr const char* kNames[] = {"none",   "snappy", "gzip", "lzo",
                                           "brotli", "lz4",    "zstd", "lz4_raw"};
  return kNames[static_cast<int>(c)];
}

std::string describe(const Node& n) {
  static constexpr const char* kRepetitions[] = {"", "optional ", "repeated "};
  static constexpr const char* kMeanings[] = {"",         "text", "list",    "map",
                                              "decimal",  "date", "time",    "timestamp",
                                              "unsigned", "uuid", "float16", "null"};
  std::string s = kRepetitions[static_cast<int>(n.repetition)];
  const char* meaning = kMeanings[static_cast<int>(n.meaning)];
  if (n.is_leaf())
    return s + type_name(*n.type) + (*meaning != '\0' ? fmt::format(" ({})", meaning) : "");
  s += *meaning != '\0' ? meaning : "struct";
  s += "<";
  for (std::size_t i = 0; i < n.children.size(); ++i)
    s += fmt::format("{}{}: {}", i > 0 ? ", " : "", n.children[i].name, describe(n.children[i]));
  return s + ">";
}

}  // namespace xylem::data::internal::parquet
