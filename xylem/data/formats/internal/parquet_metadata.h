#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xylem/data/formats/record.h"

// What Parquet files say about themselves (github.com/apache/parquet-format, parquet.thrift).

namespace xylem::data::internal::parquet {

enum class Type { kBoolean, kInt32, kInt64, kInt96, kFloat, kDouble, kByteArray, kFixed };
enum class Repetition { kRequired, kOptional, kRepeated };
enum class Encoding {
  kPlain = 0,
  kPlainDictionary = 2,
  kRle = 3,
  kBitPacked = 4,
  kDeltaBinaryPacked = 5,
  kDeltaLengthByteArray = 6,
  kDeltaByteArray = 7,
  kRleDictionary = 8,
  kByteStreamSplit = 9,
};
enum class Compression {
  kNone = 0,
  kSnappy = 1,
  kGzip = 2,
  kLzo = 3,
  kBrotli = 4,
  kLz4 = 5,
  kZstd = 6,
  kLz4Raw = 7
};

// What a column's values mean, told by the logical or the older converted type.
enum class Meaning {
  kPlain,
  kText,
  kList,
  kMap,
  kDecimal,
  kDate,
  kTime,
  kTimestamp,
  kUnsigned,
  kUuid,
  kFloat16,
  kNull
};

// A node of the schema. Levels: what a value of this node has at least.
struct Node {
  std::string name;
  Repetition repetition = Repetition::kRequired;
  std::optional<Type> type;  // of leaves
  std::int32_t type_length = 0;
  Meaning meaning = Meaning::kPlain;
  std::int32_t scale = 0;
  int unit = 0;  // of times: decimal digits of a second, 3, 6 or 9
  bool utc = false;
  int def = 0, rep = 0;
  int first_leaf = 0, end_leaf = 0;
  std::vector<Node> children;
  bool is_leaf() const { return type.has_value(); }
};

struct Statistics {
  std::optional<std::string> min, max;
  std::optional<std::int64_t> nulls;
};

struct ColumnChunk {
  std::string file_path;
  bool encrypted = false;
  Type type = Type::kInt32;
  Compression codec = Compression::kNone;
  std::vector<std::string> path;
  std::int64_t num_values = 0, compressed_size = 0, uncompressed_size = 0;
  std::int64_t data_offset = 0, dictionary_offset = 0;
  Statistics statistics;
};

struct RowGroup {
  std::vector<ColumnChunk> columns;
  std::int64_t num_rows = 0, total_bytes = 0;
};

struct FileMetadata {
  std::int32_t version = 0;
  Node root;
  std::vector<const Node*> leaves;
  std::int64_t num_rows = 0;
  std::vector<RowGroup> row_groups;
  std::vector<std::pair<std::string, std::string>> key_values;
  std::string created_by;
};

// Parses the footer of a file; DamageError for what is wrong with it.
std::unique_ptr<const FileMetadata> read_metadata(const ByteSource& file,
                                                  const ReadOptions& options);

enum class PageKind { kData = 0, kIndex = 1, kDictionary = 2, kDataV2 = 3 };
struct PageHeader {
  PageKind kind = PageKind::kData;
  std::int32_t uncompressed_size = 0, compressed_size = 0;
  std::optional<std::uint32_t> crc;
  std::int32_t num_values = 0;
  Encoding encoding = Encoding::kPlain, def_encoding = Encoding::kRle,
           rep_encoding = Encoding::kRle;
  std::int32_t num_nulls = 0, num_rows = 0, def_bytes = 0, rep_bytes = 0;  // version 2
  bool compressed = true;
  std::size_t header_size = 0;
};
// Nothing if `data` ends before the header does. UserError if it is malformed.
std::optional<PageHeader> parse_page_header(std::string_view data, std::string_view name);

const char* type_name(Type t);
const char* codec_name(Compression c);
// "optional list<int64>" and so on, for people.
std::string describe(const Node& node);

}  // namespace xylem::data::internal::parquet
