#include "cpu/integer_gemm.h"

#include <algorithm>
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
using RowSum = std::conditional_t<sizeof(U) == 1, uint16_t, U>;

// The next kTerms terms of each sum, which may be the first.
template <int kTerms, bool is_first, class U>
[[gnu::always_inline]] inline void add_terms(const U* a, const U* b, int64_t row, int64_t n,
                                             RowSum<U>* __restrict sums) {
  using Sum = RowSum<U>;
  using Wide = std::conditional_t<sizeof(U) == 8, uint64_t, uint32_t>;
  Wide factors[kTerms];
  for (int t = 0; t < kTerms; ++t) factors[t] = a[t];
  for (int64_t j = 0; j < n; ++j) {
    Sum sum = is_first ? Sum(0) : sums[j];
    for (int t = 0; t < kTerms; ++t)
      sum = static_cast<Sum>(sum + static_cast<Sum>(factors[t] * b[t * row + j]));
    sums[j] = sum;
  }
}
template <bool is_first, class U>
void add_few(const U* a, const U* b, int64_t row, int64_t terms, int64_t n, RowSum<U>* sums) {
  if (terms == 4) return add_terms<4, is_first>(a, b, row, n, sums);
  if (terms == 3) return add_terms<3, is_first>(a, b, row, n, sums);
  if (terms == 2) return add_terms<2, is_first>(a, b, row, n, sums);
  add_terms<1, is_first>(a, b, row, n, sums);
}

template <class U>
void row(const void* a_data, const void* b_data, int64_t row, int64_t k, int64_t n, void* out) {
  constexpr int64_t kTerms = 4;
  const auto *a = static_cast<const U*>(a_data), *b = static_cast<const U*>(b_data);
  RowSum<U> own[IntegerRow::kColumns], *sums = own;
  if constexpr (sizeof(U) > 1) sums = static_cast<U*>(out);
  if (k == 0) std::fill_n(sums, n, RowSum<U>(0));
  for (int64_t p = 0; p < k; p += kTerms) {
    const int64_t terms = k - p < kTerms ? k - p : kTerms;
    if (p == 0)
      add_few<true>(a, b, row, terms, n, sums);
    else
      add_few<false>(a + p, b + p * row, row, terms, n, sums);
  }
  if constexpr (sizeof(U) == 1)
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
