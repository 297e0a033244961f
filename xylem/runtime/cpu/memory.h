#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "xylem/base/host_array.h"

namespace xylem::runtime::cpu {

// A piece of device memory, 64-byte aligned. It goes back to the pool when the last handle goes.
//
// `pins` counts the handles of executions that are queued on the device's own ordered queue: they
// are done before anything queued later begins, so they do not stand in the way of donation.
struct Storage {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::atomic<int> pins{0};

  Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  ~Storage();

  // Of an array that owns the memory instead of the pool.
  HostArray array;
  std::size_t capacity = 0;  // of the pool's block
};
using StoragePtr = std::shared_ptr<Storage>;

// Uninitialised memory. Blocks are kept by size class and reused last in, first out; large ones are
// 2 MB aligned and ask for huge pages. With XYLEM_GUARD=1 each block ends at an inaccessible page
// and is filled with signalling NaNs.
StoragePtr allocate(std::size_t bytes);
// Shares the array's memory; it must be contiguous and aligned.
StoragePtr share(const HostArray& array);

// Whether nobody but the given handle (and queued executions) holds the memory.
bool only_handle(const StoragePtr& storage);

bool guard_enabled();

}  // namespace xylem::runtime::cpu
