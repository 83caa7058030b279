#include "cpu/quantized_binary.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rushlight::cpu::RL_ISA {
namespace {

// PyTorch's loops take this many bytes a turn, and multiply and add in one step there; what is left over is
// computed in two.
#if defined(__AVX512F__)
constexpr int64_t kTurn = 128;
#else
constexpr int64_t kTurn = 64;
#endif

template <class T>
[[gnu::always_inline]] inline T rounded(float x, float zero) {
  constexpr float lowest = std::numeric_limits<T>::min(), highest = std::numeric_limits<T>::max();
  const float y = std::nearbyint(x) + zero;
  return static_cast<T>(std::min(std::max(y, lowest), highest));
}

template <class T, bool kOnce, bool kRelu>
[[gnu::always_inline]] inline void add_run(const QuantizedBinary& q, const T* __restrict a,
                                           const T* __restrict b, T* __restrict to, int64_t n) {
  const float a_scale = q.a.scale, b_scale = q.b.scale, inverse = 1.f / q.scale;
  const auto a_zero = static_cast<float>(q.a.zero_point), b_zero = static_cast<float>(q.b.zero_point),
             zero = static_cast<float>(q.zero_point);
  const float a_shift = -a_zero * a_scale, b_shift = -b_zero * b_scale;
  for (int64_t i = 0; i < n; ++i) {
    const auto x = static_cast<float>(a[i]), y = static_cast<float>(b[i]);
    float sum = kOnce ? std::fma(a_scale, x, a_shift) + std::fma(b_scale, y, b_shift)
                      : (x - a_zero) * a_scale + (y - b_zero) * b_scale;
    if constexpr (kRelu) sum = sum > 0 ? sum : 0;
    to[i] = rounded<T>(sum * inverse, zero);
  }
}

template <class T, bool kRelu>
[[gnu::always_inline]] inline void multiply_run(const QuantizedBinary& q, const T* __restrict a,
                                                const T* __restrict b, T* __restrict to, int64_t n) {
  const float factor = q.a.scale * q.b.scale * (1.f / q.scale);
  const auto zero = static_cast<float>(q.zero_point);
  for (int64_t i = 0; i < n; ++i) {
    int32_t product = (a[i] - q.a.zero_point) * (b[i] - q.b.zero_point);
    if constexpr (kRelu) product = std::max(product, 0);
    to[i] = rounded<T>(factor * static_cast<float>(product), zero);
  }
}

template <class T, bool kRelu>
void run(const QuantizedBinary& q, int64_t begin, int64_t n) {
  const auto *a = static_cast<const T*>(q.a.integers) + begin,
             *b = static_cast<const T*>(q.b.integers) + begin;
  auto* to = static_cast<T*>(q.out) + begin;
  if (q.multiplied) return multiply_run<T, kRelu>(q, a, b, to, n);
  const int64_t whole = n / kTurn * kTurn;
  add_run<T, true, kRelu>(q, a, b, to, whole);
  add_run<T, false, kRelu>(q, a + whole, b + whole, to + whole, n - whole);
}

}  // namespace

void quantized_binary_range(const QuantizedBinary& q, int64_t begin, int64_t end) {
  const auto f = q.signed_bytes ? (q.relu ? run<int8_t, true> : run<int8_t, false>)
                                : (q.relu ? run<uint8_t, true> : run<uint8_t, false>);
  f(q, begin, end - begin);
}

void map_bytes_range(const uint8_t* table, const uint8_t* from, uint8_t* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = table[from[i]];
}

}  // namespace rushlight::cpu::RL_ISA
