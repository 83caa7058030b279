// Whether all of many numbers are finite.
#pragma once
#include <cstdint>
#include <cstring>

namespace rushlight::cpu {

inline bool all_finite(const float* numbers, int64_t count) {
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t infinite = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, numbers + i, sizeof(bits));
    infinite |= (bits & kExponent) == kExponent;
  }
  return !infinite;
}

}  // namespace rushlight::cpu
