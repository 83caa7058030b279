// Grid sampling, for each instruction set.
#include <cstring>

#include "cpu/isa/grid_sample_inl.h"

// Vectors passed between functions of this file alone.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace rushlight::cpu::RL_ISA {
namespace {

template <int K, bool all_inside, class T>
void gather(const Taps<T>& taps, const T* plane, int n, T* out) {
  using C = compute_type<T>;
  if constexpr (K == 1) {
    for (int i = 0; i < n; ++i) out[i] = T(pixel<all_inside>(plane, taps.offset[0][i]));
    return;
  }
  C sum[kBlock] = {};
  for (int k = 0; k < K; ++k) {
    const int32_t* at = taps.offset[k];
    const C* w = taps.weight[k];
    for (int i = 0; i < n; ++i) sum[i] += w[i] * pixel<all_inside>(plane, at[i]);
  }
  for (int i = 0; i < n; ++i) out[i] = T(sum[i]);
}

// Pixels of four points in one register, which what is read never leaves for memory.
template <class T>
struct Four {
  static constexpr int kLanes = 4;
  using Bits = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  typedef T type __attribute__((vector_size(kLanes * sizeof(T))));
  typedef Bits Masks __attribute__((vector_size(kLanes * sizeof(T))));

  template <class V, class E>
  static V load(const E* from) {
    V to;
    std::memcpy(&to, from, sizeof(V));
    return to;
  }
  static type kept(const type& pixels, const Bits* mask) { return type(Masks(pixels) & load<Masks>(mask)); }
  static type pixels(const T* plane, const int32_t* at) {
    return type{plane[at[0]], plane[at[1]], plane[at[2]], plane[at[3]]};
  }
  struct Both {
    type first, second;
  };
  // The pixels at the places and those behind them.
  static Both neighbours(const T* plane, const int32_t* at) {
    if constexpr (sizeof(T) == 4) {
      typedef double Two __attribute__((vector_size(2 * sizeof(double))));
      const auto two = [&](int i) {
        double low, high;  // two pixels each
        std::memcpy(&low, plane + at[i], sizeof(low));
        std::memcpy(&high, plane + at[i + 1], sizeof(high));
        return type(Two{low, high});
      };
      const type left = two(0), right = two(2);
      return {__builtin_shufflevector(left, right, 0, 2, 4, 6),
              __builtin_shufflevector(left, right, 1, 3, 5, 7)};
    } else {
      return {pixels(plane, at), pixels(plane + 1, at)};
    }
  }
};

// Calls four(i) for the first of each four of n points, which gives their results.
template <class T, class F>
[[gnu::always_inline]] inline void each_four(int n, T* out, F&& four) {
  T rest[kBlock];
  T* to = n % Four<T>::kLanes == 0 ? out : rest;
  for (int i = 0; i < n; i += Four<T>::kLanes) {
    const auto results = four(i);
    std::memcpy(to + i, &results, sizeof(results));
  }
  if (to == rest) std::copy_n(rest, n, out);
}

// Taps k and k + 1 read neighbours of a line: one load of both is half the work. A tap outside gets the place
// beside its neighbour's and the mask 0.
template <int K, class T>
struct Reads {
  using Bits = typename Four<T>::Bits;
  alignas(kAligned) int32_t offset[K / 2][kBlock];
  alignas(kAligned) T weight[K][kBlock];
  alignas(kAligned) Bits mask[K][kBlock];

  static bool fit(const SamplePlan& p) { return p.step[2] == 1 && p.size[2] >= 2 && p.size[2] < (1 << 24); }

  // False where the taps of a point are no neighbours, at borders that repeat a pixel.
  [[gnu::noinline]] bool fill(const Taps<T>& taps, int n) {
    int32_t any = 0;
    alignas(kAligned) int32_t apart[kBlock];
    for (int j = 0; j < K; j += 2) {
      const int32_t *a = taps.offset[j], *b = taps.offset[j + 1];
      const T *u = taps.weight[j], *v = taps.weight[j + 1];
      each_point(n, [&](int i) {
        const int32_t left = ~(a[i] >> 31), right = ~(b[i] >> 31), both = left & right;
        // At the left end the second pixel comes first, at the right end the first one second.
        const int32_t before = std::max(a[i] - 1, 0);
        offset[j / 2][i] = (a[i] & both) | (b[i] & right & ~left) | (before & ~right);
        weight[j][i] = one_of(both, u[i], v[i]);
        weight[j + 1][i] = one_of(both, v[i], u[i]);
        mask[j][i] = right, mask[j + 1][i] = left;
        apart[i] = (b[i] - a[i] - 1) & both;
      });
      any |= any_bits(apart, n);
    }
    return any == 0;
  }

  static T one_of(Bits first, T x, T y) {
    return std::bit_cast<T>((std::bit_cast<Bits>(x) & first) | (std::bit_cast<Bits>(y) & ~first));
  }
  void gather(const T* plane, int n, T* out) const {
    using V = typename Four<T>::type;
    each_four(n, out, [&](int i) {
      V sum{};
      for (int j = 0; j < K; j += 2) {
        const auto read = Four<T>::neighbours(plane, &offset[j / 2][i]);
        sum += Four<T>::template load<V>(&weight[j][i]) * Four<T>::kept(read.first, &mask[j][i]);
        sum += Four<T>::template load<V>(&weight[j + 1][i]) * Four<T>::kept(read.second, &mask[j + 1][i]);
      }
      return sum;
    });
  }
};

// The nearest pixel alone.
template <class T>
struct Reads<1, T> {
  using Bits = typename Four<T>::Bits;
  alignas(kAligned) int32_t offset[kBlock];
  alignas(kAligned) Bits mask[kBlock];

  static bool fit(const SamplePlan&) { return true; }
  [[gnu::noinline]] bool fill(const Taps<T>& taps, int n) {
    const int32_t* at = taps.offset[0];
    each_point(n, [&](int i) {
      const int32_t inside = ~(at[i] >> 31);
      offset[i] = at[i] & inside, mask[i] = inside;
    });
    return true;
  }
  void gather(const T* plane, int n, T* out) const {
    each_four(n, out, [&](int i) { return Four<T>::kept(Four<T>::pixels(plane, offset + i), mask + i); });
  }
};

template <int K, class T>
void sample(const SamplePlan& p, const T* input, const T* grid, T* out) {
  for_blocks(p, p.channels * 8, [&](int64_t b, int64_t first, int n) {
    Taps<T> taps;
    taps.fill(p, grid + (b * p.points + first) * p.dims, n);
    const auto each_plane = [&](auto&& run) {
      for (int64_t c = 0; c < p.channels; ++c)
        run(input + b * p.batch_step + c * p.channel_step, out + (b * p.channels + c) * p.points + first);
    };
    if constexpr (std::is_floating_point_v<T>) {
      if (Reads<K, T> reads; Reads<K, T>::fit(p) && reads.fill(taps, n))
        return each_plane([&](const T* plane, T* to) { reads.gather(plane, n, to); });
    }
    if (taps.all_inside && !std::is_floating_point_v<T>)  // of these, what comes here is rare
      each_plane([&](const T* plane, T* to) { gather<K, true>(taps, plane, n, to); });
    else
      each_plane([&](const T* plane, T* to) { gather<K, false>(taps, plane, n, to); });
  });
}

}  // namespace

void grid_sample(const SamplePlan& p, const void* input, const void* grid, void* out) {
  visit_dtype(FloatTypes{}, p.dtype, "grid_sampler", [&]<class T>(T) {
    visit_taps(p, [&](auto taps) {
      sample<taps()>(p, static_cast<const T*>(input), static_cast<const T*>(grid), static_cast<T*>(out));
    });
  });
}

}  // namespace rushlight::cpu::RL_ISA
