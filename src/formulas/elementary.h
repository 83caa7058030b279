// exp, log, sin and cos of real numbers where libmvec is off by more than a unit in the last place. Plain
// arithmetic without branches, so that loops over them become vector code.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#define RL_ALWAYS_INLINE [[gnu::always_inline]] inline
// What also runs on a GPU.
#ifdef __CUDACC__
#define RL_HD __host__ __device__
#define RL_TABLE static __device__ const
#else
#define RL_HD
#define RL_TABLE inline constexpr
#endif

namespace rushlight::formulas {

// x = n log 2 + r with |r| <= log(2) / 2, then a polynomial in r. Adding `kRound` rounds to an integer that
// the low bits of the sum hold.
RL_HD RL_ALWAYS_INLINE float exp_real(float x) {
  constexpr float kRound = 0x1.8p23f, kHigh = 0x1.62e4p-1f, kLow = 0x1.7f7d1cp-20f;
  const float bounded = x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x;  // NaN stays
  const float shifted = bounded * 1.44269504f + kRound, n = shifted - kRound;
  const float r = (bounded - n * kHigh) - n * kLow;
  float q = 1.0f / 5040;
  q = q * r + 1.0f / 720;
  q = q * r + 1.0f / 120;
  q = q * r + 1.0f / 24;
  q = q * r + 1.0f / 6;
  q = q * r + 0.5f;
  const float p = 1.0f + (r + r * r * q);
  // 2^n in two factors, as n may lie outside the exponents of normal numbers.
  const int32_t whole = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRound), half = whole >> 1;
  const float a = std::bit_cast<float>((half + 127) << 23),
              b = std::bit_cast<float>((whole - half + 127) << 23);
  return p * a * b;
}

RL_HD RL_ALWAYS_INLINE double exp_real(double x) {
  constexpr double kRound = 0x1.8p52, kHigh = 0x1.62e42feep-1, kLow = 0x1.a39ef35793c76p-33;
  const double bounded = x < -746.0 ? -746.0 : x > 710.0 ? 710.0 : x;
  const double shifted = bounded * 1.4426950408889634 + kRound, n = shifted - kRound;
  const double r = (bounded - n * kHigh) - n * kLow;
  double q = 1.0 / 6227020800;
  q = q * r + 1.0 / 479001600;
  q = q * r + 1.0 / 39916800;
  q = q * r + 1.0 / 3628800;
  q = q * r + 1.0 / 362880;
  q = q * r + 1.0 / 40320;
  q = q * r + 1.0 / 5040;
  q = q * r + 1.0 / 720;
  q = q * r + 1.0 / 120;
  q = q * r + 1.0 / 24;
  q = q * r + 1.0 / 6;
  q = q * r + 0.5;
  const double p = 1.0 + (r + r * r * q);
  const int64_t whole = std::bit_cast<int64_t>(shifted) - std::bit_cast<int64_t>(kRound);
  const int64_t half = static_cast<int32_t>(whole) >> 1;
  const double a = std::bit_cast<double>((half + 1023) << 52),
               b = std::bit_cast<double>((whole - half + 1023) << 52);
  return p * a * b;
}

// erf(x) = x p(x^2) up to 1, and 1 - exp(q(|x|)) from there to 4, beyond which it is 1: within a unit in
// the last place.
RL_HD RL_ALWAYS_INLINE float erf_real(float x) {
  const float size = std::fabs(x), t = size > 4.0f ? 4.0f : size, s = x * x;
  float p = 7.875875063e-5f;
  p = p * s - 0.0008016864287f;
  p = p * s + 0.005189087423f;
  p = p * s - 0.02685421201f;
  p = p * s + 0.1128359472f;
  p = p * s - 0.3761262667f;
  p = p * s + 0.128379166f;
  float q = 1.639938016e-06f;
  q = q * t - 4.611291391e-5f;
  q = q * t + 0.0005972644331f;
  q = q * t - 0.004761717236f;
  q = q * t + 0.02642704377f;
  q = q * t - 0.1100901975f;
  q = q * t - 0.6318156996f;
  q = q * t - 1.130239201f;
  q = q * t + 0.0003214710264f;
  const float far = std::copysign(1.0f - exp_real(q), x);
  return size < 1.0f ? x * p + x : x != x ? x : far;
}

// By atan of the smaller over the larger; the quotient and the last steps are in double, so that it stays
// within a unit in the last place.
RL_HD RL_ALWAYS_INLINE float atan2_real(float y, float x) {
  const float a = std::fabs(y), b = std::fabs(x);
  const bool steep = a > b;
  const double top = steep ? b : a, bottom = steep ? a : b;
  const double ratio = top == bottom ? (bottom == 0 ? 0.0 : 1.0) : top / bottom, square = ratio * ratio;
  const float s = static_cast<float>(square);
  float p = -0.00182724967f;
  p = p * s + 0.0110646109f;
  p = p * s - 0.0314560314f;
  p = p * s + 0.058234898f;
  p = p * s - 0.0841948071f;
  p = p * s + 0.109575842f;
  p = p * s - 0.142652471f;
  p = p * s + 0.199986388f;
  const double r = ratio + ratio * square * (static_cast<double>(p) * square - 0.333333019);
  const double flat = steep ? 1.57079632679489661923 - r : r;
  const double value = std::copysign(1.0f, x) < 0 ? 3.14159265358979323846 - flat : flat;
  return x != x || y != y ? x + y : std::copysign(static_cast<float>(value), y);
}

// x = 2^k m with m near 1, s = (m - 1) / (m + 1): log m = 2 atanh s, written so that m - 1 enters exactly.
RL_HD RL_ALWAYS_INLINE float log_real(float x) {
  constexpr float kHigh = 0x1.62e3p-1f, kLow = 0x1.2fefa2p-17f;
  const bool small = x < std::numeric_limits<float>::min();
  const auto bits =
      static_cast<int32_t>(std::bit_cast<uint32_t>(small ? x * 0x1p25f : x) + (0x3f800000u - 0x3f3504f3u));
  const float k = static_cast<float>((bits >> 23) - (small ? 152 : 127));
  const float f = std::bit_cast<float>((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
  const float s = f / (2.0f + f), z = s * s, half_square = 0.5f * f * f;
  const float tail = z * (2.0f / 3 + z * (2.0f / 5 + z * (2.0f / 7 + z * (2.0f / 9))));
  const float y = ((s * (half_square + tail) + k * kLow) - half_square + f) + k * kHigh;
  const float edge =
      x == 0 ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  return x > 0 ? (x <= std::numeric_limits<float>::max() ? y : x) : edge;
}

// Up to 1/2 by a polynomial; from there of what x lacks of 1: asin(x) =
// pi/2 - 2 asin(sqrt((1 - x) / 2)), with the difference in double.
RL_HD RL_ALWAYS_INLINE float asin_real(float x) {
  const float size = std::fabs(x);
  const bool steep = size > 0.5f;
  const float z = steep ? 0.5f * (1.0f - size) : size * size, s = steep ? std::sqrt(z) : size;
  float p = 0.0382064520644f;
  p = p * z + 0.026494276787f;
  p = p * z + 0.0450107000557f;
  p = p * z + 0.0749880917577f;
  p = p * z + 0.166666727647f;
  const float bent = s * (z * p);
  const double both = static_cast<double>(s) + static_cast<double>(bent);
  const float far = static_cast<float>(1.57079632679489661923 - 2 * both);
  const float value = steep ? far : s + bent;
  return std::copysign(size <= 1.0f ? value : std::numeric_limits<float>::quiet_NaN(), x);
}

// The same over log 10, in two parts: the first of so few bits that its product is exact.
RL_HD RL_ALWAYS_INLINE float log10_real(float x) {
  constexpr float kHigh = 0x1.bccp-2f, kLow = -0x1.09d5b2p-15f;        // 1 / log 10
  constexpr float kTwoHigh = 0x1.3441p-2f, kTwoLow = 0x1.a84fb6p-21f;  // log 2 / log 10
  const bool small = x < std::numeric_limits<float>::min();
  const auto bits =
      static_cast<int32_t>(std::bit_cast<uint32_t>(small ? x * 0x1p25f : x) + (0x3f800000u - 0x3f3504f3u));
  const float k = static_cast<float>((bits >> 23) - (small ? 152 : 127));
  const float f = std::bit_cast<float>((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
  const float s = f / (2.0f + f), z = s * s, half_square = 0.5f * f * f;
  const float tail = z * (2.0f / 3 + z * (2.0f / 5 + z * (2.0f / 7 + z * (2.0f / 9))));
  const float high = std::bit_cast<float>(std::bit_cast<uint32_t>(f - half_square) & 0xfffff000u);
  const float low = (f - high) - half_square + s * (half_square + tail);
  const float y = k * kTwoLow + (low + high) * kLow + low * kHigh + high * kHigh + k * kTwoHigh;
  const float edge =
      x == 0 ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  return x > 0 ? (x <= std::numeric_limits<float>::max() ? y : x) : edge;
}

// The quarter turn that x lies in, and what is left of x after it: exactly enough for |x| < 2^20.
struct Quarter {
  double rest, lost;
  int64_t count;
};
RL_HD RL_ALWAYS_INLINE Quarter quarter_turn(double x) {
  constexpr double kRound = 0x1.8p52;
  constexpr double kFirst = 0x1.921fb54p0, kSecond = 0x1.10b4611p-30, kThird = 0x1.4c4c6628b80dcp-59;
  const double shifted = x * 0.63661977236758134308 + kRound, n = shifted - kRound;
  const double high = x - n * kFirst, middle = high - n * kSecond;
  const double tail = ((high - middle) - n * kSecond) - n * kThird, rest = middle + tail;
  return {rest, (middle - rest) + tail, std::bit_cast<int64_t>(shifted)};
}
RL_HD RL_ALWAYS_INLINE double sine_polynomial(double r, double lost) {
  const double z = r * r;
  double q = 1.0 / 355687428096000;
  q = q * z - 1.0 / 1307674368000;
  q = q * z + 1.0 / 6227020800;
  q = q * z - 1.0 / 39916800;
  q = q * z + 1.0 / 362880;
  q = q * z - 1.0 / 5040;
  q = q * z + 1.0 / 120;
  q = q * z - 1.0 / 6;
  return r + (r * z * q + lost);
}
RL_HD RL_ALWAYS_INLINE double cosine_polynomial(double r, double lost) {
  const double z = r * r;
  double q = -1.0 / 6402373705728000;
  q = q * z + 1.0 / 20922789888000;
  q = q * z - 1.0 / 87178291200;
  q = q * z + 1.0 / 479001600;
  q = q * z - 1.0 / 3628800;
  q = q * z + 1.0 / 40320;
  q = q * z - 1.0 / 720;
  q = q * z + 1.0 / 24;
  const double w = 1 - 0.5 * z;
  return w + (((1 - w) - 0.5 * z) + (z * z * q - r * lost));
}
// Sine of `turned` + the quarters that `offset` adds: 0 for sin, 1 for cos.
RL_HD RL_ALWAYS_INLINE double sine_of(const Quarter& turned, int64_t offset) {
  const int64_t count = turned.count + offset;
  const double s = sine_polynomial(turned.rest, turned.lost);
  const double c = cosine_polynomial(turned.rest, turned.lost);
  const double value = count & 1 ? c : s;
  return count & 2 ? -value : value;
}

}  // namespace rushlight::formulas

#undef RL_ALWAYS_INLINE
