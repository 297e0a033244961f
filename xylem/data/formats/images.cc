#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "xylem/base/file.h"
#include "xylem/data/formats/image.h"
#include "xylem/data/formats/internal/checks.h"
#include "xylem/data/formats/internal/formats.h"

// Image folders: a folder a class, its images below. Labels are the classes' places in their sorted
// order.

namespace xylem::data::internal {
namespace {

constexpr int kMaxFolderDepth = 32;

bool is_image_name(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower.ends_with(".jpg") || lower.ends_with(".jpeg") || lower.ends_with(".png");
}

struct Image {
  std::string path;  // below the folder
  std::int64_t label = -1;
};

void collect(const std::string& folder, const std::string& below, std::int64_t label, int depth,
             std::vector<Image>& out) {
  if (depth > kMaxFolderDepth) return;
  const std::string here = below.empty() ? folder : join_path(folder, below);
  for (const DirectoryEntry& e : list_directory(here)) {
    const std::string path = below.empty() ? e.name : below + "/" + e.name;
    if (e.is_directory)
      collect(folder, path, label, depth + 1, out);
    else if (is_image_name(e.name))
      out.push_back({path, label});
  }
}

class ImageReader final : public RecordReader, public std::enable_shared_from_this<ImageReader> {
 public:
  // A folder.
  ImageReader(const std::string& folder, const ReadOptions& options)
      : name_(folder), options_(options) {
    for (const DirectoryEntry& e : list_directory(folder))
      if (e.is_directory) {
        std::vector<Image> own;
        collect(folder, e.name, static_cast<std::int64_t>(classes_.size()), 1, own);
        if (own.empty()) continue;
        classes_.push_back(e.name);
        images_.insert(images_.end(), own.begin(), own.end());
      } else if (is_image_name(e.name)) {
        images_.push_back({e.name, -1});
      }
  }
  // One image.
  ImageReader(SourcePtr file, const ReadOptions& options)
      : name_(file->name()), options_(options), file_(std::move(file)) {
    images_.push_back({base_name(name_), -1});
  }
  std::string_view format() const override { return "images"; }
  bool structured() const override { return true; }
  std::uint64_t count() const override { return images_.size(); }
  Record read(std::uint64_t i) const override {
    check_index(name_, i, count());
    const Image& image = images_[i];
    const SourcePtr file = file_ ? file_ : open_file_source(join_path(name_, image.path));
    check_limit(file->name(), 0, file->size(), file->size(), options_);
    std::string data = file->read(0, file->size());
    if (image_format(data).empty())
      throw DamageError(file->name(), 0, std::min<std::uint64_t>(8, data.size()),
                        "it is neither JPEG nor PNG");
    Record r;
    r.fields.emplace_back("path", image.path);
    if (image.label >= 0) {
      r.fields.emplace_back("label", image.label);
      r.fields.emplace_back("class", classes_[static_cast<std::size_t>(image.label)]);
    }
    if (options_.decode_images)
      r.fields.emplace_back("image", decode(*file, data));
    else
      r.fields.emplace_back("image", Bytes{std::move(data)});
    return r;
  }
  std::unique_ptr<RecordCursor> scan(std::uint64_t begin) const override {
    return make_indexed_cursor(shared_from_this(), begin);
  }
  void verify(const DamageSink& sink) const override {
    for (const Image& image : images_) {
      try {
        const SourcePtr file = file_ ? file_ : open_file_source(join_path(name_, image.path));
        check_limit(file->name(), 0, file->size(), file->size(), options_);
        decode(*file, file->read(0, file->size()));
      } catch (const DamageError& e) {
        sink(e);
      }
    }
  }
  Facts info() const override {
    Facts facts{{"classes", Value(static_cast<std::int64_t>(classes_.size()))}};
    std::map<std::int64_t, std::int64_t> counts;
    for (const Image& i : images_) ++counts[i.label];
    for (const auto& [label, n] : counts)
      facts.emplace_back(
          label < 0 ? "without class" : "class " + classes_[static_cast<std::size_t>(label)],
          Value(n));
    return facts;
  }
  std::pair<std::string, std::uint64_t> locate(std::uint64_t i) const override {
    if (file_ || i >= images_.size()) return {name_, i};
    return {join_path(name_, images_[i].path), 0};
  }

 private:
  HostArray decode(const ByteSource& file, const std::string& data) const {
    try {
      return decode_image(data, "image", options_.max_record_bytes);
    } catch (const UserError& e) {
      throw DamageError(file.name(), 0, file.size(), e.message());
    }
  }
  std::string name_;
  ReadOptions options_;
  SourcePtr file_;
  std::vector<std::string> classes_;
  std::vector<Image> images_;
};

class ImageWriter final : public RecordWriter {
 public:
  explicit ImageWriter(const std::string& folder) : folder_(folder), temporary_(folder + ".tmp") {
    if (path_exists(folder_))
      throw_user_error({fmt::format("write {}", folder_), "a folder that does not exist yet",
                        "it exists", "Remove it or choose another name"});
    remove_tree(temporary_);
    make_directories(temporary_);
  }
  ~ImageWriter() override {
    if (closed_) return;
    try {
      remove_tree(temporary_);
    } catch (const Error&) {  // what cannot be removed stays
    }
  }
  bool structured() const override { return true; }
  void write(const Record& r) override {
    const Value* image = find_field(r.fields, "image");
    if (image == nullptr || (!image->get_if<Bytes>() && !image->get_if<HostArray>()))
      throw_user_error({"write images", "a field \"image\" of bytes or u8[height, width, channels]",
                        fmt::format("record {} has none", count_), "Rename the field"});
    const auto* bytes = image->get_if<Bytes>();
    const std::string data =
        bytes != nullptr ? bytes->data : encode_png(*image->get_if<HostArray>());
    const std::string_view format = image_format(data);
    if (format.empty())
      throw_user_error({"write images", "JPEG or PNG data",
                        fmt::format("record {} holds neither", count_), "Encode the images first"});
    std::string path;
    if (const Value* v = find_field(r.fields, "path"); v != nullptr && v->get_if<std::string>()) {
      path = *v->get_if<std::string>();
      if (bytes == nullptr) path = path.substr(0, path.rfind('.')) + ".png";
    } else {
      const Value* c = find_field(r.fields, "class");
      const std::string folder =
          c != nullptr && c->get_if<std::string>() ? *c->get_if<std::string>() : "";
      path = fmt::format("{}{}{:09}.{}", folder, folder.empty() ? "" : "/", count_,
                         format == "jpeg" ? "jpg" : "png");
    }
    if (path.empty() || path[0] == '/' || ("/" + path + "/").find("/../") != path.npos)
      throw_user_error({"write images: path", "a path inside of the folder", path, "Correct it"});
    const std::string full = join_path(temporary_, path);
    make_directories(parent_path(full));
    write_file(full, data);
    ++count_;
  }
  void close() override {
    commit_directory(temporary_, folder_);
    closed_ = true;
  }

 private:
  std::string folder_, temporary_;
  std::uint64_t count_ = 0;
  bool closed_ = false;
};

}  // namespace

bool has_images(const std::string& folder) {
  std::vector<Image> images;
  for (const DirectoryEntry& e : list_directory(folder)) {
    if (!e.is_directory && is_image_name(e.name)) return true;
    if (e.is_directory) collect(folder, e.name, 0, 1, images);
    if (!images.empty()) return true;
  }
  return false;
}
ReaderPtr make_image_folder_reader(const std::string& folder, const ReadOptions& options) {
  return std::make_shared<ImageReader>(folder, options);
}
ReaderPtr make_image_reader(SourcePtr file, const ReadOptions& options) {
  return std::make_shared<ImageReader>(std::move(file), options);
}
std::unique_ptr<RecordWriter> make_image_writer(const std::string& folder,
                                                std::string_view options) {
  OptionsText("images", options).finish();
  return std::make_unique<ImageWriter>(folder);
}

}  // namespace xylem::data::internal
