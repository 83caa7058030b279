// Products by a matrix that was laid out beforehand, and what follows them. The matrix lies in panels of some
// columns each, filled up with zeros, as wide as the instruction set likes: nobody else may read them.
#pragma once
#include "cpu/gemm.h"

namespace rushlight::cpu {

struct PackedProduct {
  DType dtype;  // float32 or float64
  int64_t m, n, k;
  const void* a;  // [m, k], with rows a_row apart
  int64_t a_row;
  const void* panels;
  const void* bias;  // n elements, or null
  double low, high;  // bounds of what is written; a NaN stays one
  void* c;           // [m, n], dense
};

// Elements that the panels of a matrix [k, n] take, whatever the width of a panel.
constexpr int64_t kPanelColumns = 32;  // a multiple of all widths
constexpr int64_t panel_elements(int64_t k, int64_t n) {
  return (n + kPanelColumns - 1) / kPanelColumns * kPanelColumns * k;
}
void pack_panels(DType dtype, int64_t k, int64_t n, MatrixView matrix, void* panels);
// The most rows of a product that is faster by such a matrix than by the plain one, which need not be packed
// in each call; 0: none.
int64_t most_packed_rows(int64_t k, int64_t n);
// c = a * matrix + bias, bounded.
void packed_product(const PackedProduct& p);

// c = a * b + bias by panels that are kept beside a constant b (constant_memory.h); false where b is none, or
// the library is faster.
bool multiply_by_constant(DType dtype, int64_t m, int64_t n, int64_t k, const MatrixView& a,
                          const MatrixView& b, const void* bias, void* c, int64_t ldc);

// The same, always by such panels, so that each row of c has the bits that it has alone. `b_dtype` is float32
// or bfloat16, all else float32; panels of a matrix that is not constant are made for this call. Where the
// processor multiplies pairs of bfloat16, `a` is rounded to it for such a matrix.
void multiply_rows_apart(int64_t m, int64_t n, int64_t k, const void* a, int64_t a_row, DType b_dtype,
                         const MatrixView& b, const void* bias, void* c);

// c = a * b + bias of float32 or float64, always by panels.
void multiply_in_panels(DType dtype, int64_t m, int64_t n, int64_t k, const void* a, int64_t a_row,
                        const MatrixView& b, const void* bias, void* c);

struct PackedKernels {
  int64_t (*width)(DType dtype);  // columns of a panel
  // Panels [begin, end).
  void (*pack)(DType dtype, int64_t k, int64_t n, const MatrixView& matrix, void* panels, int64_t begin,
               int64_t end);
  // Rows [row, row_end) of the columns in panels [begin, end).
  void (*multiply)(const PackedProduct& p, int64_t row, int64_t row_end, int64_t begin, int64_t end);
  // Set where the factors are pairs of bfloat16, of which a dimension of k has (k + 1) / 2: rounds rows
  // [begin, end) of float32 to dense rows of pairs.
  void (*round)(const float* a, int64_t a_row, int64_t k, BFloat16* pairs, int64_t begin,
                int64_t end) = nullptr;
};

}  // namespace rushlight::cpu
