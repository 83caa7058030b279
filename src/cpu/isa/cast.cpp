// Conversion between any two types, and selection by a condition.
#include <cstring>

#include "cpu/isa/tables.h"
#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace rushlight::cpu::RL_ISA {
namespace {

// Elements as integers of their size, whose copies the compiler turns into vectors.
template <size_t Size>
struct BitsOf {
  using type = complex128;
};
template <>
struct BitsOf<1> {
  using type = uint8_t;
};
template <>
struct BitsOf<2> {
  using type = uint16_t;
};
template <>
struct BitsOf<4> {
  using type = uint32_t;
};
template <>
struct BitsOf<8> {
  using type = uint64_t;
};
template <class T>
using Bits = typename BitsOf<sizeof(T)>::type;

// Copies of every second element and of elements in reverse; false for other strides.
template <class T>
bool copy_common_stride(T* out, const char* from, int64_t from_stride, int64_t n) {
  const auto* in = reinterpret_cast<const T*>(from);
  if (from_stride == -static_cast<int64_t>(sizeof(T))) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = in[-i];
  } else if (from_stride == 2 * static_cast<int64_t>(sizeof(T))) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = in[2 * i];
  } else {
    return false;
  }
  return true;
}

template <class To, class From>
void cast(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
  auto element = [&](int64_t i) { return reinterpret_cast<const From*>(from + i * from_stride); };
  if (to_stride == sizeof(To) && from_stride == sizeof(From)) {
    if constexpr (std::is_same_v<To, From>) {
      std::memmove(to, from, static_cast<size_t>(n) * sizeof(To));
    } else {
      auto* out = reinterpret_cast<To*>(to);
      const auto* in = reinterpret_cast<const From*>(from);
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = convert<To>(in[i]);
    }
  } else if (to_stride == sizeof(To)) {
    auto* out = reinterpret_cast<To*>(to);
    if (from_stride == 0) {
      const To value = convert<To>(*element(0));
      const auto bits = __builtin_bit_cast(Bits<To>, value);
      auto* raw = reinterpret_cast<Bits<To>*>(to);
      for (int64_t i = 0; i < n; ++i) raw[i] = bits;
      return;
    }
    if constexpr (std::is_same_v<To, From>) {
      if (copy_common_stride(reinterpret_cast<Bits<To>*>(to), from, from_stride, n)) return;
    }
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = convert<To>(*element(i));
  } else {
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<To*>(to + i * to_stride) = convert<To>(*element(i));
  }
}

#if defined(__F16C__)
// The compiler does not vectorise conversions of half by itself.
template <>
void cast<float, Half>(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  if (to_stride == 4 && from_stride == 2)
    for (; i + 16 <= n; i += 16)
      _mm512_storeu_ps(
          reinterpret_cast<float*>(to) + i,
          _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 2 * i))));
#endif
  if (to_stride == 4 && from_stride == 2)
    for (; i + 8 <= n; i += 8)
      _mm256_storeu_ps(reinterpret_cast<float*>(to) + i,
                       _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 2 * i))));
  for (; i < n; ++i)
    *reinterpret_cast<float*>(to + i * to_stride) = *reinterpret_cast<const Half*>(from + i * from_stride);
}
template <>
void cast<Half, float>(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  if (to_stride == 2 && from_stride == 4)
    for (; i + 16 <= n; i += 16)
      _mm256_storeu_si256(
          reinterpret_cast<__m256i*>(to + 2 * i),
          _mm512_maskz_cvtps_ph(0xffff, _mm512_loadu_ps(reinterpret_cast<const float*>(from) + i), 0));
#endif
  if (to_stride == 2 && from_stride == 4)
    for (; i + 8 <= n; i += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * i),
                       _mm256_cvtps_ph(_mm256_loadu_ps(reinterpret_cast<const float*>(from) + i), 0));
  for (; i < n; ++i)
    *reinterpret_cast<Half*>(to + i * to_stride) =
        Half(*reinterpret_cast<const float*>(from + i * from_stride));
}
// Between half and other types: through floats, a few at a time.
template <class To, class From>
void cast_by_float(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
  constexpr int64_t kChunk = 256;
  float buffer[kChunk];
  auto* chunk = reinterpret_cast<char*>(buffer);
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t count = n - i < kChunk ? n - i : kChunk;
    cast<float, From>(chunk, 4, from + i * from_stride, from_stride, count);
    cast<To, float>(to + i * to_stride, to_stride, chunk, 4, count);
  }
}
template <>
void cast<BFloat16, Half>(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
  cast_by_float<BFloat16, Half>(to, to_stride, from, from_stride, n);
}
template <>
void cast<Half, BFloat16>(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
  cast_by_float<Half, BFloat16>(to, to_stride, from, from_stride, n);
}
template <>
void cast<double, Half>(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
  cast_by_float<double, Half>(to, to_stride, from, from_stride, n);
}
#endif

template <class From, class... To>
constexpr void fill_column(std::array<std::array<CastLoop, kDTypeCount>, kDTypeCount>& table,
                           TypeList<To...>) {
  ((table[static_cast<int>(dtype_of<To>)][static_cast<int>(dtype_of<From>)] = &cast<To, From>), ...);
}
template <class... From>
constexpr auto make_table(TypeList<From...> types) {
  std::array<std::array<CastLoop, kDTypeCount>, kDTypeCount> table{};
  (fill_column<From>(table, types), ...);
  return table;
}

// Only the conversions between common types are worth a copy per instruction set.
#ifdef __AVX2__
using CastTypes = TypeList<bool, uint8_t, int32_t, int64_t, Half, BFloat16, float, double>;
#else
using CastTypes = StorageTypes;
#endif

template <class T>
void select(char* out, const bool* condition, const char* a, int64_t a_stride, const char* b,
            int64_t b_stride, int64_t n) {
  auto* o = reinterpret_cast<T*>(out);
  const auto *x = reinterpret_cast<const T*>(a), *y = reinterpret_cast<const T*>(b);
  if (a_stride && b_stride) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = condition[i] ? x[i] : y[i];
  } else if (a_stride) {
    const T v = *y;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = condition[i] ? x[i] : v;
  } else if (b_stride) {
    const T v = *x;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = condition[i] ? v : y[i];
  } else {
    const T v = *x, w = *y;
    for (int64_t i = 0; i < n; ++i) o[i] = condition[i] ? v : w;
  }
}

}  // namespace

constinit const std::array<std::array<CastLoop, kDTypeCount>, kDTypeCount> cast_table =
    make_table(CastTypes{});
constinit const std::array<WhereLoop, 5> where_table = {
    &select<uint8_t>, &select<uint16_t>, &select<uint32_t>, &select<uint64_t>, &select<complex128>};

}  // namespace rushlight::cpu::RL_ISA
