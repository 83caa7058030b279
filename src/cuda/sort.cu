// Sorting lines: keys of one type for all dtypes, whose order is that of the elements, with their positions.
#include "cuda/channels.h"
#include "cuda/layers.h"
#ifdef __CUDACC__
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_segmented_radix_sort.cuh>
#endif

namespace rushlight::cuda {
namespace {

// NaN is the greatest of all, -0 equal to 0.
template <class S>
RL_BOTH uint64_t key_of(S stored) {
  if constexpr (std::is_integral_v<S>) {
    const auto wide = static_cast<uint64_t>(static_cast<int64_t>(stored));
    return std::is_signed_v<S> ? wide ^ uint64_t{1} << 63 : wide;
  } else {
    const auto value = number<double>(stored);
    if (value != value) return ~uint64_t{0};
    if (value == 0) return uint64_t{1} << 63;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits >> 63 ? ~bits : bits | uint64_t{1} << 63;
  }
}

template <class S>
struct MakeKeys {
  const S* in;
  uint64_t* keys;
  int64_t* order;
  int64_t n;
  bool descending;
  RL_BOTH void operator()(int64_t i) const {
    const uint64_t key = key_of(in[i]);
    keys[i] = descending ? ~key : key;
    order[i] = i % n;
  }
};

struct Pairs {
  uint64_t* keys;
  int64_t* order;
};

#ifndef __CUDACC__

// Merges neighbouring runs of `width`: an element's place is its own in its run and that in the other one.
struct Merge {
  Pairs from, to;
  int64_t n, width;
  RL_BOTH void operator()(int64_t i) const {
    const int64_t line = i / n, at = i - line * n, run = at / width;
    const bool left = run % 2 == 0;
    int64_t low = (left ? run + 1 : run - 1) * width, high = low + width;
    if (low > n) low = n;
    if (high > n) high = n;
    const int64_t other = low;
    const uint64_t key = from.keys[i];
    while (low < high) {  // equal elements of the left run come first
      const int64_t middle = low + (high - low) / 2;
      const uint64_t seen = from.keys[line * n + middle];
      if (left ? seen < key : seen <= key)
        low = middle + 1;
      else
        high = middle;
    }
    const int64_t place = line * n + (left ? run : run - 1) * width + (at - run * width) + (low - other);
    to.keys[place] = key, to.order[place] = from.order[i];
  }
};

// Leaves the order in `pairs`.
void sort_lines(const Launch& at, int64_t lines, int64_t n, Pairs pairs, Pairs spare) {
  Pairs from = pairs, to = spare;
  for (int64_t width = 1; width < n; width *= 2) {
    for_each_index(at, lines * n, Merge{from, to, n, width});
    std::swap(from, to);
  }
  if (from.order != pairs.order)
    for_each_index(at, lines * n, [from, pairs](int64_t i) { pairs.order[i] = from.order[i]; });
}

#else

struct LineStart {
  int64_t n;
  __host__ __device__ int64_t operator()(int64_t line) const { return line * n; }
};

void sort_lines(const Launch& at, int64_t lines, int64_t n, Pairs pairs, Pairs spare) {
  on_stream(at, [&](cudaStream_t stream) {
    size_t bytes = 0;
    auto run = [&](void* scratch) {
      const auto starts =
          thrust::make_transform_iterator(thrust::make_counting_iterator(int64_t{0}), LineStart{n});
      check(lines == 1 ? cub::DeviceRadixSort::SortPairs(scratch, bytes, pairs.keys, spare.keys, pairs.order,
                                                         spare.order, n, 0, 64, stream)
                       : cub::DeviceSegmentedRadixSort::SortPairs(scratch, bytes, pairs.keys, spare.keys,
                                                                  pairs.order, spare.order, lines * n, lines,
                                                                  starts, starts + 1, 0, 64, stream),
            "sort");
    };
    run(nullptr);
    DeviceBackend& backend = device_backend(DeviceType::CUDA);
    void* scratch = backend.allocate(bytes, at.device);
    run(scratch);
    backend.deallocate(scratch, bytes, at.device);
    check(cudaMemcpyAsync(pairs.order, spare.order, static_cast<size_t>(lines * n) * sizeof(int64_t),
                          cudaMemcpyDeviceToDevice, stream),
          "sort");
  });
}

#endif

}  // namespace

void sort(int device, DType dtype, const void* in, int64_t lines, int64_t n, bool descending,
          int64_t* order) {
  const Launch at{device, "sort"};
  DeviceBackend& backend = device_backend(DeviceType::CUDA);
  const size_t bytes = static_cast<size_t>(lines * n) * sizeof(uint64_t);
  auto* memory = static_cast<char*>(backend.allocate(3 * bytes, device));
  const Pairs pairs{reinterpret_cast<uint64_t*>(memory), order};
  const Pairs spare{reinterpret_cast<uint64_t*>(memory + bytes),
                    reinterpret_cast<int64_t*>(memory + 2 * bytes)};
  visit_stored(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    for_each_index(at, lines * n, MakeKeys<S>{static_cast<const S*>(in), pairs.keys, order, n, descending});
  });
  sort_lines(at, lines, n, pairs, spare);
  backend.deallocate(memory, 3 * bytes, device);
}

}  // namespace rushlight::cuda
