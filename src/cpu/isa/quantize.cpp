#include "cpu/quantize.h"

#include <cmath>
#include <limits>

#include "cpu/isa/channels_inl.h"
#include "cpu/isa/fused_inl.h"

namespace rushlight::cpu::RL_ISA {
namespace {

constexpr int64_t kBlock = 512;

template <class T>
[[gnu::always_inline]] inline T saturated(float x, float missing) {
  // float holds no bound of int32 exactly.
  using C = std::conditional_t<sizeof(T) == 4, double, float>;
  constexpr C lowest = std::numeric_limits<T>::min(), highest = std::numeric_limits<T>::max();
  const C known = static_cast<C>(x == x ? x : missing);
  const C raised = known > lowest ? known : lowest;
  return static_cast<T>(raised < highest ? raised : highest);
}

// PyTorch rounds x / scale + zero point once where there is one scale for all, and in two steps elsewhere.
template <class T, class Settings>
void quantize_run(Settings s, bool once, const float* __restrict from, T* __restrict to, int64_t n) {
  if (once) {
    constexpr auto missing = static_cast<float>(std::numeric_limits<T>::max());
    for (int64_t i = 0; i < n; ++i)
      to[i] = saturated<T>(
          std::nearbyint(fused(from[i], 1.f / s.scale_at(i), static_cast<float>(s.zero_at(i)))), missing);
    return;
  }
  constexpr float missing = sizeof(T) == 4 ? static_cast<float>(std::numeric_limits<T>::min()) : 0.f;
  float products[kBlock];
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = std::min(kBlock, n - begin);
    for (int64_t i = 0; i < count; ++i) products[i] = from[begin + i] * (1.f / s.scale_at(begin + i));
    asm volatile("" : : : "memory");  // what is added below is added to rounded products
    for (int64_t i = 0; i < count; ++i)
      to[begin + i] = saturated<T>(std::nearbyint(products[i] + s.zero_at(begin + i)), missing);
  }
}

template <class T, class Settings>
void dequantize_run(Settings s, const T* __restrict from, float* __restrict to, int64_t n) {
  using C = std::conditional_t<sizeof(T) == 4, double, float>;
  for (int64_t i = 0; i < n; ++i)
    to[i] = static_cast<float>(static_cast<C>(from[i]) - static_cast<C>(s.zero_at(i))) * s.scale_at(i);
}

template <class F>
void by_type(DType integers, F f) {
  if (integers == DType::UInt8)
    f(uint8_t{});
  else if (integers == DType::Int8)
    f(int8_t{});
  else
    f(int32_t{});
}

}  // namespace

void quantize_range(const Quantization& q, const float* from, void* to, int64_t begin, int64_t end) {
  by_type(q.integers, [&]<class T>(T) {
    by_channel(q, begin, end, [&](auto settings, int64_t at, int64_t n) {
      quantize_run(settings, q.one_scale && sizeof(T) == 1, from + at, static_cast<T*>(to) + at, n);
    });
  });
}
void dequantize_range(const Quantization& q, const void* from, float* to, int64_t begin, int64_t end) {
  by_type(q.integers, [&]<class T>(T) {
    by_channel(q, begin, end, [&](auto settings, int64_t at, int64_t n) {
      dequantize_run(settings, static_cast<const T*>(from) + at, to + at, n);
    });
  });
}

}  // namespace rushlight::cpu::RL_ISA
