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
RL_HD inline float fast_erf(float x) {
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

template <class T>
inline constexpr T kPi = T(3.14159265358979323846);
template <class T>
inline constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
template <class T>
inline constexpr T kInf = std::numeric_limits<T>::infinity();

// Without the standard's recovery of infinities, which would cost a branch an element (PyTorch has none
// either).
template <class T>
RL_HD inline T mul(T x, T y) {
  if constexpr (is_complex_v<T>)
    return T(x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real());
  else if constexpr (std::is_same_v<T, bool>)
    return x && y;
  else if constexpr (std::is_integral_v<T>)
    return T(std::make_unsigned_t<decltype(x * y)>(x) * std::make_unsigned_t<decltype(x * y)>(y));
  else
    return x * y;
}
// Integers wrap around.
template <class T>
RL_HD inline T add(T x, T y) {
  if constexpr (std::is_same_v<T, bool>)
    return x || y;
  else if constexpr (std::is_integral_v<T>)
    return T(std::make_unsigned_t<T>(x) + std::make_unsigned_t<T>(y));
  else
    return x + y;
}
template <class T>
RL_HD inline T sub(T x, T y) {
  if constexpr (std::is_same_v<T, bool>)
    return x != y;
  else if constexpr (std::is_integral_v<T>)
    return T(std::make_unsigned_t<T>(x) - std::make_unsigned_t<T>(y));
  else
    return x - y;
}
template <class T>
RL_HD inline T neg(T x) {
  if constexpr (std::is_integral_v<T>)
    return sub(T(0), x);
  else
    return -x;
}
template <class T>
RL_HD inline T div(T x, T y) {
  if constexpr (is_complex_v<T>) {  // Smith's scaling, as PyTorch's complex division; without branches
    using P = typename T::value_type;
    const P a = x.real(), b = x.imag(), c = y.real(), d = y.imag();
    const bool wide = std::abs(c) >= std::abs(d), zero = (c == 0) & (d == 0);
    const P large = wide ? c : d, small = wide ? d : c, r = small / large, s = P(1) / (large + small * r);
    const P first = wide ? a : b, second = wide ? b : a, product = first * r;
    const P real = (first + second * r) * s;
    const P imag = ((wide ? second : product) - (wide ? product : second)) * s;
    return T(zero ? a / std::abs(c) : real, zero ? b / std::abs(d) : imag);
  } else {
    return x / y;
  }
}

template <class T>
RL_HD inline bool is_nan(T x) {
  if constexpr (is_complex_v<T>)
    return is_nan(x.real()) || is_nan(x.imag());
  else
    return x != x;
}
template <class T>
RL_HD inline bool is_inf(T x) {
  if constexpr (is_complex_v<T>)
    return is_inf(x.real()) || is_inf(x.imag());
  else
    return std::abs(x) == kInf<T>;
}
template <class T>
RL_HD inline bool is_finite(T x) {
  if constexpr (is_complex_v<T>)
    return is_finite(x.real()) && is_finite(x.imag());
  else
    return std::abs(x) < kInf<T>;
}

// NaN in either operand gives NaN.
template <class T>
RL_HD inline T max(T x, T y) {
  if constexpr (std::is_floating_point_v<T>)
    return (x > y) | (x != x) ? x : y;
  else
    return x > y ? x : y;
}
template <class T>
RL_HD inline T min(T x, T y) {
  if constexpr (std::is_floating_point_v<T>)
    return (x < y) | (x != x) ? x : y;
  else
    return x < y ? x : y;
}
// Between two bounds; NaN in any of the three gives NaN. (Of min(max(...)) the compiler makes no vectors.)
template <class T>
RL_HD inline T clamp_between(T x, T low, T high) {
  const T raised = max(x, low), bounded = raised < high ? raised : high;
  if constexpr (std::is_floating_point_v<T>) return raised != raised ? raised : bounded;
  return bounded;
}
// The same against a bound, of which only the whole loop asks whether it is NaN: one instruction for each
// element.
template <class T>
RL_HD inline T at_least(T x, T low) {
  const T bounded = x < low ? low : x;
  return low == low ? bounded : low;
}
template <class T>
RL_HD inline T at_most(T x, T high) {
  const T bounded = x > high ? high : x;
  return high == high ? bounded : high;
}

template <class T>
RL_HD inline auto abs(T x) {
  if constexpr (is_complex_v<T>)
    return hypot(x.real(), x.imag());
  else if constexpr (std::is_floating_point_v<T>)
    return std::abs(x);
  else if constexpr (std::is_unsigned_v<T>)
    return x;
  else
    return x < 0 ? sub(T(0), x) : x;
}
template <class T>
RL_HD inline T sign(T x) {
  if constexpr (is_complex_v<T>) {
    const auto m = abs(x);
    return m == 0 ? T(0) : T(x.real() / m, x.imag() / m);
  } else if constexpr (std::is_unsigned_v<T>) {
    return T(x != 0);
  } else if constexpr (std::is_floating_point_v<T>) {  // of numbers: differences of truths would be converted
    return (x > T(0) ? T(1) : T(0)) - (x < T(0) ? T(1) : T(0));
  } else {
    return T((T(0) < x) - (x < T(0)));
  }
}
template <class T>
RL_HD inline auto angle(T x) {
  if constexpr (is_complex_v<T>)
    return atan2(x.imag(), x.real());
  else
    return x != x ? x : x < 0 ? kPi<T> : T(0);
}
template <class T>
RL_HD inline T conj(T x) {
  if constexpr (is_complex_v<T>)
    return T(x.real(), -x.imag());
  else
    return x;
}
template <class T>
RL_HD inline T log2(T x)
  requires Complex<T>
{
  return log(x) * typename T::value_type(1.44269504088896340736);
}
template <class T>
RL_HD inline T log10(T x)
  requires Complex<T>
{
  return log(x) * typename T::value_type(0.43429448190325182765);
}
template <class T>
RL_HD inline T exp2(T x)
  requires Complex<T>
{
  return exp(x * typename T::value_type(0.69314718055994530942));
}
template <class T>
RL_HD inline T log1p(T z)
  requires Complex<T>
{  // accurate near zero: |1+z| from the parts
  using P = typename T::value_type;
  const P x = z.real(), y = z.imag(), magnitude = abs(z), theta = atan2(y, x + P(1));
  if (magnitude < P(0.5)) {
    const P r = x * (P(2) + x) + y * y;
    return r == 0 ? T(x, theta) : T(P(0.5) * log1p(r), theta);
  }
  return T(log(hypot(x + P(1), y)), theta);
}
template <class T>
RL_HD inline T expm1(T z)
  requires Complex<T>
{
  using P = typename T::value_type;
  const P x = z.real(), y = z.imag(), a = sin(y / 2), er = expm1(x);
  return T(er * cos(y) - P(2) * a * a, (er + P(1)) * sin(y));
}

template <class T>
RL_HD inline T power(T x, T y) {
  if constexpr (is_complex_v<T>)
    return y == T(0) ? T(1) : RL_COMPLEX_STD::pow(x, y);
  else {
#ifdef __CUDA_ARCH__
    return pow(x, y);
#else  // by the magnitude, as the vector versions take a call for each negative base
    const T value = pow(std::abs(x), y), half = y * T(0.5);
    const bool whole = std::floor(y) == y, odd = whole && std::floor(half) != half;
    const T signed_value = odd ? std::copysign(value, x) : value;
    return x < 0 && std::abs(x) != kInf<T> && !whole ? kNan<T> : signed_value;
#endif
  }
}
// Integer power by squaring; a negative exponent leaves only the powers of 1 and -1.
template <class T>
RL_HD inline T integer_power(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) return base == 1 ? T(1) : base == -1 ? (exponent % 2 ? T(-1) : T(1)) : T(0);
  }
  T result = 1;
  for (; exponent > 0; exponent /= 2, base = mul(base, base))
    if (exponent % 2) result = mul(result, base);
  return result;
}

// x / y of integers of at most 32 bits, towards zero: by floats that hold them, for which there are vector
// instructions. The nearest quotient that is no integer is further off than they round.
template <class T>
inline constexpr bool is_narrow = std::is_integral_v<T> && sizeof(T) <= 4;
template <class T>
RL_HD inline T narrow_quotient(T x, T y) {
  using F = std::conditional_t<sizeof(T) == 4, double, float>;
  const bool negated = std::is_signed_v<T> && y == T(-1);
  const T q = static_cast<T>(static_cast<F>(x) / static_cast<F>(y == 0 || negated ? T(1) : y));
  return negated ? sub(T(0), x) : y == 0 ? T(0) : q;
}

// What fmod leaves, with the sign of the divisor: y or -0 is added, which changes nothing; chosen by bits, as
// a branch would be taken at random.
template <Real T>
RL_HD inline T with_sign_of_divisor(T m, T y) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  const Bits chosen = Bits(0) - Bits((m != 0) & ((y < 0) != (m < 0)));
  return m + std::bit_cast<T>((std::bit_cast<Bits>(y) & chosen) | (std::bit_cast<Bits>(T(-0.0)) & ~chosen));
}
// Python's modulo: the sign of the divisor.
template <class T>
RL_HD inline T remainder(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return with_sign_of_divisor(fmod(x, y), y);
  } else if constexpr (is_narrow<T>) {
    const T m = y == 0 ? T(0) : sub(x, mul(narrow_quotient(x, y), y));
    return (m != 0) & ((y < 0) != (m < 0)) ? add(m, y) : m;
  } else if constexpr (std::is_unsigned_v<T>) {
    return y == 0 ? T(0) : x % y;  // the operator refuses zero divisors beforehand
  } else {
    if (y == -1 || y == 0) return 0;
    const T m = x % y;
    return m + (y & -T((m != 0) & ((y ^ m) < 0)));  // without a branch that would be guessed wrong
  }
}
// PyTorch's floor division of floats, by what is left of x: exact where the quotient is near an integer.
template <Real T>
RL_HD inline T floor_quotient(T x, T y, T rest) {
  T q = (x - rest) / y;
  q -= rest != 0 && (y < 0) != (rest < 0) ? T(1) : T(0);
  const T f = floor(q), whole = q - f > T(0.5) ? f + T(1) : f;
  return q == 0 ? copysign(T(0), x / y) : whole;
}
template <class T>
RL_HD inline T floor_divide(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return y == 0 ? x / y : floor_quotient(x, y, fmod(x, y));
  } else if constexpr (is_narrow<T>) {
    const T q = narrow_quotient(x, y), rest = sub(x, mul(q, y));
    return (y != 0) & (rest != 0) & ((x < 0) != (y < 0)) ? sub(q, T(1)) : q;
  } else if constexpr (std::is_unsigned_v<T>) {
    return y == 0 ? T(0) : x / y;
  } else {
    if (y == -1 || y == 0) return y == 0 ? T(0) : sub(T(0), x);
    const T q = x / y;
    return q - T((x - q * y != 0) & ((x ^ y) < 0));
  }
}
template <class T>
RL_HD inline T trunc_divide(T x, T y) {
  if constexpr (std::is_floating_point_v<T>)
    return trunc(x / y);
  else if constexpr (is_narrow<T>)
    return narrow_quotient(x, y);
  else if constexpr (std::is_unsigned_v<T>)
    return y == 0 ? T(0) : x / y;
  else
    return y == 0 ? T(0) : y == -1 ? sub(T(0), x) : T(x / y);
}
// A value without branches, and whether it is in doubt: a loop computes values, and calls the exact function
// where one is. (A bool would keep the compiler from vectors.)
template <class T, T (*Exact)(T, T)>
struct Guess {
  T value;
  unsigned in_doubt;
  T x, y;
  RL_HD operator T() const { return in_doubt ? Exact(x, y) : value; }
};
// Functions of doubles near 0, where they need no library; complex numbers and floats have one form.
#ifdef __CUDACC__
#define RL_GUESSED(name, reach, near_value) \
  template <class T>                        \
  RL_HD inline T guessed_##name(T x) {      \
    return name(x);                         \
  }
#else
template <double (*Library)(double)>
struct LibraryGuess {
  double value, x;
  unsigned in_doubt;
  [[gnu::always_inline]] operator double() const {
    const double far = Library(x);
    return in_doubt ? far : value;
  }
};
#define RL_GUESSED(name, reach, near_value)                                                    \
  template <class T>                                                                           \
  [[gnu::always_inline]] inline auto guessed_##name(T x) {                                     \
    if constexpr (std::is_same_v<T, double>)                                                   \
      return LibraryGuess<static_cast<double (*)(double)>(::name)>{near_value, x,              \
                                                                   !(std::fabs(x) < (reach))}; \
    else                                                                                       \
      return name(x);                                                                          \
  }
#endif
RL_GUESSED(sin, 0x1p20, x == 0 ? x : near_sin(x))
RL_GUESSED(cos, 0x1p20, near_cos(x))
RL_GUESSED(tan, 0x1p20, x == 0 ? x : near_tan(x))
RL_GUESSED(cosh, 700, near_cosh(x))
#undef RL_GUESSED
#ifdef __CUDACC__
template <class T>
RL_HD inline T guessed_fmod(T x, T y) {
  return fmod(x, y);
}
template <class T>
RL_HD inline T guessed_remainder(T x, T y) {
  return remainder(x, y);
}
template <class T>
RL_HD inline T guessed_floor_divide(T x, T y) {
  return floor_divide(x, y);
}
template <class T>
RL_HD inline T guessed_trunc_divide(T x, T y) {
  return trunc_divide(x, y);
}
#else
template <Real T>
[[gnu::always_inline]] inline Guess<T, fmod<T> > guessed_fmod(T x, T y) {
  T value;
  const bool holds = near_fmod(x, y, value);
  return {value, !holds, x, y};
}
template <Real T>
[[gnu::always_inline]] inline Guess<T, remainder<T> > guessed_remainder(T x, T y) {
  T value;
  const bool holds = near_fmod(x, y, value);
  return {with_sign_of_divisor(value, y), !holds, x, y};
}
// Integers of 64 bits as doubles, which hold both them and the quotient up to 2^51: there are vector
// instructions for those. Narrower ones need no guess.
struct NearQuotient {
  double x, y, quotient, rest;  // x = quotient y + rest, cut towards zero
  unsigned in_doubt;
};
[[gnu::always_inline]] inline double near_double(int64_t x) {
  constexpr double kRound = 0x1.8p52;
  return std::bit_cast<double>(std::bit_cast<uint64_t>(kRound) + static_cast<uint64_t>(x)) - kRound;
}
[[gnu::always_inline]] inline int64_t near_integer(double x) {
  constexpr double kRound = 0x1.8p52;
  return static_cast<int64_t>(std::bit_cast<uint64_t>(x + kRound) - std::bit_cast<uint64_t>(kRound));
}
[[gnu::always_inline]] inline NearQuotient near_quotient(int64_t a, int64_t b) {
  constexpr uint64_t kReach = uint64_t{1} << 51;
  const bool far = ((uint64_t(a) + kReach) | (uint64_t(b) + kReach)) >> 52 | (b == 0);
  const double x = near_double(a), y = near_double(b), quotient = std::trunc(x / y);
  return {x, y, quotient, x - quotient * y, far};
}
template <std::signed_integral T>
  requires(sizeof(T) == 8)
[[gnu::always_inline]] inline auto guessed_trunc_divide(T x, T y) {
  const NearQuotient q = near_quotient(x, y);
  return Guess<T, trunc_divide<T> >{near_integer(q.quotient), q.in_doubt, x, y};
}
template <std::signed_integral T>
  requires(sizeof(T) == 8)
[[gnu::always_inline]] inline auto guessed_floor_divide(T x, T y) {
  const NearQuotient q = near_quotient(x, y);
  const double below = (q.rest < 0) != (q.y < 0) && q.rest != 0 ? 1.0 : 0.0;
  return Guess<T, floor_divide<T> >{near_integer(q.quotient - below), q.in_doubt, x, y};
}
template <std::signed_integral T>
  requires(sizeof(T) == 8)
[[gnu::always_inline]] inline auto guessed_remainder(T x, T y) {
  const NearQuotient q = near_quotient(x, y);
  const double moved = (q.rest < 0) != (q.y < 0) && q.rest != 0 ? q.y : 0.0;
  return Guess<T, remainder<T> >{near_integer(q.rest + moved), q.in_doubt, x, y};
}
template <std::integral T>
[[gnu::always_inline]] inline T guessed_trunc_divide(T x, T y) {
  return trunc_divide(x, y);
}
template <std::integral T>
[[gnu::always_inline]] inline T guessed_floor_divide(T x, T y) {
  return floor_divide(x, y);
}
template <std::integral T>
[[gnu::always_inline]] inline T guessed_remainder(T x, T y) {
  return remainder(x, y);
}
[[gnu::always_inline]] inline Guess<double, floor_divide<double> > guessed_floor_divide(double x, double y) {
  double rest;
  const bool holds = near_fmod(x, y, rest);
  return {floor_quotient(x, y, rest), !holds, x, y};
}
#endif
template <class T>
RL_HD inline T gcd(T x, T y) {
  using U = std::make_unsigned_t<T>;  // the least number has no opposite among signed ones
  U a = x < 0 ? U(0) - U(x) : U(x), b = y < 0 ? U(0) - U(y) : U(y);
  while (a != 0) {
    const U c = a;
    a = U(b % a);
    b = c;
  }
  return T(b);
}
template <class T>
RL_HD inline T lcm(T a, T b) {
  const T g = gcd(a, b);
  return g == 0 ? T(0) : abs(mul(T(a / g), b));
}
// Shifts by the width or more, or by a negative count, shift everything out.
template <class T>
RL_HD inline T shift_left(T x, T n) {
  using U = std::make_unsigned_t<T>;
  return n < 0 || n >= T(8 * sizeof(T)) ? T(0) : T(U(x) << n);
}
template <class T>
RL_HD inline T shift_right(T x, T n) {
  if (n < 0 || n >= T(8 * sizeof(T))) return x < 0 ? T(-1) : T(0);
  return T(x >> n);
}

}  // namespace rushlight::formulas
