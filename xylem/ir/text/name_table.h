#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace xylem::ir::text {

// What a scope's names stand for: a flat table without removal, of names that live in the text that
// is read. A function has one entry per op, so nodes of their own would cost more than the ops'
// values.
template <class Entry>
class NameTable {
 public:
  // False, and nothing changes, if the name is there already.
  bool emplace(std::string_view name, const Entry& entry) {
    if (slots_for(size_ + 1) > slots_.size()) grow(slots_for(size_ + 1));
    Slot& slot = slots_[find_slot(name, hash(name))];
    if (slot.data) return false;
    slot = {name.data() ? name.data() : "", static_cast<std::uint32_t>(name.size()), hash(name),
            entry};
    ++size_;
    return true;
  }
  // Null if the name is not there.
  const Entry* find(std::string_view name) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[find_slot(name, hash(name))];
    return slot.data ? &slot.entry : nullptr;
  }
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  void reserve(std::size_t n) {
    if (slots_for(n) > slots_.size()) grow(slots_for(n));
  }

 private:
  struct Slot {
    const char* data = nullptr;
    std::uint32_t size = 0, hash = 0;
    Entry entry = {};
  };

  static std::size_t slots_for(std::size_t names) { return names + names / 3 + 1; }
  static std::uint32_t hash(std::string_view name) {
    return static_cast<std::uint32_t>(std::hash<std::string_view>()(name));
  }
  // Where the name stands, or may be put.
  std::size_t find_slot(std::string_view name, std::uint32_t h) const {
    std::size_t i = h & (slots_.size() - 1);
    for (; slots_[i].data; i = (i + 1) & (slots_.size() - 1))
      if (slots_[i].hash == h && std::string_view(slots_[i].data, slots_[i].size) == name) break;
    return i;
  }
  void grow(std::size_t least) {
    std::size_t n = 8;
    while (n < least) n *= 2;
    std::vector<Slot> old(n);
    old.swap(slots_);
    for (const Slot& s : old)
      if (s.data) slots_[find_slot({s.data, s.size}, s.hash)] = s;
  }

  std::vector<Slot> slots_;  // a power of two of them, at most three quarters full
  std::size_t size_ = 0;
};

}  // namespace xylem::ir::text
