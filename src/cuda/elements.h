// Loops over the elements of a piece that move several at a time: a thread takes four of them, a block apart,
// and reads all before it writes; or four neighbours; or wider words where memory allows.
#pragma once
#include <initializer_list>

#include "cuda/launch.h"
#include "cuda/memory.h"

namespace rushlight::cuda {

// How many elements a thread takes.
constexpr int kAtOnce = 4;

#ifdef __CUDACC__
template <int operands, class F>
__global__ void __launch_bounds__(kIndexThreads) elements_kernel(Geometry g, F f) {
  const uint32_t first = blockIdx.x * (kIndexThreads * kAtOnce) + threadIdx.x;
  uint32_t index[kAtOnce];
  int32_t at[kAtOnce][operands] = {};
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) {
    const uint32_t i = first + static_cast<uint32_t>(k) * kIndexThreads;
    index[k] = i < g.numel ? i : 0;
  }
  int d = 0;
  for (; d + 1 < g.rank; ++d) {
    const Divider size = g.sizes[d];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const uint32_t rest = size.divide(index[k]);
      const auto here = static_cast<int32_t>(index[k] - rest * size.divisor);
#pragma unroll
      for (int i = 0; i < operands; ++i) at[k][i] += here * g.strides[d][i];
      index[k] = rest;
    }
  }
  // What is left counts along the last dimension.
  typename F::Value values[kAtOnce];
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) {
#pragma unroll
    for (int i = 0; i < operands; ++i) at[k][i] += static_cast<int32_t>(index[k]) * g.strides[d][i];
    if (first + static_cast<uint32_t>(k) * kIndexThreads < g.numel) values[k] = f.read(at[k]);
  }
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k)
    if (first + static_cast<uint32_t>(k) * kIndexThreads < g.numel) f.write(at[k], values[k]);
}

// f.write(at, f.read(at)) for every element, whose places in `operands` operands are `at`. No element's place
// is another's.
template <int operands, class F>
void for_each_element(const Launch& at, const Geometry& g, const F& f) {
  if (g.numel == 0) return;
  constexpr uint32_t kPerBlock = kIndexThreads * kAtOnce;
  on_stream(at, [&](cudaStream_t stream) {
    elements_kernel<operands><<<(g.numel + kPerBlock - 1) / kPerBlock, kIndexThreads, 0, stream>>>(g, f);
  });
}
#else
template <int operands, class F>
void for_each_element(const Launch& launch, const Geometry& g, const F& f) {
  enqueue_on_host(launch, [g, f] {
    int32_t at[kMaxOperands];
    for (uint32_t i = 0; i < g.numel; ++i) {
      g.locate(i, at);
      f.write(at, f.read(at));
    }
  });
}
#endif

// Neighbours that are read or written at once.
template <class S>
struct alignas(sizeof(S) * kAtOnce < 16 ? sizeof(S) * kAtOnce : 16) Neighbours {
  S item[kAtOnce];
};

// An address and all strides but the innermost are multiples of `size`.
inline bool lies_in_steps_of(const Geometry& g, const Operand& operand, int which, size_t size) {
  if (reinterpret_cast<uintptr_t>(operand.data) % size) return false;
  for (int d = 1; d < g.rank; ++d)
    if (g.strides[d][which] % static_cast<int64_t>(size)) return false;
  return true;
}

// The widest word that the elements of `moved` operands fill, side by side along the innermost dimension,
// which becomes as much shorter. Other operands stay where they are along it.
inline size_t widen(Geometry* g, const Operand* operands, std::initializer_list<int> moved) {
  const size_t item = element_size(operands[0].dtype);
  if (g->rank == 0) return item;
  for (const int which : moved)
    if (g->strides[0][which] != static_cast<int32_t>(item)) return item;
  for (size_t word = 16; word > item; word /= 2) {
    const auto times = static_cast<uint32_t>(word / item);
    bool fits = g->sizes[0].divisor % times == 0;
    for (const int which : moved) fits = fits && lies_in_steps_of(*g, operands[which], which, word);
    if (!fits) continue;
    g->sizes[0] = Divider(g->sizes[0].divisor / times);
    g->numel /= times;
    for (const int which : moved) g->strides[0][which] = static_cast<int32_t>(word);
    return word;
  }
  return item;
}

// Four neighbours along the innermost dimension for a thread: the result's are written at once, those of an
// operand are read at once or `step` bytes apart.
struct NeighbourPlan {
  Geometry g;  // of the first of four each
  int32_t step[kMaxOperands] = {};
  bool together[kMaxOperands] = {};
};
// False: not for these; operands whose neighbours lie far apart are read better one by one.
inline bool plan_neighbours(const Piece& piece, NeighbourPlan* plan) {
  constexpr int32_t kNear = 32;
  Geometry& g = plan->g = piece.geometry;
  if (g.rank == 0 || g.sizes[0].divisor % kAtOnce) return false;
  for (int i = 0; i < g.operands; ++i) {
    const Operand& operand = piece.operands[i];
    const size_t item = element_size(operand.dtype), all = item * kAtOnce < 16 ? item * kAtOnce : 16;
    const int32_t step = operand.is_value ? 0 : g.strides[0][i];
    plan->step[i] = step;
    plan->together[i] = step == static_cast<int32_t>(item) && lies_in_steps_of(g, operand, i, all);
    if (i == 0 ? !plan->together[i] || item > 8 : step > kNear || step < -kNear) return false;
    g.strides[0][i] = step * kAtOnce;
  }
  g.sizes[0] = Divider(g.sizes[0].divisor / kAtOnce);
  g.numel /= kAtOnce;
  return true;
}

// Four neighbours of stored type S.
template <class S>
RL_BOTH inline Neighbours<S> read_neighbours(const char* from, int32_t step, bool together) {
  if (together) return *reinterpret_cast<const Neighbours<S>*>(from);
  Neighbours<S> all;
  RL_UNROLL for (int k = 0; k < kAtOnce; ++k) all.item[k] = *reinterpret_cast<const S*>(from + k * step);
  return all;
}

// The same as numbers of T, whatever memory holds.
template <class T>
RL_BOTH inline void read_neighbours(const Source<T>& source, int32_t at, int32_t step, bool together,
                                    T (&out)[kAtOnce]) {
  if (!source.data) {
    for (T& x : out) x = source.value;
    return;
  }
  visit_stored(source.dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    const Neighbours<S> all = read_neighbours<S>(source.data + at, step, together);
    for (int k = 0; k < kAtOnce; ++k) out[k] = number<T>(all.item[k]);
  });
}
template <class T>
RL_BOTH inline void write_neighbours(DType dtype, char* to, const T (&values)[kAtOnce]) {
  visit_stored(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    Neighbours<S> all;
    for (int k = 0; k < kAtOnce; ++k) all.item[k] = number<S>(values[k]);
    *reinterpret_cast<Neighbours<S>*>(to) = all;
  });
}

}  // namespace rushlight::cuda
