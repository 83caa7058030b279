// Blocks of halves as floats, by the processor's own conversions, which the compiler puts into no loop.
// Included by the files of this folder, and by loops that those include.
#pragma once
#include "core/half.h"
#if defined(__F16C__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace rushlight::cpu::RL_ISA {
namespace {

constexpr int kHalfBlock = 16;

[[gnu::always_inline]] inline void widen_block(const Half* from, float* to) {
#if defined(__AVX512F__)
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  _mm512_storeu_ps(to, _mm512_maskz_cvtph_ps(0xffff, halves));
#elif defined(__F16C__)
  for (int i = 0; i < kHalfBlock; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
#elif defined(__aarch64__)
  for (int i = 0; i < kHalfBlock; i += 4)
    vst1q_f32(to + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(&from[i].bits))));
#else
  for (int i = 0; i < kHalfBlock; ++i) to[i] = from[i];
#endif
}

[[gnu::always_inline]] inline void narrow_block(const float* from, Half* to) {
#if defined(__AVX512F__)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm512_maskz_cvtps_ph(0xffff, _mm512_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
  for (int i = 0; i < kHalfBlock; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__aarch64__)
  for (int i = 0; i < kHalfBlock; i += 4)
    vst1_u16(&to[i].bits, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(from + i))));
#else
  for (int i = 0; i < kHalfBlock; ++i) to[i] = Half(from[i]);
#endif
}

// Any number of elements; also of other types, whose conversions the compiler does turn into vectors.
template <class C, class T>
[[gnu::always_inline]] inline void widen(const T* from, C* to, int64_t n) {
  int64_t i = 0;
  if constexpr (std::is_same_v<T, Half>)
    for (; i + kHalfBlock <= n; i += kHalfBlock) widen_block(from + i, to + i);
  for (; i < n; ++i) to[i] = static_cast<C>(from[i]);
}
template <class C, class T>
[[gnu::always_inline]] inline void narrow(const C* from, T* to, int64_t n) {
  int64_t i = 0;
  if constexpr (std::is_same_v<T, Half>)
    for (; i + kHalfBlock <= n; i += kHalfBlock) narrow_block(from + i, to + i);
  for (; i < n; ++i) to[i] = static_cast<T>(from[i]);
}

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
