// Products by matrices in panels, for each instruction set.
#include "cpu/packed_product.h"

#include <cmath>
#include <cstring>

#include "cpu/isa/tile_inl.h"
#include "cpu/panel.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// Short registers repay no factor that is read for two of them alone.
constexpr int kVectors = kRegisterBytes == 16 && kRegisters == 32 ? 4 : 2;
// Rows of a tile: with 32 long registers twice as many as else, since a panel of long registers exceeds the
// first-level cache and is better read half as often.
constexpr int kTallRows = kRegisterBytes == 64 ? 12 : kTileRows<kVectors>;
template <class T>
constexpr int64_t kWidth = kVectors * Lanes<T>::count;
static_assert(kPanelColumns % kWidth<float> == 0 && kPanelColumns % kWidth<double> == 0);

template <class T>
void pack(int64_t k, int64_t n, const MatrixView& matrix, T* panels, int64_t begin, int64_t end) {
  for (int64_t panel = begin; panel < end; ++panel) {
    const int64_t first = panel * kWidth<T>;
    const T* from = static_cast<const T*>(matrix.data) + first * matrix.column_stride;
    pack_panel(sizeof(T), {from, matrix.row_stride, matrix.column_stride}, k, std::min(kWidth<T>, n - first),
               kWidth<T>, panels + panel * k * kWidth<T>);
  }
}

// Panels of bfloat16: the columns of two vectors side by side in words, which are vectors by a shift or a
// mask.
void pack(int64_t k, int64_t n, const MatrixView& matrix, BFloat16* panels, int64_t begin, int64_t end) {
  constexpr int64_t kBlock = 16, kLanes = Lanes<float>::count;
  static_assert(kVectors % 2 == 0);
  for (int64_t panel = begin; panel < end; ++panel) {
    const int64_t first = panel * kWidth<float>, columns = std::min(kWidth<float>, n - first);
    const auto* from = static_cast<const BFloat16*>(matrix.data) + first * matrix.column_stride;
    BFloat16* to = panels + panel * k * kWidth<float>;
    if (columns < kWidth<float>) std::fill_n(to, k * kWidth<float>, BFloat16(0.0f));
    for (int64_t row = 0; row < k; row += kBlock)
      for (int64_t j = 0; j < columns; ++j) {
        const int64_t vector = j / kLanes, pair = vector / 2, lane = j % kLanes;
        const int64_t place = pair * 2 * kLanes + 2 * lane + vector % 2;
        for (int64_t i = row; i < std::min(k, row + kBlock); ++i)
          to[i * kWidth<float> + place] = from[i * matrix.row_stride + j * matrix.column_stride];
      }
  }
}

// Panels of pairs: two rows of a column side by side, the last with zero where the rows are odd.
void pack(int64_t k, int64_t n, const MatrixView& matrix, FactorPair* panels, int64_t begin, int64_t end) {
  constexpr int64_t kBlock = 16;
  const int64_t pairs = (k + 1) / 2;
  const BFloat16 zero(0.0f);
  for (int64_t panel = begin; panel < end; ++panel) {
    const int64_t first = panel * kWidth<float>, columns = std::min(kWidth<float>, n - first);
    const auto* from = static_cast<const BFloat16*>(matrix.data) + first * matrix.column_stride;
    FactorPair* to = panels + panel * pairs * kWidth<float>;
    if (columns < kWidth<float>) std::fill_n(to, pairs * kWidth<float>, FactorPair{zero, zero});
    for (int64_t pair = 0; pair < pairs; pair += kBlock)
      for (int64_t j = 0; j < columns; ++j)
        for (int64_t i = pair; i < std::min(pairs, pair + kBlock); ++i) {
          const BFloat16* at = from + 2 * i * matrix.row_stride + j * matrix.column_stride;
          to[i * kWidth<float> + j] = {at[0], 2 * i + 1 < k ? at[matrix.row_stride] : zero};
        }
  }
}

// Rows of pairs from rows of float32.
void round_rows(const float* a, int64_t a_row, int64_t k, BFloat16* pairs, int64_t begin, int64_t end) {
  constexpr int64_t kLanes = Lanes<float>::count;
  const int64_t width = k + k % 2;
  for (int64_t row = begin; row < end; ++row) {
    BFloat16* to = pairs + row * width;
    for (int64_t i = 0; i < k; i += kLanes) write_lanes(a + row * a_row + i, std::min(kLanes, k - i), to + i);
    if (width > k) to[k] = BFloat16(0.0f);
  }
}

template <int R, class>
[[gnu::always_inline]] inline void add_products(const float* a, int64_t row, const BFloat16* panel, int64_t k,
                                                Lanes<float>::type (&sums)[R][kVectors]) {
  for (int64_t i = 0; i < k; ++i, panel += kWidth<float>) {
    Lanes<float>::type vectors[kVectors];
    for (int v = 0; v < kVectors; v += 2) {
      FloatBits both;
      load(both, panel + v * Lanes<float>::count);
      vectors[v] = Lanes<float>::type(both << 16);
      vectors[v + 1] = Lanes<float>::type(both & 0xffff0000u);
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const float factor = a[r * row + i];
      for (int v = 0; v < kVectors; ++v) sums[r][v] += factor * vectors[v];
    }
  }
}
template <int R, class T, class F>
[[gnu::always_inline]] inline void add_products(const F* a, int64_t row, const F* panel, int64_t k,
                                                typename Lanes<T>::type (&sums)[R][kVectors]) {
  accumulate_tile<R, kVectors, T>(a, row, 1, panel, k, sums);
}

constexpr int64_t kLine = 64;
// The part of a product that a tile computes: `depth` steps, the first and the last of them or not, and what
// it brings to the second-level cache meanwhile of the panel that comes next. (The processor itself fetches
// no further than a page; a panel that is read for the first time waits for each line.)
struct Part {
  int64_t depth;
  bool first, last;
  const char* ahead;
  int64_t lines;
};

// What is added to the sums, and their bounds. A comparison with a NaN is false, so that it stays.
template <class T>
struct Rest {
  T bias[kWidth<T>];
  typename Lanes<T>::type low, high;
  bool bounded;

  [[gnu::always_inline]] void apply(typename Lanes<T>::type& x, int v) const {
    typename Lanes<T>::type b;
    load(b, bias + v * Lanes<T>::count);
    x += b;
    if (bounded) {
      x = x < low ? low : x;
      x = x > high ? high : x;
    }
  }
};

// Loops over sums are unrolled, as what stays in registers has no address.
template <int R, class T, class A, class P>
[[gnu::noinline]] void multiply_rows(const PackedProduct& p, const A* a, const P* panel, Part part,
                                     const Rest<T>& rest, T* c, int64_t columns) {
  constexpr int64_t kLanes = Lanes<T>::count, kSteps = 16, kLines = 4;
  typename Lanes<T>::type sums[R][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      if (!part.first)
        load(sums[r][v], c + r * p.n + v * kLanes);
      else
        sums[r][v] = typename Lanes<T>::type{};
    }
  for (int64_t i = 0; i < part.depth; i += kSteps) {
    if (part.lines > 0) {
      for (int64_t line = 0; line < kLines; ++line) __builtin_prefetch(part.ahead + line * kLine, 0, 2);
      part.ahead += kLines * kLine;
      part.lines -= kLines;
    }
    add_products<R, T>(a + i, p.a_row, panel + i * kWidth<T>, std::min(kSteps, part.depth - i), sums);
  }
  if (part.last)
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) rest.apply(sums[r][v], v);
  T some[R * kWidth<T>];
  const bool whole = columns == kWidth<T>;
  T* const to = whole ? c : some;
  const int64_t step = whole ? p.n : kWidth<T>;
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      __builtin_memcpy(to + r * step + v * kLanes, &sums[r][v], kRegisterBytes);
  if (!whole)
    for (int64_t r = 0; r < R; ++r)
      __builtin_memcpy(c + r * p.n, some + r * kWidth<T>, static_cast<size_t>(columns) * sizeof(T));
}

// The matrix `a` of A by panels of P, summed in T: some rows and steps, which stay in the second-level cache,
// meet panel by panel. Between the steps sums lie in the result, but those of a panel that is not full.
template <class T, class A = T, class P = A>
void multiply(const PackedProduct& p, int64_t row, int64_t row_end, int64_t begin, int64_t end) {
  constexpr int64_t kRows = 192, kBlock = kRows * 768;  // elements of A
  const int64_t blocks = std::max<int64_t>(1, (row_end - row + kRows - 1) / kRows),
                rows = (row_end - row + blocks - 1) / blocks;
  const int64_t parts = std::max<int64_t>(1, (rows * p.k + kBlock - 1) / kBlock),
                depth = std::max<int64_t>(1, (p.k + parts - 1) / parts);
  for (; row < row_end; row += rows) {
    const int64_t last = std::min(row_end, row + rows);
    const int64_t tiles = (last - row + kTallRows - 1) / kTallRows;
    for (int64_t step = 0; step == 0 || step < p.k; step += depth)
      for (int64_t panel = begin; panel < end; ++panel) {
        const int64_t first = panel * kWidth<T>, columns = std::min(kWidth<T>, p.n - first);
        Rest<T> rest;
        std::fill_n(rest.bias, kWidth<T>, T(0));
        if (p.bias) std::copy_n(static_cast<const T*>(p.bias) + first, columns, rest.bias);
        rest.low = typename Lanes<T>::type{} + static_cast<T>(p.low);
        rest.high = typename Lanes<T>::type{} + static_cast<T>(p.high);
        rest.bounded = p.low > -INFINITY || p.high < INFINITY;
        int64_t at_step = step;
        Part part{std::min(depth, p.k - step), step == 0, step + depth >= p.k, nullptr, 0};
        if (columns < kWidth<T>) {
          if (!part.last) continue;
          at_step = 0;
          part.depth = p.k, part.first = true;
        }
        const P* from = static_cast<const P*>(p.panels) + panel * p.k * kWidth<T> + at_step * kWidth<T>;
        const int64_t bytes = part.depth * kWidth<T> * static_cast<int64_t>(sizeof(P));
        if (panel + 1 < end) part.lines = (bytes + tiles * kLine - 1) / (tiles * kLine);
        part.ahead = reinterpret_cast<const char*>(from + p.k * kWidth<T>);
        for_groups<kTallRows>(row, last, [&]<int R>(int64_t at) {
          multiply_rows<R, T>(p, static_cast<const A*>(p.a) + at * p.a_row + at_step, from, part, rest,
                              static_cast<T*>(p.c) + at * p.n + first, columns);
          part.ahead += part.lines * kLine;
        });
      }
  }
}

int64_t width(DType dtype) { return dtype == DType::Float64 ? kWidth<double> : kWidth<float>; }

void pack_typed(DType dtype, int64_t k, int64_t n, const MatrixView& matrix, void* panels, int64_t begin,
                int64_t end) {
  if (dtype == DType::Float32)
    pack(k, n, matrix, static_cast<float*>(panels), begin, end);
  else
    pack(k, n, matrix, static_cast<double*>(panels), begin, end);
}

void multiply_typed(const PackedProduct& p, int64_t row, int64_t row_end, int64_t begin, int64_t end) {
  if (p.dtype == DType::Float32)
    multiply<float>(p, row, row_end, begin, end);
  else
    multiply<double>(p, row, row_end, begin, end);
}

void pack_narrow(DType, int64_t k, int64_t n, const MatrixView& matrix, void* panels, int64_t begin,
                 int64_t end) {
  pack(k, n, matrix, static_cast<BFloat16*>(panels), begin, end);
}
void pack_pairs(DType, int64_t k, int64_t n, const MatrixView& matrix, void* panels, int64_t begin,
                int64_t end) {
  pack(k, n, matrix, static_cast<FactorPair*>(panels), begin, end);
}

}  // namespace

PackedKernels packed_kernels() { return {width, pack_typed, multiply_typed}; }
PackedKernels narrow_packed_kernels() {
  if (has_pair_products()) return {width, pack_pairs, multiply<float, FactorPair>, round_rows};
  return {width, pack_narrow, multiply<float, float, BFloat16>};
}

}  // namespace rushlight::cpu::RL_ISA
