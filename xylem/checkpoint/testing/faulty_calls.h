#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "xylem/checkpoint/storage/memory_calls.h"

namespace xylem::checkpoint {

// A file system in memory that knows what of it is on disk, fails on demand, and can be turned off
// at any call. What is on disk follows POSIX's least promises: contents of a file after `sync` of
// it, names in a directory after `sync_directory` of it, nothing else, in any order.
class FaultyCalls final : public MemoryCalls {
 public:
  // The n-th call from now (from 0) that may fail answers -error; negative n: none does.
  void fail_at(std::int64_t n, int error) {
    fail_at_ = n < 0 ? -1 : calls_ + n;
    error_ = error;
  }
  // From the n-th call on nothing happens any more: every call answers -EIO, as if the machine had
  // stopped there.
  void stop_at(std::int64_t n) { stop_at_ = n < 0 ? -1 : calls_ + n; }
  // Reads and writes transfer a few bytes at a time.
  void set_short_transfers(bool on) { short_ = on; }
  // Renaming without replacement answers -error every time; 0: it works.
  void set_rename_error(int error) { rename_error_ = error; }
  std::int64_t calls() const { return calls_; }
  std::int64_t writes() const { return writes_; }  // that changed anything

  // The state after a crash: what is on disk for sure, and of what is not a choice by `random`:
  // names present or not, renames done or undone, contents whole, absent or torn at multiples of
  // 512 or 4096 bytes with zeros for what is missing.
  std::shared_ptr<FaultyCalls> after_crash(std::mt19937& random) const;

  int open(const std::string& path, OpenMode mode) override;
  std::int64_t read(int file, std::span<const MutablePiece> pieces, std::uint64_t offset) override;
  std::int64_t write(int file, std::span<const ConstPiece> pieces, std::uint64_t offset) override;
  int sync(int file) override;
  int sync_directory(const std::string& path) override;
  using MemoryCalls::status;
  int status(const std::string& path, bool follow_links, FileStatus& out) override;
  int make_directory(const std::string& path) override;
  int remove_file(const std::string& path) override;
  int remove_directory(const std::string& path) override;
  int rename(const std::string& from, const std::string& to, bool replace) override;
  int link(const std::string& from, const std::string& to) override;
  int list(const std::string& path, std::vector<DirectoryEntry>& out) override;

 private:
  int gate();

  std::int64_t calls_ = 0, writes_ = 0;
  std::int64_t fail_at_ = -1, stop_at_ = -1;
  int error_ = 0, rename_error_ = 0;
  bool short_ = false;
  // On disk: for each directory (by its node) the names that are durable, and what they name; of
  // each file the contents.
  std::map<const Node*, std::map<std::string, std::shared_ptr<Node>>> names_;
  std::map<const Node*, std::string> contents_;
  std::set<const Node*> linked_;  // that have had several names
};

}  // namespace xylem::checkpoint
