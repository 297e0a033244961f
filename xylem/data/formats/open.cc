#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "xylem/base/bytes.h"
#include "xylem/base/file.h"
#include "xylem/data/formats/internal/checks.h"
#include "xylem/data/formats/internal/formats.h"
#include "xylem/data/formats/internal/framed.h"
#include "xylem/data/formats/internal/riegeli.h"
#include "xylem/data/formats/record.h"

namespace xylem::data {
namespace {

using internal::Wrapping;

// Names by which files are known when their contents do not tell.
struct Ending {
  std::string_view ending, format;
};
constexpr Ending kEndings[] = {
    {".array_record", "array_record"},
    {".arrayrecord", "array_record"},
    {".arecord", "array_record"},
    {".riegeli", "riegeli"},
    {".bagz", "bagz"},
    {".bag", "bagz"},
    {".tfrecord", "tfrecord"},
    {".tfrecords", "tfrecord"},
    {".txt", "text"},
    {".text", "text"},
    {".jsonl", "jsonl"},
    {".ndjson", "jsonl"},
    {".csv", "csv"},
    {".tsv", "csv"},
    {".npy", "npy"},
    {".npz", "npz"},
    {".parquet", "parquet"},
    {".pq", "parquet"},
    {".tar", "webdataset"},
    {".tgz", "webdataset"},
    {".mds", "mds"},
};
constexpr std::string_view kFormats[] = {"array_record", "riegeli", "bagz", "tfrecord", "text",
                                         "jsonl",        "csv",     "npy",  "npz",      "parquet",
                                         "webdataset",   "mds",     "tfds", "images"};

// Without ".gz" and the like, and without "-00000-of-00004" behind the extension.
std::string_view bare_name(std::string_view name) {
  for (const std::string_view end : {".gz", ".gzip", ".zst", ".zstd", ".zlib", ".br"})
    if (name.ends_with(end)) {
      name.remove_suffix(end.size());
      break;
    }
  const std::size_t of = name.rfind("-of-");
  if (of == name.npos || name.find_first_not_of("0123456789", of + 4) != name.npos) return name;
  const std::size_t dash = name.rfind('-', of - 1);
  if (of == 0 || dash == name.npos || name.find_first_not_of("0123456789", dash + 1) != of)
    return name;
  return name.substr(0, dash);
}

std::string_view format_of_name(std::string_view path) {
  // An address may carry a query behind the file's name.
  if (path.find("://") != path.npos) path = path.substr(0, path.find_first_of("?#"));
  const std::string name = base_name(path);
  std::string lower(bare_name(name));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const Ending& e : kEndings)
    if (lower.ends_with(e.ending)) return e.format;
  return {};
}

bool looks_like_tfrecord(std::string_view head) {
  if (head.size() < 12) return false;
  std::uint32_t crc;
  std::memcpy(&crc, head.data() + 8, 4);
  return mask_crc32c(crc32c(head.substr(0, 8))) == crc;
}
bool looks_like_tar(std::string_view head) {
  return head.size() >= 262 && head.substr(257, 5) == "ustar";
}

std::string_view format_of_magic(const ByteSource& file) {
  const std::string head = file.read(0, 512);
  if (internal::has_riegeli_signature(file)) {
    if (internal::has_array_record_postscript(file)) return "array_record";
    // An ArrayRecord that was cut, by its name.
    return format_of_name(file.name()) == "array_record" ? "array_record" : "riegeli";
  }
  if (head.starts_with("PAR1") || head.starts_with("PARE")) return "parquet";
  if (head.starts_with("\x93NUMPY")) return "npy";
  if (head.starts_with("PK\3\4") || head.starts_with("PK\5\6")) return "npz";
  if (head.starts_with("\xff\xd8\xff") || head.starts_with("\x89PNG\r\n\x1a\n")) return "images";
  if (looks_like_tar(head)) return "webdataset";
  if (looks_like_tfrecord(head)) return "tfrecord";
  return {};
}

std::string_view format_of_wrapped(const SourcePtr& file, Wrapping wrapping) {
  try {
    internal::InputStream in(file, wrapping);
    const std::string_view head = in.peek(512);
    if (looks_like_tar(head)) return "webdataset";
    if (looks_like_tfrecord(head)) return "tfrecord";
  } catch (const DamageError&) {
  }
  return {};
}

std::string_view detect(const SourcePtr& file) {
  const std::string_view by_name = format_of_name(file->name());
  const std::string_view by_magic = format_of_magic(*file);
  // Bagz has no magic, and its first record may look like any file: the name comes first, unless
  // the limits do not fit and the contents say what they are.
  if (by_name == "bagz" && (by_magic.empty() || internal::has_bagz_limits(*file))) return "bagz";
  if (!by_magic.empty()) return by_magic;
  const Wrapping w = internal::detect_wrapping(*file, by_name == "tfrecord" || by_name.empty());
  if (w != Wrapping::kNone)
    if (const auto f = format_of_wrapped(file, w); !f.empty()) return f;
  return by_name;
}

[[noreturn]] void unknown_format(std::string_view name, std::string_view given) {
  std::string list;
  for (const std::string_view f : kFormats)
    list += fmt::format("{}{}", list.empty() ? "" : ", ", f);
  throw_user_error({name, fmt::format("a format: {}", list), given,
                    "Name the format (--format), or give the file its extension"});
}

ReaderPtr open_source_as(SourcePtr file, std::string_view format, const ReadOptions& options) {
  using namespace internal;
  if (format == "array_record") return make_array_record_reader(std::move(file), options);
  if (format == "riegeli") return make_riegeli_reader(std::move(file), options);
  if (format == "npy") return make_npy_reader(std::move(file), options);
  if (format == "npz") return make_npz_reader(std::move(file), options);
  if (format == "images") return make_image_reader(std::move(file), options);
  if (format == "parquet") return make_parquet_reader(std::move(file), options);
  if (format == "webdataset") return make_webdataset_reader(std::move(file), options);
  if (format == "mds") return make_mds_shard_reader(std::move(file), options);
  if (format == "bagz") {
    const std::string limits =
        join_path(parent_path(file->name()), "limits." + base_name(file->name()));
    return make_bagz_reader(file, path_exists(limits) ? open_source(limits) : nullptr, options);
  }
  const std::string name = file->name();
  const Wrapping w =
      detect_wrapping(*file, format == "tfrecord" && !looks_like_tfrecord(file->read(0, 12)));
  std::unique_ptr<Framer> framer;
  if (format == "tfrecord") framer = make_tfrecord_framer();
  if (format == "text") framer = make_text_framer(options);
  if (format == "jsonl") framer = make_jsonl_framer(options);
  if (format == "csv") framer = make_csv_framer(options, name);
  if (framer) return std::make_shared<FramedReader>(std::move(file), w, std::move(framer), options);
  unknown_format(name, fmt::format("\"{}\"", format));
}

// Files one after the other, opened when they are needed.
class ManyReader final : public RecordReader, public std::enable_shared_from_this<ManyReader> {
 public:
  ManyReader(std::vector<std::string> paths, ReadOptions options)
      : paths_(std::move(paths)), options_(std::move(options)), readers_(paths_.size()) {}

  std::string_view format() const override { return file(0)->format(); }
  bool structured() const override { return file(0)->structured(); }
  std::uint64_t count() const override { return first().back(); }
  Record read(std::uint64_t i) const override {
    const auto [f, k] = place(i);
    return file(f)->read(k);
  }
  std::vector<Record> read_batch(std::span<const std::uint64_t> indices) const override {
    std::vector<std::vector<std::uint64_t>> own(paths_.size()), places(paths_.size());
    for (std::size_t n = 0; n < indices.size(); ++n) {
      const auto [f, k] = place(indices[n]);
      own[f].push_back(k);
      places[f].push_back(n);
    }
    std::vector<Record> out(indices.size());
    for (std::size_t f = 0; f < paths_.size(); ++f) {
      if (own[f].empty()) continue;
      std::vector<Record> part = file(f)->read_batch(own[f]);
      for (std::size_t n = 0; n < part.size(); ++n) out[places[f][n]] = std::move(part[n]);
    }
    return out;
  }
  std::unique_ptr<RecordCursor> scan(std::uint64_t begin) const override;
  void verify(const DamageSink& sink) const override {
    for (std::size_t f = 0; f < paths_.size(); ++f) file(f)->verify(sink);
  }
  std::pair<std::string, std::uint64_t> locate(std::uint64_t i) const override {
    const auto [f, k] = place(i);
    return file(f)->locate(k);
  }

  std::size_t num_files() const { return paths_.size(); }
  ReaderPtr file(std::size_t f) const {
    const std::lock_guard lock(mutex_);
    if (!readers_[f]) {
      ReaderPtr r = open_records(paths_[f], options_);
      if (f != 0 && readers_[0] && r->structured() != readers_[0]->structured())
        throw_user_error({paths_[f],
                          fmt::format("records of one kind in all files ({} in {})",
                                      readers_[0]->format(), paths_[0]),
                          fmt::format("{}", r->format()), "Read the files apart"});
      readers_[f] = std::move(r);
    }
    return readers_[f];
  }

 private:
  const std::vector<std::uint64_t>& first() const {
    const std::lock_guard lock(first_mutex_);
    if (first_.empty()) {
      std::vector<std::uint64_t> sums{0};
      for (std::size_t f = 0; f < paths_.size(); ++f)
        sums.push_back(sums.back() + file(f)->count());
      first_ = std::move(sums);
    }
    return first_;
  }
  std::pair<std::size_t, std::uint64_t> place(std::uint64_t i) const {
    const std::vector<std::uint64_t>& x = first();
    internal::check_index(fmt::format("{} files", paths_.size()), i, x.back());
    const auto f =
        static_cast<std::size_t>(std::upper_bound(x.begin(), x.end(), i) - x.begin() - 1);
    return {f, i - x[f]};
  }

  std::vector<std::string> paths_;
  ReadOptions options_;
  mutable std::mutex mutex_, first_mutex_;
  mutable std::vector<ReaderPtr> readers_;
  mutable std::vector<std::uint64_t> first_;
};

class ManyCursor final : public RecordCursor {
 public:
  ManyCursor(std::shared_ptr<const ManyReader> reader, std::uint64_t begin)
      : reader_(std::move(reader)) {
    // Files before the first record are counted, the others not even opened.
    while (begin > 0 && file_ < reader_->num_files()) {
      const std::uint64_t n = reader_->file(file_)->count();
      if (begin < n) break;
      begin -= n;
      ++file_;
    }
    if (file_ == reader_->num_files()) internal::check_index("files", begin, 1);
    start_ = begin;
  }
  bool next(Record& out) override {
    while (file_ < reader_->num_files()) {
      if (!cursor_) {
        cursor_ = reader_->file(file_)->scan(start_);
        start_ = 0;
      }
      if (cursor_->next(out)) return true;
      cursor_.reset();
      ++file_;
    }
    return false;
  }
  bool recover() override {
    if (cursor_ && cursor_->recover()) return true;
    cursor_.reset();
    start_ = 0;
    return ++file_ < reader_->num_files();
  }

 private:
  std::shared_ptr<const ManyReader> reader_;
  std::unique_ptr<RecordCursor> cursor_;
  std::size_t file_ = 0;
  std::uint64_t start_ = 0;
};

std::unique_ptr<RecordCursor> ManyReader::scan(std::uint64_t begin) const {
  return std::make_unique<ManyCursor>(shared_from_this(), begin);
}

std::string_view format_of_folder(const std::string& path) {
  if (path_exists(join_path(path, "dataset_info.json"))) return "tfds";
  if (path_exists(join_path(path, "index.json"))) return "mds";
  if (internal::has_images(path)) return "images";
  return {};
}

ReaderPtr open_folder(const std::string& path, const ReadOptions& options) {
  std::string_view format = options.format;
  if (format.empty()) format = format_of_folder(path);
  if (format == "mds") return internal::make_mds_reader(path, options);
  if (format == "tfds") return internal::make_tfds_reader(path, options);
  if (format == "images") return internal::make_image_folder_reader(path, options);
  unknown_format(path, format.empty() ? "a folder without dataset_info.json, index.json or images"
                                      : fmt::format("\"{}\", for a folder", format));
}

}  // namespace

std::vector<std::string_view> record_formats() {
  return {std::begin(kFormats), std::end(kFormats)};
}

std::string detect_format(const std::string& path) {
  if (path.find("://") == path.npos && is_directory(path))
    return std::string(format_of_folder(path));
  return std::string(detect(open_source(path)));
}

ReaderPtr open_records(SourcePtr source, const ReadOptions& options) {
  std::string_view format = options.format;
  if (format.empty()) format = detect(source);
  if (format.empty()) unknown_format(source->name(), "neither its contents nor its name tell");
  return open_source_as(std::move(source), format, options);
}

ReaderPtr open_records(const std::string& path, const ReadOptions& options) {
  if (path.find("://") == path.npos) {
    if (is_directory(path)) return open_folder(path, options);
    if (base_name(path) == "index.json" && (options.format.empty() || options.format == "mds"))
      return internal::make_mds_reader(path, options);
    const bool bagz = options.format == "bagz" || format_of_name(path) == "bagz";
    if (bagz && !path_exists(path)) {
      const std::vector<std::string> shards = internal::expand_bagz_shards(path);
      if (!shards.empty()) return open_records(shards, options);
    }
  }
  return open_records(open_source(path), options);
}

ReaderPtr open_records(std::span<const std::string> paths, const ReadOptions& options) {
  if (paths.empty())
    throw_user_error({"open records", "at least one file", "none", "Name the files"});
  if (paths.size() == 1) return open_records(paths[0], options);
  return std::make_shared<ManyReader>(std::vector<std::string>(paths.begin(), paths.end()),
                                      options);
}

std::string write_index(const std::string& path, const ReadOptions& options) {
  const ReaderPtr reader = open_records(path, options);
  const auto* framed = dynamic_cast<const internal::FramedReader*>(reader.get());
  if (framed == nullptr || framed->wrapped()) return {};
  internal::save_frame_index(path, framed->index());
  return internal::frame_index_path(path);
}

std::unique_ptr<RecordWriter> create_records(const std::string& path, const WriteOptions& options) {
  using namespace internal;
  std::string_view format = options.format;
  if (format.empty()) format = format_of_name(path);
  if (format.empty()) unknown_format(path, "its name does not tell");
  const std::string_view o = options.options;
  Wrapping w = Wrapping::kNone;
  if (path.ends_with(".gz") || path.ends_with(".tgz")) w = Wrapping::kGzip;
  if (path.ends_with(".zst") || path.ends_with(".zstd")) w = Wrapping::kZstd;
  if (path.ends_with(".br")) w = Wrapping::kBrotli;
  if (path.ends_with(".zlib")) w = Wrapping::kZlib;
  const auto plain = [&] {
    if (w != Wrapping::kNone)
      throw_user_error({path, "a format that is read from front to back under this ending",
                        std::string(format), "Drop the ending; the format compresses by itself"});
    return open_file_sink(path);
  };
  const auto wrapped = [&] { return wrap_sink(open_file_sink(path), w); };
  if (format == "array_record") return make_array_record_writer(plain(), o);
  if (format == "riegeli") return make_riegeli_writer(plain(), o);
  if (format == "tfrecord") return make_tfrecord_writer(wrapped(), o);
  if (format == "text") return make_text_writer(wrapped(), o);
  if (format == "jsonl") return make_jsonl_writer(wrapped(), o);
  if (format == "csv") return make_csv_writer(wrapped(), o, path);
  if (format == "npy") return make_npy_writer(plain(), o);
  if (format == "npz") return make_npz_writer(plain(), o);
  if (format == "bagz") return make_bagz_writer(plain(), o, path);
  if (format == "parquet") return make_parquet_writer(plain(), o);
  if (format == "webdataset") return make_webdataset_writer(wrapped(), o);
  if (format == "mds") return make_mds_writer(path, o);
  if (format == "images") return make_image_writer(path, o);
  unknown_format(path, fmt::format("\"{}\", which cannot be written", format));
}

}  // namespace xylem::data
