// a * b + c rounded once, by every instruction set.
#pragma once

namespace rushlight::cpu::RL_ISA {
namespace {

#if defined(__FMA__) || defined(__aarch64__)
template <class T>
[[gnu::always_inline]] inline T fused(T a, T b, T c) {
  return a * b + c;  // one instruction, also where the compiler made this of vectors
}
#else
// double holds the product of two floats, and most sums.
[[gnu::always_inline]] inline float fused(float a, float b, float c) {
  return static_cast<float>(static_cast<double>(a) * static_cast<double>(b) + static_cast<double>(c));
}
[[gnu::always_inline]] inline double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
template <class V>
[[gnu::always_inline]] inline V fused(V a, V b, V c) {
  typedef double Wide __attribute__((vector_size(2 * sizeof(V))));
  return __builtin_convertvector(
      __builtin_convertvector(a, Wide) * __builtin_convertvector(b, Wide) + __builtin_convertvector(c, Wide),
      V);
}
#endif

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
