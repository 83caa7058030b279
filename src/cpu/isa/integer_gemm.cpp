#include "cpu/integer_gemm.h"

#include <type_traits>

#include "cpu/isa/register_inl.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace rushlight::cpu::RL_ISA {
namespace {

// Two registers of columns for each row: sums stay in registers, and each number of b serves kRows products.
template <class U>
constexpr int64_t kColumns = 2 * kRegisterBytes / static_cast<int64_t>(sizeof(U));

// The product of 32 bits each, where `halves` says that no more are used: one instruction, where that of 64
// bits takes three or, without AVX-512, eight.
template <bool halves, class Vector>
[[gnu::always_inline]] inline Vector product(Vector x, Vector y) {
#if defined(__AVX512F__)
  if constexpr (halves) return Vector(_mm512_maskz_mul_epi32(0xff, __m512i(x), __m512i(y)));
#elif defined(__AVX2__)
  if constexpr (halves) return Vector(_mm256_mul_epi32(__m256i(x), __m256i(y)));
#endif
  return x * y;
}

template <class U, bool halves = false>
void tile(const void* a_data, const void* b_data, int64_t k, void* c_data) {
  typedef U Vector __attribute__((vector_size(kRegisterBytes)));
  constexpr int64_t kRows = IntegerTile::kRows;
  const auto *a = static_cast<const U*>(a_data), *b = static_cast<const U*>(b_data);
  Vector first[kRows] = {}, second[kRows] = {};  // never addressed as a whole, so that they are registers
  for (int64_t p = 0; p < k; ++p) {
    Vector left, right;
    __builtin_memcpy(&left, b + p * kColumns<U>, kRegisterBytes);
    __builtin_memcpy(&right, b + p * kColumns<U> + kColumns<U> / 2, kRegisterBytes);
#pragma GCC unroll 6
    for (int64_t r = 0; r < kRows; ++r) {
      const Vector factor = Vector{} + a[r * k + p];
      first[r] += product<halves>(left, factor);
      second[r] += product<halves>(right, factor);
    }
  }
  auto* c = static_cast<char*>(c_data);
#pragma GCC unroll 6
  for (int64_t r = 0; r < kRows; ++r) {
    const Vector left = first[r], right = second[r];
    __builtin_memcpy(c + 2 * r * kRegisterBytes, &left, kRegisterBytes);
    __builtin_memcpy(c + (2 * r + 1) * kRegisterBytes, &right, kRegisterBytes);
  }
}

template <class U>
uint64_t dot(const void* a_data, const void* b_data, int64_t n) {
  const auto *a = static_cast<const U*>(a_data), *b = static_cast<const U*>(b_data);
  using Product = std::conditional_t<sizeof(U) < 4, uint32_t, U>;
  Product sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<Product>(a[i]) * b[i];
  return sum;
}

// The lowest bits of a sum are those of its terms: sums are no wider than the elements, but for bytes, of
// which no processor multiplies vectors.
template <class U>
void row(const void* a_data, const void* b_data, int64_t row, int64_t k, int64_t n, void* out) {
  using Sum = std::conditional_t<sizeof(U) == 1, uint16_t, U>;
  using Wide = std::conditional_t<sizeof(U) == 8, uint64_t, uint32_t>;
  const auto *a = static_cast<const U*>(a_data), *b = static_cast<const U*>(b_data);
  Sum sums[IntegerRow::kColumns];
  for (int64_t j = 0; j < n; ++j) sums[j] = 0;
  int64_t p = 0;
  for (; p + 4 <= k; p += 4) {
    const U *first = b + p * row, *second = first + row, *third = second + row, *fourth = third + row;
    const Wide x = a[p], y = a[p + 1], z = a[p + 2], w = a[p + 3];
    for (int64_t j = 0; j < n; ++j)
      sums[j] = static_cast<Sum>(sums[j] + static_cast<Sum>(x * first[j]) + static_cast<Sum>(y * second[j]) +
                                 static_cast<Sum>(z * third[j]) + static_cast<Sum>(w * fourth[j]));
  }
  for (; p < k; ++p)
    for (int64_t j = 0; j < n; ++j)
      sums[j] = static_cast<Sum>(sums[j] + static_cast<Sum>(Wide{a[p]} * b[p * row + j]));
  for (int64_t j = 0; j < n; ++j) static_cast<U*>(out)[j] = static_cast<U>(sums[j]);
}

}  // namespace

IntegerRow integer_row_variant(size_t size) {
  switch (size) {
    case 1:
      return {&row<uint8_t>};
    case 2:
      return {&row<uint16_t>};
    case 4:
      return {&row<uint32_t>};
    default:
      return {&row<uint64_t>};
  }
}

IntegerTile integer_tile_variant(size_t word, bool halves) {
  switch (word) {
    case 2:
      return {kColumns<uint16_t>, &tile<uint16_t>};
    case 4:
      return {kColumns<uint32_t>, &tile<uint32_t>};
    default:
      return {kColumns<uint64_t>, halves ? &tile<uint64_t, true> : &tile<uint64_t>};
  }
}

IntegerDot integer_dot_variant(size_t size) {
  switch (size) {
    case 1:
      return &dot<uint8_t>;
    case 2:
      return &dot<uint16_t>;
    case 4:
      return &dot<uint32_t>;
    default:
      return &dot<uint64_t>;
  }
}

}  // namespace rushlight::cpu::RL_ISA
