#include "cpu/linalg_distance.h"

#include <algorithm>
#include <cmath>

#include "core/parallel.h"

namespace rushlight::cpu {
namespace {

constexpr int kLanes = 8;  // sums that run side by side

template <class T, class Term, class Combine>
T fold(int64_t n, const T* x, const T* y, Term term, Combine combine) {
  T lanes[kLanes] = {}, rest = 0;
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes)
    for (int i = 0; i < kLanes; ++i) lanes[i] = combine(lanes[i], term(std::abs(x[k + i] - y[k + i])));
  for (; k < n; ++k) rest = combine(rest, term(std::abs(x[k] - y[k])));
  for (T lane : lanes) rest = combine(rest, lane);
  return rest;
}

template <class T, class Norm>
void each_pair(int64_t rows_a, int64_t rows_b, int64_t columns, const T* a, const T* b, T* out, Norm norm) {
  const int64_t grain = std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, rows_b * columns));
  parallel_for(0, rows_a, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t j = 0; j < rows_b; ++j) out[i * rows_b + j] = norm(a + i * columns, b + j * columns);
  });
}

}  // namespace

void row_distances(DType dtype, int64_t rows_a, int64_t rows_b, int64_t columns, double p, const void* a,
                   const void* b, void* out) {
  visit_dtype(TypeList<float, double>{}, dtype, "cdist", [&](auto tag) {
    using T = decltype(tag);
    auto sum = [](T s, T t) { return s + t; };
    auto run = [&](auto norm) {
      each_pair(rows_a, rows_b, columns, static_cast<const T*>(a), static_cast<const T*>(b),
                static_cast<T*>(out), norm);
    };
    auto size = [](T d) { return d; };
    if (p == 0)
      run([&](const T* x, const T* y) {
        return fold(columns, x, y, [](T d) { return d != d ? d : T(d != 0); }, sum);
      });
    else if (p == 1)
      run([&](const T* x, const T* y) { return fold(columns, x, y, size, sum); });
    else if (p == 2)
      run([&](const T* x, const T* y) {
        return std::sqrt(fold(columns, x, y, [](T d) { return d * d; }, sum));
      });
    else if (std::isinf(p))  // a NaN stays
      run([&](const T* x, const T* y) {
        return fold(columns, x, y, size, [](T s, T t) { return t > s || t != t ? t : s; });
      });
    else
      run([&](const T* x, const T* y) {
        const T order = static_cast<T>(p);
        return std::pow(fold(columns, x, y, [order](T d) { return std::pow(d, order); }, sum), 1 / order);
      });
  });
}

}  // namespace rushlight::cpu
