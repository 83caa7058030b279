#include "cpu/quantize.h"

#include <bit>
#include <cmath>
#include <limits>

#include "cpu/isa/channels_inl.h"
#include "cpu/isa/fused_inl.h"

namespace rushlight::cpu::RL_ISA {
namespace {

constexpr int64_t kBlock = 512;

// The nearest whole number, to even where two are as near, between the bounds.
struct IntBounds {
  [[gnu::always_inline]] int32_t operator()(float x) const {
    // float holds no bound of int32 exactly.
    constexpr double lowest = std::numeric_limits<int32_t>::min(),
                     highest = std::numeric_limits<int32_t>::max();
    const double whole = std::nearbyint(x), raised = whole > lowest ? whole : lowest;
    return static_cast<int32_t>(raised < highest ? raised : highest);
  }
};
// The same for bytes. The compiler must not know their bounds, or it converts each outcome of a comparison
// rather than the lesser and the greater number.
template <class T>
struct ByteBounds {
  float lowest, highest;
  ByteBounds() {
    const volatile float least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
    lowest = least, highest = most;
  }
  // What is no number fails the first comparison, and becomes `highest`.
  [[gnu::always_inline]] T operator()(float x) const {
    constexpr float kWhole = 0x1.8p23f;  // floats near it are whole numbers, in their low bits
    const float lowered = x < highest ? x : highest, kept = lowered > lowest ? lowered : lowest;
    return static_cast<T>(std::bit_cast<int32_t>(kept + kWhole));
  }
};

// PyTorch rounds x / scale + zero point once where there is one scale for all, and in two steps elsewhere.
template <class T, class Settings>
void quantize_at_once(Settings s, const float* __restrict from, T* __restrict to, int64_t n) {
  const ByteBounds<T> bounded;
  for (int64_t i = 0; i < n; ++i)
    to[i] = bounded(fused(from[i], 1.f / s.scale_at(i), static_cast<float>(s.zero_at(i))));
}
template <class T, class Settings>
void quantize_run(Settings s, const float* __restrict from, T* __restrict to, int64_t n) {
  using Bounds = std::conditional_t<sizeof(T) == 4, IntBounds, ByteBounds<T>>;
  constexpr float missing = sizeof(T) == 4 ? static_cast<float>(std::numeric_limits<T>::min()) : 0.f;
  const Bounds bounded;
  float products[kBlock];
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = std::min(kBlock, n - begin);
    for (int64_t i = 0; i < count; ++i) products[i] = from[begin + i] * (1.f / s.scale_at(begin + i));
    asm volatile("" : : : "memory");  // what is added below is added to rounded products
    for (int64_t i = 0; i < count; ++i) {
      const float x = products[i] + s.zero_at(begin + i);
      to[begin + i] = bounded(x == x ? x : missing);
    }
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
      if constexpr (sizeof(T) == 1)
        if (q.one_scale) return quantize_at_once(settings, from + at, static_cast<T*>(to) + at, n);
      quantize_run(settings, from + at, static_cast<T*>(to) + at, n);
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
