#include "cpu/panel.h"

#include <algorithm>
#include <cstring>

#include "cpu/transpose.h"

namespace rushlight::cpu {
namespace {

constexpr int64_t kTogether =
    16;  // elements of a column that are moved before those of the next: a line of cache

template <class T>
void pack(const T* from, int64_t row_stride, int64_t column_stride, int64_t rows, int64_t columns,
          int64_t width, T* panel) {
  constexpr auto kItem = static_cast<int64_t>(sizeof(T));
  if (columns < width) std::fill_n(panel, rows * width, T(0));
  if (column_stride == 1) {
    for (int64_t i = 0; i < rows; ++i) std::copy_n(from + i * row_stride, columns, panel + i * width);
  } else if (row_stride == 1) {
    transpose_tile(sizeof(T))(reinterpret_cast<char*>(panel), width * kItem,
                              reinterpret_cast<const char*>(from), column_stride * kItem, rows, columns);
  } else {
    for (int64_t first = 0; first < rows; first += kTogether)
      for (int64_t j = 0; j < columns; ++j)
        for (int64_t i = first; i < std::min(rows, first + kTogether); ++i)
          panel[i * width + j] = from[i * row_stride + j * column_stride];
  }
}

}  // namespace

void pack_panel(size_t item, const MatrixView& matrix, int64_t rows, int64_t columns, int64_t width,
                void* panel) {
  if (item == sizeof(float))
    pack(static_cast<const float*>(matrix.data), matrix.row_stride, matrix.column_stride, rows, columns,
         width, static_cast<float*>(panel));
  else
    pack(static_cast<const double*>(matrix.data), matrix.row_stride, matrix.column_stride, rows, columns,
         width, static_cast<double*>(panel));
}

void pack_filters(const FilterView& filters, std::span<const int64_t> taps, int64_t channels, int64_t columns,
                  int64_t width, float* panel) {
  if (taps.size() == 1)
    return pack(filters.data + taps[0], filters.channel_step, filters.column_step, channels, columns, width,
                panel);
  if (columns < width) std::fill_n(panel, static_cast<int64_t>(taps.size()) * channels * width, 0.0f);
  for (int64_t first = 0; first < channels; first += kTogether) {
    const int64_t count = std::min(channels - first, kTogether);
    float* to = panel + first * width;
    for (const int64_t tap : taps) {
      const float* filter = filters.data + first * filters.channel_step + tap;
      for (int64_t j = 0; j < columns; ++j)
        for (int64_t i = 0; i < count; ++i)
          to[i * width + j] = filter[i * filters.channel_step + j * filters.column_step];
      to += channels * width;
    }
  }
}

}  // namespace rushlight::cpu
