// Products of compressed sparse matrices with dense ones.
#pragma once
#include "core/dtype.h"

namespace rushlight::cpu {

// out[rows, width] = S @ dense[columns, width], S given by row starts, columns and values; all contiguous.
void sparse_times_dense(DType dtype, int64_t rows, int64_t width, const int64_t* starts,
                        const int64_t* columns, const void* values, const void* dense, void* out);

// out += S dense for `count` elements of S in any order, on one thread; false, and out as it was, where one
// lies outside of [height, depth], and for halves, which would be rounded with each element.
bool add_few_times_dense(DType dtype, int64_t count, int64_t height, int64_t depth, int64_t width,
                         const int64_t* rows, const int64_t* columns, const void* values, const void* dense,
                         void* out);

// x[rows, width] becomes the solution of S x = x. Only the lower (or upper) triangle of S counts; listed
// twice, an element counts twice.
void sparse_triangular_solve(DType dtype, int64_t rows, int64_t width, const int64_t* starts,
                             const int64_t* columns, const void* values, bool upper, bool unit, void* x);

enum class RowReduce : uint8_t { Sum, Mean, Max, Min };
// The same with the products of each row reduced otherwise. `chosen`, for maxima and minima, receives which
// listed element was taken; a row without elements gives 0 and their number. NaN wins.
void sparse_reduce_dense(RowReduce op, DType dtype, int64_t rows, int64_t width, const int64_t* starts,
                         const int64_t* columns, const void* values, const void* dense, void* out,
                         int64_t* chosen);

}  // namespace rushlight::cpu
