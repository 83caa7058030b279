// Loops of functions of one argument that are written for vectors, two at a time. A function's `near` holds
// for most numbers. If it has a Doubt, which sees all arguments, then `far` holds for all, and gives what
// `near` does where that holds: a value does not depend on its neighbours. Included by files of this folder.
#pragma once
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "cpu/isa/tile_inl.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace rushlight::cpu::RL_ISA {
namespace {

// What computes a formula in one type by vectors; void: nothing does.
template <class Formula, class T>
struct InLanes {
  using Function = void;
};

#if defined(__AVX2__)
template <class T>
using Lane = typename Lanes<T>::type;
template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

[[gnu::always_inline]] inline Lane<int32_t> bits_of(Lane<float> x) {
  return __builtin_bit_cast(Lane<int32_t>, x);
}
[[gnu::always_inline]] inline Lane<int64_t> bits_of(Lane<double> x) {
  return __builtin_bit_cast(Lane<int64_t>, x);
}
[[gnu::always_inline]] inline Lane<float> number_of(Lane<int32_t> x) {
  return __builtin_bit_cast(Lane<float>, x);
}
[[gnu::always_inline]] inline Lane<double> number_of(Lane<int64_t> x) {
  return __builtin_bit_cast(Lane<double>, x);
}
[[gnu::always_inline]] inline Lane<double> number_of(Lane<uint64_t> x) {
  return __builtin_bit_cast(Lane<double>, x);
}
[[gnu::always_inline]] inline Lane<float> magnitude(Lane<float> x) {
  return number_of(bits_of(x) & std::numeric_limits<int32_t>::max());
}
[[gnu::always_inline]] inline Lane<double> magnitude(Lane<double> x) {
  return number_of(bits_of(x) & std::numeric_limits<int64_t>::max());
}
[[gnu::always_inline]] inline Lane<float> with_sign_of(Lane<float> size, Lane<float> x) {
  return number_of(bits_of(size) | (bits_of(x) & std::numeric_limits<int32_t>::min()));
}

[[gnu::always_inline]] inline Lane<double> with_sign_of(Lane<double> size, Lane<double> x) {
  return number_of(bits_of(size) | (bits_of(x) & std::numeric_limits<int64_t>::min()));
}
[[gnu::always_inline]] inline Lane<double> flipped_by(Lane<double> y, Lane<double> x) {
  return number_of(bits_of(y) ^ (bits_of(x) & std::numeric_limits<int64_t>::min()));
}

// Whether the processor scales by powers of two, beyond the largest number as well.
#if defined(__AVX512F__)
constexpr bool kScales = true;
#else
constexpr bool kScales = false;
#endif

// `larger` gives y where one of both is NaN; bounds leave NaN as it is. `product` is rounded, whatever its
// result is added to; what it lost is exact.
#if defined(__AVX512F__)
template <class T>
constexpr __mmask16 kAllLanes = (1u << Lanes<T>::count) - 1;
constexpr int kZeros = 0x06, kPlusInfinity = 0x08;  // for fpclass
[[gnu::always_inline]] inline Lane<float> larger(Lane<float> x, Lane<float> y) {
  return _mm512_maskz_max_ps(kAllLanes<float>, x, y);
}
[[gnu::always_inline]] inline Lane<double> larger(Lane<double> x, Lane<double> y) {
  return _mm512_maskz_max_pd(kAllLanes<double>, x, y);
}
[[gnu::always_inline]] inline Lane<uint32_t> larger(Lane<uint32_t> x, Lane<uint32_t> y) {
  return __builtin_bit_cast(Lane<uint32_t>,
                            _mm512_maskz_max_epu32(kAllLanes<float>, __builtin_bit_cast(__m512i, x),
                                                   __builtin_bit_cast(__m512i, y)));
}
[[gnu::always_inline]] inline Lane<uint64_t> larger(Lane<uint64_t> x, Lane<uint64_t> y) {
  return __builtin_bit_cast(Lane<uint64_t>,
                            _mm512_maskz_max_epu64(kAllLanes<double>, __builtin_bit_cast(__m512i, x),
                                                   __builtin_bit_cast(__m512i, y)));
}
[[gnu::always_inline]] inline Lane<float> at_least(Lane<float> x, float low) {
  return _mm512_maskz_max_ps(kAllLanes<float>, Lane<float>{} + low, x);
}
[[gnu::always_inline]] inline Lane<double> at_least(Lane<double> x, double low) {
  return _mm512_maskz_max_pd(kAllLanes<double>, Lane<double>{} + low, x);
}
[[gnu::always_inline]] inline Lane<float> at_most(Lane<float> x, float high) {
  return _mm512_maskz_min_ps(kAllLanes<float>, Lane<float>{} + high, x);
}
[[gnu::always_inline]] inline Lane<double> at_most(Lane<double> x, double high) {
  return _mm512_maskz_min_pd(kAllLanes<double>, Lane<double>{} + high, x);
}
[[gnu::always_inline]] inline Lane<float> product(Lane<float> x, Lane<float> y) {
  return _mm512_maskz_mul_ps(kAllLanes<float>, x, y);
}
[[gnu::always_inline]] inline Lane<float> lost_of_product(Lane<float> x, Lane<float> y, Lane<float> rounded) {
  return _mm512_maskz_fmsub_ps(kAllLanes<float>, x, y, rounded);
}
[[gnu::always_inline]] inline bool any_from(Lane<float> x, float bound) {
  return _mm512_cmp_ps_mask(x, _mm512_set1_ps(bound), _CMP_GE_OQ);
}
[[gnu::always_inline]] inline bool any_from(Lane<double> x, double bound) {
  return _mm512_cmp_pd_mask(x, _mm512_set1_pd(bound), _CMP_GE_OQ);
}
[[gnu::always_inline]] inline bool any_from(Lane<uint32_t> x, uint32_t bound) {
  return _mm512_cmpge_epu32_mask(__builtin_bit_cast(__m512i, x), _mm512_set1_epi32(static_cast<int>(bound)));
}
[[gnu::always_inline]] inline bool any_from(Lane<uint64_t> x, uint64_t bound) {
  return _mm512_cmpge_epu64_mask(__builtin_bit_cast(__m512i, x),
                                 _mm512_set1_epi64(static_cast<int64_t>(bound)));
}
[[gnu::always_inline]] inline Lane<float> smaller(Lane<float> x, Lane<float> y) {
  return _mm512_maskz_min_ps(kAllLanes<float>, x, y);
}
[[gnu::always_inline]] inline Lane<double> smaller(Lane<double> x, Lane<double> y) {
  return _mm512_maskz_min_pd(kAllLanes<double>, x, y);
}
[[gnu::always_inline]] inline bool any_below(Lane<float> x, float bound) {
  return _mm512_cmp_ps_mask(x, _mm512_set1_ps(bound), _CMP_LT_OQ);
}
[[gnu::always_inline]] inline bool any_below(Lane<double> x, double bound) {
  return _mm512_cmp_pd_mask(x, _mm512_set1_pd(bound), _CMP_LT_OQ);
}
// x 2^n for the floor of n.
[[gnu::always_inline]] inline Lane<float> scaled(Lane<float> x, Lane<float> n) {
  return _mm512_maskz_scalef_ps(kAllLanes<float>, x, n);
}
[[gnu::always_inline]] inline Lane<double> scaled(Lane<double> x, Lane<double> n) {
  return _mm512_maskz_scalef_pd(kAllLanes<double>, x, n);
}
[[gnu::always_inline]] inline Lane<float> square_root(Lane<float> x) {
  return _mm512_maskz_sqrt_ps(kAllLanes<float>, x);
}
[[gnu::always_inline]] inline Lane<double> square_root(Lane<double> x) {
  return _mm512_maskz_sqrt_pd(kAllLanes<double>, x);
}
// What a table holds at the low bits of a lane.
[[gnu::always_inline]] inline Lane<float> pick(const float (&table)[16], Lane<float> index) {
  return _mm512_maskz_permutexvar_ps(kAllLanes<float>, __builtin_bit_cast(__m512i, index),
                                     _mm512_load_ps(table));
}
[[gnu::always_inline]] inline Lane<double> pick(const double (&table)[16], Lane<double> index) {
  return _mm512_maskz_permutex2var_pd(kAllLanes<double>, _mm512_load_pd(table),
                                      __builtin_bit_cast(__m512i, index), _mm512_load_pd(table + 8));
}
#else
[[gnu::always_inline]] inline Lane<float> larger(Lane<float> x, Lane<float> y) { return _mm256_max_ps(x, y); }
[[gnu::always_inline]] inline Lane<double> larger(Lane<double> x, Lane<double> y) {
  return _mm256_max_pd(x, y);
}
[[gnu::always_inline]] inline Lane<uint32_t> larger(Lane<uint32_t> x, Lane<uint32_t> y) {
  return __builtin_bit_cast(Lane<uint32_t>,
                            _mm256_max_epu32(__builtin_bit_cast(__m256i, x), __builtin_bit_cast(__m256i, y)));
}
[[gnu::always_inline]] inline Lane<float> at_least(Lane<float> x, float low) {
  return _mm256_max_ps(_mm256_set1_ps(low), x);
}
[[gnu::always_inline]] inline Lane<double> at_least(Lane<double> x, double low) {
  return _mm256_max_pd(_mm256_set1_pd(low), x);
}
[[gnu::always_inline]] inline Lane<float> at_most(Lane<float> x, float high) {
  return _mm256_min_ps(_mm256_set1_ps(high), x);
}
[[gnu::always_inline]] inline Lane<double> at_most(Lane<double> x, double high) {
  return _mm256_min_pd(_mm256_set1_pd(high), x);
}
[[gnu::always_inline]] inline Lane<float> product(Lane<float> x, Lane<float> y) {
  return _mm256_mul_ps(x, y);
}
[[gnu::always_inline]] inline Lane<float> lost_of_product(Lane<float> x, Lane<float> y, Lane<float> rounded) {
  return _mm256_fmsub_ps(x, y, rounded);
}
[[gnu::always_inline]] inline Lane<float> square_root(Lane<float> x) { return _mm256_sqrt_ps(x); }
[[gnu::always_inline]] inline Lane<double> square_root(Lane<double> x) { return _mm256_sqrt_pd(x); }
[[gnu::always_inline]] inline bool any_from(Lane<float> x, float bound) {
  return _mm256_movemask_ps(_mm256_cmp_ps(x, _mm256_set1_ps(bound), _CMP_GE_OQ));
}
[[gnu::always_inline]] inline bool any_from(Lane<double> x, double bound) {
  return _mm256_movemask_pd(_mm256_cmp_pd(x, _mm256_set1_pd(bound), _CMP_GE_OQ));
}
[[gnu::always_inline]] inline bool any_from(Lane<uint32_t> x, uint32_t bound) {
  const __m256i lanes = __builtin_bit_cast(__m256i, x);
  const __m256i larger = _mm256_max_epu32(lanes, _mm256_set1_epi32(static_cast<int>(bound)));
  return _mm256_movemask_epi8(_mm256_cmpeq_epi32(larger, lanes));
}
[[gnu::always_inline]] inline Lane<float> pick(const float (&table)[8], Lane<float> index) {
  return _mm256_permutevar8x32_ps(_mm256_load_ps(table), __builtin_bit_cast(__m256i, index));
}
#endif

template <class L>
concept Doubtful = requires { typename L::Doubt; };

// Apart: of what both have in common the compiler would make other sums of products in `near`.
template <class L>
[[gnu::noinline]] Lane<typename L::T> far_apart(Lane<typename L::T> x) {
  return L::far(x);
}

template <class L, int Vectors>
[[gnu::always_inline]] inline void compute_lanes(typename L::T* out, const typename L::T* x) {
  constexpr int kCount = Lanes<typename L::T>::count;
  Lane<typename L::T> in[Vectors], value[Vectors];
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) {
    load(in[v], x + v * kCount);
    value[v] = L::near(in[v]);
  }
  if constexpr (Doubtful<L>) {
    typename L::Doubt doubt;
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) doubt.add(in[v]);
    if (doubt.any()) [[unlikely]]
      for (int v = 0; v < Vectors; ++v) value[v] = far_apart<L>(in[v]);
  }
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) std::memcpy(out + v * kCount, &value[v], kRegisterBytes);
}

template <class L>
void loop_of_lanes(char* const* data, unsigned, int64_t n, const void*) {
  using T = typename L::T;
  constexpr int64_t kCount = Lanes<T>::count;
  auto* out = reinterpret_cast<T*>(data[0]);
  const auto* x = reinterpret_cast<const T*>(data[1]);
  int64_t i = 0;
  for (; i + 2 * kCount <= n; i += 2 * kCount) compute_lanes<L, 2>(out + i, x + i);
  for (; i < n; i += kCount) {
    if (n - i >= kCount) {
      compute_lanes<L, 1>(out + i, x + i);
      continue;
    }
    T some[kCount];
    for (int64_t l = 0; l < kCount; ++l) some[l] = x[std::min(i + l, n - 1)];
    compute_lanes<L, 1>(some, some);
    std::memcpy(out + i, some, static_cast<size_t>(n - i) * sizeof(T));
  }
}
#endif

// A row of loops, with those by vectors in place of others.
template <class F, class T, class Row>
constexpr void put_in_lanes([[maybe_unused]] Row& row) {
#if defined(__AVX2__)
  using L = typename InLanes<F, T>::Function;
  if constexpr (!std::is_void_v<L>) row[static_cast<int>(dtype_of<T>)] = &loop_of_lanes<L>;
#endif
}

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
