// Grid sampling, for each instruction set. A block of points is turned into a table of taps, positions and
// weights, once for all channels.
#include "cpu/grid_sample.h"

#include <algorithm>
#include <cmath>

#include "core/parallel.h"

namespace rushlight::cpu::RL_ISA {
namespace {

constexpr int kBlock = 64;

// What a block of points reads along one dimension: positions (-1: outside), weights and their slopes.
template <class C>
struct AxisTaps {
  int count = 0;
  int32_t at[4][kBlock];
  C weight[4][kBlock], slope[4][kBlock];
};

template <class C>
struct Coordinate {
  C value, slope;  // in pixels; slope by the normalised coordinate
};

template <class C>
inline C reflect(C x, C low, C high, C& slope) {  // low and high given doubled
  if (low == high) {
    slope = 0;
    return 0;
  }
  const C start = low / 2, span = (high - low) / 2, distance = x - start;
  const C length = std::abs(distance), flips = std::floor(length / span), extra = length - flips * span;
  const bool odd = flips - 2 * std::floor(flips / 2) != 0;
  slope *= (distance < 0) != odd ? C(-1) : C(1);
  return (odd ? span - extra : extra) + start;
}

template <class C>
inline C clip(C x, C last, C& slope) {
  slope = x <= 0 || x >= last ? C(0) : slope;
  const C raised = x > 0 ? x : C(0);
  return raised < last ? raised : last;
}

template <class C, SamplePadding padding>
inline C padded(C x, int64_t size, bool align_corners, C& slope) {
  const C last = static_cast<C>(size - 1);
  if constexpr (padding == SamplePadding::Reflection)
    x = align_corners ? reflect(x, C(0), 2 * last, slope) : reflect(x, C(-1), 2 * last + 1, slope);
  if constexpr (padding != SamplePadding::Zeros) x = clip(x, last, slope);
  return x;
}

// Numbers that no position can hold, NaN among them, lie outside.
template <class C>
inline C sane(C x) {
  return x > C(-1e9) && x < C(1e9) ? x : C(-100);
}
template <class C>
inline int32_t inside(C x, int64_t size) {
  return x >= 0 && x < static_cast<C>(size) ? static_cast<int32_t>(x) : -1;
}

template <class C, SamplePadding padding>
void fill_axis(const SamplePlan& p, int64_t size, const C* given, int n, AxisTaps<C>& t) {
  const C scale = p.align_corners ? static_cast<C>(size - 1) / 2 : static_cast<C>(size) / 2;
  const C shift = p.align_corners ? C(0) : C(-0.5);
  C x[kBlock], slope[kBlock];
  for (int i = 0; i < n; ++i) x[i] = (given[i] + 1) * scale + shift, slope[i] = scale;
  if (p.mode == SampleMode::Bicubic) {
    t.count = 4;
    constexpr C a = C(-0.75);
    for (int i = 0; i < n; ++i) {
      const C base = std::floor(x[i]), u = x[i] - base;
      const C far = u + 1, near = u, mirrored = 1 - u, last = 2 - u;
      t.weight[0][i] = ((a * far - 5 * a) * far + 8 * a) * far - 4 * a;
      t.weight[1][i] = ((a + 2) * near - (a + 3)) * near * near + 1;
      t.weight[2][i] = ((a + 2) * mirrored - (a + 3)) * mirrored * mirrored + 1;
      t.weight[3][i] = ((a * last - 5 * a) * last + 8 * a) * last - 4 * a;
      t.slope[0][i] = ((3 * a * far - 10 * a) * far + 8 * a) * slope[i];
      t.slope[1][i] = (3 * (a + 2) * near - 2 * (a + 3)) * near * slope[i];
      t.slope[2][i] = -(3 * (a + 2) * mirrored - 2 * (a + 3)) * mirrored * slope[i];
      t.slope[3][i] = -((3 * a * last - 10 * a) * last + 8 * a) * slope[i];
      for (int k = 0; k < 4; ++k) {
        C unused = 0;
        const C at = padded<C, padding>(base + static_cast<C>(k - 1), size, p.align_corners, unused);
        t.at[k][i] = inside(std::nearbyint(sane(at)), size);
      }
    }
    return;
  }
  for (int i = 0; i < n; ++i) x[i] = sane(padded<C, padding>(x[i], size, p.align_corners, slope[i]));
  if (p.mode == SampleMode::Nearest) {
    t.count = 1;
    for (int i = 0; i < n; ++i) {
      t.at[0][i] = inside(std::nearbyint(x[i]), size);
      t.weight[0][i] = 1, t.slope[0][i] = 0;
    }
    return;
  }
  t.count = 2;
  for (int i = 0; i < n; ++i) {
    const C base = std::floor(x[i]), u = x[i] - base;
    t.at[0][i] = inside(base, size), t.at[1][i] = inside(base + 1, size);
    t.weight[0][i] = 1 - u, t.weight[1][i] = u;
    t.slope[0][i] = -slope[i], t.slope[1][i] = slope[i];
  }
}

// The taps of a block of points over all dimensions.
template <class T>
struct Taps {
  using C = compute_type<T>;
  AxisTaps<C> axis[3];
  int count = 0;
  int32_t offset[16][kBlock];  // -1: outside
  C weight[16][kBlock];

  void fill(const SamplePlan& p, const T* grid, int n) {
    C given[kBlock];
    for (int d = 0; d < p.dims; ++d) {
      for (int i = 0; i < n; ++i) given[i] = static_cast<C>(grid[i * p.dims + p.dims - 1 - d]);
      const int64_t size = p.size[static_cast<size_t>(3 - p.dims + d)];
      if (p.padding == SamplePadding::Zeros)
        fill_axis<C, SamplePadding::Zeros>(p, size, given, n, axis[d]);
      else if (p.padding == SamplePadding::Border)
        fill_axis<C, SamplePadding::Border>(p, size, given, n, axis[d]);
      else
        fill_axis<C, SamplePadding::Reflection>(p, size, given, n, axis[d]);
    }
    const int each = axis[0].count;
    count = p.dims == 2 ? each * each : each * each * each;
    for (int k = 0; k < count; ++k) combine(p, k, n, -1, weight[k]);
  }

  int tap(const SamplePlan& p, int k, int d) const {
    for (int e = p.dims - 1; e > d; --e) k /= axis[0].count;
    return k % axis[0].count;
  }
  // The weight of tap k as the product over the dimensions, with the slope in dimension `sloped`.
  void combine(const SamplePlan& p, int k, int n, int sloped, C* to) {
    const auto& a = axis[0];
    const auto& b = axis[1];
    const int j = tap(p, k, 0), l = tap(p, k, 1);
    const C *wa = sloped == 0 ? a.slope[j] : a.weight[j], *wb = sloped == 1 ? b.slope[l] : b.weight[l];
    const auto width = static_cast<int32_t>(p.size[2]), height = static_cast<int32_t>(p.size[1]);
    const int32_t step = p.dims == 2 ? width : height;
    for (int i = 0; i < n; ++i) {
      const bool ok = a.at[j][i] >= 0 && b.at[l][i] >= 0;
      offset[k][i] = ok ? a.at[j][i] * step + b.at[l][i] : -1;
      to[i] = ok ? wa[i] * wb[i] : C(0);
    }
    if (p.dims == 2) return;
    const auto& c = axis[2];
    const int m = tap(p, k, 2);
    const C* wc = sloped == 2 ? c.slope[m] : c.weight[m];
    for (int i = 0; i < n; ++i) {
      const bool ok = offset[k][i] >= 0 && c.at[m][i] >= 0;
      offset[k][i] = ok ? offset[k][i] * width + c.at[m][i] : -1;
      to[i] = ok ? to[i] * wc[i] : C(0);
    }
  }
};

// Calls f(sample, first point, points) for blocks of points.
template <class F>
void for_blocks(const SamplePlan& p, int64_t cost, F&& f) {
  const int64_t blocks = (p.points + kBlock - 1) / kBlock;
  parallel_for(0, p.batch * blocks, std::max<int64_t>(1, kGrainSize / (kBlock * std::max<int64_t>(cost, 1))),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t first = i % blocks * kBlock;
                   f(i / blocks, first, static_cast<int>(std::min<int64_t>(kBlock, p.points - first)));
                 }
               });
}

template <class T, int K>
void gather(const Taps<T>& taps, int count, const T* plane, int n, T* out) {
  using C = compute_type<T>;
  C sum[kBlock] = {};
  const int taps_here = K > 0 ? K : count;
  for (int k = 0; k < taps_here; ++k) {
    const int32_t* at = taps.offset[k];
    const C* w = taps.weight[k];
    for (int i = 0; i < n; ++i) {
      const C value = static_cast<C>(plane[at[i] < 0 ? 0 : at[i]]);
      sum[i] += at[i] < 0 ? C(0) : w[i] * value;
    }
  }
  for (int i = 0; i < n; ++i) out[i] = T(sum[i]);
}

template <class T>
void sample(const SamplePlan& p, const T* input, const T* grid, T* out) {
  const int64_t plane = p.plane();
  for_blocks(p, p.channels * 8, [&](int64_t b, int64_t first, int n) {
    Taps<T> taps;
    taps.fill(p, grid + (b * p.points + first) * p.dims, n);
    for (int64_t c = b * p.channels; c < (b + 1) * p.channels; ++c) {
      const T* from = input + c * plane;
      T* to = out + c * p.points + first;
      if (taps.count == 4)
        gather<T, 4>(taps, 4, from, n, to);
      else if (taps.count == 1)
        gather<T, 1>(taps, 1, from, n, to);
      else if (taps.count == 8)
        gather<T, 8>(taps, 8, from, n, to);
      else
        gather<T, 0>(taps, taps.count, from, n, to);
    }
  });
}

// Points of one sample may meet at a pixel: the work is split by channels.
template <class T>
void scatter(const SamplePlan& p, const T* grad, const T* grid, T* grad_input) {
  using C = compute_type<T>;
  const int64_t plane = p.plane(), threads = get_num_threads();
  const int64_t piece = std::max<int64_t>(1, (p.batch * p.channels + threads - 1) / threads);
  const bool small = p.batch * p.channels * p.points * 8 < kGrainSize;
  parallel_for(0, p.batch * p.channels, small ? p.batch * p.channels : piece,
               [&](int64_t begin, int64_t end) {
                 while (begin < end) {
                   const int64_t b = begin / p.channels, stop = std::min(end, (b + 1) * p.channels);
                   for (int64_t first = 0; first < p.points; first += kBlock) {
                     const int n = static_cast<int>(std::min<int64_t>(kBlock, p.points - first));
                     Taps<T> taps;
                     taps.fill(p, grid + (b * p.points + first) * p.dims, n);
                     for (int64_t c = begin; c < stop; ++c) {
                       const T* g = grad + c * p.points + first;
                       T* to = grad_input + c * plane;
                       for (int k = 0; k < taps.count; ++k)
                         for (int i = 0; i < n; ++i) {
                           const int32_t at = taps.offset[k][i];
                           if (at >= 0)
                             to[at] = T(static_cast<C>(to[at]) + taps.weight[k][i] * static_cast<C>(g[i]));
                         }
                     }
                   }
                   begin = stop;
                 }
               });
}

template <class T>
void slopes(const SamplePlan& p, const T* grad, const T* input, const T* grid, T* grad_grid) {
  using C = compute_type<T>;
  const int64_t plane = p.plane();
  for_blocks(p, p.channels * 16, [&](int64_t b, int64_t first, int n) {
    Taps<T> taps;
    taps.fill(p, grid + (b * p.points + first) * p.dims, n);
    // flow[k][i]: what the gradient of point i says of tap k, over all channels.
    C flow[16][kBlock] = {};
    for (int64_t c = b * p.channels; c < (b + 1) * p.channels; ++c) {
      const T *from = input + c * plane, *g = grad + c * p.points + first;
      for (int k = 0; k < taps.count; ++k) {
        const int32_t* at = taps.offset[k];
        for (int i = 0; i < n; ++i) {
          const C value = static_cast<C>(from[at[i] < 0 ? 0 : at[i]]);
          flow[k][i] += at[i] < 0 ? C(0) : value * static_cast<C>(g[i]);
        }
      }
    }
    T* to = grad_grid + (b * p.points + first) * p.dims;
    for (int d = 0; d < p.dims; ++d) {
      C sum[kBlock] = {}, w[kBlock];
      for (int k = 0; k < taps.count; ++k) {
        taps.combine(p, k, n, d, w);
        for (int i = 0; i < n; ++i) sum[i] += w[i] * flow[k][i];
      }
      for (int i = 0; i < n; ++i) to[i * p.dims + p.dims - 1 - d] = T(sum[i]);
    }
  });
}

}  // namespace

void grid_sample(const SamplePlan& p, const void* input, const void* grid, void* out) {
  visit_dtype(FloatTypes{}, p.dtype, "grid_sampler", [&](auto tag) {
    using T = decltype(tag);
    sample(p, static_cast<const T*>(input), static_cast<const T*>(grid), static_cast<T*>(out));
  });
}

void grid_sample_backward(const SamplePlan& p, const void* grad, const void* input, const void* grid,
                          void* grad_input, void* grad_grid) {
  visit_dtype(FloatTypes{}, p.dtype, "grid_sampler_backward", [&](auto tag) {
    using T = decltype(tag);
    const T *g = static_cast<const T*>(grad), *where = static_cast<const T*>(grid);
    if (grad_input) scatter(p, g, where, static_cast<T*>(grad_input));
    if (grad_grid) slopes(p, g, static_cast<const T*>(input), where, static_cast<T*>(grad_grid));
  });
}

}  // namespace rushlight::cpu::RL_ISA
