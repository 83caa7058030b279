// Products of a matrix of halves and a vector, for each instruction set.
#include "cpu/half_vector.h"

#include "cpu/isa/tile_inl.h"

namespace rushlight::cpu::RL_ISA {
namespace {

using V = Lanes<float>::type;
constexpr int64_t kLanes = Lanes<float>::count;

template <class T>
[[gnu::always_inline]] inline V wide(const T* from, int64_t n = kLanes) {
  float values[kLanes];
  read_lanes(from, n, values);
  V found;
  load(found, values);
  return found;
}

// Several sums at once, none of which waits for the others.
template <class T>
float dot(const T* row, const float* x, int64_t n) {
  constexpr int64_t kSums = 4;
  V sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums * kLanes <= n; i += kSums * kLanes)
#pragma GCC unroll 4
    for (int64_t s = 0; s < kSums; ++s) {
      V factor;
      load(factor, x + i + s * kLanes);
      sums[s] += wide(row + i + s * kLanes) * factor;
    }
  const V total = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  float sum = 0;
  for (int64_t l = 0; l < kLanes; ++l) sum += total[l];
  for (; i < n; ++i) sum += static_cast<float>(row[i]) * x[i];
  return sum;
}

// A block of columns: their sums stay in registers.
template <int Vectors, class T>
void sum_columns(const T* columns, int64_t step, int64_t count, int64_t inner, const float* x, float* y) {
  V sums[Vectors] = {};
  for (int64_t p = 0; p < inner; ++p)
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v)
      sums[v] += wide(columns + p * step + v * kLanes, Vectors > 1 ? kLanes : count) * x[p];
  for (int v = 0; v < Vectors; ++v)
    for (int64_t l = 0; l < kLanes && v * kLanes + l < count; ++l) y[v * kLanes + l] = sums[v][l];
}

template <class T>
void dots(const T* rows, int64_t step, int64_t count, int64_t inner, const float* x, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = dot(rows + i * step, x, inner);
}
template <class T>
void sums(const T* columns, int64_t step, int64_t count, int64_t inner, const float* x, float* y) {
  constexpr int kVectors = 8;
  int64_t i = 0;
  for (; i + kVectors * kLanes <= count; i += kVectors * kLanes)
    sum_columns<kVectors>(columns + i, step, kVectors * kLanes, inner, x, y + i);
  for (; i < count; i += kLanes)
    sum_columns<1>(columns + i, step, count - i < kLanes ? count - i : kLanes, inner, x, y + i);
}

}  // namespace

void half_dots(DType dtype, const void* rows, int64_t step, int64_t count, int64_t inner, const float* x,
               float* y) {
  if (dtype == DType::BFloat16)
    dots(static_cast<const BFloat16*>(rows), step, count, inner, x, y);
  else
    dots(static_cast<const Half*>(rows), step, count, inner, x, y);
}
void half_sums(DType dtype, const void* columns, int64_t step, int64_t count, int64_t inner, const float* x,
               float* y) {
  if (dtype == DType::BFloat16)
    sums(static_cast<const BFloat16*>(columns), step, count, inner, x, y);
  else
    sums(static_cast<const Half*>(columns), step, count, inner, x, y);
}

}  // namespace rushlight::cpu::RL_ISA
