#include "xylem/checkpoint/ocdbt/recover.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "xylem/base/bytes.h"
#include "xylem/base/error.h"

namespace xylem::checkpoint::ocdbt {
namespace {

constexpr std::string_view kMagic = "\x0c\xdb\x20\xde";
constexpr std::uint64_t kMaxNode = std::uint64_t{512} << 20;
constexpr std::size_t kPiece = std::size_t{8} << 20;

struct Found {
  Reference at;
  std::uint8_t height = 0;
  std::int64_t modified_ns = 0;
};

// Calls f with the offset of each magic number in the file.
void scan(const InputFile& file, const std::function<void(std::uint64_t)>& f) {
  std::string piece;
  for (std::uint64_t begin = 0; begin < file.size(); begin += kPiece) {
    // Pieces overlap by what a number that is cut lacks.
    piece.resize(std::min<std::uint64_t>(file.size() - begin, kPiece + kMagic.size() - 1));
    file.read(begin, std::as_writable_bytes(std::span<char>(piece)));
    for (std::size_t at = piece.find(kMagic); at != std::string::npos;
         at = piece.find(kMagic, at + 1))
      f(begin + at);
  }
}

}  // namespace

std::unique_ptr<Database> recover_database(
    const FileSystem& fs, const std::string& directory,
    const std::function<std::uint64_t(std::string_view)>& score) {
  const std::string folder = join_path(directory, "d");
  if (!fs.is_directory(folder)) return nullptr;
  std::vector<Found> found;
  std::set<std::pair<std::string, std::uint64_t>> children;
  for (const DirectoryEntry& e : fs.list(folder)) {
    if (e.is_directory || e.name.ends_with(".__lock")) continue;
    const std::string path = join_path(folder, e.name);
    const auto file = fs.open(path);
    const std::int64_t modified = fs.status(path).modified_ns;
    scan(*file, [&](std::uint64_t offset) {
      std::uint64_t length = 0;
      if (file->size() - offset < 16) return;
      file->read(offset + 4, std::as_writable_bytes(std::span(&length, 1)));
      if (length < 16 || length > kMaxNode || length > file->size() - offset) return;
      std::string bytes(static_cast<std::size_t>(length), '\0');
      file->read(offset, std::as_writable_bytes(std::span<char>(bytes)));
      Node node;
      try {
        decode_node(as_byte_span(bytes), kMaxNode, path, node);
      } catch (const UserError&) {
        return;
      }
      found.push_back({{{"", "d/" + e.name}, offset, length}, node.height, modified});
      for (const InnerEntry& c : node.inner)
        children.insert({node.files[c.file].base + node.files[c.file].path, c.offset});
    });
  }
  std::unique_ptr<Database> best;
  std::tuple<std::uint64_t, std::int64_t, std::uint64_t> best_rank{0, 0, 0};
  for (const Found& root : found) {
    if (children.contains({root.at.file.path, root.at.offset})) continue;
    Manifest m;
    Version v;
    v.root = root.at;
    v.root_height = root.height;
    m.versions = {v};
    std::uint64_t points = 0;
    try {
      auto db = Database::with_manifest(fs, directory, m);
      db->for_each("", [&](std::string_view key) { points += score(key); });
      const std::tuple rank{points, root.modified_ns, root.at.offset};
      if (points > 0 && rank > best_rank) {
        best_rank = rank;
        best = std::move(db);
      }
    } catch (const Error&) {
      // A part of this tree is lost.
    }
  }
  return best;
}

}  // namespace xylem::checkpoint::ocdbt
