// How each instruction set multiplies bytes: the factors that one step takes, and what it adds them to. The
// tables of byte_product.cpp are made of these.
#pragma once
#include <algorithm>
#include <cstring>
#include <new>
#include <type_traits>

#include "cpu/byte_product.h"
#include "cpu/isa/tile_inl.h"
#include "cpu/scratch.h"
#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace rushlight::cpu::RL_ISA {
namespace {

constexpr int kVectors = 2;
constexpr int kLanes = kRegisterBytes / 4;
constexpr int64_t kColumns = kVectors * kLanes;
typedef int32_t Ints __attribute__((vector_size(kRegisterBytes)));
typedef uint32_t Words __attribute__((vector_size(kRegisterBytes)));
typedef float Floats __attribute__((vector_size(kRegisterBytes)));
typedef int8_t Bytes __attribute__((vector_size(kLanes)));

// Two factors of each column: `weight` holds kLanes pairs of bytes, `pair` two words.
[[gnu::always_inline]] inline Ints add_pairs(Ints sum, uint32_t pair, const int8_t* weight) {
#if defined(__AVX512BW__)
  const __m512i b = _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(weight)));
  return Ints(
      _mm512_add_epi32(__m512i(sum), _mm512_madd_epi16(_mm512_set1_epi32(static_cast<int>(pair)), b)));
#elif defined(__AVX2__)
  const __m256i b = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(weight)));
  return Ints(
      _mm256_add_epi32(__m256i(sum), _mm256_madd_epi16(_mm256_set1_epi32(static_cast<int>(pair)), b)));
#elif defined(__SSE2__)
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(weight));
  const __m128i b = _mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8);
  return Ints(_mm_add_epi32(__m128i(sum), _mm_madd_epi16(_mm_set1_epi32(static_cast<int>(pair)), b)));
#elif defined(__aarch64__)
  const int16x8_t a = vreinterpretq_s16_u32(vdupq_n_u32(pair)), b = vmovl_s8(vld1_s8(weight));
  const int32x4_t low = vmull_s16(vget_low_s16(a), vget_low_s16(b)), high = vmull_high_s16(a, b);
  return Ints(vaddq_s32(int32x4_t(sum), vpaddq_s32(low, high)));
#else
  const auto first = static_cast<int16_t>(pair & 0xffff), second = static_cast<int16_t>(pair >> 16);
  for (int l = 0; l < kLanes; ++l) sum[l] += first * weight[2 * l] + second * weight[2 * l + 1];
  return sum;
#endif
}

struct PairsOfWords {
  using Element = int16_t;
  using Factor = uint32_t;
  static constexpr int64_t depth = 2;
  [[gnu::always_inline]] static Ints add(Ints sum, uint32_t factor, const int8_t* weight) {
    return add_pairs(sum, factor, weight);
  }
};

#if defined(__AVX2__)
struct FourBytes {
  using Element = uint8_t;
  using Factor = uint32_t;
  static constexpr int64_t depth = 4;
  [[gnu::always_inline]] static Ints add(Ints sum, uint32_t factor, const int8_t* weight) {
    // In this form no function needs to be compiled for processors that have it.
    const Words four = Words{} + factor;
    Ints b;
    load(b, weight);
#if defined(__AVX512BW__)
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(four), "v"(b));
#else
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(four), "x"(b));
#endif
    return sum;
  }
};
#endif

// Rows of a tile that lie `row` bytes apart, by two addresses: one would take an addition for each row.
struct TileRows {
  const char *first, *fourth;
  int64_t row;
  TileRows(const char* a, int64_t row) : first(a), fourth(a + 3 * row), row(row) {
#if defined(__x86_64__)
    asm("" : "+r"(fourth));  // the compiler would find out that it is the same address
#endif
  }
  template <class F>
  [[gnu::always_inline]] F read(int r, int64_t at) const {
    F factor;
    __builtin_memcpy(&factor, r < 3 ? first + at + r * row : fourth + at + (r - 3) * row, sizeof(factor));
    return factor;
  }
};

constexpr int kRunLengths = 4;
#if defined(__AVX2__) && !defined(__AVX512BW__)
// Without VNNI: bytes of seven bits. Words hold the products of a step, and of several steps where the
// weights are small enough: such runs stand first in a panel, and the plan says how many have four steps,
// three, two and one, and where in a row each step is.
struct SevenBits {
  using Element = uint8_t;
  static constexpr int64_t depth = 4;
};

// Sums of pairs of factors above zero, and of pairs below.
struct PairSums {
  __m256i above[kVectors], below[kVectors];
  static PairSums of(const int8_t* step) {
    PairSums sums;
    const __m256i ones = _mm256_set1_epi8(1), zero = _mm256_setzero_si256();
    for (int v = 0; v < kVectors; ++v) {
      const __m256i w = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(step + 32 * v));
      sums.above[v] = _mm256_maddubs_epi16(ones, _mm256_max_epi8(w, zero));
      sums.below[v] = _mm256_sub_epi16(sums.above[v], _mm256_maddubs_epi16(ones, w));
    }
    return sums;
  }
  // Whether words hold the products of both with numbers up to 127; takes the other's in if so.
  bool take(const PairSums& other) {
    constexpr int16_t kMost = 32767 / 127;
    PairSums both;
    __m256i most = _mm256_setzero_si256();
    for (int v = 0; v < kVectors; ++v) {
      both.above[v] = _mm256_add_epi16(above[v], other.above[v]);
      both.below[v] = _mm256_add_epi16(below[v], other.below[v]);
      most = _mm256_max_epi16(most, _mm256_max_epi16(both.above[v], both.below[v]));
    }
    if (_mm256_movemask_epi8(_mm256_cmpgt_epi16(most, _mm256_set1_epi16(kMost)))) return false;
    *this = both;
    return true;
  }
};

// Orders the steps of a panel, and writes the plan behind them.
void plan_runs(int8_t* panel, int64_t steps) {
  constexpr int64_t kStep = 4 * kColumns, kAhead = 16;  // steps that are looked at
  auto* counts = reinterpret_cast<int32_t*>(panel + steps * kStep);
  int32_t* order = counts + kRunLengths;
  auto* memory = static_cast<char*>(take_scratch(steps * (kStep + 9)));
  auto* copy = reinterpret_cast<int8_t*>(memory);
  auto* runs = reinterpret_cast<int32_t*>(memory + steps * kStep);  // steps of each run, in the order found
  auto* lengths = reinterpret_cast<uint8_t*>(runs + steps);         // of each run
  auto* taken = lengths + steps;
  std::memcpy(copy, panel, static_cast<size_t>(steps * kStep));
  std::memset(taken, 0, static_cast<size_t>(steps));
  std::fill_n(counts, kRunLengths, 0);
  int64_t found = 0, number = 0;
  for (int64_t first = 0; first < steps; ++first) {
    if (taken[first]) continue;
    PairSums sums = PairSums::of(copy + first * kStep);
    int length = 1;
    runs[found++] = static_cast<int32_t>(first);
    for (int64_t next = first + 1; next < std::min(steps, first + kAhead) && length < kRunLengths; ++next) {
      if (taken[next] || !sums.take(PairSums::of(copy + next * kStep))) continue;
      taken[next] = 1, ++length;
      runs[found++] = static_cast<int32_t>(next);
    }
    lengths[number++] = static_cast<uint8_t>(length);
    ++counts[kRunLengths - length];
  }
  int64_t at = 0;
  for (int length = kRunLengths; length > 0; --length) {
    const int32_t* run = runs;
    for (int64_t r = 0; r < number; run += lengths[r++])
      for (int i = 0; lengths[r] == length && i < length; ++i) order[at++] = run[i];
  }
  for (int64_t g = 0; g < steps; ++g) std::memcpy(panel + g * kStep, copy + order[g] * kStep, kStep);
  give_scratch(memory);
}

// sums[R][kVectors] += one run of N steps.
template <int R, int N>
[[gnu::always_inline]] inline void add_run(const TileRows& a, const int32_t* order, const int8_t* panel,
                                           __m256i* sums) {
  __m256i words[R][kVectors];
#pragma GCC unroll 4
  for (int i = 0; i < N; ++i) {
    const int64_t at = 4 * int64_t{order[i]};
    __m256i w[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      w[v] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(panel + (i * kVectors + v) * 32));
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m256i factor = _mm256_set1_epi32(a.read<int32_t>(r, at));
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const __m256i product = _mm256_maddubs_epi16(factor, w[v]);
        words[r][v] = i ? _mm256_add_epi16(words[r][v], product) : product;
        // Here and now: compilers would multiply all steps first, and have no registers for that.
        asm volatile("" : "+x"(words[r][v]));
      }
    }
  }
  const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      sums[r * kVectors + v] = _mm256_add_epi32(sums[r * kVectors + v], _mm256_madd_epi16(words[r][v], ones));
}
template <int R, int N>
[[gnu::always_inline]] inline void add_runs(const TileRows& a, const int32_t* counts, const int32_t*& order,
                                            const int8_t*& panel, __m256i* sums) {
  for (int32_t left = counts[kRunLengths - N]; left > 0; --left, order += N, panel += N * 4 * kColumns)
    add_run<R, N>(a, order, panel, sums);
}
template <int R>
[[gnu::noinline]] void multiply_runs(const char* a, int64_t row, const int8_t* panel, const int32_t* counts,
                                     Ints* out) {
  __m256i sums[R * kVectors] = {};
  const int32_t* order = counts + kRunLengths;
  const TileRows rows(a, row);
  add_runs<R, 4>(rows, counts, order, panel, sums);
  add_runs<R, 3>(rows, counts, order, panel, sums);
  add_runs<R, 2>(rows, counts, order, panel, sums);
  add_runs<R, 1>(rows, counts, order, panel, sums);
  std::memcpy(out, sums, sizeof(sums));
}

// In the same panels: words, whose sums lie in two lanes for each column.
struct FourWords {
  using Element = int16_t;
  using Factor = uint64_t;
  static constexpr int64_t depth = 4;
  [[gnu::always_inline]] static Ints add(Ints sum, uint64_t factor, const int8_t* weight) {
    const __m256i b = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(weight)));
    return Ints(_mm256_add_epi32(__m256i(sum),
                                 _mm256_madd_epi16(_mm256_set1_epi64x(static_cast<long long>(factor)), b)));
  }
};
#endif
#if !defined(__AVX2__) || defined(__AVX512BW__)
void plan_runs(int8_t*, int64_t) {}
#endif
#if defined(RL_NEON)
// This multiplies numbers with a sign: 128 is taken off the activations, and goes into what follows the sums.
struct SignedBytes {
  using Element = uint8_t;
  using Factor = uint32_t;
  static constexpr int64_t depth = 4;
  [[gnu::always_inline]] static Ints add(Ints sum, uint32_t factor, const int8_t* weight) {
    const Words four = Words{} + (factor ^ 0x80808080u);
    Ints b;
    load(b, weight);
    // In this form no function needs to be compiled for processors that have it.
    asm(".arch armv8.2-a+dotprod\n\tsdot %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(four), "w"(b));
    return sum;
  }
};
#endif
template <class P>
constexpr int32_t kTakenOff = 0;
#if defined(RL_NEON)
template <>
constexpr int32_t kTakenOff<SignedBytes> = 128;
#endif
template <class P>
constexpr bool kTwoLanes = false;
#if defined(__AVX2__) && !defined(__AVX512BW__)
template <>
constexpr bool kTwoLanes<FourWords> = true;
template <class P>
constexpr bool kSeven = std::is_same_v<P, SevenBits>;
#else
template <class P>
constexpr bool kSeven = false;
#endif

// Whether a panel says in which order its steps come.
template <class P>
constexpr bool kPlanned = kTwoLanes<P> || kSeven<P>;

// Four columns after four go to the vectors in turn, so that instructions which pack each 128 bits of two
// vectors give bytes in the columns' order.
constexpr int64_t place_of(int64_t column) { return column % 8 / 4 * kLanes + column / 8 * 4 + column % 4; }

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
