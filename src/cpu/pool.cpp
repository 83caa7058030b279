#include "cpu/isa_variant.h"
#define RL_ISA plain
#include "cpu/pool_loops.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(PoolKernels float_pool_kernels(DType dtype);)
RL_DECLARE_VARIANTS(MaxPool byte_max_pool(bool is_signed);)

void place_outside_of_plane(int64_t place, int64_t plane) {
  RL_FAIL("Found an invalid max index: ", place, " (a plane of the input has ", plane, " elements)");
}

PoolKernels pool_kernels(DType dtype, const char* who) {
  if (is_floating(dtype) && !is_float8(dtype)) return RL_ISA_VARIANT(float_pool_kernels(dtype));
  PoolKernels kernels =
      visit_dtype(TypeList<uint8_t, int8_t, int16_t, int32_t, int64_t>{}, dtype, who,
                  [](auto tag) { return plain::kernels_for<decltype(tag), sizeof(tag) != 1>(); });
  if (element_size(dtype) == 1) kernels.max = RL_ISA_VARIANT(byte_max_pool(dtype == DType::Int8));
  return kernels;
}

}  // namespace rushlight::cpu
