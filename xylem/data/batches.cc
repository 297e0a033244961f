#include "xylem/data/batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "xylem/base/error.h"
#include "xylem/base/json.h"

namespace xylem::data {

// ---- WindowBatches

WindowBatches::WindowBatches(Windows windows, const WindowBatchOptions& options)
    : windows_(windows), options_(options) {
  if (options.batch_size < 1)
    throw_user_error({"per_device_batch_size", "at least 1", fmt::format("{}", options.batch_size),
                      "Set the number of windows in a batch"});
}

HostArray WindowBatches::next() {
  const std::int64_t n = windows_.size();
  const std::size_t width = static_cast<std::size_t>(windows_.length()) + 1;
  HostArray batch(DType::kI32, {options_.batch_size, windows_.length() + 1});
  std::optional<std::pair<std::int64_t, IndexShuffle>> order;
  for (std::int64_t k = 0; k < options_.batch_size; ++k) {
    const std::int64_t epoch = position_ / n;
    std::int64_t window = position_ % n;
    if (options_.shuffle) {
      if (!order || order->first != epoch)
        order.emplace(epoch, IndexShuffle(n, options_.seed + static_cast<std::uint32_t>(epoch)));
      window = order->second(window);
    }
    windows_.copy(window, {batch.as<std::int32_t>() + static_cast<std::size_t>(k) * width, width});
    ++position_;
  }
  return batch;
}

std::string WindowBatches::state() const {
  JsonWriter w;
  w.begin_object();
  w.field("kind", "window_batches");
  w.field("version", 1);
  w.field("position", position_);
  w.field("epoch", epoch());
  w.field("windows", windows_.size());
  w.field("length", windows_.length());
  w.field("seed", options_.seed);
  w.field("shuffle", options_.shuffle);
  w.end_object();
  return w.take();
}

void WindowBatches::set_state(std::string_view json) {
  const nlohmann::json s = nlohmann::json::parse(json, nullptr, false);
  const auto refuse = [](std::string_view expected, const std::string& given) {
    throw_user_error({"data iterator state", expected, given,
                      "Resume with the data and the seed the state was saved with"});
  };
  if (!s.is_object() || s.value("kind", nlohmann::json()) != "window_batches" ||
      s.value("version", nlohmann::json()) != 1)
    refuse("the state of batches of windows, version 1", std::string(json.substr(0, 100)));
  const auto number = [&](const char* key) {
    const auto it = s.find(key);
    if (it == s.end() || !it->is_number_integer())
      refuse(fmt::format("a number `{}`", key), std::string(json.substr(0, 200)));
    return it->get<std::int64_t>();
  };
  const std::pair<const char*, std::int64_t> same[] = {
      {"windows", windows_.size()}, {"length", windows_.length()}, {"seed", options_.seed}};
  for (const auto& [key, here] : same)
    if (const std::int64_t saved = number(key); saved != here)
      refuse(fmt::format("{} = {} as in this data set", key, here),
             fmt::format("{} = {}", key, saved));
  if (s.value("shuffle", nlohmann::json()) != options_.shuffle)
    refuse("the same enable_data_shuffling", s.value("shuffle", nlohmann::json()).dump());
  const std::int64_t position = number("position");
  if (position < 0 || position > std::int64_t{1} << 60)
    refuse("a position from 0 to 2^60", fmt::format("{}", position));
  position_ = position;
}

// ---- Prefetch

struct Prefetch::Shared {
  struct Item {
    HostArray batch;
    std::string state;  // after this batch
    std::exception_ptr error;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Item> items;
  bool stopping = false;
  std::thread thread;
};

Prefetch::Prefetch(std::unique_ptr<BatchIterator> source, int depth)
    : source_(std::move(source)), shared_(std::make_unique<Shared>()), depth_(std::max(depth, 1)) {
  state_ = source_->state();
  start();
}

Prefetch::~Prefetch() { stop(); }

void Prefetch::start() {
  shared_->stopping = false;
  shared_->thread = std::thread([this, s = shared_.get()] {
    while (true) {
      {
        std::unique_lock lock(s->mutex);
        s->changed.wait(lock,
                        [&] { return s->stopping || static_cast<int>(s->items.size()) < depth_; });
        if (s->stopping) return;
      }
      Shared::Item item;
      try {
        item.batch = source_->next();
        item.state = source_->state();
      } catch (...) {
        item.error = std::current_exception();
      }
      const bool failed = item.error != nullptr;
      {
        std::lock_guard lock(s->mutex);
        s->items.push_back(std::move(item));
      }
      s->changed.notify_all();
      if (failed) return;
    }
  });
}

void Prefetch::stop() {
  {
    std::lock_guard lock(shared_->mutex);
    shared_->stopping = true;
  }
  shared_->changed.notify_all();
  if (shared_->thread.joinable()) shared_->thread.join();
  shared_->items.clear();
}

HostArray Prefetch::next() {
  Shared::Item item;
  {
    std::unique_lock lock(shared_->mutex);
    shared_->changed.wait(lock, [&] { return !shared_->items.empty(); });
    // A failure stays at the front: every later call reports it again.
    if (shared_->items.front().error) std::rethrow_exception(shared_->items.front().error);
    item = std::move(shared_->items.front());
    shared_->items.pop_front();
  }
  shared_->changed.notify_all();
  state_ = std::move(item.state);
  return std::move(item.batch);
}

std::string Prefetch::state() const { return state_; }

void Prefetch::set_state(std::string_view json) {
  stop();
  try {
    source_->set_state(json);
  } catch (...) {
    source_->set_state(state_);
    start();
    throw;
  }
  state_ = source_->state();
  start();
}

// ---- helpers

HostArray collect_batches(BatchIterator& batches, std::int64_t steps) {
  if (steps < 1)
    throw_user_error({"data batches: steps", "at least 1", fmt::format("{}", steps),
                      "Give the number of batches to collect"});
  HostArray all;
  for (std::int64_t s = 0; s < steps; ++s) {
    const HostArray b = batches.next();
    if (s == 0) all = HostArray(DType::kU8, {steps, b.dims()[0], b.dims()[1]});
    std::uint8_t* to = all.as<std::uint8_t>() + s * b.size();
    for (const std::int32_t token : b.span<std::int32_t>())
      *to++ = static_cast<std::uint8_t>(token);
  }
  return all;
}

}  // namespace xylem::data
