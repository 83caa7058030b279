// Products of floats by a weight that is kept in bytes or halves of them, and widened as it is read: for few
// rows memory is what they wait for.
#pragma once
#include "core/dtype.h"

namespace rushlight::cpu {

struct WeightProduct {
  int64_t m, n, k;
  const float* x;  // [m, k], rows adjacent
  // bits == 8: int8 [n, k]. bits == 4: numbers 0 to 15 in [n, k / 2] as pack_halves() lays them.
  int bits;
  const void* weight;
  // bits == 8: [n]. bits == 4: a scale and a zero point for each group of columns and row, [groups, n, 2];
  // the weight is (number - 8) * scale + zero. Without zero points the scales alone, [n, groups].
  DType settings_dtype;  // float32, or a half
  const void* settings;
  int64_t group = 0;
  bool zeros = true;
  float* y;  // [m, n]
};
void weight_product(const WeightProduct& p);
// A row of the weight as k floats; of p, x, m and y are not read.
void weight_row(const WeightProduct& p, int64_t row, float* out);

// One row of k numbers, of which the lowest four bits count. Blocks of 32 lie in 16 bytes, the first half of
// them in the low halves; what is left at the end likewise.
void pack_halves(const int32_t* numbers, int64_t k, uint8_t* out);

struct WeightKernels {
  static constexpr int kRows = 4;  // of the weight, read together
  // Rows [begin, end) of the weight by all of x; `sums` holds the sum of each group of each row of x, and
  // `scratch` has room for the settings of kRows rows.
  void (*products)(const WeightProduct& p, const float* sums, float* scratch, int64_t begin, int64_t end);
  // A row of the weight as floats.
  void (*unpack)(const WeightProduct& p, int64_t row, float* out);
};

}  // namespace rushlight::cpu
