// Launching kernels. A kernel is an object that is called with indices, so that the host can run it too: the
// emulated device of the tests compiles the same files without nvcc.
#pragma once
#include <cstdint>

#include "core/device_backend.h"
#include "cuda/geometry.h"

#ifdef __CUDACC__
#include "cuda/check.h"
#else
#include <functional>
#include <stdexcept>
#endif

namespace rushlight::cuda {

// What a launch is made on: a device, its current stream, and the name in error reports.
struct Launch {
  int device;
  const char* name;
};

// The threads of one block, or of one warp, which reduce values together.
struct Block {
  int64_t index;
  uint32_t thread, threads;
};
// The threads of one block as rows of `across` threads, a power of two.
struct Tile {
  int64_t index;
  uint32_t x, y, across, rows;
};

constexpr uint32_t kIndexThreads = 256, kBlockThreads = 256, kWideThreads = 1024;

#ifdef __CUDA_ARCH__
#define RL_UNROLL _Pragma("unroll")
#define RL_NO_UNROLL _Pragma("unroll 1")
#else
#define RL_UNROLL
#define RL_NO_UNROLL
#endif

#ifdef __CUDACC__

// Runs f(stream) with the device as the current one, and reports a refused launch.
template <class F>
void on_stream(const Launch& at, F&& f) {
  DeviceBackend& backend = device_backend(DeviceType::CUDA);
  const DeviceScope scope(backend.driver(), at.device);
  f(static_cast<cudaStream_t>(backend.stream(backend.current_stream(at.device)).handle));
  check(cudaGetLastError(), at.name);
  backend.launched(at.device, at.name);
}

template <class F>
__global__ void index_kernel(int64_t n, F f) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) f(i);
}
template <class F>
__global__ void block_kernel(F f) {
  f(Block{blockIdx.x, threadIdx.x, blockDim.x});
}
// With so many registers that an SM holds `resident` blocks.
template <int resident, class F>
__global__ void __launch_bounds__(kBlockThreads, resident) resident_block_kernel(F f) {
  f(Block{blockIdx.x, threadIdx.x, blockDim.x});
}
template <class F>
__global__ void __launch_bounds__(kWideThreads) wide_block_kernel(F f) {
  f(Block{blockIdx.x, threadIdx.x, blockDim.x});
}
template <int resident, class F>
__global__ void __launch_bounds__(kBlockThreads, resident) warp_kernel(int64_t n, F f) {
  const int64_t warp = int64_t{blockIdx.x} * (kBlockThreads / 32) + threadIdx.x / 32;
  if (warp < n) f(Block{warp, threadIdx.x % 32, 32});
}
template <int resident, class F>
__global__ void __launch_bounds__(kBlockThreads, resident) tile_kernel(uint32_t across, F f) {
  const uint32_t x = threadIdx.x & (across - 1);
  f(Tile{blockIdx.x, x, threadIdx.x / across, across, kBlockThreads / across});
}

// f(i) for 0 <= i < n, in any order.
template <class F>
void for_each_index(const Launch& at, int64_t n, const F& f) {
  if (n == 0) return;
  const int64_t blocks = (n + kIndexThreads - 1) / kIndexThreads;
  on_stream(at, [&](cudaStream_t stream) {
    index_kernel<<<static_cast<unsigned>(blocks < 1 << 20 ? blocks : 1 << 20), kIndexThreads, 0, stream>>>(n,
                                                                                                           f);
  });
}
// f(block) in every thread of n blocks.
template <class F>
void for_each_block(const Launch& at, int64_t n, const F& f) {
  if (n == 0) return;
  on_stream(at, [&](cudaStream_t stream) {
    block_kernel<<<static_cast<unsigned>(n), kBlockThreads, 0, stream>>>(f);
  });
}

// The same with a bound on registers.
template <int resident, class F>
void for_each_resident_block(const Launch& at, int64_t n, const F& f) {
  if (n == 0) return;
  on_stream(at, [&](cudaStream_t stream) {
    resident_block_kernel<resident><<<static_cast<unsigned>(n), kBlockThreads, 0, stream>>>(f);
  });
}
// The same with blocks of 1024 threads, for few items with much work each.
template <class F>
void for_each_wide_block(const Launch& at, int64_t n, const F& f) {
  if (n == 0) return;
  on_stream(at, [&](cudaStream_t stream) {
    wide_block_kernel<<<static_cast<unsigned>(n), kWideThreads, 0, stream>>>(f);
  });
}
// f(block) in every thread of n warps.
template <int resident = 1, class F>
void for_each_warp(const Launch& at, int64_t n, const F& f) {
  if (n == 0) return;
  constexpr int64_t kWarps = kBlockThreads / 32;
  on_stream(at, [&](cudaStream_t stream) {
    warp_kernel<resident>
        <<<static_cast<unsigned>((n + kWarps - 1) / kWarps), kBlockThreads, 0, stream>>>(n, f);
  });
}
// f(tile) in every thread of n tiles.
template <int resident = 1, class F>
void for_each_tile(const Launch& at, int64_t n, uint32_t across, const F& f) {
  if (n == 0) return;
  on_stream(at, [&](cudaStream_t stream) {
    tile_kernel<resident><<<static_cast<unsigned>(n), kBlockThreads, 0, stream>>>(across, f);
  });
}

// What another lane of the warp has: shuffle(word) moves 32 bits.
template <class T, class Shuffle>
__device__ T from_lane(const T& mine, Shuffle shuffle) {
  constexpr int kWords = (sizeof(T) + 3) / 4;
  union Words {
    T value;
    unsigned word[kWords];
    __device__ Words() {}
  } words;
  words.value = mine;
  for (int w = 0; w < kWords; ++w) words.word[w] = shuffle(words.word[w]);
  return words.value;
}
// In the first lane what all lanes of the warp combine to.
template <class T, class Combine>
__device__ T warp_total(T value, Combine combine) {
  for (int distance = 16; distance > 0; distance /= 2)
    value = combine(value, from_lane(value, [distance](unsigned word) {
                      return __shfl_down_sync(0xffffffffu, word, distance);
                    }));
  return value;
}

// What all threads of the block reduce to, in every thread. All of them must call it.
template <class T, class Combine>
__device__ T block_reduce(const Block& block, T value, Combine combine) {
  if (block.threads == 1) return value;
  value = warp_total(value, combine);
  if (block.threads == 32)
    return from_lane(value, [](unsigned word) { return __shfl_sync(0xffffffffu, word, 0); });
  __shared__ alignas(16) unsigned char memory[kWideThreads / 32 * sizeof(T)];
  T* partial = reinterpret_cast<T*>(memory);
  __syncthreads();  // the last use of the shared memory is past
  if (block.thread % 32 == 0) partial[block.thread / 32] = value;
  __syncthreads();
  T result = partial[0];
  for (uint32_t w = 1; w < block.threads / 32; ++w) result = combine(result, partial[w]);
  return result;
}

// What the values of each column of the tile reduce to, in its first row. All threads must call it.
template <int n, class T, class Combine>
__device__ void tile_reduce(const Tile& tile, T (&values)[n], Combine combine) {
  if (tile.rows == 1) return;
  __shared__ alignas(16) unsigned char memory[n * kBlockThreads * sizeof(T)];
  T* all = reinterpret_cast<T*>(memory) + threadIdx.x;
  __syncthreads();
  for (int k = 0; k < n; ++k) all[k * kBlockThreads] = values[k];
  for (uint32_t half = tile.rows / 2; half > 0; half /= 2) {
    __syncthreads();
    if (tile.y >= half) continue;
    for (int k = 0; k < n; ++k) {
      values[k] = combine(values[k], all[k * kBlockThreads + half * tile.across]);
      all[k * kBlockThreads] = values[k];
    }
  }
}

// What the threads before this one combine to, `start` in the first; and what all of them do, with `start`.
// All of them must call it.
template <class T, class Combine>
__device__ T block_scan(const Block& block, T value, T start, Combine combine, T* total) {
  if (block.threads == 1) {
    *total = combine(start, value);
    return start;
  }
  __shared__ alignas(16) unsigned char memory[kWideThreads / 32 * sizeof(T)];
  T* warps = reinterpret_cast<T*>(memory);
  const uint32_t lane = block.thread % 32, warp = block.thread / 32;
  T mine = value;
  for (uint32_t distance = 1; distance < 32; distance *= 2) {
    const T before =
        from_lane(mine, [distance](unsigned word) { return __shfl_up_sync(0xffffffffu, word, distance); });
    if (lane >= distance) mine = combine(before, mine);
  }
  const T previous = from_lane(mine, [](unsigned word) { return __shfl_up_sync(0xffffffffu, word, 1); });
  T front = start;
  __syncthreads();  // the last use of the shared memory is past
  if (lane == 31) warps[warp] = mine;
  __syncthreads();
  T all = start;
  for (uint32_t w = 0; w < block.threads / 32; ++w) {
    if (w == warp) front = all;
    all = combine(all, warps[w]);
  }
  *total = all;
  return lane == 0 ? front : combine(front, previous);
}

#else

// Given by whoever runs kernels on the host.
void enqueue_on_host(const Launch& at, std::function<void()> work);

template <class F>
void for_each_index(const Launch& at, int64_t n, const F& f) {
  enqueue_on_host(at, [n, f] {
    for (int64_t i = 0; i < n; ++i) f(i);
  });
}
// One thread a block: what it reduces with others is its own.
template <class F>
void for_each_block(const Launch& at, int64_t n, const F& f) {
  enqueue_on_host(at, [n, f] {
    for (int64_t i = 0; i < n; ++i) f(Block{i, 0, 1});
  });
}
template <int, class F>
void for_each_resident_block(const Launch& at, int64_t n, const F& f) {
  for_each_block(at, n, f);
}
template <class F>
void for_each_wide_block(const Launch& at, int64_t n, const F& f) {
  for_each_block(at, n, f);
}
template <int = 1, class F>
void for_each_warp(const Launch& at, int64_t n, const F& f) {
  for_each_block(at, n, f);
}
// One row of threads.
template <int = 1, class F>
void for_each_tile(const Launch& at, int64_t n, uint32_t across, const F& f) {
  enqueue_on_host(at, [n, across, f] {
    for (int64_t i = 0; i < n; ++i)
      for (uint32_t x = 0; x < across; ++x) f(Tile{i, x, 0, across, 1});
  });
}
template <int n, class T, class Combine>
void tile_reduce(const Tile&, T (&)[n], Combine) {}
template <class T, class Combine>
T block_reduce(const Block&, T value, Combine) {
  return value;
}

template <class T, class Combine>
T block_scan(const Block&, T value, T start, Combine combine, T* total) {
  *total = combine(start, value);
  return start;
}

#endif

// The kernel of one thread an index, from one that a block of threads can share.
template <class F>
struct AloneInBlock {
  F f;
  RL_BOTH void operator()(int64_t i) const { f(Block{i, 0, 1}); }
};

// Stops the kernel, and with it the device: the next wait reports it.
RL_BOTH inline void device_assert(bool condition, [[maybe_unused]] const char* what) {
  if (condition) return;
#ifdef __CUDA_ARCH__
  __assert_fail(what, "kernel", 0, "");
#elif !defined(__CUDACC__)
  throw std::runtime_error("device-side assert triggered");
#endif
}

}  // namespace rushlight::cuda
