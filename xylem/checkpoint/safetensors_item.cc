#include "xylem/checkpoint/safetensors_item.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/checkpoint/safetensors.h"

namespace xylem::checkpoint {
namespace {

class SafetensorsItem final : public Item {
 public:
  void add(const FileSystem& fs, const std::string& path,
           const std::map<std::string, std::string>* index) {
    files_.push_back(std::make_unique<SafetensorsFile>(path, fs));
    const SafetensorsFile& file = *files_.back();
    for (const TensorInfo& t : file.tensors()) {
      if (index != nullptr) {
        const auto it = index->find(t.name);
        if (it == index->end() || it->second != base_name(path)) continue;
      }
      const auto [it, added] = by_name_.emplace(t.name, leaves_.size());
      if (!added)
        throw_user_error({fmt::format("read {}", path), "every tensor in one file",
                          fmt::format("\"{}\" in two", t.name), "Remove one of the files"});
      LeafInfo l;
      l.path = {{t.name, false}};
      l.dtype = t.dtype;
      l.dtype_name = dtype_info(t.dtype).numpy_name;
      l.shape = t.dims;
      leaves_.push_back(std::move(l));
      tensors_.push_back({&file, &t});
    }
  }

  const std::vector<LeafInfo>& leaves() const override { return leaves_; }
  HostArray read(std::size_t i, const std::optional<Box>& box) const override {
    const Tensor& t = tensors_.at(i);
    const Dims& shape = t.info->dims;
    if (!box || shape.size() == 0 || box->start.size() != shape.size() ||
        box->shape.size() != shape.size() || box->start[0] < 0 || box->shape[0] < 0 ||
        box->start[0] > shape[0] || box->shape[0] > shape[0] - box->start[0]) {
      const HostArray a = t.file->read(*t.info);
      return box ? cut_box(a, *box, t.info->name) : a;
    }
    // Only the rows that are needed.
    const HostArray a = t.file->read_rows(*t.info, box->start[0], box->start[0] + box->shape[0]);
    Box rest = *box;
    rest.start[0] = 0;
    return rest.shape == a.dims() ? a : cut_box(a, rest, t.info->name);
  }
  HostArray read_named(std::string_view name, const std::optional<Box>& box) const override {
    const auto it = by_name_.find(std::string(name));
    return it == by_name_.end() ? Item::read_named(name, box) : read(it->second, box);
  }
  std::uint64_t stored_bytes(std::size_t i) const override {
    return tensors_.at(i).info->end - tensors_.at(i).info->begin;
  }
  void require(const std::map<std::string, std::string>& index, const std::string& path) const {
    for (const auto& [name, file] : index)
      if (!by_name_.contains(name))
        throw_user_error({fmt::format("read {}", path),
                          fmt::format("tensor \"{}\" in {}", name, file), "it is not there",
                          "Get the missing file"});
  }

 private:
  struct Tensor {
    const SafetensorsFile* file;
    const TensorInfo* info;
  };
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::vector<LeafInfo> leaves_;
  std::vector<Tensor> tensors_;
  std::map<std::string, std::size_t> by_name_;
};

std::map<std::string, std::string> read_index(const FileSystem& fs, const std::string& path) {
  const nlohmann::json j = nlohmann::json::parse(fs.read_file(path), nullptr, false);
  std::map<std::string, std::string> out;
  if (j.is_object() && j.contains("weight_map") && j["weight_map"].is_object()) {
    for (const auto& [name, file] : j["weight_map"].items()) {
      if (!file.is_string() || file.get<std::string>().find('/') != std::string::npos) break;
      out[name] = file.get<std::string>();
    }
    if (out.size() == j["weight_map"].size()) return out;
  }
  throw_user_error({fmt::format("read {}", path), "a weight_map of tensor names to files beside it",
                    "something else", "Get the file again"});
}

}  // namespace

std::unique_ptr<Item> open_safetensors(const FileSystem& fs, const std::string& path) {
  auto item = std::make_unique<SafetensorsItem>();
  item->add(fs, path, nullptr);
  return item;
}

std::unique_ptr<Item> open_safetensors_directory(const FileSystem& fs,
                                                 const std::string& directory) {
  auto item = std::make_unique<SafetensorsItem>();
  std::vector<std::string> files;
  std::string index_path;
  for (const DirectoryEntry& e : fs.list(directory)) {
    if (e.is_directory) continue;
    if (e.name.ends_with(".safetensors.index.json")) index_path = join_path(directory, e.name);
    if (e.name.ends_with(".safetensors")) files.push_back(join_path(directory, e.name));
  }
  if (index_path.empty()) {
    for (const std::string& f : files) item->add(fs, f, nullptr);
    return item;
  }
  const auto index = read_index(fs, index_path);
  for (const std::string& f : files) item->add(fs, f, &index);
  item->require(index, index_path);
  return item;
}

}  // namespace xylem::checkpoint
