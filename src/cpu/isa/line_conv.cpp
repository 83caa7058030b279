// Tiles of convolutions by lines, for each instruction set.
#include "cpu/line_conv.h"

#include "cpu/isa/tile_inl.h"

namespace rushlight::cpu::RL_ISA {

#if !defined(__AVX2__)

LineConvKernels line_conv_kernels() { return {}; }

#else

namespace {

using Vector = Lanes<float>::type;
constexpr int kLanes = Lanes<float>::count;

// Columns may end within the last vector.
[[gnu::noinline]] void store_some(const float* tile, int rows, int64_t width, const LineProduct& p,
                                  float* out) {
  for (int r = 0; r < rows; ++r, out += p.out_step, tile += width)
    for (int64_t c = 0; c < p.columns; ++c) out[c] = tile[c];
}

template <int R, int V>
void multiply_tile_at(const LineProduct& p, int64_t pixel) {
  Vector sums[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) load(sums[r][v], p.bias + v * kLanes);
  const float* a[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) a[r] = p.image + (pixel + r) * p.pixel_step;
  const float* b = p.panel;
  for (int64_t tap = 0; tap < p.taps; ++tap)
    for (int64_t i = p.offsets[tap], end = i + p.run; i < end; ++i, b += V * kLanes) {
      Vector f[V];
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) load(f[v], b + v * kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const float factor = a[r][i];
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) sums[r][v] += factor * f[v];
      }
    }
  float* out = p.out + pixel * p.out_step;
  if (p.columns == V * kLanes) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r, out += p.out_step)
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) __builtin_memcpy(out + v * kLanes, &sums[r][v], sizeof(Vector));
    return;
  }
  alignas(kRegisterBytes) float tile[R * V * kLanes];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) __builtin_memcpy(tile + (r * V + v) * kLanes, &sums[r][v], sizeof(Vector));
  store_some(tile, R, V * kLanes, p, out);
}

// One vector takes more pixels, so that enough sums are under way.
template <int V>
constexpr int kPixels = V == 1 ? 8 : 6;

template <int V>
void multiply_panel(const LineProduct& p, int64_t pixels) {
  for (int64_t pixel = 0; pixel < pixels;) {
    const int64_t left = pixels - pixel, groups = (left + kPixels<V> - 1) / kPixels<V>;
    const int64_t count = (left + groups - 1) / groups;
    call_with_rows<kPixels<V> >(count, pixel, [&]<int R>(int64_t at) { multiply_tile_at<R, V>(p, at); });
    pixel += count;
  }
}

void multiply(const LineProduct& p, int vectors, int64_t pixels) {
  if (vectors == 2) return multiply_panel<2>(p, pixels);
  multiply_panel<1>(p, pixels);
}

}  // namespace

LineConvKernels line_conv_kernels() { return {kLanes, multiply}; }

#endif

}  // namespace rushlight::cpu::RL_ISA
