// Unsigned numbers in the order of elements, as sorts and selections compare them.
#pragma once
#include <bit>
#include <cmath>
#include <type_traits>

#include "core/dtype.h"

namespace rushlight::cpu {

template <class T>
bool is_nan(T x) {
  if constexpr (is_floating_v<T>)
    return std::isnan(static_cast<compute_type<T>>(x));
  else
    return false;
}

template <class T>
using KeyOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

// An unsigned number whose order is the element's; NaN is the greatest.
template <class T>
KeyOf<T> order_key(T x) {
  using K = KeyOf<T>;
  constexpr K sign = K{1} << (sizeof(K) * 8 - 1);
  if constexpr (is_floating_v<T>) {
    using F = std::conditional_t<sizeof(T) == 8, double, float>;
    const F value = static_cast<F>(static_cast<compute_type<T>>(x)) + F(0);  // turns -0 into 0
    const K bits = std::bit_cast<K>(value), flipped = (K{0} - (bits >> (sizeof(K) * 8 - 1))) | sign;
    return value != value ? ~K{0} : bits ^ flipped;  // a branch on the sign would go wrong half of the time
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<K>(static_cast<std::make_signed_t<K>>(x)) ^ sign;
  } else {
    return static_cast<K>(x);
  }
}

// Whether all elements with this key are the same to the last bit: NaN is of many kinds, and zeros of two.
template <class T>
bool tells_value(KeyOf<T> key) {
  return !is_floating_v<T> || (key != ~KeyOf<T>{0} && key != order_key(T(0)));
}
template <class T>
T value_of_key(KeyOf<T> key) {
  using K = KeyOf<T>;
  constexpr K sign = K{1} << (sizeof(K) * 8 - 1);
  if constexpr (is_floating_v<T>) {
    using F = std::conditional_t<sizeof(T) == 8, double, float>;
    return static_cast<T>(static_cast<compute_type<T>>(std::bit_cast<F>(key & sign ? key ^ sign : ~key)));
  } else {
    return static_cast<T>(std::is_signed_v<T> ? key ^ sign : key);
  }
}

// As numbers with a sign, which registers compare.
template <class T>
std::make_signed_t<KeyOf<T>> signed_key(T x, bool descending) {
  constexpr KeyOf<T> kSign = KeyOf<T>{1} << (8 * sizeof(KeyOf<T>) - 1);
  const KeyOf<T> key = order_key(x) ^ kSign;
  return static_cast<std::make_signed_t<KeyOf<T>>>(descending ? ~key : key);
}

}  // namespace rushlight::cpu
