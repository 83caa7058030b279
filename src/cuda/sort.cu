// Sorting lines: short ones in a block each, others by a radix sort of the device over all of them, whose
// keys hold the line's number above the element's.
#include "core/philox.h"
#include "cuda/launch.h"
#include "cuda/order.h"
#include "cuda/order_keys.h"
#include "cuda/workspace.h"

#ifdef __CUDACC__
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/device/device_radix_sort.cuh>
#else
#include <algorithm>
#include <numeric>
#include <vector>
#endif

namespace rushlight::cuda {
namespace {

#ifndef __CUDACC__

template <class W>
void sort_lines(const Launch& at, const DeviceLines& a, const KeyRule<W>& rule, W* values, int64_t* order) {
  const W* in = static_cast<const W*>(a.in);
  const int64_t n = a.n;
  enqueue_on_host(at, [=, lines = a.lines] {
    std::vector<int64_t> places(static_cast<size_t>(n));
    for (int64_t line = 0; line < lines; ++line) {
      const W* from = in + line * n;
      std::iota(places.begin(), places.end(), 0);
      std::stable_sort(places.begin(), places.end(),
                       [&](int64_t x, int64_t y) { return rule.key(from[x]) < rule.key(from[y]); });
      for (int64_t i = 0; i < n; ++i) {
        if (order) order[line * n + i] = places[i];
        // By way of the key, as on a device.
        W value;
        if (values)
          values[line * n + i] = rule.word(rule.key(from[places[i]]), &value) ? value : from[places[i]];
      }
    }
  });
}

#else

constexpr int64_t kMostInBlock = 4096;

// One line a block. Elements are read and written in turn by the threads; places fit in 16 bits.
template <class W, int threads, int items>
__global__ void __launch_bounds__(threads)
    block_sort(const W* in, W* values, int64_t* order, int n, KeyRule<W> rule) {
  using K = typename KeyRule<W>::K;
  using Exchange = cub::BlockExchange<K, threads, items>;
  using Sort = cub::BlockRadixSort<K, threads, items, uint16_t>;
  __shared__ union {
    typename Exchange::TempStorage exchange;
    typename Sort::TempStorage sort;
  } memory;
  const int64_t begin = int64_t{blockIdx.x} * n;
  K key[items];
  uint16_t place[items];
#pragma unroll
  for (int j = 0; j < items; ++j) {
    const int i = j * threads + static_cast<int>(threadIdx.x);
    key[j] = i < n ? rule.key(in[begin + i]) : rule.mask;  // beyond the end: last
  }
  Exchange(memory.exchange).StripedToBlocked(key, key);
#pragma unroll
  for (int j = 0; j < items; ++j) place[j] = static_cast<uint16_t>(threadIdx.x * items + j);
  __syncthreads();
  Sort(memory.sort).SortBlockedToStriped(key, place, 0, rule.bits);
#pragma unroll
  for (int j = 0; j < items; ++j) {
    const int i = j * threads + static_cast<int>(threadIdx.x);
    if (i >= n) continue;
    if (order) order[begin + i] = place[j];
    W value;
    if (values) values[begin + i] = rule.word(key[j], &value) ? value : in[begin + place[j]];
  }
}

template <class W, int threads, int items>
void launch_block_sort(const Launch& at, unsigned blocks, const W* in, W* values, int64_t* order, int n,
                       const KeyRule<W>& rule) {
  on_stream(at, [&](cudaStream_t stream) {
    // clang-format off: it takes the brackets apart
    block_sort<W, threads, items><<<blocks, threads, 0, stream>>>(in, values, order, n, rule);
    // clang-format on
  });
}

template <class W>
void sort_in_blocks(const Launch& at, const DeviceLines& a, const KeyRule<W>& rule, W* values,
                    int64_t* order) {
  constexpr int64_t kMostBlocks = INT32_MAX;
  const int n = static_cast<int>(a.n);
  for (int64_t line = 0; line < a.lines; line += kMostBlocks) {
    const auto blocks = static_cast<unsigned>(std::min(kMostBlocks, a.lines - line));
    const W* from = static_cast<const W*>(a.in) + line * n;
    W* to = values ? values + line * n : nullptr;
    int64_t* places = order ? order + line * n : nullptr;
    if (n <= 128)
      launch_block_sort<W, 32, 4>(at, blocks, from, to, places, n, rule);
    else if (n <= 1024)
      launch_block_sort<W, 128, 8>(at, blocks, from, to, places, n, rule);
    else
      launch_block_sort<W, 256, 16>(at, blocks, from, to, places, n, rule);
  }
}

// What is sorted ends in the current buffers.
template <class K, class P>
void radix_sort(const Launch& at, cub::DoubleBuffer<K>& keys, cub::DoubleBuffer<P>& places, int64_t n,
                int bits) {
  on_stream(at, [&](cudaStream_t stream) {
    size_t bytes = 0;
    auto run = [&](void* scratch) {
      check(cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, places, n, 0, bits, stream), at.name);
    };
    run(nullptr);
    const Workspace scratch(bytes, at.device);
    run(scratch.data());
  });
}
template <class K>
void radix_sort(const Launch& at, cub::DoubleBuffer<K>& keys, int64_t n, int bits) {
  on_stream(at, [&](cudaStream_t stream) {
    size_t bytes = 0;
    auto run = [&](void* scratch) {
      check(cub::DeviceRadixSort::SortKeys(scratch, bytes, keys, n, 0, bits, stream), at.name);
    };
    run(nullptr);
    const Workspace scratch(bytes, at.device);
    run(scratch.data());
  });
}

// Integers in ascending order, which need no keys.
template <class T>
void sort_words(const Launch& at, const void* in, int64_t n, void* out) {
  on_stream(at, [&](cudaStream_t stream) {
    size_t bytes = 0;
    auto run = [&](void* scratch) {
      check(cub::DeviceRadixSort::SortKeys(scratch, bytes, static_cast<const T*>(in), static_cast<T*>(out), n,
                                           0, 8 * static_cast<int>(sizeof(T)), stream),
            at.name);
    };
    run(nullptr);
    const Workspace scratch(bytes, at.device);
    run(scratch.data());
  });
}

template <class T>
struct Buffers {
  Workspace first, second;
  cub::DoubleBuffer<T> both;
  Buffers(int64_t n, int device)
      : first(static_cast<size_t>(n) * sizeof(T), device),
        second(static_cast<size_t>(n) * sizeof(T), device),
        both(static_cast<T*>(first.data()), static_cast<T*>(second.data())) {}
};

// `line_bits` above a key's own are the number of its line.
template <class W, class K, class P>
struct MakeKeys {
  KeyRule<W> rule;
  const W* in;
  K* keys;
  P* places;  // or null
  int64_t n;
  bool alone;
  __device__ void operator()(int64_t i) const {
    const int64_t line = alone ? 0 : i / n;
    const auto key = static_cast<K>(rule.key(in[i]));
    keys[i] = alone ? key : key | static_cast<K>(line) << rule.bits;
    if (places) places[i] = static_cast<P>(i - line * n);
  }
};
template <class W, class P>
struct WriteFromKeys {
  KeyRule<W> rule;
  const W* in;
  const typename KeyRule<W>::K* keys;
  const P* places;
  W* values;
  int64_t* order;
  __device__ void operator()(int64_t i) const {
    const auto place = static_cast<int64_t>(places[i]);
    if (order) order[i] = place;
    W value;
    if (values) values[i] = rule.word(keys[i], &value) ? value : in[place];
  }
};
template <class W>
struct WriteKeys {
  KeyRule<W> rule;
  const typename KeyRule<W>::K* keys;
  W* values;
  __device__ void operator()(int64_t i) const {
    W value;
    rule.word(keys[i], &value);
    values[i] = value;
  }
};
// Of several lines: places within their line, or among all elements.
template <class W>
struct WriteLines {
  const W* in;
  const uint32_t* places;
  W* values;
  int64_t* order;
  int64_t n;
  bool among_all;
  __device__ void operator()(int64_t i) const {
    const int64_t line = i / n, begin = line * n;
    const int64_t place = among_all ? places[i] - begin : places[i];
    if (order) order[i] = place;
    if (values) values[i] = in[begin + place];
  }
};
struct LineOfPlace {
  const uint32_t* places;
  uint32_t* lines;
  int64_t n;
  __device__ void operator()(int64_t i) const { lines[i] = static_cast<uint32_t>(places[i] / n); }
};

template <class W, class P>
void sort_line(const Launch& at, const W* in, int64_t n, const KeyRule<W>& rule, W* values, int64_t* order) {
  using K = typename KeyRule<W>::K;
  if constexpr (sizeof(W) >= 4)
    if (!order && !rule.floating && rule.down == 0)
      return rule.flipped ? sort_words<std::make_signed_t<W> >(at, in, n, values)
                          : sort_words<W>(at, in, n, values);
  Buffers<K> keys(n, at.device);
  if (!order && !rule.floating) {
    for_each_index(at, n, MakeKeys<W, K, P>{rule, in, keys.both.Current(), nullptr, n, true});
    radix_sort(at, keys.both, n, rule.bits);
    return for_each_index(at, n, WriteKeys<W>{rule, keys.both.Current(), values});
  }
  Buffers<P> places(n, at.device);
  for_each_index(at, n, MakeKeys<W, K, P>{rule, in, keys.both.Current(), places.both.Current(), n, true});
  radix_sort(at, keys.both, places.both, n, rule.bits);
  for_each_index(at, n,
                 WriteFromKeys<W, P>{rule, in, keys.both.Current(), places.both.Current(), values, order});
}

// Lines whose numbers fit above the keys.
template <class W, class K>
void sort_composite(const Launch& at, const DeviceLines& a, const KeyRule<W>& rule, int bits, W* values,
                    int64_t* order) {
  const W* in = static_cast<const W*>(a.in);
  const int64_t all = a.lines * a.n;
  Buffers<K> keys(all, at.device);
  Buffers<uint32_t> places(all, at.device);
  for_each_index(at, all,
                 MakeKeys<W, K, uint32_t>{rule, in, keys.both.Current(), places.both.Current(), a.n, false});
  radix_sort(at, keys.both, places.both, all, bits);
  for_each_index(at, all, WriteLines<W>{in, places.both.Current(), values, order, a.n, false});
}
// Others: by the elements, then by the lines, which keeps the order of the elements.
template <class W>
void sort_in_turn(const Launch& at, const DeviceLines& a, const KeyRule<W>& rule, int line_bits, W* values,
                  int64_t* order) {
  using K = typename KeyRule<W>::K;
  const W* in = static_cast<const W*>(a.in);
  const int64_t all = a.lines * a.n;
  Buffers<uint32_t> places(all, at.device);
  {
    Buffers<K> keys(all, at.device);
    for_each_index(at, all,
                   MakeKeys<W, K, uint32_t>{rule, in, keys.both.Current(), places.both.Current(), all, true});
    radix_sort(at, keys.both, places.both, all, rule.bits);
  }
  Buffers<uint32_t> lines(all, at.device);
  for_each_index(at, all, LineOfPlace{places.both.Current(), lines.both.Current(), a.n});
  radix_sort(at, lines.both, places.both, all, line_bits);
  for_each_index(at, all, WriteLines<W>{in, places.both.Current(), values, order, a.n, true});
}

template <class W>
void sort_lines(const Launch& at, const DeviceLines& a, const KeyRule<W>& rule, W* values, int64_t* order) {
  constexpr int64_t kMostPlaces = int64_t{1} << 32, kLong = int64_t{1} << 18;
  if (a.n <= kMostInBlock) return sort_in_blocks(at, a, rule, values, order);
  int line_bits = 0;
  while ((a.lines - 1) >> line_bits > 0) ++line_bits;
  const int bits = rule.bits + line_bits;
  if (a.lines > 1 && (a.n < kLong || a.lines > 64)) {
    if (bits <= 32) return sort_composite<W, uint32_t>(at, a, rule, bits, values, order);
    if (bits <= 64) return sort_composite<W, uint64_t>(at, a, rule, bits, values, order);
    if (a.lines <= kMostPlaces / a.n) return sort_in_turn(at, a, rule, line_bits, values, order);
  }
  for (int64_t line = 0; line < a.lines; ++line) {
    const W* in = static_cast<const W*>(a.in) + line * a.n;
    W* to = values ? values + line * a.n : nullptr;
    int64_t* places = order ? order + line * a.n : nullptr;
    if (a.n <= kMostPlaces)
      sort_line<W, uint32_t>(at, in, a.n, rule, to, places);
    else
      sort_line<W, int64_t>(at, in, a.n, rule, to, places);
  }
}

#endif

template <class K>
struct FlipSign {
  K* keys;
  RL_BOTH void operator()(int64_t i) const { keys[i] ^= K(1) << (8 * sizeof(K) - 1); }
};
#ifdef __CUDACC__
template <class P>
struct Count {
  P* out;
  __device__ void operator()(int64_t i) const { out[i] = static_cast<P>(i); }
};
struct Widen {
  const uint32_t* from;
  int64_t* to;
  __device__ void operator()(int64_t i) const { to[i] = from[i]; }
};
#endif
// What lies among equal keys is shuffled by a thread of each such island, as PyTorch does.
template <class K>
struct ShuffleEqual {
  const K* keys;
  K mask;
  int64_t* out;
  int64_t n;
  uint64_t seed, offset;
  const uint64_t* base;
  RL_BOTH bool same(int64_t i, int64_t j) const { return ((keys[i] ^ keys[j]) & mask) == 0; }
  RL_BOTH void operator()(int64_t i) const {
    if (i + 1 >= n || !same(i, i + 1) || (i > 0 && same(i, i - 1))) return;
    int64_t size = 2;
    while (i + size < n && same(i, i + size)) ++size;
    const uint64_t key = base ? base[0] : seed, start = (base ? base[1] + offset : offset) / 4;
    uint32_t drawn[4];
    for (int64_t j = size - 1, d = 0; j > 0; --j, ++d) {
      if (d % 4 == 0) Philox(key, static_cast<uint64_t>(i), start + static_cast<uint64_t>(d / 4)).draw(drawn);
      const int64_t other = drawn[d % 4] % static_cast<uint32_t>(j + 1), moved = out[i + j];
      out[i + j] = out[i + other], out[i + other] = moved;
    }
  }
};

template <class K>
void permute(const Launch& at, K* keys, int bits, int64_t n, uint64_t seed, uint64_t offset,
             const uint64_t* base, int64_t* out) {
  const K mask = static_cast<K>(~uint64_t{0} >> (64 - bits));
  // All bits: signed numbers, as PyTorch's keys are.
  if (bits == 8 * static_cast<int>(sizeof(K))) for_each_index(at, n, FlipSign<K>{keys});
#ifdef __CUDACC__
  const Workspace spare(static_cast<size_t>(n) * sizeof(K), at.device);
  cub::DoubleBuffer<K> both(keys, static_cast<K*>(spare.data()));
  Buffers<uint32_t> places(n, at.device);
  for_each_index(at, n, Count<uint32_t>{places.both.Current()});
  radix_sort(at, both, places.both, n, bits);
  for_each_index(at, n, Widen{places.both.Current(), out});
  const K* sorted = both.Current();
#else
  const K* sorted = keys;
  enqueue_on_host(at, [=] {
    std::iota(out, out + n, 0);
    std::stable_sort(out, out + n, [=](int64_t a, int64_t b) { return (keys[a] & mask) < (keys[b] & mask); });
    std::sort(keys, keys + n, [=](K a, K b) { return (a & mask) < (b & mask); });
  });
#endif
  for_each_index(at, n, ShuffleEqual<K>{sorted, mask, out, n, seed, offset, base});
}

}  // namespace

void permutation(int device, void* keys, bool wide, int bits, int64_t n, uint64_t seed, uint64_t offset,
                 const uint64_t* base, int64_t* out) {
  const Launch at{device, "randperm"};
  if (wide)
    permute(at, static_cast<uint64_t*>(keys), bits, n, seed, offset, base, out);
  else
    permute(at, static_cast<uint32_t*>(keys), bits, n, seed, offset, base, out);
}

void sort_in_order(const DeviceLines& a, bool descending, void* values, int64_t* order) {
  visit_key_words(a.dtype, [&](auto tag) {
    using W = typename decltype(tag)::type;
    sort_lines<W>({a.device, "sort"}, a, KeyRule<W>(a.dtype, descending), static_cast<W*>(values), order);
  });
}

}  // namespace rushlight::cuda
