// Numbers of bfloat16 by pairs: the upper half of a word is a float under a mask and the lower one after a
// shift, and results come together likewise. No vector is spread or packed.
#pragma once
#include <bit>
#include <cstdint>

#include "core/half.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// Named where it is used: `auto` would deduce a type that may not alias.
typedef uint32_t Pair __attribute__((may_alias, aligned(2)));

[[gnu::always_inline]] inline float lower_number(uint32_t pair) { return std::bit_cast<float>(pair << 16); }
[[gnu::always_inline]] inline float upper_number(uint32_t pair) {
  return std::bit_cast<float>(pair & 0xffff0000u);
}
// What BFloat16 makes of a float, in the upper half. NaN is found by its bits: a choice would become a
// branch.
[[gnu::always_inline]] inline uint32_t rounded_bits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value), rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  const uint32_t nan = 0u - uint32_t{static_cast<int32_t>(bits & 0x7fffffffu) > 0x7f800000};
  return (rounded & ~nan) | (0x7fc00000u & nan);
}

// An even number of elements as floats, the first of all pairs before the second of all; and back.
inline void part_pairs(const BFloat16* from, float* to, int64_t n) {
  const Pair* pairs = reinterpret_cast<const Pair*>(from);
  float* second = to + n / 2;
#pragma GCC ivdep
  for (int64_t i = 0; i < n / 2; ++i) {
    const uint32_t pair = pairs[i];
    to[i] = lower_number(pair), second[i] = upper_number(pair);
  }
}
inline void join_pairs(const float* from, BFloat16* to, int64_t n) {
  Pair* pairs = reinterpret_cast<Pair*>(to);
  const float* second = from + n / 2;
#pragma GCC ivdep
  for (int64_t i = 0; i < n / 2; ++i)
    pairs[i] = rounded_bits(from[i]) >> 16 | (rounded_bits(second[i]) & 0xffff0000u);
}

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
