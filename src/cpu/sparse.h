// Products of compressed sparse matrices with dense ones.
#pragma once
#include "core/dtype.h"

namespace rushlight::cpu {

// out[rows, width] = S @ dense[columns, width], S given by row starts, columns and values; all contiguous.
void sparse_times_dense(DType dtype, int64_t rows, int64_t width, const int64_t* starts,
                        const int64_t* columns, const void* values, const void* dense, void* out);

}  // namespace rushlight::cpu
