// The tiles of AMX: registers of sixteen rows of 64 bytes. Their instructions are written as text, so that no
// function needs to be compiled for processors that have them; the compiler itself uses none.
#pragma once
#include <algorithm>
#include <cstdint>

namespace rushlight::cpu::RL_ISA {
namespace {

#if defined(__AVX512BW__)
constexpr int64_t kTileRowCount = 16, kTileBytes = 64;  // of a row

// While it lives the thread's tiles have these sizes.
class TileSizes {
 public:
  TileSizes() {
    struct alignas(64) {
      uint8_t palette = 1, start = 0, unused[14] = {};
      uint16_t row_bytes[16] = {};
      uint8_t rows[16] = {};
    } sizes;
    std::fill_n(sizes.row_bytes, 8, uint16_t{kTileBytes});
    std::fill_n(sizes.rows, 8, uint8_t{kTileRowCount});
    asm volatile("ldtilecfg %0" : : "m"(sizes));
  }
  ~TileSizes() { asm volatile("tilerelease"); }
  TileSizes(const TileSizes&) = delete;
  TileSizes& operator=(const TileSizes&) = delete;
};

// Rows of pairs of bfloat16 by a panel [pairs][columns] of them; distances between lines in bytes.
struct PairTiles {
  const void* rows;
  int64_t row;
  const void* panel;
  int64_t panel_row;
  int64_t parts;  // of sixteen pairs
};

// out[R * 16][V * 16] = products, or += them.
template <int R, int V, bool Add>
void multiply_pair_tiles(const PairTiles& p, float* out, int64_t out_row) {
  char *first = reinterpret_cast<char*>(out), *second = first + kTileRowCount * out_row;
  if constexpr (Add) {
    asm volatile("tileloadd (%0,%1,1), %%tmm0" : : "r"(first), "r"(out_row) : "memory");
    if constexpr (V == 2)
      asm volatile("tileloadd 64(%0,%1,1), %%tmm1" : : "r"(first), "r"(out_row) : "memory");
    if constexpr (R == 2)
      asm volatile("tileloadd (%0,%1,1), %%tmm2" : : "r"(second), "r"(out_row) : "memory");
    if constexpr (R == 2 && V == 2)
      asm volatile("tileloadd 64(%0,%1,1), %%tmm3" : : "r"(second), "r"(out_row) : "memory");
  } else {
    asm volatile("tilezero %tmm0");
    if constexpr (V == 2) asm volatile("tilezero %tmm1");
    if constexpr (R == 2) asm volatile("tilezero %tmm2");
    if constexpr (R == 2 && V == 2) asm volatile("tilezero %tmm3");
  }
  const char *a = static_cast<const char*>(p.rows), *b = static_cast<const char*>(p.panel);
  for (int64_t part = 0; part < p.parts; ++part, a += kTileBytes, b += kTileRowCount * p.panel_row) {
    asm volatile(
        "tileloadd (%0,%1,1), %%tmm4\n\t"
        "tileloadd (%2,%3,1), %%tmm6\n\t"
        "tdpbf16ps %%tmm6, %%tmm4, %%tmm0"
        :
        : "r"(a), "r"(p.row), "r"(b), "r"(p.panel_row)
        : "memory");
    if constexpr (V == 2)
      asm volatile("tileloadd 64(%0,%1,1), %%tmm7\n\ttdpbf16ps %%tmm7, %%tmm4, %%tmm1"
                   :
                   : "r"(b), "r"(p.panel_row)
                   : "memory");
    if constexpr (R == 2)
      asm volatile("tileloadd (%0,%1,1), %%tmm5\n\ttdpbf16ps %%tmm6, %%tmm5, %%tmm2"
                   :
                   : "r"(a + kTileRowCount * p.row), "r"(p.row)
                   : "memory");
    if constexpr (R == 2 && V == 2) asm volatile("tdpbf16ps %tmm7, %tmm5, %tmm3");
  }
  asm volatile("tilestored %%tmm0, (%0,%1,1)" : : "r"(first), "r"(out_row) : "memory");
  if constexpr (V == 2)
    asm volatile("tilestored %%tmm1, 64(%0,%1,1)" : : "r"(first), "r"(out_row) : "memory");
  if constexpr (R == 2) asm volatile("tilestored %%tmm2, (%0,%1,1)" : : "r"(second), "r"(out_row) : "memory");
  if constexpr (R == 2 && V == 2)
    asm volatile("tilestored %%tmm3, 64(%0,%1,1)" : : "r"(second), "r"(out_row) : "memory");
}

// out[rows][columns] = products, or += them; both counts are filled up to whole tiles, whose memory exists.
template <bool Add>
void multiply_pairs(PairTiles p, int64_t rows, int64_t columns, float* out, int64_t out_row) {
  const char *a = static_cast<const char*>(p.rows), *panel = static_cast<const char*>(p.panel);
  for (int64_t column = 0; column < columns; column += 2 * kTileRowCount)
    for (int64_t row = 0; row < rows; row += 2 * kTileRowCount) {
      p.rows = a + row * p.row, p.panel = panel + column * 4;
      float* to = out + row * out_row / 4 + column;
      const bool one_row = rows - row <= kTileRowCount, one_column = columns - column <= kTileRowCount;
      if (one_row)
        one_column ? multiply_pair_tiles<1, 1, Add>(p, to, out_row)
                   : multiply_pair_tiles<1, 2, Add>(p, to, out_row);
      else
        one_column ? multiply_pair_tiles<2, 1, Add>(p, to, out_row)
                   : multiply_pair_tiles<2, 2, Add>(p, to, out_row);
    }
}

// Floats as bfloat16, sixteen at a time.
typedef float SixteenFloats __attribute__((vector_size(64)));
typedef uint16_t SixteenHalves __attribute__((vector_size(32)));
[[gnu::always_inline]] inline SixteenHalves narrow_to_pairs(SixteenFloats v) {
  SixteenHalves halves;
  asm("vcvtneps2bf16 %1, %0" : "=v"(halves) : "v"(v));
  return halves;
}
#endif

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
