#include "cpu/fake_quantize.h"

#include <cmath>

#include "cpu/isa/channels_inl.h"
#include "cpu/isa/fused_inl.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// The type that PyTorch computes x / scale in.
template <class T>
using Number = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <FakeRounding kRounding, class X>
[[gnu::always_inline]] inline X to_integer(X x, float inverse, float zero) {
  X q;
  if constexpr (kRounding == FakeRounding::SumFirst) {
    const volatile X product = x * inverse;  // rounded by itself, also where processors multiply and add
    q = std::nearbyint(static_cast<float>(zero + product));
  } else {
    q = std::nearbyint(x * inverse) + zero;
  }
  if constexpr (kRounding != FakeRounding::Saturate) q = q < X(0x1p63) ? q : X(-0x1p63);
  return q;
}

template <class T, class C, FakeRounding kRounding, class Settings>
void round_run(const FakeQuantization& f, Settings s, int64_t at, int64_t n) {
  using X = Number<T>;
  const T* __restrict x = static_cast<const T*>(f.x) + at;
  T* __restrict y = static_cast<T*>(f.y) + at;
  bool* __restrict inside = f.inside + at;
  const C lowest = static_cast<C>(f.lowest), highest = static_cast<C>(f.highest);
  for (int64_t i = 0; i < n; ++i) {
    const float scale = s.scale_at(i), zero = s.zero_at(i);
    const C q = static_cast<C>(to_integer<kRounding>(static_cast<X>(x[i]), 1.f / scale, zero));
    const C raised = q > lowest ? q : lowest, kept = raised < highest ? raised : highest;
    inside[i] = q >= lowest && q <= highest;
    y[i] = static_cast<T>(static_cast<X>((kept - static_cast<C>(zero)) * static_cast<C>(scale)));
  }
}

template <class T, class Settings>
void gradient_run(const FakeQuantizationGradient& g, Settings s, int64_t at, int64_t n) {
  using X = Number<T>;
  const FakeQuantization& f = g.forward;
  const T* __restrict x = static_cast<const T*>(f.x) + at, * __restrict dy = static_cast<const T*>(g.dy) + at;
  T* __restrict dx = static_cast<T*>(g.dx) + at;
  T* __restrict dscale = static_cast<T*>(g.dscale) + at;
  T* __restrict dzero = static_cast<T*>(g.dzero_point) + at;
  const X lowest = static_cast<X>(f.lowest), highest = static_cast<X>(f.highest), factor = g.factor;
  for (int64_t i = 0; i < n; ++i) {
    const X scale = s.scale_at(i), zero = s.zero_at(i), value = static_cast<X>(x[i]);
    const X d = static_cast<X>(dy[i]), inverse = X(1) / scale;
    const X q = std::nearbyint(fused(value, inverse, zero));
    const X raised = q > lowest ? q : lowest, kept = raised < highest ? raised : highest;
    const bool below = !(q >= lowest && q < X(0x1p63)), above = !below && q > highest,
               outside = below || above;
    const X error = fused(kept - zero, scale, -value);
    const X slope = d * (below ? lowest - zero : above ? highest - zero : error);
    dx[i] = static_cast<T>(outside ? X(0) : d);
    dscale[i] = static_cast<T>((outside ? slope : slope * inverse) * factor);
    dzero[i] = static_cast<T>(outside ? -d * scale * factor : X(0));
  }
}

template <class T, class C, FakeRounding kRounding>
void round_range(const FakeQuantization& f, int64_t begin, int64_t end) {
  by_channel(f, begin, end,
             [&](auto settings, int64_t at, int64_t n) { round_run<T, C, kRounding>(f, settings, at, n); });
}

template <class T>
void round_range(const FakeQuantization& f, int64_t begin, int64_t end) {
  // Where float holds what lies between the bounds, its product with a scale is rounded once.
  constexpr int64_t kExact = int64_t{1} << 24;
  const bool wide = f.lowest <= -kExact / 2 || f.highest >= kExact / 2;
  switch (f.rounding) {
    case FakeRounding::Saturate:
      return round_range<T, float, FakeRounding::Saturate>(f, begin, end);
    case FakeRounding::Wrap:
      return wide ? round_range<T, double, FakeRounding::Wrap>(f, begin, end)
                  : round_range<T, Number<T>, FakeRounding::Wrap>(f, begin, end);
    case FakeRounding::SumFirst:
      return round_range<T, double, FakeRounding::SumFirst>(f, begin, end);
  }
}

template <class T>
void gradient_range(const FakeQuantizationGradient& g, int64_t begin, int64_t end) {
  by_channel(g.forward, begin, end,
             [&](auto settings, int64_t at, int64_t n) { gradient_run<T>(g, settings, at, n); });
}

}  // namespace

void fake_quantize_range(const FakeQuantization& f, int64_t begin, int64_t end) {
  visit_dtype(FloatTypes{}, f.dtype, "fake_quantize",
              [&](auto tag) { round_range<decltype(tag)>(f, begin, end); });
}
void fake_quantize_backward_range(const FakeQuantizationGradient& g, int64_t begin, int64_t end) {
  visit_dtype(FloatTypes{}, g.forward.dtype, "fake_quantize_backward",
              [&](auto tag) { gradient_range<decltype(tag)>(g, begin, end); });
}

}  // namespace rushlight::cpu::RL_ISA
