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

// log |Gamma(x)|: Stirling's series from 8 on; what lies below is shifted by products, negative numbers are
// reflected, and all of that goes through one logarithm.
RL_HD [[gnu::always_inline]] inline float lgamma(float number) {
  constexpr double kSeries[] = {1.0 / 156,  -691.0 / 360360, 1.0 / 1188, -1.0 / 1680,
                                1.0 / 1260, -1.0 / 360,      1.0 / 12};
  constexpr double kHalfLogTwoPi = 0.91893853320467274178;
  const double x = number, z = std::fabs(x);
  double product = z;
#pragma GCC unroll 8
  for (int k = 1; k < 8; ++k) product *= z + k;
  product = z < 8 ? product : 1;
  const double w = z < 8 ? z + 8 : z, inverse = 1 / w;
  const double main = (w - 0.5) * log(w) - w + kHalfLogTwoPi + inverse * horner(kSeries, inverse * inverse);
  const double rest = z - nearbyint(z), sine = std::fabs(sine_polynomial(kPi<double> * rest, 0));
  const double moved = log(x < 0 ? kPi<double> * product / (z * sine) : 1 / product);
  const double value = moved + (x < 0 ? -main : main);
  return static_cast<float>(z == kInf<double> ? z : x == 1 || x == 2 ? 0.0 : value);
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

// erfinv(y) by minimax polynomials in w = -log(1 - y^2), or in 1 / sqrt(w) from w = 5.4 on. The two factors
// of 1 - y^2 come apart, as they are exact.
RL_HD [[gnu::always_inline]] inline double erf_inverse(double y, double below, double above) {
  constexpr double kNear[] = {-1.897297916040717e-11, 6.6684660235970686e-11, 1.049853777098534e-9,
                              -8.5371439117129364e-9, -7.9278326443973014e-9, 4.8396893911544857e-7,
                              -2.5694784643180284e-6, -9.4881474944467131e-6, 0.00020906687611712647,
                              -0.0010385800106795904, -0.0050359759143184583, 0.24433025850764906,
                              1.5627896112343589};
  constexpr double kFar[] = {4278751.5028533464,  -386079.31543717641,  -597316.73662840089,
                             43570.692403520621,  39121.008881892765,   -1385.6193528836172,
                             -1679.0085830992322, -60.105964066649477,  43.118525950960245,
                             9.5257082047558635,  0.015331248606062276, 0.54749275348456937,
                             0.10713499933733625, -0.19519437799486277, 0.95681054433894719};
  const double product = below * above, w = -log(product > 0 ? product : 1), root = std::sqrt(w);
  const double near = horner(kNear, w - 2.75), far = root * horner(kFar, 1 / root - 0.26593499366821444);
  return y * (w < 5.4 ? near : far);
}
RL_HD [[gnu::always_inline]] inline float erfinv(float number) {
  const double y = number, value = erf_inverse(y, 1 - y, 1 + y);
  const float edge = std::fabs(number) == 1 ? number * kInf<float> : kNan<float>;
  return std::fabs(number) < 1 ? static_cast<float>(value) : edge;
}
RL_HD [[gnu::always_inline]] inline float ndtri(float number) {
  const double p = number, value = 1.41421356237309504880 * erf_inverse(2 * p - 1, 2 - 2 * p, 2 * p);
  const float edge = number == 0 ? -kInf<float> : number == 1 ? kInf<float> : kNan<float>;
  return number > 0 && number < 1 ? static_cast<float>(value) : edge;
}

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

}  // namespace rushlight::formulas
