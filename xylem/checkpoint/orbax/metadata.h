#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/checkpoint/leaf.h"

// The JSON files of Orbax checkpoints. Readers are lenient where Orbax is, and throw UserError
// opened by `name` where it raises.
namespace xylem::checkpoint::orbax {

inline constexpr std::string_view kStepMetadata = "_CHECKPOINT_METADATA";
inline constexpr std::string_view kTreeMetadata = "_METADATA";
inline constexpr std::string_view kShardingFile = "_sharding";
inline constexpr std::string_view kStringsFile = "_strings.json";
inline constexpr std::string_view kCommitFile = "commit_success.txt";
inline constexpr std::string_view kV1Marker = "orbax.checkpoint";
inline constexpr std::string_view kTemporarySuffix = ".orbax-checkpoint-tmp";

// _METADATA.
struct TreeMetadata {
  std::vector<LeafInfo> leaves;  // in tree order; path, kind and shard are set
  std::optional<bool> use_ocdbt;
  bool use_zarr3 = false;
  bool stores_fill_values = false;
  std::string custom = "null";  // JSON
};
TreeMetadata parse_tree_metadata(std::string_view json, std::string_view name);
std::string format_tree_metadata(const TreeMetadata& m);

// _CHECKPOINT_METADATA.
struct StepMetadata {
  std::map<std::string, std::string> item_handlers;
  std::string handler;  // of a step that is not composite
  std::optional<std::int64_t> init_ns, commit_ns;
  std::string custom = "{}";               // JSON
  std::string performance_metrics = "{}";  // JSON
};
StepMetadata parse_step_metadata(std::string_view json, std::string_view name);
std::string format_step_metadata(const StepMetadata& m);

// _sharding: parameter name to JSON.
std::map<std::string, std::string> parse_shardings(std::string_view json, std::string_view name);
std::string format_shardings(const std::map<std::string, std::string>& shardings);
// What keeps Orbax from understanding an array's sharding; empty if nothing does. Classes that it
// does not know it skips.
std::string sharding_defect(std::string_view json);
// Of one device.
std::string single_device_sharding();

// array_metadatas/process_<i>.
struct ArrayMetadata {
  std::string param_name;
  Dims write_shape, chunk_shape;
  std::string prng;  // empty: no key
};
std::vector<ArrayMetadata> parse_array_metadatas(std::string_view json, std::string_view name);
std::string format_array_metadatas(const std::vector<ArrayMetadata>& arrays);

// _strings.json, in which a name is a JSON pointer.
class Strings {
 public:
  static Strings parse(std::string_view json, std::string_view name);
  // Nothing if there is none.
  std::optional<std::string> find(const std::string& param_name) const;

 private:
  std::map<std::string, std::string> by_pointer_;
};
std::string format_strings(const std::vector<std::pair<std::string, std::string>>& strings);

// Python's repr of a string and of a tuple of strings.
std::string python_repr(std::string_view s);
std::string python_tuple(const KeyPath& path);

std::string base64_url(std::string_view s);
std::optional<std::string> parse_base64_url(std::string_view s);

// JSON with Python's NaN, Infinity and -Infinity made strings.
std::string standard_json(std::string_view python_json);

}  // namespace xylem::checkpoint::orbax
