// Products of a matrix and a vector, for each instruction set.
#include "cpu/matrix_vector.h"

#include <utility>

#include "cpu/isa/tile_inl.h"

namespace rushlight::cpu::RL_ISA {
namespace {

template <class C, class T>
[[gnu::always_inline]] inline typename Lanes<C>::type wide(const T* from) {
  typename Lanes<C>::type found;
  if constexpr (std::is_same_v<T, C>) {
    load(found, from);
  } else {
    C values[Lanes<C>::count];
    read_lanes(from, Lanes<C>::count, values);
    load(found, values);
  }
  return found;
}

template <class C, size_t... I>
[[gnu::always_inline]] inline typename Lanes<C>::type add_neighbours(typename Lanes<C>::type a,
                                                                     typename Lanes<C>::type b,
                                                                     std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, static_cast<int>(2 * I)...) +
         __builtin_shufflevector(a, b, static_cast<int>(2 * I + 1)...);
}

// The sums of four vectors' lanes, which share the steps that bring lanes together.
template <class C>
[[gnu::always_inline]] inline void sum_lanes(const typename Lanes<C>::type (&v)[4], C* sums) {
  constexpr int kLanes = Lanes<C>::count;
  constexpr std::make_index_sequence<kLanes> lanes;
  auto first = add_neighbours<C>(v[0], v[1], lanes);
  const auto second = add_neighbours<C>(v[2], v[3], lanes);
  if constexpr (kLanes == 2) {
    sums[0] = first[0], sums[1] = first[1], sums[2] = second[0], sums[3] = second[1];
  } else {
    first = add_neighbours<C>(first, second, lanes);
#pragma GCC unroll 4
    for (int left = kLanes / 4; left > 1; left /= 2) first = add_neighbours<C>(first, first, lanes);
    __builtin_memcpy(sums, &first, 4 * sizeof(C));
  }
}

// The end of x, too short for a vector, and which lanes it fills: what lies behind the end of a row may be
// NaN.
template <class C>
struct Tail {
  using V = typename Lanes<C>::type;
  V x{};
  decltype(x < x) filled{};

  Tail(const C* from, int64_t n) {
    C values[Lanes<C>::count] = {}, marks[Lanes<C>::count] = {};
    std::copy_n(from, n, values);
    std::fill_n(marks, n, C(1));
    load(x, values);
    V ones;
    load(ones, marks);
    filled = ones > V{};
  }
  [[gnu::always_inline]] V product(V row) const { return (filled ? row : V{}) * x; }
};

// R rows share what they read of x; each has S sums, none of which waits for another. `over`: memory behind
// the rows' ends may be read. `Ask`: for the rows behind, as far as these are read.
template <int R, int S, bool Ask = false, class T, class C>
void dots(const T* rows, int64_t step, int64_t inner, bool over, const Tail<C>& tail, const C* x, C* y) {
  constexpr int64_t kLanes = Lanes<C>::count;
  typename Lanes<C>::type sums[R][S] = {}, factor;
  int64_t i = 0;
  for (; i + S * kLanes <= inner; i += S * kLanes) {
    if constexpr (Ask)
      for (int r = 0; r < R; ++r)
        for (int64_t at = 0; at < S * kLanes; at += 64 / static_cast<int64_t>(sizeof(T)))
          __builtin_prefetch(rows + (R + r) * step + i + at, 0, 2);
#pragma GCC unroll 8
    for (int s = 0; s < S; ++s) {
      load(factor, x + i + s * kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) sums[r][s] += wide<C>(rows + r * step + i + s * kLanes) * factor;
    }
  }
  for (; i + kLanes <= inner; i += kLanes) {
    load(factor, x + i);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sums[r][0] += wide<C>(rows + r * step + i) * factor;
  }
  if (over && i < inner) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sums[r][0] += tail.product(wide<C>(rows + r * step + i));
    i = inner;
  }
  typename Lanes<C>::type totals[4] = {};
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int s = 0; s < S; ++s) totals[R == 1 ? s % 4 : r] += sums[r][s];
  C found[4];
  sum_lanes<C>(totals, found);
  if constexpr (R == 1) found[0] = (found[0] + found[1]) + (found[2] + found[3]);
  for (int r = 0; r < R; ++r) {
    y[r] = found[r];
    for (int64_t j = i; j < inner; ++j) y[r] += static_cast<C>(rows[r * step + j]) * x[j];
  }
}

template <class T, class C>
void dots(const T* rows, int64_t step, int64_t count, int64_t inner, const C* x, C* y) {
  constexpr int64_t kLanes = Lanes<C>::count;
  const int64_t rest = inner % kLanes;
  const Tail<C> tail(x + inner - rest, rest);
  // Of how many rows a vector that begins in the row's end lies within these rows.
  const int64_t over = step > 0 ? count - (kLanes - rest + step - 1) / step : 0;
  int64_t i = 0;
  // Processors foresee how a row goes on, not that others follow: of short rows far away each would be waited
  // for.
  constexpr int64_t kShortRow = 4096, kFarMatrix = 4 << 20, kItem = sizeof(T);
  if (inner * kItem <= kShortRow && count * step * kItem >= kFarMatrix)
    for (; i + 8 <= count; i += 4)
      dots<4, 2, true>(rows + i * step, step, inner, i + 4 <= over, tail, x, y + i);
  for (; i + 4 <= count; i += 4) dots<4, 2>(rows + i * step, step, inner, i + 4 <= over, tail, x, y + i);
  for (; i < count; ++i) dots<1, 8>(rows + i * step, step, inner, i < over, tail, x, y + i);
}

// y += R rows by a factor each: its lines stay in the cache, the rows pass by side by side.
template <int R, class T, class C>
void add_rows(const T* rows, int64_t step, int64_t vectors, const C* x, C* y) {
  constexpr int64_t kLanes = Lanes<C>::count;
  for (int64_t j = 0; j < vectors * kLanes; j += kLanes) {
    typename Lanes<C>::type sum;
    load(sum, y + j);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sum += wide<C>(rows + r * step + j) * x[r];
    __builtin_memcpy(y + j, &sum, sizeof(sum));
  }
}

// y += the rows by their factors, in columns too few for a vector; of the first `over` rows more may be read.
template <class T, class C>
void add_narrow_rows(const T* rows, int64_t step, int64_t count, int64_t length, int64_t over, const C* x,
                     C* y) {
  constexpr int64_t kSums = 4;
  typename Lanes<C>::type sums[kSums] = {};
  int64_t p = 0;
  for (; p + kSums <= over; p += kSums)
#pragma GCC unroll 4
    for (int64_t s = 0; s < kSums; ++s) sums[s] += wide<C>(rows + (p + s) * step) * x[p + s];
  const auto sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  for (int64_t j = 0; j < count; ++j) y[j] += sum[j];
  for (; p < length; ++p)
    for (int64_t j = 0; j < count; ++j) y[j] += static_cast<C>(rows[p * step + j]) * x[p];
}

template <class T, class C>
void sums(const T* rows, int64_t step, int64_t count, int64_t inner, const C* x, C* y) {
  constexpr int64_t kLanes = Lanes<C>::count, kRows = 64;  // that stay in the cache for the last columns
  const int64_t vectors = count / kLanes, wide_columns = vectors * kLanes;
  std::fill(y, y + count, C(0));
  for (int64_t begin = 0; begin < inner; begin += kRows) {
    const int64_t end = std::min(inner, begin + kRows);
    int64_t p = begin;
    for (; p + 8 <= end; p += 8) add_rows<8>(rows + p * step, step, vectors, x + p, y);
    for (; p < end; ++p) add_rows<1>(rows + p * step, step, vectors, x + p, y);
    if (wide_columns == count) continue;
    const int64_t missing = kLanes - (count - wide_columns),
                  behind = step > 0 ? (missing + step - 1) / step : inner;
    add_narrow_rows(rows + begin * step + wide_columns, step, count - wide_columns, end - begin,
                    std::min(end, inner - behind) - begin, x + begin, y + wide_columns);
  }
}

// f(T{}, C{}) for the type of the elements and that of the sums.
template <class F>
void with_types(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Float32:
      return f(float{}, float{});
    case DType::Float64:
      return f(double{}, double{});
    case DType::BFloat16:
      return f(BFloat16{}, float{});
    default:
      return f(Half{}, float{});
  }
}

// Sums of the products of the parts of pairs (a, b) and (c, d): ac, bd, ad, bc.
template <class C, size_t... I>
void pair_products(const C* x, const C* y, int64_t n, double* sums, std::index_sequence<I...>) {
  constexpr int64_t kLanes = Lanes<C>::count, kSums = 2;
  using V = typename Lanes<C>::type;
  V straight[kSums] = {}, crossed[kSums] = {};
  int64_t i = 0;
  for (; i + kSums * kLanes <= 2 * n; i += kSums * kLanes)
#pragma GCC unroll 2
    for (int64_t s = 0; s < kSums; ++s) {
      V a, b;
      load(a, x + i + s * kLanes);
      load(b, y + i + s * kLanes);
      straight[s] += a * b;
      crossed[s] += a * __builtin_shufflevector(b, b, static_cast<int>(I ^ 1)...);
    }
  const V same = straight[0] + straight[1], other = crossed[0] + crossed[1];
  for (int64_t l = 0; l < kLanes; ++l) {
    sums[l % 2] += same[l];
    sums[2 + l % 2] += other[l];
  }
  for (; i < 2 * n; i += 2) {
    const double a = x[i], b = x[i + 1], c = y[i], d = y[i + 1];
    sums[0] += a * c, sums[1] += b * d, sums[2] += a * d, sums[3] += b * c;
  }
}

}  // namespace

void complex_products(DType dtype, int64_t n, const void* x, const void* y, double* sums) {
  if (dtype == DType::Complex64)
    pair_products(static_cast<const float*>(x), static_cast<const float*>(y), n, sums,
                  std::make_index_sequence<Lanes<float>::count>());
  else
    pair_products(static_cast<const double*>(x), static_cast<const double*>(y), n, sums,
                  std::make_index_sequence<Lanes<double>::count>());
}

void row_dots(DType dtype, const void* rows, int64_t step, int64_t count, int64_t inner, const void* x,
              void* y) {
  with_types(dtype, [&]<class T, class C>(T, C) {
    dots(static_cast<const T*>(rows), step, count, inner, static_cast<const C*>(x), static_cast<C*>(y));
  });
}
void column_sums(DType dtype, const void* columns, int64_t step, int64_t count, int64_t inner, const void* x,
                 void* y) {
  with_types(dtype, [&]<class T, class C>(T, C) {
    sums(static_cast<const T*>(columns), step, count, inner, static_cast<const C*>(x), static_cast<C*>(y));
  });
}

}  // namespace rushlight::cpu::RL_ISA
