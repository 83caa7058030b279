#include "core/device_math.h"

namespace rushlight {

DeviceMath& device_math() {
  static DeviceMath one;
  return one;
}

std::atomic<bool>* device_switch(std::string_view name) {
  DeviceMath& math = device_math();
  if (name == "matmul_tf32") return &math.matmul_tf32;
  if (name == "half_sums") return &math.half_sums;
  if (name == "bfloat16_sums") return &math.bfloat16_sums;
  if (name == "half_accumulation") return &math.half_accumulation;
  if (name == "convolution_tf32") return &math.convolution_tf32;
  if (name == "direct_convolutions") return &math.direct_convolutions;
  if (name == "cudnn") return &math.cudnn;
  if (name == "benchmark") return &math.benchmark;
  if (name == "deterministic") return &math.deterministic;
  if (name == "deterministic_algorithms") return &math.deterministic_algorithms;
  if (name == "deterministic_warn_only") return &math.deterministic_warn_only;
  if (name == "batch_invariant") return &math.batch_invariant;
  if (name == "fill_uninitialized") return &math.fill_uninitialized;
  return nullptr;
}

}  // namespace rushlight
