#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/base/dims.h"
#include "xylem/base/dtype.h"
#include "xylem/checkpoint/named_arrays.h"
#include "xylem/checkpoint/storage/file_system.h"

// Safetensors files: eight bytes of header length, a JSON header, the tensors' bytes without holes.
// Types under eight bits are packed, first element in the low bits. Types that the format lacks
// (2- and 4-bit integers, complex128, three of the f8) cannot be written.
namespace xylem::checkpoint {

// "F32" for f32; nothing if the format has no such type. And back.
std::optional<std::string_view> safetensors_dtype(DType t);
std::optional<DType> parse_safetensors_dtype(std::string_view name);

struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  Dims dims;
  std::uint64_t begin = 0, end = 0;  // bytes from the start of the data
};

struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  // in the order of their bytes
  std::map<std::string, std::string> metadata;
  std::uint64_t data_begin = 0;  // of the data in the file
};

// Reads a header from the first bytes of a file, of which `head` must hold the header at least.
// UserError, opened by `name`, unless it is right in every respect: lengths within the file, names
// unique, offsets ascending without hole or overlap up to the very end of the file, sizes equal to
// shape times type.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> head, std::uint64_t file_size,
                                           std::string_view name);

// A file open for reading. Reads are checked and may be concurrent.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path, const FileSystem& fs = FileSystem());

  const std::vector<TensorInfo>& tensors() const { return header_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  // Null if there is none of this name.
  const TensorInfo* find(std::string_view name) const;
  HostArray read(const TensorInfo& tensor) const;
  // Rows `begin` to `end` of axis 0 only, of a tensor of rank 1 or more.
  HostArray read_rows(const TensorInfo& tensor, std::int64_t begin, std::int64_t end) const;
  NamedArrays read_all() const;

 private:
  std::string read_string(std::uint64_t offset, std::uint64_t size) const;

  std::shared_ptr<const InputFile> file_;
  SafetensorsHeader header_;
};

NamedArrays read_safetensors(const std::string& path);

// Writes the bytes that the safetensors library writes for these tensors: by type from wide to
// narrow, then by name; the header padded with spaces to a multiple of eight. Appears complete or
// not at all, see AtomicFile. UserError for a name that occurs twice or a type that cannot be.
void write_safetensors(const std::string& path, const NamedArrays& arrays,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace xylem::checkpoint
