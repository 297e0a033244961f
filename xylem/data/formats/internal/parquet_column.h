#pragma once

#include <memory>
#include <string>

#include "xylem/data/formats/internal/parquet_encoding.h"

namespace xylem::data::internal::parquet {

// Walks over a column chunk's entries: levels, and a value where the definition level is full.
class ColumnCursor {
 public:
  ColumnCursor(SourcePtr file, const ReadOptions& options, const Node& leaf,
               const ColumnChunk& chunk);

  bool done();
  int rep();  // of the entry that comes next; 0 at the end
  int def();
  // Takes the entry; its value as the column means it, null below the full level.
  Value take();
  // Takes the entry without its value.
  void drop();
  // Entries taken so far.
  std::uint64_t taken() const { return taken_; }
  // Checks that the chunk ends here.
  void finish();
  [[noreturn]] void fail(std::string_view reason) const;

 private:
  void load();  // the next entry's levels, and pages before it
  bool next_page();
  Value convert(const Physical& p) const;

  SourcePtr file_;
  const ReadOptions& options_;
  const Node& leaf_;
  std::uint64_t at_, end_, num_values_;
  Compression codec_;
  Dictionary dictionary_;
  bool has_dictionary_ = false;
  std::string page_;
  std::uint64_t page_begin_ = 0, page_left_ = 0;
  std::uint64_t entries_ = 0, taken_ = 0;
  HybridDecoder def_levels_, rep_levels_;
  std::unique_ptr<ValueDecoder> values_;
  bool loaded_ = false;
  int def_ = 0, rep_ = 0;
};

// A physical value as the column means it.
Value convert_value(const Node& leaf, const Physical& p);

}  // namespace xylem::data::internal::parquet
