#include "xylem/cli/data_commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/base/json.h"
#include "xylem/cli/commands.h"
#include "xylem/data/formats/record.h"
#include "xylem/data/formats/transform.h"

namespace xylem::cli {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

// Standard output through a buffer; EnvironmentError if it is closed or full.
class Output {
 public:
  explicit Output(std::string_view operation) : operation_(operation) {}
  std::string& text() { return text_; }
  void flush_if_large() {
    if (text_.size() >= kLarge) flush();
  }
  void flush() {
    const bool good = std::fwrite(text_.data(), 1, text_.size(), stdout) == text_.size() &&
                      std::fflush(stdout) == 0;
    text_.clear();
    if (!good)
      throw EnvironmentError(ErrorParts{operation_, "standard output must take the text",
                                        "it is closed or full", "Send the output somewhere else"});
  }
  void hex(std::string_view bytes) {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kLarge))) {
      data::append_hex(text_, bytes.substr(0, kLarge));
      flush_if_large();
    }
  }

 private:
  static constexpr std::size_t kLarge = std::size_t{1} << 18;
  std::string operation_, text_;
};

// What every verb knows about its files.
struct FileArguments {
  std::vector<std::string> files;
  data::ReadOptions read;
  std::string decode, delimiter;
  bool no_header = false;

  void finish() {
    read.header = !no_header;
    if (delimiter == "tab") delimiter = "\t";
    if (delimiter.size() > 1 || delimiter == "\"" || delimiter == "\n")
      throw_user_error({"data: --delimiter", "one character, or tab", delimiter, "Correct it"});
    if (!delimiter.empty()) read.delimiter = delimiter[0];
    if (decode == "image") read.decode_images = true;
  }
  // Fields instead of bytes, where --decode says so.
  bool decodes_bytes(const data::RecordReader& reader) const {
    return !decode.empty() && decode != "image" && !reader.structured();
  }
  void apply(data::Record& record) const {
    record.fields = data::decode_bytes(decode, record.bytes);
    record.bytes.clear();
  }
};

void add_files(CLI::App& verb, FileArguments& a) {
  verb.add_option("FILE", a.files, "Files or folders, read in this order")->required();
  verb.add_option(
      "--format", a.read.format, "The format, where contents and name do not tell: " + [] {
        std::string s;
        for (auto f : data::record_formats()) s += (s.empty() ? "" : ", ") + std::string(f);
        return s;
      }());
  verb.add_option("--columns", a.read.columns, "Fields to read, separated by commas; else all")
      ->delimiter(',');
  verb.add_option("--split", a.read.split, "TFDS folders: train, train[:10%], test+train[2shard]");
  verb.add_option("--max-record-bytes", a.read.max_record_bytes, "Refuse larger records and blocks")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb.add_flag("--no-header", a.no_header, "CSV: the first line is data");
  verb.add_option("--delimiter", a.delimiter, "CSV: what separates fields; else by extension");
}
void add_decode(CLI::App& verb, FileArguments& a) {
  verb.add_option("--decode", a.decode,
                  "example, sequence_example, json, text: what the bytes of records hold; image: "
                  "pixels of image folders")
      ->check(CLI::IsMember({"example", "sequence_example", "json", "text", "image"}));
}

// ---- cat, head

void print_json(Output& out, std::uint64_t index, const data::Record& r, bool structured) {
  if (structured) {
    out.text() += fmt::format("{{\"index\": {}, \"fields\": ", index);
    data::append_json(out.text(), data::Value(r.fields));
    out.text() += "}\n";
  } else {
    out.text() += fmt::format("{{\"index\": {}, \"size\": {}, \"hex\": \"", index, r.bytes.size());
    out.hex(r.bytes);
    out.text() += "\"}\n";
  }
  out.flush_if_large();
}

// One line for people: text as it is, other bytes as hexadecimal, both cut.
std::string preview(const data::Record& r, bool structured, std::size_t width) {
  std::string s;
  if (structured) {
    data::append_json(s, data::Value(r.fields));
  } else if (data::is_utf8(r.bytes)) {
    s = json_quote(std::string_view(r.bytes).substr(0, width));
  } else {
    data::append_hex(s, std::string_view(r.bytes).substr(0, width / 2 + 1));
  }
  if (s.size() > width) {
    std::size_t end = width;
    while (end > 0 && (s[end] & 0xc0) == 0x80) --end;
    s = s.substr(0, end) + "…";
  }
  return s;
}

struct CatArguments : FileArguments {
  bool json = false;
  std::uint64_t start = 0;
  std::uint64_t count = UINT64_MAX;
  bool preview = false;
};

int cat(const CatArguments& a) {
  Output out("data cat");
  std::uint64_t index = 0, left = a.count, before = a.start;
  try {
    for (const std::string& file : a.files) {
      if (left == 0) break;
      const data::ReaderPtr reader = data::open_records(file, a.read);
      const auto cursor = reader->scan(0);
      const std::uint64_t skipped = before == 0 ? 0 : cursor->skip(before);
      before -= skipped;
      index += skipped;
      if (before > 0) continue;
      const bool decodes = a.decodes_bytes(*reader);
      const bool structured = reader->structured() || decodes;
      data::Record record;
      while (left > 0 && cursor->next(record)) {
        if (decodes) {
          try {
            a.apply(record);
          } catch (Error& e) {
            e.add_context(fmt::format("{}, record {}", file, index));
            throw;
          }
        }
        if (a.preview) {
          out.text() += structured ? fmt::format("{}: {}\n", index, preview(record, true, 400))
                                   : fmt::format("{}: {} bytes: {}\n", index, record.bytes.size(),
                                                 preview(record, false, 100));
        } else if (a.json) {
          print_json(out, index, record, structured);
        } else if (structured) {
          data::append_json(out.text(), data::Value(record.fields));
          out.text() += '\n';
        } else {
          out.text() += record.bytes;
          out.text() += '\n';
        }
        out.flush_if_large();
        ++index;
        --left;
      }
    }
  } catch (...) {
    out.flush();
    throw;
  }
  out.flush();
  return kDone;
}

// ---- verify

struct VerifyArguments : FileArguments {
  bool json = false;
};

std::string one_line(std::string s) {
  for (char& c : s)
    if (c == '\n' || c == '\r') c = ' ';
  return s;
}

int verify(const VerifyArguments& a) {
  Output out("data verify");
  std::uint64_t problems = 0;
  const auto report = [&](std::string_view file, std::uint64_t begin, std::uint64_t end,
                          const std::string& reason) {
    ++problems;
    const std::uint64_t last = end > begin ? end - 1 : begin;
    if (a.json) {
      JsonWriter w;
      w.begin_object();
      w.field("file", file);
      w.field("begin", begin);
      w.field("end", last);
      w.field("reason", reason);
      w.end_object();
      out.text() += w.take() + "\n";
    } else {
      out.text() += fmt::format("{}: bytes {}-{}: {}\n", one_line(std::string(file)), begin, last,
                                one_line(reason));
    }
    out.flush_if_large();
  };
  const auto sink = [&](const data::DamageError& e) {
    report(e.file(), e.begin(), e.end(), e.reason());
  };
  std::uint64_t unread = 0;
  for (const std::string& file : a.files) {
    try {
      data::open_records(file, a.read)->verify(sink);
    } catch (const data::DamageError& e) {
      sink(e);
    } catch (const EnvironmentError& e) {  // no damage: nothing is known of the file
      ++unread;
      out.flush();
      std::fprintf(stderr, "xylem: %s\n", one_line(e.message()).c_str());
    } catch (const UserError& e) {
      std::uint64_t size = 0;
      try {
        size = data::open_source(file)->size();
      } catch (const Error&) {
      }
      report(file, 0, size, e.message());
    }
  }
  out.flush();
  return problems + unread == 0 ? kDone : kFailed;
}

// ---- info

struct InfoArguments : FileArguments {
  bool json = false;
};

int info(const InfoArguments& a) {
  Output out("data info");
  std::uint64_t total = 0;
  std::string lines;
  for (const std::string& file : a.files) {
    const data::ReaderPtr r = data::open_records(file, a.read);
    const std::uint64_t n = r->count();
    total += n;
    data::Fields fields;
    fields.emplace_back("file", file);
    fields.emplace_back("format", std::string(r->format()));
    fields.emplace_back("records", n);
    try {
      fields.emplace_back("bytes", data::open_source(file)->size());
    } catch (const Error&) {  // folders have no size of their own
    }
    fields.emplace_back("kind", std::string(r->structured() ? "fields" : "bytes"));
    for (auto& fact : r->info()) fields.push_back(std::move(fact));
    if (a.json) {
      data::append_json(lines, data::Value(fields));
      lines += '\n';
    } else {
      lines += file + "\n";
      for (std::size_t i = 1; i < fields.size(); ++i) {
        const auto* text = fields[i].second.get_if<std::string>();
        lines += fmt::format("  {:<18} {}\n", fields[i].first,
                             text != nullptr ? *text : data::to_json(fields[i].second));
      }
    }
  }
  if (!a.json && a.files.size() > 1)
    lines += fmt::format("{} files, {} records\n", a.files.size(), total);
  out.text() = lines;
  out.flush();
  return kDone;
}

// ---- convert

struct ConvertArguments : FileArguments {
  std::string out, to, options, encode = "json";
  bool json = false, skip_damaged = false, progress = false;
  std::uint64_t start = 0, count = UINT64_MAX;
};

int convert(const ConvertArguments& a) {
  const auto begin = Clock::now();
  auto last = begin;
  const bool shows = a.progress || ::isatty(2) != 0;
  const auto writer = data::create_records(a.out, {a.to, a.options});
  std::uint64_t records = 0, bytes = 0, skipped = 0, before = a.start;
  const auto show = [&](bool end) {
    const double s = std::max(1e-9, seconds_since(begin));
    std::fprintf(stderr, "\r%llu records, %.1f MB, %.0f records/s%s",
                 static_cast<unsigned long long>(records), static_cast<double>(bytes) / 1e6,
                 static_cast<double>(records) / s, end ? "\n" : "");
  };
  for (const std::string& file : a.files) {
    const data::ReaderPtr reader = data::open_records(file, a.read);
    const auto cursor = reader->scan(0);
    if (before > 0) before -= cursor->skip(before);
    if (before > 0) continue;
    const bool decodes = a.decodes_bytes(*reader);
    const bool structured = reader->structured() || decodes;
    data::Record record;
    while (records < a.count) {
      try {
        if (!cursor->next(record)) break;
        if (decodes) a.apply(record);
      } catch (const data::DamageError& e) {
        if (!a.skip_damaged) throw;
        ++skipped;
        std::fprintf(stderr, "xylem: skipped: %s\n", one_line(e.message()).c_str());
        if (!cursor->recover()) break;
        continue;
      }
      if (structured && !writer->structured()) {
        record.bytes = data::encode_fields(a.encode, record.fields);
        record.fields.clear();
      } else if (!structured && writer->structured()) {
        record.fields.clear();
        record.fields.emplace_back("data", data::Bytes{std::move(record.bytes)});
        record.bytes.clear();
      }
      bytes += record.bytes.size();
      writer->write(record);
      ++records;
      if (shows && (records & 255) == 0 && seconds_since(last) > 0.2) {
        last = Clock::now();
        show(false);
      }
    }
  }
  writer->close();
  if (shows) show(true);
  Output out("data convert");
  if (a.json) {
    JsonWriter w;
    w.begin_object();
    w.field("out", a.out);
    w.field("records", records);
    w.field("skipped", skipped);
    w.field("seconds", seconds_since(begin));
    w.end_object();
    out.text() = w.take() + "\n";
  } else {
    out.text() =
        fmt::format("{} records written to {}{}\n", records, a.out,
                    skipped > 0 ? fmt::format(", {} damaged places skipped", skipped) : "");
  }
  out.flush();
  return kDone;
}

// ---- index

int index_files(const InfoArguments& a) {
  Output out("data index");
  for (const std::string& file : a.files) {
    const std::string side = data::write_index(file, a.read);
    const std::uint64_t n = side.empty() ? 0 : data::open_records(file, a.read)->count();
    if (a.json) {
      data::Fields f;
      f.emplace_back("file", file);
      f.emplace_back("index", side.empty() ? data::Value() : data::Value(side));
      if (!side.empty()) f.emplace_back("records", n);
      data::append_json(out.text(), data::Value(f));
      out.text() += '\n';
    } else if (side.empty()) {
      out.text() += fmt::format("{}: needs no side index\n", file);
    } else {
      out.text() += fmt::format("{}: {} records, offsets in {}\n", file, n, side);
    }
  }
  out.flush();
  return kDone;
}

// ---- bench

struct BenchArguments : FileArguments {
  bool json = false;
  std::uint64_t batch = 1000, max_records = 1000000, seed = 0;
};

int bench(const BenchArguments& a) {
  const data::ReaderPtr reader = data::open_records(a.files, a.read);
  const auto size_of = [&](const data::Record& r) -> std::uint64_t {
    return reader->structured() ? 0 : r.bytes.size();
  };
  struct Row {
    const char* name;
    std::uint64_t records = 0, bytes = 0;
    double seconds = 0;
  };
  Row sequential{"sequential"}, batches{"shuffled batches"}, single{"shuffled single"};
  {
    const auto begin = Clock::now();
    const auto cursor = reader->scan(0);
    data::Record r;
    while (sequential.records < a.max_records && cursor->next(r)) {
      ++sequential.records;
      sequential.bytes += size_of(r);
    }
    sequential.seconds = seconds_since(begin);
  }
  std::vector<std::uint64_t> order(std::min(reader->count(), a.max_records));
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937_64(a.seed));
  {
    const auto begin = Clock::now();
    for (std::size_t k = 0; k < order.size() && seconds_since(begin) < 5; k += a.batch) {
      const std::size_t n = std::min<std::size_t>(a.batch, order.size() - k);
      for (const data::Record& r : reader->read_batch(std::span(order).subspan(k, n))) {
        ++batches.records;
        batches.bytes += size_of(r);
      }
    }
    batches.seconds = seconds_since(begin);
  }
  {
    const auto begin = Clock::now();
    for (std::size_t k = 0; k < order.size() && seconds_since(begin) < 2; ++k) {
      ++single.records;
      single.bytes += size_of(reader->read(order[k]));
    }
    single.seconds = seconds_since(begin);
  }
  Output out("data bench");
  for (const Row& row : {sequential, batches, single}) {
    const double s = std::max(row.seconds, 1e-9);
    const double rate = static_cast<double>(row.records) / s;
    const double mb = static_cast<double>(row.bytes) / s / 1e6;
    if (a.json) {
      JsonWriter w;
      w.begin_object();
      w.field("read", row.name);
      w.field("records", row.records);
      w.field("seconds", row.seconds);
      w.field("records_per_second", rate);
      w.field("megabytes_per_second", mb);
      w.end_object();
      out.text() += w.take() + "\n";
    } else {
      out.text() += fmt::format("{:<17} {:>9} records in {:.3f} s: {:.0f} records/s", row.name,
                                row.records, row.seconds, rate);
      out.text() += reader->structured() ? "\n" : fmt::format(", {:.1f} MB/s\n", mb);
    }
  }
  out.flush();
  return kDone;
}

// The arguments live as long as the verb that parsing may choose.
template <class Arguments>
void on_chosen(CLI::App& verb, std::function<int()>& command, std::shared_ptr<Arguments> a,
               int (*run)(const Arguments&)) {
  verb.callback([&command, a, run] {
    command = [a, run] {
      a->finish();
      return run(*a);
    };
  });
}

}  // namespace

void add_data_commands(CLI::App& data, std::function<int()>& command) {
  {
    auto a = std::make_shared<CatArguments>();
    CLI::App& v = *data.add_subcommand("cat", "Print records, one a line");
    add_files(v, *a);
    add_decode(v, *a);
    v.add_flag("--json", a->json,
               "Print {\"index\", \"size\", \"hex\"}, or {\"index\", \"fields\"}");
    v.add_option("--start", a->start, "The first record to print; numbers run over all files")
        ->check(CLI::NonNegativeNumber);
    v.add_option("--count", a->count, "How many to print")->check(CLI::NonNegativeNumber);
    on_chosen(v, command, a, cat);
  }
  {
    auto a = std::make_shared<CatArguments>();
    a->count = 5;
    a->preview = true;
    CLI::App& v = *data.add_subcommand("head", "Show the first records, shortened");
    add_files(v, *a);
    add_decode(v, *a);
    v.add_option("-n,--count", a->count, "How many to show")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    v.add_flag("--json", a->json, "The same as cat --json");
    v.callback([&command, a] {
      command = [a] {
        a->finish();
        a->preview = !a->json;
        return cat(*a);
      };
    });
  }
  {
    auto a = std::make_shared<InfoArguments>();
    CLI::App& v = *data.add_subcommand("info", "Format, counts, sizes, codec");
    add_files(v, *a);
    v.add_flag("--json", a->json, "One object a file");
    on_chosen(v, command, a, info);
  }
  {
    auto a = std::make_shared<VerifyArguments>();
    CLI::App& v = *data.add_subcommand(
        "verify", "Check every checksum and length; one line \"FILE: bytes A-B: reason\" a damage");
    add_files(v, *a);
    v.add_flag("--json", a->json, "One object a damage: file, begin, end, reason");
    on_chosen(v, command, a, verify);
  }
  {
    auto a = std::make_shared<ConvertArguments>();
    CLI::App& v = *data.add_subcommand("convert", "Write records in another format");
    add_files(v, *a);
    add_decode(v, *a);
    v.add_option("--out", a->out, "The file or folder to write")->required();
    v.add_option("--to", a->to, "Its format, where its name does not tell");
    v.add_option("--options", a->options, "The format's options, as in group_size:8,zstd:3");
    v.add_option("--encode", a->encode, "How fields become bytes: json, example, or field:NAME")
        ->capture_default_str();
    v.add_option("--start", a->start, "The first record to write")->check(CLI::NonNegativeNumber);
    v.add_option("--count", a->count, "How many to write")->check(CLI::NonNegativeNumber);
    v.add_flag("--skip-damaged", a->skip_damaged, "Go on behind damage, and say how often");
    v.add_flag("--progress", a->progress, "Show progress though standard error is no terminal");
    v.add_flag("--json", a->json, "Print the summary as one object");
    on_chosen(v, command, a, convert);
  }
  {
    auto a = std::make_shared<InfoArguments>();
    CLI::App& v = *data.add_subcommand(
        "index", "Write side files with the records' offsets, for formats without an index");
    add_files(v, *a);
    v.add_flag("--json", a->json, "One object a file");
    on_chosen(v, command, a, index_files);
  }
  {
    auto a = std::make_shared<BenchArguments>();
    CLI::App& v = *data.add_subcommand("bench", "Measure how fast records are read");
    add_files(v, *a);
    v.add_option("--batch", a->batch, "Records a batch")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    v.add_option("--max-records", a->max_records, "Read at most so many")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    v.add_option("--seed", a->seed, "Seed of the shuffle")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    v.add_flag("--json", a->json, "One object a kind of reading");
    on_chosen(v, command, a, bench);
  }
}

}  // namespace xylem::cli
