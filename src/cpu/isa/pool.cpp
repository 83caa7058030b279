// Pooling of floating types, for each instruction set; cpu/pool.cpp has the integers.
#include "cpu/pool_loops.h"

namespace rushlight::cpu::RL_ISA {

PoolKernels float_pool_kernels(DType dtype) {
  return visit_dtype(FloatTypes{}, dtype, "pool", [](auto tag) { return kernels_for<decltype(tag)>(); });
}

}  // namespace rushlight::cpu::RL_ISA
