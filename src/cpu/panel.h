// Panels: some columns of a matrix side by side, row after row, with zeros behind the last column. Products
// read them from beginning to end.
#pragma once
#include <cstddef>
#include <span>

#include "cpu/gemm.h"

namespace rushlight::cpu {

// `columns` of a matrix of elements of 4 or 8 bytes in a panel of `width`.
void pack_panel(size_t item, const MatrixView& matrix, int64_t rows, int64_t columns, int64_t width,
                void* panel);

// `columns` filters. A row is a channel of a tap, the channels of one tap after those of another: a tap
// stands at some element behind a filter's first, channels and filters are so many elements apart.
struct FilterView {
  const float* data;
  int64_t channel_step, column_step;
};
void pack_filters(const FilterView& filters, std::span<const int64_t> taps, int64_t channels, int64_t columns,
                  int64_t width, float* panel);

}  // namespace rushlight::cpu
