// The first extreme of each of many adjacent lines, found row by row.
#include "cpu/arg_extreme.h"

#include "core/dtype.h"

namespace rushlight::cpu::RL_ISA {
namespace {

template <class T, bool kLargest>
void columns(const void* in_data, int64_t n, int64_t row, int64_t width, void* values_data,
             int64_t* indices) {
  using C = compute_type<T>;
  constexpr int64_t kBlock = 128;
  const T* in = static_cast<const T*>(in_data);
  T* values = static_cast<T*>(values_data);
  for (int64_t first = 0; first < width; first += kBlock) {
    const int64_t count = width - first < kBlock ? width - first : kBlock;
    C best[kBlock];
    int32_t at[kBlock] = {};
    for (int64_t j = 0; j < count; ++j) best[j] = static_cast<C>(in[first + j]);
    for (int64_t i = 1; i < n; ++i) {
      const T* x = in + i * row + first;
      for (int64_t j = 0; j < count; ++j) {
        const C a = static_cast<C>(x[j]), b = best[j];
        const bool better = (b == b) & ((kLargest ? a > b : a < b) | (a != a));  // the first NaN wins
        best[j] = better ? a : b;
        at[j] = better ? static_cast<int32_t>(i) : at[j];
      }
    }
    for (int64_t j = 0; j < count; ++j) {
      values[first + j] = in[at[j] * row + first + j];
      indices[first + j] = at[j];
    }
  }
}

template <class... T>
ArgExtremeColumns pick(TypeList<T...>, DType dtype, bool largest) {
  ArgExtremeColumns found = nullptr;
  ((dtype == dtype_of<T> && (found = largest ? &columns<T, true> : &columns<T, false>, true)) || ...);
  return found;
}

}  // namespace

ArgExtremeColumns arg_extreme_columns_variant(DType dtype, bool largest) {
  return pick(Concat<FloatTypes, TypeList<uint8_t, int32_t, int64_t>>{}, dtype, largest);
}

}  // namespace rushlight::cpu::RL_ISA
