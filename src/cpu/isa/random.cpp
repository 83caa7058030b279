// Note [Random numbers and instruction sets]
// PyTorch's stream of normals depends on the processor in the last bit: where it has AVX2 its build fuses
// multiply-adds and evaluates the float Box-Muller transform with the Cephes polynomials; elsewhere it calls
// the C library. We do the same, so that equal seeds give equal numbers on equal machines.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "cpu/random_blocks.h"

namespace rushlight::RL_ISA {
namespace {

#if defined(__FMA__) || defined(RL_NEON)
template <class T>
T multiply_add(T a, T b, T c) {
  return std::fma(a, b, c);
}
#else
template <class T>
T multiply_add(T a, T b, T c) {
  return a * b + c;
}
#endif

// Rounding may reach the excluded upper end; it then wraps to the lower one.
template <class T>
T uniform(T unit, T from, T to) {
  const T value = multiply_add(unit, to - from, from);
  return value == to ? from : value;
}

void uniform_float(const uint32_t* bits, float* out, int64_t n, float from, float to) {
  for (int64_t i = 0; i < n; i++) {
    const auto unit = static_cast<float>(static_cast<int32_t>(bits[i] & 0xffffff)) * 0x1p-24f;
    out[i] = uniform(unit, from, to);
  }
}

void uniform_double(const uint32_t* bits, double* out, int64_t n, double from, double to) {
  for (int64_t i = 0; i < n; i++) {
    const uint64_t word = static_cast<uint64_t>(bits[2 * i]) << 32 | bits[2 * i + 1];
    const auto unit = static_cast<double>(static_cast<int64_t>(word & ((uint64_t{1} << 53) - 1))) * 0x1p-53;
    out[i] = uniform(unit, from, to);
  }
}

template <class T>
struct SinCos {
  T sin, cos;
};

#if defined(__FMA__) || defined(RL_NEON)
// Cephes logf for positive normal numbers: log(m 2^e) = e log 2 + (m - 1) - (m - 1)^2 / 2 + (m - 1)^3 P(m -
// 1).
inline float log_positive(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  float m = std::bit_cast<float>((bits & 0x007fffffu) | 0x3f000000u);  // [0.5, 1)
  auto e = static_cast<float>(static_cast<int32_t>(bits >> 23) - 126);
  const bool low = m < 0.707106781186547524f;
  e -= low ? 1.0f : 0.0f;
  m = (m - 1.0f) + (low ? m : 0.0f);
  const float z = m * m;
  float y = std::fma(7.0376836292e-2f, m, -1.1514610310e-1f);
  y = std::fma(y, m, 1.1676998740e-1f);
  y = std::fma(y, m, -1.2420140846e-1f);
  y = std::fma(y, m, 1.4249322787e-1f);
  y = std::fma(y, m, -1.6668057665e-1f);
  y = std::fma(y, m, 2.0000714765e-1f);
  y = std::fma(y, m, -2.4999993993e-1f);
  y = std::fma(y, m, 3.3333331174e-1f);
  y = std::fma(y * m, z, e * -2.12194440e-4f);
  y = std::fma(-z, 0.5f, y);
  return std::fma(e, 0.693359375f, m + y);
}

// Cephes sinf and cosf for angles from 0 to a few turns: reduced by octants, then one polynomial for each.
inline SinCos<float> sin_cos(float x) {
  const int32_t octant = (static_cast<int32_t>(x * 1.27323954473516f) + 1) & ~1;
  const auto turns = static_cast<float>(octant);
  x = std::fma(turns, -0.78515625f, x);
  x = std::fma(turns, -2.4187564849853515625e-4f, x);
  x = std::fma(turns, -3.77489497744594108e-8f, x);
  const float z = x * x;
  float c = std::fma(2.443315711809948e-5f, z, -1.388731625493765e-3f);
  c = std::fma(c, z, 4.166664568298827e-2f);
  c = std::fma(c * z, z, -(z * 0.5f)) + 1.0f;
  float s = std::fma(-1.9515295891e-4f, z, 8.3321608736e-3f);
  s = std::fma(s, z, -1.6666654611e-1f);
  s = std::fma(s * z, x, x);
  const bool swapped = octant & 2;
  const uint32_t sin_sign = static_cast<uint32_t>(octant & 4) << 29;
  const uint32_t cos_sign = static_cast<uint32_t>(~(octant - 2) & 4) << 29;
  return {std::bit_cast<float>(std::bit_cast<uint32_t>(swapped ? c : s) ^ sin_sign),
          std::bit_cast<float>(std::bit_cast<uint32_t>(swapped ? s : c) ^ cos_sign)};
}
inline float angle_of(float unit) { return static_cast<float>(2 * std::numbers::pi) * unit; }
#else
inline float angle_of(float unit) { return static_cast<float>(2 * std::numbers::pi * unit); }
inline float log_positive(float x) { return std::log(x); }
inline SinCos<float> sin_cos(float x) { return {std::sin(x), std::cos(x)}; }
#endif
inline double angle_of(double unit) { return 2 * std::numbers::pi * unit; }
inline double log_positive(double x) { return std::log(x); }
inline SinCos<double> sin_cos(double x) { return {std::sin(x), std::cos(x)}; }

template <class T>
void box_muller(T* data, int64_t blocks, T mean, T std) {
  for (int64_t b = 0; b < blocks; b++, data += 16) {
    T near[8], far[8];  // apart from `data`, so that the loop becomes vector code
    for (int i = 0; i < 8; i++) {
      const T radius = std::sqrt(T(-2) * log_positive(T(1) - data[i]));  // (0, 1]: the logarithm is finite
      const SinCos<T> direction = sin_cos(angle_of(data[i + 8]));
      near[i] = multiply_add(radius * direction.cos, std, mean);
      far[i] = multiply_add(radius * direction.sin, std, mean);
    }
    std::copy_n(near, 8, data);
    std::copy_n(far, 8, data + 8);
  }
}

}  // namespace

extern const cpu::RandomBlocks random_blocks;
const cpu::RandomBlocks random_blocks{uniform_float, uniform_double, box_muller<float>, box_muller<double>,
                                      multiply_add<double>};

}  // namespace rushlight::RL_ISA
