// Products of bytes for each instruction set. Pairs of words are multiplied and added without overflow
// everywhere; processors with VNNI, or ARM64's with dot products, take four bytes at once. (The instruction
// of x86 that multiplies bytes without it saturates at 16 bits.)
#include "cpu/byte_product.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/host/processor.h"
#include "cpu/isa/tile_inl.h"
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

#if defined(__AVX2__) && !defined(__AVX512BW__)
// Without VNNI: bytes of seven bits, whose products do not saturate when two are added.
struct SevenBits {
  using Element = uint8_t;
  using Factor = uint32_t;
  static constexpr int64_t depth = 4;
  [[gnu::always_inline]] static Ints add(Ints sum, uint32_t factor, const int8_t* weight) {
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi32(static_cast<int>(factor)),
                                               _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weight)));
    return Ints(_mm256_add_epi32(__m256i(sum), _mm256_madd_epi16(pairs, _mm256_set1_epi16(1))));
  }
};
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

template <class P>
void pack(int64_t k, int64_t n, const MatrixView& weight, int8_t* panels, int32_t* sums, int64_t begin,
          int64_t end) {
  constexpr int64_t kDepth = P::depth;
  const int64_t groups = (k + kDepth - 1) / kDepth, whole = k / kDepth;
  for (int64_t panel = begin; panel < end; ++panel) {
    const int64_t first = panel * kColumns, columns = std::min(kColumns, n - first);
    const auto* from = static_cast<const int8_t*>(weight.data) + first * weight.column_stride;
    int8_t* to = panels + panel * groups * kDepth * kColumns;
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
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t j = 0; j < kColumns; ++j)
        for (int64_t q = 0; q < kDepth; ++q) total[j] += to[(g * kColumns + j) * kDepth + q];
    std::copy_n(total, columns, sums + first);
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
      ints[j] = static_cast<int32_t>(static_cast<uint32_t>(p.a_zero - taken_off) *
                                     static_cast<uint32_t>(p.b->column_sums()[first + j]));
    std::memcpy(column_terms, ints, sizeof(ints));
    std::fill_n(ints, kColumns, 0);
    if (p.b_zeros) std::copy_n(p.b_zeros + first, columns, ints);
    std::memcpy(zeros, ints, sizeof(ints));
    float floats[kColumns] = {};
    if (p.scales) std::copy_n(p.scales + first, columns, floats);
    std::memcpy(scales, floats, sizeof(floats));
    std::fill_n(floats, kColumns, 0.0f);
    if (p.bias) std::copy_n(p.bias + first, columns, floats);
    std::memcpy(bias, floats, sizeof(floats));
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

// R says what is returned, and Rows whether the weight has zero points.
template <ByteResult R, bool Rows>
[[gnu::noinline]] void finish_typed(const ByteProduct& p, const Rest& rest, const Ints* sums, int rows,
                                    int64_t i, int64_t first) {
  const Floats low = Floats{} + (p.low - static_cast<float>(p.out_zero)),
               high = Floats{} + (p.high - static_cast<float>(p.out_zero));
  const Ints zero = Ints{} + p.out_zero;
  const int64_t columns = p.b->n - first;
  for (int r = 0; r < rows; ++r, ++i)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const int64_t count = columns - v * kLanes, at = i * p.ldc + first + v * kLanes;
      if (count <= 0) break;
      Words sum = Words(sums[r * kVectors + v]) - rest.column_terms[v];
      if constexpr (Rows) sum -= rest.zeros[v] * static_cast<uint32_t>(p.row_terms[i]);
      if constexpr (R == ByteResult::kInt32) {
        store<int32_t>(Ints(sum), count, p.c, at);
      } else if constexpr (R == ByteResult::kFloat) {  // out_zero is 0
        Floats y = __builtin_convertvector(Ints(sum), Floats) * rest.scales[v] + rest.bias[v];
        y = y < low ? low : y;
        store<float>(y > high ? high : y, count, p.c, at);
      } else {
        const Floats y = (__builtin_convertvector(Ints(sum), Floats) + rest.bias[v]) * rest.scales[v];
        store<int8_t>(bytes_of<R == ByteResult::kUInt8>(rounded(bounded(y, low, high)) + zero), count, p.c,
                      at);
      }
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
[[gnu::noinline]] void multiply_rows(const ByteProduct& p, const char* a, const int8_t* panel, Ints* out) {
  constexpr int64_t kStep = kColumns * P::depth, kBytes = kTwoLanes<P> ? kStep / 4 : kStep / kVectors;
  const int64_t row = p.a->row_bytes(), groups = (p.b->k + P::depth - 1) / P::depth;
  Ints sums[R][kVectors] = {};
  for (int64_t g = 0; g < groups; ++g, panel += kStep) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      typename P::Factor factor;
      __builtin_memcpy(&factor, a + r * row + static_cast<int64_t>(sizeof(factor)) * g, sizeof(factor));
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
void multiply_two_lanes(const ByteProduct& p, const char* a, const int8_t* panel, Ints* out) {
  for (int half = 0; half < kVectors; ++half, panel += kColumns * FourWords::depth / kVectors) {
    Ints sums[R * kVectors];
    multiply_rows<FourWords, R>(p, a, panel, sums);
    for (int r = 0; r < R; ++r)
      out[r * kVectors + half] = Ints(_mm256_permute4x64_epi64(
          _mm256_hadd_epi32(__m256i(sums[r * kVectors]), __m256i(sums[r * kVectors + 1])), 0xd8));
  }
}
#endif

template <class P>
void multiply(const ByteProduct& p, int64_t row, int64_t row_end, int64_t begin, int64_t end) {
  constexpr int64_t kRows = 48;  // which stay in cache while panel by panel passes
  const Finish finish = finish_of(p);
  const int64_t panel_bytes = (p.b->k + P::depth - 1) / P::depth * P::depth * kColumns;
  for (; row < row_end; row += kRows) {
    const int64_t last = std::min(row_end, row + kRows);
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t first = panel * kColumns;
      const Rest rest(p, first, std::min(kColumns, p.b->n - first), kTakenOff<P>);
      for_row_groups<kVectors>(row, last, [&]<int R>(int64_t at) {
        Ints sums[R * kVectors];
        const char* a = static_cast<const char*>(p.a->data()) + at * p.a->row_bytes();
        if constexpr (kTwoLanes<P>)
          multiply_two_lanes<R>(p, a, p.b->panels() + panel * panel_bytes, sums);
        else
          multiply_rows<P, R>(p, a, p.b->panels() + panel * panel_bytes, sums);
        finish(p, rest, sums, R, at, first);
      });
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
  return {kColumns, P::depth, row_kernels<P>(), {}, pack<P>, range};
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
