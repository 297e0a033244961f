#include "xylem/data/formats/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/base/http.h"

namespace xylem::data {
namespace {

class FileSource final : public ByteSource {
 public:
  explicit FileSource(const std::string& path) : file_(path) {}
  const std::string& name() const override { return file_.path(); }
  std::uint64_t size() const override { return file_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    file_.read(offset, out);
  }

 private:
  RandomAccessFile file_;
};

class HttpSource final : public ByteSource {
 public:
  explicit HttpSource(const std::string& address) : file_(address) {}
  const std::string& name() const override { return file_.address(); }
  std::uint64_t size() const override { return file_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    file_.read(offset, out);
  }

 private:
  HttpFile file_;
};

class MemorySource final : public ByteSource {
 public:
  MemorySource(std::string data, std::string name)
      : data_(std::move(data)), name_(std::move(name)) {}
  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return data_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > data_.size() || out.size() > data_.size() - offset)
      throw EnvironmentError(ErrorParts{
          "read " + name_, fmt::format("{} bytes at {}", out.size(), offset),
          fmt::format("there are {}", data_.size()), "The bytes end before what they announce"});
    if (!out.empty()) std::memcpy(out.data(), data_.data() + offset, out.size());
  }

 private:
  std::string data_;
  std::string name_;
};

class FileSink final : public ByteSink {
 public:
  explicit FileSink(const std::string& path) : file_(path) {}
  void write(std::string_view data) override { file_.write(data); }
  std::uint64_t size() const override { return file_.size(); }
  void commit() override { file_.commit(); }

 private:
  AtomicFile file_;
};

class StringSink final : public ByteSink {
 public:
  explicit StringSink(std::string& out) : out_(out), begin_(out.size()) {}
  void write(std::string_view data) override { out_ += data; }
  std::uint64_t size() const override { return out_.size() - begin_; }
  void commit() override {}

 private:
  std::string& out_;
  std::size_t begin_;
};

}  // namespace

void ByteSource::will_read(std::uint64_t, std::uint64_t) const {}

std::string ByteSource::read(std::uint64_t offset, std::uint64_t size) const {
  const std::uint64_t there = offset < this->size() ? this->size() - offset : 0;
  std::string out(static_cast<std::size_t>(std::min(size, there)), '\0');
  read(offset, std::as_writable_bytes(std::span<char>(out.data(), out.size())));
  return out;
}

SourcePtr open_file_source(const std::string& path) { return std::make_shared<FileSource>(path); }

SourcePtr open_source(const std::string& path_or_address) {
  if (path_or_address.find("://") == path_or_address.npos) return open_file_source(path_or_address);
  return std::make_shared<HttpSource>(path_or_address);
}

SourcePtr memory_source(std::string data, std::string name) {
  return std::make_shared<MemorySource>(std::move(data), std::move(name));
}

std::unique_ptr<ByteSink> open_file_sink(const std::string& path) {
  return std::make_unique<FileSink>(path);
}

std::unique_ptr<ByteSink> string_sink(std::string& out) {
  return std::make_unique<StringSink>(out);
}

}  // namespace xylem::data
