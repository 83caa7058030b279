// Products of a matrix and a vector: what each token costs a language model. The matrix is read once, as it
// lies.
#pragma once
#include "core/dtype.h"
#include "cpu/gemm.h"

namespace rushlight::cpu {

// y[i] = sum over p < inner of matrix[i, p] * x[p], for each of `outputs`; of float, of double, or of halves
// with x and y in float. False, with nothing done, where neither outputs nor elements of a sum are adjacent.
bool matrix_vector(DType dtype, int64_t outputs, int64_t inner, const MatrixView& matrix, const void* x,
                   void* y);

// out[e] = sum over p < inner of a[rows[e], p] * b[columns[e], p], of float or double; lines lie without
// gaps.
void listed_dots(DType dtype, int64_t count, int64_t inner, const void* a, const int64_t* rows, const void* b,
                 const int64_t* columns, void* out);

// The sum of x[i] * y[i], or of conj(x[i]) * y[i], of complex numbers that lie without gaps.
void complex_dot(DType dtype, int64_t n, const void* x, const void* y, bool conjugate, void* result);

}  // namespace rushlight::cpu
