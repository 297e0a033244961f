#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "xylem/base/host_array.h"
#include "xylem/ir/bytecode.h"

namespace xylem::ir::bytecode {

// What a file that is written refers to by number: strings, dialects, op names, attributes, types
// and property records. Equal ones are stored once. Constants are kept by reference until the file
// is put together.
class Pools {
 public:
  explicit Pools(int format) : format_(format) {}

  std::size_t string(std::string_view s);
  std::size_t dialect(std::string_view name);
  std::size_t op_name(std::string_view dialect, std::string_view name);
  // `bytes` in the dialect's encoding; then `data`, if there is any.
  std::size_t attr(std::string_view dialect, std::string bytes, HostArray data = {});
  std::size_t type(std::string_view dialect, std::string bytes);
  // Assembly text of an attribute of any dialect.
  std::size_t attr_text(std::string_view dialect, std::string_view text);
  std::size_t record(std::string bytes);

  // The whole file around the bytes of the IR section.
  std::string assemble(std::string_view producer, std::string_view ir) const;

 private:
  struct Entry {
    std::size_t dialect = 0;
    bool custom = true;
    std::string bytes;
    HostArray data;
    std::size_t size() const { return bytes.size() + (data.defined() ? data.nbytes() : 0); }
  };
  struct Name {
    std::size_t dialect, name;
  };

  std::size_t add(std::vector<Entry>& to, std::unordered_map<std::string, std::size_t>& known,
                  Entry e);
  std::string string_section() const;
  std::string dialect_section() const;
  std::string offset_section() const;
  std::string property_section() const;

  int format_;
  std::vector<std::string> strings_;
  std::vector<std::size_t> dialects_;  // strings
  std::vector<Name> op_names_;
  std::vector<Entry> attrs_, types_;
  std::vector<std::string> records_;
  std::unordered_map<std::string, std::size_t> string_ids_, dialect_ids_, op_ids_, attr_ids_,
      type_ids_, record_ids_;
};

}  // namespace xylem::ir::bytecode
