// What sampling a grid and its gradients share: a block of points is turned into a table of taps, positions
// and weights, once for all channels.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

#include "core/parallel.h"
#include "cpu/grid_sample.h"

namespace rushlight::cpu::RL_ISA {
namespace {

constexpr int kBlock = 64;
constexpr int kStep = 16;  // points that are computed together: a block is filled up to a multiple of them
constexpr size_t kAligned = 64;  // bytes, of tables of a block

// f(i) for points [0, n), and on to the end of a step: loops of known length become vectors without a rest.
template <class F>
[[gnu::always_inline]] inline void each_point(int n, F&& f) {
  for (int first = 0; first < n; first += kStep)
#pragma GCC ivdep
    for (int i = first; i < first + kStep; ++i) f(i);
}

// The number, or 0 where the mask is: no branch can foretell where points lie.
template <class C>
inline C kept(C x, int32_t mask) {
  using Bits = std::conditional_t<sizeof(C) == 8, int64_t, int32_t>;
  return std::bit_cast<C>(std::bit_cast<Bits>(x) & Bits{mask});
}

// The bits that are set for any point.
inline int32_t any_bits(const int32_t* of, int n) {
  int32_t any = 0;
  for (int i = 0; i < (n + kStep - 1) / kStep * kStep; ++i) any |= of[i];
  return any;
}

// What a block of points reads along one dimension: positions (-1: outside), weights and their slopes.
template <class C>
struct AxisTaps {
  int count = 0;
  alignas(kAligned) int32_t at[4][kBlock];
  alignas(kAligned) C weight[4][kBlock], slope[4][kBlock];
};

template <class C>
struct Coordinate {
  C value, slope;  // in pixels; slope by the normalised coordinate
};

// Points turned around at both ends, given doubled. Each function below is one step for all points and
// compares one thing at a time: so they become vectors. Slopes are for gradients alone.
template <bool sloped, class C>
inline void reflect(C low, C high, int n, C* x, C* slope) {
  if (low == high) {
    if constexpr (sloped) std::fill_n(slope, kBlock, C(0));
    return each_point(n, [&](int i) { x[i] = 0; });
  }
  const C start = low / 2, span = (high - low) / 2;
  each_point(n, [&](int i) {
    const C distance = x[i] - start, length = std::abs(distance);
    const C flips = std::floor(length / span), extra = length - flips * span;
    const C odd = flips - 2 * std::floor(flips / 2), turned = 1 - 2 * odd;
    if constexpr (sloped) slope[i] *= distance < 0 ? -turned : turned;
    x[i] = odd * span + turned * extra + start;
  });
}

template <bool sloped, class C>
inline void clip(C last, int n, C* x, C* slope) {
  each_point(n, [&](int i) {
    if constexpr (sloped) {
      const C flat = x[i] <= 0 ? C(0) : slope[i];
      slope[i] = x[i] >= last ? C(0) : flat;
    }
    const C raised = x[i] > 0 ? x[i] : C(0);
    x[i] = raised < last ? raised : last;
  });
}

template <class C, SamplePadding padding, bool sloped>
inline void pad(int64_t size, bool align_corners, int n, C* x, C* slope) {
  const C last = static_cast<C>(size - 1);
  if constexpr (padding == SamplePadding::Reflection)
    align_corners ? reflect<sloped>(C(0), 2 * last, n, x, slope)
                  : reflect<sloped>(C(-1), 2 * last + 1, n, x, slope);
  if constexpr (padding != SamplePadding::Zeros) clip<sloped>(last, n, x, slope);
}

// Numbers that no position can hold, NaN among them, lie outside.
template <class C>
inline C sane(C x) {
  return (x > C(-1e9)) & (x < C(1e9)) ? x : C(-100);
}
template <class C>
inline int32_t inside(C x, int64_t size) {
  return (x >= 0) & (x < static_cast<C>(size)) ? static_cast<int32_t>(x) : -1;
}

template <class C, SamplePadding padding, bool sloped>
void fill_axis(const SamplePlan& p, int64_t size, const C* given, int n, AxisTaps<C>& t) {
  const C scale = p.align_corners ? static_cast<C>(size - 1) / 2 : static_cast<C>(size) / 2;
  const C shift = p.align_corners ? C(0) : C(-0.5);
  alignas(kAligned) C x[kBlock], slope[kBlock];
  each_point(n, [&](int i) { x[i] = (given[i] + 1) * scale + shift; });
  if constexpr (sloped) std::fill_n(slope, kBlock, scale);
  if (p.mode == SampleMode::Bicubic) {
    t.count = 4;
    constexpr C a = C(-0.75);
    each_point(n, [&](int i) {
      const C base = std::floor(x[i]), u = x[i] - base;
      const C far = u + 1, near = u, mirrored = 1 - u, last = 2 - u;
      t.weight[0][i] = ((a * far - 5 * a) * far + 8 * a) * far - 4 * a;
      t.weight[1][i] = ((a + 2) * near - (a + 3)) * near * near + 1;
      t.weight[2][i] = ((a + 2) * mirrored - (a + 3)) * mirrored * mirrored + 1;
      t.weight[3][i] = ((a * last - 5 * a) * last + 8 * a) * last - 4 * a;
      if constexpr (!sloped) return;
      t.slope[0][i] = ((3 * a * far - 10 * a) * far + 8 * a) * slope[i];
      t.slope[1][i] = (3 * (a + 2) * near - 2 * (a + 3)) * near * slope[i];
      t.slope[2][i] = -(3 * (a + 2) * mirrored - 2 * (a + 3)) * mirrored * slope[i];
      t.slope[3][i] = -((3 * a * last - 10 * a) * last + 8 * a) * slope[i];
    });
    for (int k = 0; k < 4; ++k) {
      alignas(kAligned) C at[kBlock];
      each_point(n, [&](int i) { at[i] = std::floor(x[i]) + static_cast<C>(k - 1); });
      pad<C, padding, sloped>(size, p.align_corners, n, at, slope);
      each_point(n, [&](int i) { t.at[k][i] = inside(std::nearbyint(sane(at[i])), size); });
    }
    return;
  }
  pad<C, padding, sloped>(size, p.align_corners, n, x, slope);
  each_point(n, [&](int i) { x[i] = sane(x[i]); });
  if (p.mode == SampleMode::Nearest) {
    t.count = 1;
    each_point(n, [&](int i) {
      t.at[0][i] = inside(std::nearbyint(x[i]), size);
      if constexpr (sloped) t.weight[0][i] = 1, t.slope[0][i] = 0;
    });
    return;
  }
  t.count = 2;
  each_point(n, [&](int i) {
    const C base = std::floor(x[i]), u = x[i] - base;
    t.at[0][i] = inside(base, size), t.at[1][i] = inside(base + 1, size);
    t.weight[0][i] = 1 - u, t.weight[1][i] = u;
    if constexpr (sloped) t.slope[0][i] = -slope[i], t.slope[1][i] = slope[i];
  });
}

// Coordinate d of n points, which lie last dimension first; the last point once more up to the end of a step.
template <int dims, class C, class T>
void read_axis(const T* grid, int d, int n, C* __restrict to) {
  const T* from = grid + dims - 1 - d;
  if (n == kBlock) {  // a length that is known becomes vectors
    for (int i = 0; i < kBlock; ++i) to[i] = static_cast<C>(from[i * dims]);
    return;
  }
  for (int i = 0; i < n; ++i) to[i] = static_cast<C>(from[i * dims]);
  for (int i = n; i % kStep != 0; ++i) to[i] = to[n - 1];
}

// The taps of a block of points over all dimensions; those of its last point fill the step's end.
template <class T, bool with_slopes>
struct Taps {
  using C = compute_type<T>;
  AxisTaps<C> axis[3];
  int bits = 0;  // of the number of taps along a dimension
  bool all_inside = true;
  alignas(kAligned) int32_t offset[16][kBlock];  // -1: outside
  alignas(kAligned) C weight[16][kBlock];        // of more taps than one

  [[gnu::noinline]] void fill(const SamplePlan& p, const T* grid, int n) {
    alignas(kAligned) C given[kBlock];
    for (int d = 0; d < p.dims; ++d) {
      p.dims == 2 ? read_axis<2>(grid, d, n, given) : read_axis<3>(grid, d, n, given);
      const int64_t size = p.size[static_cast<size_t>(3 - p.dims + d)];
      if (p.padding == SamplePadding::Zeros)
        fill_axis<C, SamplePadding::Zeros, with_slopes>(p, size, given, n, axis[d]);
      else if (p.padding == SamplePadding::Border)
        fill_axis<C, SamplePadding::Border, with_slopes>(p, size, given, n, axis[d]);
      else
        fill_axis<C, SamplePadding::Reflection, with_slopes>(p, size, given, n, axis[d]);
    }
    int32_t signs = 0;
    for (int d = 0; d < p.dims; ++d)
      for (int j = 0; j < axis[0].count; ++j) signs |= any_bits(axis[d].at[j], n);
    all_inside = signs >= 0;
    bits = std::bit_width(static_cast<unsigned>(axis[0].count)) - 1;
    for (int k = 0; k < 1 << bits * p.dims; ++k) {
      place(p, k, n);
      if (bits > 0) weigh(p, k, n, -1, weight[k]);
    }
  }

  // The tap along dimension d that tap k is made of: 1, 2 or 4 there are.
  int tap(const SamplePlan& p, int k, int d) const {
    return k >> bits * (p.dims - 1 - d) & (axis[0].count - 1);
  }
  void place(const SamplePlan& p, int k, int n) {
    const int32_t *a = axis[0].at[tap(p, k, 0)], *b = axis[1].at[tap(p, k, 1)];
    int32_t* to = offset[k];
    const auto first = static_cast<int32_t>(p.step[static_cast<size_t>(3 - p.dims)]),
               second = static_cast<int32_t>(p.step[static_cast<size_t>(4 - p.dims)]);
    each_point(n, [&](int i) { to[i] = (a[i] | b[i]) < 0 ? -1 : a[i] * first + b[i] * second; });
    if (p.dims == 2) return;
    const int32_t* c = axis[2].at[tap(p, k, 2)];
    const auto third = static_cast<int32_t>(p.step[2]);
    each_point(n, [&](int i) { to[i] = (to[i] | c[i]) < 0 ? -1 : to[i] + c[i] * third; });
  }
  // The weight of tap k as the product over the dimensions, with the slope in dimension `sloped`; 0 outside.
  void weigh(const SamplePlan& p, int k, int n, int sloped, C* to) const {
    const C* of[3];
    for (int d = 0; d < p.dims; ++d) {
      const int j = tap(p, k, d);
      of[d] = d == sloped ? axis[d].slope[j] : axis[d].weight[j];
    }
    const int32_t* at = offset[k];
    if (p.dims == 2)
      each_point(n, [&](int i) { to[i] = kept(of[0][i] * of[1][i], ~(at[i] >> 31)); });
    else
      each_point(n, [&](int i) { to[i] = kept(of[0][i] * of[1][i] * of[2][i], ~(at[i] >> 31)); });
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

// The pixel of a tap, 0 outside.
template <bool all_inside, class T>
inline compute_type<T> pixel(const T* plane, int32_t at) {
  using C = compute_type<T>;
  if constexpr (all_inside) {
    return static_cast<C>(plane[at]);
  } else {
    const int32_t mask = ~(at >> 31);
    return kept(static_cast<C>(plane[at & mask]), mask);
  }
}

// f(number of taps, as a constant).
template <class F>
void visit_taps(const SamplePlan& p, F&& f) {
  if (p.mode == SampleMode::Nearest)
    f(std::integral_constant<int, 1>{});
  else if (p.mode == SampleMode::Bicubic)
    f(std::integral_constant<int, 16>{});
  else if (p.dims == 2)
    f(std::integral_constant<int, 4>{});
  else
    f(std::integral_constant<int, 8>{});
}

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
