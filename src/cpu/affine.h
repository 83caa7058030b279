// Numbers as small integers with a scale and a zero point, and back.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace rushlight::cpu {

// A tensor [outer, channels, inner] with settings for each channel, or for all where channels is 1.
struct AffinePlan {
  int64_t outer, channels, inner;
  const float *factors, *zeros;
};
// out = clamp(round(x * factor) + zero, low, high), to even where two are as near; uint8 or int8.
void quantize_affine(const AffinePlan& plan, const float* x, DType dtype, float low, float high, void* out);
// out = (x - zero) * factor.
void dequantize_affine(const AffinePlan& plan, DType dtype, const void* x, float* out);

// What one of two addends is: bytes with a scale and a zero point, or floats.
struct AffineOperand {
  const void* data;
  DType dtype;  // uint8, int8 or float32
  float scale, zero;
};
// out = clamp(round((a + b) / scale) + zero, low, high) of n numbers, or of those of them above zero.
void add_affine(const AffineOperand& a, const AffineOperand& b, int64_t n, bool relu, float scale, float zero,
                DType dtype, float low, float high, void* out);

// Rows of a table in which each has a scale and a bias of its own behind its numbers: bytes with two floats,
// or parts of bytes with two halves, the first number in the lowest bits.
struct RowTable {
  int bits;  // 8, 4 or 2
  int64_t rows, width;
  int64_t each() const { return 8 / bits; }  // numbers in a byte
  int64_t number_bytes() const { return (width + each() - 1) / each(); }
  int64_t row_bytes() const { return number_bytes() + (bits == 8 ? 8 : 4); }
};
struct RowRange {
  float least, most;
  bool operator==(const RowRange&) const = default;
};
// The range of n numbers whose rounding to `bits` bits loses least. From one end or the other, whichever
// loses less, a step of the whole range through `steps` is given up, as long as 1 - ratio of it is left.
RowRange narrowed_range(const float* x, int64_t n, int64_t steps, float ratio, int bits);
// The range of each row may be given; else it is that of the row's numbers.
void pack_rows(const RowTable& t, const float* x, const RowRange* ranges, uint8_t* out);
void unpack_rows(const RowTable& t, const uint8_t* packed, float* out);
// out[b] = the sum of factors[i] * table[indices[i]] for i from starts[b] to starts[b + 1]; a negative index
// adds nothing; factors may be null.
void sum_rows(const RowTable& t, const uint8_t* packed, const int64_t* indices, const int64_t* starts,
              int64_t bags, const float* factors, float* out);

struct AffineSum {
  float a_scale, a_zero, b_scale, b_zero, least, inverse_scale, zero, low, high;
};
struct AffineKernels {
  // n neighbours; the settings of the next are `step` (0 or 1) further.
  void (*quantize)(const float* x, int64_t n, const float* factors, const float* zeros, int64_t step,
                   float low, float high, bool is_signed, void* out);
  void (*dequantize)(const void* x, bool is_signed, int64_t n, const float* factors, const float* zeros,
                     int64_t step, float* out);
  // out = the larger one of a + b and `least`.
  void (*sum)(const float* a, const float* b, int64_t n, float least, float* out);
  // The whole of add_affine for bytes of one kind.
  void (*sum_bytes)(const void* a, const void* b, bool is_signed, int64_t n, const AffineSum& sum, void* out);
  // out[i] += number * scale + bias for n bytes, or for n numbers in halves of them.
  void (*accumulate)(const uint8_t* numbers, int bits, int64_t n, float scale, float bias, float* out);
};

}  // namespace rushlight::cpu
