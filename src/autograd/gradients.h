// Gradients: the gradients going into or coming out of one node; four of them without heap memory.
#pragma once
#include "core/tensor.h"

namespace rushlight {

class Gradients {
 public:
  Gradients() = default;
  explicit Gradients(size_t n) { resize(n); }
  Gradients(Gradients&& other) noexcept { steal(other); }
  Gradients& operator=(Gradients&& other) noexcept {
    if (this != &other) release(), steal(other);
    return *this;
  }
  ~Gradients() { release(); }

  // Only grows from empty: a node knows how many gradients it deals with.
  void resize(size_t n) {
    release();
    if (n > kInline) many_ = new Tensor[n];
    size_ = static_cast<uint32_t>(n);
  }
  Gradients clone() const {
    Gradients copy(size_);
    for (size_t i = 0; i < size_; ++i) copy[i] = (*this)[i];
    return copy;
  }
  size_t size() const { return size_; }
  Tensor* data() { return size_ > kInline ? many_ : few_; }
  const Tensor* data() const { return size_ > kInline ? many_ : few_; }
  Tensor& operator[](size_t i) { return data()[i]; }
  const Tensor& operator[](size_t i) const { return data()[i]; }
  Tensor* begin() { return data(); }
  Tensor* end() { return data() + size_; }
  const Tensor* begin() const { return data(); }
  const Tensor* end() const { return data() + size_; }
  bool any_defined() const {
    for (const Tensor& t : *this)
      if (t.defined()) return true;
    return false;
  }

 private:
  static constexpr size_t kInline = 4;
  void release() {
    if (size_ > kInline)
      delete[] many_;
    else
      for (size_t i = 0; i < size_; ++i) few_[i].reset();
    size_ = 0;
    many_ = nullptr;
  }
  void steal(Gradients& other) {
    size_ = std::exchange(other.size_, 0);
    many_ = std::exchange(other.many_, nullptr);
    if (size_ <= kInline)
      for (size_t i = 0; i < size_; ++i) few_[i] = std::move(other.few_[i]);
  }
  uint32_t size_ = 0;
  Tensor* many_ = nullptr;
  Tensor few_[kInline];
};

}  // namespace rushlight
