// Tiles of convolutions by packed filters, for each instruction set.
#include "cpu/packed_conv.h"

#include <limits>

#include "core/host/processor.h"
#include "cpu/isa/tile_inl.h"

namespace rushlight::cpu::RL_ISA {

#if !defined(__AVX2__) && !defined(RL_NEON) && !defined(__wasm_simd128__)

PackedConvKernels packed_conv_kernels() { return {}; }  // such convolutions are left to others

#else

namespace {

using Vector = Lanes<float>::type;
constexpr int kLanes = Lanes<float>::count, kVectors = kRegisters >= 32 ? 4 : 2;

// The first n of a vector's lanes.
[[gnu::always_inline]] inline Vector first_of(const float* from, int64_t n) {
  Vector v{};
  if (n == kLanes)
    load(v, from);
  else
    __builtin_memcpy(&v, from, static_cast<size_t>(n) * sizeof(float));
  return v;
}

// A tile that left the registers, and where it goes.
struct Tile {
  const float* sums;  // [rows, vectors of columns]
  int rows, vectors;
  int64_t row, column;
};

Vector least(const PixelProduct& p) {
  return Vector{} + (p.bounded ? p.low : -std::numeric_limits<float>::infinity());
}
Vector most(const PixelProduct& p) {
  return Vector{} + (p.bounded ? p.high : std::numeric_limits<float>::infinity());
}

// Rows may end within the last vector.
[[gnu::noinline]] void finish_tile(const PixelProduct& p, const Tile& t) {
  const Vector low = least(p), high = most(p);
  const float* sums = t.sums;
  for (int r = 0; r < t.rows; ++r) {
    const int64_t at = (t.row + r) * p.out_step + t.column;
    for (int l = 0; l < t.vectors * kLanes; l += kLanes, sums += kLanes) {
      const int64_t left = p.columns - t.column - l, n = left < kLanes ? left : kLanes;
      if (n <= 0) continue;
      Vector v;
      load(v, sums);
      if (p.scale) v = v * first_of(p.scale + t.column + l, n) + first_of(p.shift + t.column + l, n);
      if (p.residual) v += first_of(p.residual + at + l, n);
      v = clamped(v, low, high);
      if (n == kLanes)
        __builtin_memcpy(p.out + at + l, &v, sizeof(v));
      else
        __builtin_memcpy(p.out + at + l, &v, static_cast<size_t>(n) * sizeof(float));
    }
  }
}

// Panels of four long vectors are beyond the first cache, and Intel's processors don't fetch from the second
// one soon enough by themselves: this many steps ahead they are asked for.
constexpr int64_t kStepsAhead = 5;
bool fetches_late() {
#if defined(__AVX512F__)
  return host::is_intel();
#else
  return false;
#endif
}

// sums[r][v] += what one group of rows gives. Ahead: panels are asked for.
template <int R, int V, bool Ahead>
[[gnu::always_inline]] inline void add_products(const PixelProduct& p, const float* const* factors,
                                                int64_t vector, Vector (&sums)[R][V]) {
  const float* panel = p.panels + vector * kLanes * p.pieces * p.run;
  for (int64_t piece = 0; piece < p.pieces; ++piece, factors += R) {
    const float* a[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) a[r] = factors[r];
    for (int64_t i = 0; i < p.run; ++i, panel += V * kLanes) {
      Vector b[V];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        load(b[v], panel + v * kLanes);
        if constexpr (Ahead) __builtin_prefetch(panel + (kStepsAhead * V + v) * kLanes);
      }
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const float factor = a[r][i];
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) sums[r][v] += factor * b[v];
      }
    }
  }
}
template <int R, int V, bool Ahead = false>
void multiply_group(const PixelProduct& p, const float* const* factors, int64_t row, int64_t vector,
                    const float* bias) {
  Vector sums[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) load(sums[r][v], bias + v * kLanes);
  add_products<R, V, Ahead>(p, factors, vector, sums);
  const int64_t column = vector * kLanes;
  if (!p.scale && column + V * kLanes <= p.columns) {
    const int64_t at = row * p.out_step + column;
    if (p.residual) {
      const float* other = p.residual + at;
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r, other += p.out_step)
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) {
          Vector x;
          load(x, other + v * kLanes);
          sums[r][v] += x;
        }
    }
    const Vector low = least(p), high = most(p);
    float* out = p.out + at;
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r, out += p.out_step)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        const Vector y = clamped(sums[r][v], low, high);
        __builtin_memcpy(out + v * kLanes, &y, sizeof(y));
      }
    return;
  }
  alignas(kRegisterBytes) float tile[R * V * kLanes];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) __builtin_memcpy(tile + (r * V + v) * kLanes, &sums[r][v], sizeof(Vector));
  finish_tile(p, {tile, R, V, row, column});
}

template <int V, bool Ahead>
void multiply_panel(const PixelProduct& p, const float* const* factors, Span rows, int64_t vector) {
  alignas(kRegisterBytes) float bias[V * kLanes];
  for (int i = 0; i < V * kLanes; ++i) {
    const int64_t c = vector * kLanes + i;
    bias[i] = p.bias && c < p.columns ? p.bias[c] : -0.0f;
  }
  for (int64_t row = rows.begin; row < rows.end;) {
    const int group = group_rows(rows.end - row);
    switch (group) {
      case 6:
        multiply_group<6, V, Ahead>(p, factors, row, vector, bias);
        break;
      case 3:
        multiply_group<3, V>(p, factors, row, vector, bias);
        break;
      default:
        multiply_group<1, V>(p, factors, row, vector, bias);
    }
    row += group, factors += group * p.pieces;
  }
}

template <bool Ahead>
void multiply(const PixelProduct& p, const float* const* factors, Span rows, Span vectors) {
  for (int64_t v = vectors.begin; v < vectors.end;) {
    const int width = panel_vectors(vectors.end - v, kVectors);
    if constexpr (kVectors == 4)
      if (width == 4) multiply_panel<4, Ahead>(p, factors, rows, v);
    if (width == 2) multiply_panel<2, false>(p, factors, rows, v);
    if (width == 1) multiply_panel<1, false>(p, factors, rows, v);
    v += width;
  }
}

}  // namespace

PackedConvKernels packed_conv_kernels() {
  return {kLanes, kVectors, fetches_late() ? multiply<true> : multiply<false>};
}

#endif

}  // namespace rushlight::cpu::RL_ISA
