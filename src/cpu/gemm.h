// Matrix products on strided memory: MKL or OpenBLAS where built in, own loops for integers and the portable
// build.
#pragma once
#include <cstdint>

#include "core/dtype.h"
#include "core/scalar.h"

namespace rushlight::cpu {

// A matrix in memory; strides in elements.
struct MatrixView {
  const void* data;
  int64_t row_stride, column_stride;
};

// `batch` products C = alpha * A B + beta * C of [m, k] and [k, n] matrices, C being row-major with leading
// dimension ldc; each matrix lies `step` elements behind the one before.
struct GemmShape {
  DType dtype = DType::Float32;
  int64_t batch = 1, m = 0, n = 0, k = 0;
  MatrixView a, b;
  int64_t a_step = 0, b_step = 0, ldc = 0, c_step = 0;

  int64_t work() const { return m * n * k; }  // multiplications of one product
};

// Whether gemm can read this matrix in place: one stride is 1 and the other spans a row (or column).
bool gemm_readable(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride);

// C[m, n] = alpha * A[m, k] B[k, n] + beta * C, C being row-major with leading dimension ldc. beta 0 ignores
// C's contents. A and B must be gemm_readable.
void gemm(DType dtype, int64_t m, int64_t n, int64_t k, const Scalar& alpha, MatrixView a, MatrixView b,
          const Scalar& beta, void* c, int64_t ldc);

// C = A B + bias, one row of n elements for all rows of C; null: none.
void gemm_bias(DType dtype, int64_t m, int64_t n, int64_t k, MatrixView a, MatrixView b, const void* bias,
               void* c, int64_t ldc);

// As gemm, for `batch` matrices a fixed number of elements apart.
void gemm_batch(DType dtype, int64_t batch, int64_t m, int64_t n, int64_t k, const Scalar& alpha,
                MatrixView a, int64_t a_step, MatrixView b, int64_t b_step, const Scalar& beta, void* c,
                int64_t ldc, int64_t c_step);

// sum(x * y), or sum(conj(x) * y).
void dot(DType dtype, int64_t n, const void* x, int64_t x_stride, const void* y, int64_t y_stride,
         bool conjugate, void* result);

}  // namespace rushlight::cpu
