// Rows over which a block passes more than once. Its threads keep what they read of a short one in registers.
#pragma once
#include "cuda/launch.h"
#include "cuda/reduce_lines.h"

namespace rushlight::cuda {

// Packs of S as numbers A, at most `held` a thread; 0: read again in each pass. The host has one thread a
// row.
template <class S, class A, int held>
struct HeldRow {
#ifdef __CUDACC__
  static constexpr int kHeld = held;
#else
  static constexpr int kHeld = 0;
#endif
  const S* from;
  int64_t packs;
  uint32_t thread, threads;
  A x[kHeld ? kHeld : 1][kPack];

  RL_BOTH HeldRow(const S* row, int64_t n, const Block& block)
      : from(row), packs(n), thread(block.thread), threads(block.threads) {
    if constexpr (kHeld > 0) {
      RL_UNROLL for (int v = 0; v < kHeld; ++v) read(thread + v * threads, x[v]);
    }
  }
  RL_BOTH void read(int64_t i, A (&to)[kPack]) const {
    if (i >= packs) return;
    const auto pack = *reinterpret_cast<const Pack<S, kPack>*>(from + i * kPack);
    for (int k = 0; k < kPack; ++k) to[k] = number<A>(pack.v[k]);
  }
  // f(pack, its numbers) for those of this thread.
  template <class F>
  RL_BOTH void each(F&& f) {
    if constexpr (kHeld > 0) {
      RL_UNROLL for (int v = 0; v < kHeld; ++v) {
        const int64_t i = thread + v * threads;
        if (i < packs) f(i, x[v]);
      }
    } else {
      for (int64_t i = thread; i < packs; i += threads) {
        read(i, x[0]);
        f(i, x[0]);
      }
    }
  }
  // f(pack, its numbers, those of another row of this length).
  template <class F>
  RL_BOTH void each_with(HeldRow& other, F&& f) {
    if constexpr (kHeld > 0) {
      RL_UNROLL for (int v = 0; v < kHeld; ++v) {
        const int64_t i = thread + v * threads;
        if (i < packs) f(i, x[v], other.x[v]);
      }
    } else {
      for (int64_t i = thread; i < packs; i += threads) {
        read(i, x[0]), other.read(i, other.x[0]);
        f(i, x[0], other.x[0]);
      }
    }
  }
};

template <class S, class A>
RL_BOTH void write_pack(S* out, int64_t i, const A (&x)[kPack]) {
  Pack<S, kPack> pack;
  for (int k = 0; k < kPack; ++k) pack.v[k] = number<S>(x[k]);
  *reinterpret_cast<Pack<S, kPack>*>(out + i * kPack) = pack;
}

template <int n>
struct Held {
  static constexpr int value = n;
};
// make(Held<n>{}) is the kernel that holds n packs a thread; `wide`: in blocks of 1024, of 64 registers each.
template <int wide, class Make>
void for_each_held_row(const Launch& at, int64_t rows, int64_t packs, const Make& make) {
  constexpr int kMost = 4;
  if (packs <= int64_t{32} * kMost) return for_each_warp(at, rows, make(Held<kMost>{}));
  if (packs <= int64_t{kBlockThreads} * kMost) return for_each_block(at, rows, make(Held<kMost>{}));
  if (packs <= int64_t{kWideThreads} * wide) return for_each_wide_block(at, rows, make(Held<wide>{}));
  for_each_wide_block(at, rows, make(Held<0>{}));
}

}  // namespace rushlight::cuda
