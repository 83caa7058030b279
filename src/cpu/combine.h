// What becomes of two elements that meet in one place. Halves through float; inlined wherever they are used,
// so that files of every instruction set may include them.
#pragma once
#include <bit>
#include <type_traits>

#include "core/dtype.h"

namespace rushlight::cpu {

template <class T>
[[gnu::always_inline]] inline T plus(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a || b;
  else
    return static_cast<T>(static_cast<compute_type<T>>(a) + static_cast<compute_type<T>>(b));
}
template <class T>
[[gnu::always_inline]] inline T times(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a && b;
  else
    return static_cast<T>(static_cast<compute_type<T>>(a) * static_cast<compute_type<T>>(b));
}
// a or b, by bits: no branch can foretell which of two numbers is larger.
template <class T>
[[gnu::always_inline]] inline T chosen(bool first, T a, T b) {
  if constexpr (is_floating_v<T>) {
    using Bits =
        std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
    const auto mask = static_cast<Bits>(-static_cast<Bits>(first));
    const auto x = std::bit_cast<Bits>(a), y = std::bit_cast<Bits>(b);
    return std::bit_cast<T>(static_cast<Bits>(y ^ ((x ^ y) & mask)));
  } else {
    return first ? a : b;
  }
}
// The first NaN stays.
template <class T>
[[gnu::always_inline]] inline T larger(T a, T b) {
  const auto x = static_cast<compute_type<T>>(a), y = static_cast<compute_type<T>>(b);
  return chosen((x != x) | (x >= y), a, b);
}
template <class T>
[[gnu::always_inline]] inline T smaller(T a, T b) {
  const auto x = static_cast<compute_type<T>>(a), y = static_cast<compute_type<T>>(b);
  return chosen((x != x) | (x <= y), a, b);
}

}  // namespace rushlight::cpu
