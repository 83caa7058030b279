// Grid sampling, for each instruction set.
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

template <int K, class T>
void sample(const SamplePlan& p, const T* input, const T* grid, T* out) {
  for_blocks(p, p.channels * 8, [&](int64_t b, int64_t first, int n) {
    Taps<T> taps;
    taps.fill(p, grid + (b * p.points + first) * p.dims, n);
    for (int64_t c = 0; c < p.channels; ++c) {
      const T* plane = input + b * p.batch_step + c * p.channel_step;
      T* to = out + (b * p.channels + c) * p.points + first;
      if (taps.all_inside)
        gather<K, true>(taps, plane, n, to);
      else
        gather<K, false>(taps, plane, n, to);
    }
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
