// Sorting and selecting along a dimension. Elements are ordered through unsigned keys: NaN last, -0 equal to
// 0. A stable sort leaves equal elements in the order of their positions; otherwise they come as PyTorch's
// default sort leaves them.
#pragma once
#include "core/tensor.h"

namespace rushlight::cpu {

void sort(const Tensor& in, int64_t dim, bool descending, bool stable, const Tensor& values,
          const Tensor& indices);
// The same of lines of few elements, stable, as they come by default too; false for longer ones.
bool sort_short_lines(const Tensor& in, int64_t dim, bool descending, const Tensor& values,
                      const Tensor& indices);
// All elements of contiguous memory in order, without positions.
void sort_values(const Tensor& in, const Tensor& out);
// The k first of each line in that order; outputs have size k at `dim`.
void topk(const Tensor& in, int64_t dim, int64_t k, bool largest, bool sorted, const Tensor& values,
          const Tensor& indices);

// One element of each line; outputs have size 1 at `dim`.
enum class Select : uint8_t { Kth, Median, NanMedian, Mode };
void select(Select what, const Tensor& in, int64_t dim, int64_t k, const Tensor& values,
            const Tensor& indices);

// The number of elements of the sorted line that are less than the value (or not greater, with `right`).
// `values` and `out` are contiguous with lines of `values_per_line`; one line of boundaries serves all when
// `shared`.
struct SearchLines {
  int64_t lines, boundaries_per_line, values_per_line;
  bool shared;
};
void search_sorted(const Tensor& boundaries, const Tensor& values, const Tensor* sorter, SearchLines lines,
                   bool right, int64_t* out);

}  // namespace rushlight::cpu
