#include "cpu/small_matrices.h"

#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(SmallMatrices small_matrices_variant(DType dtype);)

SmallMatrices small_matrices(DType dtype, int64_t n, int64_t count) {
  if (n < 1 || n > SmallMatrices::kMost) return {};
  const SmallMatrices kernels = RL_ISA_VARIANT(small_matrices_variant(dtype));
  return 2 * count >= kernels.lanes ? kernels : SmallMatrices{};
}

}  // namespace rushlight::cpu
