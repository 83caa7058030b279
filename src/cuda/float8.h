// Numbers of eight bits, on the device; core/dtype.cpp has them for the host.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/dtype.h"
#include "cuda/geometry.h"

namespace rushlight::cuda {

struct Float8Kind {
  detail::Float8Format format{};
  bool is_power = false;  // an exponent alone
};

inline Float8Kind float8_kind(DType t) {
  switch (t) {
    case DType::Float8_e5m2:
      return {Float8_e5m2::format};
    case DType::Float8_e4m3fn:
      return {Float8_e4m3fn::format};
    case DType::Float8_e5m2fnuz:
      return {Float8_e5m2fnuz::format};
    case DType::Float8_e4m3fnuz:
      return {Float8_e4m3fnuz::format};
    default:
      return {{}, true};
  }
}

RL_BOTH inline float widened(Float8Kind kind, uint8_t bits) {
  const detail::Float8Format f = kind.format;
  if (kind.is_power) return bits == 0xff ? NAN : std::ldexp(1.0f, static_cast<int>(bits) - 127);
  const int m = f.mantissa_bits, ones = (1 << (7 - m)) - 1, exponent = (bits & 0x7f) >> m,
            mantissa = bits & ((1 << m) - 1);
  if (f.unsigned_zero && bits == 0x80) return NAN;
  const float sign = bits & 0x80 ? -1.0f : 1.0f;
  if (!f.unsigned_zero && exponent == ones) {
    if (!f.finite_only) return mantissa ? NAN : sign * INFINITY;
    if (mantissa == (1 << m) - 1) return NAN;
  }
  const int whole = exponent ? mantissa + (1 << m) : mantissa;
  return sign * std::ldexp(static_cast<float>(whole), (exponent ? exponent : 1) - f.bias - m);
}

// To nearest even.
RL_BOTH inline uint8_t narrowed(Float8Kind kind, float value) {
  const detail::Float8Format f = kind.format;
  union {
    float value;
    uint32_t bits;
  } word{value};
  if (kind.is_power) {
    const uint32_t exponent = word.bits >> 23 & 0xffu, rest = word.bits & 0x7fffffu;
    if (exponent == 0xff) return 0xff;
    return static_cast<uint8_t>(exponent + (exponent ? rest >= 0x400000u : rest > 0x400000u));
  }
  const int m = f.mantissa_bits, lowest = 1 - f.bias;
  const auto sign = static_cast<uint8_t>(word.bits >> 24 & 0x80u);
  const auto infinity = static_cast<uint8_t>(((1 << (7 - m)) - 1) << m);
  const auto none = static_cast<uint8_t>(f.unsigned_zero ? 0x80 : sign | 0x7f);
  if (value != value) return none;
  const auto largest = static_cast<uint8_t>(f.unsigned_zero ? 0x7f : f.finite_only ? 0x7e : infinity - 1);
  const float magnitude = std::fabs(value);
  int exponent = 0;
  float rounded = magnitude;
  if (magnitude < INFINITY) {
    std::frexp(magnitude, &exponent);  // magnitude = x * 2^exponent, x in [0.5, 1)
    const float quantum = std::ldexp(1.0f, (exponent - 1 > lowest ? exponent - 1 : lowest) - m);
    rounded = std::nearbyint(magnitude / quantum) * quantum;
  }
  if (rounded > widened(kind, largest)) {
    if (f.unsigned_zero) return none;
    return static_cast<uint8_t>(sign | (f.finite_only ? largest : infinity));
  }
  if (rounded == 0) return f.unsigned_zero ? uint8_t{0} : sign;
  std::frexp(rounded, &exponent);
  const int biased = exponent - 1 + f.bias;
  const int code = biased <= 0
                       ? static_cast<int>(std::ldexp(rounded, m - lowest))
                       : (biased << m) + static_cast<int>(std::ldexp(rounded, m - exponent + 1)) - (1 << m);
  return static_cast<uint8_t>(sign | code);
}

}  // namespace rushlight::cuda
