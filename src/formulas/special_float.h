// Special functions in single precision: plain arithmetic in double without branches, so that loops over
// them become vector code.
#pragma once
#include "formulas/special_math.h"

namespace rushlight::formulas {

// The highest coefficient first.
template <size_t N>
RL_HD [[gnu::always_inline]] inline double horner(const double (&c)[N], double x) {
  double sum = c[0];
#pragma GCC unroll 32
  for (size_t k = 1; k < N; ++k) sum = sum * x + c[k];
  return sum;
}
// The same in two halves, by even and odd powers: loops that wait for sums wait half as long.
template <size_t N>
RL_HD [[gnu::always_inline]] inline double horner_by_halves(const double (&c)[N], double x) {
  const double square = x * x;
  double even = c[(N - 1) % 2], odd = c[N % 2];
#pragma GCC unroll 32
  for (size_t k = (N - 1) % 2 + 2; k < N; k += 2) even = even * square + c[k];
#pragma GCC unroll 32
  for (size_t k = N % 2 + 2; k < N; k += 2) odd = odd * square + c[k];
  return even + x * odd;
}
// Sum of c[k] T_k(2 u - 1) for u in [0, 1], by Clenshaw's recurrence.
template <size_t N>
RL_HD [[gnu::always_inline]] inline double chebyshev_double(const long double (&c)[N], double u) {
  const double t = 2 * (2 * u - 1);
  double b1 = 0, b2 = 0;
#pragma GCC unroll 32
  for (size_t k = N - 1; k > 0; --k) {
    const double b = t * b1 - b2 + static_cast<double>(c[k]);
    b2 = b1;
    b1 = b;
  }
  return 0.5 * t * b1 - b2 + static_cast<double>(c[0]);
}

// log |Gamma(x)|: from 8 on Stirling's series; what lies below is shifted into [1.5, 2.5), where a polynomial
// holds, and the factors go through one logarithm. The zeros at 1 and 2 are exact. Negative numbers are
// reflected, at the price of a second logarithm.
struct LgammaGuess {
  double positive, x, size;
  float value;
  unsigned in_doubt;
  RL_HD [[gnu::always_inline]] operator float() const {  // no call may depend on a condition
    const double rest = size - nearbyint(size), sine = std::fabs(sine_polynomial(kPi<double> * rest, 0));
    const double moved = log(x < 0 ? kPi<double> / (size * sine) : 1.0);
    const double reflected = moved + (x < 0 ? -positive : positive);
    return static_cast<float>(size == kInf<double> ? size : reflected);
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
  const double x = number, z = std::fabs(x);
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
  return {value, x, z, static_cast<float>(value), x < 0};
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

// erfinv(y) by minimax polynomials in w = -log(1 - y^2), or in 1 / sqrt(w) from w = 5.4 on, that is for one
// number in 400. The two factors of 1 - y^2 come apart, as they are exact.
struct ErfInverse {
  double y, w, near;
  unsigned is_far;
  RL_HD [[gnu::always_inline]] double far() const {
    constexpr double kFar[] = {4278751.5028533464,  -386079.31543717641,  -597316.73662840089,
                               43570.692403520621,  39121.008881892765,   -1385.6193528836172,
                               -1679.0085830992322, -60.105964066649477,  43.118525950960245,
                               9.5257082047558635,  0.015331248606062276, 0.54749275348456937,
                               0.10713499933733625, -0.19519437799486277, 0.95681054433894719};
    const double root = std::sqrt(w);
    return y * (root * horner(kFar, 1 / root - 0.26593499366821444));
  }
};
RL_HD [[gnu::always_inline]] inline ErfInverse erf_inverse(double y, double below, double above) {
  constexpr double kNear[] = {-1.897297916040717e-11, 6.6684660235970686e-11, 1.049853777098534e-9,
                              -8.5371439117129364e-9, -7.9278326443973014e-9, 4.8396893911544857e-7,
                              -2.5694784643180284e-6, -9.4881474944467131e-6, 0.00020906687611712647,
                              -0.0010385800106795904, -0.0050359759143184583, 0.24433025850764906,
                              1.5627896112343589};
  const double product = below * above, w = -log(product > 0 ? product : 1);  // elsewhere 0
  constexpr double kFarFrom = 0.0045165809426126704;                          // exp(-5.4)
  return {y, w, y * horner_by_halves(kNear, w - 2.75), product > 0 && product <= kFarFrom};
}
// `scale` times the inverse inside of the range where it is defined, `edge` elsewhere.
struct ErfInverseGuess {
  ErfInverse inverse;
  double scale;
  float value;
  unsigned in_doubt;
  RL_HD [[gnu::always_inline]] operator float() const {
    const auto far = static_cast<float>(scale * inverse.far());
    return in_doubt ? far : value;
  }
};
RL_HD [[gnu::always_inline]] inline ErfInverseGuess guess_of(const ErfInverse& inverse, double scale,
                                                             bool inside, float edge) {
  const float value = inside ? static_cast<float>(scale * inverse.near) : edge;
  return {inverse, scale, value, inverse.is_far};
}
RL_HD [[gnu::always_inline]] inline ErfInverseGuess erfinv_guess(float number) {
  const double y = number;
  const float edge = std::fabs(number) == 1 ? number * kInf<float> : kNan<float>;
  return guess_of(erf_inverse(y, 1 - y, 1 + y), 1.0, std::fabs(number) < 1, edge);
}
RL_HD [[gnu::always_inline]] inline ErfInverseGuess ndtri_guess(float number) {
  const double p = number;
  const float edge = number == 0 ? -kInf<float> : number == 1 ? kInf<float> : kNan<float>;
  return guess_of(erf_inverse(2 * p - 1, 2 - 2 * p, 2 * p), 1.41421356237309504880, number > 0 && number < 1,
                  edge);
}

// In double precision nothing is guessed, and on a GPU a branch costs less.
#ifdef __CUDACC__
#define RL_GUESSED(name)                                                 \
  RL_HD inline float guessed_##name(float x) { return name##_guess(x); } \
  RL_HD inline double guessed_##name(double x) { return name(x); }
#else
struct Sure {
  double value;
  unsigned in_doubt = 0;
  operator double() const { return value; }
};
#define RL_GUESSED(name)                                                                 \
  [[gnu::always_inline]] inline auto guessed_##name(float x) { return name##_guess(x); } \
  inline Sure guessed_##name(double x) { return {name(x)}; }
#endif
RL_GUESSED(lgamma)
RL_GUESSED(erfinv)
RL_GUESSED(ndtri)
#undef RL_GUESSED

// exp(-x) times the modified Bessel function of order 0 or 1, for x >= 0.
template <int Order>
RL_HD [[gnu::always_inline]] inline double bessel_scaled_float(double x) {
  const double low = x < 8 ? x : 8.0, high = x > 8 ? x : 8.0;
  const double small =
      Order ? low * chebyshev_double(kBesselI1Small, low / 8) : chebyshev_double(kBesselI0Small, low / 8);
  const double large =
      (Order ? chebyshev_double(kBesselI1Large, 8 / high) : chebyshev_double(kBesselI0Large, 8 / high)) /
      std::sqrt(high);
  return x <= 8 ? small : x != x ? x : large;
}
RL_HD [[gnu::always_inline]] inline float bessel_i0e(float x) {
  return static_cast<float>(bessel_scaled_float<0>(std::fabs(x)));
}
RL_HD [[gnu::always_inline]] inline float bessel_i1e(float x) {
  return std::copysign(static_cast<float>(bessel_scaled_float<1>(std::fabs(x))), x);
}
RL_HD [[gnu::always_inline]] inline float bessel_i0(float x) {
  const double size = std::fabs(x), value = bessel_scaled_float<0>(size) * exp_real(size);
  return static_cast<float>(size == kInf<double> ? size : value);
}
RL_HD [[gnu::always_inline]] inline float bessel_i1(float x) {
  const double size = std::fabs(x), value = bessel_scaled_float<1>(size) * exp_real(size);
  return std::copysign(static_cast<float>(size == kInf<double> ? size : value), x);
}

// exp(x^2) erfc(x); the square of a float is exact in double.
RL_HD [[gnu::always_inline]] inline float erfcx(float x) {
  const double size = std::fabs(x);
  const double right = chebyshev_double(kErfcx, 4 / (4 + size)) / (1 + kSqrtPi * size);
  const double left = 2 * exp_real(size * size) - right;
  return x != x ? x : static_cast<float>(x < 0 ? left : right);
}

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
