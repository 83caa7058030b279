#include "cuda/formula.cuh"

namespace rushlight::cuda {

RL_DEFINE_KERNELS(activation_kernels, RL_ACTIVATION_FORMULAS)

}  // namespace rushlight::cuda
