// Truth values as they lie in memory.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace rushlight::cpu {

// A byte that is not 0 is true, whichever it is: views of other dtypes, arrays and files can hold any. A
// `bool` of C++ may be 0 or 1 alone, so kernels read truth values as this.
struct Truth {
  uint8_t byte;
  operator bool() const { return byte != 0; }
};

// How kernels read elements of the type T.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, Truth, T>;

// How many of n adjacent ones are true, eight at a time: the high bit of a byte is set in `high` unless the
// byte is 0. (Loops over single ones are left to no compiler: GCC 12's vectors lose elements of long runs.)
[[gnu::always_inline]] inline int64_t count_truths(const Truth* x, int64_t n) {
  constexpr uint64_t kHigh = 0x8080808080808080;
  int64_t count = 0, i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t word;
    std::memcpy(&word, x + i, 8);
    const uint64_t high = (((word & ~kHigh) + ~kHigh) | word) & kHigh;
    count += std::popcount(high);
  }
  for (; i < n; ++i) count += x[i] ? 1 : 0;
  return count;
}

}  // namespace rushlight::cpu
