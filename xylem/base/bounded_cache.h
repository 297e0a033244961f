#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace xylem {

// A map that holds at most `limit` values (at least one): a new one pushes out the one that was
// used longest ago. For values that are costly to make and cheap to copy (shared pointers). Finding
// takes a shared lock; adding to a full cache looks at every entry. Values are destroyed outside of
// the lock. Thread safe.
template <class Key, class Value, class Hash = std::hash<Key>>
class BoundedCache {
 public:
  explicit BoundedCache(std::size_t limit) : limit_(limit > 0 ? limit : 1) {}

  std::optional<Value> find(const Key& key) const {
    const std::shared_lock lock(mutex_);
    const auto it = entries_.find(key);
    if (it == entries_.end()) return std::nullopt;
    touch(it->second);
    return it->second.value;
  }

  // The value that is kept for the key: one that was there before, or else `value`.
  Value insert(Key key, Value value) {
    std::optional<Value> out;  // destroyed after the lock
    const std::unique_lock lock(mutex_);
    const auto [it, added] = entries_.try_emplace(std::move(key), std::move(value));
    touch(it->second);
    Value kept = it->second.value;
    if (added && entries_.size() > limit_) {
      auto oldest = entries_.begin();
      for (auto e = entries_.begin(); e != entries_.end(); ++e)
        if (e->second.used < oldest->second.used) oldest = e;
      out = std::move(oldest->second.value);
      entries_.erase(oldest);
    }
    return kept;
  }

  std::size_t size() const {
    const std::shared_lock lock(mutex_);
    return entries_.size();
  }
  std::size_t limit() const { return limit_; }

 private:
  struct Entry {
    explicit Entry(Value v) : value(std::move(v)) {}
    Value value;
    mutable std::atomic<std::uint64_t> used{0};
  };
  void touch(const Entry& e) const {
    e.used.store(clock_.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  const std::size_t limit_;
  mutable std::shared_mutex mutex_;
  mutable std::atomic<std::uint64_t> clock_{0};
  std::unordered_map<Key, Entry, Hash> entries_;
};

}  // namespace xylem
