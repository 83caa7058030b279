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

struct AffineKernels {
  // n neighbours; the settings of the next are `step` (0 or 1) further.
  void (*quantize)(const float* x, int64_t n, const float* factors, const float* zeros, int64_t step,
                   float low, float high, bool is_signed, void* out);
  void (*dequantize)(const void* x, bool is_signed, int64_t n, const float* factors, const float* zeros,
                     int64_t step, float* out);
};

}  // namespace rushlight::cpu
