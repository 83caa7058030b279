#include "cuda/formula.cuh"

namespace rushlight::cuda {

RL_DEFINE_KERNELS(comparison_kernels, RL_COMPARISON_FORMULAS)

}  // namespace rushlight::cuda
