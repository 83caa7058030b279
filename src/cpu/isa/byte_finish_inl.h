// What becomes of the sums of byte_product.cpp: terms of rows and columns, scales, bounds, and the result's
// type.
#pragma once
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "cpu/isa/byte_steps_inl.h"
#include "cpu/isa/fused_inl.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// To even where two are as near. What is no number has none.
[[gnu::always_inline]] inline Ints rounded(Floats x) {
#if defined(__AVX512F__)
  return Ints(_mm512_maskz_cvtps_epi32(0xffff, __m512(x)));
#elif defined(__AVX2__)
  return Ints(_mm256_cvtps_epi32(__m256(x)));
#elif defined(__SSE2__)
  return Ints(_mm_cvtps_epi32(__m128(x)));
#elif defined(__aarch64__)
  return Ints(vcvtnq_s32_f32(float32x4_t(x)));
#else
  Ints result;
  for (int l = 0; l < kLanes; ++l) result[l] = static_cast<int32_t>(__builtin_rintf(x[l]));
  return result;
#endif
}
// The low bytes of numbers that fit them, or their low words.
template <bool Unsigned>
[[gnu::always_inline]] inline Bytes bytes_of(Ints x) {
#if defined(__AVX512BW__)
  return Bytes(_mm512_maskz_cvtepi32_epi8(0xffff, __m512i(x)));
#elif defined(__AVX2__)
  const __m128i words =
      _mm_packs_epi32(_mm256_castsi256_si128(__m256i(x)), _mm256_extracti128_si256(__m256i(x), 1));
  const __m128i bytes = Unsigned ? _mm_packus_epi16(words, words) : _mm_packs_epi16(words, words);
  Bytes result;
  __builtin_memcpy(&result, &bytes, sizeof(result));
  return result;
#else
  return __builtin_convertvector(x, Bytes);
#endif
}
typedef int16_t Shorts __attribute__((vector_size(2 * kLanes)));
[[gnu::always_inline]] inline Shorts words_of(Ints x) {
#if defined(__AVX512BW__)
  return Shorts(_mm512_maskz_cvtepi32_epi16(0xffff, __m512i(x)));
#elif defined(__AVX2__)
  return Shorts(_mm_packs_epi32(_mm256_castsi256_si128(__m256i(x)), _mm256_extracti128_si256(__m256i(x), 1)));
#else
  return __builtin_convertvector(x, Shorts);
#endif
}
// Comparisons with what is no number are false: it becomes `low`.
[[gnu::always_inline]] inline Floats bounded(Floats x, Floats low, Floats high) {
  x = x > low ? x : low;
  return x < high ? x : high;
}

// What follows the sums of a panel.
struct Rest {
  Words column_terms[kVectors], zeros[kVectors];  // unsigned: they wrap around
  Floats scales[kVectors], bias[kVectors];
  // The columns' terms are zeros, and numbers so small that integers hold them; bytes have no other bounds.
  bool usual;

  // `taken_off`: what the sums miss of each activation.
  Rest(const ByteProduct& p, int64_t first, int64_t columns, int32_t taken_off) {
    put(p.b->column_sums() + first, columns, column_terms);
    for (Words& term : column_terms) term *= static_cast<uint32_t>(p.a_zero - taken_off);
    put(p.b_zeros ? p.b_zeros + first : nullptr, columns, zeros);
    put(p.scales ? p.scales + first : nullptr, columns, scales);
    put(p.bias ? p.bias + first : nullptr, columns, bias);
    usual = all_bytes(p.result, p.low, p.high) && small_numbers(static_cast<float>(p.b->k) * kMostProduct);
    for (const Words& term : column_terms)
      for (int l = 0; l < kLanes; ++l) usual &= term[l] == 0;
  }
  static bool all_bytes(ByteResult result, float low, float high) {
    return result == ByteResult::kUInt8 ? low <= 0 && high >= 255 : low <= -128 && high >= 127;
  }
  static constexpr float kMostProduct = 255 * 128, kSmallNumber = 1 << 30;
  bool small_numbers(float sum) const {
    bool all = true;
    for (int v = 0; v < kVectors; ++v)
      for (int l = 0; l < kLanes; ++l)
        all &= (__builtin_fabsf(bias[v][l]) + sum) * __builtin_fabsf(scales[v][l]) < kSmallNumber;
    return all;
  }
  // Numbers of columns to their places, four by four; zeros where there are none.
  template <class T, class V>
  static void put(const T* from, int64_t columns, V (&to)[kVectors]) {
    T whole[kColumns] = {}, placed[kColumns];
    if (from && columns < kColumns) std::copy_n(from, columns, whole);
    if (columns < kColumns || !from) from = whole;
    for (int64_t j = 0; j < kColumns; j += 4) std::memcpy(placed + place_of(j), from + j, 4 * sizeof(T));
    std::memcpy(to, placed, sizeof(to));
  }
};

template <class V, class T>
[[gnu::always_inline]] inline void store(V value, int64_t count, T* to) {
  if (count >= kLanes)
    __builtin_memcpy(to, &value, sizeof(value));
  else
    std::memcpy(to, &value, static_cast<size_t>(count) * sizeof(T));
}
// Whole panels apart: the others' vectors have addresses, and would be written to the stack for all.
template <class V, class T>
[[gnu::always_inline]] inline void store_panel(V a, V b, int64_t columns, T* to) {
  if (columns == kColumns) {
    __builtin_memcpy(to, &a, sizeof(a));
    __builtin_memcpy(to + kLanes, &b, sizeof(b));
    return;
  }
  V both[kVectors] = {a, b};
  std::memcpy(to, both, static_cast<size_t>(columns) * sizeof(T));
}

#if defined(__AVX2__)
// Numbers of two vectors in their columns' order.
template <class V>
[[gnu::always_inline]] inline void in_order(V& a, V& b) {
#if defined(__AVX512BW__)
  const __m512i low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
                high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  const __m512i x = __m512i(a), y = __m512i(b);
  a = V(_mm512_permutex2var_epi64(x, low, y)), b = V(_mm512_permutex2var_epi64(x, high, y));
#else
  const __m256i x = __m256i(a), y = __m256i(b);
  a = V(_mm256_permute2x128_si256(x, y, 0x20)), b = V(_mm256_permute2x128_si256(x, y, 0x31));
#endif
}
#if defined(__AVX512BW__)
typedef __m256i PanelBytes;
[[gnu::always_inline]] inline __mmask32 first_bytes(int64_t columns) {
  return static_cast<__mmask32>((uint64_t{1} << columns) - 1);
}
#else
typedef __m128i PanelBytes;
#endif
struct ByteBounds {
  Floats high;
  Ints zero;  // words
  PanelBytes least, most;
  ByteBounds(float low_byte, float high_byte, int32_t out_zero)
      : high(Floats{} + (high_byte - static_cast<float>(out_zero))),
        zero(Ints{} + static_cast<int32_t>(static_cast<uint32_t>(out_zero & 0xffff) * 0x10001u)) {
    std::memset(&least, static_cast<int>(low_byte), sizeof(least));
    std::memset(&most, static_cast<int>(high_byte), sizeof(most));
  }
};
// A panel's numbers as bytes. What is no number becomes the least one: so does the conversion. Usual: numbers
// are small, and bounds are those of bytes.
template <bool Unsigned, bool Usual>
[[gnu::always_inline]] inline PanelBytes panel_bytes_of(Floats a, Floats b, const ByteBounds& bounds) {
#if defined(__AVX512BW__)
  if constexpr (!Usual) {
    a = Floats(_mm512_maskz_min_ps(0xffff, __m512(bounds.high), __m512(a)));
    b = Floats(_mm512_maskz_min_ps(0xffff, __m512(bounds.high), __m512(b)));
  }
  const __m512i x = _mm512_maskz_cvtps_epi32(0xffff, __m512(a)),
                y = _mm512_maskz_cvtps_epi32(0xffff, __m512(b));
  const __m512i words = _mm512_adds_epi16(_mm512_packs_epi32(x, y), __m512i(bounds.zero));
  const auto low = __m256i(__builtin_shufflevector(words, words, 0, 1, 2, 3)),
             high = __m256i(__builtin_shufflevector(words, words, 4, 5, 6, 7));
  const __m256i bytes = _mm256_permute4x64_epi64(
      Unsigned ? _mm256_packus_epi16(low, high) : _mm256_packs_epi16(low, high), 0xd8);
  if constexpr (Usual) return bytes;
  return Unsigned ? _mm256_min_epu8(_mm256_max_epu8(bytes, bounds.least), bounds.most)
                  : _mm256_min_epi8(_mm256_max_epi8(bytes, bounds.least), bounds.most);
#else
  if constexpr (!Usual) {
    a = Floats(_mm256_min_ps(__m256(bounds.high), __m256(a)));
    b = Floats(_mm256_min_ps(__m256(bounds.high), __m256(b)));
  }
  const __m256i x = _mm256_cvtps_epi32(__m256(a)), y = _mm256_cvtps_epi32(__m256(b));
  const __m256i words = _mm256_adds_epi16(_mm256_packs_epi32(x, y), __m256i(bounds.zero));
  const __m128i low = _mm256_castsi256_si128(words), high = _mm256_extracti128_si256(words, 1);
  const __m128i bytes = Unsigned ? _mm_packus_epi16(low, high) : _mm_packs_epi16(low, high);
  if constexpr (Usual) return bytes;
  return Unsigned ? _mm_min_epu8(_mm_max_epu8(bytes, bounds.least), bounds.most)
                  : _mm_min_epi8(_mm_max_epi8(bytes, bounds.least), bounds.most);
#endif
}
#else
template <class V>
[[gnu::always_inline]] inline void in_order(V&, V&) {}
#endif

// Stores a panel's rows as bytes.
template <bool Unsigned>
class ByteStore {
 public:
#if defined(__AVX2__)
  ByteStore(float low, float high, int32_t zero) : bounds_(low, high, zero) {}
#else
  ByteStore(float low, float high, int32_t zero)
      : low_(Floats{} + (low - static_cast<float>(zero))),
        high_(Floats{} + (high - static_cast<float>(zero))),
        zero_(Ints{} + zero) {}
#endif
  template <bool Usual>
  [[gnu::always_inline]] void put(Floats a, Floats b, int64_t columns, char* to) const {
#if defined(__AVX2__)
    const PanelBytes bytes = panel_bytes_of<Unsigned, Usual>(a, b, bounds_);
    if (columns == kColumns)
      __builtin_memcpy(to, &bytes, sizeof(bytes));
    else
#if defined(__AVX512BW__)
      _mm256_mask_storeu_epi8(to, first_bytes(columns), bytes);
#else
      std::memcpy(to, &bytes, static_cast<size_t>(columns));
#endif
#else
    store(bytes_of<Unsigned>(rounded(bounded(a, low_, high_)) + zero_), columns, to);
    if (columns > kLanes)
      store(bytes_of<Unsigned>(rounded(bounded(b, low_, high_)) + zero_), columns - kLanes, to + kLanes);
#endif
  }

 private:
#if defined(__AVX2__)
  const ByteBounds bounds_;
#else
  const Floats low_, high_;
  const Ints zero_;
#endif
};

#if defined(__AVX512BW__)
template <bool Unsigned>
[[gnu::always_inline]] inline Floats numbers_of(__m128i bytes) {
  return Floats(_mm512_maskz_cvtepi32_ps(0xffff, Unsigned ? _mm512_maskz_cvtepu8_epi32(0xffff, bytes)
                                                          : _mm512_maskz_cvtepi8_epi32(0xffff, bytes)));
}
#elif defined(__AVX2__)
template <bool Unsigned>
[[gnu::always_inline]] inline Floats numbers_of(__m128i bytes) {
  return Floats(_mm256_cvtepi32_ps(Unsigned ? _mm256_cvtepu8_epi32(bytes) : _mm256_cvtepi8_epi32(bytes)));
}
#endif
// Bytes of a row as numbers in the columns' places.
template <bool Unsigned>
[[gnu::always_inline]] inline void read_places(const char* from, int64_t columns, Floats& a, Floats& b) {
#if defined(__AVX512BW__)
  const __m256i own = columns == kColumns ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))
                                          : _mm256_maskz_loadu_epi8(first_bytes(columns), from);
  const __m256i bytes = _mm256_permutevar8x32_epi32(own, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
  a = numbers_of<Unsigned>(_mm256_castsi256_si128(bytes));
  b = numbers_of<Unsigned>(_mm256_extracti128_si256(bytes, 1));
#else
  alignas(32) char some[kColumns];
  if (columns < kColumns) {
    std::memset(some, 0, sizeof(some));
    std::memcpy(some, from, static_cast<size_t>(columns));
    from = some;
  }
#if defined(__AVX2__)
  const __m128i bytes = _mm_shuffle_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)), 0xd8);
  a = numbers_of<Unsigned>(bytes);
  b = numbers_of<Unsigned>(_mm_bsrli_si128(bytes, 8));
#else
  using Byte = std::conditional_t<Unsigned, uint8_t, int8_t>;
  for (int64_t j = 0; j < kColumns; ++j) {
    const auto number = static_cast<float>(static_cast<Byte>(from[j]));
    (j < kLanes ? a : b)[j % kLanes] = number;
  }
#endif
#endif
}

// What usual numbers save is worth loops of their own where products take less than what follows them.
#if defined(__AVX512BW__)
constexpr bool kHasUsual = true;
#else
constexpr bool kHasUsual = false;
#endif
template <bool Usual>
[[gnu::always_inline]] inline Ints sum_of(const Rest& rest, Ints sum, int v) {
  return Usual ? sum : Ints(Words(sum) - rest.column_terms[v]);
}

// The product's bytes are numbers already when they are added to the others'.
template <bool Unsigned, bool OtherFirst>
[[gnu::noinline]] void finish_sum(const ByteProduct& p, const Rest& rest, const Ints* sums, int rows,
                                  int64_t i, int64_t first) {
  const ByteSum s = *p.sum;  // bytes that are stored might be anything's
  const int64_t columns = std::min(kColumns, p.b->n - first), ldc = p.ldc, away = s.away();
  const auto zero = static_cast<float>(p.out_zero);
  const Floats low = Floats{} + (p.low - zero), high = Floats{} + (p.high - zero), scale = Floats{} + s.scale,
               other_scale = Floats{} + s.other_scale, other_zero = Floats{} + s.other_zero,
               least = Floats{} + s.least, factor = Floats{} + s.inverse_out_scale;
  const auto number = [&]<bool Usual>(int r, int v, Floats other) {
    const auto sum = sum_of<Usual>(rest, sums[r * kVectors + v], v);
    const Floats wanted = (__builtin_convertvector(sum, Floats) + rest.bias[v]) * rest.scales[v];
    const Floats steps = __builtin_convertvector(rounded(bounded(wanted, low, high)), Floats);
    const Floats others = other - other_zero;
    // Where the compiler takes a product into a sum it is the first one, here as in add_affine.
    const Floats both =
        OtherFirst ? others * other_scale + steps * scale : steps * scale + others * other_scale;
    return (both > least ? both : least) * factor;
  };
  const ByteStore<Unsigned> store_bytes(s.low, s.high, s.out_zero);
  char* to = static_cast<char*>(p.c) + i * ldc + first;
  const auto finish_rows = [&]<bool Usual>() {
    for (int r = 0; r < rows; ++r, to += ldc) {
      Floats a = {}, b = {};
      read_places<Unsigned>(to + away, columns, a, b);
      a = number.template operator()<Usual>(r, 0, a), b = number.template operator()<Usual>(r, 1, b);
      store_bytes.template put<Usual>(a, b, columns, to);
    }
  };
  const float most = 255 * (s.scale + s.other_scale) * s.inverse_out_scale;
  if (kHasUsual && rest.usual && columns == kColumns && Rest::all_bytes(p.result, s.low, s.high) &&
      most < Rest::kSmallNumber)
    finish_rows.template operator()<kHasUsual>();
  else
    finish_rows.template operator()<false>();
}

// R says what is returned, and Rows whether the weight has zero points.
template <ByteResult R, bool Rows>
[[gnu::noinline]] void finish_typed(const ByteProduct& p, const Rest& rest, const Ints* sums, int rows,
                                    int64_t i, int64_t first) {
  const int64_t columns = std::min(kColumns, p.b->n - first);
  const auto whole_sum = [&](int r, int v, int64_t row) {
    Words sum = Words(sums[r * kVectors + v]) - rest.column_terms[v];
    if constexpr (Rows) sum -= rest.zeros[v] * static_cast<uint32_t>(p.row_terms[row]);
    return Ints(sum);
  };
  const auto number = [&]<bool Usual>(int r, int v, int64_t row) {
    const Ints sum = Usual ? sums[r * kVectors + v] : whole_sum(r, v, row);
    return (__builtin_convertvector(sum, Floats) + rest.bias[v]) * rest.scales[v];
  };
  if constexpr (R == ByteResult::kInt32 || R == ByteResult::kFloat) {
    using T = std::conditional_t<R == ByteResult::kFloat, float, int32_t>;
    const Floats low = Floats{} + p.low, high = Floats{} + p.high;
    const auto value = [&](int r, int v, int64_t row) {
      if constexpr (R == ByteResult::kInt32)
        return whole_sum(r, v, row);
      else  // out_zero is 0
        return clamped(
            fused(__builtin_convertvector(whole_sum(r, v, row), Floats), rest.scales[v], rest.bias[v]), low,
            high);
    };
    T* to = static_cast<T*>(p.c) + i * p.ldc + first;
    for (int r = 0; r < rows; ++r, ++i, to += p.ldc) {
      auto a = value(r, 0, i), b = value(r, 1, i);
      in_order(a, b);
      store_panel(a, b, columns, to);
    }
  } else {
    constexpr bool kUnsigned = R == ByteResult::kUInt8;
    char* to = static_cast<char*>(p.c) + i * p.ldc + first;
    const ByteStore<kUnsigned> store_bytes(p.low, p.high, p.out_zero);
    const auto finish_rows = [&]<bool Usual>() {
      for (int r = 0; r < rows; ++r, ++i, to += p.ldc) {
        const Floats a = number.template operator()<Usual>(r, 0, i),
                     b = number.template operator()<Usual>(r, 1, i);
        store_bytes.template put<Usual>(a, b, columns, to);
      }
    };
    if (kHasUsual && !Rows && rest.usual && columns == kColumns)
      finish_rows.template operator()<kHasUsual && !Rows>();
    else
      finish_rows.template operator()<false>();
  }
}

using Finish = void (*)(const ByteProduct& p, const Rest& rest, const Ints* sums, int rows, int64_t i,
                        int64_t first);
template <bool OtherFirst>
Finish finish_sum_for(ByteResult result) {
  return result == ByteResult::kUInt8 ? finish_sum<true, OtherFirst> : finish_sum<false, OtherFirst>;
}
template <bool Rows>
Finish finish_for(ByteResult result) {
  switch (result) {
    case ByteResult::kInt32:
      return finish_typed<ByteResult::kInt32, Rows>;
    case ByteResult::kFloat:
      return finish_typed<ByteResult::kFloat, Rows>;
    case ByteResult::kUInt8:
      return finish_typed<ByteResult::kUInt8, Rows>;
    default:
      return finish_typed<ByteResult::kInt8, Rows>;
  }
}
// Apart from the loop that sums: whose sums would have an address otherwise, and be written in each step.
Finish finish_of(const ByteProduct& p) {
  if (p.sum) return p.sum->other_first ? finish_sum_for<true>(p.result) : finish_sum_for<false>(p.result);
  return p.row_terms ? finish_for<true>(p.result) : finish_for<false>(p.result);
}

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
