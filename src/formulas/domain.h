// Functions of the vector library for any number. Where a number has no ordinary value (outside of the
// domain, too large, infinite, NaN), the library leaves its vectors for calls of scalar functions, which take
// ten times as long: these compute such lanes of a harmless number, and choose the value afterwards.
#pragma once
#include "formulas/math.h"

namespace rushlight::formulas {

template <class T>
RL_HD [[gnu::always_inline]] inline T log1p_anywhere(T x) {
  if constexpr (Complex<T>) {
    return log1p(x);
  } else {
    const bool inside = (x > T(-1)) & (x < kInf<T>);
    const T value = log1p(inside ? x : T(1));
    return inside ? value : x == T(-1) ? -kInf<T> : x < T(0) ? kNan<T> : x;
  }
}

template <class T>
RL_HD [[gnu::always_inline]] inline T expm1_anywhere(T x) {
  if constexpr (Complex<T>) {
    return expm1(x);
  } else {
    constexpr T kMost = sizeof(T) == 4 ? T(88.722839) : T(709.78271289338397), kLeast = T(-60);
    const bool inside = (x > kLeast) & (x < kMost) & (x != T(0));
    const T value = expm1(inside ? x : T(1));
    return inside ? value : x <= kLeast ? T(-1) : x >= kMost ? kInf<T> : x;
  }
}

// Subnormal results come as products: the library would compute them one by one.
template <class T>
RL_HD [[gnu::always_inline]] inline T exp2_anywhere(T x) {
  if constexpr (Complex<T>) {
    return exp2(x);
  } else {
    constexpr T kMost = sizeof(T) == 4 ? 128 : 1024, kLeast = 2 - kMost,
                kNone = kLeast - (sizeof(T) == 4 ? 30 : 60);
    const bool low = x < kLeast, inside = (x < kMost) & (x > kNone);
    const T shift = low ? T(64) : T(0), back = low ? T(0x1p-64) : T(1);
    const T value = exp2(inside ? x + shift : T(1)) * back;
    return inside ? value : low ? T(0) : x >= kMost ? kInf<T> : x;
  }
}

template <class T>
RL_HD [[gnu::always_inline]] inline T sinh_anywhere(T x) {
  if constexpr (Complex<T>) {
    return sinh(x);
  } else {
    constexpr T kMost = sizeof(T) == 4 ? T(89.415985) : T(710.47586007394386);
    const bool inside = abs(x) < kMost;
    const T value = sinh(inside ? x : T(1));
    return inside ? value : x * kInf<T>;
  }
}

template <class T>
RL_HD [[gnu::always_inline]] inline T atanh_anywhere(T x) {
  if constexpr (Complex<T>) {
    return atanh(x);
  } else {
    const bool inside = abs(x) < T(1);
    const T value = atanh(inside ? x : T(0.5));
    return inside ? value : abs(x) == T(1) ? x * kInf<T> : kNan<T>;
  }
}

template <class T>
RL_HD [[gnu::always_inline]] inline T acosh_anywhere(T x) {
  if constexpr (Complex<T>) {
    return acosh(x);
  } else {
    const bool inside = (x > T(1)) & (x < kInf<T>);
    const T value = acosh(inside ? x : T(2));
    return inside ? value : x == T(1) ? T(0) : x > T(1) ? x : kNan<T>;
  }
}

}  // namespace rushlight::formulas
