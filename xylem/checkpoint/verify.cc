#include "xylem/checkpoint/verify.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "xylem/base/error.h"
#include "xylem/checkpoint/checkpoint.h"
#include "xylem/checkpoint/orbax/metadata.h"
#include "xylem/checkpoint/orbax/writer.h"

namespace xylem::checkpoint {
namespace {

std::string below(const std::string& a, std::string_view b) {
  if (a.empty()) return std::string(b);
  return b.empty() ? a : fmt::format("{}/{}", a, b);
}

// What Orbax's step files say beside the items: they have no checksums of their own.
void check_step_files(const FileSystem& fs, const Checkpoint& c, const DefectSink& report) {
  const std::string metadata = join_path(c.directory, orbax::kStepMetadata);
  if (fs.exists(metadata)) {
    const std::string text = fs.read_file(metadata, std::uint64_t{256} << 20);
    if (!nlohmann::json::accept(text)) report(orbax::kStepMetadata, "it is no JSON");
  } else if (c.format == "orbax-v1") {
    report(orbax::kStepMetadata, "it is absent");
  }
  // Of xylem's steps every one has both; of Orbax's, those whose trees have array_metadatas.
  const std::string sums = join_path(c.directory, orbax::kChecksumFile);
  const bool ours = fs.is_file(sums);
  if (fs.exists(sums) && !ours) report(orbax::kChecksumFile, "it is no file");
  if (ours && !fs.exists(join_path(c.directory, orbax::kCommitFile)))
    report(orbax::kCommitFile, "it is absent");
  for (const auto& [name, item] : c.items)
    if (c.format == "orbax-v0" && !name.empty() && !fs.exists(metadata) &&
        fs.exists(join_path(join_path(c.directory, name), "array_metadatas"))) {
      report(orbax::kStepMetadata, "it is absent");
      break;
    }
  const auto check_commit = [&](const std::string& below) {
    const std::string path = join_path(c.directory, below);
    if (!fs.exists(path)) return;
    constexpr std::string_view kStart = "Checkpoint commit was successful to ";
    if (!fs.is_file(path))
      report(below, "it is no file");
    else if (!fs.read_file(path, 1 << 20).starts_with(kStart))
      report(below, fmt::format("it does not begin with \"{}\"", kStart));
  };
  check_commit(std::string(orbax::kCommitFile));
  for (const auto& [name, item] : c.items)
    if (!name.empty()) check_commit(join_path(name, orbax::kCommitFile));
  // Handlers of known kinds leave files that are understood.
  for (const auto& [name, handler] : c.metadata.item_handlers) {
    if (c.items.contains(name)) continue;
    for (const std::string_view known :
         {"JsonCheckpointHandler", "JsonHandler", "MetricsHandler", "StandardCheckpointHandler",
          "PyTreeCheckpointHandler", "PyTreeHandler", "ArrayCheckpointHandler",
          "JaxRandomKeyCheckpointHandler", "NumpyRandomKeyCheckpointHandler",
          "ProtoCheckpointHandler"})
      if (handler.ends_with(known)) {
        report(name, fmt::format("nothing of what {} writes is in its folder", known));
        break;
      }
  }
}

// The file below `path` that a message is about; empty if it names none.
std::string file_in(const std::string& message, const std::string& path) {
  const std::size_t at = message.find(path + "/");
  if (at == std::string::npos) return {};
  const std::size_t begin = at + path.size() + 1;
  return message.substr(begin, message.find_first_of(":;", begin) - begin);
}

std::uint64_t verify_step(const FileSystem& fs, const std::string& path, const std::string& prefix,
                          const DefectSink& f, const VerifyOptions& options) {
  std::uint64_t defects = 0;
  const auto report = [&](const std::string& where, std::string_view reason) {
    ++defects;
    f(where.empty() ? "(root)" : where, reason);
  };
  Checkpoint c;
  try {
    c = open_checkpoint(fs, path);
  } catch (const Error& e) {
    report(below(prefix, file_in(e.message(), path)), e.message());
    return defects;
  }
  try {
    orbax::check_checksums(fs, c.directory, [&](std::string_view where, std::string_view reason) {
      report(below(prefix, where), reason);
    });
  } catch (const Error& e) {
    report(below(prefix, orbax::kChecksumFile), e.message());
  }
  // An item's folder is looked at for itself.
  const bool whole = c.format.starts_with("orbax-") &&
                     (c.items.size() != 1 || base_name(c.directory) != c.items.begin()->first);
  if (whole) {
    try {
      check_step_files(fs, c, [&](std::string_view where, std::string_view reason) {
        report(below(prefix, where), reason);
      });
    } catch (const Error& e) {
      report(below(prefix, orbax::kStepMetadata), e.message());
    }
  }
  for (const auto& [name, item] : c.items) {
    // The item itself when the path is its folder.
    const std::string at = below(
        prefix, c.directory == path && c.items.size() == 1 && base_name(path) == name ? "" : name);
    try {
      item->check([&](std::string_view where,
                      std::string_view reason) { report(below(at, where), reason); },
                  options.progress);
    } catch (const Error& e) {
      report(at, e.message());
    }
  }
  return defects;
}

}  // namespace

std::uint64_t verify(const FileSystem& fs, const std::string& path, const DefectSink& f,
                     const VerifyOptions& options) {
  try {
    if (classify_path(fs, path) != PathKind::kRoot) return verify_step(fs, path, "", f, options);
    std::uint64_t defects = 0;
    for (const StepEntry& s : list_steps(fs, path))
      defects += verify_step(fs, join_path(path, s.name), s.name, f, options);
    return defects;
  } catch (const Error& e) {
    f("(root)", e.message());
    return 1;
  }
}

}  // namespace xylem::checkpoint
