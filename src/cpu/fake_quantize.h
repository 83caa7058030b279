// Numbers rounded to those that an integer type with a scale could hold, and still floating point.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace rushlight::cpu {

// What PyTorch's kernels do with sums that no int64 holds, and with zero points that are no integers.
enum class FakeRounding : uint8_t {
  Saturate,  // one scale for all: too large numbers become the highest integer, NaN the lowest
  Wrap,      // a scale for each channel: both become the lowest
  SumFirst,  // likewise, rounded after the zero point was added
};

// Elements in memory order: element p belongs to channel p / inner % channels.
struct FakeQuantization {
  DType dtype = DType::Float32;
  FakeRounding rounding = FakeRounding::Saturate;
  int64_t n = 0, channels = 1, inner = 1;
  const float *scale = nullptr, *zero_point = nullptr;  // one for each channel
  int64_t lowest = 0, highest = 0;
  const void* x = nullptr;
  void* y = nullptr;
  bool* inside = nullptr;  // whether the integer is between the bounds
};
void fake_quantize(const FakeQuantization& f);

// The gradients of learned scales and zero points, element by element: they are still to be summed.
struct FakeQuantizationGradient {
  FakeQuantization forward;  // dtype, channels, settings, bounds, x
  const void* dy = nullptr;
  void *dx = nullptr, *dscale = nullptr, *dzero_point = nullptr;
  float factor = 1;  // of the last two
};
void fake_quantize_backward(const FakeQuantizationGradient& g);

// The scale and zero point whose integers from `lowest` to `highest` cover [min, max] and zero.
struct ScaleAndZero {
  double scale;
  int32_t zero_point;
};
ScaleAndZero choose_quantization(float min, float max, int lowest, int highest, bool symmetric = false);

}  // namespace rushlight::cpu
