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

}  // namespace rushlight::cpu
