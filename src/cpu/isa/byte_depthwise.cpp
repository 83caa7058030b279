// Depthwise convolutions of bytes for each instruction set: taps are laid side by side for each pixel of a
// line once, and all pixels of the result that see them read them there.
#include <algorithm>
#include <cstring>

#include "cpu/byte_conv.h"
#include "cpu/isa/fused_inl.h"
#if defined(__SSE2__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace rushlight::cpu::RL_ISA {
namespace {

#pragma GCC diagnostic ignored "-Wpsabi"
// Registers of 16 bytes, or two of them side by side: wider ones would be half empty in many networks.
#if defined(__AVX2__)
constexpr int kWidth = 32;
#else
constexpr int kWidth = 16;
#endif
constexpr int kParts = 32 / kWidth;  // registers for a byte of each channel of a panel
constexpr int kSums = 4 * kParts;    // registers for its sums
constexpr int kLanes = kWidth / 4;
static_assert(kByteDepthwiseChannels == 32);
typedef int32_t Ints __attribute__((vector_size(kWidth)));
typedef uint32_t Words __attribute__((vector_size(kWidth)));
typedef float Floats __attribute__((vector_size(kWidth)));

template <class V>
[[gnu::always_inline]] inline V load(const void* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof(v));
  return v;
}
template <class V>
[[gnu::always_inline]] inline void keep(void* to, V v) {
  __builtin_memcpy(to, &v, sizeof(v));
}

// The lower and the upper halves of 16 bytes, each in turn with the other operand's.
struct Pair {
  Ints low, high;
};
[[gnu::always_inline]] inline Pair interleaved(Ints a, Ints b) {
#if defined(__AVX2__)
  return {Ints(_mm256_unpacklo_epi8(__m256i(a), __m256i(b))),
          Ints(_mm256_unpackhi_epi8(__m256i(a), __m256i(b)))};
#elif defined(__SSE2__)
  return {Ints(_mm_unpacklo_epi8(__m128i(a), __m128i(b))), Ints(_mm_unpackhi_epi8(__m128i(a), __m128i(b)))};
#else
  typedef uint8_t Bytes __attribute__((vector_size(kWidth)));
  const Bytes x = Bytes(a), y = Bytes(b);
  return {Ints(__builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)),
          Ints(__builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31))};
#endif
}

// Two taps side by side, as words: their products are added without overflow.
struct TwoWords {
  static constexpr int64_t taps = 2;
  [[gnu::always_inline]] static void interleave(const Ints* tap, Ints* out) {
    const Pair bytes = interleaved(tap[0], tap[1]);
    const Pair low = interleaved(bytes.low, Ints{}), high = interleaved(bytes.high, Ints{});
    out[0] = low.low, out[1] = low.high, out[2] = high.low, out[3] = high.high;
  }
  [[gnu::always_inline]] static Ints add(Ints sum, Ints a, Ints w) {
#if defined(__AVX2__)
    return Ints(_mm256_add_epi32(__m256i(sum), _mm256_madd_epi16(__m256i(a), __m256i(w))));
#elif defined(__SSE2__)
    return Ints(_mm_add_epi32(__m128i(sum), _mm_madd_epi16(__m128i(a), __m128i(w))));
#elif defined(__aarch64__)
    const int16x8_t x = vreinterpretq_s16_s32(int32x4_t(a)), y = vreinterpretq_s16_s32(int32x4_t(w));
    return Ints(vaddq_s32(int32x4_t(sum),
                          vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y))));
#else
    typedef int16_t Shorts __attribute__((vector_size(kWidth)));
    const Shorts x = Shorts(a), y = Shorts(w);
    for (int l = 0; l < kLanes; ++l) sum[l] += x[2 * l] * y[2 * l] + x[2 * l + 1] * y[2 * l + 1];
    return sum;
#endif
  }
};

#if defined(__AVX2__)
// Four taps side by side, for processors with VNNI.
struct FourBytes {
  static constexpr int64_t taps = 4;
  [[gnu::always_inline]] static void interleave(const Ints* tap, Ints* out) {
    const Pair a = interleaved(tap[0], tap[1]), b = interleaved(tap[2], tap[3]);
    out[0] = Ints(_mm256_unpacklo_epi16(__m256i(a.low), __m256i(b.low)));
    out[1] = Ints(_mm256_unpackhi_epi16(__m256i(a.low), __m256i(b.low)));
    out[2] = Ints(_mm256_unpacklo_epi16(__m256i(a.high), __m256i(b.high)));
    out[3] = Ints(_mm256_unpackhi_epi16(__m256i(a.high), __m256i(b.high)));
  }
  [[gnu::always_inline]] static Ints add(Ints sum, Ints a, Ints w) {
    // In this form no function needs to be compiled for processors that have it.
#if defined(__AVX512VL__)
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(w));
#else
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(w));
#endif
    return sum;
  }
};
#endif

// --- what follows the sums of a panel

struct Bounds {
  float high;  // over the zero point
  int32_t zero, least, most;
  explicit Bounds(const ByteProduct& p)
      : high(p.high - static_cast<float>(p.out_zero)),
        zero(p.out_zero),
        least(static_cast<int32_t>(p.low)),
        most(static_cast<int32_t>(p.high)) {}
};

// To even where two are as near. What is no number becomes the least one.
[[gnu::always_inline]] inline Ints rounded(Floats x) {
#if defined(__AVX2__)
  return Ints(_mm256_cvtps_epi32(__m256(x)));
#elif defined(__SSE2__)
  return Ints(_mm_cvtps_epi32(__m128(x)));
#else
  Ints result;
  for (int l = 0; l < kLanes; ++l)
    result[l] = x[l] == x[l] ? static_cast<int32_t>(__builtin_rintf(std::max(x[l], -1e6f))) : INT32_MIN;
  return result;
#endif
}
// The lesser of two; x where that is no number.
[[gnu::always_inline]] inline Floats least(Floats x, Floats high) {
#if defined(__AVX2__)
  return Floats(_mm256_min_ps(__m256(high), __m256(x)));
#else
  return high < x ? high : x;
#endif
}

#if defined(__AVX2__)
// Numbers of all channels as bytes in their order, bounded.
template <bool Unsigned>
[[gnu::always_inline]] inline __m256i bytes_of(const Ints* x, const Bounds& bounds) {
  const __m256i zero = _mm256_set1_epi16(static_cast<int16_t>(bounds.zero));
  const __m256i low = _mm256_set1_epi8(static_cast<char>(bounds.least)),
                high = _mm256_set1_epi8(static_cast<char>(bounds.most));
  const __m256i a = _mm256_adds_epi16(_mm256_packs_epi32(__m256i(x[0]), __m256i(x[1])), zero),
                b = _mm256_adds_epi16(_mm256_packs_epi32(__m256i(x[2]), __m256i(x[3])), zero);
  if constexpr (Unsigned)
    return _mm256_min_epu8(_mm256_max_epu8(_mm256_packus_epi16(a, b), low), high);
  else
    return _mm256_min_epi8(_mm256_max_epi8(_mm256_packs_epi16(a, b), low), high);
}
// Numbers of all channels in their order.
template <class V>
[[gnu::always_inline]] inline void keep_ordered(const V* x, void* to) {
  auto* out = static_cast<char*>(to);
  for (int i = 0; i < 4; i += 2) {
    const __m256i a = __m256i(x[i]), b = __m256i(x[i + 1]);
    keep(out + 16 * i, _mm256_permute2x128_si256(a, b, 0x20));
    keep(out + 16 * i + 64, _mm256_permute2x128_si256(a, b, 0x31));
  }
}
#else
template <bool Unsigned>
[[gnu::always_inline]] inline void bytes_of(const Ints* x, const Bounds& bounds, char* to) {
  for (int v = 0; v < kSums; ++v)
    for (int l = 0; l < kLanes; ++l) {
      const int64_t y = int64_t{x[v][l]} + bounds.zero;
      to[v * kLanes + l] =
          static_cast<char>(std::min<int64_t>(std::max<int64_t>(y, bounds.least), bounds.most));
    }
}
template <class V>
[[gnu::always_inline]] inline void keep_ordered(const V* x, void* to) {
  std::memcpy(to, x, sizeof(V) * kSums);
}
#endif

// `settings`: scales, then bias, of a panel's channels in its order.
template <ByteResult R>
[[gnu::always_inline]] inline void finish(const Ints* sums, const float* settings, const ByteProduct& p,
                                          const Bounds& bounds, int64_t channels, char* to) {
  constexpr bool kBytes = R == ByteResult::kUInt8 || R == ByteResult::kInt8;
  char some[32 * 4];
  char* out = channels < 32 ? some : to;
  if constexpr (R == ByteResult::kFloat) {
    Floats y[kSums];
#pragma GCC unroll 8
    for (int v = 0; v < kSums; ++v) {
      y[v] = fused(__builtin_convertvector(sums[v], Floats), load<Floats>(settings + v * kLanes),
                   load<Floats>(settings + 32 + v * kLanes));
      y[v] = y[v] < p.low ? Floats{} + p.low : y[v];
      y[v] = y[v] > p.high ? Floats{} + p.high : y[v];
    }
    keep_ordered(y, out);
  } else {
    Ints q[kSums];
#pragma GCC unroll 8
    for (int v = 0; v < kSums; ++v) {
      const Floats y = (__builtin_convertvector(sums[v], Floats) + load<Floats>(settings + 32 + v * kLanes)) *
                       load<Floats>(settings + v * kLanes);
      q[v] = rounded(least(y, Floats{} + bounds.high));
    }
#if defined(__AVX2__)
    keep(out, bytes_of<R == ByteResult::kUInt8>(q, bounds));
#else
    bytes_of<R == ByteResult::kUInt8>(q, bounds, out);
#endif
  }
  if (channels < 32) std::memcpy(to, some, static_cast<size_t>(channels) * (kBytes ? 1 : 4));
}

// --- a line

// `count` pixels whose taps lie `step` bytes apart each.
template <class Form>
[[gnu::always_inline]] inline void lay_out_run(const uint8_t* const* taps, const int64_t* steps, Ints flip,
                                               int64_t count, char* to) {
  const uint8_t* from[Form::taps];
  int64_t step[Form::taps];
#pragma GCC unroll 4
  for (int i = 0; i < Form::taps; ++i) from[i] = taps[i], step[i] = steps[i];
  for (; count > 0; --count, to += kByteDepthwiseBytes) {
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part) {
      Ints bytes[Form::taps], out[4];
#pragma GCC unroll 4
      for (int i = 0; i < Form::taps; ++i) bytes[i] = load<Ints>(from[i] + part * kWidth) ^ flip;
      Form::interleave(bytes, out);
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) keep(to + (part * 4 + v) * kWidth, out[v]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < Form::taps; ++i) from[i] += step[i];
  }
}

// The taps of pixels from column `x` to before `end`, side by side.
template <class Form>
void lay_out(const ByteDepthwiseLine& d, int64_t first, int64_t channels, int64_t x, int64_t end) {
  uint8_t empty[32], some[Form::taps][32] = {};
  std::memset(empty, d.padding, sizeof(empty));
  const Ints flip = Ints{} + (d.is_signed ? static_cast<int32_t>(0x80808080u) : 0);
  for (int64_t group = 0; group < d.groups; ++group) {
    const uint8_t *lines[Form::taps], *from[Form::taps];
    int64_t shifts[Form::taps], steps[Form::taps];
    int64_t inner = x, inner_end = channels < 32 ? x : end;  // where no tap is beyond an end of its line
    for (int i = 0; i < Form::taps; ++i) {
      const ByteDepthwiseTap& tap = d.taps[group * Form::taps + i];
      lines[i] = tap.line < 0 ? nullptr : d.lines[tap.line];
      shifts[i] = tap.shift;
      steps[i] = lines[i] ? d.channels : 0;
      if (!lines[i]) continue;
      inner = std::max(inner, -tap.shift);
      inner_end = std::min(inner_end, d.width - tap.shift);
    }
    inner = std::min(inner, end), inner_end = std::max(inner, inner_end);
    char* to = d.memory + group * d.columns * kByteDepthwiseBytes;
    const auto place = [&](int64_t column) {
      for (int i = 0; i < Form::taps; ++i) {
        const int64_t at = column + shifts[i];
        const bool inside = lines[i] && at >= 0 && at < d.width;
        from[i] = inside ? lines[i] + at * d.channels + first : empty;
        if (channels < 32 && inside) {  // what lies behind the last channel may be no memory
          std::memcpy(some[i], from[i], static_cast<size_t>(channels));
          from[i] = some[i];
        }
      }
    };
    const auto one_by_one = [&](int64_t begin, int64_t last) {
      for (int64_t column = begin; column < last; ++column) {
        place(column);
        lay_out_run<Form>(from, steps, flip, 1, to + (column - x) * kByteDepthwiseBytes);
      }
    };
    one_by_one(x, inner);
    if (inner < inner_end) {
      place(inner);
      lay_out_run<Form>(from, steps, flip, inner_end - inner, to + (inner - x) * kByteDepthwiseBytes);
    }
    one_by_one(inner_end, end);
  }
}

// P pixels that lie `stride` apart; S: the number of steps, or 0.
template <class Form, int P, int S>
[[gnu::always_inline]] inline void add_steps(const ByteDepthwiseLine& d, const char* from,
                                             const char* filters, Ints (&sums)[P][kSums]) {
  const int64_t steps = S ? S : d.steps, stride = d.stride * kByteDepthwiseBytes;
  // Not all of few steps at once: the compiler would keep their filters in memory.
  for (int64_t s = 0; s < steps; ++s) {
    const char* a = from + d.offsets[s];
#pragma GCC unroll 8
    for (int v = 0; v < kSums; ++v) {
      const Ints w = load<Ints>(filters + s * kByteDepthwiseBytes + v * kWidth);
#pragma GCC unroll 2
      for (int i = 0; i < P; ++i)
        sums[i][v] = Form::add(sums[i][v], load<Ints>(a + i * stride + v * kWidth), w);
    }
  }
}

template <class Form, ByteResult R, int S>
void multiply(const ByteDepthwiseLine& d, int64_t first, int64_t channels, const char* filters,
              const int32_t* settings, int64_t begin, int64_t end) {
  constexpr int kPixels = kWidth == 32 ? 2 : 1;
  constexpr int64_t kElement = R == ByteResult::kUInt8 || R == ByteResult::kInt8 ? 1 : 4;
  const Bounds bounds(*d.rest);
  const auto* factors = reinterpret_cast<const float*>(settings + 32);
  char* to = d.to + (begin * d.rest->ldc + first) * kElement;
  const char* from = d.memory;
  const auto some = [&]<int P>() {
    Ints sums[P][kSums];
#pragma GCC unroll 8
    for (int v = 0; v < kSums; ++v)
#pragma GCC unroll 2
      for (int i = 0; i < P; ++i) sums[i][v] = load<Ints>(settings + v * kLanes);
    add_steps<Form, P, S>(d, from, filters, sums);
    for (int i = 0; i < P; ++i, to += d.rest->ldc * kElement)
      finish<R>(sums[i], factors, *d.rest, bounds, channels, to);
    from += P * d.stride * kByteDepthwiseBytes;
  };
  for (; begin + kPixels <= end; begin += kPixels) some.template operator()<kPixels>();
  for (; begin < end; ++begin) some.template operator()<1>();
}

template <class Form>
void line(const ByteDepthwiseLine& d) {
  constexpr int64_t kStepsOf3x3 = 3 * ((3 + Form::taps - 1) / Form::taps);
  const auto chosen = [&] {
    switch (d.rest->result) {
      case ByteResult::kFloat:
        return multiply<Form, ByteResult::kFloat, 0>;
      case ByteResult::kInt8:
        return multiply<Form, ByteResult::kInt8, 0>;
      default:
        return d.steps == kStepsOf3x3 ? multiply<Form, ByteResult::kUInt8, kStepsOf3x3>
                                      : multiply<Form, ByteResult::kUInt8, 0>;
    }
  }();
  const int64_t pixels = (d.columns - d.span - 1) / d.stride + 1;
  for (int64_t begin = 0; begin < d.count; begin += pixels) {
    const int64_t end = std::min(d.count, begin + pixels);
    const int8_t* filters = d.filters;
    const int32_t* settings = d.settings;
    for (int64_t panel = 0; panel * 32 < d.channels; ++panel) {
      const int64_t first = first_of_byte_panel(panel, d.channels),
                    channels = std::min<int64_t>(32, d.channels);
      lay_out<Form>(d, first, channels, begin * d.stride - d.margin,
                    (end - 1) * d.stride - d.margin + d.span + 1);
      chosen(d, first, channels, reinterpret_cast<const char*>(filters), settings, begin, end);
      filters += d.steps * kByteDepthwiseBytes, settings += 3 * 32;
    }
  }
}

template <class Form>
ByteDepthwiseKernels kernels() {
  ByteDepthwiseKernels all{Form::taps, 4 / Form::taps, {}, line<Form>};
  for (int i = 0; i < 32; ++i)
    all.order[i] = static_cast<uint8_t>(kLanes == 8 ? (i % 8 / 4) * 16 + i / 8 * 4 + i % 4 : i);
  return all;
}

}  // namespace

ByteDepthwiseKernels byte_depthwise_kernels_variant() {
#if defined(__AVX512BW__)
  if (__builtin_cpu_supports("avx512vnni")) return kernels<FourBytes>();
#elif defined(__AVX2__)
  unsigned a = 0, b = 0, c = 0, d = 0;  // AVX-VNNI, which g++ 12 does not name
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 4)) return kernels<FourBytes>();
#endif
  return kernels<TwoWords>();
}

}  // namespace rushlight::cpu::RL_ISA
