#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/base/tree.h"
#include "xylem/data/dataset.h"

// Pipelines written as JSON, for tests that compare with Grain (tests/parity/grain_twin.py builds
// the same from the same text) and that make pipelines at random. A specification is an object with
// a key `op` and the operation's arguments; `of` holds its parent or list of parents:
//
//   {"op": "batch", "n": 2, "of": {"op": "shuffle", "seed": 3, "of": {"op": "range", "stop": 9}}}

namespace xylem::data::testing {

using Value = Tree<HostArray>;

// A built pipeline; one of the two is set.
struct AnyDataset {
  std::optional<MapDataset<Value>> map;
  std::optional<IterDataset<Value>> iter;

  // The iterator-style data set; a map-style one is read without threads.
  IterDataset<Value> to_iter() const;
};

AnyDataset build_spec(std::string_view json);

// Numbers, lists, objects; `null` for an absent element.
std::string plain(const Value& v);
Value integer_value(std::int64_t v);

// A random specification of an iterator-style pipeline. `parallel` allows threads.
std::string random_spec(std::uint64_t seed, bool parallel);

}  // namespace xylem::data::testing
