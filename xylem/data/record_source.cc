#include "xylem/data/record_source.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace xylem::data {

void RecordSource::get_batch(std::span<const std::int64_t> indices,
                             std::span<std::optional<Record>> out) const {
  const std::vector<std::uint64_t> wanted(indices.begin(), indices.end());
  std::vector<Record> got = reader_->read_batch(wanted);
  for (std::size_t k = 0; k < got.size(); ++k) out[k] = std::move(got[k]);
}

MapDataset<Record> records(const std::string& path, const ReadOptions& options) {
  return source(RecordSource(open_records(path, options)), path);
}

MapDataset<Record> records(std::span<const std::string> paths, const ReadOptions& options) {
  return source(RecordSource(open_records(paths, options)),
                paths.size() == 1 ? paths[0]
                : paths.empty()   ? "no files"
                                  : fmt::format("{} and {} more", paths[0], paths.size() - 1));
}

MapDataset<std::string> record_bytes(const std::string& path, const ReadOptions& options) {
  return records(path, options).map([](Record r) { return std::move(r.bytes); }, "bytes");
}

}  // namespace xylem::data
