// Bits as uniform numbers in (0, 1], as cuRAND converts them.
#pragma once
#include <cstdint>

#include "cuda/geometry.h"

namespace rushlight::cuda {

RL_BOTH inline float uniform(uint32_t x) { return static_cast<float>(x) * 0x1p-32f + 0x1p-33f; }
RL_BOTH inline double uniform(uint32_t low, uint32_t high) {
  const uint64_t z = low ^ static_cast<uint64_t>(high) << 21;
  return static_cast<double>(z) * 0x1p-53 + 0x1p-54;
}

}  // namespace rushlight::cuda
