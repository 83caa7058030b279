// What the fallbacks for a build without LAPACK share.
#pragma once
#include "cpu/lapack.h"

#ifndef RL_WITH_LAPACK
namespace rushlight::cpu {

// A matrix stored by columns.
template <class T>
struct Columns {
  T* data;
  int64_t rows;
  T& operator()(int64_t i, int64_t j) const { return data[j * rows + i]; }
  T* column(int64_t j) const { return data + j * rows; }
};

template <class T>
T dot(int64_t n, const T* x, const T* y) {  // x^H y
  T sum(0);
  for (int64_t i = 0; i < n; ++i) sum += conj_of(x[i]) * y[i];
  return sum;
}
template <class T>
void add_scaled(int64_t n, T factor, const T* x, T* y) {
  for (int64_t i = 0; i < n; ++i) y[i] += factor * x[i];
}
template <class T>
Real<T> norm_of(int64_t n, const T* x) {  // scaled, so that squares neither overflow nor vanish
  Real<T> largest = 0, sum = 0;
  for (int64_t i = 0; i < n; ++i) largest = std::max(largest, static_cast<Real<T>>(std::abs(x[i])));
  if (largest == 0 || !std::isfinite(largest)) return largest;
  for (int64_t i = 0; i < n; ++i) sum += std::norm(x[i] / largest);
  return largest * std::sqrt(sum);
}

}  // namespace rushlight::cpu
#endif
