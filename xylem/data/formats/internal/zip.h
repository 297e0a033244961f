#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/data/formats/record.h"

// Zip files, as far as .npz files use them: stored and deflated members, ZIP64.

namespace xylem::data::internal {

struct ZipMember {
  std::string name;
  std::uint16_t method = 0;  // 0 stored, 8 deflated
  std::uint32_t crc = 0;
  std::uint64_t compressed_size = 0, size = 0;
  std::uint64_t header_begin = 0;
};

// The members by the central directory; DamageError if it is malformed.
std::vector<ZipMember> read_zip_directory(const ByteSource& file);
// A member's contents, checked against its size and CRC-32.
std::string read_zip_member(const ByteSource& file, const ZipMember& member,
                            const ReadOptions& options);

class ZipWriter {
 public:
  explicit ZipWriter(ByteSink& sink) : sink_(sink) {}
  void add(std::string_view name, std::string_view data, bool deflate);
  // Writes the central directory.
  void finish();

 private:
  ByteSink& sink_;
  std::vector<ZipMember> members_;
};

}  // namespace xylem::data::internal
