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

// The threads of one block, which reduce values together.
struct Block {
  int64_t index;
  uint32_t thread, threads;
};

constexpr uint32_t kIndexThreads = 256, kBlockThreads = 256;

template <class F>
__global__ void index_kernel(int64_t n, F f) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) f(i);
}
template <class F>
__global__ void block_kernel(F f) {
  f(Block{blockIdx.x, threadIdx.x, blockDim.x});
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

// What all threads of the block reduce to, in every thread. All of them must call it.
template <class T, class Combine>
__device__ T block_reduce(const Block& block, T value, Combine combine) {
  if (block.threads == 1) return value;
  __shared__ alignas(16) unsigned char memory[kBlockThreads / 32 * sizeof(T)];
  T* partial = reinterpret_cast<T*>(memory);
  auto from_lane = [](T mine, int distance) {
    constexpr int kWords = (sizeof(T) + 3) / 4;
    union Words {
      T value;
      unsigned word[kWords];
      __device__ Words() {}
    } words;
    words.value = mine;
    for (int w = 0; w < kWords; ++w) words.word[w] = __shfl_down_sync(0xffffffffu, words.word[w], distance);
    return words.value;
  };
  for (int distance = 16; distance > 0; distance /= 2) value = combine(value, from_lane(value, distance));
  __syncthreads();  // the last use of the shared memory is past
  if (block.thread % 32 == 0) partial[block.thread / 32] = value;
  __syncthreads();
  T result = partial[0];
  for (uint32_t w = 1; w < block.threads / 32; ++w) result = combine(result, partial[w]);
  return result;
}

// What the threads before this one combine to; `start` in the first. All of them must call it.
template <class T, class Combine>
__device__ T block_scan(const Block& block, T value, T start, Combine combine) {
  if (block.threads == 1) return start;
  __shared__ alignas(16) unsigned char memory[kBlockThreads * sizeof(T)];
  T* all = reinterpret_cast<T*>(memory);
  __syncthreads();
  all[block.thread] = value;
  __syncthreads();
  if (block.thread == 0) {
    T total = start;
    for (uint32_t t = 0; t < block.threads; ++t) {
      const T mine = all[t];
      all[t] = total;
      total = combine(total, mine);
    }
  }
  __syncthreads();
  return all[block.thread];
}

#else

// Given by whoever runs kernels on the host.
void enqueue_on_host(const Launch& at, std::function<void()> work);

struct Block {
  int64_t index;
  uint32_t thread, threads;
};

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
template <class T, class Combine>
T block_reduce(const Block&, T value, Combine) {
  return value;
}

template <class T, class Combine>
T block_scan(const Block&, T, T start, Combine) {
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
