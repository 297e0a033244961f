#include "xylem/checkpoint/orbax/metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "xylem/base/error.h"
#include "xylem/base/json.h"
#include "xylem/checkpoint/internal/json_scan.h"

namespace xylem::checkpoint::orbax {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(std::string_view name, std::string_view expected, std::string_view given) {
  throw_user_error({fmt::format("read {}", name), expected, given,
                    "The checkpoint is damaged or of a newer kind: restore it from a copy, or use "
                    "another step"});
}

std::string brief(const Json& j) {
  return j.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 200);
}

// Nesting is bounded, so that nothing that walks the value recursively can run out of stack.
Json parse_object(std::string_view text, std::string_view name) {
  constexpr int kMaxDepth = 200;
  internal::JsonScan scan(kMaxDepth);
  const bool good = scan.run(text);
  if (scan.too_deep())
    refuse(name, fmt::format("JSON nested at most {} deep", kMaxDepth), "deeper");
  Json j = good ? Json::parse(text, nullptr, false) : Json();
  if (!j.is_object()) refuse(name, "a JSON object", fmt::format("\"{}\"", text.substr(0, 60)));
  return j;
}

Dims parse_dims(const Json& j, std::string_view name) {
  if (!j.is_array() || j.size() > 64) refuse(name, "a list of sizes", brief(j));
  Dims out;
  for (const Json& n : j) {
    if (!n.is_number_integer() || n < 0) refuse(name, "a list of sizes", brief(j));
    out.push_back(n.get<std::int64_t>());
  }
  return out;
}

std::string dump(const Json& j) { return j.dump(-1, ' ', true, Json::error_handler_t::replace); }

}  // namespace

TreeMetadata parse_tree_metadata(std::string_view text, std::string_view name) {
  // The order of members is the tree's, which a parsed object forgets.
  internal::JsonScan scan(200, "tree_metadata");
  const bool good = scan.run(text);
  if (scan.too_deep()) refuse(name, "JSON nested at most 200 deep", "deeper");
  const Json j = good ? Json::parse(text, nullptr, false) : Json();
  if (!j.is_object() || !j.contains("tree_metadata") || !j["tree_metadata"].is_object())
    refuse(name, "a JSON object with tree_metadata", fmt::format("\"{}\"", text.substr(0, 60)));
  if (!scan.repeated().empty())
    refuse(name, "every member once", fmt::format("\"{}\" twice", scan.repeated()));
  TreeMetadata out;
  const Json& tree = j["tree_metadata"];
  for (const std::string& key : scan.order()) {
    const Json& entry = tree.at(key);
    if (!entry.is_object() || !entry.contains("key_metadata") || !entry.contains("value_metadata"))
      refuse(name, fmt::format("{} with key_metadata and value_metadata", key), brief(entry));
    LeafInfo leaf;
    const Json& keys = entry["key_metadata"];
    if (!keys.is_array() || keys.size() > 1000)
      refuse(name, fmt::format("{}: key_metadata that is a list", key), brief(keys));
    for (const Json& k : keys) {
      if (!k.is_object() || !k.contains("key") || !k["key"].is_string() ||
          !k.contains("key_type") || !(k["key_type"] == 1 || k["key_type"] == 2))
        refuse(name, fmt::format("{}: keys of type 1 or 2", key), brief(k));
      leaf.path.push_back({k["key"].get<std::string>(), k["key_type"] == 1});
    }
    const Json& value = entry["value_metadata"];
    if (!value.is_object() || !value.contains("value_type") || !value["value_type"].is_string())
      refuse(name, fmt::format("{}: value_metadata with value_type", key), brief(value));
    const std::string type = value["value_type"].get<std::string>();
    const auto kind = parse_value_type(type);
    if (!kind && value.value("skip_deserialize", Json(false)) == true) {
      leaf.kind = LeafKind::kNone;
    } else {
      // Types of other writers are arrays, as Orbax takes them.
      leaf.kind = kind.value_or(LeafKind::kNumpy);
    }
    if (value.contains("write_shape") && value["write_shape"].is_array())
      leaf.shard = parse_dims(value["write_shape"], name);
    out.leaves.push_back(std::move(leaf));
  }
  out.leaves = in_tree_order(std::move(out.leaves), fmt::format("read {}", name));
  const auto flag = [&](const char* key) -> std::optional<bool> {
    if (!j.contains(key) || j[key].is_null()) return std::nullopt;
    if (!j[key].is_boolean()) refuse(name, fmt::format("{}: true or false", key), brief(j[key]));
    return j[key].get<bool>();
  };
  out.use_ocdbt = flag("use_ocdbt");
  out.use_zarr3 = flag("use_zarr3").value_or(false);
  out.stores_fill_values = flag("store_array_data_equal_to_fill_value").value_or(false);
  if (j.contains("custom_metadata")) out.custom = dump(j["custom_metadata"]);
  return out;
}

std::string format_tree_metadata(const TreeMetadata& m) {
  std::string out = "{\"tree_metadata\": {";
  for (std::size_t i = 0; i < m.leaves.size(); ++i) {
    const LeafInfo& l = m.leaves[i];
    if (i > 0) out += ", ";
    out += json_quote(python_tuple(l.path));
    out += ": {\"key_metadata\": [";
    for (std::size_t k = 0; k < l.path.size(); ++k) {
      if (k > 0) out += ", ";
      out += "{\"key\": ";
      out += json_quote(l.path[k].text);
      out += l.path[k].index ? ", \"key_type\": 1}" : ", \"key_type\": 2}";
    }
    // Empty structs are written as Orbax does without rich types.
    const LeafKind kind = l.kind == LeafKind::kEmptyStruct ? LeafKind::kNone : l.kind;
    out += "], \"value_metadata\": {\"value_type\": \"";
    out += value_type(kind);
    out += kind >= LeafKind::kNone ? "\", \"skip_deserialize\": true"
                                   : "\", \"skip_deserialize\": false";
    if (kind == LeafKind::kArray) {
      const Dims& shape = l.shard.empty() ? l.shape : l.shard;
      out += ", \"write_shape\": [";
      for (int d = 0; d < shape.ssize(); ++d)
        out += fmt::format("{}{}", d > 0 ? ", " : "", shape[d]);
      out += "]";
    }
    out += "}}";
  }
  out += fmt::format(
      "}}, \"use_ocdbt\": {}, \"use_zarr3\": {}, \"store_array_data_equal_to_fill_value\": {}, "
      "\"custom_metadata\": {}}}",
      m.use_ocdbt.value_or(true), m.use_zarr3, m.stores_fill_values, m.custom);
  return out;
}

StepMetadata parse_step_metadata(std::string_view text, std::string_view name) {
  StepMetadata out;
  const Json j = Json::parse(text, nullptr, false);
  if (j.is_discarded()) return out;  // an empty file is no metadata
  if (!j.is_object()) refuse(name, "a JSON object", brief(j));
  Json custom = Json::object(), unknown = Json::object();
  for (const auto& [key, value] : j.items()) {
    if (key == "item_handlers") {
      if (value.is_string()) {
        out.handler = value.get<std::string>();
      } else if (value.is_object()) {
        for (const auto& [item, handler] : value.items()) {
          if (!handler.is_string() && !handler.is_null())
            refuse(name, "item_handlers: names to strings", brief(value));
          out.item_handlers[item] = handler.is_string() ? handler.get<std::string>() : "";
        }
      } else if (!value.is_null()) {
        refuse(name, "item_handlers: an object or a string", brief(value));
      }
    } else if (key == "init_timestamp_nsecs" || key == "commit_timestamp_nsecs") {
      if (value.is_null()) continue;
      if (!value.is_number_integer()) refuse(name, key + ": an integer", brief(value));
      (key[0] == 'i' ? out.init_ns : out.commit_ns) = value.get<std::int64_t>();
    } else if (key == "custom_metadata") {
      if (!value.is_object() && !value.is_null())
        refuse(name, "custom_metadata: an object", brief(value));
      if (value.is_object()) custom = value;
    } else if (key == "performance_metrics") {
      out.performance_metrics = dump(value);
    } else if (key != "metrics") {
      unknown[key] = value;
    }
  }
  if (custom.empty()) custom = unknown;
  out.custom = dump(custom);
  return out;
}

std::string format_step_metadata(const StepMetadata& m) {
  std::string handlers;
  if (!m.handler.empty()) {
    handlers = json_quote(m.handler);
  } else {
    handlers = "{";
    for (const auto& [item, handler] : m.item_handlers)
      handlers += fmt::format("{}{}: {}", handlers.size() > 1 ? ", " : "", json_quote(item),
                              json_quote(handler));
    handlers += "}";
  }
  const auto time = [](const std::optional<std::int64_t>& t) {
    return t ? fmt::format("{}", *t) : std::string("null");
  };
  return fmt::format(
      "{{\"item_handlers\": {}, \"metrics\": {{}}, \"performance_metrics\": {}, "
      "\"init_timestamp_nsecs\": {}, \"commit_timestamp_nsecs\": {}, \"custom_metadata\": {}}}",
      handlers, m.performance_metrics, time(m.init_ns), time(m.commit_ns), m.custom);
}

std::map<std::string, std::string> parse_shardings(std::string_view text, std::string_view name) {
  std::map<std::string, std::string> out;
  const Json j = parse_object(text, name);
  for (const auto& [key, value] : j.items()) {
    const auto param = parse_base64_url(key);
    if (!param) refuse(name, "names in URL-safe base64", fmt::format("\"{}\"", key));
    if (!value.is_string()) refuse(name, "shardings that are strings", brief(value));
    out[*param] = value.get<std::string>();
  }
  return out;
}

std::string format_shardings(const std::map<std::string, std::string>& shardings) {
  std::map<std::string, std::string> encoded;
  for (const auto& [name, value] : shardings) encoded[base64_url(name)] = value;
  JsonWriter w;
  w.begin_object();
  for (const auto& [key, value] : encoded) w.field(key, value);
  w.end_object();
  return w.take();
}

std::string sharding_defect(std::string_view text) {
  const Json j = Json::parse(text, nullptr, false);
  if (!j.is_object() || !j.contains("sharding_type") || !j["sharding_type"].is_string())
    return "it has no sharding_type";
  const auto type = j["sharding_type"].get<std::string>();
  const auto is_list = [&](const char* key) { return j.contains(key) && j[key].is_array(); };
  if (type == "NamedSharding")
    for (const char* key : {"shape", "axis_names", "partition_spec"})
      if (!is_list(key)) return fmt::format("{} is no list", key);
  if (type == "SingleDeviceSharding" && !(j.contains("device_str") && j["device_str"].is_string()))
    return "it has no device_str";
  return {};
}

std::string single_device_sharding() {
  return R"({"sharding_type": "SingleDeviceSharding", "device_str": "cpu:0"})";
}

std::vector<ArrayMetadata> parse_array_metadatas(std::string_view text, std::string_view name) {
  const Json j = parse_object(text, name);
  const Json list = j.value("array_metadatas", Json());
  if (!list.is_array()) refuse(name, "array_metadatas: a list", brief(j));
  std::vector<ArrayMetadata> out;
  for (const Json& entry : list) {
    const Json& a =
        entry.is_object() && entry.contains("array_metadata") ? entry["array_metadata"] : entry;
    if (!a.is_object() || !a.contains("param_name") || !a["param_name"].is_string())
      refuse(name, "array_metadata with a param_name", brief(entry));
    ArrayMetadata m;
    m.param_name = a["param_name"].get<std::string>();
    if (a.contains("write_shape")) m.write_shape = parse_dims(a["write_shape"], name);
    if (a.contains("chunk_shape")) m.chunk_shape = parse_dims(a["chunk_shape"], name);
    const Json ext = a.value("ext_metadata", Json());
    if (ext.is_object() && ext.contains("random_key_impl") && ext["random_key_impl"].is_string())
      m.prng = ext["random_key_impl"].get<std::string>();
    out.push_back(std::move(m));
  }
  return out;
}

std::string format_array_metadatas(const std::vector<ArrayMetadata>& arrays) {
  std::string out = "{\"array_metadatas\": [";
  const auto dims = [](const Dims& d) {
    std::string s = "[";
    for (int i = 0; i < d.ssize(); ++i) s += fmt::format("{}{}", i > 0 ? ", " : "", d[i]);
    return s + "]";
  };
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const ArrayMetadata& a = arrays[i];
    out += fmt::format(
        "{}{{\"array_metadata\": {{\"param_name\": {}, \"write_shape\": {}, \"chunk_shape\": {}, "
        "\"ext_metadata\": {}}}}}",
        i > 0 ? ", " : "", json_quote(a.param_name), dims(a.write_shape), dims(a.chunk_shape),
        a.prng.empty() ? "null" : fmt::format("{{\"random_key_impl\": {}}}", json_quote(a.prng)));
  }
  return out + "]}";
}

namespace {

// The reference tokens of the pointer "/<name>", each followed by a byte that cannot occur in one.
std::string pointer_key(const std::string& name) {
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '/') {
      out += '\xff';
    } else if (name[i] == '~' && i + 1 < name.size() &&
               (name[i + 1] == '0' || name[i + 1] == '1')) {
      out += name[++i] == '0' ? '~' : '/';
    } else {
      out += name[i];
    }
  }
  return out + '\xff';
}

}  // namespace

Strings Strings::parse(std::string_view text, std::string_view name) {
  Strings out;
  struct Entry {
    std::string prefix;
    const Json* value;
  };
  const Json j = parse_object(text, name);
  std::vector<Entry> stack{{"", &j}};
  while (!stack.empty()) {
    const Entry e = stack.back();
    stack.pop_back();
    for (const auto& [key, value] : e.value->items()) {
      std::string full = e.prefix + key + '\xff';
      if (value.is_string())
        out.by_pointer_[full] = value.get<std::string>();
      else if (value.is_object())
        stack.push_back({std::move(full), &value});
      else
        refuse(name, "strings", brief(value));
    }
  }
  return out;
}

std::optional<std::string> Strings::find(const std::string& param_name) const {
  auto it = by_pointer_.find(pointer_key(param_name));
  if (it == by_pointer_.end()) it = by_pointer_.find(param_name + '\xff');
  if (it == by_pointer_.end()) return std::nullopt;
  return it->second;
}

std::string format_strings(const std::vector<std::pair<std::string, std::string>>& strings) {
  Json j = Json::object();
  for (const auto& [name, text] : strings) {
    const std::string pointer = pointer_key(name);
    Json* at = &j;
    std::size_t begin = 0;
    while (true) {
      const std::size_t end = pointer.find('\xff', begin);
      const std::string token = pointer.substr(begin, end - begin);
      if (!at->is_object())
        throw_user_error({fmt::format("save the string \"{}\"", name),
                          "names that are not the beginning of one another before a \"/\"",
                          "two that are", "Rename one of them"});
      at = &(*at)[token];
      if (at->is_null() && end + 1 != pointer.size()) *at = Json::object();
      begin = end + 1;
      if (begin == pointer.size()) break;
    }
    *at = text;
  }
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string python_repr(std::string_view s) {
  const bool single = s.find('\'') != std::string_view::npos;
  const char quote = single && s.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : s) {
    const auto u = static_cast<unsigned char>(c);
    if (c == quote || c == '\\')
      (out += '\\') += c;
    else if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    else if (u < 0x20 || u == 0x7f)
      out += fmt::format("\\x{:02x}", u);
    else
      out += c;
  }
  return out + quote;
}

std::string python_tuple(const KeyPath& path) {
  std::string out = "(";
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (i > 0) out += ", ";
    out += python_repr(path[i].text);
  }
  if (path.size() == 1) out += ',';
  return out + ")";
}

namespace {
constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
}

std::string base64_url(std::string_view s) {
  std::string out;
  for (std::size_t i = 0; i < s.size(); i += 3) {
    std::uint32_t v = 0;
    for (std::size_t k = 0; k < 3; ++k)
      v = v << 8 | (i + k < s.size() ? static_cast<unsigned char>(s[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k)
      out += i + k > s.size() ? '=' : kBase64[v >> (18 - 6 * k) & 63];
  }
  return out;
}

std::optional<std::string> parse_base64_url(std::string_view s) {
  std::string out;
  std::uint32_t v = 0;
  int bits = 0;
  while (!s.empty() && s.back() == '=') s.remove_suffix(1);
  for (const char c : s) {
    const std::size_t digit = kBase64.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    v = v << 6 | static_cast<std::uint32_t>(digit);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      out += static_cast<char>(v >> bits & 0xff);
    }
  }
  return out;
}

std::string standard_json(std::string_view s) {
  std::string out;
  bool in_string = false;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (in_string) {
      out += s[i];
      if (s[i] == '\\' && i + 1 < s.size())
        out += s[++i];
      else if (s[i] == '"')
        in_string = false;
      continue;
    }
    const std::string_view rest = s.substr(i);
    bool replaced = false;
    for (const std::string_view word : {"NaN", "Infinity", "-Infinity"}) {
      if (!rest.starts_with(word)) continue;
      out += fmt::format("\"{}\"", word);
      i += word.size() - 1;
      replaced = true;
      break;
    }
    if (replaced) continue;
    out += s[i];
    if (s[i] == '"') in_string = true;
  }
  return out;
}

}  // namespace xylem::checkpoint::orbax
