// Distances between the rows of matrices, in the norm of order p; rows of float or double without gaps.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/dtype.h"

namespace rushlight::cpu {

// out[i, j] = |a[i] - b[j]|.
void row_distances(DType dtype, int64_t rows_a, int64_t rows_b, int64_t columns, double p, const void* a,
                   const void* b, void* out);
// The distances of all pairs of rows (i, j), i < j, one after the other.
void pair_distances(DType dtype, int64_t rows, int64_t columns, double p, const void* a, void* out);

// The gradient of that, from the distances and their gradients. The derivative of a norm at 0 is taken to be
// 0.
struct PairGradients {
  int64_t rows, columns;
  double p;
  const void *points, *distances, *grads;
  void* out;  // as points

  // Where the pairs (i, i + 1), (i, i + 2), ... begin; where (i, j) is.
  static int64_t first_pair(int64_t i, int64_t rows) { return i * rows - i * (i + 1) / 2; }
  int64_t pair(int64_t i, int64_t j) const {
    return first_pair(std::min(i, j), rows) + std::max(i, j) - std::min(i, j) - 1;
  }
};
void pair_distances_backward(DType dtype, const PairGradients& pairs);

// The loops of one row, a set per instruction set and type: its distances to `count` rows, and its gradient,
// added to `out`.
struct DistanceLoops {
  void (*distances)(const void* from, const void* to, int64_t count, int64_t columns, double p, void* out);
  void (*gradient)(const PairGradients& pairs, int64_t row);
};

}  // namespace rushlight::cpu
