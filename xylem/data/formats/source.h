#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace xylem::data {

// Bytes that can be read at any place: a local file, memory, an object of a remote store. Reads are
// safe from several threads.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // What messages call it: a path or an address.
  virtual const std::string& name() const = 0;
  virtual std::uint64_t size() const = 0;
  // Fills `out` from `offset`. EnvironmentError if the source ends before or cannot be read.
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;
  // Says that [offset, offset + size) will be read soon. May do nothing.
  virtual void will_read(std::uint64_t offset, std::uint64_t size) const;

  // The bytes as text, `size` at most what there is.
  std::string read(std::uint64_t offset, std::uint64_t size) const;
};

using SourcePtr = std::shared_ptr<const ByteSource>;

// A local file, by pread.
SourcePtr open_file_source(const std::string& path);
// Bytes in memory under a name.
SourcePtr memory_source(std::string data, std::string name = "memory");
// A path, or an http:// or https:// address (xylem/base/http.h).
SourcePtr open_source(const std::string& path_or_address);

// Where a writer's bytes go. Nothing is visible under the name before `commit`.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void write(std::string_view data) = 0;
  // Bytes written so far.
  virtual std::uint64_t size() const = 0;
  virtual void commit() = 0;
};

// Appears under its path when it is committed (see AtomicFile).
std::unique_ptr<ByteSink> open_file_sink(const std::string& path);
// Appends to `out`, which must outlive it.
std::unique_ptr<ByteSink> string_sink(std::string& out);

}  // namespace xylem::data
