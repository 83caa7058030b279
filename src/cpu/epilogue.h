// What operators left to be done to an image whose channels come last. Note [Deferred epilogues]
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace rushlight::cpu {

// y = clamp(x * scale + shift + residual) by channel, each step rounded to the elements' type.
struct EpilogueArguments {
  DType dtype = DType::Float32;  // or bfloat16
  int64_t pixels = 0, channels = 0;
  const void *x = nullptr, *residual = nullptr;  // residual may be null
  void* y = nullptr;                             // may be x
  const float *scale = nullptr, *shift = nullptr;
  bool scaled = true;  // false: they are 1 and -0, which change nothing
  bool bounded = false;
  float low = 0, high = 0;
};

// The pixels [begin, end), by all threads.
void finish_pixels(const EpilogueArguments& a, int64_t begin, int64_t end);

}  // namespace rushlight::cpu
