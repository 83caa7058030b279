// Truth values as they lie in memory.
#pragma once
#include <cstdint>
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

}  // namespace rushlight::cpu
