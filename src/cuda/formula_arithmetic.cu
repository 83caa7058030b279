#define RL_CHANNEL_KERNELS  // of what adds and scales channels
#include "cuda/formula.cuh"

namespace rushlight::cuda {

RL_DEFINE_KERNELS(arithmetic_kernels, RL_ARITHMETIC_FORMULAS)

}  // namespace rushlight::cuda
