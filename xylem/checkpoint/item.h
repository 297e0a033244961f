#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/checkpoint/leaf.h"
#include "xylem/checkpoint/zarr/array.h"

namespace xylem::checkpoint {

using zarr::Box;

// One named part of a checkpoint, open for reading: a tree, or JSON. Thread-safe.
class Item {
 public:
  virtual ~Item() = default;

  // The text, if the item is JSON.
  virtual const std::string* json() const { return nullptr; }
  // In tree order, empty nodes included. Costs the reading of all metadata at the first call.
  virtual const std::vector<LeafInfo>& leaves() const = 0;
  // The leaf's array, or a box of it. UserError for leaves without an array.
  virtual HostArray read(std::size_t leaf, const std::optional<Box>& box = std::nullopt) const = 0;
  // By parameter name, without the reading of all metadata where the format allows it. UserError if
  // there is none.
  virtual HostArray read_named(std::string_view name,
                               const std::optional<Box>& box = std::nullopt) const;
  // Text of a leaf of kind kScalar whose elements are no numbers (fixed byte strings).
  virtual std::string read_text(std::size_t leaf) const;
  // Reads everything; calls f(leaf or file, reason) for each defect, and `progress` with leaves
  // done and all leaves.
  using Report = std::function<void(std::string_view where, std::string_view reason)>;
  using Progress = std::function<void(std::uint64_t done, std::uint64_t all)>;
  virtual void check(const Report& f, const Progress& progress = nullptr) const;
  // Bytes on disk of a leaf's chunks; 0 where not known.
  virtual std::uint64_t stored_bytes(std::size_t) const { return 0; }
};

// All of it in memory.
LeafTree read_tree(const Item& item);
// The same, but arrays are read only when they are written; the item must live until then. Leaves
// whose elements are no numbers become strings, or, where that is not possible, are left out after
// a call of `note` with path and reason.
LeafTree lazy_tree(const Item& item,
                   const std::function<void(std::string_view, std::string_view)>& note);
// Cuts a box out of an array in memory.
HostArray cut_box(const HostArray& a, const Box& box, std::string_view what);

std::unique_ptr<Item> make_json_item(std::string text);
// A tree whose leaves are given with their values.
std::unique_ptr<Item> make_memory_item(LeafTree tree);

}  // namespace xylem::checkpoint
