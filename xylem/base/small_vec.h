#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <vector>

namespace xylem {

// A vector of trivially copyable T without allocation up to N entries. Value semantics.
template <class T, std::size_t N>
class SmallVec {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;

  SmallVec() = default;
  SmallVec(std::initializer_list<T> v) { assign(v.begin(), v.size()); }
  SmallVec(std::span<const T> v) { assign(v.data(), v.size()); }
  SmallVec(const std::vector<T>& v) { assign(v.data(), v.size()); }
  SmallVec(std::size_t n, T value) { resize(n, value); }
  SmallVec(const SmallVec& o) { assign(o.data(), o.size_); }
  SmallVec(SmallVec&& o) noexcept { steal(o); }
  SmallVec& operator=(const SmallVec& o) {
    if (this != &o) assign(o.data(), o.size_);
    return *this;
  }
  SmallVec& operator=(SmallVec&& o) noexcept {
    if (this != &o) {
      delete[] heap_;
      heap_ = nullptr;
      steal(o);
    }
    return *this;
  }
  ~SmallVec() { delete[] heap_; }

  std::size_t size() const { return size_; }
  int ssize() const { return static_cast<int>(size_); }
  bool empty() const { return size_ == 0; }
  T* data() { return heap_ ? heap_ : inline_; }
  const T* data() const { return heap_ ? heap_ : inline_; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  template <class I>
  T& operator[](I i) {
    return data()[static_cast<std::size_t>(i)];
  }
  template <class I>
  T operator[](I i) const {
    return data()[static_cast<std::size_t>(i)];
  }
  T& front() { return data()[0]; }
  T front() const { return data()[0]; }
  T& back() { return data()[size_ - 1]; }
  T back() const { return data()[size_ - 1]; }
  void push_back(T v) {
    reserve(size_ + 1);
    data()[size_++] = v;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void resize(std::size_t n, T value = 0) {
    reserve(n);
    for (std::size_t i = size_; i < n; ++i) data()[i] = value;
    size_ = n;
  }
  void insert(std::size_t at, T v) {
    push_back(v);
    std::rotate(begin() + at, end() - 1, end());
  }
  void erase(std::size_t at) {
    std::copy(begin() + at + 1, end(), begin() + at);
    --size_;
  }
  bool contains(T v) const { return std::find(begin(), end(), v) != end(); }
  std::vector<T> to_vector() const { return {begin(), end()}; }
  operator std::span<const T>() const { return {data(), size_}; }
  friend bool operator==(const SmallVec& a, const SmallVec& b) {
    return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
  }

 private:
  void reserve(std::size_t n) {
    if (n <= capacity_) return;
    std::size_t c = std::max(n, capacity_ * 2);
    auto* p = new T[c];
    std::copy(begin(), end(), p);
    delete[] heap_;
    heap_ = p;
    capacity_ = c;
  }
  void assign(const T* p, std::size_t n) {
    size_ = 0;
    reserve(n);
    std::copy(p, p + n, data());
    size_ = n;
  }
  void steal(SmallVec& o) noexcept {
    size_ = o.size_;
    capacity_ = o.capacity_;
    heap_ = o.heap_;
    if (!heap_) std::copy(o.inline_, o.inline_ + N, inline_);
    o.heap_ = nullptr;
    o.size_ = 0;
    o.capacity_ = N;
  }

  std::size_t size_ = 0;
  std::size_t capacity_ = N;
  T inline_[N] = {};
  T* heap_ = nullptr;
};

}  // namespace xylem
