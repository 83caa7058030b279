// Loops on complex numbers by parts of a block, where the formula takes them one by one. Numbers of floats
// are computed in doubles, in which no square overflows; zeros and numbers far out are left to the formula.
#pragma once
#include <complex>
#include <cstring>
#include <type_traits>

#include "core/dtype.h"
#include "cpu/isa/tables.h"
#include "formulas/elementary.h"
#include "formulas/math.h"

namespace rushlight::cpu::RL_ISA {
namespace {

constexpr int64_t kComplexBlock = 32;

// What is done with the parts of a number, given their square; `formula` where that says nothing.
template <class P>
struct ComplexSign {
  [[gnu::always_inline]] static void apply(double& real, double& imag, double square) {
    const double size = __builtin_sqrt(square);
    real /= size, imag /= size;
  }
  static std::complex<P> formula(std::complex<P> z) { return formulas::sign(z); }
};
template <class P>
struct ComplexReciprocal {
  [[gnu::always_inline]] static void apply(double& real, double& imag, double square) {
    if constexpr (std::is_same_v<P, float>) {
      const double inverse = 1 / square;  // its rounding is far below a float's
      real *= inverse, imag *= -inverse;
    } else {
      real /= square, imag = -imag / square;
    }
  }
  static std::complex<P> formula(std::complex<P> z) { return formulas::div(std::complex<P>(1), z); }
};

template <class P>
struct ComplexRsqrt {
  // The root's greater part is that of no cancellation; the other follows from it.
  [[gnu::always_inline]] static void apply(double& real, double& imag, double square) {
    const double size = __builtin_sqrt(square), major = __builtin_sqrt((size + __builtin_fabs(real)) / 2);
    const double minor = __builtin_fabs(imag) / (2 * major), left = real < 0 ? minor : major;
    const double right = __builtin_copysign(real < 0 ? major : minor, imag);
    real = left / size, imag = (0 - right) / size;
  }
  static std::complex<P> formula(std::complex<P> z) { return std::complex<P>(1) / std::sqrt(z); }
};

[[gnu::always_inline]] inline double square_of(double real, double imag) { return real * real + imag * imag; }
// Of numbers neither zero nor far out; not where it is NaN.
template <class P>
[[gnu::always_inline]] inline bool is_usual(double square) {
  constexpr double kMost = std::is_same_v<P, float> ? 1e70 : 1e290;
  return (square > 1 / kMost) & (square < kMost);
}

// Of each number by itself: it gives the same bits wherever it stands.
template <class P, template <class> class F>
void complex_numbers(char* const* data, unsigned scalars, int64_t n, const void*) {
  const P* from = reinterpret_cast<const P*>(data[1]);
  P* to = reinterpret_cast<P*>(data[0]);
  const int64_t step = scalars & 1 ? 0 : 2;
  int64_t i = 0;
  const auto one_by_one = [&](int64_t end) {
    for (; i < end; ++i) {
      double real = static_cast<double>(from[i * step]), imag = static_cast<double>(from[i * step + 1]);
      const double square = square_of(real, imag);
      std::complex<P> z;
      if (is_usual<P>(square)) {
        F<P>::apply(real, imag, square);
        z = {static_cast<P>(real), static_cast<P>(imag)};
      } else {
        z = F<P>::formula({from[i * step], from[i * step + 1]});
      }
      to[2 * i] = z.real(), to[2 * i + 1] = z.imag();
    }
  };
  double real[kComplexBlock], imag[kComplexBlock], squares[kComplexBlock];
  while (step && i + kComplexBlock <= n) {
    int64_t unusual = 0;
    for (int64_t k = 0; k < kComplexBlock; ++k) {
      real[k] = static_cast<double>(from[2 * (i + k)]), imag[k] = static_cast<double>(from[2 * (i + k) + 1]);
      squares[k] = square_of(real[k], imag[k]);
    }
    for (int64_t k = 0; k < kComplexBlock; ++k) unusual += !is_usual<P>(squares[k]);
    if (unusual) {
      one_by_one(i + kComplexBlock);
      continue;
    }
    for (int64_t k = 0; k < kComplexBlock; ++k) F<P>::apply(real[k], imag[k], squares[k]);
    for (int64_t k = 0; k < kComplexBlock; ++k)
      to[2 * (i + k)] = static_cast<P>(real[k]), to[2 * (i + k) + 1] = static_cast<P>(imag[k]);
    i += kComplexBlock;
  }
  one_by_one(n);
}

// The other sign of the second part, by vectors of both.
template <class P>
void complex_conjugate(char* const* data, unsigned scalars, int64_t n, const void*) {
  constexpr int64_t kItem = 2 * sizeof(P), kTogether = 64 / kItem;
  P block[2 * kTogether], other[2 * kTogether];
  for (int64_t k = 0; k < 2 * kTogether; k += 2) other[k] = P(0), other[k + 1] = -P(0);
  typedef uint64_t Words __attribute__((vector_size(64)));
  Words x, signs;
  static_assert(sizeof(x) == sizeof(block));
  std::memcpy(&signs, other, sizeof(signs));
  int64_t i = 0;
  if (!(scalars & 1))
    for (; i + kTogether <= n; i += kTogether) {
      std::memcpy(&x, data[1] + i * kItem, sizeof(x));
      x ^= signs;
      std::memcpy(data[0] + i * kItem, &x, sizeof(x));
    }
  for (; i < n; ++i) {
    std::memcpy(block, data[1] + (scalars & 1 ? 0 : i * kItem), kItem);
    block[1] = -block[1];
    std::memcpy(data[0] + i * kItem, block, kItem);
  }
}

// The angle of numbers of floats.
inline void complex_angle(char* const* data, unsigned scalars, int64_t n, const void*) {
  const float* from = reinterpret_cast<const float*>(data[1]);
  float* to = reinterpret_cast<float*>(data[0]);
  const int64_t step = scalars & 1 ? 0 : 2;
  float real[kComplexBlock], imag[kComplexBlock];
  for (int64_t first = 0; first < n; first += kComplexBlock) {
    const int64_t count = n - first < kComplexBlock ? n - first : kComplexBlock;
    for (int64_t i = 0; i < kComplexBlock; ++i) {
      const int64_t at = (first + (i < count ? i : 0)) * step;
      real[i] = from[at], imag[i] = from[at + 1];
    }
    for (int64_t i = 0; i < kComplexBlock; ++i) real[i] = formulas::atan2_real(imag[i], real[i]);
    std::memcpy(to + first, real, static_cast<size_t>(count) * sizeof(float));
  }
}

constexpr BitLoop kOfComplex[] = {
    {Formula::Sign, DType::Complex64, complex_numbers<float, ComplexSign>},
    {Formula::Sign, DType::Complex128, complex_numbers<double, ComplexSign>},
    {Formula::Reciprocal, DType::Complex64, complex_numbers<float, ComplexReciprocal>},
    {Formula::Reciprocal, DType::Complex128, complex_numbers<double, ComplexReciprocal>},
    {Formula::Rsqrt, DType::Complex64, complex_numbers<float, ComplexRsqrt>},
    {Formula::Rsqrt, DType::Complex128, complex_numbers<double, ComplexRsqrt>},
    {Formula::Conj, DType::Complex64, complex_conjugate<float>},
    {Formula::Conj, DType::Complex128, complex_conjugate<double>},
    {Formula::Angle, DType::Complex64, complex_angle}};

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
