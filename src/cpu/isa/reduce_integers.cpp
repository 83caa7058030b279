// Sums of integers that are narrower than what they are summed in.
#include "cpu/reduce_formulas.h"

namespace rushlight::cpu::RL_ISA {

ReduceKernel integer_sum_kernel(DType in) {
  return pick_kernel<Sum>(TypeList<uint8_t, int8_t, int16_t, int32_t>{}, in);
}

}  // namespace rushlight::cpu::RL_ISA
