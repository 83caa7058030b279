// Grid sampling, for each instruction set.
#include <cstring>

#include "cpu/isa/grid_sample_inl.h"

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

// Taps k and k + 1 read neighbours of a line: one load of both is half the work. A tap outside gets the place
// beside its neighbour's and the mask 0.
template <int K, class T>
struct Pairs {
  using Bits = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  struct Pixels {
    T first, second;
  };
  int32_t offset[K / 2][kBlock];
  T weight[K][kBlock];
  Bits mask[K][kBlock];

  static bool fit(const SamplePlan& p) { return p.step[2] == 1 && p.size[2] >= 2 && p.size[2] < (1 << 24); }

  // False where the taps of a point are no neighbours, at borders that repeat a pixel.
  [[gnu::noinline]] bool fill(const Taps<T>& taps, int n) {
    int32_t apart = 0;
    for (int j = 0; j < K; j += 2) {
      const int32_t *a = taps.offset[j], *b = taps.offset[j + 1];
      const T *u = taps.weight[j], *v = taps.weight[j + 1];
      each_point(n, [&](int i) {
        const bool left = a[i] >= 0, right = b[i] >= 0, both = left && right;
        apart |= both ? b[i] - a[i] - 1 : 0;
        // At the left end the second pixel comes first, at the right end the first one second.
        const int32_t before = a[i] > 0 ? a[i] - 1 : 0;
        offset[j / 2][i] = both ? a[i] : right ? b[i] : before;
        weight[j][i] = both ? u[i] : v[i];
        weight[j + 1][i] = both ? v[i] : u[i];
        mask[j][i] = -Bits{right};
        mask[j + 1][i] = -Bits{left};
      });
    }
    return apart == 0;
  }

  void gather(const T* plane, int n, T* out) const {
    T sum[kBlock] = {};
    Pixels read[kBlock] = {};
    for (int j = 0; j < K; j += 2) {
      for (int i = 0; i < n; ++i) std::memcpy(&read[i], plane + offset[j / 2][i], sizeof(Pixels));
      each_point(n, [&](int i) {
        sum[i] += weight[j][i] * kept(read[i].first, mask[j][i]);
        sum[i] += weight[j + 1][i] * kept(read[i].second, mask[j + 1][i]);
      });
    }
    for (int i = 0; i < n; ++i) out[i] = sum[i];
  }
  static T kept(T pixel, Bits mask) { return std::bit_cast<T>(std::bit_cast<Bits>(pixel) & mask); }
};

template <int K, class T>
void sample(const SamplePlan& p, const T* input, const T* grid, T* out) {
  constexpr bool may_pair = K > 1 && std::is_floating_point_v<T>;
  for_blocks(p, p.channels * 8, [&](int64_t b, int64_t first, int n) {
    Taps<T> taps;
    taps.fill(p, grid + (b * p.points + first) * p.dims, n);
    const auto each_plane = [&](auto&& run) {
      for (int64_t c = 0; c < p.channels; ++c)
        run(input + b * p.batch_step + c * p.channel_step, out + (b * p.channels + c) * p.points + first);
    };
    if constexpr (may_pair) {
      if (Pairs<K, T> pairs; Pairs<K, T>::fit(p) && pairs.fill(taps, n))
        return each_plane([&](const T* plane, T* to) { pairs.gather(plane, n, to); });
    }
    if (taps.all_inside)
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
