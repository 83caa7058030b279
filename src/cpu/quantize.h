// Numbers to integers of a quantised tensor, and back.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace rushlight::cpu {

// Elements in memory order: element p belongs to channel p / inner % channels.
struct Quantization {
  DType integers = DType::UInt8;  // or Int8, Int32
  int64_t n = 0, channels = 1, inner = 1;
  const float *scale = nullptr, *zero_point = nullptr;  // one for each channel
  bool one_scale = true;  // rounds in one step where the processor multiplies and adds so, as PyTorch does
};
void quantize(const Quantization& q, const float* from, void* to);
void dequantize(const Quantization& q, const void* from, float* to);

}  // namespace rushlight::cpu
