#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "xylem/base/bytes.h"
#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/base/json.h"
#include "xylem/checkpoint/format.h"
#include "xylem/checkpoint/safetensors.h"

namespace xylem::checkpoint {
namespace {

constexpr const char* kStateFile = "state.json";
constexpr const char* kFormatName = "xylem-safetensors";
constexpr int kVersion = 1;

[[noreturn]] void damaged(const std::string& path, std::string_view expected,
                          std::string_view given) {
  throw_user_error({fmt::format("checkpoint {}", path), expected, given,
                    "The checkpoint is damaged or of another kind: remove its step directory to "
                    "go on from the one before, or restore it from a copy"});
}

struct Checksum {
  std::uint64_t size = 0;
  std::uint32_t crc = 0;
};

Checksum checksum_file(const std::string& path) {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 22;
  const RandomAccessFile file(path);
  Checksum c{file.size(), 0};
  for (std::uint64_t at = 0; at < c.size; at += kPiece)
    c.crc = crc32c(file.read(at, static_cast<std::size_t>(std::min(kPiece, c.size - at))), c.crc);
  return c;
}

class SafetensorsFormat final : public StepFormat {
 public:
  std::string_view name() const override { return kFormatName; }

  bool recognises(const FileSystem& fs, const std::string& directory) const override {
    return fs.is_file(join_path(directory, kStateFile));
  }

  void check(const FileSystem& fs, const std::string& directory) const override {
    read_description(directory);
    for (const DirectoryEntry& e : fs.list(directory))
      if (e.name.ends_with(".safetensors")) SafetensorsFile(join_path(directory, e.name));
  }

  void write(const FileSystem&, const std::string& directory, const std::string&, std::int64_t step,
             const StepContents& contents) const override {
    JsonWriter w(2);
    w.begin_object();
    w.field("format", kFormatName);
    w.field("version", kVersion);
    w.field("step", step);
    w.key("items");
    w.begin_object();
    for (const auto& [item, tree] : contents.items) {
      NamedArrays arrays;
      for (const Leaf& l : tree)
        if (l.value.defined())
          arrays.push_back({l.path.empty() ? "value" : path_text(l.path), l.value});
      const std::string file = item + ".safetensors";
      const std::string path = join_path(directory, file);
      write_safetensors(path, arrays, {{"format", "xylem"}});
      const Checksum c = checksum_file(path);
      w.key(item);
      w.begin_object();
      w.field("file", file);
      w.field("size", c.size);
      w.field("crc32c", fmt::format("{:08x}", c.crc));
      w.end_object();
    }
    w.end_object();
    w.key("state");
    w.raw(contents.state);
    w.end_object();
    // Last, so that a directory with it has everything.
    write_file(join_path(directory, kStateFile), w.take() + "\n");
  }

  StepContents read(const FileSystem&, const std::string& directory,
                    const std::vector<std::string>& wanted) const override {
    const std::string path = join_path(directory, kStateFile);
    const nlohmann::json j = read_description(directory);
    const nlohmann::json& items = j["items"];
    const nlohmann::json& state = j["state"];
    StepContents out;
    out.state = state.dump();
    for (const std::string& name : wanted)
      if (!items.contains(name))
        damaged(path, fmt::format("an item \"{}\"", name), "it has none of this name");
    for (const auto& [name, entry] : items.items())
      if (wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end())
        out.items[name] = to_tree(read_item(directory, name, entry));
    return out;
  }

 private:
  static nlohmann::json read_description(const std::string& directory) {
    const std::string path = join_path(directory, kStateFile);
    nlohmann::json j = nlohmann::json::parse(read_file(path), nullptr, false);
    if (!j.is_object() || j.value("format", nlohmann::json()) != kFormatName)
      damaged(path, fmt::format("an object of format {}", kFormatName), "something else");
    if (j.value("version", nlohmann::json()) != kVersion)
      damaged(path, fmt::format("version {}", kVersion),
              fmt::format("version {}", j.value("version", nlohmann::json()).dump()));
    if (!j.value("items", nlohmann::json()).is_object() ||
        !j.value("state", nlohmann::json()).is_object())
      damaged(path, "the objects `items` and `state`", "one of them is absent");
    return j;
  }

  static LeafTree to_tree(const NamedArrays& arrays) {
    LeafTree out;
    for (const NamedArray& a : arrays)
      out.push_back(array_leaf(a.name == "value" ? KeyPath() : parse_path_text(a.name), a.value));
    return out;
  }

  static NamedArrays read_item(const std::string& directory, const std::string& name,
                               const nlohmann::json& entry) {
    const std::string file =
        entry.is_object() && entry.contains("file") && entry["file"].is_string()
            ? entry["file"].get<std::string>()
            : "";
    // A file beside state.json, nowhere else.
    if (file != name + ".safetensors" || file.find('/') != std::string::npos)
      damaged(join_path(directory, kStateFile), fmt::format("the file of item \"{}\"", name),
              entry.dump().substr(0, 200));
    const std::string path = join_path(directory, file);
    const Checksum c = checksum_file(path);
    if (entry.value("size", nlohmann::json()) != c.size)
      damaged(path, fmt::format("{} bytes", entry.value("size", nlohmann::json()).dump()),
              fmt::format("{} bytes", c.size));
    const std::string crc = fmt::format("{:08x}", c.crc);
    if (entry.value("crc32c", nlohmann::json()) != crc)
      damaged(path, fmt::format("CRC-32C {}", entry.value("crc32c", nlohmann::json()).dump()), crc);
    return read_safetensors(path);
  }
};

}  // namespace

std::unique_ptr<StepFormat> make_safetensors_format() {
  return std::make_unique<SafetensorsFormat>();
}

}  // namespace xylem::checkpoint
