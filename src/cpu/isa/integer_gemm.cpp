#include "cpu/integer_gemm.h"

#include "cpu/isa/register_inl.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// Two registers of columns for each row: sums stay in registers, and each number of b serves kRows products.
template <class U>
constexpr int64_t kColumns = 2 * kRegisterBytes / static_cast<int64_t>(sizeof(U));

template <class U>
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
      const U factor = a[r * k + p];
      first[r] += left * factor;
      second[r] += right * factor;
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

}  // namespace

IntegerTile integer_tile_variant(size_t word) {
  switch (word) {
    case 2:
      return {kColumns<uint16_t>, &tile<uint16_t>};
    case 4:
      return {kColumns<uint32_t>, &tile<uint32_t>};
    default:
      return {kColumns<uint64_t>, &tile<uint64_t>};
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
