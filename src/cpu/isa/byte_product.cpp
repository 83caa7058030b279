// Products of bytes for each instruction set. Pairs of words are multiplied and added without overflow
// everywhere; processors with VNNI, or ARM64's with dot products, take four bytes at once. (The instruction
// of x86 that multiplies bytes without it saturates at 16 bits.)
#include "cpu/byte_product.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <type_traits>

#include "core/host/processor.h"
#include "cpu/isa/tile_inl.h"
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

template <class P>
int64_t steps_of(int64_t k) {
  return (k + P::depth - 1) / P::depth;
}
// Of a panel with k rows; behind its steps stands their plan.
template <class P>
int64_t panel_bytes(int64_t k) {
  return steps_of<P>(k) * P::depth * kColumns +
         (kPlanned<P> ? static_cast<int64_t>(sizeof(int32_t)) * (kRunLengths + steps_of<P>(k) + 15) / 64 * 64
                      : 0);
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
    if constexpr (kPlanned<P>) plan_runs(to, groups);
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

// To even where two are as near. What is no number has none.
[[gnu::always_inline]] inline Ints rounded(Floats x) {
#if defined(__AVX512F__)
  return Ints(_mm512_maskz_cvtps_epi32(0xffff, __m512(x)));
#elif defined(__AVX2__)
  return Ints(_mm256_cvtps_epi32(__m256(x)));
#elif defined(__SSE2__)
  return Ints(_mm_cvtps_epi32(__m128(x)));
#elif defined(__aarch64__)
  return Ints(vcvtnq_s32_f32(float32x4_t(x)));
#else
  Ints result;
  for (int l = 0; l < kLanes; ++l) result[l] = static_cast<int32_t>(__builtin_rintf(x[l]));
  return result;
#endif
}
// The low bytes of numbers that fit them, or their low words.
template <bool Unsigned>
[[gnu::always_inline]] inline Bytes bytes_of(Ints x) {
#if defined(__AVX512BW__)
  return Bytes(_mm512_maskz_cvtepi32_epi8(0xffff, __m512i(x)));
#elif defined(__AVX2__)
  const __m128i words =
      _mm_packs_epi32(_mm256_castsi256_si128(__m256i(x)), _mm256_extracti128_si256(__m256i(x), 1));
  const __m128i bytes = Unsigned ? _mm_packus_epi16(words, words) : _mm_packs_epi16(words, words);
  Bytes result;
  __builtin_memcpy(&result, &bytes, sizeof(result));
  return result;
#else
  return __builtin_convertvector(x, Bytes);
#endif
}
typedef int16_t Shorts __attribute__((vector_size(2 * kLanes)));
[[gnu::always_inline]] inline Shorts words_of(Ints x) {
#if defined(__AVX512BW__)
  return Shorts(_mm512_maskz_cvtepi32_epi16(0xffff, __m512i(x)));
#elif defined(__AVX2__)
  return Shorts(_mm_packs_epi32(_mm256_castsi256_si128(__m256i(x)), _mm256_extracti128_si256(__m256i(x), 1)));
#else
  return __builtin_convertvector(x, Shorts);
#endif
}
// Comparisons with what is no number are false: it becomes `low`.
[[gnu::always_inline]] inline Floats bounded(Floats x, Floats low, Floats high) {
  x = x > low ? x : low;
  return x < high ? x : high;
}

template <class P>
bool quantize(const float* x, int64_t n, float inverse_scale, int32_t zero_point, int32_t low, int32_t high,
              bool is_signed, void* out) {
  using Element = typename P::Element;
  auto* to = static_cast<Element*>(out);
  const Floats factor = Floats{} + inverse_scale, least = Floats{} + static_cast<float>(low - zero_point),
               most = Floats{} + static_cast<float>(high - zero_point);
  const Ints add = Ints{} + (zero_point + (is_signed && sizeof(Element) == 1 ? 128 : 0));
  Ints all = {};
  for (int64_t i = 0; i < n; i += kLanes) {
    Floats v = {};
    if (n - i >= kLanes)
      load(v, x + i);
    else
      std::memcpy(&v, x + i, static_cast<size_t>(n - i) * sizeof(float));
    const Ints steps = rounded(bounded(v * factor, least, most)) + add;
    if constexpr (kSeven<P>) all |= steps;
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
  int32_t any = 0;
  for (int l = 0; l < kLanes; ++l) any |= all[l];
  return any > 127;
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

// What follows the sums of a panel.
struct Rest {
  Words column_terms[kVectors], zeros[kVectors];  // unsigned: they wrap around
  Floats scales[kVectors], bias[kVectors];

  // `taken_off`: what the sums miss of each activation.
  Rest(const ByteProduct& p, int64_t first, int64_t columns, int32_t taken_off) {
    int32_t ints[kColumns] = {};
    for (int64_t j = 0; j < columns; ++j)
      ints[place_of(j)] = static_cast<int32_t>(static_cast<uint32_t>(p.a_zero - taken_off) *
                                               static_cast<uint32_t>(p.b->column_sums()[first + j]));
    std::memcpy(column_terms, ints, sizeof(ints));
    std::fill_n(ints, kColumns, 0);
    if (p.b_zeros) put(p.b_zeros + first, columns, ints);
    std::memcpy(zeros, ints, sizeof(ints));
    float floats[kColumns] = {};
    if (p.scales) put(p.scales + first, columns, floats);
    std::memcpy(scales, floats, sizeof(floats));
    std::fill_n(floats, kColumns, 0.0f);
    if (p.bias) put(p.bias + first, columns, floats);
    std::memcpy(bias, floats, sizeof(floats));
  }
  template <class T>
  static void put(const T* from, int64_t columns, T* to) {
    for (int64_t j = 0; j < columns; ++j) to[place_of(j)] = from[j];
  }
};

template <class T, class V>
[[gnu::always_inline]] inline void store(V value, int64_t count, void* c, int64_t at) {
  T* to = static_cast<T*>(c) + at;
  if (count >= kLanes)
    __builtin_memcpy(to, &value, sizeof(value));
  else
    std::memcpy(to, &value, static_cast<size_t>(count) * sizeof(T));
}

#if defined(__AVX2__)
// Numbers of two vectors in their columns' order.
template <class V>
[[gnu::always_inline]] inline void in_order(V& a, V& b) {
#if defined(__AVX512BW__)
  const __m512i low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
                high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  const __m512i x = __m512i(a), y = __m512i(b);
  a = V(_mm512_permutex2var_epi64(x, low, y)), b = V(_mm512_permutex2var_epi64(x, high, y));
#else
  const __m256i x = __m256i(a), y = __m256i(b);
  a = V(_mm256_permute2x128_si256(x, y, 0x20)), b = V(_mm256_permute2x128_si256(x, y, 0x31));
#endif
}
#if defined(__AVX512BW__)
typedef __m256i PanelBytes;
#else
typedef __m128i PanelBytes;
#endif
struct ByteBounds {
  Floats high;
  Ints zero;  // words
  PanelBytes least, most;
  explicit ByteBounds(const ByteProduct& p)
      : high(Floats{} + (p.high - static_cast<float>(p.out_zero))),
        zero(Ints{} + (p.out_zero & 0xffff) * 0x10001) {
    std::memset(&least, static_cast<int>(p.low), sizeof(least));
    std::memset(&most, static_cast<int>(p.high), sizeof(most));
  }
};
// A panel's numbers as bytes. What is no number becomes the least one: so does the conversion.
template <bool Unsigned>
[[gnu::always_inline]] inline PanelBytes panel_bytes_of(Floats a, Floats b, const ByteBounds& bounds) {
#if defined(__AVX512BW__)
  const __m512i x = _mm512_maskz_cvtps_epi32(0xffff,
                                             _mm512_maskz_min_ps(0xffff, __m512(bounds.high), __m512(a))),
                y = _mm512_maskz_cvtps_epi32(0xffff,
                                             _mm512_maskz_min_ps(0xffff, __m512(bounds.high), __m512(b)));
  const __m512i words = _mm512_adds_epi16(_mm512_packs_epi32(x, y), __m512i(bounds.zero));
  const auto low = __m256i(__builtin_shufflevector(words, words, 0, 1, 2, 3)),
             high = __m256i(__builtin_shufflevector(words, words, 4, 5, 6, 7));
  const __m256i bytes = _mm256_permute4x64_epi64(
      Unsigned ? _mm256_packus_epi16(low, high) : _mm256_packs_epi16(low, high), 0xd8);
  return Unsigned ? _mm256_min_epu8(_mm256_max_epu8(bytes, bounds.least), bounds.most)
                  : _mm256_min_epi8(_mm256_max_epi8(bytes, bounds.least), bounds.most);
#else
  const __m256i x = _mm256_cvtps_epi32(_mm256_min_ps(__m256(bounds.high), __m256(a))),
                y = _mm256_cvtps_epi32(_mm256_min_ps(__m256(bounds.high), __m256(b)));
  const __m256i words = _mm256_adds_epi16(_mm256_packs_epi32(x, y), __m256i(bounds.zero));
  const __m128i low = _mm256_castsi256_si128(words), high = _mm256_extracti128_si256(words, 1);
  const __m128i bytes = Unsigned ? _mm_packus_epi16(low, high) : _mm_packs_epi16(low, high);
  return Unsigned ? _mm_min_epu8(_mm_max_epu8(bytes, bounds.least), bounds.most)
                  : _mm_min_epi8(_mm_max_epi8(bytes, bounds.least), bounds.most);
#endif
}
#else
template <class V>
[[gnu::always_inline]] inline void in_order(V&, V&) {}
#endif

// R says what is returned, and Rows whether the weight has zero points.
template <ByteResult R, bool Rows>
[[gnu::noinline]] void finish_typed(const ByteProduct& p, const Rest& rest, const Ints* sums, int rows,
                                    int64_t i, int64_t first) {
  const int64_t columns = std::min(kColumns, p.b->n - first);
  const auto sum_of = [&](int r, int v, int64_t row) {
    Words sum = Words(sums[r * kVectors + v]) - rest.column_terms[v];
    if constexpr (Rows) sum -= rest.zeros[v] * static_cast<uint32_t>(p.row_terms[row]);
    return Ints(sum);
  };
  const auto number = [&](int r, int v, int64_t row) {
    return (__builtin_convertvector(sum_of(r, v, row), Floats) + rest.bias[v]) * rest.scales[v];
  };
  if constexpr (R == ByteResult::kInt32) {
    for (int r = 0; r < rows; ++r, ++i) {
      Ints a = sum_of(r, 0, i), b = sum_of(r, 1, i);
      in_order(a, b);
      store<int32_t>(a, columns, p.c, i * p.ldc + first);
      if (columns > kLanes) store<int32_t>(b, columns - kLanes, p.c, i * p.ldc + first + kLanes);
    }
  } else if constexpr (R == ByteResult::kFloat) {  // out_zero is 0
    const Floats low = Floats{} + p.low, high = Floats{} + p.high;
    for (int r = 0; r < rows; ++r, ++i) {
      Floats a = __builtin_convertvector(sum_of(r, 0, i), Floats) * rest.scales[0] + rest.bias[0],
             b = __builtin_convertvector(sum_of(r, 1, i), Floats) * rest.scales[1] + rest.bias[1];
      a = clamped(a, low, high), b = clamped(b, low, high);
      in_order(a, b);
      store<float>(a, columns, p.c, i * p.ldc + first);
      if (columns > kLanes) store<float>(b, columns - kLanes, p.c, i * p.ldc + first + kLanes);
    }
  } else {
    constexpr bool kUnsigned = R == ByteResult::kUInt8;
    char* to = static_cast<char*>(p.c) + i * p.ldc + first;
#if defined(__AVX2__)
    const ByteBounds bounds(p);
    for (int r = 0; r < rows; ++r, ++i, to += p.ldc) {
      const PanelBytes bytes = panel_bytes_of<kUnsigned>(number(r, 0, i), number(r, 1, i), bounds);
      if (columns == kColumns)
        __builtin_memcpy(to, &bytes, sizeof(bytes));
      else
        std::memcpy(to, &bytes, static_cast<size_t>(columns));
    }
#else
    const Floats low = Floats{} + (p.low - static_cast<float>(p.out_zero)),
                 high = Floats{} + (p.high - static_cast<float>(p.out_zero));
    const Ints zero = Ints{} + p.out_zero;
    for (int r = 0; r < rows; ++r, ++i, to += p.ldc)
      for (int v = 0; v < kVectors && v * kLanes < columns; ++v)
        store<int8_t>(bytes_of<kUnsigned>(rounded(bounded(number(r, v, i), low, high)) + zero),
                      columns - v * kLanes, to, v * kLanes);
#endif
  }
}

using Finish = void (*)(const ByteProduct& p, const Rest& rest, const Ints* sums, int rows, int64_t i,
                        int64_t first);
template <bool Rows>
Finish finish_for(ByteResult result) {
  switch (result) {
    case ByteResult::kInt32:
      return finish_typed<ByteResult::kInt32, Rows>;
    case ByteResult::kFloat:
      return finish_typed<ByteResult::kFloat, Rows>;
    case ByteResult::kUInt8:
      return finish_typed<ByteResult::kUInt8, Rows>;
    default:
      return finish_typed<ByteResult::kInt8, Rows>;
  }
}
// Apart from the loop that sums: whose sums would have an address otherwise, and be written in each step.
Finish finish_of(const ByteProduct& p) {
  return p.row_terms ? finish_for<true>(p.result) : finish_for<false>(p.result);
}

template <class P, int R>
[[gnu::noinline]] void multiply_rows(const ByteProduct& p, const char* a, const int8_t* panel, Ints* out,
                                     const int32_t* planned = nullptr) {
  const int32_t* order = kPlanned<P> ? planned : nullptr;
  constexpr int64_t kStep = kColumns * P::depth, kBytes = kTwoLanes<P> ? kStep / 4 : kStep / kVectors;
  const int64_t groups = steps_of<P>(p.b->k);
  const TileRows rows(a, p.a->row_bytes());
  Ints sums[R][kVectors] = {};
  for (int64_t g = 0; g < groups; ++g, panel += kStep) {
    const int64_t step = order ? order[g] : g;
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const auto factor =
          rows.template read<typename P::Factor>(r, static_cast<int64_t>(sizeof(typename P::Factor)) * step);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][v] = P::add(sums[r][v], factor, panel + v * kBytes);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) out[r * kVectors + v] = sums[r][v];
}

#if defined(__AVX2__) && !defined(__AVX512BW__)
// Half a panel at a time.
template <int R>
void multiply_two_lanes(const ByteProduct& p, const char* a, const int8_t* panel, const int32_t* order,
                        Ints* out) {
  for (int half = 0; half < kVectors; ++half, panel += kColumns * FourWords::depth / kVectors) {
    Ints sums[R * kVectors];
    multiply_rows<FourWords, R>(p, a, panel, sums, order);
    for (int r = 0; r < R; ++r)
      out[r * kVectors + half] = Ints(_mm256_permute4x64_epi64(
          _mm256_hadd_epi32(__m256i(sums[r * kVectors]), __m256i(sums[r * kVectors + 1])), 0xd8));
  }
}
#endif

template <class P>
void multiply(const ByteProduct& p, int64_t row, int64_t row_end, int64_t begin, int64_t end) {
  constexpr int64_t kRows = 48;    // which stay in cache while panel by panel passes
  constexpr int64_t kPanels = 16;  // whose settings stay there
  const Finish finish = finish_of(p);
  const int64_t step_bytes = steps_of<P>(p.b->k) * P::depth * kColumns;
  alignas(Rest) char memory[kPanels * sizeof(Rest)];
  auto* rests = reinterpret_cast<Rest*>(memory);
  for (; begin < end; begin += kPanels) {
    const int64_t last_panel = std::min(end, begin + kPanels);
    for (int64_t panel = begin; panel < last_panel; ++panel)
      new (rests + (panel - begin))
          Rest(p, panel * kColumns, std::min(kColumns, p.b->n - panel * kColumns), kTakenOff<P>);
    for (int64_t first_row = row; first_row < row_end; first_row += kRows) {
      const int64_t last = std::min(row_end, first_row + kRows);
      for (int64_t panel = begin; panel < last_panel; ++panel) {
        const int8_t* steps = p.b->panels() + panel * panel_bytes<P>(p.b->k);
        [[maybe_unused]] const auto* plan = reinterpret_cast<const int32_t*>(steps + step_bytes);
        for_row_groups<kVectors>(first_row, last, [&]<int R>(int64_t at) {
          Ints sums[R * kVectors];
          const char* a = static_cast<const char*>(p.a->data()) + at * p.a->row_bytes();
#if defined(__AVX2__) && !defined(__AVX512BW__)
          if constexpr (kTwoLanes<P>)
            multiply_two_lanes<R>(p, a, steps, plan + kRunLengths, sums);
          else if constexpr (kSeven<P>)
            multiply_runs<R>(a, p.a->row_bytes(), steps, plan, sums);
          else
#endif
            multiply_rows<P, R>(p, a, steps, sums);
          finish(p, rests[panel - begin], sums, R, at, panel * kColumns);
        });
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
  return {sizeof(typename P::Element), fill<P>, quantize<P>, sum<P>, multiply<P>};
}
template <class P>
ByteKernels kernels() {
  return {kColumns, P::depth, row_kernels<P>(), {}, panel_bytes<P>, pack<P>, range};
}

}  // namespace

ByteKernels byte_kernels_variant() {
#if defined(__AVX512BW__)
  if (__builtin_cpu_supports("avx512vnni")) return kernels<FourBytes>();
  return kernels<PairsOfWords>();
#elif defined(__AVX2__)
  if (has_avx_vnni()) return kernels<FourBytes>();
  ByteKernels all = kernels<FourWords>();
  all.seven_bits = row_kernels<SevenBits>();
  return all;
#elif defined(RL_NEON)
  return host::has_dot_products() ? kernels<SignedBytes>() : kernels<PairsOfWords>();
#else
  return kernels<PairsOfWords>();
#endif
}

}  // namespace rushlight::cpu::RL_ISA
