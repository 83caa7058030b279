// Walks an index space row by row, following the offsets of several arrays.
#pragma once
#include <array>

#include "core/dims.h"

namespace rushlight::cpu {

// Calls f(offsets) for each row [begin, end) of `sizes` without its last dimension; offsets in elements, one
// per array.
template <size_t N, class F>
void for_each_row(IntList sizes, const std::array<IntList, N>& strides, int64_t begin, int64_t end, F&& f) {
  if (begin >= end) return;  // also of no elements
  const size_t outer = sizes.empty() ? 0 : sizes.size() - 1;
  Dims index(outer);
  std::array<int64_t, N> offset{};
  int64_t rest = begin;
  for (size_t d = outer; d-- > 0; rest /= sizes[d]) {
    index[d] = rest % sizes[d];
    for (size_t k = 0; k < N; ++k) offset[k] += index[d] * strides[k][d];
  }
  for (int64_t row = begin; row < end; ++row) {
    f(offset);
    for (size_t d = outer; d-- > 0;) {
      for (size_t k = 0; k < N; ++k) offset[k] += strides[k][d];
      if (++index[d] < sizes[d]) break;
      for (size_t k = 0; k < N; ++k) offset[k] -= sizes[d] * strides[k][d];
      index[d] = 0;
    }
  }
}

inline int64_t row_count(IntList sizes) {
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < sizes.size(); ++d) rows *= sizes[d];
  return rows;
}

}  // namespace rushlight::cpu
