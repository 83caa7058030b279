// Lines of tensors along one dimension: the loops of scans, sorts and arg-extremes.
#pragma once
#include "core/parallel.h"
#include "core/tensor.h"
#include "cpu/odometer.h"

namespace rushlight::cpu {

// Elements of one line, `stride` apart.
template <class T>
struct Line {
  T* data;
  int64_t stride;
  T& operator[](int64_t i) const { return data[i * stride]; }
};
template <class T>
Line<T> line_of(const Tensor& t, int64_t dim, int64_t offset) {
  return {static_cast<T*>(t.data_ptr()) + offset, t.dim() ? t->strides[dim] : 1};
}

inline int64_t line_length(const Tensor& t, int64_t dim) { return t.dim() ? t->sizes[dim] : 1; }

// Calls f(offset of the line in each tensor) for all lines along `dim`. The tensors agree in all other sizes.
template <size_t N, class F>
void for_each_line(const std::array<const Tensor*, N>& tensors, int64_t dim, F&& f) {
  const Tensor& first = *tensors[0];
  if (first.device().is_meta()) return;
  if (first.dim() == 0) return f(std::array<int64_t, N>{});
  Dims sizes = first->sizes;
  const int64_t length = sizes[dim];
  sizes.erase(dim), sizes.push_back(1);
  std::array<Dims, N> strides;
  std::array<IntList, N> borrowed;
  for (size_t k = 0; k < N; ++k) {
    strides[k] = (*tensors[k])->strides;
    strides[k].erase(dim), strides[k].push_back(0);
    borrowed[k] = strides[k];
  }
  const int64_t lines = row_count(sizes);
  parallel_for(0, lines, std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, length)),
               [&](int64_t begin, int64_t end) { for_each_row<N>(sizes, borrowed, begin, end, f); });
}

}  // namespace rushlight::cpu
