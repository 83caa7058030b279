// Lines of convolutions in which each channel meets its own filter, for each instruction set.
#include "cpu/depthwise_lines.h"

#include "cpu/isa/tile_inl.h"

namespace rushlight::cpu::RL_ISA {

#if !defined(__AVX2__) && !defined(__wasm_simd128__)

DepthwiseLineKernels depthwise_line_kernels() { return {}; }

#else

namespace {

using Vector = Lanes<float>::type;
constexpr int kLanes = Lanes<float>::count, kVectors = kRegisters >= 32 ? 4 : 2;

// R pixels from x on, V vectors of channels; of the filters' columns those in [first, last).
template <int R, int V>
void convolve_pixels(const DepthwiseLine& d, int64_t x, int64_t channel, int64_t first, int64_t last) {
  Vector sums[R][V];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      sums[r][v] = Vector{} - 0.0f;
      if (d.bias) load(sums[r][v], d.bias + channel + v * kLanes);
    }
  const int64_t step = d.stride * d.channels, vector_step = d.height * d.width * kLanes;
  for (int64_t h = 0; h < d.height; ++h) {
    if (!d.lines[h]) continue;
    const float* pixel = d.lines[h] + (x * d.stride - d.padding + first * d.dilation) * d.channels + channel;
    // Caches do not foresee the next pixels, since the channels of these come first.
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
      __builtin_prefetch(pixel + (R + r) * step + (last - first - 1) * d.dilation * d.channels);
    const float* filter = d.filters + channel * d.height * d.width + (h * d.width + first) * kLanes;
    for (int64_t w = first; w < last; ++w, pixel += d.dilation * d.channels, filter += kLanes) {
      Vector b[V];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) load(b[v], filter + v * vector_step);
      const float* a = pixel;
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r, a += step)
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) {
          Vector factor;
          load(factor, a + v * kLanes);
          sums[r][v] += factor * b[v];
        }
    }
  }
  const Vector low = Vector{} + d.low, high = Vector{} + d.high;
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const Vector y = clamped(sums[r][v], low, high);
      __builtin_memcpy(d.out + (x + r) * d.channels + channel + v * kLanes, &y, sizeof(y));
    }
}

template <int R>
void convolve_channels(const DepthwiseLine& d, int64_t x, int64_t first, int64_t last) {
  for (int64_t left = d.channels / kLanes, c = 0; left > 0;) {
    const int width = left >= kVectors ? kVectors : left >= 2 ? 2 : 1;
    if constexpr (kVectors == 4)
      if (width == 4) convolve_pixels<R, 4>(d, x, c, first, last);
    if (width == 2) convolve_pixels<R, 2>(d, x, c, first, last);
    if (width == 1) convolve_pixels<R, 1>(d, x, c, first, last);
    left -= width, c += width * kLanes;
  }
}

void line(const DepthwiseLine& d) {
  constexpr int kPixels = 4;
  const int64_t reach = (d.width - 1) * d.dilation;
  for (int64_t x = 0; x < d.out_width;) {
    const int64_t at = x * d.stride - d.padding;
    if (x + kPixels <= d.out_width && at >= 0 && at + (kPixels - 1) * d.stride + reach < d.in_width) {
      convolve_channels<kPixels>(d, x, 0, d.width);
      x += kPixels;
      continue;
    }
    int64_t first = 0, last = d.width;
    while (first < last && at + first * d.dilation < 0) ++first;
    while (last > first && at + (last - 1) * d.dilation >= d.in_width) --last;
    convolve_channels<1>(d, x, first, last);
    ++x;
  }
}

// The sums of `T` taps stay in registers while the pixels pass.
template <int T>
void add_taps(const DepthwiseSums& d, const DepthwiseTap* taps) {
  for (int64_t c = 0; c < d.channels; c += kLanes) {
    const int64_t place = c / kLanes * d.vector_step;
    Vector sums[T];
    const float* image[T];
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) load(sums[t], taps[t].sums + place), image[t] = taps[t].image + c;
    const float* gradient = d.gradient + c;
    int64_t at = 0;
    for (int64_t x = 0; x < d.pixels; ++x, gradient += d.channels, at += d.stride * d.channels) {
      Vector g;
      load(g, gradient);
#pragma GCC unroll 16
      for (int t = 0; t < T; ++t) {
        Vector pixel;
        load(pixel, image[t] + at);
        sums[t] += g * pixel;
      }
    }
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) __builtin_memcpy(taps[t].sums + place, &sums[t], sizeof(Vector));
  }
}

void add(const DepthwiseSums& d) {
  call_with_rows<DepthwiseSums::kMost>(d.count, 0, [&]<int T>(int64_t) { add_taps<T>(d, d.taps); });
}

}  // namespace

DepthwiseLineKernels depthwise_line_kernels() { return {kLanes, line, add}; }

#endif

}  // namespace rushlight::cpu::RL_ISA
