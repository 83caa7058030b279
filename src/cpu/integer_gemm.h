// Products of integer matrices, which no library multiplies.
#pragma once
#include "cpu/gemm.h"

namespace rushlight::cpu {

// C = alpha A B + beta C, wrapping around; ldc is the distance of C's rows, which beta == 0 does not read.
void integer_gemm(DType dtype, int64_t m, int64_t n, int64_t k, int64_t alpha, MatrixView a, MatrixView b,
                  int64_t beta, void* c, int64_t ldc);

// Tiles of C for unsigned words of 2, 4 or 8 bytes, in which all narrower types compute too.
struct IntegerTile {
  static constexpr int64_t kRows = 6;
  int64_t columns;
  // c[kRows][columns] = a b for a[kRows][k] and b[k][columns], all adjacent.
  void (*run)(const void* a, const void* b, int64_t k, void* c);
};
// `halves`: words of 8 bytes all hold numbers of 32 bits with a sign, which processors multiply at once.
IntegerTile integer_tile(size_t word, bool halves);

// sums[j] = sum over p of a[p] b[p * row + j], for columns [0, n), at most kColumns, of elements of `size`
// bytes: what one row is worth, for which no panel is laid out.
struct IntegerRow {
  static constexpr int64_t kColumns = 512;
  void (*run)(const void* a, const void* b, int64_t row, int64_t k, int64_t n, void* out);
};
IntegerRow integer_row(size_t size);

// The sum of products of adjacent elements of `size` bytes, of which the lowest bits hold.
using IntegerDot = uint64_t (*)(const void* a, const void* b, int64_t n);
IntegerDot integer_dot(size_t size);

}  // namespace rushlight::cpu
