// The functions of gates on vectors that stay in registers, as fractions: what is multiplied shares a
// division.
#pragma once
#include "cpu/isa/exp_lanes_inl.h"
#include "cpu/isa/gates_inl.h"

namespace rushlight::cpu::RL_ISA {
namespace {

template <class C>
struct Fraction {
  LaneVector<C> over, under;
};

// exp(x) = power * tail + power for |x| <= 80. Near 0 the tail is exp(x) - 1 to the last digits.
struct ExpParts {
  LaneVector<float> tail, power;
};
[[gnu::always_inline]] inline ExpParts exp_parts(LaneVector<float> x) {
  using E = ExpTraits<float>;
  const LaneVector<float> shifted = x * 1.44269504f + E::kRound, n = shifted - E::kRound;
  const LaneVector<float> r = (x - n * E::kLn2High) - n * E::kLn2Low;
  LaneVector<float> p = r * 0.0013843635f + 0.008374171f;
  p = p * r + 0.041668f;
  p = p * r + 0.16666432f;
  p = p * r + 0.49999994f;
  p = p * r + 1.0f;
  const FloatBits exponent = (__builtin_bit_cast(FloatBits, shifted) << E::kMantissa) +
                             (static_cast<uint32_t>(E::kBias) << E::kMantissa);
  return {p * r, __builtin_bit_cast(LaneVector<float>, exponent)};
}

// 1 / (1 + exp(-x)); below -80, where it is 2e-35, it does not shrink any more.
[[gnu::always_inline]] inline Fraction<float> sigmoid_fraction(LaneVector<float> x) {
  const LaneVector<float> zero{};
  x = larger_lanes<float>(zero - 80.0f, zero - x);
  const ExpParts e = exp_parts(x > 80.0f ? zero + 80.0f : x);
  return {zero + 1.0f, (e.power * e.tail + e.power) + 1.0f};
}
// -(exp(-2 |x|) - 1) / (exp(-2 |x|) + 1), with the sign of x.
[[gnu::always_inline]] inline Fraction<float> tanh_fraction(LaneVector<float> x) {
  const LaneVector<float> zero{}, size = x < 0.0f ? zero - x : x;
  const ExpParts e = exp_parts(larger_lanes<float>(zero - 80.0f, size * -2.0f));
  const LaneVector<float> less = e.power * e.tail + (e.power - 1.0f);
  return {x < 0.0f ? less : zero - less, less + 2.0f};
}

template <class F>
[[gnu::always_inline]] inline LaneVector<double> each_lane(LaneVector<double> x, F&& f) {
  for (int l = 0; l < Lanes<double>::count; ++l) x[l] = f(x[l]);
  return x;
}
[[gnu::always_inline]] inline Fraction<double> sigmoid_fraction(LaneVector<double> x) {
  return {each_lane(x, [](double v) { return sigmoid_gate(v); }), LaneVector<double>{} + 1.0};
}
[[gnu::always_inline]] inline Fraction<double> tanh_fraction(LaneVector<double> x) {
  return {each_lane(x, [](double v) { return tanh_gate(v); }), LaneVector<double>{} + 1.0};
}

// Both values, and their product.
template <class C>
struct Both {
  LaneVector<C> a, b, product;
};
template <class C>
[[gnu::always_inline]] inline Both<C> both(Fraction<C> a, Fraction<C> b) {
  const LaneVector<C> inverse = C(1) / (a.under * b.under);
  return {a.over * (b.under * inverse), b.over * (a.under * inverse), (a.over * b.over) * inverse};
}

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
