// Products of bytes for each instruction set. Pairs of words are multiplied and added without overflow
// everywhere; processors with VNNI, or ARM64's with dot products, take four bytes at once, and those with AMX
// tiles of them. (The instruction of x86 that multiplies bytes without these saturates at 16 bits.)
#include "cpu/byte_product.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <type_traits>

#include "core/host/processor.h"
#include "cpu/isa/byte_finish_inl.h"
#include "cpu/isa/byte_runs_inl.h"
#include "cpu/isa/byte_steps_inl.h"
#include "cpu/isa/byte_tiles_inl.h"
#include "cpu/scratch.h"
#include "cpu/transpose.h"
#if defined(__SSE2__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace rushlight::cpu::RL_ISA {
namespace {

template <class P>
int64_t steps_of(int64_t k) {
  return (k + P::depth - 1) / P::depth;
}
// Of a panel with k rows.
template <class P>
int64_t panel_bytes(int64_t k) {
  const int64_t steps = steps_of<P>(k) * P::depth * kColumns;
#if defined(__AVX2__) && !defined(__AVX512BW__)
  if constexpr (kPlanned<P>) return steps + Plan::bytes(steps_of<P>(k));
#elif defined(__AVX512BW__)
  if constexpr (kTiled<P>) return TiledRows::parts(k) * kTiledPart;
#endif
  return steps;
}

template <class P>
void pack(int64_t k, int64_t n, const MatrixView& weight, int8_t* panels, int32_t* sums, int64_t begin,
          int64_t end) {
  constexpr int64_t kDepth = P::depth;
  const int64_t groups = steps_of<P>(k), whole = k / kDepth;
  for (int64_t panel = begin; panel < end; ++panel) {
    const int64_t first = panel * kColumns, columns = std::min(kColumns, n - first);
    const auto* from = static_cast<const int8_t*>(weight.data) + first * weight.column_stride;
    int8_t* to = panels + panel * panel_bytes<P>(k);
    if (columns < kColumns || whole < groups) std::fill_n(to, groups * kDepth * kColumns, int8_t(0));
    if constexpr (kTiled<P>) std::fill(to + groups * kDepth * kColumns, to + panel_bytes<P>(k), int8_t(0));
    int64_t done = 0;
    if (weight.row_stride == 1) {
      transpose_tile(kDepth)(reinterpret_cast<char*>(to), kDepth * kColumns,
                             reinterpret_cast<const char*>(from), weight.column_stride, whole, columns);
      done = whole * kDepth;
    }
    for (int64_t p = done; p < k; ++p)
      for (int64_t j = 0; j < columns; ++j)
        to[(p / kDepth * kColumns + j) * kDepth + p % kDepth] =
            from[p * weight.row_stride + j * weight.column_stride];
    int32_t total[kColumns] = {};
    for (int64_t g = 0; g < groups; ++g) {
      int8_t* step = to + g * kColumns * kDepth;
      for (int64_t j = 0; j < kColumns; ++j)
        for (int64_t q = 0; q < kDepth; ++q) total[j] += step[j * kDepth + q];
      int8_t placed[kColumns * kDepth];
      for (int64_t j = 0; j < kColumns; j += 4)
        std::memcpy(placed + place_of(j) * kDepth, step + j * kDepth, 4 * kDepth);
      std::memcpy(step, placed, sizeof(placed));
    }
    std::copy_n(total, columns, sums + first);
#if defined(__AVX2__) && !defined(__AVX512BW__)
    if constexpr (kPlanned<P>) plan_runs(to, groups);
#endif
  }
}

template <class P>
void fill(const void* bytes, bool is_signed, int64_t n, void* out) {
  auto* to = static_cast<typename P::Element*>(out);
  const auto* from = static_cast<const uint8_t*>(bytes);
  if constexpr (sizeof(typename P::Element) == 1) {
    const uint8_t flip = is_signed ? 128 : 0;
    if (flip || to != from)
      for (int64_t i = 0; i < n; ++i) to[i] = from[i] ^ flip;
  } else if (is_signed) {
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<int8_t>(from[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
  }
  for (int64_t i = n; i % P::depth; ++i) to[i] = 0;
}

template <class P>
void quantize(const float* x, int64_t n, float inverse_scale, int32_t zero_point, int32_t low, int32_t high,
              bool is_signed, void* out) {
  using Element = typename P::Element;
  auto* to = static_cast<Element*>(out);
  const Floats factor = Floats{} + inverse_scale, least = Floats{} + static_cast<float>(low - zero_point),
               most = Floats{} + static_cast<float>(high - zero_point);
  const Ints add = Ints{} + (zero_point + (is_signed && sizeof(Element) == 1 ? 128 : 0));
  for (int64_t i = 0; i < n; i += kLanes) {
    Floats v = {};
    if (n - i >= kLanes)
      load(v, x + i);
    else
      std::memcpy(&v, x + i, static_cast<size_t>(n - i) * sizeof(float));
    const Ints steps = rounded(bounded(v * factor, least, most)) + add;
    const auto q = [&] {
      if constexpr (sizeof(Element) == 1)
        return bytes_of<true>(steps);
      else
        return words_of(steps);
    }();
    if (n - i >= kLanes)
      std::memcpy(to + i, &q, sizeof(q));
    else
      std::memcpy(to + i, &q, static_cast<size_t>(n - i) * sizeof(Element));
  }
  for (int64_t i = n; i % P::depth; ++i) to[i] = 0;
}

template <class P>
int32_t sum(const void* row, int64_t n) {
  const auto* x = static_cast<const typename P::Element*>(row);
  uint32_t total = 0;
  for (int64_t i = 0; i < n; ++i) total += static_cast<uint32_t>(static_cast<int32_t>(x[i]));
  return static_cast<int32_t>(total);
}

void range(const float* x, int64_t n, float* least, float* most) {
  Floats low = {}, high = {};
  for (int64_t i = 0; i < n; i += kLanes) {
    Floats v = {};
    if (n - i >= kLanes)
      load(v, x + i);
    else
      std::memcpy(&v, x + i, static_cast<size_t>(n - i) * sizeof(float));
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  *least = low[0], *most = high[0];
  for (int l = 1; l < kLanes; ++l) *least = std::min(*least, low[l]), *most = std::max(*most, high[l]);
}

// What the sums miss of each activation.
template <class P>
int32_t taken_off([[maybe_unused]] const ByteProduct& p) {
#if defined(RL_NEON)
  if constexpr (std::is_same_v<P, SignedBytes>) return 128;
#elif defined(__AVX2__) && !defined(__AVX512BW__)
  if constexpr (kPlanned<P>) return offset_for(p.a_zero, steps_of<P>(p.b->k));
#endif
  return 0;
}

// Asks for what will be read or written; nothing happens behind the end of memory.
template <int Locality, bool Written = false>
[[gnu::always_inline]] inline void fetch(const void* from, int64_t bytes) {
  constexpr int64_t kLine = 64;
  for (int64_t at = 0; at < bytes; at += kLine)
    __builtin_prefetch(static_cast<const char*>(from) + at, Written, Locality);
}

// With fewer it is memory that a product waits for, and asking ahead only gets in the way.
constexpr int kComputingRows = 4;

// sums[R][kVectors] += some steps of R rows, of which `read` gives the factors.
template <class P, int R, class Read>
[[gnu::always_inline]] inline void add_steps(const int8_t* panel, int64_t steps, int64_t next, Read read,
                                             Ints (&sums)[R][kVectors]) {
  constexpr int64_t kStep = kColumns * P::depth, kBytes = kStep / kVectors;
  for (int64_t g = 0; g < steps; ++g, panel += kStep) {
    // The next panel: processors foresee no more than a page.
    if constexpr (R >= kComputingRows) fetch<2>(panel + next, kStep);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const typename P::Factor factor = read(r, static_cast<int64_t>(sizeof(typename P::Factor)) * g);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][v] = P::add(sums[r][v], factor, panel + v * kBytes);
    }
  }
}
template <int R>
[[gnu::always_inline]] inline void write_sums(const Ints (&sums)[R][kVectors], Ints* out) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) out[r * kVectors + v] = sums[r][v];
}

// R rows from `at` on.
template <class P, int R>
[[gnu::noinline]] void multiply_rows(const ByteProduct& p, int64_t at, const int8_t* panel, Ints* out) {
  const TileRows rows(static_cast<const char*>(p.a->data()) + at * p.a->row_bytes(), p.a->row_bytes());
  const int64_t steps = steps_of<P>(p.b->k);
  Ints sums[R][kVectors] = {};
  add_steps<P, R>(
      panel, steps, panel_bytes<P>(p.b->k),
      [&](int r, int64_t byte) { return rows.template read<typename P::Factor>(r, byte); }, sums);
  write_sums<R>(sums, out);
}
// The same for rows in pieces.
template <class P, int R>
[[gnu::noinline]] void multiply_pieces(const ByteProduct& p, int64_t at, const int8_t* panel, Ints* out) {
  constexpr int64_t kStep = kColumns * P::depth;
  const RowPieces& in = *p.a->pieces();
  const int64_t steps = in.length / P::depth, next = panel_bytes<P>(p.b->k);
  Ints sums[R][kVectors] = {};
  for (int64_t piece = 0; piece < in.count; ++piece, panel += steps * kStep) {
    const char* rows[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
      rows[r] = static_cast<const char*>(p.a->data()) + in.rows[at + r] + in.pieces[piece];
    add_steps<P, R>(
        panel, steps, next,
        [&](int r, int64_t byte) {
          typename P::Factor factor;
          __builtin_memcpy(&factor, rows[r] + byte, sizeof(factor));
          return factor;
        },
        sums);
  }
  write_sums<R>(sums, out);
}

// What becomes of sums, at once.
class RowResults {
 public:
  RowResults(const ByteProduct& p, Finish finish) : p_(p), finish_(finish) {}
  void use(const Rest& rest, int64_t first) { rest_ = &rest, first_ = first; }
  void operator()(int64_t at, int rows, const Ints* sums) const {
    finish_(p_, *rest_, sums, rows, at, first_);
  }

 private:
  const ByteProduct& p_;
  const Finish finish_;
  const Rest* rest_ = nullptr;
  int64_t first_ = 0;
};

// Some rows of a product, panel by panel.
template <class P>
class RowBlock {
 public:
  RowBlock(const ByteProduct& p, int64_t begin, int64_t end) : p_(p), begin_(begin), end_(end) {}
  // For each group of rows before(row, number of rows), then f(row, number of rows, their sums).
  template <class Before, class F>
  void multiply(int8_t* panel, Before before, F f) const {
    for_row_groups<kVectors>(begin_, end_, [&]<int R>(int64_t at) {
      Ints sums[R * kVectors];
      before(at, R);
      if (p_.a->pieces())
        multiply_pieces<P, R>(p_, at, panel, sums);
      else
        multiply_rows<P, R>(p_, at, panel, sums);
      f(at, R, sums);
    });
  }

 private:
  const ByteProduct& p_;
  const int64_t begin_, end_;
};
#if defined(__AVX2__) && !defined(__AVX512BW__)
template <>
class RowBlock<Runs> {
 public:
  RowBlock(const ByteProduct& p, int64_t begin, int64_t end)
      : begin_(begin), end_(end), steps_(steps_of<Runs>(p.b->k)), split_(end - begin, steps_) {
    const int64_t row = p.a->row_bytes();
    for_row_groups<kVectors>(begin, end, [&]<int R>(int64_t at) {
      split_.split<R>(static_cast<const char*>(p.a->data()) + at * row, row, taken_off<Runs>(p), at - begin);
    });
  }
  template <class Before, class F>
  void multiply(int8_t* panel, Before before, F f) const {
    const Plan plan(panel, steps_);
    for_row_groups<kVectors>(begin_, end_, [&]<int R>(int64_t at) {
      Ints sums[R * kVectors];
      before(at, R);
      split_.multiply<R>(panel, plan, at - begin_, sums);
      f(at, R, sums);
    });
  }

 private:
  const int64_t begin_, end_, steps_;
  SplitRows split_;
};
#endif
#if defined(__AVX512BW__)
template <>
class RowBlock<Tiles> {
 public:
  RowBlock(const ByteProduct& p, int64_t begin, int64_t end)
      : p_(p),
        begin_(begin),
        end_(end),
        placed_(PlacedRows::fit(*p.a)),
        tiled_(end - (few(end - begin) && !placed_ ? (end - begin) % kTiledRows : 0)),
        rows_(*p.a, placed_ ? tiled_ : begin, tiled_) {}
  // Copies of rows stay in the second cache; what lies in place needs no copies.
  static int64_t at_once(const ByteProduct& p) {
    return PlacedRows::fit(*p.a) ? 16 * kTiledRows : TiledRows::at_once(p.b->k);
  }
  template <class Before>
  void multiply(int8_t* panel, Before before, TiledResults& results) const {
    // Each group of rows asks for its share of the next panel.
    constexpr int64_t kLine = 64, kLines = kTiledPart / kLine;
    const int64_t groups = placed_ ? PlacedRows(*p_.a, begin_, end_).groups()
                                   : std::max<int64_t>(1, (tiled_ - begin_ + kTiledRows - 1) / kTiledRows);
    PanelAhead ahead{panel + panel_bytes<Tiles>(p_.b->k), (kLines + groups - 1) / groups * kLine};
    if (placed_) return PlacedRows(*p_.a, begin_, end_).multiply(panel, ahead, before, results);
    for (int64_t at = begin_; at < tiled_; at += kTiledRows, ahead.from += ahead.bytes) {
      const int rows = static_cast<int>(std::min(kTiledRows, tiled_ - at));
      before(at, rows);
      rows_.multiply(at, rows, panel, ahead, results);
    }
    if (tiled_ < end_)
      RowBlock<FourBytes>(p_, tiled_, end_)
          .multiply(panel, before,
                    [&](int64_t at, int rows, const Ints* sums) { results.finish_now(at, rows, sums); });
  }

 private:
  // Whether the last rows are so few that a tile would take longer.
  static bool few(int64_t rows) { return rows % kTiledRows < 4; }

  const ByteProduct& p_;
  const int64_t begin_, end_;
  const bool placed_;
  const int64_t tiled_;
  const TiledRows rows_;
  const TileSizes sizes_;
};
template <class P>
using ResultsOf = std::conditional_t<kTiled<P>, TiledResults, RowResults>;
#else
template <class>
using ResultsOf = RowResults;
#endif

// Rows of a panel's results come to the cache while their sums are made: stores that wait for them would hold
// up all that follow.
void fetch_results(const ByteProduct& p, int64_t row, int64_t rows, int64_t first) {
  if (rows < kComputingRows) return;
  const int64_t element = p.result == ByteResult::kInt32 || p.result == ByteResult::kFloat ? 4 : 1;
  const char* to = static_cast<const char*>(p.c) + (row * p.ldc + first) * element;
  const int64_t away = p.sum ? p.sum->away() : 0;
  for (; rows > 0; --rows, to += p.ldc * element) {
    fetch<3, true>(to, kColumns * element);
    if (p.sum) fetch<3>(to + away, kColumns);
  }
}

template <class P>
void multiply(const ByteProduct& p, int64_t row, int64_t row_end, int64_t begin, int64_t end) {
  int64_t rows_at_once = 54;  // which stay in cache while panel by panel passes
#if defined(__AVX512BW__)
  if constexpr (kTiled<P>) rows_at_once = RowBlock<P>::at_once(p);
#endif
  constexpr int64_t kPanels = 16;  // whose settings stay there
  const Finish finish = finish_of(p);
  alignas(Rest) char memory[kPanels * sizeof(Rest)];
  auto* rests = reinterpret_cast<Rest*>(memory);
  for (; begin < end; begin += kPanels) {
    const int64_t last_panel = std::min(end, begin + kPanels);
    for (int64_t panel = begin; panel < last_panel; ++panel)
      new (rests + (panel - begin))
          Rest(p, panel * kColumns, std::min(kColumns, p.b->n - panel * kColumns), taken_off<P>(p));
    ResultsOf<P> results(p, finish);
    int64_t first_row = row, last_row = row;
    for (int64_t blocks = (row_end - row + rows_at_once - 1) / rows_at_once; blocks > 0;
         --blocks, first_row = last_row) {
      last_row = kTiled<P> ? std::min(row_end, first_row + rows_at_once)
                           : last_row + (row_end - first_row + blocks - 1) / blocks;
      const RowBlock<P> block(p, first_row, last_row);
      for (int64_t panel = begin; panel < last_panel; ++panel) {
        results.use(rests[panel - begin], panel * kColumns);
        block.multiply(
            const_cast<int8_t*>(p.b->panels()) + panel * panel_bytes<P>(p.b->k),
            [&](int64_t at, int rows) { fetch_results(p, at, rows, panel * kColumns); }, results);
      }
    }
  }
}

#if defined(__AVX2__) && !defined(__AVX512BW__)
bool has_avx_vnni() {  // which g++ 12 does not name
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 4);
}
#endif

template <class P>
RowKernels row_kernels() {
  return {sizeof(typename P::Element), !kPlanned<P>, fill<P>, quantize<P>, sum<P>, multiply<P>};
}
template <class P>
ByteKernels kernels() {
  return {kColumns, P::depth, row_kernels<P>(), panel_bytes<P>, pack<P>, range};
}

}  // namespace

ByteKernels byte_kernels_variant() {
#if defined(__AVX512BW__)
  if (host::has_byte_tiles()) return kernels<Tiles>();
  if (__builtin_cpu_supports("avx512vnni")) return kernels<FourBytes>();
  return kernels<PairsOfWords>();
#elif defined(__AVX2__)
  if (has_avx_vnni()) return kernels<FourBytes>();
  return kernels<Runs>();
#elif defined(RL_NEON)
  return host::has_dot_products() ? kernels<SignedBytes>() : kernels<PairsOfWords>();
#else
  return kernels<PairsOfWords>();
#endif
}

}  // namespace rushlight::cpu::RL_ISA
