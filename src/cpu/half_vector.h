// Products of a matrix of halves and a vector: what each token costs a language model. The matrix is read
// once, as it lies.
#pragma once
#include "core/dtype.h"
#include "cpu/gemm.h"

namespace rushlight::cpu {

// y[i] = sum over p < inner of matrix[i, p] * x[p] in float, for each of `outputs`. False, with nothing done,
// where neither outputs nor elements of a sum are adjacent.
bool half_matrix_vector(DType dtype, int64_t outputs, int64_t inner, const MatrixView& matrix, const float* x,
                        float* y);

}  // namespace rushlight::cpu
