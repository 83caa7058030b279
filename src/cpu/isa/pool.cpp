// Pooling of floating types and maxima of bytes, which quantised networks take, for each instruction set;
// cpu/pool.cpp has the integers.
#include "cpu/pool_loops.h"

namespace rushlight::cpu::RL_ISA {

PoolKernels float_pool_kernels(DType dtype) {
  return visit_dtype(FloatTypes{}, dtype, "pool", [](auto tag) { return kernels_for<decltype(tag)>(); });
}

MaxPool byte_max_pool(bool is_signed) { return is_signed ? max_pool<int8_t> : max_pool<uint8_t>; }

}  // namespace rushlight::cpu::RL_ISA
