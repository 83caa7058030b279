// Special functions in single precision: plain arithmetic in double without branches, so that loops over
// them become vector code.
#pragma once
#include "formulas/special_math.h"

namespace rushlight::formulas {

// log |Gamma(x)|: from 8 on Stirling's series; what lies below is shifted into [1.5, 2.5), where a polynomial
// holds, and the factors go through one logarithm. The zeros at 1 and 2 are exact. Negative numbers are
// reflected, at the price of a second logarithm.
struct LgammaGuess {
  double positive, x, size;
  float value;
  unsigned in_doubt;
  RL_HD [[gnu::always_inline]] operator float() const {  // no call may depend on a condition
    const double rest = size - nearbyint(size), sine = std::fabs(sine_polynomial(kPi<double> * rest, 0));
    const bool mirrored = (x < 0) & (rest != 0);  // whole numbers would take a call of the logarithm
    const double moved = log(mirrored ? kPi<double> / (size * sine) : 1.0);
    const double reflected = moved + (mirrored ? -positive : positive);
    return static_cast<float>((size == kInf<double>) | ((x <= 0) & (rest == 0)) ? kInf<double> : reflected);
  }
};
RL_HD [[gnu::always_inline]] inline LgammaGuess lgamma_guess(float number) {
  constexpr double kNearTwo[] = {
      1.204010090082647284e-6,  -2.556357351920304472e-6, 4.266920212502266391e-6, -9.219489989212323531e-6,
      2.053112089321334868e-5,  -4.497388356997812118e-5, 9.945458992846496646e-5, -0.0002231490935608440846,
      0.0005096697198454512055, -0.001192754275721382286, 0.002890510324225989022, -0.007385551017220658339,
      0.0205808084278722984,    -0.06735230105333508724,  0.3224670334241129543,   0.4227843350984674077};
  constexpr double kSeries[] = {1.0 / 156,  -691.0 / 360360, 1.0 / 1188, -1.0 / 1680,
                                1.0 / 1260, -1.0 / 360,      1.0 / 12};
  constexpr double kHalfLogTwoPi = 0.91893853320467274178;
  const double x = number, size = std::fabs(x), z = size > 1e-60 ? size : size != size ? size : 1e-60;
  double product = 1, near_two = z;
#pragma GCC unroll 8
  for (int k = 1; k < 7; ++k) {
    const double lower = z - k;
    product = lower >= 1.5 ? product * lower : product;
    near_two = lower >= 1.5 ? lower : near_two;
  }
  product = z < 0.5 ? z * (z + 1) : z < 1.5 ? z : product;
  const double s = z < 0.5 ? z : z < 1.5 ? z - 1 : near_two - 2, shifted = s * horner_by_halves(kNearTwo, s);
  const double l = log(z < 8 ? product : z), inverse = 1 / z;
  const double far = (z - 0.5) * l - z + kHalfLogTwoPi + inverse * horner(kSeries, inverse * inverse);
  const double value = z < 8 ? shifted + (z < 1.5 ? -l : l) : z == kInf<double> ? z : far;
  const bool reflected = x <= 0, pole = reflected & (x == nearbyint(x));
  return {value, x, size, pole ? kInf<float> : static_cast<float>(value), reflected && !pole};
}

// The same for the derivative of log Gamma(x).
RL_HD [[gnu::always_inline]] inline float digamma(float number) {
  constexpr double kSeries[] = {1.0 / 12,  -691.0 / 32760, 1.0 / 132, -1.0 / 240,
                                1.0 / 252, -1.0 / 120,     1.0 / 12};
  const double x = number, z = x < 0 ? 1 - x : x;
  double over = 1, under = z;  // 1/z + 1/(z + 1) + ... as one fraction
#pragma GCC unroll 8
  for (int k = 1; k < 8; ++k) {
    over = over * (z + k) + under;
    under *= z + k;
  }
  const double w = z < 8 ? z + 8 : z, inverse = 1 / w, square = inverse * inverse;
  const double main =
      log(w) - 0.5 * inverse - square * horner(kSeries, square) - (z < 8 ? over / under : 0.0);
  const double rest = x - nearbyint(x), angle = kPi<double> * rest;
  const double reflected = main - kPi<double> * cosine_polynomial(angle, 0) / sine_polynomial(angle, 0);
  const double value = x < 0 ? (rest == 0 ? kNan<double> : reflected) : main;
  return static_cast<float>(x == 0 ? std::copysign(kInf<double>, -x) : value);
}

// The same for the derivative of that.
RL_HD [[gnu::always_inline]] inline float trigamma(float number) {
  constexpr double kSeries[] = {-691.0 / 2730, 5.0 / 66, -1.0 / 30, 1.0 / 42, -1.0 / 30, 1.0 / 6};
  const double x = number, z = x < 0 ? 1 - x : x;
  double over = 1, under = z * z;  // 1/z^2 + 1/(z + 1)^2 + ... as one fraction
#pragma GCC unroll 8
  for (int k = 1; k < 8; ++k) {
    const double next = (z + k) * (z + k);
    over = over * next + under;
    under *= next;
  }
  const double w = z < 8 ? z + 8 : z, inverse = 1 / w, square = inverse * inverse;
  const double main =
      inverse + square / 2 + inverse * square * horner(kSeries, square) + (z < 8 ? over / under : 0.0);
  const double rest = x - nearbyint(x), over_sine = kPi<double> / sine_polynomial(kPi<double> * rest, 0);
  const double reflected = rest == 0 ? kInf<double> : over_sine * over_sine - main;
  return static_cast<float>(x < 0 ? reflected : main);
}

// In single precision all through, but for the one number in 400 that lies beyond the first polynomial.
struct ErfInverseFloat {
  float y, product, near;
  unsigned is_far;
  RL_HD [[gnu::always_inline]] double far() const {
    constexpr double kFar[] = {4278751.5028533464,  -386079.31543717641,  -597316.73662840089,
                               43570.692403520621,  39121.008881892765,   -1385.6193528836172,
                               -1679.0085830992322, -60.105964066649477,  43.118525950960245,
                               9.5257082047558635,  0.015331248606062276, 0.54749275348456937,
                               0.10713499933733625, -0.19519437799486277, 0.95681054433894719};
    const double root = std::sqrt(-log(double(product)));
    return y * (root * horner(kFar, 1 / root - 0.26593499366821444));
  }
};
// -log(x) - 1 of numbers in [2^-126, 1]: the power of two's share of the logarithm has so few bits that it is
// exact, and a polynomial in f = m - 1, of even and odd powers, none of which waits for the others, is the
// rest.
RL_HD [[gnu::always_inline]] inline float negative_log_less_one(float x) {
  constexpr float kHigh = 0.693359375f, kLow = -2.1219444e-4f;                     // log 2
  const auto bits = std::bit_cast<int32_t>(x), power = (bits - 0x3f2aaaab) >> 23;  // m in [2/3, 4/3)
  const float f = std::bit_cast<float>(bits - (power << 23)) - 1.0f, square = f * f;
  const auto e = static_cast<float>(power);
  float even = -0.15629059f;
  even = even * square - 0.16365291f;
  even = even * square - 0.25011015f;
  even = even * square - 0.4999988f;
  float odd = 0.14584535f;
  odd = odd * square + 0.13867141f;
  odd = odd * square + 0.2002044f;
  odd = odd * square + 0.33332995f;
  return (-kHigh * e - 1.0f) - ((even + odd * f) * square + (kLow * e + f));
}
RL_HD [[gnu::always_inline]] inline ErfInverseFloat erf_inverse(float y, float product) {
  constexpr float kLeast = 0.0045165809f;  // exp(-5.4)
  const float s = negative_log_less_one(product > kLeast ? product : 1.0f);
  const float square = s * s;
  float even = 7.168573684e-11f;
  even = even * square - 7.530280485e-9f;
  even = even * square - 5.867655857e-7f;
  even = even * square + 3.827576969e-5f;
  even = even * square - 0.002376418875f;
  even = even * square + 0.2478328788f;
  float odd = -7.52792015e-10f;
  odd = odd * square + 1.545594048e-7f;
  odd = odd * square - 4.319548286e-6f;
  odd = odd * square + 0.0001001239746f;
  odd = odd * square + 0.004250717114f;
  // erfinv(y) / y less 1, which leaves the last addition but a small error to add to its own.
  const float more = (even + odd * s) * s + 0.127374393f;
  const float near = copysign(y + y * more, y);  // of -0 the two have different signs
  return {y, product, near, product > 0 && product <= kLeast};
}

// `scale` times the inverse inside of the range where it is defined, `edge` elsewhere.
template <Real T, class Inverse>
struct ErfInverseGuess {
  Inverse inverse;
  double scale;
  T value;
  unsigned in_doubt;
  T edge;
  unsigned is_inside;
  RL_HD [[gnu::always_inline]] operator T() const {
    const T far = static_cast<T>(scale * inverse.far());
    return in_doubt ? far : value;
  }
};
template <Real T, class Inverse>
RL_HD [[gnu::always_inline]] inline ErfInverseGuess<T, Inverse> guess_of(const Inverse& inverse, double scale,
                                                                         bool inside, T edge) {
  const T value = inside ? static_cast<T>(scale) * inverse.near : edge;
  return {inverse, scale, value, inverse.is_far, edge, inside};
}
template <Real T>
RL_HD [[gnu::always_inline]] inline auto erfinv_guess(T y) {
  const T edge = abs(y) == 1 ? y * kInf<T> : kNan<T>;
  const T product = abs(y) < T(0.5) ? 1 - y * y : (1 - y) * (1 + y);  // what loses least
  return guess_of(erf_inverse(y, product), 1.0, abs(y) < 1, edge);
}
template <Real T>
RL_HD [[gnu::always_inline]] inline auto ndtri_guess(T p) {
  const T edge = p == 0 ? -kInf<T> : p == 1 ? kInf<T> : kNan<T>;
  return guess_of(erf_inverse(2 * p - 1, (2 - 2 * p) * (2 * p)), 1.41421356237309504880, p > 0 && p < 1,
                  edge);
}

// On a GPU a branch costs less.
#ifdef __CUDACC__
#define RL_GUESSED(name)               \
  template <Real T>                    \
  RL_HD inline T guessed_##name(T x) { \
    return name##_guess(x);            \
  }
#else
#define RL_GUESSED(name)                                   \
  template <Real T>                                        \
  [[gnu::always_inline]] inline auto guessed_##name(T x) { \
    return name##_guess(x);                                \
  }
#endif
RL_GUESSED(lgamma)
RL_GUESSED(erfinv)
RL_GUESSED(ndtri)
#undef RL_GUESSED

// Down to the nearest whole number, computed as the remainder tells. From 2^29 on a float holds no better
// quotient than the division's.
RL_HD [[gnu::always_inline]] inline float floor_divide(float number, float divisor) {
  const double x = number, y = divisor, exact = x / y, whole = std::trunc(exact);
  const double left = x - whole * y, far = std::isinf(divisor) && std::isfinite(number) ? x : left;
  const bool large = !(std::fabs(exact) < 0x1p29);
  const float modulus = large ? 0.0f : static_cast<float>(far);
  float q = (number - modulus) / divisor;
  q -= modulus != 0 && (divisor < 0) != (modulus < 0) ? 1.0f : 0.0f;
  const float f = std::floor(q), rounded = q - f > 0.5f ? f + 1.0f : f;
  const float quotient = number / divisor;
  const bool none = std::isinf(number) && divisor != 0;
  return divisor == 0 ? quotient : none ? kNan<float> : q == 0 ? std::copysign(0.0f, quotient) : rounded;
}
#ifndef __CUDACC__
// Never in doubt.
[[gnu::always_inline]] inline Guess<float, floor_divide<float> > guessed_floor_divide(float x, float y) {
  return {floor_divide(x, y), 0, x, y};
}
#endif

}  // namespace rushlight::formulas
