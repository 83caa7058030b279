// Matrix products by oneDNN: of bfloat16, whose sums stay in float until they are rounded once, and of float
// where it is ahead of MKL. Without oneDNN `onednn_multiplies` is always false.
#pragma once
#include "cpu/gemm.h"

namespace rushlight::cpu {

// `batch` products C = alpha * A B + beta * C of [m, k] and [k, n] matrices, as gemm_batch takes them.
struct GemmShape {
  DType dtype;
  int64_t batch, m, n, k;
  MatrixView a, b;
  int64_t a_step, b_step, ldc, c_step;
};

bool onednn_multiplies(const GemmShape& s);
// `bias`: a row added to every row of A B, before alpha and beta apply; null: none.
void onednn_gemm(const GemmShape& s, float alpha, float beta, void* c, const void* bias = nullptr);

}  // namespace rushlight::cpu
