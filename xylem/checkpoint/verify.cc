#include "xylem/checkpoint/verify.h"

#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/checkpoint/checkpoint.h"
#include "xylem/checkpoint/orbax/writer.h"

namespace xylem::checkpoint {
namespace {

std::string below(const std::string& a, std::string_view b) {
  if (a.empty()) return std::string(b);
  return b.empty() ? a : fmt::format("{}/{}", a, b);
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
    report(below(prefix, ""), e.message());
    return defects;
  }
  try {
    orbax::check_checksums(fs, c.directory, [&](std::string_view where, std::string_view reason) {
      report(below(prefix, where), reason);
    });
  } catch (const Error& e) {
    report(below(prefix, orbax::kChecksumFile), e.message());
  }
  std::uint64_t done = 0;
  for (const auto& [name, item] : c.items) {
    // The item itself when the path is its folder.
    const std::string at = below(
        prefix, c.directory == path && c.items.size() == 1 && base_name(path) == name ? "" : name);
    try {
      item->check([&](std::string_view where, std::string_view reason) {
        report(below(at, where), reason);
      });
    } catch (const Error& e) {
      report(at, e.message());
    }
    if (options.progress) options.progress(++done, c.items.size());
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
