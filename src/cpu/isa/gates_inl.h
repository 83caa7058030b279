// The functions of gates, in plain arithmetic that every instruction set vectorises.
#pragma once
#include "cpu/isa/exp_inl.h"
#include "formulas/math.h"

namespace rushlight::cpu::RL_ISA {
namespace {

template <class C>
[[gnu::always_inline]] inline C sigmoid_gate(C x) {
  const C e = exp_negative(x < 0 ? x : -x);
  return (x < 0 ? e : C(1)) / (C(1) + e);
}

// (1 - e) / (1 + e) with e = exp(-2 |x|), and a series where the difference would cancel.
[[gnu::always_inline]] inline float tanh_gate(float x) {
  const float size = x < 0 ? -x : x, e = exp_negative(-2 * size), z = x * x;
  const float large = (1 - e) / (1 + e);
  float q = 21844.0f / 6081075;
  q = q * z - 1382.0f / 155925;
  q = q * z + 62.0f / 2835;
  q = q * z - 17.0f / 315;
  q = q * z + 2.0f / 15;
  q = q * z - 1.0f / 3;
  return size < 0.4f ? x + x * (z * q) : x < 0 ? -large : large;
}
[[gnu::always_inline]] inline double tanh_gate(double x) { return formulas::tanh(x); }

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
