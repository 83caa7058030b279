// Iteration: several tensors walked together, broadcast to one shape, in the order that suits the first one's
// memory.
#pragma once
#include <span>

#include "core/tensor.h"

namespace rushlight::cpu {

class Iteration {
 public:
  static constexpr int kMaxOperands = 5;

  explicit Iteration(IntList shape) : sizes_(shape.dims()) {}
  void add(const Tensor& t);  // results first
  // Orders dimensions by stride and merges those that can be walked as one.
  void finish();
  // Makes a long dimension the innermost when that one is short: for loops that may go in any order.
  void lengthen_rows();
  // Turns the outer dimensions that the operand runs through backwards: memory is read fastest forwards.
  void turn_forwards(int operand);
  // Makes dimension `d` the one around the innermost.
  void bring_inwards(size_t d);

  // Takes the innermost dimension for one wide element: for copies of rows without gaps.
  void fuse_row();

  int64_t numel() const { return numel_; }
  int count() const { return count_; }
  // Dimension 0 is the innermost. Strides are in bytes and may be negative.
  IntList sizes() const { return sizes_; }
  int64_t row() const { return sizes_.empty() ? 1 : sizes_[0]; }
  char* data(int operand) const { return data_[operand]; }
  IntList strides(int operand) const { return strides_[operand]; }
  bool is_linear(int operand, int64_t itemsize) const;  // element i lies at data + i * itemsize
  bool is_scalar(int operand) const;                    // one element for all
  // Address of element `index` of an operand, counted in walking order.
  char* address(int operand, int64_t index) const;

 private:
  void reorder();
  void coalesce();

  Dims sizes_;
  Dims strides_[kMaxOperands];
  char* data_[kMaxOperands] = {};
  int count_ = 0;
  int64_t numel_ = 0;
};

// Strides (in elements) of a fresh result of pointwise work on `inputs`: dense, and laid out as they are.
// An empty answer means contiguous.
Dims pointwise_strides(IntList shape, std::span<const Tensor* const> inputs);

// Walks elements [index, index + n) of an operand row by row: f(address, stride, count).
template <class F>
void for_each_row(const Iteration& it, int operand, int64_t index, int64_t n, F&& f) {
  const IntList sizes = it.sizes(), strides = it.strides(operand);
  if (sizes.size() <= 1) {
    const int64_t stride = sizes.empty() ? 0 : strides[0];
    f(it.data(operand) + index * stride, stride, n);
    return;
  }
  Dims at(sizes.size());
  char* address = it.data(operand);
  for (size_t d = 0; d < sizes.size(); ++d) {
    at[d] = index % sizes[d];
    index /= sizes[d];
    address += at[d] * strides[d];
  }
  while (n > 0) {
    const int64_t count = std::min(n, sizes[0] - at[0]);
    f(address, strides[0], count);
    n -= count;
    address -= at[0] * strides[0];
    at[0] = 0;
    for (size_t d = 1; d < sizes.size(); ++d) {  // carry
      address += strides[d];
      if (++at[d] < sizes[d]) break;
      address -= sizes[d] * strides[d];
      at[d] = 0;
    }
  }
}

}  // namespace rushlight::cpu
