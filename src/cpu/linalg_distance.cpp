#include "cpu/linalg_distance.h"

#include <cstring>

#include "core/parallel.h"
#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(const DistanceLoops& distance_loops(bool double_precision);)

namespace {

const DistanceLoops& loops_for(DType dtype) {
  RL_ASSERT(dtype == DType::Float32 || dtype == DType::Float64);
  return RL_ISA_VARIANT(distance_loops(dtype == DType::Float64));
}

int64_t rows_at_once(int64_t others, int64_t columns) {
  return std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, others * columns));
}

template <class Byte>
Byte* row_of(Byte* rows, int64_t i, int64_t columns, DType dtype) {
  return rows + i * columns * static_cast<int64_t>(element_size(dtype));
}

}  // namespace

void row_distances(DType dtype, int64_t rows_a, int64_t rows_b, int64_t columns, double p, const void* a,
                   const void* b, void* out) {
  const auto distances = loops_for(dtype).distances;
  parallel_for(0, rows_a, rows_at_once(rows_b, columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      distances(row_of(static_cast<const char*>(a), i, columns, dtype), b, rows_b, columns, p,
                row_of(static_cast<char*>(out), i, rows_b, dtype));
  });
}

void pair_distances(DType dtype, int64_t rows, int64_t columns, double p, const void* a, void* out) {
  const auto distances = loops_for(dtype).distances;
  const auto* points = static_cast<const char*>(a);
  parallel_for(0, rows, rows_at_once(rows / 2, columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      distances(row_of(points, i, columns, dtype), row_of(points, i + 1, columns, dtype), rows - i - 1,
                columns, p, row_of(static_cast<char*>(out), PairGradients::first_pair(i, rows), 1, dtype));
  });
}

void pair_distances_backward(DType dtype, const PairGradients& pairs) {
  const auto gradient = loops_for(dtype).gradient;
  std::memset(pairs.out, 0, static_cast<size_t>(pairs.rows * pairs.columns) * element_size(dtype));
  // Each row on its own, so that sums have one order.
  parallel_for(0, pairs.rows, rows_at_once(pairs.rows, pairs.columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) gradient(pairs, i);
  });
}

}  // namespace rushlight::cpu
