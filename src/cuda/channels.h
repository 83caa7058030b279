// Sums over all elements of each channel, in parts that a second pass joins in order.
#pragma once
#include <algorithm>

#include "cpu/norm.h"
#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/memory.h"

namespace rushlight::cuda {

// What elements of type S compute in.
template <class S>
using ComputeOf = std::conditional_t<std::is_same_v<S, double>, double, float>;

// Calls f(Tag<S>{}) for the stored type of a floating dtype.
template <class F>
void visit_floating(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Float16:
      return f(Tag<StoredHalf>{});
    case DType::BFloat16:
      return f(Tag<StoredBFloat16>{});
    case DType::Float64:
      return f(Tag<double>{});
    default:
      return f(Tag<float>{});
  }
}

// Two sums of one pass.
template <class C>
struct Two {
  C first, second;
};
struct AddTwo {
  template <class C>
  RL_BOTH Two<C> operator()(const Two<C>& a, const Two<C>& b) const {
    return {a.first + b.first, a.second + b.second};
  }
};

// One part of one channel. item(outer, channel, offset) is what the element at `offset` contributes.
template <class T, class Join, class Item>
struct ChannelPart {
  Item item;
  Join join;
  T start;
  T* partial;
  int64_t channels, inner, count, length;
  RL_BOTH void operator()(const Block& block) const {
    const int64_t part = block.index / channels, c = block.index - part * channels;
    const int64_t begin = part * length, end = begin + length < count ? begin + length : count;
    T total = start;
    for (int64_t p = begin + block.thread; p < end; p += block.threads) {
      const int64_t o = inner == 1 ? p : p / inner, i = inner == 1 ? 0 : p - o * inner;
      total = join(total, item(o, c, (o * channels + c) * inner + i));
    }
    total = block_reduce(block, total, join);
    if (block.thread == 0) partial[block.index] = total;
  }
};
template <class T, class Join, class Finish>
struct ChannelTotal {
  Join join;
  Finish finish;
  const T* partial;
  int64_t channels, parts;
  RL_BOTH void operator()(int64_t c) const {
    T total = partial[c];
    for (int64_t k = 1; k < parts; ++k) total = join(total, partial[k * channels + c]);
    finish(c, total);
  }
};

// finish(channel, total) for every channel of [outer, channels, inner].
template <class T, class Join, class Item, class Finish>
void reduce_channels(const Launch& at, cpu::ChannelShape s, T start, Join join, const Item& item,
                     const Finish& finish) {
  const int64_t count = s.outer * s.inner;
  if (s.channels == 0) return;
  // Channels that are neighbours in memory have a thread each, others a block.
  const bool alone = s.inner == 1 && s.channels >= 16;
  const int64_t wanted = (alone ? 65536 : 1024) / s.channels + 1, least = alone ? 32 : 2048;
  int64_t parts = std::clamp<int64_t>(count / least, 1, std::min<int64_t>(wanted, 1024));
  const int64_t length = std::max<int64_t>((count + parts - 1) / parts, 1);
  parts = std::max<int64_t>((count + length - 1) / length, 1);
  DeviceBackend& backend = device_backend(DeviceType::CUDA);
  const size_t bytes = static_cast<size_t>(parts * s.channels) * sizeof(T);
  auto* partial = static_cast<T*>(backend.allocate(bytes, at.device));
  const ChannelPart<T, Join, Item> part{item, join, start, partial, s.channels, s.inner, count, length};
  if (alone)
    for_each_index(at, parts * s.channels, AloneInBlock<ChannelPart<T, Join, Item>>{part});
  else
    for_each_block(at, parts * s.channels, part);
  for_each_index(at, s.channels, ChannelTotal<T, Join, Finish>{join, finish, partial, s.channels, parts});
  backend.deallocate(partial, bytes, at.device);
}

}  // namespace rushlight::cuda
