// The first extreme of a line, in registers; of each of many adjacent lines, row by row.
#include "cpu/arg_extreme.h"

#include <type_traits>

#include "core/dtype.h"
#include "cpu/isa/register_inl.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// What is compared: halves as whole numbers in their order, where zeros are equal and NaN beats all, so that
// the greatest is the extreme. Converting them would take longer.
template <class T>
using Ranked = std::conditional_t<std::is_same_v<T, Half>, int32_t, compute_type<T>>;
template <class T, bool kLargest>
Ranked<T> ranked(T x) {
  if constexpr (std::is_same_v<T, Half>) {
    const int32_t size = x.bits & 0x7fff, number = (x.bits >> 15) != !kLargest ? -size : size;
    return size > 0x7c00 ? 0x7fff : number;
  } else {
    return static_cast<compute_type<T>>(x);
  }
}
template <class T, bool kLargest>
bool beats(Ranked<T> a, Ranked<T> b) {
  if constexpr (std::is_same_v<T, Half>) return a > b;
  return (b == b) & ((kLargest ? a > b : a < b) | (a != a));  // the first NaN wins
}

constexpr int64_t kBlock = 128;

// At most kBlock lines: what is best in each, and its row.
template <class T, bool kLargest>
void best_of_columns(const T* in, int64_t n, int64_t row, int64_t count, Ranked<T>* best, int32_t* at) {
  for (int64_t j = 0; j < count; ++j) best[j] = ranked<T, kLargest>(in[j]), at[j] = 0;
  for (int64_t i = 1; i < n; ++i) {
    const T* x = in + i * row;
    for (int64_t j = 0; j < count; ++j) {
      const Ranked<T> a = ranked<T, kLargest>(x[j]), b = best[j];
      const bool better = beats<T, kLargest>(a, b);
      best[j] = better ? a : b;
      at[j] = better ? static_cast<int32_t>(i) : at[j];
    }
  }
}

// Lines that are few fill no registers: several rows are taken as one, and the extremes of those that a line
// has compared at the end.
template <class T, bool kLargest>
void best_of_few(const T* in, int64_t n, int64_t width, Ranked<T>* best, int32_t* at) {
  const int64_t together = kBlock / width, rows = n / together;
  best_of_columns<T, kLargest>(in, rows, together * width, together * width, best, at);
  for (int64_t j = 0; j < together * width; ++j) at[j] = at[j] * static_cast<int32_t>(together);
  const auto meet = [&](int64_t j, Ranked<T> a, int32_t row) {
    const bool first = (a == best[j] || (a != a && best[j] != best[j])) && row < at[j];
    if (beats<T, kLargest>(a, best[j]) || first) best[j] = a, at[j] = row;
  };
  for (int64_t k = 1; k < together; ++k)
    for (int64_t j = 0; j < width; ++j)
      meet(j, best[k * width + j], at[k * width + j] + static_cast<int32_t>(k));
  for (int64_t i = rows * together; i < n; ++i)
    for (int64_t j = 0; j < width; ++j)
      meet(j, ranked<T, kLargest>(in[i * width + j]), static_cast<int32_t>(i));
}

template <class T, bool kLargest>
void columns(const void* in_data, int64_t n, int64_t row, int64_t width, void* values_data,
             int64_t* indices) {
  const T* in = static_cast<const T*>(in_data);
  T* values = static_cast<T*>(values_data);
  Ranked<T> best[kBlock];
  int32_t at[kBlock];
  for (int64_t first = 0; first < width; first += kBlock) {
    const int64_t count = width - first < kBlock ? width - first : kBlock;
    if (row == width && 2 * width <= kBlock && n * width >= 4 * kBlock)
      best_of_few<T, kLargest>(in, n, width, best, at);
    else
      best_of_columns<T, kLargest>(in + first, n, row, count, best, at);
    for (int64_t j = 0; j < count; ++j) {
      values[first + j] = in[at[j] * row + first + j];
      indices[first + j] = at[j];
    }
  }
}

// As wide as an element: what a comparison of registers gives.
template <class T>
using lane_of = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

// Each lane of kRows registers keeps the first extreme of the elements that it met, and where its register
// began. NaN is never better; whether there was one is looked up afterwards.
template <class T, bool kLargest, int kRows>
int64_t lanes(const T* x, int64_t n) {
  constexpr int kLanes = kRegisterBytes / sizeof(T), kStep = kRows * kLanes;
  typedef T V __attribute__((vector_size(kRegisterBytes)));
  using Places = decltype(V{} < V{});
  V best[kRows];
  Places at[kRows], unordered = {}, now = {};
  const auto meet = [&](int r, int64_t i, const Places& place) __attribute__((always_inline)) {
    V a;
    __builtin_memcpy(&a, x + i, sizeof(V));
    const Places better = kLargest ? a > best[r] : a < best[r];
    best[r] = better ? a : best[r];
    at[r] = better ? place : at[r];
    if constexpr (is_floating_v<T>) unordered |= a != a;
  };
  __builtin_memcpy(&best[0], x, sizeof(V));
  for (int r = 0; r < kRows; ++r) best[r] = best[0], at[r] = now;
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) meet(r, i + r * kLanes, now + r * kLanes);
    now += kStep;
  }
  for (; i + kLanes <= n; i += kLanes, now += kLanes) meet(0, i, now);
  meet(0, n - kLanes, Places{} + static_cast<lane_of<T>>(n - kLanes));
  if constexpr (is_floating_v<T>) {
    int64_t any = 0;
    for (int l = 0; l < kLanes; ++l) any |= unordered[l];
    if (any)
      for (i = 0; x[i] == x[i]; ++i) {
      }
    if (any) return i;
  }
  for (int r = 1; r < kRows; ++r) {
    const Places better =
        (kLargest ? best[r] > best[0] : best[r] < best[0]) | ((best[r] == best[0]) & (at[r] < at[0]));
    best[0] = better ? best[r] : best[0];
    at[0] = better ? at[r] : at[0];
  }
  T extreme = best[0][0];
  int64_t place = at[0][0];
  for (int l = 1; l < kLanes; ++l) {
    const T value = best[0][l];
    const int64_t where = at[0][l] + l;
    const bool better = (kLargest ? value > extreme : value < extreme) || (value == extreme && where < place);
    extreme = better ? value : extreme, place = better ? where : place;
  }
  return place;
}

template <class T, bool kLargest>
int64_t line(const void* in, int64_t n) {
  constexpr int64_t kLanes = kRegisterBytes / sizeof(T);
  const T* x = static_cast<const T*>(in);
  if (n >= 16 * kLanes) return lanes<T, kLargest, 4>(x, n);
  if (n >= kLanes) return lanes<T, kLargest, 1>(x, n);
  int64_t at = 0;
  for (int64_t i = 1; i < n && x[at] == x[at]; ++i)
    if (x[i] != x[i] || (kLargest ? x[i] > x[at] : x[i] < x[at])) at = i;
  return at;
}

template <class... T>
ArgExtremeColumns pick(TypeList<T...>, DType dtype, bool largest) {
  ArgExtremeColumns found = nullptr;
  (void)((dtype == dtype_of<T> && (found = largest ? &columns<T, true> : &columns<T, false>, true)) || ...);
  return found;
}
template <class... T>
ArgExtremeLine pick_line(TypeList<T...>, DType dtype, bool largest) {
  ArgExtremeLine found = nullptr;
  (void)((dtype == dtype_of<T> && (found = largest ? &line<T, true> : &line<T, false>, true)) || ...);
  return found;
}

}  // namespace

ArgExtremeColumns arg_extreme_columns_variant(DType dtype, bool largest) {
  return pick(Concat<FloatTypes, TypeList<uint8_t, int32_t, int64_t>>{}, dtype, largest);
}

ArgExtremeLine arg_extreme_line_variant(DType dtype, bool largest) {
  return pick_line(TypeList<float, double, int32_t, int64_t>{}, dtype, largest);
}

}  // namespace rushlight::cpu::RL_ISA
