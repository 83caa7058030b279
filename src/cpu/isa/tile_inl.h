// Products of a few rows with a panel of columns, kept in registers; included by the files of this folder.
#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "core/dtype.h"
#include "cpu/isa/half_inl.h"
#include "cpu/isa/register_inl.h"

namespace rushlight::cpu::RL_ISA {
namespace {

#pragma GCC diagnostic ignored "-Wpsabi"
// Registers for factors. ARM64 multiplies by a lane: it reads four factors of a row at a time.
#if defined(RL_NEON)
constexpr int kFactors = 5;
#else
constexpr int kFactors = 1;
#endif
// The most rows of a tile of V vectors: its sums, a factor and a row of the panel fill the registers. (Beside
// three rows of four vectors in sixteen registers, some of the panel is read again.)
template <int V>
constexpr int kTileRows = std::clamp((kRegisters - kFactors) / V - 1, 3, 6);

template <class C>
struct Lanes {
  static constexpr int count = kRegisterBytes / static_cast<int>(sizeof(C));
  typedef C type __attribute__((vector_size(kRegisterBytes)));
};

template <class V, class T>
[[gnu::always_inline]] inline void load(V& to, const T* from) {
  __builtin_memcpy(&to, from, sizeof(to));
}

// A comparison with a NaN is false, so that it stays.
template <class V>
[[gnu::always_inline]] inline V clamped(V v, const V& low, const V& high) {
  v = v < low ? low : v;
  return v > high ? high : v;
}

typedef uint16_t HalfBits __attribute__((vector_size(kRegisterBytes / 2)));
typedef uint32_t FloatBits __attribute__((vector_size(kRegisterBytes)));

// Between them; of __builtin_convertvector g++ makes two halves that are joined.
[[gnu::always_inline]] inline FloatBits extended(const HalfBits& half) {
#if defined(__AVX512F__)
  return __builtin_bit_cast(FloatBits,
                            _mm512_maskz_cvtepu16_epi32(0xffff, __builtin_bit_cast(__m256i, half)));
#else
  return __builtin_convertvector(half, FloatBits);
#endif
}
[[gnu::always_inline]] inline HalfBits cut(const FloatBits& bits) {
#if defined(__AVX512F__)
  return __builtin_bit_cast(HalfBits, _mm512_maskz_cvtepi32_epi16(0xffff, __builtin_bit_cast(__m512i, bits)));
#else
  return __builtin_convertvector(bits, HalfBits);
#endif
}

// The first n lanes, apart so that the common case stays short.
template <class T, class C>
[[gnu::noinline]] void read_some(const T* from, int64_t n, C* to) {
  for (int64_t l = 0; l < Lanes<C>::count; ++l) to[l] = C(0);
  for (int64_t l = 0; l < n; ++l) to[l] = static_cast<C>(from[l]);
}
template <class T, class C>
[[gnu::noinline]] void write_some(const C* from, int64_t n, T* to) {
  for (int64_t l = 0; l < n; ++l) to[l] = T(from[l]);
}

// A vector's worth of elements, converted: n of them, the others 0. Written out for bfloat16, whose branch
// for NaN keeps loops from becoming vector code.
template <class T, class C>
[[gnu::always_inline]] inline void read_lanes(const T* from, int64_t n, C* to) {
  if (n < Lanes<C>::count) return read_some(from, n, to);
  if constexpr (std::is_same_v<T, C>) {
    __builtin_memcpy(to, from, kRegisterBytes);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    HalfBits half;
    load(half, from);
    const FloatBits bits = extended(half) << 16;
    __builtin_memcpy(to, &bits, sizeof(bits));
#if defined(__AVX512F__)
  } else if constexpr (std::is_same_v<T, Half>) {
    widen_block(from, to);
#elif defined(__F16C__)
  } else if constexpr (std::is_same_v<T, Half>) {
    _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
#elif defined(__aarch64__)
  } else if constexpr (std::is_same_v<T, Half> && std::is_same_v<C, float>) {
    vst1q_f32(to, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(&from->bits))));
#endif
  } else {
    read_some(from, Lanes<C>::count, to);
  }
}
template <class T, class C>
[[gnu::always_inline]] inline void write_lanes(const C* from, int64_t n, T* to) {
  if (n < Lanes<C>::count) return write_some(from, n, to);
  if constexpr (std::is_same_v<T, C>) {
    __builtin_memcpy(to, from, kRegisterBytes);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    FloatBits bits;
    load(bits, from);
    const FloatBits rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16, nan = FloatBits{} + 0x7fc0u;
    const HalfBits narrow = cut((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
    __builtin_memcpy(static_cast<void*>(to), &narrow, sizeof(narrow));
#if defined(__AVX512F__)
  } else if constexpr (std::is_same_v<T, Half>) {
    narrow_block(from, to);
#elif defined(__F16C__)
  } else if constexpr (std::is_same_v<T, Half>) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__aarch64__)
  } else if constexpr (std::is_same_v<T, Half> && std::is_same_v<C, float>) {
    vst1_u16(&to->bits, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(from))));
#endif
  } else {
    write_some(from, Lanes<C>::count, to);
  }
}

// Two neighbouring factors in bfloat16, which a processor may multiply and add in one instruction.
struct FactorPair {
  BFloat16 first, second;
};
inline bool has_pair_products() {
#if defined(__AVX512BW__)
  return __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

// Elements of T are computed in C; `Pairs`: products take bfloat16, two at a time.
template <class T, bool Pairs>
struct ProductTypes {
  using C = compute_type<T>;
  using State = std::conditional_t<Pairs, BFloat16, C>;
  using Factor = std::conditional_t<Pairs, FactorPair, C>;
  static constexpr int64_t step = Pairs ? 2 : 1;  // states in a factor
};

template <class V, class C>
[[gnu::always_inline]] inline V add_product(V sum, C factor, V b) {
  return sum + factor * b;
}
template <class V>
[[gnu::always_inline]] inline V add_product(V sum, FactorPair factor, V b) {
#if defined(__AVX512BW__)
  // In this form no function needs to be compiled for processors that have it.
  const FloatBits pair = FloatBits{} + __builtin_bit_cast(uint32_t, factor);
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(pair), "v"(b));
#else
  (void)factor, (void)b;
#endif
  return sum;
}

#if defined(RL_NEON)
// The products by lane L of the factors, with one row of the panel.
template <int L, int R, int V>
[[gnu::always_inline]] inline void add_lane(const Lanes<float>::type (&factors)[R], const float* panel,
                                            Lanes<float>::type (&sums)[R][V]) {
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) {
    const float32x4_t b = vld1q_f32(panel + v * Lanes<float>::count);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sums[r][v] = vfmaq_laneq_f32(sums[r][v], b, factors[r], L);
  }
}
#endif

// sums[r] += a[r, 0..k) panel[0..k, V vectors); the elements of `a` lie `row` and `column` apart. F: C, or
// pairs of bfloat16 that are summed in float.
template <int R, int V, class C, class F>
[[gnu::always_inline]] inline void accumulate_tile(const F* a, int64_t row, int64_t column, const F* panel,
                                                   int64_t k, typename Lanes<C>::type (&sums)[R][V]) {
  constexpr int n = Lanes<C>::count;
  int64_t i = 0;
#if defined(RL_NEON)
  if constexpr (std::is_same_v<C, float> && std::is_same_v<F, float>)
    if (column == 1) {
      Lanes<float>::type own[R][V];  // a copy, which is registers alone
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) own[r][v] = sums[r][v];
      for (; i + n <= k; i += n, panel += n * V * n) {
        Lanes<float>::type factors[R];
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) load(factors[r], a + r * row + i);
        add_lane<0, R, V>(factors, panel, own);
        add_lane<1, R, V>(factors, panel + V * n, own);
        add_lane<2, R, V>(factors, panel + 2 * V * n, own);
        add_lane<3, R, V>(factors, panel + 3 * V * n, own);
      }
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) sums[r][v] = own[r][v];
    }
#endif
  for (; i < k; ++i, panel += V * n) {
    typename Lanes<C>::type b[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) load(b[v], panel + v * n);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const F factor = a[r * row + i * column];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sums[r][v] = add_product(sums[r][v], factor, b[v]);
    }
  }
}
template <int R, int V, class C, class F>
[[gnu::always_inline]] inline void multiply_tile(const F* a, int64_t row, const F* panel, int64_t k,
                                                 typename Lanes<C>::type (&sums)[R][V]) {
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) sums[r][v] = typename Lanes<C>::type{};
  accumulate_tile<R, V, C>(a, row, 1, panel, k, sums);
}

// Calls f(first row, number of rows) with the number as a constant, in groups of much the same size for
// tiles of V vectors.
template <int R, class F>
[[gnu::always_inline]] inline void call_with_rows(int64_t rows, int64_t at, F&& f) {
  if constexpr (R > 0) {
    if (rows == R) return f.template operator()<R>(at);
    call_with_rows<R - 1>(rows, at, f);
  }
}
template <int Most, class F>
[[gnu::always_inline]] inline void for_groups(int64_t begin, int64_t end, F&& f) {
  while (begin < end) {
    const int64_t left = end - begin, groups = (left + Most - 1) / Most;
    const int64_t rows = (left + groups - 1) / groups;
    call_with_rows<Most>(rows, begin, f);
    begin += rows;
  }
}
template <int V, class F>
[[gnu::always_inline]] inline void for_row_groups(int64_t begin, int64_t end, F&& f) {
  for_groups<kTileRows<V>>(begin, end, f);
}

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
