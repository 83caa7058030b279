// Lines that lie in order already, whose sorts compare each element with the next one only.
#pragma once
#include <algorithm>
#include <cstdint>

#include "cpu/lines.h"

namespace rushlight::cpu {

enum class LineOrder : uint8_t { None, Equal, Rising, NeverFalling, Falling };

// As a sort sees it: to one that is `descending` a line rises whose elements fall. NaN is in no order.
template <class T>
LineOrder line_order(Line<const T> x, int64_t n, bool descending) {
  constexpr int64_t kFirst = 3, kMore = 64;  // pairs: most lines are in no order, which a few of them show
  int less = 1, equal = 1, greater = 1, falls = 0;
  for (int64_t begin = 0, end = kFirst; begin < n - 1; begin = end, end += kMore) {
    end = std::min(end, n - 1);
    int some_less = 1, some_equal = 1, some_greater = 1, some_fall = 0;
    for (int64_t i = begin; i < end; ++i) {
      const auto a = static_cast<compute_type<T>>(x.data[i * x.stride]),
                 b = static_cast<compute_type<T>>(x.data[(i + 1) * x.stride]);
      const int is_equal = a == b;
      const int is_less = a < b;
      const int is_greater = a > b;
      some_less &= is_less, some_greater &= is_greater, some_equal &= is_equal;
      some_fall |= !((descending ? is_greater : is_less) | is_equal);
    }
    less &= some_less, equal &= some_equal, greater &= some_greater, falls |= some_fall;
    if (falls && !(descending ? less : greater)) return LineOrder::None;
  }
  if (equal) return LineOrder::Equal;
  if (falls) return LineOrder::Falling;
  return (descending ? greater : less) ? LineOrder::Rising : LineOrder::NeverFalling;
}

// How std::sort leaves n equal elements; the thread's until it asks again.
const uint32_t* order_of_equals(int64_t n);

// Lines that are in order, or in the opposite one; false for others.
template <class T>
bool sort_line_in_order(Line<const T> x, int64_t n, bool descending, bool stable, Line<T> values,
                        Line<int64_t> positions) {
  const LineOrder order = line_order(x, n, descending);
  if (order == LineOrder::None || (order == LineOrder::NeverFalling && !stable)) return false;
  if (order == LineOrder::Falling) {
    for (int64_t i = 0; i < n; ++i) values[i] = x[n - 1 - i], positions[i] = n - 1 - i;
  } else if (order != LineOrder::Equal || stable) {
    for (int64_t i = 0; i < n; ++i) values[i] = x[i];
    for (int64_t i = 0; i < n; ++i) positions[i] = i;
  } else {
    const uint32_t* from = order_of_equals(n);
    for (int64_t i = 0; i < n; ++i) positions[i] = from[i];
    for (int64_t i = 0; i < n; ++i) values[i] = is_floating_v<T> ? x[from[i]] : x[0];  // zeros have signs
  }
  return true;
}

}  // namespace rushlight::cpu
