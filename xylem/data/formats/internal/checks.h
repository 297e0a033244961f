#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "xylem/data/formats/record.h"

namespace xylem::data::internal {

// Throws DamageError for a record or block of `size` bytes above the limit.
void check_limit(std::string_view file, std::uint64_t begin, std::uint64_t end, std::uint64_t size,
                 const ReadOptions& options);
// Throws UserError if index >= count.
void check_index(std::string_view file, std::uint64_t index, std::uint64_t count);

// Options text: "name:value,name", each known name once. What is not asked for is an error.
class OptionsText {
 public:
  OptionsText(std::string_view format, std::string_view text);
  // The value of `name`, "" for a name without one; nothing if absent.
  bool take(std::string_view name, std::string& value);
  std::int64_t take_int(std::string_view name, std::int64_t otherwise, std::int64_t min,
                        std::int64_t max);
  bool take_bool(std::string_view name, bool otherwise);
  // UserError if a name was never asked for.
  void finish() const;

 private:
  struct Item {
    std::string name, value;
    bool taken = false;
  };
  std::string format_;
  std::vector<Item> items_;
};

}  // namespace xylem::data::internal
