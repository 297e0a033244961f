#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "xylem/base/host_array.h"
#include "xylem/data/shuffle.h"
#include "xylem/data/windows.h"

namespace xylem::data {

// An endless sequence of batches whose place can be saved. One thread at a time.
class BatchIterator {
 public:
  virtual ~BatchIterator() = default;
  virtual HostArray next() = 0;
  // JSON text from which set_state continues with the batch that next() would have given.
  virtual std::string state() const = 0;
  // UserError if the text is no state of such an iterator over such data.
  virtual void set_state(std::string_view json) = 0;
};

struct WindowBatchOptions {
  std::int64_t batch_size = 1;
  std::uint32_t seed = 0;
  bool shuffle = true;
};

// i32[B, T + 1] batches of the windows, epoch after epoch; an epoch visits every window once, in an
// order of its own: that of IndexShuffle with seed + epoch. A batch may span two epochs. The state
// is a position, so that skipping is free.
class WindowBatches final : public BatchIterator {
 public:
  WindowBatches(Windows windows, const WindowBatchOptions& options);

  HostArray next() override;
  std::string state() const override;
  void set_state(std::string_view json) override;

  std::int64_t epoch() const { return position_ / windows_.size(); }
  // Windows given out so far, over all epochs.
  std::int64_t position() const { return position_; }

 private:
  Windows windows_;
  WindowBatchOptions options_;
  std::int64_t position_ = 0;
};

// Reads `depth` batches ahead on a thread of its own. The state is that of the batches given out,
// whatever has been read ahead. An exception of the source reaches the caller of next(), after the
// batches before it. The destructor waits for the batch in progress only.
class Prefetch final : public BatchIterator {
 public:
  Prefetch(std::unique_ptr<BatchIterator> source, int depth = 4);
  ~Prefetch() override;

  HostArray next() override;
  std::string state() const override;
  void set_state(std::string_view json) override;

 private:
  struct Shared;
  void start();
  void stop();

  std::unique_ptr<BatchIterator> source_;
  std::unique_ptr<Shared> shared_;
  std::string state_;
  int depth_;
};

// The next `steps` batches as u8[steps, B, T + 1].
HostArray collect_batches(BatchIterator& batches, std::int64_t steps);

}  // namespace xylem::data
