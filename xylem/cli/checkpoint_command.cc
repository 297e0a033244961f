#include "xylem/cli/checkpoint_command.h"

#include <fmt/format.h>

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <string>

#include "xylem/base/bytes.h"
#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/base/json.h"
#include "xylem/checkpoint/checkpoint.h"
#include "xylem/checkpoint/convert.h"
#include "xylem/checkpoint/ocdbt/database.h"
#include "xylem/checkpoint/repair.h"
#include "xylem/checkpoint/show.h"
#include "xylem/checkpoint/storage/http_calls.h"
#include "xylem/checkpoint/verify.h"
#include "xylem/cli/commands.h"

namespace xylem::cli {
namespace {

using checkpoint::FileSystem;

struct Arguments {
  std::string path, other, format, item, compression = "stored";
  bool json = false, values = false, quick = false;
  bool zarr3 = false, no_ocdbt = false, flat = false, dry_run = false;
  double max_file_gb = 5;
};

void print(std::string_view s) { std::fwrite(s.data(), 1, s.size(), stdout); }

// Bytes of the UTF-8 character at `i`; 0 if there is none.
std::size_t utf8_length(std::string_view s, std::size_t i) {
  const auto c = static_cast<unsigned char>(s[i]);
  const std::size_t n = c < 0x80   ? 1
                        : c < 0xc2 ? 0
                        : c < 0xe0 ? 2
                        : c < 0xf0 ? 3
                        : c < 0xf5 ? 4
                                   : 0;
  if (n == 0 || n > s.size() - i) return 0;
  std::uint32_t v = n == 1 ? c : c & (0xffu >> (n + 1));
  for (std::size_t k = 1; k < n; ++k) {
    const auto d = static_cast<unsigned char>(s[i + k]);
    if ((d & 0xc0) != 0x80) return 0;
    v = v << 6 | (d & 0x3fu);
  }
  const bool valid = !(n == 3 && v < 0x800) && !(n == 4 && (v < 0x10000 || v > 0x10ffff)) &&
                     !(v >= 0xd800 && v < 0xe000);
  return valid ? n : 0;
}

bool is_utf8(std::string_view s) {
  for (std::size_t i = 0; i < s.size();) {
    const std::size_t n = utf8_length(s, i);
    if (n == 0) return false;
    i += n;
  }
  return true;
}

// For one line of a terminal: what would end it, or is no text, as \x0a.
std::string one_line(std::string_view s) {
  std::string out;
  for (std::size_t i = 0; i < s.size();) {
    const std::size_t n = utf8_length(s, i);
    const std::string_view c = s.substr(i, n == 0 ? 1 : n);
    const bool breaks = c == "\u0085" || c == "\u2028" || c == "\u2029" ||
                        (n == 2 && c[0] == '\xc2' && static_cast<unsigned char>(c[1]) < 0xa0);
    if (n == 0 || breaks || (n == 1 && (static_cast<unsigned char>(c[0]) < 0x20 || c[0] == 0x7f)))
      for (const char b : c) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(b));
    else
      out += c;
    i += c.size();
  }
  return out;
}

// A line that is rewritten while work goes on, on a terminal only.
class Progress {
 public:
  explicit Progress(const char* what) : what_(what), on_(::isatty(2) != 0) {}
  ~Progress() {
    if (shown_) std::fputs("\r\x1b[K", stderr);
  }
  void operator()(std::uint64_t done, std::uint64_t all) {
    if (!on_ || all == 0) return;
    const std::uint64_t percent = done * 100 / all;
    if (shown_ && percent == last_) return;
    shown_ = true;
    last_ = percent;
    const auto n = static_cast<std::size_t>(percent * 30 / 100);
    std::fprintf(stderr, "\r\x1b[K%s [%s%s] %d%%", what_, std::string(n, '#').c_str(),
                 std::string(30 - n, ' ').c_str(), static_cast<int>(percent));
  }

 private:
  const char* what_;
  bool on_, shown_ = false;
  std::uint64_t last_ = 0;
};

// http:// and https:// URLs are read by ranges.
FileSystem files_of(const std::string& path) {
  return checkpoint::is_http_url(path) ? FileSystem(checkpoint::http_calls()) : FileSystem();
}

int show(const Arguments& a) {
  const checkpoint::Checkpoint c = checkpoint::open_checkpoint(files_of(a.path), a.path);
  if (a.json)
    checkpoint::show_json(c, a.values, print);
  else
    checkpoint::show_text(c, !a.quick, print,
                          [p = std::make_shared<Progress>("read")](
                              std::uint64_t done, std::uint64_t all) { (*p)(done, all); });
  return kDone;
}

int kv(const Arguments& a) {
  const auto db = std::make_shared<const checkpoint::ocdbt::Database>(files_of(a.path), a.path);
  bool first = true;
  if (a.json) print("{");
  db->for_each("", [&](std::string_view key) {
    const auto value = db->find(key);
    const std::string name = is_utf8(key) ? std::string(key) : "hex:" + to_hex(key);
    if (!a.json) {
      print(fmt::format("{:>12}  {}\n", value ? value->size() : 0, one_line(name)));
      return;
    }
    print(fmt::format("{}{}: \"{}\"", first ? "" : ",\n", json_quote(name),
                      to_hex(value ? value->read_all() : std::string())));
    first = false;
  });
  if (a.json) print("}\n");
  return kDone;
}

int verify(const Arguments& a) {
  std::string json;
  Progress progress("verify");
  checkpoint::VerifyOptions o;
  o.progress = [&](std::uint64_t done, std::uint64_t all) { progress(done, all); };
  const std::uint64_t defects = checkpoint::verify(
      files_of(a.path), a.path,
      [&](std::string_view where, std::string_view reason) {
        if (a.json)
          json += fmt::format("{}{{\"where\": {}, \"reason\": {}}}", json.empty() ? "" : ", ",
                              json_quote(where), json_quote(reason));
        else
          print(fmt::format("{}: {}: {}\n", one_line(a.path), one_line(where), one_line(reason)));
      },
      o);
  if (a.json) print(fmt::format("{{\"path\": {}, \"defects\": [{}]}}\n", json_quote(a.path), json));
  return defects == 0 ? kDone : kFailed;
}

std::optional<checkpoint::Codec> parse_compression(const std::string& text) {
  using checkpoint::Codec;
  using checkpoint::CodecKind;
  if (text == "none") return std::nullopt;
  if (text == "stored") return Codec{CodecKind::kZstd, checkpoint::kStoredLevel, true};
  int level = 3;
  if (text == "zstd") return Codec{CodecKind::kZstd, level, true};
  const char* end = text.data() + text.size();
  if (text.starts_with("zstd:") && std::from_chars(text.data() + 5, end, level).ptr == end &&
      level >= -50 && level <= 22)
    return Codec{CodecKind::kZstd, level, true};
  throw_user_error({"--compression", "none, stored, zstd or zstd:LEVEL with LEVEL from -50 to 22",
                    text, "Choose one of them"});
}

int convert(const Arguments& a) {
  const FileSystem fs;
  const checkpoint::Checkpoint from = checkpoint::open_checkpoint(files_of(a.path), a.path);
  checkpoint::ConvertOptions o;
  o.format = a.format;
  if (o.format.empty())
    o.format = a.other.ends_with(".npz")           ? "npz"
               : a.other.ends_with(".safetensors") ? "safetensors"
                                                   : "orbax-v1";
  o.item = a.item;
  o.nest = !a.flat;
  o.max_file_bytes = static_cast<std::uint64_t>(a.max_file_gb * 1e9);
  o.orbax.codec = parse_compression(a.compression);
  o.orbax.use_zarr3 = a.zarr3 || o.format == "orbax-v1";
  o.orbax.use_ocdbt = !a.no_ocdbt;
  Progress progress("convert");
  o.progress = [&](std::uint64_t done, std::uint64_t all) { progress(done, all); };
  std::string notes;
  o.note = [&](std::string_view text) {
    if (a.json)
      notes += fmt::format("{}{}", notes.empty() ? "" : ", ", json_quote(text));
    else
      std::fprintf(stderr, "xylem: note: %s\n", one_line(text).c_str());
  };
  checkpoint::convert(fs, from, a.other, o);
  if (a.json)
    print(fmt::format("{{\"path\": {}, \"format\": {}, \"bytes\": {}, \"notes\": [{}]}}\n",
                      json_quote(a.other), json_quote(o.format), fs.bytes_below(a.other), notes));
  return kDone;
}

int diff(const Arguments& a) {
  const checkpoint::Checkpoint x = checkpoint::open_checkpoint(files_of(a.path), a.path);
  const checkpoint::Checkpoint y = checkpoint::open_checkpoint(files_of(a.other), a.other);
  std::string json;
  Progress progress("compare");
  const checkpoint::DiffSummary s = checkpoint::diff(
      x, y,
      [&](const checkpoint::Difference& d) {
        if (a.json)
          json += fmt::format(
              "{}{{\"path\": {}, \"reason\": {}, \"max_abs\": {}, \"max_ulp\": {}}}",
              json.empty() ? "" : ",\n", json_quote(d.path), json_quote(d.reason),
              std::isfinite(d.max_abs) ? fmt::format("{}", d.max_abs) : "null", d.max_ulp);
        else
          print(fmt::format("{}: {}\n", one_line(d.path), d.reason));
      },
      [&](std::uint64_t done, std::uint64_t all) { progress(done, all); });
  if (a.json)
    print(
        fmt::format("{{\"equal\": {}, \"different\": {}, \"only_first\": {}, "
                    "\"only_second\": {}, \"differences\": [{}]}}\n",
                    s.equal, s.different, s.only_first, s.only_second, json));
  else
    print(
        fmt::format("{} leaves equal, {} different, {} only in the first, {} only in the second\n",
                    s.equal, s.different, s.only_first, s.only_second));
  return s.different + s.only_first + s.only_second == 0 ? kDone : kFailed;
}

std::string time_text(std::int64_t ns) {
  const std::time_t t = ns / 1'000'000'000;
  std::tm utc{};
  ::gmtime_r(&t, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

int ls(const Arguments& a) {
  const FileSystem fs = files_of(a.path);
  if (!fs.is_directory(a.path))
    throw_user_error({fmt::format("list {}", a.path), "a root of steps", "no directory is there",
                      "Check the path"});
  std::string json;
  for (const checkpoint::StepEntry& e : checkpoint::list_steps(fs, a.path)) {
    const std::string path = join_path(a.path, e.name);
    const std::uint64_t bytes = fs.bytes_below(path);
    std::int64_t time = fs.status(path).modified_ns;
    std::string problem;
    try {
      const checkpoint::Checkpoint c = checkpoint::open_checkpoint(fs, path);
      time = c.metadata.commit_ns.value_or(time);
    } catch (const Error& error) {
      problem = one_line(error.message());
    }
    if (a.json)
      json += fmt::format(
          "{}{{\"step\": {}, \"name\": {}, \"bytes\": {}, \"commit_time_ns\": {}, "
          "\"problem\": {}}}",
          json.empty() ? "" : ",\n", e.step, json_quote(e.name), bytes, time,
          problem.empty() ? "null" : json_quote(problem));
    else
      print(fmt::format("{:>12}  {:>10.1f} MB  {}  {}{}\n", e.step,
                        static_cast<double>(bytes) / 1e6, time_text(time), e.name,
                        problem.empty() ? "" : "  " + problem));
  }
  if (a.json) print(fmt::format("{{\"steps\": [{}]}}\n", json));
  return kDone;
}

int rm(const Arguments& a) {
  const FileSystem fs;
  const auto kind = checkpoint::classify_path(fs, a.path);
  if (kind != checkpoint::PathKind::kStep && kind != checkpoint::PathKind::kTree)
    throw_user_error({fmt::format("remove {}", a.path), "a step's directory",
                      "something else, or nothing", "Name the step: ROOT/STEP"});
  std::string path = a.path;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::uint64_t bytes = fs.bytes_below(path);
  // Invisible first, and durably so, then gone.
  const std::string hidden = path + ".orbax-checkpoint-tmp";
  fs.remove_tree(hidden);
  fs.rename(path, hidden);
  fs.sync_directory(parent_path(path));
  fs.remove_tree(hidden);
  if (a.json) print(fmt::format("{{\"removed\": {}, \"bytes\": {}}}\n", json_quote(path), bytes));
  return kDone;
}

int repair(const Arguments& a) {
  using Kind = checkpoint::RepairAction::Kind;
  checkpoint::RepairOptions o;
  o.to = a.other;
  o.dry_run = a.dry_run;
  Progress progress("repair");
  o.progress = [&](std::uint64_t done, std::uint64_t all) { progress(done, all); };
  const checkpoint::RepairReport r = checkpoint::repair(FileSystem(), a.path, o);
  std::string actions, backups;
  for (const checkpoint::RepairAction& x : r.actions) {
    const char* kind = x.kind == Kind::kRebuilt   ? "rebuilt"
                       : x.kind == Kind::kDropped ? "dropped"
                                                  : "quarantined";
    if (a.json)
      actions += fmt::format("{}{{\"action\": \"{}\", \"where\": {}, \"detail\": {}}}",
                             actions.empty() ? "" : ",\n", kind, json_quote(x.where),
                             json_quote(x.detail));
    else
      print(fmt::format("{} {}: {}\n", kind, one_line(x.where), one_line(x.detail)));
  }
  for (const std::string& b : r.backups) {
    if (a.json)
      backups += fmt::format("{}{}", backups.empty() ? "" : ", ", json_quote(b));
    else
      print(fmt::format("original: {}\n", one_line(b)));
  }
  if (a.json)
    print(fmt::format("{{\"path\": {}, \"actions\": [{}], \"backups\": [{}]}}\n",
                      json_quote(a.path), actions, backups));
  else if (r.actions.empty())
    print("nothing to repair\n");
  return r.lost() ? kFailed : kDone;
}

}  // namespace

void add_checkpoint_command(CLI::App& app, std::function<int()>& command) {
  CLI::App* top = app.add_subcommand(
      "checkpoint",
      "Look at, check and convert checkpoints: Orbax, safetensors, npz, Flax msgpack");
  top->require_subcommand(1);
  const auto a = std::make_shared<Arguments>();
  const auto verb = [&](const char* name, const char* what, int (*f)(const Arguments&)) {
    CLI::App* v = top->add_subcommand(name, what);
    v->callback([&command, a, f] { command = [a, f] { return f(*a); }; });
    return v;
  };
  constexpr const char* kPath =
      "A root of steps (its newest is taken), a step, an item's folder, a .safetensors, .npz or "
      "msgpack file; or the http:// URL of one, from a server that lists directories";

  CLI::App* v = verb("ls", "List the steps of a root: bytes, time of commit", ls);
  v->add_option("ROOT", a->path, "The directory with a folder a step")->required();
  v->add_flag("--json", a->json,
              "{\"steps\": [{\"step\", \"name\", \"bytes\", \"commit_time_ns\", \"problem\"}]}");

  v = verb("rm", "Remove a step: at once invisible, then its files", rm);
  v->add_option("STEP", a->path, "The step's directory")->required();
  v->add_flag("--json", a->json, "{\"removed\", \"bytes\"}");

  v = verb(
      "repair",
      "Mend a checkpoint: rebuild what can be rebuilt, drop what belongs to nothing, leave out "
      "what is lost; the original is kept as a backup. Exit status 1 if anything is lost",
      repair);
  v->add_option("PATH", a->path, "A root of steps, a step, a .safetensors or .npz file")
      ->required();
  v->add_option("--to", a->other,
                "Where the result goes, a path where nothing is; without it PATH moves to "
                "PATH.xylem-backup and the result takes its place");
  v->add_flag("--dry-run", a->dry_run, "Only say what would be done");
  v->add_flag("--json", a->json,
              "{\"path\", \"actions\": [{\"action\", \"where\", \"detail\"}], \"backups\"}");

  v = verb("show", "Print the tree: paths, types, shapes, bytes, statistics", show);
  v->add_option("PATH", a->path, kPath)->required();
  v->add_flag("--json", a->json,
              "{\"format\", \"step\", \"items\": {NAME: {\"leaves\": [{\"path\", \"dtype\", "
              "\"shape\"} or {\"path\", \"value\"}]} or {\"json\": ...}}}");
  v->add_flag("--values", a->values, "With --json: arrays with \"values\", flat, in C order");
  v->add_flag(
      "--quick", a->quick,
      "Without least, greatest, mean and number of NaNs of each array: reads metadata only");

  v = verb("kv", "List the keys of an OCDBT database", kv);
  v->add_option("DIR", a->path, "The directory with manifest.ocdbt")->required();
  v->add_flag("--json", a->json, "{KEY: value in hexadecimal}");

  v = verb("verify", "Read all, check every checksum; exit status 1 if anything is wrong", verify);
  v->add_option("PATH", a->path, kPath)->required();
  v->add_flag("--json", a->json, "{\"path\", \"defects\": [{\"where\", \"reason\"}]}");

  v = verb("diff", "Compare two checkpoints leaf by leaf; exit status 1 if they differ", diff);
  v->add_option("A", a->path, kPath)->required();
  v->add_option("B", a->other, "The same, the other one")->required();
  v->add_flag("--json", a->json, "Counts, and the differences with max abs and max ulp");

  for (const char* name : {"convert", "export"}) {
    v = verb(name,
             name[0] == 'c' ? "Write a checkpoint anew in another format"
                            : "The same as convert: write a checkpoint for others to read",
             convert);
    v->add_option("FROM", a->path, kPath)->required();
    v->add_option("TO", a->other, "A path where nothing is")->required();
    v->add_option(
         "--to", a->format,
         "orbax-v0, orbax-v1, safetensors (a file, or a folder in Hugging Face's layout) or "
         "npz; by default what the name TO says, else orbax-v1")
        ->check(CLI::IsMember({"orbax-v0", "orbax-v1", "safetensors", "npz"}));
    v->add_option("--item", a->item, "The one item to take");
    v->add_flag("--zarr3", a->zarr3, "orbax-v0: arrays as zarr 3; orbax-v1 always has them so");
    v->add_flag("--no-ocdbt", a->no_ocdbt, "A folder an array instead of one database");
    v->add_option("--compression", a->compression,
                  "none, stored (with checksums, not compressed), zstd or zstd:LEVEL")
        ->capture_default_str();
    v->add_flag("--json", a->json, "{\"path\", \"format\", \"bytes\", \"notes\"}");
    v->add_flag("--flat", a->flat, "Keep names with dots of safetensors and npz as single keys");
    v->add_option("--max-file-gb", a->max_file_gb, "Size of a safetensors file in a folder")
        ->capture_default_str();
  }
}

}  // namespace xylem::cli
