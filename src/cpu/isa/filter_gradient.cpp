// Sums over pixels for the gradients of filters, for each instruction set.
#include "cpu/filter_gradient.h"

#include "cpu/isa/tile_inl.h"

namespace rushlight::cpu::RL_ISA {

#if !defined(__AVX2__) && !defined(__wasm_simd128__)

FilterGradientKernels filter_gradient_kernels() { return {}; }

#else

namespace {

using Vector = Lanes<float>::type;
constexpr int kLanes = Lanes<float>::count;

template <int R, int V>
void add_rows(const PixelSums& p, int64_t row) {
  float* own = p.sums + row * V * kLanes;
  Vector sums[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      sums[r][v] = Vector{};
      if (!p.first) load(sums[r][v], own + (r * V + v) * kLanes);
    }
  const float* a[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) a[r] = p.image + p.offsets[row + r];
  const float* b = p.gradient;
  for (int64_t line = 0; line < p.lines; ++line) {
    int64_t at = line * p.line_step;
    for (int64_t x = 0; x < p.width; ++x, at += p.pixel_step, b += V * kLanes) {
      Vector g[V];
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) load(g[v], b + v * kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const float factor = a[r][at];
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) sums[r][v] += factor * g[v];
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) __builtin_memcpy(own + (r * V + v) * kLanes, &sums[r][v], sizeof(Vector));
}

// One vector takes more rows, so that enough sums are under way.
template <int V>
constexpr int kRows = V == 1 ? 8 : 6;

template <int V>
void add_panel(const PixelSums& p, Span rows) {
  for (int64_t row = rows.begin; row < rows.end;) {
    const int64_t left = rows.end - row, groups = (left + kRows<V> - 1) / kRows<V>;
    const int64_t count = (left + groups - 1) / groups;
    call_with_rows<kRows<V> >(count, row, [&]<int R>(int64_t at) { add_rows<R, V>(p, at); });
    row += count;
  }
}

void add(const PixelSums& p, int vectors, Span rows) {
  if (vectors == 2) return add_panel<2>(p, rows);
  add_panel<1>(p, rows);
}

}  // namespace

FilterGradientKernels filter_gradient_kernels() { return {kLanes, add}; }

#endif

}  // namespace rushlight::cpu::RL_ISA
