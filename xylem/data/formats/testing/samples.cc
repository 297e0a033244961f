#include "xylem/data/formats/testing/samples.h"

#include <gtest/gtest.h>

#include "xylem/base/file.h"

namespace xylem::data::testing {
namespace {

class Folder {
 public:
  Folder() : path_(make_temporary_directory("formats")) {}
  ~Folder() { remove_tree(path_); }
  std::string operator/(const std::string& name) const { return join_path(path_, name); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::vector<Record> byte_records() {
  std::vector<Record> records;
  std::mt19937_64 rng(1);
  for (const std::size_t n : {0, 1, 5, 0, 100, 3, 700, 64, 31, 32, 33}) {
    std::string s;
    for (std::size_t i = 0; i < n; ++i) s += static_cast<char>(n % 2 == 0 ? rng() : 'a' + i % 26);
    records.push_back({s, {}});
  }
  return records;
}

std::vector<Record> text_records() {
  std::vector<Record> records;
  for (const char* s : {"first line", "", "x", "a longer line of text, with a comma", "\"quoted\""})
    records.push_back({s, {}});
  return records;
}

// Fields that JSON gives back as they are.
std::vector<Record> field_records() {
  std::vector<Record> records;
  for (int i = 0; i < 9; ++i) {
    Record r;
    r.fields.emplace_back("id", std::int64_t{i});
    r.fields.emplace_back("name", "name " + std::to_string(i % 3));
    r.fields.emplace_back("weight", 0.5 * i);
    if (i % 4 == 1)
      r.fields.emplace_back("tags", Value());
    else
      r.fields.emplace_back("tags", List(static_cast<std::size_t>(i % 3), Value("tag")));
    records.push_back(r);
  }
  return records;
}

std::vector<Record> csv_records() {
  std::vector<Record> records;
  for (int i = 0; i < 6; ++i) {
    Record r;
    r.fields.emplace_back("a", std::to_string(i));
    r.fields.emplace_back("b, c", i % 2 == 0 ? "plain" : "with \"quotes\",\nand lines");
    records.push_back(r);
  }
  return records;
}

std::vector<Record> array_records() {
  std::vector<Record> records;
  for (int i = 0; i < 5; ++i) {
    Record r;
    r.fields.emplace_back("x", HostArray::from<float>({0.5f * static_cast<float>(i), 1, 2}, {3}));
    r.fields.emplace_back("y", HostArray::scalar(std::int32_t{i}));
    records.push_back(r);
  }
  return records;
}

std::vector<Record> tar_records() {
  std::vector<Record> records;
  for (int i = 0; i < 5; ++i) {
    Record r;
    r.fields.emplace_back("__key__", i == 3 ? std::string(120, 'k') : "dir/" + std::to_string(i));
    r.fields.emplace_back("txt", Bytes{"text " + std::to_string(i)});
    if (i % 2 == 0) r.fields.emplace_back("bin.x", Bytes{std::string(600, static_cast<char>(i))});
    records.push_back(r);
  }
  return records;
}

void add(std::vector<Sample>& out, const std::string& name, const std::string& format,
         const std::string& options, bool checked, std::vector<Record> records) {
  Sample s{name, format, written(name, {format, options}, records), checked, records};
  out.push_back(std::move(s));
}

std::vector<Sample> make_samples() {
  std::vector<Sample> out;
  add(out, "a.tfrecord", "tfrecord", "", true, byte_records());
  add(out, "b.tfrecord.gz", "tfrecord", "", true, byte_records());
  add(out, "a.txt", "text", "", false, text_records());
  add(out, "a.txt.zst", "text", "", true, text_records());
  add(out, "a.txt.br", "text", "", false, text_records());
  add(out, "a.jsonl", "jsonl", "", false, field_records());
  add(out, "a.csv", "csv", "", false, csv_records());
  std::vector<Record> one = array_records();
  for (Record& r : one) r.fields.resize(1);
  for (Record& r : one) r.fields[0].first = "data";
  add(out, "a.npy", "npy", "", false, one);
  add(out, "a.npz", "npz", "", true, array_records());
  add(out, "b.npz", "npz", "deflate", true, array_records());
  for (const char* codec : {"uncompressed", "zstd:3", "brotli:4", "snappy"}) {
    add(out, "a.array_record", "array_record", std::string("group_size:4,") + codec, true,
        byte_records());
    add(out, "a.riegeli", "riegeli", std::string("chunk_size:300,") + codec, true, byte_records());
  }
  for (const char* options : {"none,page_rows:4", "snappy,row_group_rows:4",
                              "gzip,delta,dictionary:false", "zstd,data_page:2,row_group_rows:5",
                              "brotli,data_page:2,delta,dictionary:false", "lz4_raw"})
    add(out, "a.parquet", "parquet", options, false, field_records());
  add(out, "a.bag", "bagz", "", false, byte_records());
  add(out, "a.bagz", "bagz", "", false, byte_records());
  add(out, "a.tar", "webdataset", "", false, tar_records());
  add(out, "a.tar.gz", "webdataset", "", true, tar_records());
  add(out, "b.array_record", "array_record", "group_size:3,pad_to_block_boundary:true", true,
      byte_records());
  return out;
}

void exercise_reader(const ReaderPtr& r, bool& good) {
  const auto guarded = [&](auto&& f) {
    try {
      f();
    } catch (const Error&) {
      good = false;
    }
  };
  guarded([&] {
    const auto cursor = r->scan();
    Record record;
    for (int steps = 0; steps < 200000; ++steps) {
      try {
        if (!cursor->next(record)) break;
      } catch (const DamageError&) {
        good = false;
        if (!cursor->recover()) break;
      }
    }
  });
  guarded([&] { r->verify([&](const DamageError&) { good = false; }); });
  guarded([&] { r->info(); });
  guarded([&] {
    const std::uint64_t n = r->count();
    if (n == 0) return;
    guarded([&] { r->read(n - 1); });
    guarded([&] { r->read_batch(std::vector<std::uint64_t>{n / 2, 0, n - 1, 0}); });
    guarded([&] { r->scan(n / 2)->skip(3); });
  });
}

}  // namespace

const std::vector<Sample>& samples() {
  static const std::vector<Sample> all = make_samples();
  return all;
}

std::string written(const std::string& name, const WriteOptions& options,
                    const std::vector<Record>& records) {
  const Folder folder;
  const auto writer = create_records(folder / name, options);
  for (const Record& r : records) writer->write(r);
  writer->close();
  return read_file(folder / name);
}

std::string mutate(const std::string& bytes, std::mt19937_64& rng) {
  std::string s = bytes;
  const auto below = [&](std::size_t n) {
    return n == 0 ? 0 : static_cast<std::size_t>(rng() % n);
  };
  const std::size_t changes = 1 + below(3);
  for (std::size_t c = 0; c < changes && !s.empty(); ++c) {
    // Half of the changes hit the ends, where formats keep what describes the rest.
    std::size_t at = below(s.size());
    if (below(2) == 0)
      at = below(2) == 0 ? below(std::min<std::size_t>(s.size(), 64))
                         : s.size() - 1 - below(std::min<std::size_t>(s.size(), 64));
    switch (below(8)) {
      case 0:
      case 1: s[at] = static_cast<char>(s[at] ^ 1 << below(8)); break;
      case 2: s[at] = static_cast<char>(rng()); break;
      case 3: s.resize(at); break;
      case 4: s.erase(at, below(16)); break;
      case 5: s.insert(at, s.substr(below(s.size()), below(32))); break;
      case 6: {
        static constexpr std::uint64_t kNumbers[] = {0,         1,          0x7f,       0x80,
                                                     0xffff,    0x7fffffff, 0x80000000, 0xffffffff,
                                                     INT64_MAX, UINT64_MAX, 1ull << 40, 0xfffffffe};
        const std::uint64_t v = kNumbers[below(std::size(kNumbers))];
        const std::size_t n = below(2) == 0 ? 4 : 8;
        for (std::size_t i = 0; i < n && at + i < s.size(); ++i)
          s[at + i] = static_cast<char>(v >> (8 * i));
        break;
      }
      default: s += s.substr(below(s.size()), below(200));
    }
  }
  return s;
}

Reading read_all(const ReaderPtr& reader) {
  Reading out;
  try {
    const auto cursor = reader->scan();
    Record r;
    while (cursor->next(r)) out.records.push_back(r);
  } catch (const Error& e) {
    out.error = e.what();
  }
  return out;
}

bool exercise(const std::string& bytes, const std::string& name, const std::string& format) {
  bool good = true;
  try {
    ReadOptions options;
    options.format = format;
    options.max_record_bytes = std::uint64_t{1} << 22;
    exercise_reader(open_records(memory_source(bytes, name), options), good);
  } catch (const Error&) {
    good = false;
  }
  return good;
}

bool exercise_folder(const FolderSample& sample) {
  const Folder folder;
  for (const auto& [name, bytes] : sample.files) {
    make_directories(parent_path(folder / name));
    write_file(folder / name, bytes);
  }
  bool good = true;
  try {
    ReadOptions options;
    options.format = sample.format;
    options.max_record_bytes = std::uint64_t{1} << 22;
    exercise_reader(open_records(folder.path(), options), good);
  } catch (const Error&) {
    good = false;
  }
  return good;
}

std::vector<FolderSample> folder_samples() {
  std::vector<FolderSample> out;
  for (const char* options : {"size_limit:600", "size_limit:600,zstd:3"}) {
    const Folder folder;
    const auto writer = create_records(folder / "m", {"mds", options});
    for (int i = 0; i < 12; ++i) {
      Record r;
      r.fields.emplace_back("a", HostArray::from<float>({1, 2, static_cast<float>(i)}, {3}));
      r.fields.emplace_back("j", List{Value(std::int64_t{i}), Value("x")});
      r.fields.emplace_back("n", std::int64_t{i});
      r.fields.emplace_back("s", "text " + std::to_string(i));
      writer->write(r);
    }
    writer->close();
    FolderSample s{"mds", {}};
    for (const DirectoryEntry& e : list_directory(folder / "m"))
      s.files[e.name] = read_file(join_path(folder / "m", e.name));
    out.push_back(std::move(s));
  }
  return out;
}

}  // namespace xylem::data::testing
