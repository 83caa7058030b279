// The longer expressions of activation.h and transcendental.h.
#pragma once
#include "formulas/math.h"

namespace rushlight::formulas {

template <class T>
inline constexpr T kSqrtHalf = T(0.70710678118654752440);
template <class T>
inline constexpr T kSqrtTwoOverPi = T(0.79788456080286535588);

// Of two numbers that are both at hand, so that the choice needs no branch.
template <class T>
RL_HD [[gnu::always_inline]] inline T chosen(bool first, T a, T b) {
  return first ? a : b;
}
// exp of what can't overflow, taken for every element: a call inside a branch would not become a vector call.
template <class T>
RL_HD [[gnu::always_inline]] inline T elu(T x, T negative, T positive, T scale) {
  const T e = expm1(min(x, T(0)) * scale) * negative;
  return x < T(0) ? e : x * positive;
}
template <class T>
RL_HD [[gnu::always_inline]] inline T elu_backward(T g, T x, T negative, T positive, T scale) {
  const T e = exp(min(x, T(0)) * scale) * negative * scale;
  return g * (x > T(0) ? positive : x <= T(0) ? e : x);
}
template <class T>
RL_HD [[gnu::always_inline]] inline T gelu_inner(T x) {
  return kSqrtTwoOverPi<T> * (x + T(0.044715) * x * x * x);
}
// Twice the normal distribution up to x; in double without the cancellation of 1 + erf far left.
RL_HD [[gnu::always_inline]] inline float twice_normal(float x) { return 1 + fast_erf(x * kSqrtHalf<float>); }
RL_HD [[gnu::always_inline]] inline double twice_normal(double x) { return erfc(-x * kSqrtHalf<double>); }
template <class T>
RL_HD [[gnu::always_inline]] inline T gelu_erf_slope(T x) {
  const T density = exp(T(-0.5) * x * x) * (T(0.5) * kSqrtTwoOverPi<T>);
  return T(0.5) * twice_normal(x) + x * density;
}
template <class T>
RL_HD [[gnu::always_inline]] inline T gelu_tanh_slope(T x) {
  const T t = tanh(gelu_inner(x)), inner_slope = kSqrtTwoOverPi<T> * (T(1) + T(3 * 0.044715) * x * x);
  return T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * inner_slope;
}
template <class T>
RL_HD [[gnu::always_inline]] inline T silu_slope(T x) {
  const T s = div(T(1), T(1) + exp(-x));
  return mul(s, T(1) + mul(x, T(1) - s));
}
template <class T>
RL_HD [[gnu::always_inline]] inline T mish_slope(T x) {
  const T s = T(1) / (T(1) + exp(-x)), t = tanh(log1p(exp(x)));
  return t + x * s * (T(1) - t * t);
}
template <class T>
RL_HD [[gnu::always_inline]] inline T softplus(T x, T beta, T threshold) {
  const T soft = log1p(exp(min(x * beta, threshold))) / beta;
  return x * beta > threshold ? x : soft;
}
template <class T>
RL_HD [[gnu::always_inline]] inline T softplus_backward(T g, T x, T beta, T threshold) {
  const T z = exp(min(x * beta, threshold)), soft = g * z / (z + T(1));
  return x * beta > threshold ? g : soft;
}
template <class T>
RL_HD [[gnu::always_inline]] inline T log_sigmoid_slope(T x) {
  const T z = exp(-abs(x));
  return (x < T(0) ? T(1) : z) / (T(1) + z);
}

template <class T>
RL_HD [[gnu::always_inline]] inline T sinc(T x) {
  const T a = T(kPi<double>) * x, s = sin(a);
  return x == T(0) ? T(1) : div(s, a);
}
template <class T>
RL_HD [[gnu::always_inline]] inline T logaddexp(T x, T y) {
  const T high = max(x, y), soft = log1p(exp(-abs(x - y)));
  return abs(x) == kInf<T> && x == y ? x : high + soft;
}
template <class T>
RL_HD [[gnu::always_inline]] inline T logaddexp2(T x, T y) {
  const T high = max(x, y), soft = log1p(exp2(-abs(x - y))) * T(1.44269504088896340736);
  return abs(x) == kInf<T> && x == y ? x : high + soft;
}
template <class T>
RL_HD [[gnu::always_inline]] inline T xlogy(T x, T y) {
  const T l = x * log(y);
  return y != y ? y : x == T(0) ? T(0) : l;
}
template <class T>
RL_HD [[gnu::always_inline]] inline T xlog1py(T x, T y) {
  const T l = x * log1p(y);
  return y != y ? y : x == T(0) ? T(0) : l;
}
template <class T>
RL_HD [[gnu::always_inline]] inline T logit_clamped(T x, T eps) {
  const T c = x < eps ? eps : x > T(1) - eps ? T(1) - eps : x;
  return log(c / (T(1) - c));
}
template <class T>
RL_HD [[gnu::always_inline]] inline T entr(T x) {
  const T edge = x == T(0) ? T(0) : x < T(0) ? -kInf<T> : x, l = -x * log(x > T(0) ? x : T(1));
  return x > T(0) ? l : edge;
}
template <class T>
RL_HD T integer_fmod(T x, T y) {
  if constexpr (is_narrow<T>) return y == 0 ? T(0) : sub(x, mul(narrow_quotient(x, y), y));
  if constexpr (std::is_signed_v<T>)
    return y == T(-1) || y == T(0) ? T(0) : T(x % y);
  else
    return y == T(0) ? T(0) : x % y;
}
#ifdef __CUDACC__
template <class T>
RL_HD inline T guessed_integer_fmod(T x, T y) {
  return integer_fmod(x, y);
}
#else
template <class T>
[[gnu::always_inline]] inline auto guessed_integer_fmod(T x, T y) {
  if constexpr (std::is_signed_v<T> && sizeof(T) == 8) {
    const NearQuotient q = near_quotient(x, y);
    return Guess<T, integer_fmod<T> >{near_integer(q.rest), q.in_doubt, x, y};
  } else {
    return integer_fmod(x, y);
  }
}
#endif

}  // namespace rushlight::formulas
