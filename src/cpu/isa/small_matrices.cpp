#include "cpu/small_matrices.h"

#include <algorithm>
#include <cmath>

namespace rushlight::cpu::RL_ISA {
namespace {

constexpr int64_t kMost = SmallMatrices::kMost;
template <class T>
constexpr int64_t kLanes = 64 / static_cast<int64_t>(sizeof(T));

// f(lane) for all lanes, as one vector.
template <class T, class F>
[[gnu::always_inline]] inline void each_lane(F&& f) {
#pragma GCC ivdep
  for (int64_t l = 0; l < kLanes<T>; ++l) f(l);
}

// Columns of as many matrices as there are lanes. Lanes without a matrix repeat the last one.
template <class T>
struct Columns {
  alignas(64) T at[kMost][kMost][kLanes<T>];  // column, row, lane

  Columns() { at[0][0][0] = 0; }  // so that something is written where matrices have no rows

  void load(int64_t rows, int64_t columns, const T* matrices, int64_t count) {
    for (int64_t l = 0; l < kLanes<T>; ++l) {
      const T* from = matrices + std::min(l, count - 1) * rows * columns;
      for (int64_t j = 0; j < columns; ++j)
        for (int64_t i = 0; i < rows; ++i) at[j][i][l] = from[j * rows + i];
    }
  }
  void store(int64_t rows, int64_t columns, T* matrices, int64_t lane) const {
    T* to = matrices + lane * rows * columns;
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = 0; i < rows; ++i) to[j * rows + i] = at[j][i][lane];
  }
};

template <class T>
void swap_where(const int32_t* chosen, int64_t value, T* x, T* y) {
  each_lane<T>([&](int64_t l) {
    const bool swapped = chosen[l] == value;
    const T a = x[l], b = y[l];
    x[l] = swapped ? b : a;
    y[l] = swapped ? a : b;
  });
}

// The row of column k, from k on, with the largest element of each lane.
template <class T>
void find_pivots(const Columns<T>& a, int64_t n, int64_t k, int32_t* best) {
  T size[kLanes<T>];
  each_lane<T>([&](int64_t l) { size[l] = std::fabs(a.at[k][k][l]), best[l] = static_cast<int32_t>(k); });
  for (int64_t i = k + 1; i < n; ++i)
    each_lane<T>([&](int64_t l) {
      const T next = std::fabs(a.at[k][i][l]);
      best[l] = next > size[l] ? static_cast<int32_t>(i) : best[l];
      size[l] = next > size[l] ? next : size[l];
    });
}

template <class T>
void factor(int64_t n, void* data, int32_t* pivots, int32_t* info, int64_t count) {
  Columns<T> a;
  a.load(n, n, static_cast<T*>(data), count);
  int32_t best[kLanes<T>], status[kLanes<T>] = {};
  for (int64_t k = 0; k < n; ++k) {
    find_pivots(a, n, k, best);
    for (int64_t l = 0; l < count; ++l) pivots[l * n + k] = best[l] + 1;
    for (int64_t i = k + 1; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) swap_where(best, i, a.at[j][k], a.at[j][i]);
    T divisor[kLanes<T>];  // a column of zeros stays one
    each_lane<T>([&](int64_t l) {
      const bool zero = a.at[k][k][l] == 0;
      status[l] = zero & (status[l] == 0) ? static_cast<int32_t>(k) + 1 : status[l];
      divisor[l] = zero ? T(1) : a.at[k][k][l];
    });
    for (int64_t i = k + 1; i < n; ++i) each_lane<T>([&](int64_t l) { a.at[k][i][l] /= divisor[l]; });
    for (int64_t j = k + 1; j < n; ++j)
      for (int64_t i = k + 1; i < n; ++i)
        each_lane<T>([&](int64_t l) { a.at[j][i][l] -= a.at[j][k][l] * a.at[k][i][l]; });
  }
  for (int64_t l = 0; l < count; ++l) a.store(n, n, static_cast<T*>(data), l), info[l] = status[l];
}

// x = (P L U)^-1 x for the first `columns` columns.
template <class T>
void substitute(const Columns<T>& lu, int64_t n, int64_t columns, const int32_t* pivots, int64_t count,
                Columns<T>& x) {
  for (int64_t k = 0; k < n; ++k) {
    int32_t chosen[kLanes<T>];
    for (int64_t l = 0; l < kLanes<T>; ++l) chosen[l] = pivots[std::min(l, count - 1) * n + k] - 1;
    for (int64_t i = k + 1; i < n; ++i)
      for (int64_t j = 0; j < columns; ++j) swap_where(chosen, i, x.at[j][k], x.at[j][i]);
  }
  for (int64_t j = 0; j < columns; ++j) {
    auto& y = x.at[j];
    for (int64_t k = 0; k < n; ++k)
      for (int64_t i = k + 1; i < n; ++i)
        each_lane<T>([&](int64_t l) { y[i][l] -= lu.at[k][i][l] * y[k][l]; });
    for (int64_t k = n - 1; k >= 0; --k) {
      each_lane<T>([&](int64_t l) { y[k][l] /= lu.at[k][k][l]; });
      for (int64_t i = 0; i < k; ++i) each_lane<T>([&](int64_t l) { y[i][l] -= lu.at[k][i][l] * y[k][l]; });
    }
  }
}

template <class T>
void solve(int64_t n, int64_t columns, const void* lu, const int32_t* pivots, void* b, int64_t count) {
  Columns<T> factors, x;
  factors.load(n, n, static_cast<const T*>(lu), count);
  x.load(n, columns, static_cast<const T*>(b), count);
  substitute(factors, n, columns, pivots, count, x);
  for (int64_t l = 0; l < count; ++l) x.store(n, columns, static_cast<T*>(b), l);
}

template <class T>
void invert(int64_t n, void* lu, const int32_t* pivots, const int32_t* info, int64_t count) {
  Columns<T> factors, x;
  factors.load(n, n, static_cast<T*>(lu), count);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < n; ++i) each_lane<T>([&](int64_t l) { x.at[j][i][l] = T(i == j); });
  substitute(factors, n, n, pivots, count, x);
  for (int64_t l = 0; l < count; ++l)
    if (info[l] == 0) x.store(n, n, static_cast<T*>(lu), l);
}

// Column by column. An upper factor is a lower one of which rows and columns change places.
template <class T>
void cholesky(int64_t n, bool upper, void* data, int32_t* info, int64_t count) {
  Columns<T> a;
  auto* matrices = static_cast<T*>(data);
  for (int64_t l = 0; l < kLanes<T>; ++l) {
    const T* from = matrices + std::min(l, count - 1) * n * n;
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = j; i < n; ++i) a.at[j][i][l] = upper ? from[i * n + j] : from[j * n + i];
  }
  int32_t status[kLanes<T>] = {};
  for (int64_t k = 0; k < n; ++k) {
    auto& column = a.at[k];
    each_lane<T>([&](int64_t l) {
      const bool positive = column[k][l] > 0;
      status[l] = !positive & (status[l] == 0) ? static_cast<int32_t>(k) + 1 : status[l];
      column[k][l] = std::sqrt(positive ? column[k][l] : T(1));
    });
    for (int64_t i = k + 1; i < n; ++i) each_lane<T>([&](int64_t l) { column[i][l] /= column[k][l]; });
    for (int64_t j = k + 1; j < n; ++j)
      for (int64_t i = j; i < n; ++i)
        each_lane<T>([&](int64_t l) { a.at[j][i][l] -= column[i][l] * column[j][l]; });
  }
  for (int64_t l = 0; l < count; ++l) {
    info[l] = status[l];
    if (status[l]) continue;
    T* to = matrices + l * n * n;
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = j; i < n; ++i) (upper ? to[i * n + j] : to[j * n + i]) = a.at[j][i][l];
  }
}

template <class T>
SmallMatrices kernels() {
  return {kLanes<T>, &factor<T>, &solve<T>, &invert<T>, &cholesky<T>};
}

}  // namespace

SmallMatrices small_matrices_variant(DType dtype) {
  if (dtype == DType::Float32) return kernels<float>();
  if (dtype == DType::Float64) return kernels<double>();
  return {};
}

}  // namespace rushlight::cpu::RL_ISA
