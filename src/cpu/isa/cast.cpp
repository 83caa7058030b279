// Conversion between any two types, and selection by a condition.
#include <cstring>

#include "cpu/copy_run.h"
#include "cpu/isa/float8_inl.h"
#include "cpu/isa/half_inl.h"
#include "cpu/isa/tables.h"
#include "cpu/truth.h"

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

template <class T>
[[gnu::noinline]] void pick_strided(T* out, const char* from, int64_t from_stride, int64_t n) {
  if (copy_common_stride(out, from, from_stride, n)) return;
  for (int64_t i = 0; i < n; ++i) std::memcpy(out + i, from + i * from_stride, sizeof(T));
}

// AVX2 has no conversion of 64-bit integers: those below 2^51 become doubles by their bits, 64 at a time.
template <class To, class From>
inline constexpr bool is_by_bits =
#if defined(__AVX2__) && !defined(__AVX512DQ__)
    std::is_same_v<From, int64_t> && std::is_floating_point_v<To>;
#else
    false;
#endif
template <class To>
[[gnu::always_inline]] inline void convert_by_bits(To* out, const int64_t* in, int64_t n) {
  constexpr int64_t kBlock = 64;
  constexpr uint64_t kReach = uint64_t{1} << 51, kRound = 0x4338000000000000;  // the bits of 1.5 * 2^52
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = n - i < kBlock ? n - i : kBlock;
    uint64_t any = 0;
    for (int64_t j = 0; j < count; ++j) any |= static_cast<uint64_t>(in[i + j]) + kReach;
    if (any >> 52)
      for (int64_t j = 0; j < count; ++j) out[i + j] = static_cast<To>(in[i + j]);
    else
#pragma GCC ivdep
      for (int64_t j = 0; j < count; ++j)
        out[i + j] =
            static_cast<To>(__builtin_bit_cast(double, static_cast<uint64_t>(in[i + j]) + kRound) - 0x1.8p52);
  }
}

template <class To, class From>
void cast(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n);

// Puts elements side by side first: conversions of those are vector code. Apart, so that the cast of one
// number needs no frame for them.
template <class To, class From>
[[gnu::noinline]] void cast_strided(char* to, const char* from, int64_t from_stride, int64_t n) {
  constexpr int64_t kChunk = 256;
  Bits<From> chunk[kChunk];
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t count = n - i < kChunk ? n - i : kChunk;
    pick_strided(chunk, from + i * from_stride, from_stride, count);
    cast<To, From>(to + i * sizeof(To), sizeof(To), reinterpret_cast<const char*>(chunk), sizeof(From),
                   count);
  }
}

template <class To, class From>
void cast(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
  auto element = [&](int64_t i) { return reinterpret_cast<const From*>(from + i * from_stride); };
  if (to_stride == sizeof(To) && from_stride == sizeof(From)) {
    if constexpr (std::is_same_v<To, From>) {
      copy_run(to, from, static_cast<size_t>(n) * sizeof(To));
    } else if constexpr (is_by_bits<To, From>) {
      convert_by_bits(reinterpret_cast<To*>(to), reinterpret_cast<const From*>(from), n);
    } else {  // bools as bytes, of which the compiler makes vectors
      auto* out = reinterpret_cast<std::conditional_t<std::is_same_v<To, bool>, uint8_t, To>*>(to);
      const auto* in = reinterpret_cast<const From*>(from);
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i)
        if constexpr (std::is_same_v<To, bool> && std::is_same_v<From, Half>)
          out[i] = (in[i].bits & 0x7fff) != 0;
        else if constexpr (std::is_same_v<To, bool>)
          out[i] = static_cast<uint8_t>(convert<bool>(in[i]));
        else
          out[i] = convert<To>(in[i]);
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
    if constexpr (std::is_same_v<To, From>) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = *element(i);
    } else {
      cast_strided<To, From>(to, from, from_stride, n);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<To*>(to + i * to_stride) = convert<To>(*element(i));
  }
}

// Halves go through floats, a few at a time.
template <class To, class From>
void cast_by_float(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
  constexpr int64_t kChunk = 256;
  alignas(64) float buffer[kChunk];
  auto* chunk = reinterpret_cast<char*>(buffer);
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t count = n - i < kChunk ? n - i : kChunk;
    cast<float, From>(chunk, sizeof(float), from + i * from_stride, from_stride, count);
    cast<To, float>(to + i * to_stride, to_stride, chunk, sizeof(float), count);
  }
}
// Between adjacent elements and those at a distance: through adjacent halves.
template <class F>
void cast_gathered(const char* from, int64_t from_stride, int64_t n, F&& each) {
  constexpr int64_t kChunk = 256;
  Half buffer[kChunk];
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t count = n - i < kChunk ? n - i : kChunk;
    cast<Half, Half>(reinterpret_cast<char*>(buffer), sizeof(Half), from + i * from_stride, from_stride,
                     count);
    each(buffer, i, count);
  }
}
template <>
void cast<float, Half>(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
  auto* out = reinterpret_cast<float*>(to);
  if (to_stride == sizeof(float) && from_stride == sizeof(Half)) {
    widen(reinterpret_cast<const Half*>(from), out, n);
  } else if (to_stride == sizeof(float)) {
    cast_gathered(from, from_stride, n,
                  [&](const Half* x, int64_t at, int64_t count) { widen(x, out + at, count); });
  } else {
    for (int64_t i = 0; i < n; ++i)
      *reinterpret_cast<float*>(to + i * to_stride) = *reinterpret_cast<const Half*>(from + i * from_stride);
  }
}
template <>
void cast<Half, float>(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
  constexpr int64_t kChunk = 256;
  if (to_stride == sizeof(Half) && from_stride == sizeof(float))
    return narrow(reinterpret_cast<const float*>(from), reinterpret_cast<Half*>(to), n);
  float wide[kChunk];
  Half narrowed[kChunk];
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t count = n - i < kChunk ? n - i : kChunk;
    cast<float, float>(reinterpret_cast<char*>(wide), sizeof(float), from + i * from_stride, from_stride,
                       count);
    narrow(wide, narrowed, count);
    cast<Half, Half>(to + i * to_stride, to_stride, reinterpret_cast<char*>(narrowed), sizeof(Half), count);
  }
}
#define RL_CAST_BY_FLOAT(To, From)                                                                     \
  template <>                                                                                          \
  void cast<To, From>(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) { \
    cast_by_float<To, From>(to, to_stride, from, from_stride, n);                                      \
  }
RL_CAST_BY_FLOAT(BFloat16, Half)
RL_CAST_BY_FLOAT(BFloat16, complex64)
RL_CAST_BY_FLOAT(Half, complex64)
RL_CAST_BY_FLOAT(Half, BFloat16)
RL_CAST_BY_FLOAT(double, Half)
RL_CAST_BY_FLOAT(int64_t, Half)
RL_CAST_BY_FLOAT(int32_t, Half)
RL_CAST_BY_FLOAT(int16_t, Half)
RL_CAST_BY_FLOAT(int8_t, Half)
RL_CAST_BY_FLOAT(uint8_t, Half)
RL_CAST_BY_FLOAT(Half, int16_t)
RL_CAST_BY_FLOAT(Half, int8_t)
RL_CAST_BY_FLOAT(Half, int32_t)
RL_CAST_BY_FLOAT(Half, uint8_t)
RL_CAST_BY_FLOAT(Half, double)
RL_CAST_BY_FLOAT(Half, int64_t)
#undef RL_CAST_BY_FLOAT

// Truth values become bytes of 0 and 1 first, a few at a time, and then what such bytes become. One copy of
// this serves all types: loops of their own would cost the small runtime more than the call costs.
[[gnu::noinline, gnu::noclone]] void cast_by_bytes(CastLoop convert_bytes, char* to, int64_t to_stride,
                                                   const char* from, int64_t from_stride, int64_t n) {
  constexpr int64_t kChunk = 512;
  uint8_t buffer[kChunk];
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t count = n - i < kChunk ? n - i : kChunk;
    const auto* bytes = reinterpret_cast<const uint8_t*>(from + i * from_stride);
    if (from_stride == 1)
      for (int64_t j = 0; j < count; ++j) buffer[j] = bytes[j] != 0;
    else
      for (int64_t j = 0; j < (from_stride ? count : 1); ++j) buffer[j] = bytes[j * from_stride] != 0;
    convert_bytes(to + i * to_stride, to_stride, reinterpret_cast<const char*>(buffer), from_stride ? 1 : 0,
                  count);
  }
}
template <class To>
void cast_truths(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
  cast_by_bytes(&cast<To, uint8_t>, to, to_stride, from, from_stride, n);
}

// Complex halves from real numbers: a half and a zero.
template <class From>
void cast_to_complex_halves(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
  constexpr int64_t kChunk = 256;
  alignas(64) float wide[kChunk];
  alignas(64) Half halves[kChunk];
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t count = n - i < kChunk ? n - i : kChunk;
    cast<float, From>(reinterpret_cast<char*>(wide), sizeof(float), from + i * from_stride, from_stride,
                      count);
    narrow(wide, halves, count);
    char* out = to + i * to_stride;
    const auto pair = [&](int64_t j) { return uint32_t{__builtin_bit_cast(uint16_t, halves[j])}; };
    if (to_stride == sizeof(uint32_t))
      for (int64_t j = 0; j < count; ++j) reinterpret_cast<uint32_t*>(out)[j] = pair(j);
    else
      for (int64_t j = 0; j < count; ++j) *reinterpret_cast<uint32_t*>(out + j * to_stride) = pair(j);
  }
}

// Complex numbers from what converts to real ones: a number and a zero.
template <class Real, class From>
void cast_to_complex(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
  constexpr int64_t kChunk = 256;
  alignas(64) Real reals[kChunk];
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t count = n - i < kChunk ? n - i : kChunk;
    cast<Real, From>(reinterpret_cast<char*>(reals), sizeof(Real), from + i * from_stride, from_stride,
                     count);
    char* out = to + i * to_stride;
    if (to_stride == 2 * sizeof(Real))
      for (int64_t j = 0; j < count; ++j) {
        reinterpret_cast<Real*>(out)[2 * j] = reals[j];
        reinterpret_cast<Real*>(out)[2 * j + 1] = 0;
      }
    else
      for (int64_t j = 0; j < count; ++j) {
        reinterpret_cast<Real*>(out + j * to_stride)[0] = reals[j];
        reinterpret_cast<Real*>(out + j * to_stride)[1] = 0;
      }
  }
}

// Numbers of eight bits, through floats: one copy of the loops for all types that become floats.
template <class Eight>
[[gnu::noinline, gnu::noclone]] void round_to_eight(CastLoop widen, char* to, int64_t to_stride,
                                                    const char* from, int64_t from_stride, int64_t n) {
  constexpr int64_t kChunk = 256;
  alignas(64) float wide[kChunk];
  uint8_t codes[kChunk];
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t count = n - i < kChunk ? n - i : kChunk;
    widen(reinterpret_cast<char*>(wide), sizeof(float), from + i * from_stride, from_stride, count);
    for (int64_t j = 0; j < count; ++j) codes[j] = static_cast<uint8_t>(float8_code<Eight>(wide[j]));
    char* out = to + i * to_stride;
    for (int64_t j = 0; j < count; ++j) out[j * to_stride] = static_cast<char>(codes[j]);
  }
}
template <class Eight>
[[gnu::noinline, gnu::noclone]] void convert_eight(CastLoop convert, char* to, int64_t to_stride,
                                                   const char* from, int64_t from_stride, int64_t n) {
  constexpr int64_t kChunk = 256;
  alignas(64) float wide[kChunk];
  uint8_t codes[kChunk];
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t count = n - i < kChunk ? n - i : kChunk;
    const char* at = from + i * from_stride;
    for (int64_t j = 0; j < count; ++j) codes[j] = static_cast<uint8_t>(at[j * from_stride]);
    for (int64_t j = 0; j < count; ++j) wide[j] = float8_value<Eight>(codes[j]);
    convert(to + i * to_stride, to_stride, reinterpret_cast<const char*>(wide), sizeof(float), count);
  }
}
template <class Eight, class From>
void cast_to_float8(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
  round_to_eight<Eight>(&cast<float, From>, to, to_stride, from, from_stride, n);
}
template <class To, class Eight>
void cast_from_float8(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
  convert_eight<Eight>(&cast<To, float>, to, to_stride, from, from_stride, n);
}

template <class From, class To>
constexpr CastLoop loop_of() {
  if constexpr (std::is_same_v<From, bool>)
    return &cast_truths<To>;
  else
    return &cast<To, From>;
}

template <class From, class... To>
constexpr void fill_column(std::array<std::array<CastLoop, kDTypeCount>, kDTypeCount>& table,
                           TypeList<To...>) {
  ((table[static_cast<int>(dtype_of<To>)][static_cast<int>(dtype_of<From>)] = loop_of<From, To>()), ...);
}
template <class... T>
constexpr void fill_copies(std::array<std::array<CastLoop, kDTypeCount>, kDTypeCount>& table,
                           TypeList<T...>) {
  ((table[static_cast<int>(dtype_of<T>)][static_cast<int>(dtype_of<T>)] = &cast<Bits<T>, Bits<T>>), ...);
}
template <class To, class... From>
constexpr void fill_row(std::array<std::array<CastLoop, kDTypeCount>, kDTypeCount>& table,
                        TypeList<From...>) {
  ((table[static_cast<int>(dtype_of<To>)][static_cast<int>(dtype_of<From>)] = &cast<To, From>), ...);
}
template <class... From>
constexpr void fill_complex_halves(std::array<std::array<CastLoop, kDTypeCount>, kDTypeCount>& table,
                                   TypeList<From...>) {
  ((table[static_cast<int>(DType::Complex32)][static_cast<int>(dtype_of<From>)] =
        &cast_to_complex_halves<From>),
   ...);
}
template <class Eight, class... Real>
constexpr void fill_float8(std::array<std::array<CastLoop, kDTypeCount>, kDTypeCount>& table,
                           TypeList<Real...>) {
  constexpr int eight = static_cast<int>(dtype_of<Eight>), truth = static_cast<int>(DType::Bool);
  ((table[eight][static_cast<int>(dtype_of<Real>)] = &cast_to_float8<Eight, Real>), ...);
  ((table[static_cast<int>(dtype_of<Real>)][eight] = &cast_from_float8<Real, Eight>), ...);
  table[truth][eight] = &cast_from_float8<bool, Eight>;
  table[eight][truth] = [](char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
    cast_by_bytes(&cast_to_float8<Eight, uint8_t>, to, to_stride, from, from_stride, n);
  };
}
template <class... From>
constexpr auto make_table(TypeList<From...> types) {
  std::array<std::array<CastLoop, kDTypeCount>, kDTypeCount> table{};
  (fill_column<From>(table, types), ...);
  fill_copies(table, StorageTypes{});
#if defined(__AVX2__) || defined(RL_NEON)
  using Common = TypeList<int32_t, int64_t, Half, BFloat16, float, double>;
  fill_row<int8_t>(table, Common{});
  fill_row<int16_t>(table, Common{});
  fill_row<Half>(table, TypeList<int8_t, int16_t, complex64>{});
  fill_row<BFloat16>(table, TypeList<int8_t, int16_t, complex64>{});
  using Reals = TypeList<uint8_t, int8_t, int16_t, int32_t, int64_t, Half, BFloat16, float, double>;
  fill_float8<Float8_e4m3fn>(table, Reals{});
  fill_float8<Float8_e5m2>(table, Reals{});
  fill_float8<Float8_e4m3fnuz>(table, Reals{});
  fill_float8<Float8_e5m2fnuz>(table, Reals{});
  fill_complex_halves(table, TypeList<uint8_t, int32_t, int64_t, Half, BFloat16, float, double>{});
  const auto column = [&](DType to, DType from) -> CastLoop& {
    return table[static_cast<int>(to)][static_cast<int>(from)];
  };
  column(DType::Complex32, DType::Bool) = [](char* to, int64_t to_stride, const char* from,
                                             int64_t from_stride, int64_t n) {
    cast_by_bytes(&cast_to_complex_halves<uint8_t>, to, to_stride, from, from_stride, n);
  };
  column(DType::Complex64, DType::Int64) = &cast_to_complex<float, int64_t>;
  column(DType::Complex128, DType::Int64) = &cast_to_complex<double, int64_t>;
  column(DType::Complex64, DType::Float16) = &cast_to_complex<float, Half>;
  column(DType::Complex128, DType::Float16) = &cast_to_complex<double, Half>;
  column(DType::Int8, DType::Bool) = column(DType::UInt8, DType::Bool);
  column(DType::Int16, DType::Bool) = &cast_truths<int16_t>;
#endif
  return table;
}

// Only the conversions between common types are worth a copy per instruction set.
#if defined(__AVX2__) || defined(RL_NEON)
using CastTypes = TypeList<bool, uint8_t, int32_t, int64_t, Half, BFloat16, float, double>;
#else
using CastTypes = StorageTypes;
#endif

template <class T>
void select(char* out, const bool* truths, const char* a, int64_t a_stride, const char* b, int64_t b_stride,
            int64_t n) {
  auto* o = reinterpret_cast<T*>(out);
  const auto* condition = reinterpret_cast<const Truth*>(truths);
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
