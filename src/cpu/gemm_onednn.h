// Matrix products by oneDNN: of bfloat16, whose sums stay in float until they are rounded once, and of float
// where it is ahead of MKL. Without oneDNN `onednn_multiplies` is always false.
#pragma once
#include "cpu/gemm.h"

namespace rushlight::cpu {

bool onednn_multiplies(const GemmShape& s);
// `bias`: a row added to every row of A B, before alpha and beta apply; null: none.
void onednn_gemm(const GemmShape& s, float alpha, float beta, void* c, const void* bias = nullptr);

}  // namespace rushlight::cpu
