// Dims: a small vector of int64 (sizes, strides); IntList: a borrowed view of one.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"

namespace rushlight {

class Dims {
 public:
  static constexpr int kInline = 5;
  Dims() = default;
  explicit Dims(size_t n, int64_t value = 0) { resize(n, value); }
  Dims(std::initializer_list<int64_t> list) { assign(list.begin(), list.size()); }
  Dims(const int64_t* data, size_t n) { assign(data, n); }
  template <class It>
    requires(!std::is_integral_v<It>)
  Dims(It first, It last) {
    for (; first != last; ++first) push_back(*first);
  }
  Dims(const Dims& o) { assign(o.data(), o.size_); }
  Dims(Dims&& o) noexcept { steal(o); }
  Dims& operator=(const Dims& o) {
    if (this != &o) assign(o.data(), o.size_);
    return *this;
  }
  Dims& operator=(Dims&& o) noexcept {
    if (this != &o) release(), steal(o);
    return *this;
  }
  [[gnu::always_inline]] ~Dims() { release(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int64_t* data() { return capacity_ > kInline ? heap_ : inline_; }
  const int64_t* data() const { return capacity_ > kInline ? heap_ : inline_; }
  int64_t& operator[](size_t i) { return data()[i]; }
  int64_t operator[](size_t i) const { return data()[i]; }
  int64_t* begin() { return data(); }
  int64_t* end() { return data() + size_; }
  const int64_t* begin() const { return data(); }
  const int64_t* end() const { return data() + size_; }
  int64_t& back() { return data()[size_ - 1]; }
  int64_t back() const { return data()[size_ - 1]; }

  void assign(const int64_t* source, size_t n) {
    reserve(n);
    std::copy_n(source, n, data());
    size_ = static_cast<uint32_t>(n);
  }
  void resize(size_t n, int64_t value = 0) {
    reserve(n);
    for (size_t i = size_; i < n; ++i) data()[i] = value;
    size_ = static_cast<uint32_t>(n);
  }
  void push_back(int64_t v) {
    if (size_ == capacity_) reserve(2 * size_t{capacity_});
    data()[size_++] = v;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void insert(size_t at, int64_t v) {
    push_back(v);
    std::rotate(begin() + at, end() - 1, end());
  }
  void erase(size_t at) {
    std::copy(begin() + at + 1, end(), begin() + at);
    --size_;
  }
  friend bool operator==(const Dims& a, const Dims& b) { return std::ranges::equal(a, b); }

 private:
  void reserve(size_t n) {
    if (n <= capacity_) return;
    auto* grown = new int64_t[n];
    std::copy_n(data(), size_, grown);
    release();
    heap_ = grown;
    capacity_ = static_cast<uint32_t>(n);
  }
  [[gnu::always_inline]] void release() {
    if (capacity_ > kInline) delete[] heap_;
    capacity_ = kInline;
  }
  void steal(Dims& o) {
    size_ = o.size_;
    capacity_ = o.capacity_;
    if (o.capacity_ > kInline)
      heap_ = o.heap_;
    else
      std::copy_n(o.inline_, o.size_, inline_);
    o.size_ = 0;
    o.capacity_ = kInline;
  }
  uint32_t size_ = 0, capacity_ = kInline;
  union {
    int64_t inline_[kInline];
    int64_t* heap_;
  };
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"  // a list borrows, for the length of a call
class IntList {
 public:
  constexpr IntList() = default;
  constexpr IntList(const int64_t* data, size_t n) : data_(data), size_(n) {}
  IntList(std::initializer_list<int64_t> list) : data_(list.begin()), size_(list.size()) {}
  IntList(const Dims& d) : data_(d.data()), size_(d.size()) {}
  IntList(const std::vector<int64_t>& v) : data_(v.data()), size_(v.size()) {}
  IntList(std::span<const int64_t> s) : data_(s.data()), size_(s.size()) {}
  template <size_t N>
  IntList(const std::array<int64_t, N>& a) : data_(a.data()), size_(N) {}
  constexpr IntList(const int64_t& one) : data_(&one), size_(1) {}  // f(3) for f({3})
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const int64_t* data() const { return data_; }
  const int64_t* begin() const { return data_; }
  const int64_t* end() const { return data_ + size_; }
  int64_t operator[](size_t i) const { return data_[i]; }
  int64_t front() const { return data_[0]; }
  int64_t back() const { return data_[size_ - 1]; }
  int64_t at(size_t i) const {
    RL_CHECK_INDEX(i < size_, "ArrayRef: invalid index Index = ", i, "; Length = ", size_);
    return data_[i];
  }
  bool equals(IntList o) const { return *this == o; }
  std::vector<int64_t> vec() const { return {begin(), end()}; }
  Dims dims() const { return Dims(data_, size_); }
  IntList slice(size_t from, size_t n) const { return {data_ + from, n}; }
  IntList slice(size_t from) const { return {data_ + from, size_ - from}; }
  friend bool operator==(IntList a, IntList b) { return std::ranges::equal(a, b); }

 private:
  const int64_t* data_ = nullptr;
  size_t size_ = 0;
};
#pragma GCC diagnostic pop

std::ostream& operator<<(std::ostream& out, IntList list);
std::string to_string(IntList list);  // "[2, 3]"
inline std::string to_string(const Dims& d) { return to_string(IntList(d)); }

// Product of sizes; fails on int64 overflow.
int64_t checked_numel(IntList sizes);
Dims contiguous_strides(IntList sizes);
Dims channels_last_strides(IntList sizes);  // 4-D and 5-D
// Dimension in [-n, n) wrapped to [0, n); IndexError with PyTorch's wording otherwise. A 0-dim tensor has
// dims -1 and 0.
int64_t wrap_dim(int64_t dim, int64_t n, bool wrap_scalar = true);
// The shape both broadcast to; the error names both shapes.
Dims broadcast_shapes(IntList a, IntList b);

}  // namespace rushlight
