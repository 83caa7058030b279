// Factors of many small matrices at once: each lane of a vector belongs to a matrix of its own. By columns,
// with pivots and status as in lapack.h, and the arithmetic of lapack_small.h.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace rushlight::cpu {

// Each function takes up to `lanes` matrices that follow each other.
struct SmallMatrices {
  static constexpr int64_t kMost = 16;  // rows and columns
  int64_t lanes = 0;                    // 0: no such loops
  void (*factor)(int64_t n, void* a, int32_t* pivots, int32_t* info, int64_t count) = nullptr;
  void (*solve)(int64_t n, int64_t columns, const void* lu, const int32_t* pivots, void* b,
                int64_t count) = nullptr;
  // What `info` finds fault with stays as it is.
  void (*invert)(int64_t n, void* lu, const int32_t* pivots, const int32_t* info, int64_t count) = nullptr;
  void (*cholesky)(int64_t n, bool upper, void* a, int32_t* info, int64_t count) = nullptr;
};
// For float and double, and enough matrices to fill lanes.
SmallMatrices small_matrices(DType dtype, int64_t n, int64_t count);

}  // namespace rushlight::cpu
