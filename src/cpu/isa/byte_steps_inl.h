// How each instruction set multiplies bytes: the factors that one step takes, and what it adds them to. The
// tables of byte_product.cpp are made of these.
#pragma once
#include <algorithm>
#include <cstring>

#include "cpu/byte_product.h"
#include "cpu/isa/tile_inl.h"
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
// Four columns after four go to the vectors in turn, so that instructions which pack each 128 bits of two
// vectors give bytes in the columns' order.
constexpr int64_t place_of(int64_t column) { return column % 8 / 4 * kLanes + column / 8 * 4 + column % 4; }

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
