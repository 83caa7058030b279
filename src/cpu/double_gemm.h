// Products of large matrices of doubles: both operands in panels, tiles of the result in registers.
// (Libraries that cut a product among threads lose a fifth with one.)
#pragma once
#include "cpu/gemm.h"

namespace rushlight::cpu {

// C = alpha A B + beta C; ldc is the distance of C's rows, which beta == 0 does not read. Sums do not depend
// on how many threads there are.
void double_gemm(int64_t m, int64_t n, int64_t k, double alpha, MatrixView a, MatrixView b, double beta,
                 double* c, int64_t ldc);

// A tile of C [rows, columns], its rows `ldc` apart, for a[k][rows] and b[k][columns].
struct DoubleTile {
  static constexpr int64_t kMost = 14 * 16;  // elements of the widest tile
  int64_t rows, columns;
  void (*run)(const double* a, const double* b, int64_t k, double alpha, double beta, double* c, int64_t ldc);
};

}  // namespace rushlight::cpu
