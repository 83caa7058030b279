// The exponential of numbers that are not positive, and sums in lanes; included by the files of this folder:
// a Taylor series after reduction by powers of two, in plain arithmetic that every instruction set
// vectorises: 2^n * exp(r), |r| <= ln(2) / 2, where the remainder term is below half an ulp.
#pragma once
#include <bit>
#include <cstdint>
#include <type_traits>

namespace rushlight::cpu::RL_ISA {
namespace {

template <class T>
struct ExpTraits;
template <>
struct ExpTraits<float> {
  using Bits = int32_t;
  static constexpr int kMantissa = 23, kBias = 127, kTerms = 7;
  static constexpr float kLowest = -87.3f, kRound = 12582912.0f;  // 1.5 * 2^23
  static constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
};
template <>
struct ExpTraits<double> {
  using Bits = int64_t;
  static constexpr int kMantissa = 52, kBias = 1023, kTerms = 13;
  static constexpr double kLowest = -708.3, kRound = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr double kLn2High = 6.93145751953125e-1, kLn2Low = 1.42860682030941723212e-6;
};

template <class T>
constexpr T inverse_factorial(int n) {
  T f = 1;
  for (int i = 2; i <= n; ++i) f *= static_cast<T>(i);
  return 1 / f;
}

// exp(x) for x <= 0; below the smallest normal number the result is 0. NaN stays NaN.
template <class T>
inline T exp_negative(T x) {
  using E = ExpTraits<T>;
  using Bits = typename E::Bits;
  const T clamped = x < E::kLowest ? E::kLowest : x;
  const T shifted = clamped * T(1.442695040888963407) + E::kRound;
  const T n = shifted - E::kRound;
  const T r = (clamped - n * E::kLn2High) - n * E::kLn2Low;
  T series = inverse_factorial<T>(E::kTerms);
#pragma GCC unroll 16
  for (int i = E::kTerms - 1; i >= 0; --i) series = series * r + inverse_factorial<T>(i);
  const Bits exponent = static_cast<Bits>(
      static_cast<std::make_unsigned_t<Bits>>(std::bit_cast<Bits>(shifted)) << E::kMantissa);
  const T power = std::bit_cast<T>(exponent + (Bits{E::kBias} << E::kMantissa));
  const T value = series * power;
  return x < E::kLowest ? T(0) : value;
}

// Folds lanes in halves, which takes log2(N) dependent steps.
template <int N, class T, class F>
inline T fold_lanes(T (&lanes)[N], F&& combine) {
#pragma GCC unroll 8
  for (int width = N / 2; width > 0; width /= 2)
    for (int l = 0; l < width; ++l) lanes[l] = combine(lanes[l], lanes[l + width]);
  return lanes[0];
}

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
