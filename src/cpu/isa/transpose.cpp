#include "cpu/transpose.h"

#include <bit>
#include <cstring>

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace rushlight::cpu::RL_ISA {
namespace {

struct Wide {
  uint64_t low, high;
};

// Elements may stand anywhere: four bytes of weights are moved as one.
template <class T>
T load(const char* from) {
  T v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
template <class T>
void store(char* to, T v) {
  std::memcpy(to, &v, sizeof v);
}

template <class T>
void rectangle(char* out, int64_t out_line, const char* in, int64_t in_line, int64_t rows, int64_t columns) {
  constexpr int64_t kItem = sizeof(T);
  if (columns == 2 && out_line == 2 * kItem) {  // two lines, interleaved
    const char* second = in + in_line;
#pragma GCC ivdep
    for (int64_t i = 0; i < rows; ++i) {
      store(out + 2 * i * kItem, load<T>(in + i * kItem));
      store(out + (2 * i + 1) * kItem, load<T>(second + i * kItem));
    }
    return;
  }
  for (int64_t i = 0; i < rows; ++i) {
    char* to = out + i * out_line;
    const char* from = in + i * kItem;
    for (int64_t j = 0; j < columns; ++j) store(to + j * kItem, load<T>(from + j * in_line));
  }
}

#ifdef __AVX2__
inline __m256i line_of(const char* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
inline void put_line(char* p, __m256i v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }

// Squares of elements that fill a register: pairs of lines are interleaved by ever wider elements.
struct Square4 {
  static constexpr int64_t kSide = 8, kItem = 4;
  using Element = uint32_t;
  static void run(char* out, int64_t out_line, const char* in, int64_t in_line) {
    __m256i a[8], b[8];
    for (int i = 0; i < 8; ++i) a[i] = line_of(in + i * in_line);
    for (int i = 0; i < 8; i += 2) {
      b[i] = _mm256_unpacklo_epi32(a[i], a[i + 1]);
      b[i + 1] = _mm256_unpackhi_epi32(a[i], a[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
      for (int j = 0; j < 2; ++j) {
        a[i + 2 * j] = _mm256_unpacklo_epi64(b[i + j], b[i + j + 2]);
        a[i + 2 * j + 1] = _mm256_unpackhi_epi64(b[i + j], b[i + j + 2]);
      }
    for (int i = 0; i < 4; ++i) {
      put_line(out + i * out_line, _mm256_permute2x128_si256(a[i], a[i + 4], 0x20));
      put_line(out + (i + 4) * out_line, _mm256_permute2x128_si256(a[i], a[i + 4], 0x31));
    }
  }
};
struct Square8 {
  static constexpr int64_t kSide = 4, kItem = 8;
  using Element = uint64_t;
  static void run(char* out, int64_t out_line, const char* in, int64_t in_line) {
    __m256i a[4], b[4];
    for (int i = 0; i < 4; ++i) a[i] = line_of(in + i * in_line);
    for (int i = 0; i < 4; i += 2) {
      b[i] = _mm256_unpacklo_epi64(a[i], a[i + 1]);
      b[i + 1] = _mm256_unpackhi_epi64(a[i], a[i + 1]);
    }
    for (int i = 0; i < 2; ++i) {
      put_line(out + i * out_line, _mm256_permute2x128_si256(b[i], b[i + 2], 0x20));
      put_line(out + (i + 2) * out_line, _mm256_permute2x128_si256(b[i], b[i + 2], 0x31));
    }
  }
};
struct Square2 {
  static constexpr int64_t kSide = 8, kItem = 2;
  using Element = uint16_t;
  static void run(char* out, int64_t out_line, const char* in, int64_t in_line) {
    __m128i a[8], b[8];
    for (int i = 0; i < 8; ++i) a[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i * in_line));
    for (int i = 0; i < 4; ++i) {
      b[2 * i] = _mm_unpacklo_epi16(a[2 * i], a[2 * i + 1]);
      b[2 * i + 1] = _mm_unpackhi_epi16(a[2 * i], a[2 * i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
      for (int j = 0; j < 2; ++j) {
        a[i + 2 * j] = _mm_unpacklo_epi32(b[i + j], b[i + j + 2]);
        a[i + 2 * j + 1] = _mm_unpackhi_epi32(b[i + j], b[i + j + 2]);
      }
    for (int i = 0; i < 4; ++i) {
      auto put = [&](int line, __m128i v) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out + line * out_line), v);
      };
      put(2 * i, _mm_unpacklo_epi64(a[i], a[i + 4]));
      put(2 * i + 1, _mm_unpackhi_epi64(a[i], a[i + 4]));
    }
  }
};

// Each round interleaves the upper half of the lines with the lower one, which turns the bits of an element's
// place by one; after four of the eight, line and column have changed places.
struct Square1 {
  static constexpr int64_t kSide = 16, kItem = 1;
  using Element = uint8_t;
  static void interleave(const __m128i* from, __m128i* to) {
    for (int i = 0; i < 8; ++i) {
      to[2 * i] = _mm_unpacklo_epi8(from[i], from[i + 8]);
      to[2 * i + 1] = _mm_unpackhi_epi8(from[i], from[i + 8]);
    }
  }
  static void run(char* out, int64_t out_line, const char* in, int64_t in_line) {
    __m128i a[16], b[16];
    for (int i = 0; i < 16; ++i) a[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i * in_line));
    interleave(a, b), interleave(b, a), interleave(a, b), interleave(b, a);
    for (int i = 0; i < 16; ++i) _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i * out_line), a[i]);
  }
};

template <class Square>
void by_squares(char* out, int64_t out_line, const char* in, int64_t in_line, int64_t rows, int64_t columns) {
  constexpr int64_t kSide = Square::kSide, kItem = Square::kItem;
  const int64_t whole_rows = rows & -kSide, whole_columns = columns & -kSide;
  for (int64_t i = 0; i < whole_rows; i += kSide)
    for (int64_t j = 0; j < whole_columns; j += kSide)
      Square::run(out + i * out_line + j * kItem, out_line, in + j * in_line + i * kItem, in_line);
  using T = typename Square::Element;
  rectangle<T>(out + whole_columns * kItem, out_line, in + whole_columns * in_line, in_line, whole_rows,
               columns - whole_columns);
  rectangle<T>(out + whole_rows * out_line, out_line, in + whole_rows * kItem, in_line, rows - whole_rows,
               columns);
}
#endif

// kCount narrow elements become one wide one, in the order in which memory holds them.
template <class Word, class Pack, size_t kCount>
void weave(const char* const* sources, int64_t begin, int64_t end, char* to) {
  const Word* from[kCount];
  for (size_t k = 0; k < kCount; ++k) from[k] = reinterpret_cast<const Word*>(sources[k]);
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    Pack all = 0;
    for (size_t k = 0; k < kCount; ++k)
      all = static_cast<Pack>(all | static_cast<Pack>(from[k][i]) << (8 * sizeof(Word) * k));
    __builtin_memcpy(to + i * static_cast<int64_t>(sizeof(Pack)), &all, sizeof(Pack));
  }
}

}  // namespace

Weave weave_variant(size_t itemsize, size_t count) {
  if (std::endian::native != std::endian::little) return nullptr;
  if (itemsize == 1 && count == 2) return weave<uint8_t, uint16_t, 2>;
  if (itemsize == 1 && count == 4) return weave<uint8_t, uint32_t, 4>;
  if (itemsize == 2 && count == 2) return weave<uint16_t, uint32_t, 2>;
  if (itemsize == 2 && count == 4) return weave<uint16_t, uint64_t, 4>;
  return nullptr;
}

TransposeTile transpose_tile_variant(size_t itemsize) {
  switch (itemsize) {
#ifdef __AVX2__
    case 1:
      return by_squares<Square1>;
    case 2:
      return by_squares<Square2>;
    case 4:
      return by_squares<Square4>;
    case 8:
      return by_squares<Square8>;
#else
    case 1:
      return rectangle<uint8_t>;
    case 2:
      return rectangle<uint16_t>;
    case 4:
      return rectangle<uint32_t>;
    case 8:
      return rectangle<uint64_t>;
#endif
    default:
      return rectangle<Wide>;
  }
}

}  // namespace rushlight::cpu::RL_ISA
