#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "xylem/checkpoint/storage/system_calls.h"

namespace xylem::checkpoint {

// Files and directories in memory, with the errors that a disk's would give. Paths are absolute.
class MemoryCalls : public SystemCalls {
 public:
  MemoryCalls();

  int open(const std::string& path, OpenMode mode) override;
  int close(int file) override;
  std::int64_t read(int file, std::span<const MutablePiece> pieces, std::uint64_t offset) override;
  std::int64_t write(int file, std::span<const ConstPiece> pieces, std::uint64_t offset) override;
  int sync(int file) override;
  int sync_directory(const std::string& path) override;
  int status(int file, FileStatus& out) override;
  int status(const std::string& path, bool follow_links, FileStatus& out) override;
  int make_directory(const std::string& path) override;
  int remove_file(const std::string& path) override;
  int remove_directory(const std::string& path) override;
  int rename(const std::string& from, const std::string& to, bool replace) override;
  int link(const std::string& from, const std::string& to) override;
  int list(const std::string& path, std::vector<DirectoryEntry>& out) override;

  struct Node {
    bool directory = false;
    std::int64_t modified_ns = 0;
    std::string data;
  };
  using Nodes = std::map<std::string, std::shared_ptr<Node>>;  // by path, without a final slash

 protected:
  static std::string normal(const std::string& path);
  std::shared_ptr<Node> node_of(int file) const;

  mutable std::mutex mutex_;
  Nodes nodes_;
  std::map<int, std::shared_ptr<Node>> open_;
  int next_file_ = 1;
};

}  // namespace xylem::checkpoint
