#include "cpu/half_vector.h"

#include <algorithm>

#include "core/parallel.h"
#include "cpu/isa_variant.h"

namespace rushlight::cpu {

// Of `count` rows, or columns, that start `step` elements apart.
RL_DECLARE_VARIANTS(void half_dots(DType dtype, const void* rows, int64_t step, int64_t count, int64_t inner,
                                   const float* x, float* y);
                    void half_sums(DType dtype, const void* columns, int64_t step, int64_t count,
                                   int64_t inner, const float* x, float* y);)

bool half_matrix_vector(DType dtype, int64_t outputs, int64_t inner, const MatrixView& matrix, const float* x,
                        float* y) {
  const bool by_rows = matrix.column_stride == 1;
  if (!by_rows && matrix.row_stride != 1) return false;
  constexpr int64_t kColumns = 64;  // whole cache lines
  const int64_t unit = by_rows ? 1 : kColumns, units = (outputs + unit - 1) / unit;
  const int64_t grain = std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, inner * unit));
  const auto item = static_cast<int64_t>(element_size(dtype));
  parallel_for(0, units, grain, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * unit, count = std::min(outputs, end * unit) - first;
    const void* from = static_cast<const char*>(matrix.data) + first * matrix.row_stride * item;
    if (by_rows)
      RL_ISA_VARIANT(half_dots(dtype, from, matrix.row_stride, count, inner, x, y + first));
    else
      RL_ISA_VARIANT(half_sums(dtype, from, matrix.column_stride, count, inner, x, y + first));
  });
  return true;
}

}  // namespace rushlight::cpu
