// Changing an element that other threads may change too.
#pragma once
#include <cstdint>
#include <cstring>

#include "cuda/geometry.h"

namespace rushlight::cuda {

// Replaces what lies at an address by update(it), whoever else writes there.
template <class S, class F>
RL_BOTH void update(S* address, F&& f) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(S) == 8) {
    auto* word = reinterpret_cast<unsigned long long*>(address);
    unsigned long long seen = *word, expected;
    do {
      expected = seen;
      S value;
      memcpy(&value, &expected, 8);
      value = f(value);
      unsigned long long wanted;
      memcpy(&wanted, &value, 8);
      seen = atomicCAS(word, expected, wanted);
    } while (seen != expected);
  } else {
    // Narrow elements are parts of a word of 4 bytes.
    const auto where = reinterpret_cast<uintptr_t>(address);
    auto* word = reinterpret_cast<unsigned*>(where & ~uintptr_t{3});
    const unsigned shift = static_cast<unsigned>(where & 3) * 8;
    const unsigned mask = sizeof(S) == 4 ? 0xffffffffu : ((1u << (sizeof(S) * 8)) - 1) << shift;
    unsigned seen = *word, expected;
    do {
      expected = seen;
      const unsigned bits = (expected & mask) >> shift;
      S value;
      memcpy(&value, &bits, sizeof(S));
      value = f(value);
      unsigned changed = 0;
      memcpy(&changed, &value, sizeof(S));
      seen = atomicCAS(word, expected, (expected & ~mask) | (changed << shift));
    } while (seen != expected);
  }
#else
  *address = f(*address);
#endif
}

// *address += value, of floats or doubles.
template <class C>
RL_BOTH void add_to(C* address, C value) {
#ifdef __CUDA_ARCH__
  atomicAdd(address, value);
#else
  *address += value;
#endif
}

}  // namespace rushlight::cuda
