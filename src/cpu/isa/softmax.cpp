// Softmax loops.
#include "cpu/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/isa/exp_inl.h"

namespace rushlight::cpu::RL_ISA {
namespace {

constexpr int kLanes = 32;

template <class T, class F>
T fold(int64_t n, T start, F&& step) {  // step(accumulator, i), in lanes so that it vectorises
  T lanes[kLanes];
  std::fill_n(lanes, kLanes, start);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int l = 0; l < kLanes; ++l) lanes[l] = step(lanes[l], i + l);
  for (int l = 0; i + l < n; ++l) lanes[l] = step(lanes[l], i + l);
  return start == 0 ? fold_lanes(lanes, [](T a, T b) { return a + b; })
                    : fold_lanes(lanes, [](T a, T b) { return std::max(a, b); });
}

template <class T>
void forward_row(const T* x, T* y, int64_t n, bool logarithm) {
  const T top =
      fold<T>(n, -std::numeric_limits<T>::infinity(), [&](T a, int64_t i) { return x[i] > a ? x[i] : a; });
  if (logarithm) {
    const T total = fold<T>(n, 0, [&](T a, int64_t i) { return a + exp_negative(x[i] - top); });
    const T log_total = std::log(total);  // apart from top, which may be large: their sum would round it away
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - top) - log_total;
    return;
  }
  const T total = fold<T>(n, 0, [&](T a, int64_t i) { return a + (y[i] = exp_negative(x[i] - top)); });
  const T scale = 1 / total;
  for (int64_t i = 0; i < n; ++i) y[i] *= scale;
}

// `width` adjacent columns of n rows, `inner` apart.
constexpr int64_t kBlock = 128;
template <class T>
void forward_columns(const T* x, T* y, int64_t n, int64_t inner, int64_t width, bool logarithm) {
  T top[kBlock], total[kBlock];
  for (int64_t j = 0; j < width; ++j) top[j] = x[j], total[j] = 0;
  for (int64_t i = 1; i < n; ++i)
    for (int64_t j = 0; j < width; ++j) top[j] = x[i * inner + j] > top[j] ? x[i * inner + j] : top[j];
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      const T e = exp_negative(x[i * inner + j] - top[j]);
      total[j] += e;
      if (!logarithm) y[i * inner + j] = e;
    }
  }
  for (int64_t j = 0; j < width; ++j) total[j] = logarithm ? std::log(total[j]) : 1 / total[j];
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      if (logarithm)
        y[i * inner + j] = (x[i * inner + j] - top[j]) - total[j];
      else
        y[i * inner + j] *= total[j];
    }
  }
}

// Short rows side by side, as columns: of one row alone most of each vector would be empty. All of them, so
// that a result does not depend on which rows are computed together.
constexpr int64_t kShort = 64, kSide = 16;
template <class T>
void turn_rows(const T* rows, int64_t count, int64_t n, T* columns) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t r = 0; r < kSide; ++r) columns[i * kSide + r] = r < count ? rows[r * n + i] : T(0);
}
template <class T>
void turn_back(const T* columns, int64_t count, int64_t n, T* rows) {
  for (int64_t r = 0; r < count; ++r)
    for (int64_t i = 0; i < n; ++i) rows[r * n + i] = columns[i * kSide + r];
}

template <class T>
void forward(const void* in, void* out, SoftmaxShape s, bool logarithm, int64_t begin, int64_t end) {
  const T* x = static_cast<const T*>(in) + begin * s.n * s.inner;
  T* y = static_cast<T*>(out) + begin * s.n * s.inner;
  if (s.inner == 1 && s.n <= kShort) {
    T from[kShort * kSide], to[kShort * kSide];
    for (int64_t o = begin; o < end; o += kSide, x += kSide * s.n, y += kSide * s.n) {
      const int64_t count = std::min(kSide, end - o);
      turn_rows(x, count, s.n, from);
      forward_columns(from, to, s.n, kSide, kSide, logarithm);
      turn_back(to, count, s.n, y);
    }
    return;
  }
  for (int64_t o = begin; o < end; ++o, x += s.n * s.inner, y += s.n * s.inner) {
    if (s.inner == 1) {
      forward_row(x, y, s.n, logarithm);
      continue;
    }
    for (int64_t j = 0; j < s.inner; j += kBlock)
      forward_columns(x + j, y + j, s.n, s.inner, std::min(kBlock, s.inner - j), logarithm);
  }
}

// softmax: y * (g - sum(g * y)); log_softmax: g - exp(y) * sum(g).
template <class T>
void backward_row(const T* g, const T* y, T* r, int64_t n, bool logarithm) {
  if (logarithm) {
    const T total = fold<T>(n, 0, [&](T a, int64_t i) { return a + g[i]; });
    for (int64_t i = 0; i < n; ++i) r[i] = g[i] - exp_negative(y[i]) * total;
    return;
  }
  const T total = fold<T>(n, 0, [&](T a, int64_t i) { return a + g[i] * y[i]; });
  for (int64_t i = 0; i < n; ++i) r[i] = y[i] * (g[i] - total);
}

template <class T>
void backward_columns(const T* g, const T* y, T* r, int64_t n, int64_t inner, int64_t width, bool logarithm) {
  T total[kBlock];
  std::fill_n(total, width, T(0));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < width; ++j)
      total[j] += logarithm ? g[i * inner + j] : g[i * inner + j] * y[i * inner + j];
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      const int64_t k = i * inner + j;
      r[k] = logarithm ? g[k] - exp_negative(y[k]) * total[j] : y[k] * (g[k] - total[j]);
    }
  }
}

template <class T>
void backward(const void* grad, const void* out, void* result, SoftmaxShape s, bool logarithm, int64_t begin,
              int64_t end) {
  const int64_t start = begin * s.n * s.inner;
  const T *g = static_cast<const T*>(grad) + start, *y = static_cast<const T*>(out) + start;
  T* r = static_cast<T*>(result) + start;
  if (s.inner == 1 && s.n <= kShort) {
    T from[2][kShort * kSide], to[kShort * kSide];
    for (int64_t o = begin; o < end; o += kSide, g += kSide * s.n, y += kSide * s.n, r += kSide * s.n) {
      const int64_t count = std::min(kSide, end - o);
      turn_rows(g, count, s.n, from[0]);
      turn_rows(y, count, s.n, from[1]);
      backward_columns(from[0], from[1], to, s.n, kSide, kSide, logarithm);
      turn_back(to, count, s.n, r);
    }
    return;
  }
  for (int64_t o = begin; o < end; ++o, g += s.n * s.inner, y += s.n * s.inner, r += s.n * s.inner) {
    if (s.inner == 1) {
      backward_row(g, y, r, s.n, logarithm);
      continue;
    }
    for (int64_t j = 0; j < s.inner; j += kBlock)
      backward_columns(g + j, y + j, r + j, s.n, s.inner, std::min(kBlock, s.inner - j), logarithm);
  }
}

}  // namespace

SoftmaxKernels softmax_kernels(DType dtype) {
  if (dtype == DType::Float32) return {forward<float>, backward<float>};
  return {forward<double>, backward<double>};
}

}  // namespace rushlight::cpu::RL_ISA
