// What printed kernels (fused_source.h) are written with. NVRTC compiles them for a device; the emulated
// device of the tests compiles the same text for the host, where the threads of a row take turns.
#pragma once
#include <cstdint>

#include "core/dtype.h"
#include "formulas/activation_math.h"

#ifdef __CUDACC__
#define RL_UNROLL _Pragma("unroll")
#else
#define RL_UNROLL
#endif

namespace rushlight::cuda {

template <class T>
inline constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

template <class To, class From>
inline To number(From value) {
  if constexpr (std::is_same_v<To, From>)
    return value;
  else if constexpr (is_half<From>)
    return number<To>(static_cast<float>(value));
  else if constexpr (is_half<To>)
    return To(static_cast<float>(value));
  else if constexpr (std::is_same_v<To, bool>)
    return value != From(0);
  else
    return static_cast<To>(value);
}
// What is left of a number in memory of type S.
template <class S, class T>
inline T rounded(T value) {
  return number<T>(number<S>(value));
}

// `width` elements from `first` on, of which `count` exist.
template <int width, class S>
struct alignas(width * sizeof(S) < 16 ? width * sizeof(S) : 16) Pack {
  S item[width];
};
template <bool aligned, int width, class T, class S, class Index>
inline void load(T* to, const S* from, Index first, int count) {
  if (aligned && count == width) {
    const auto pack = *reinterpret_cast<const Pack<width, S>*>(from + first);
    RL_UNROLL
    for (int k = 0; k < width; ++k) to[k] = number<T>(pack.item[k]);
    return;
  }
  RL_UNROLL
  for (int k = 0; k < width; ++k)
    if (k < count) to[k] = number<T>(from[first + k]);
}
// The same of elements that lie at place(index).
template <int width, class T, class S, class Index, class Place>
inline void gather(T* to, const S* from, Index first, int count, Place place) {
  RL_UNROLL
  for (int k = 0; k < width; ++k)
    if (k < count) to[k] = number<T>(from[place(first + k)]);
}
template <int width, class T, class S, class Index>
inline void store(const T* from, S* to, Index first, int count) {
  if (count == width) {
    Pack<width, S> pack;
    RL_UNROLL
    for (int k = 0; k < width; ++k) pack.item[k] = number<S>(from[k]);
    *reinterpret_cast<Pack<width, S>*>(to + first) = pack;
    return;
  }
  RL_UNROLL
  for (int k = 0; k < width; ++k)
    if (k < count) to[first + k] = number<S>(from[k]);
}

struct Sum {
  template <class T>
  static T start() {
    return T(0);
  }
  template <class T>
  static T join(T a, T b) {
    return a + b;
  }
};
struct Largest {
  template <class T>
  static T start() {
    return -formulas::kInf<T>;
  }
  template <class T>
  static T join(T a, T b) {
    return formulas::max(a, b);
  }
};
struct Smallest {
  template <class T>
  static T start() {
    return formulas::kInf<T>;
  }
  template <class T>
  static T join(T a, T b) {
    return formulas::min(a, b);
  }
};

// Rows of `row` elements, each of which `team` threads share: a thread has `packs` times `width` elements,
// neighbours read neighbours. Between reductions every thread keeps what it computed in registers.
template <int row, int team, int width>
struct Rows {
  static constexpr int packs = (row + team * width - 1) / (team * width), items = packs * width;
#ifdef __CUDACC__
  static constexpr int slots = 1;  // threads whose registers a variable holds
#else
  static constexpr int slots = team;
#endif
  static constexpr int lanes = team < 32 ? team : 32;  // that shuffle what they have
  static constexpr int column(int lane, int item) {
    return (item / width * team + lane) * width + item % width;
  }
  static constexpr int count(int lane, int pack) {
    return row % (team * width) == 0 || column(lane, pack * width) < row ? width : 0;
  }
  static constexpr bool holds(int lane, int item) { return count(lane, item / width) != 0; }

#ifdef __CUDACC__
  template <class F>
  static void each_thread(F f) {
    f(0, static_cast<int>(threadIdx.x) % team);
  }
  template <class Op, class T>
  static T joined(const T (&partial)[slots]) {
    T value = partial[0];
    for (int distance = lanes / 2; distance > 0; distance /= 2)
      value = Op::join(value, __shfl_xor_sync(0xffffffffu, value, distance));
    if constexpr (team > 32) {
      __shared__ T of_warp[team / 32];
      __syncthreads();  // its last use is past
      if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
      __syncthreads();
      value = of_warp[0];
      for (int w = 1; w < team / 32; ++w) value = Op::join(value, of_warp[w]);
    }
    return value;
  }
#else
  template <class F>
  static void each_thread(F f) {
    for (int lane = 0; lane < team; ++lane) f(lane, lane);
  }
  template <class Op, class T>
  static T joined(const T (&partial)[slots]) {
    T value[slots];
    for (int i = 0; i < slots; ++i) value[i] = partial[i];
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
      T before[slots];
      for (int i = 0; i < slots; ++i) before[i] = value[i];
      for (int i = 0; i < slots; ++i) value[i] = Op::join(before[i], before[i ^ distance]);
    }
    T result = value[0];
    for (int w = 1; w < team / 32; ++w) result = Op::join(result, value[w * 32]);
    return result;
  }
#endif

  // f(slot, item) for all elements of the row.
  template <class F>
  static void each(F f) {
    each_thread([&](int slot, int lane) {
      RL_UNROLL
      for (int i = 0; i < items; ++i)
        if (holds(lane, i)) f(slot, i);
    });
  }
  // f(slot, first item, first column, count) for all packs of the row.
  template <class F>
  static void each_pack(F f) {
    each_thread([&](int slot, int lane) {
      RL_UNROLL
      for (int p = 0; p < packs; ++p)
        if (count(lane, p)) f(slot, p * width, column(lane, p * width), width);
    });
  }
  // f() in one thread.
  template <class F>
  static void once(F f) {
    each_thread([&](int, int lane) {
      if (lane == 0) f();
    });
  }
  template <class Op, class T>
  static T reduce(const T (&values)[slots][items]) {
    T partial[slots];
    each_thread([&](int slot, int lane) {
      partial[slot] = Op::template start<T>();
      RL_UNROLL
      for (int i = 0; i < items; ++i)
        if (holds(lane, i)) partial[slot] = Op::join(partial[slot], values[slot][i]);
    });
    return joined<Op>(partial);
  }
};

}  // namespace rushlight::cuda

// The kernel, of `threads` threads a block: work(arguments, first) for elements from `first` on, `width` at a
// time, or for the row `first`, which `team` threads share.
#ifdef __CUDACC__
#define RL_ELEMENTS_KERNEL(threads, width)                                                           \
  extern "C" __global__ void __launch_bounds__(threads) fused(const __grid_constant__ Arguments a) { \
    const Index first = (static_cast<Index>(blockIdx.x) * threads + threadIdx.x) * width;            \
    if (first < static_cast<Index>(a.count)) work(a, first);                                         \
  }
#define RL_ROWS_KERNEL(threads, team)                                                                \
  extern "C" __global__ void __launch_bounds__(threads) fused(const __grid_constant__ Arguments a) { \
    static_assert(team <= 32 || team == threads); /* or teams would share what they wait with */     \
    const Index row = static_cast<Index>(blockIdx.x) * (threads / team) + threadIdx.x / team;        \
    if (row < static_cast<Index>(a.count)) work(a, row);                                             \
  }
#else
#define RL_ELEMENTS_KERNEL(threads, width)                                          \
  extern "C" void fused(const Arguments& a, unsigned blocks) {                      \
    for (Index thread = 0; thread < static_cast<Index>(blocks) * threads; ++thread) \
      if (thread * width < static_cast<Index>(a.count)) work(a, thread * width);    \
  }
#define RL_ROWS_KERNEL(threads, team)                                               \
  extern "C" void fused(const Arguments& a, unsigned blocks) {                      \
    for (Index row = 0; row < static_cast<Index>(blocks) * (threads / team); ++row) \
      if (row < static_cast<Index>(a.count)) work(a, row);                          \
  }
#endif
