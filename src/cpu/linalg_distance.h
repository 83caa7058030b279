// Distances between the rows of two matrices.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace rushlight::cpu {

// out[i, j] = |a[i] - b[j]| in the norm of order p, for rows of `columns` elements without gaps; float and
// double.
void row_distances(DType dtype, int64_t rows_a, int64_t rows_b, int64_t columns, double p, const void* a,
                   const void* b, void* out);

}  // namespace rushlight::cpu
