// Conversion between any two types, and selection by a condition.
#include <cstring>

#include "cpu/isa/tables.h"
#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace rushlight::cpu::RL_ISA {
namespace {

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
      for (int64_t i = 0; i < n; ++i) out[i] = value;
      return;
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
  if (to_stride == 2 && from_stride == 4)
    for (; i + 8 <= n; i += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * i),
                       _mm256_cvtps_ph(_mm256_loadu_ps(reinterpret_cast<const float*>(from) + i), 0));
  for (; i < n; ++i)
    *reinterpret_cast<Half*>(to + i * to_stride) =
        Half(*reinterpret_cast<const float*>(from + i * from_stride));
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
