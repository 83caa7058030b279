// The functions that formulas are written with, for float, double and complex. Where glibc has vector
// versions (libmvec, at most 4 ULP off), loops over these calls become calls of those. On a GPU they are the
// functions of its own library.
#pragma once
#include <cmath>
#include <complex>
#include <concepts>
#include <limits>
#include <type_traits>

#include "core/dtype.h"
#include "formulas/elementary.h"

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__CUDACC__) && \
    (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 35)
#define RL_VECTOR_MATH(name)                                                    \
  extern "C" __attribute__((simd("notinbranch"))) double name(double) noexcept; \
  extern "C" __attribute__((simd("notinbranch"))) float name##f(float) noexcept;
#define RL_VECTOR_MATH2(name)                                                           \
  extern "C" __attribute__((simd("notinbranch"))) double name(double, double) noexcept; \
  extern "C" __attribute__((simd("notinbranch"))) float name##f(float, float) noexcept;
RL_VECTOR_MATH(exp)
RL_VECTOR_MATH(exp2)
RL_VECTOR_MATH(expm1)
RL_VECTOR_MATH(log)
RL_VECTOR_MATH(log2)
RL_VECTOR_MATH(log10)
RL_VECTOR_MATH(log1p)
RL_VECTOR_MATH(sin)
RL_VECTOR_MATH(cos)
RL_VECTOR_MATH(tan)
RL_VECTOR_MATH(asin)
RL_VECTOR_MATH(acos)
RL_VECTOR_MATH(atan)
RL_VECTOR_MATH(sinh)
RL_VECTOR_MATH(cosh)
RL_VECTOR_MATH(tanh)
RL_VECTOR_MATH(asinh)
RL_VECTOR_MATH(acosh)
RL_VECTOR_MATH(atanh)
RL_VECTOR_MATH(erf)
RL_VECTOR_MATH(erfc)
RL_VECTOR_MATH2(pow)
RL_VECTOR_MATH2(atan2)
RL_VECTOR_MATH2(hypot)
#undef RL_VECTOR_MATH
#undef RL_VECTOR_MATH2
#endif

// Where functions of complex numbers come from; cuda/complex.h has those of a device.
#ifndef RL_COMPLEX_STD
#define RL_COMPLEX_STD std
#endif

namespace rushlight::formulas {

template <class T>
concept Real = std::is_floating_point_v<T>;
template <class T>
concept Complex = is_complex_v<T>;

#define RL_MATH(name)                                       \
  RL_HD inline float name(float x) { return ::name##f(x); } \
  RL_HD inline double name(double x) { return ::name(x); }
#define RL_MATH2(name)                                                  \
  RL_HD inline float name(float x, float y) { return ::name##f(x, y); } \
  RL_HD inline double name(double x, double y) { return ::name(x, y); }
#define RL_COMPLEX_MATH(name)       \
  template <Complex T>              \
  RL_HD T name(T z) {               \
    return RL_COMPLEX_STD::name(z); \
  }
RL_MATH(exp2)
RL_MATH(expm1)
RL_MATH(log1p)
RL_MATH(atan)
RL_MATH(sinh)
RL_MATH(tanh)
RL_MATH(asinh)
RL_MATH(acosh)
RL_MATH(atanh)
RL_MATH(erfc)
RL_MATH(sqrt)
RL_MATH(floor)
RL_MATH(ceil)
RL_MATH(trunc)
RL_MATH(nearbyint)
RL_MATH2(pow)
RL_MATH2(hypot)
RL_MATH2(nextafter)
RL_MATH2(copysign)
RL_COMPLEX_MATH(exp)
RL_COMPLEX_MATH(log)
RL_COMPLEX_MATH(sin)
RL_COMPLEX_MATH(cos)
RL_COMPLEX_MATH(tan)
RL_COMPLEX_MATH(asin)
RL_COMPLEX_MATH(acos)
RL_COMPLEX_MATH(atan)
RL_COMPLEX_MATH(sinh)
RL_COMPLEX_MATH(cosh)
RL_COMPLEX_MATH(tanh)
RL_COMPLEX_MATH(asinh)
RL_COMPLEX_MATH(acosh)
RL_COMPLEX_MATH(atanh)
RL_COMPLEX_MATH(sqrt)

#ifdef __CUDACC__
RL_MATH(exp)
RL_MATH(log)
RL_MATH(sin)
RL_MATH(cos)
RL_MATH(tan)
RL_MATH(log2)
RL_MATH(cosh)
RL_MATH(log10)
RL_MATH(asin)
RL_MATH(acos)
RL_MATH(erf)
#else
RL_HD [[gnu::always_inline]] inline float exp(float x) { return exp_real(x); }
RL_HD [[gnu::always_inline]] inline double exp(double x) { return exp_real(x); }
RL_HD inline float log(float x) { return log_real(x); }
RL_HD inline double log(double x) { return ::log(x); }
RL_HD inline float sin(float x) { return ::sinf(x); }
RL_HD inline float cos(float x) { return ::cosf(x); }
RL_HD [[gnu::always_inline]] inline double near_sin(double x) { return sine_of(quarter_turn(x), 0); }
RL_HD [[gnu::always_inline]] inline double near_cos(double x) { return sine_of(quarter_turn(x), 1); }
// Both are computed, so that there is no branch; the far one also keeps the sign of zero.
RL_HD [[gnu::always_inline]] inline double sin(double x) {
  const double near = near_sin(x), far = ::sin(x);
  return x != 0 && std::fabs(x) < 0x1p20 ? near : far;
}
RL_HD [[gnu::always_inline]] inline double cos(double x) {
  const double near = near_cos(x), far = ::cos(x);
  return std::fabs(x) < 0x1p20 ? near : far;
}
RL_HD inline float tan(float x) { return ::tanf(x); }
RL_HD [[gnu::always_inline]] inline double near_tan(double x) {
  const Quarter turned = quarter_turn(x);
  const double s = sine_polynomial(turned.rest, turned.lost), c = cosine_polynomial(turned.rest, turned.lost);
  return turned.count & 1 ? -c / s : s / c;
}
RL_HD [[gnu::always_inline]] inline double tan(double x) {
  const double near = near_tan(x), far = ::tan(x);
  return x != 0 && std::fabs(x) < 0x1p20 ? near : far;
}
RL_HD inline float log2(float x) { return ::log2f(x); }
// Exact at powers of two: x = 2^k m with m near 1, s = (m - 1) / (m + 1), and log m = 2 atanh s in two parts,
// the first of so few bits that its product is exact.
RL_HD [[gnu::always_inline]] inline double log2(double x) {
  constexpr double kHigh = 0x1.71547652p0, kLow = 0x1.705fc2eefa2p-33;  // 1 / log 2
  constexpr uint64_t kRootHalf = 0x3fe6a09e667f3bcd, kUpper = 0xffffffff00000000;
  const bool small = x < std::numeric_limits<double>::min();
  const uint64_t bits = std::bit_cast<uint64_t>(small ? x * 0x1p54 : x) + (0x3ff0000000000000 - kRootHalf);
  const double k = static_cast<int32_t>(bits >> 52) - (small ? 1023 + 54 : 1023);
  const double f = std::bit_cast<double>((bits & 0xfffffffffffff) + kRootHalf) - 1.0;
  const double s = f / (2.0 + f), z = s * s, half_square = 0.5 * f * f;
  double q = 2.0 / 21;
  q = q * z + 2.0 / 19;
  q = q * z + 2.0 / 17;
  q = q * z + 2.0 / 15;
  q = q * z + 2.0 / 13;
  q = q * z + 2.0 / 11;
  q = q * z + 2.0 / 9;
  q = q * z + 2.0 / 7;
  q = q * z + 2.0 / 5;
  q = q * z + 2.0 / 3;
  const double high = std::bit_cast<double>(std::bit_cast<uint64_t>(f - half_square) & kUpper);
  const double low = (f - high) - half_square + s * (half_square + z * q);
  const double first = high * kHigh, sum = k + first;
  const double value = sum + (((k - sum) + first) + ((low + high) * kLow + low * kHigh));
  const double edge =
      x == 0 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  return x > 0 ? (x <= std::numeric_limits<double>::max() ? value : x) : edge;
}
RL_HD inline float cosh(float x) { return ::coshf(x); }
RL_HD [[gnu::always_inline]] inline double near_cosh(double x) {
  const double e = exp_real(std::fabs(x));
  return 0.5 * e + 0.5 / e;
}
RL_HD [[gnu::always_inline]] inline double cosh(double x) {
  const double near = near_cosh(x), far = ::cosh(x);
  return std::fabs(x) < 700 ? near : far;
}
RL_HD inline float log10(float x) { return log10_real(x); }
RL_HD inline double log10(double x) { return ::log10(x); }
// Outside of where they are defined the vector versions take a call for each element.
RL_HD inline double asin(double x) {
  const bool inside = std::fabs(x) <= 1;
  const double value = ::asin(inside ? x : 0);
  return inside ? value : std::numeric_limits<double>::quiet_NaN();
}
RL_HD inline float asin(float x) { return asin_real(x); }
RL_HD inline double acos(double x) {
  const bool inside = std::fabs(x) <= 1;
  const double value = ::acos(inside ? x : 0);
  return inside ? value : std::numeric_limits<double>::quiet_NaN();
}
RL_HD inline float acos(float x) {
  const bool inside = std::fabs(x) <= 1;
  const float value = ::acosf(inside ? x : 0);
  return inside ? value : std::numeric_limits<float>::quiet_NaN();
}
RL_HD inline float erf(float x) { return erf_real(x); }
RL_HD inline double erf(double x) { return ::erf(x); }
#endif
RL_HD inline float atan2(float y, float x) { return atan2_real(y, x); }
RL_HD inline double atan2(double y, double x) { return ::atan2(y, x); }
// What the quotient leaves of x is exact when the quotient is, or one off: that is seen by its sign.
// Quotients of more bits go the library's long way.
RL_HD [[gnu::always_inline]] inline bool near_fmod(float x, float y, float& value) {
  const double a = x, b = y, quotient = std::trunc(a / b), left = a - quotient * b;
  const bool over = (left < 0) != (a < 0) && left != 0;
  const double rest = over ? left + std::copysign(b, a) : left;
  value = std::copysign(
      static_cast<float>(std::fabs(b) == std::numeric_limits<double>::infinity() ? a : rest), x);
  return std::fabs(quotient) < 0x1p29;
}
RL_HD [[gnu::always_inline]] inline bool near_fmod(double x, double y, double& value) {
  const double quotient = std::trunc(x / y), left = std::fma(-quotient, y, x);
  const bool over = (left < 0) != (x < 0) && left != 0;
  const double rest = over ? left + std::copysign(y, x) : left;
  value = std::copysign(std::fabs(y) == std::numeric_limits<double>::infinity() ? x : rest, x);
  return std::fabs(quotient) < 0x1p52;
}
template <Real T>
RL_HD inline T fmod(T x, T y) {
  T value;
  return near_fmod(x, y, value) ? value : std::fmod(x, y);
}
// For activations: a rational minimax approximation, within 6 ULP and at half the price of the library's.
// From 4 on it is above 1. Of the size alone, for bounds on one side make less code than on both.
RL_HD [[gnu::always_inline]] inline float fast_erf(float x) {
  const float whole = std::fabs(x), size = whole > 4.0f ? 4.0f : whole, t = size * size;
  float p = 2.03633816e-06f, q = 3.79434465e-05f;
  p = p * t + 0.000284761455f, q = q * t + 0.00116710665f;
  p = p * t + 0.00378946498f, q = q * t + 0.0150173285f;
  p = p * t + 0.0528196259f, q = q * t + 0.114361939f;
  p = p * t + 0.191049038f, q = q * t + 0.502645506f;
  p = p * t + 1.12837914f, q = q * t + 1.0f;
  const float r = size * p / q;
  return std::copysign(r > 1.0f ? 1.0f : r, x);
}
#undef RL_MATH
#undef RL_MATH2
#undef RL_COMPLEX_MATH

}  // namespace rushlight::formulas
