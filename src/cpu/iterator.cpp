#include "cpu/iterator.h"

#include <algorithm>

namespace rushlight::cpu {
namespace {

// How two dimensions should stand: negative keeps them, positive swaps them, 0 when no operand says.
template <class StrideOf>
int compare_dims(int operands, const Dims& sizes, int64_t a, int64_t b, StrideOf stride_of) {
  for (int i = 0; i < operands; ++i) {
    const int64_t x = std::abs(stride_of(i, a)), y = std::abs(stride_of(i, b));
    if (x == 0 || y == 0) continue;
    if (x != y) return x < y ? -1 : 1;
    if (sizes[a] > sizes[b]) return 1;
  }
  return 0;
}

// The dimensions from the innermost to the outermost; where strides don't decide, the last dimension is
// innermost.
template <class StrideOf>
Dims walking_order(int operands, const Dims& sizes, StrideOf stride_of) {
  const size_t n = sizes.size();
  Dims order(n);
  for (size_t i = 0; i < n; ++i) order[i] = static_cast<int64_t>(n - 1 - i);
  for (size_t i = 1; i < n; ++i) {
    size_t moving = i;
    for (size_t j = i; j-- > 0;) {
      const int compared = compare_dims(operands, sizes, order[j], order[moving], stride_of);
      if (compared < 0) break;
      if (compared > 0) {
        std::swap(order[j], order[moving]);
        moving = j;
      }
    }
  }
  return order;
}

int64_t broadcast_stride(const Tensor& t, size_t rank, int64_t dim) {
  const int64_t own = dim - (static_cast<int64_t>(rank) - t.dim());
  return own < 0 || t.sizes()[own] == 1 ? 0 : t.strides()[own];
}

}  // namespace

void Iteration::add(const Tensor& t) {
  Dims& strides = strides_[count_];
  const auto item = static_cast<int64_t>(t.itemsize());
  strides.resize(sizes_.size());
  for (size_t d = 0; d < sizes_.size(); ++d)
    strides[d] = broadcast_stride(t, sizes_.size(), static_cast<int64_t>(d)) * item;
  data_[count_++] = t.data<char>();
}

void Iteration::finish() {
  numel_ = 1;
  for (int64_t s : sizes_) numel_ *= s;
  if (sizes_.size() <= 1) return;
  reorder();
  coalesce();
}

void Iteration::lengthen_rows() {
  constexpr int64_t kShort = 8;  // below that, finding a row costs more than walking it
  if (sizes_.size() < 2 || sizes_[0] >= kShort) return;
  // The nearest one of some length, if there is one: neighbours in memory stay neighbours in time.
  auto longer = std::find_if(sizes_.begin(), sizes_.end(), [](int64_t n) { return n >= 4 * kShort; });
  if (longer == sizes_.end()) longer = std::max_element(sizes_.begin(), sizes_.end());
  if (*longer < 2 * sizes_[0]) return;
  const auto longest = static_cast<size_t>(longer - sizes_.begin());
  std::swap(sizes_[0], sizes_[longest]);
  for (int i = 0; i < count_; ++i) std::swap(strides_[i][0], strides_[i][longest]);
}

void Iteration::turn_forwards(int operand) {
  for (size_t d = 1; d < sizes_.size(); ++d) {
    if (strides_[operand][d] >= 0) continue;
    for (int i = 0; i < count_; ++i) {
      data_[i] += (sizes_[d] - 1) * strides_[i][d];
      strides_[i][d] = -strides_[i][d];
    }
  }
}

void Iteration::bring_inwards(size_t d) {
  auto rotate = [&](Dims& list) {
    for (size_t k = d; k > 1; --k) std::swap(list[k], list[k - 1]);
  };
  rotate(sizes_);
  for (int i = 0; i < count_; ++i) rotate(strides_[i]);
}

void Iteration::fuse_row() {
  numel_ /= sizes_[0];
  sizes_.erase(0);
  for (int i = 0; i < count_; ++i) strides_[i].erase(0);
}

void Iteration::reorder() {
  const Dims order = walking_order(count_, sizes_, [&](int i, int64_t d) { return strides_[i][d]; });
  auto permute = [&](Dims& list) {
    Dims permuted;
    for (int64_t d : order) permuted.push_back(list[d]);
    list = std::move(permuted);
  };
  permute(sizes_);
  for (int i = 0; i < count_; ++i) permute(strides_[i]);
}

void Iteration::coalesce() {
  size_t last = 0;
  auto mergeable = [&](size_t d) {
    if (sizes_[last] == 1 || sizes_[d] == 1) return true;
    for (int i = 0; i < count_; ++i)
      if (sizes_[last] * strides_[i][last] != strides_[i][d]) return false;
    return true;
  };
  auto take_strides = [&](size_t to, size_t from) {
    for (int i = 0; i < count_; ++i) strides_[i][to] = strides_[i][from];
  };
  for (size_t d = 1; d < sizes_.size(); ++d) {
    if (mergeable(d)) {
      if (sizes_[last] == 1) take_strides(last, d);
      sizes_[last] *= sizes_[d];
    } else {
      ++last;
      sizes_[last] = sizes_[d];
      take_strides(last, d);
    }
  }
  sizes_.resize(last + 1);
  for (int i = 0; i < count_; ++i) strides_[i].resize(last + 1);
}

bool Iteration::is_linear(int operand, int64_t itemsize) const {
  int64_t step = itemsize;
  for (size_t d = 0; d < sizes_.size(); ++d) {
    if (sizes_[d] != 1 && strides_[operand][d] != step) return false;
    step *= sizes_[d];
  }
  return true;
}

bool Iteration::is_scalar(int operand) const {
  for (size_t d = 0; d < sizes_.size(); ++d)
    if (sizes_[d] != 1 && strides_[operand][d] != 0) return false;
  return true;
}

char* Iteration::address(int operand, int64_t index) const {
  char* address = data_[operand];
  for (size_t d = 0; d < sizes_.size() && index; ++d) {
    address += index % sizes_[d] * strides_[operand][d];
    index /= sizes_[d];
  }
  return address;
}

Dims pointwise_strides(IntList shape, std::span<const Tensor* const> inputs) {
  bool contiguous = true;
  for (const Tensor* t : inputs) contiguous &= t->is_contiguous() || t->dim() == 0;
  if (contiguous) return {};
  const Tensor& first = *inputs[0];
  bool alike = is_non_overlapping_and_dense(first);
  for (const Tensor* t : inputs) alike &= t->sizes() == shape && t->strides() == first.strides();
  Dims strides(shape.size());
  if (alike) {
    std::ranges::transform(first.strides(), strides.begin(), [](int64_t s) { return std::abs(s); });
    return strides;
  }
  const Dims sizes = shape.dims();
  const auto rank = static_cast<int64_t>(sizes.size());
  const Dims order = walking_order(static_cast<int>(inputs.size()), sizes, [&](int i, int64_t d) {
    const Tensor& t = *inputs[i];
    const int64_t own = d - (rank - t.dim());
    // A stride that nothing is read by still says where its dimension stands.
    return own >= 0 && sizes[d] == 1 ? t.strides()[own] : broadcast_stride(t, sizes.size(), d);
  });
  int64_t step = 1;
  for (int64_t d : order) {
    strides[d] = step;
    step *= std::max<int64_t>(sizes[d], 1);
  }
  return strides;
}

}  // namespace rushlight::cpu
