// Exponentials of vectors that stay in registers; included by the files of this folder.
#pragma once
#include "cpu/isa/exp_inl.h"
#include "cpu/isa/tile_inl.h"
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace rushlight::cpu::RL_ISA {
namespace {

template <class C>
using LaneVector = typename Lanes<C>::type;

// The larger of both, y where x is NaN.
template <class C>
[[gnu::always_inline]] inline LaneVector<C> larger_lanes(LaneVector<C> x, LaneVector<C> y) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<C, float>) return _mm512_maskz_max_ps(0xffff, x, y);
#endif
  return x > y ? x : y;
}

// exp(x) for x <= 0. NaN stays NaN.
template <class C>
[[gnu::always_inline]] inline LaneVector<C> exp_lanes(LaneVector<C> x) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<C, float>) {
    // A polynomial of the least error (2e-9) where |r| <= ln(2) / 2; powers of two by the processor.
    // A result below the least normal number would take the processor a hundred times as long: it is 0, as
    // below, which hidden keys ask for again and again.
    constexpr float kLowest = ExpTraits<float>::kLowest;
    const LaneVector<float> zero{}, bounded = larger_lanes<float>(zero + kLowest, x);
    const LaneVector<float> n = _mm512_maskz_roundscale_ps(0xffff, bounded * 1.44269504f, 8);
    const LaneVector<float> r = (bounded - n * 0.693359375f) + n * 2.12194440e-4f;
    LaneVector<float> p = zero + 0.0013843635f;
    p = p * r + 0.008374171f;
    p = p * r + 0.041668f;
    p = p * r + 0.16666432f;
    p = p * r + 0.49999994f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    return x < kLowest ? zero : LaneVector<float>(_mm512_maskz_scalef_ps(0xffff, p, n));
  }
#endif
  // As exp_negative, which the compiler would run lane by lane here.
  using E = ExpTraits<C>;
  typedef std::make_unsigned_t<typename E::Bits> Bits __attribute__((vector_size(kRegisterBytes)));
  const LaneVector<C> zero{}, clamped = larger_lanes<C>(zero + E::kLowest, x);
  const LaneVector<C> shifted = clamped * C(1.442695040888963407) + E::kRound, n = shifted - E::kRound;
  const LaneVector<C> r = (clamped - n * E::kLn2High) - n * E::kLn2Low;
  LaneVector<C> series = zero + inverse_factorial<C>(E::kTerms);
#pragma GCC unroll 16
  for (int i = E::kTerms - 1; i >= 0; --i) series = series * r + inverse_factorial<C>(i);
  const Bits one = Bits{} + E::kBias, power = (__builtin_bit_cast(Bits, shifted) + one) << E::kMantissa;
  return x < E::kLowest ? zero : series * __builtin_bit_cast(LaneVector<C>, power);
}

// What combine(a, b) makes of all lanes.
template <class C, class F>
[[gnu::always_inline]] inline C fold_vector(LaneVector<C> x, F&& combine) {
  C lanes[Lanes<C>::count];
  __builtin_memcpy(lanes, &x, sizeof(x));
  return fold_lanes(lanes, combine);
}

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
