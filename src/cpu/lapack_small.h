// Loops for matrices of a few rows, where calling a library costs more than the work. By columns, pivots and
// status as in lapack.h.
#pragma once
#include "cpu/lapack.h"

namespace rushlight::cpu::small {

constexpr int kMost = 8;

template <class T>
Real<T> pivot_size(T x) {
  return std::abs(std::real(x)) + std::abs(std::imag(x));
}

template <class T>
int getrf(int m, int n, T* a, int* pivots) {
  int singular = 0;
  for (int k = 0; k < std::min(m, n); ++k) {
    T* column = a + k * m;
    int best = k;
    for (int i = k + 1; i < m; ++i)
      if (pivot_size(column[i]) > pivot_size(column[best])) best = i;
    pivots[k] = best + 1;
    if (column[best] == T(0)) {
      if (!singular) singular = k + 1;
      continue;
    }
    if (best != k)
      for (int j = 0; j < n; ++j) std::swap(a[j * m + k], a[j * m + best]);
    for (int i = k + 1; i < m; ++i) column[i] /= column[k];
    for (int j = k + 1; j < n; ++j) {
      T* other = a + j * m;
      const T factor = other[k];
      for (int i = k + 1; i < m; ++i) other[i] -= factor * column[i];
    }
  }
  return singular;
}

// x = (L U)^-1 x, the rows of x being in the order of the factors already.
template <class T>
void substitute(int n, const T* lu, T* x) {
  for (int k = 0; k < n; ++k)
    for (int i = k + 1; i < n; ++i) x[i] -= lu[k * n + i] * x[k];
  for (int k = n - 1; k >= 0; --k) {
    x[k] /= lu[k * n + k];
    for (int i = 0; i < k; ++i) x[i] -= lu[k * n + i] * x[k];
  }
}
template <class T>
void getrs(int n, int columns, const T* lu, const int* pivots, T* b) {
  for (int j = 0; j < columns; ++j) {
    T* x = b + int64_t{j} * n;
    for (int k = 0; k < n; ++k) std::swap(x[k], x[pivots[k] - 1]);
    substitute(n, lu, x);
  }
}

template <class T>
int getri(int n, T* lu, const int* pivots) {
  T inverse[kMost * kMost] = {};
  for (int j = 0; j < n; ++j) inverse[j * n + j] = T(1);
  getrs(n, n, lu, pivots, inverse);
  std::copy_n(inverse, n * n, lu);
  return 0;
}

}  // namespace rushlight::cpu::small
