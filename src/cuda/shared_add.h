// Adding to elements of any dtype that other threads add to as well.
#pragma once
#include <type_traits>

#include "cuda/elements.h"
#include "cuda/update.h"

namespace rushlight::cuda {

// *address += value, of any stored type, by the device's own instruction where it has one.
template <class S, class A>
RL_BOTH void add_shared(S* address, A value) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_floating_point_v<S>) {
    atomicAdd(address, static_cast<S>(value));
    return;
  } else if constexpr (std::is_integral_v<S> && sizeof(S) == 8) {
    atomicAdd(reinterpret_cast<unsigned long long*>(address), static_cast<unsigned long long>(value));
    return;
  } else if constexpr (std::is_integral_v<S> && sizeof(S) == 4) {
    atomicAdd(reinterpret_cast<unsigned*>(address), static_cast<unsigned>(value));
    return;
  } else if constexpr (std::is_same_v<S, StoredHalf>) {
    atomicAdd(address, number<S>(value));
    return;
  }
#if __CUDA_ARCH__ >= 900
  if constexpr (std::is_same_v<S, StoredBFloat16>) {
    atomicAdd(address, number<S>(value));
    return;
  }
#endif
#endif
  update(address, [&](S old) { return number<S>(number<A>(old) + value); });
}

// The same of four neighbours.
template <class S>
RL_BOTH void add_neighbours(S* address, const Neighbours<S>& values) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  if constexpr (std::is_same_v<S, float>) {
    atomicAdd(reinterpret_cast<float4*>(address), *reinterpret_cast<const float4*>(&values));
  } else {
    using Pair = std::conditional_t<std::is_same_v<S, StoredHalf>, __half2, __nv_bfloat162>;
    for (int k = 0; k < kAtOnce; k += 2)
      atomicAdd(reinterpret_cast<Pair*>(address + k), Pair(values.item[k], values.item[k + 1]));
  }
#else
  for (int k = 0; k < kAtOnce; ++k) add_shared(address + k, number<float>(values.item[k]));
#endif
}

}  // namespace rushlight::cuda
