// Floats from and to numbers of eight bits, without branches, so that the compiler makes vectors; the same as
// detail::float8_from_float() and its inverse give. Included by files of this folder.
#pragma once
#include <bit>
#include <cstdint>
#include <limits>

#include "core/half.h"

namespace rushlight::cpu::RL_ISA {
namespace {

template <class F>
[[gnu::always_inline]] inline uint32_t float8_code(float value) {
  constexpr detail::Float8Format format = F::format;
  constexpr int m = format.mantissa_bits, shift = 23 - m;
  constexpr uint32_t kInfinity = 0x7f800000u, kRebias = static_cast<uint32_t>(127 - format.bias) << m,
                     kNormal = static_cast<uint32_t>(128 - format.bias) << 23,
                     // The last bit of this power of two is that of the least number.
      kUnit = static_cast<uint32_t>(127 + 24 - format.bias - m) << 23,
                     kLargest = format.unsigned_zero ? 0x7f
                                : format.finite_only ? 0x7e
                                                     : (((1u << (7 - m)) - 1) << m) - 1,
                     kBeyond = format.unsigned_zero ? 0x80
                               : format.finite_only ? kLargest
                                                    : kLargest + 1;
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7fffffffu,
                 sign = (bits >> 24) & 0x80u;
  const uint32_t normal =
      ((magnitude + ((1u << (shift - 1)) - 1) + ((magnitude >> shift) & 1u)) >> shift) - kRebias;
  const uint32_t small =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(kUnit)) - kUnit;
  const uint32_t rounded = magnitude < kNormal ? small : normal;
  const uint32_t code = rounded > kLargest ? kBeyond : rounded;
  if constexpr (format.unsigned_zero) {
    const uint32_t marked = code == 0 || code == 0x80 ? code : code | sign;
    return magnitude > kInfinity ? 0x80u : marked;
  } else {
    return (magnitude > kInfinity ? 0x7fu : code) | sign;
  }
}

template <class F>
[[gnu::always_inline]] inline float float8_value(uint8_t code) {
  constexpr detail::Float8Format format = F::format;
  constexpr int m = format.mantissa_bits;
  constexpr uint32_t kRebias = static_cast<uint32_t>(127 - format.bias) << 23, kNan = 0x7fc00000u,
                     kInfinity = 0x7f800000u;
  constexpr float kLeast = std::bit_cast<float>(static_cast<uint32_t>(128 - format.bias - m) << 23);
  const uint32_t magnitude = code & 0x7fu;
  const uint32_t normal = (magnitude << (23 - m)) + kRebias;
  const auto small = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude)) * kLeast);
  const uint32_t finite = magnitude < (1u << m) ? small : normal;
  if constexpr (format.unsigned_zero) {
    const uint32_t bits = finite | (code & 0x80u) << 24;
    return std::bit_cast<float>(code == 0x80 ? kNan : bits);
  } else {
    constexpr uint32_t kLast = format.finite_only ? 0x7e : ((1u << (7 - m)) - 1) << m;
    const uint32_t last = format.finite_only ? finite : magnitude == kLast ? kInfinity : finite;
    return std::bit_cast<float>((magnitude > kLast ? kNan : last) | (code & 0x80u) << 24);
  }
}

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
