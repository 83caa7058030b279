// Kernels whose threads take turns on memory that a block shares: a step for every thread, then they wait for
// each other. What a thread keeps between steps is its own state. The host runs the threads one by one.
#pragma once
#include "cuda/launch.h"

#ifndef __CUDACC__
#include <vector>
#endif

namespace rushlight::cuda {

constexpr uint32_t kTeamThreads = 256;
constexpr int kTeamWarps = kTeamThreads / 32;
constexpr size_t kTeamAlignment = 128;  // of its memory

#ifdef __CUDACC__

template <class S>
struct PerThread {
  S mine;
};
// What the threads of a warp hold together.
template <class S>
struct PerWarp {
  S mine;
};

struct Team {
  int64_t index;
  unsigned char* memory;

  // f(thread) in all of them.
  template <class F>
  __device__ void each(F&& f) const {
    f(threadIdx.x);
    __syncthreads();
  }
  // f(thread, its state)
  template <class S, class F>
  __device__ void each(PerThread<S>& state, F&& f) const {
    f(threadIdx.x, state.mine);
    __syncthreads();
  }
  // f(warp), or f(warp, its state), in all warps; their threads do it together.
  template <class F>
  __device__ void each_warp(F&& f) const {
    f(threadIdx.x / 32);
    __syncthreads();
  }
  template <class S, class F>
  __device__ void each_warp(PerWarp<S>& state, F&& f) const {
    f(threadIdx.x / 32, state.mine);
    __syncthreads();
  }
};

template <class F>
__global__ void __launch_bounds__(kTeamThreads) team_kernel(F f) {
  extern __shared__ __align__(kTeamAlignment) unsigned char memory[];
  f(Team{blockIdx.x, memory});
}

// What a team may have at most.
inline size_t most_team_memory(int device) {
  int bytes = 0;
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "shared memory");
  return static_cast<size_t>(bytes);
}

// f(team) for n teams with `bytes` of memory each.
template <class F>
void for_each_team(const Launch& at, int64_t n, size_t bytes, const F& f) {
  if (n == 0) return;
  constexpr size_t kAlways = size_t{48} << 10;
  on_stream(at, [&](cudaStream_t stream) {
    if (bytes > kAlways)
      check(cudaFuncSetAttribute(team_kernel<F>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(bytes)),
            at.name);
    team_kernel<<<static_cast<unsigned>(n), kTeamThreads, bytes, stream>>>(f);
  });
}

#else

template <class S>
struct PerThread {
  std::vector<S> all = std::vector<S>(kTeamThreads);
};
template <class S>
struct PerWarp {
  std::vector<S> all = std::vector<S>(kTeamWarps);
};

struct Team {
  int64_t index;
  unsigned char* memory;

  template <class F>
  void each(F&& f) const {
    for (uint32_t t = 0; t < kTeamThreads; ++t) f(t);
  }
  template <class S, class F>
  void each(PerThread<S>& state, F&& f) const {
    for (uint32_t t = 0; t < kTeamThreads; ++t) f(t, state.all[t]);
  }
  template <class F>
  void each_warp(F&& f) const {
    for (uint32_t w = 0; w < kTeamWarps; ++w) f(w);
  }
  template <class S, class F>
  void each_warp(PerWarp<S>& state, F&& f) const {
    for (uint32_t w = 0; w < kTeamWarps; ++w) f(w, state.all[w]);
  }
};

inline size_t most_team_memory(int) { return size_t{227} << 10; }

template <class F>
void for_each_team(const Launch& at, int64_t n, size_t bytes, const F& f) {
  enqueue_on_host(at, [=] {
    std::vector<unsigned char> memory(bytes + kTeamAlignment);
    const size_t off = reinterpret_cast<uintptr_t>(memory.data()) % kTeamAlignment;
    auto* aligned = memory.data() + (kTeamAlignment - off) % kTeamAlignment;
    for (int64_t i = 0; i < n; ++i) f(Team{i, aligned});
  });
}

#endif

}  // namespace rushlight::cuda
